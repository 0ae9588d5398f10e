// A square or oblong of values as a picture: cells as pixels of an image, so that large ones cost nothing.

import { colour, css, mixed } from "./colours.js";
import { el, svg, svgText } from "./elements.js";
import { clamp } from "./numbers.js";

/**
 * @typedef {object} Shown
 * @property {number} rows
 * @property {number} columns
 * @property {(row: number, column: number) => number | null} value
 * @property {number} most the value of the deepest colour
 * @property {number} side of the picture, in its own units
 * @property {string} [tint]
 * @property {string} label
 * @property {(row: number) => string} rowName
 * @property {(column: number) => string} columnName
 * @property {string} rowTitle
 * @property {string} columnTitle
 * @property {[number, number | null] | null} chosen a cell, or a whole row
 * @property {(row: number, column: number) => string} hint
 * @property {(row: number, column: number) => void} onChoose
 */
/** @typedef {ReturnType<typeof frameOf>} MatrixFrame */

const MAX_NAMED = 40; // rows or columns; of more the names aren't written
const MAX_NAME_LENGTH = 10;

/** @param {Shown} shown */
export function matrix(shown) {
  const frame = frameOf(shown);
  const { margin, width, height } = frame;
  const { hover, hint, on } = pointing(shown, frame);
  const box = { x: margin, y: margin, width, height };
  const image = { ...box, preserveAspectRatio: "none", "image-rendering": "pixelated" };
  const size = `0 0 ${margin + width + 4} ${margin + height + 22}`;
  return svg(
    "svg",
    { viewBox: size, role: "img", "aria-label": shown.label, class: "matrix", "font-family": "sans-serif", on },
    svg("rect", { ...box, fill: css(colour("card")), stroke: css(colour("grid")) }),
    svg("image", { href: pixels(shown), ...image }),
    chosenMark(shown, frame),
    ...(frame.isNamed ? [...rowNames(shown, frame), ...columnHeads(shown, frame)] : titles(shown, frame)),
    hover,
    hint,
  );
}

/** @param {Shown} shown */
function frameOf({ rows, columns, side, rowName }) {
  const longest = Math.max(...Array.from({ length: rows }, (_, row) => rowName(row).length));
  const isNamed = Math.max(rows, columns) <= MAX_NAMED;
  const margin = isNamed ? 16 + 6.2 * Math.min(longest, MAX_NAME_LENGTH) : 18;
  const cell = Math.min((side - margin) / columns, (side - margin) / rows);
  return { isNamed, margin, cell, width: columns * cell, height: rows * cell };
}

/**
 * What shows the cell that is pointed at, and what listens to that.
 * @param {Shown} shown
 * @param {MatrixFrame} frame
 */
function pointing({ rows, columns, hint: words, onChoose }, { margin, cell, height }) {
  const ink = css(colour("ink"));
  const line = { fill: "none", stroke: ink, "stroke-width": 1.5, visibility: "hidden" };
  const hover = svg("rect", { ...line, width: cell, height: cell });
  const hint = svgText("", { x: margin, y: margin + height + 16, "font-size": 12, fill: ink });
  const cellAt = (/** @type {MouseEvent} */ event) => {
    const picture = /** @type {SVGSVGElement} */ (event.currentTarget);
    const box = picture.getBoundingClientRect();
    const scale = picture.viewBox.baseVal.width / box.width;
    const column = Math.floor(((event.clientX - box.left) * scale - margin) / cell);
    const row = Math.floor(((event.clientY - box.top) * scale - margin) / cell);
    return row >= 0 && column >= 0 && row < rows && column < columns ? { row, column } : null;
  };
  const show = (/** @type {{ row: number, column: number } | null} */ found) => {
    hover.setAttribute("visibility", found ? "visible" : "hidden");
    hint.textContent = found ? words(found.row, found.column) : "";
    if (!found) return;
    hover.setAttribute("x", String(margin + found.column * cell));
    hover.setAttribute("y", String(margin + found.row * cell));
  };
  const on = {
    pointermove: (/** @type {PointerEvent} */ event) => show(cellAt(event)),
    pointerleave: () => show(null),
    click: (/** @type {MouseEvent} */ event) => {
      const found = cellAt(event);
      if (found) onChoose(found.row, found.column);
    },
  };
  return { hover, hint, on };
}

/** @param {Shown} shown @param {MatrixFrame} frame */
function chosenMark({ chosen }, { margin, cell, width }) {
  if (!chosen) return null;
  const [row, column] = chosen;
  const place = { x: margin + (column ?? 0) * cell, y: margin + row * cell };
  const size = { width: column === null ? width : cell, height: cell };
  return svg("rect", { ...place, ...size, fill: "none", stroke: css(colour("orange")), "stroke-width": 1.5 });
}

/** @param {Shown} shown @param {MatrixFrame} frame */
function rowNames({ rows, rowName }, { margin, cell }) {
  const look = { "text-anchor": "end", "font-size": Math.min(11, cell * 0.9), fill: css(colour("muted")) };
  return Array.from({ length: rows }, (_, row) => {
    const y = margin + (row + 0.5) * cell + 3.5;
    return svgText(rowName(row).slice(0, MAX_NAME_LENGTH), { x: margin - 4, y, ...look });
  });
}

/** @param {Shown} shown @param {MatrixFrame} frame */
function columnHeads({ columns, columnName }, { margin, cell }) {
  const look = { "font-size": Math.min(11, cell * 0.9), fill: css(colour("muted")) };
  return Array.from({ length: columns }, (_, column) => {
    const transform = `translate(${margin + (column + 0.5) * cell + 3.5} ${margin - 4}) rotate(-90)`;
    return svgText(columnName(column).slice(0, MAX_NAME_LENGTH), { transform, ...look });
  });
}

/** @param {Shown} shown @param {MatrixFrame} frame */
function titles({ rowTitle, columnTitle }, { margin }) {
  const look = { "font-size": 12, fill: css(colour("muted")) };
  const transform = `translate(${margin - 6} ${margin}) rotate(-90)`;
  return [
    svgText(`${columnTitle} →`, { x: margin, y: margin - 6, ...look }),
    svgText(`← ${rowTitle}`, { transform, "text-anchor": "end", ...look }),
  ];
}

/** @param {Shown} shown @returns {string} a PNG's address */
function pixels({ rows, columns, value, most, tint = "blue" }) {
  const canvas = el("canvas", { width: columns, height: rows });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(columns, rows);
  const [card, full] = [colour("card"), colour(tint)];
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
