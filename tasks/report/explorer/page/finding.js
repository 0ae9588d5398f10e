// The line above the views: when the best head formed, with links to before and after.

import { headName } from "./study.js";

/** @import { Page } from "./page.js" */

/** @param {Page} page @returns {(Node | string)[]} */
export function finding(page) {
  const { model } = page;
  const change = model.rows.phase_changes.find((row) => row.score === "prefix_matching");
  const span = change && model.spanOf(change);
  if (!span) return [];
  const name = headName(change.layer, change.head);
  const link = (/** @type {number} */ at) => page.anchor({ head: name, at: page.stepName(at) }, page.seen(at));
  const [before, after] = [change.before, change.after].map((score) => score.toFixed(2));
  return [
    `${name} of ${model.name} formed abruptly between `,
    link(span.start),
    " and ",
    link(span.end),
    `: its prefix matching went from ${before} to ${after} over training.`,
  ];
}
