// Tokens as people read them: white space and line ends are seen, and nothing of them is ever markup.

import { el } from "./elements.js";

/** @type {Record<string, string>} */
const SEEN = { " ": "·", "\n": "⏎", "\t": "⇥" };

/**
 * A token in one line of plain text.
 * @param {string} label
 */
export function plain(label) {
  return label.replace(/[ \n\t]/g, (sign) => SEEN[sign]);
}

/**
 * The inside of a token's element, white space paler than what prints.
 * @param {string} label
 * @returns {Node[]}
 */
export function tokenNodes(label) {
  return label
    .split(/([ \n\t]+)/)
    .filter(Boolean)
    .map((part) =>
      /[ \n\t]/.test(part) ? el("span", { class: "space" }, plain(part)) : document.createTextNode(part),
    );
}
