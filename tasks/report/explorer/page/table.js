// Tables of text.

import { el } from "./elements.js";

/** @param {string[]} headings @param {string[][]} rows */
export function table(headings, rows) {
  const head = el("tr", {}, ...headings.map((heading) => el("th", { scope: "col" }, heading)));
  const body = rows.map((cells) => el("tr", {}, ...cells.map((cell) => el("td", {}, cell))));
  return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)));
}
