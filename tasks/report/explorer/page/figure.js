// The frame of whatever a view shows: its title, what to see in it, buttons that save it, and its SQL.

import { el } from "./elements.js";
import { saveCsv, savePng, saveSvg } from "./saving.js";

/**
 * @typedef {object} Framed
 * @property {string} title
 * @property {string} name of the files that it is saved as
 * @property {string | Node} [note] what to see in it
 * @property {SVGSVGElement | (() => SVGSVGElement)} [picture] what is saved as SVG and PNG
 * @property {Node} [content] what is shown, if that isn't the picture
 * @property {() => Record<string, any>[]} [rows] what is saved as CSV
 * @property {string | null} [sql] null where what is seen was computed in the page
 */

/** @param {Framed} framed */
export function figure(framed) {
  const { title, note, content, picture, sql } = framed;
  const heading = el("div", { class: "title" }, el("h3", {}, title), saveButtons(framed));
  return el(
    "figure",
    { "aria-label": title },
    el("figcaption", {}, heading, note && el("p", {}, note)),
    content ?? /** @type {SVGSVGElement} */ (picture),
    sql ? el("details", { class: "sql" }, el("summary", {}, "SQL"), el("pre", {}, sql)) : null,
    sql === null ? el("p", { class: "sql" }, "Computed in this page; no SQL.") : null,
  );
}

/** @param {Framed} framed */
function saveButtons({ title, name, picture, rows }) {
  const file = name.replace(/[^\w.-]+/g, "_");
  const seen = () => /** @type {SVGSVGElement} */ (typeof picture === "function" ? picture() : picture);
  /** @param {string} text @param {() => void} save */
  const button = (text, save) => {
    const label = `Save ${title} as ${text}`;
    const focus = `${name} ${text}`;
    const on = { click: save };
    return el("button", { type: "button", class: "save", "aria-label": label, "data-focus": focus, on }, text);
  };
  return el(
    "span",
    { class: "saves" },
    picture && button("SVG", () => saveSvg(seen(), file)),
    picture && button("PNG", () => void savePng(seen(), file)),
    rows && button("CSV", () => saveCsv(rows(), file)),
  );
}
