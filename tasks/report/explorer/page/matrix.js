// A square or oblong of values as a picture: cells as pixels of an image, so that large ones cost nothing.

import { colour, css, mixed } from "./colours.js";
import { el, svg } from "./elements.js";
import { clamp } from "./numbers.js";

/**
 * @typedef {{
 *   rows: number, columns: number, value: (row: number, column: number) => number | null, most: number,
 *   side: number, rowName: (row: number) => string, columnName: (column: number) => string,
 *   rowTitle: string, columnTitle: string, tint?: string, chosen?: [number, number] | [number, null] | null,
 *   hint: (row: number, column: number) => string, onChoose: (row: number, column: number) => void, label: string,
 * }} Shown  side: of the picture, in its own units; chosen: a cell, or a whole row
 */

/** @param {Shown} shown @returns {SVGSVGElement} */
export function matrix(shown) {
  const { rows, columns, side, rowTitle, columnTitle, chosen = null } = shown;
  const longest = Math.max(...Array.from({ length: rows }, (_, row) => shown.rowName(row).length));
  const named = Math.max(rows, columns) <= 40;
  const margin = named ? 16 + 6.2 * Math.min(longest, 10) : 18;
  const cell = Math.min((side - margin) / columns, (side - margin) / rows);
  const [width, height] = [columns * cell, rows * cell], muted = css(colour("muted")), ink = css(colour("ink"));
  const hovered = svg("rect", { fill: "none", stroke: ink, "stroke-width": 1.5, visibility: "hidden", width: cell, height: cell });
  const hint = svg("text", { x: margin, y: margin + height + 16, "font-size": 12, fill: ink }, "");
  /** @param {MouseEvent} event */
  const cellAt = (event) => {
    const box = picture.getBoundingClientRect(), scale = picture.viewBox.baseVal.width / box.width;
    const column = Math.floor(((event.clientX - box.left) * scale - margin) / cell);
    const row = Math.floor(((event.clientY - box.top) * scale - margin) / cell);
    return row >= 0 && column >= 0 && row < rows && column < columns ? [row, column] : null;
  };
  /** @param {MouseEvent} event */
  const point = (event) => {
    const found = cellAt(event);
    hovered.setAttribute("visibility", found ? "visible" : "hidden");
    hint.textContent = found ? shown.hint(found[0], found[1]) : "";
    hovered.setAttribute("x", margin + (found?.[1] ?? 0) * cell);
    hovered.setAttribute("y", margin + (found?.[0] ?? 0) * cell);
  };
  const picture = svg("svg", {
    viewBox: `0 0 ${margin + width + 4} ${margin + height + 22}`, role: "img", "aria-label": shown.label, class: "matrix",
    "font-family": "sans-serif",
    on: {
      pointermove: point, pointerleave: () => { hovered.setAttribute("visibility", "hidden"); hint.textContent = ""; },
      click: (/** @type {MouseEvent} */ event) => { const found = cellAt(event); if (found) shown.onChoose(found[0], found[1]); },
    },
  },
  svg("rect", { x: margin, y: margin, width, height, fill: css(colour("card")), stroke: css(colour("grid")) }),
  svg("image", { href: pixels(shown), x: margin, y: margin, width, height, preserveAspectRatio: "none", "image-rendering": "pixelated" }),
  chosen && svg("rect", {
    x: margin + (chosen[1] ?? 0) * cell, y: margin + chosen[0] * cell, width: chosen[1] === null ? width : cell, height: cell,
    fill: "none", stroke: css(colour("orange")), "stroke-width": 1.5,
  }),
  ...(named ? [
    ...Array.from({ length: rows }, (_, row) => svg("text", {
      x: margin - 4, y: margin + (row + 0.5) * cell + 3.5, "text-anchor": "end", "font-size": Math.min(11, cell * 0.9), fill: muted,
    }, shown.rowName(row).slice(0, 10))),
    ...Array.from({ length: columns }, (_, column) => svg("text", {
      transform: `translate(${margin + (column + 0.5) * cell + 3.5} ${margin - 4}) rotate(-90)`, "font-size": Math.min(11, cell * 0.9), fill: muted,
    }, shown.columnName(column).slice(0, 10))),
  ] : [
    svg("text", { x: margin, y: margin - 6, "font-size": 12, fill: muted }, `${columnTitle} →`),
    svg("text", { transform: `translate(${margin - 6} ${margin}) rotate(-90)`, "text-anchor": "end", "font-size": 12, fill: muted }, `← ${rowTitle}`),
  ]),
  hovered, hint);
  return picture;
}

/** @param {Shown} shown @returns {string} a PNG's address */
function pixels({ rows, columns, value, most, tint = "blue" }) {
  const canvas = el("canvas", { width: columns, height: rows }), context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows), [card, full] = [colour("card"), colour(tint)];
  for (let row = 0, i = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, i += 4) {
      const found = value(row, column);
      if (found === null) continue;
      image.data.set(mixed(card, full, clamp(found / most, 0, 1)), i);
      image.data[i + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}
