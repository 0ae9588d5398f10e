// The frame of every view: its title, what to see in it, buttons that save it, and its SQL.

import { el } from "./elements.js";
import { saveCsv, savePng, saveSvg } from "./saving.js";

/**
 * @typedef {{
 *   title: string, note?: string | Node, content: Node, name: string, picture?: SVGSVGElement | (() => SVGSVGElement),
 *   rows?: () => Record<string, any>[], sql?: string | null,
 * }} Framed  name: of the files that it is saved as; sql: null where what is seen was computed in the page
 */

/** @param {Framed} framed @returns {HTMLElement} */
export function figure({ title, note, content, name, picture, rows, sql }) {
  const file = name.replace(/[^\w.-]+/g, "_");
  const seen = () => (typeof picture === "function" ? picture() : picture);
  /** @param {string} text @param {() => void} save */
  const button = (text, save) => el("button", {
    type: "button", class: "save", "aria-label": `Save ${title} as ${text}`, "data-focus": `${name} ${text}`,
    on: { click: save },
  }, text);
  const shown = sql ? el("details", { class: "sql" }, el("summary", {}, "SQL"),
    el("pre", {}, sql)) : sql === null && el("p", { class: "sql" }, "Computed in this page; no SQL.");
  return el("figure", { "aria-label": title },
    el("figcaption", {},
      el("div", { class: "title" }, el("h3", {}, title),
        el("span", { class: "saves" },
          picture && button("SVG", () => saveSvg(/** @type {SVGSVGElement} */ (seen()), file)),
          picture && button("PNG", () => void savePng(/** @type {SVGSVGElement} */ (seen()), file)),
          rows && button("CSV", () => saveCsv(rows(), file)))),
      note && el("p", {}, note)),
    content, shown);
}
