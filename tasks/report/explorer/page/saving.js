// Pictures and tables as files: SVG and PNG as they are seen, CSV with all digits that the page holds.

import { el } from "./elements.js";
import { colour, css } from "./colours.js";

const PNG_SCALE = 2;

/** @param {string} name @param {Blob} blob */
function download(name, blob) {
  const href = URL.createObjectURL(blob);
  const link = el("a", { href, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

/**
 * A picture as text of its own, on the ground that it was seen on.
 * @param {SVGSVGElement} picture
 */
export function standalone(picture) {
  const copy = /** @type {SVGSVGElement} */ (picture.cloneNode(true));
  const { width, height } = picture.viewBox.baseVal;
  for (const element of [copy, ...copy.querySelectorAll("*")]) {
    for (const name of ["tabindex", "role", "data-focus", "class"]) element.removeAttribute(name);
  }
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [attribute, value] of Object.entries({ width: "100%", height: "100%", fill: css(colour("card")) })) {
    ground.setAttribute(attribute, value);
  }
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

/** @param {SVGSVGElement} picture @param {string} name */
export function saveSvg(picture, name) {
  download(`${name}.svg`, new Blob([standalone(picture)], { type: "image/svg+xml" }));
}

/** @param {SVGSVGElement} picture @param {string} name */
export async function savePng(picture, name) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(picture))}`;
  await image.decode();
  const { width, height } = picture.viewBox.baseVal;
  const canvas = el("canvas", { width: Math.ceil(PNG_SCALE * width), height: Math.ceil(PNG_SCALE * height) });
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => blob && download(`${name}.png`, blob));
}

/** @param {Record<string, any>[]} rows */
export function csvOf(rows) {
  const names = rows.length ? Object.keys(rows[0]) : [];
  /** @param {any} value */
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [names, ...rows.map((row) => names.map((name) => row[name]))];
  return lines.map((line) => `${line.map(cell).join(",")}\r\n`).join("");
}

/** @param {Record<string, any>[]} rows @param {string} name */
export function saveCsv(rows, name) {
  download(`${name}.csv`, new Blob([csvOf(rows)], { type: "text/csv" }));
}
