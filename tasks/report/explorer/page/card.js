// All that was measured of one head.

import { css, DARK, roleColour } from "./colours.js";
import { el, emptyNote, refill } from "./elements.js";
import { evidence } from "./evidence.js";
import { ablations, eigenvalues, importance, overTraining, probes, skipTrigrams } from "./head_figures.js";
import { headsAlike, neighbours } from "./related_heads.js";

/** @import { Page } from "./page.js" */
/** @import { Head } from "./study.js" */

/** @param {Page} page */
export function headCard(page) {
  const element = el("aside", { "aria-label": "The chosen head", "aria-live": "polite" });
  const training = el("div");
  let shown = "";
  return {
    element,
    update() {
      const { head } = page;
      const now = `${head?.name} ${DARK.matches} ${page.link({ at: "" })}`;
      if (head) refill(training, overTraining(page, head)); // all else is of the last checkpoint
      if (now === shown) return;
      shown = now;
      refill(element, ...(head ? sections(page, head, training) : [emptyNote("There are no heads to choose.")]));
    },
  };
}

/**
 * @param {Page} page
 * @param {Head} head
 * @param {HTMLElement} training
 */
function sections(page, head, training) {
  const { model } = page;
  const toText = page.anchor({ view: "text", heads: head.name, way: "from" }, "Where it looks in a text");
  const toCircuits = page.anchor({ view: "circuits" }, "Its circuits");
  return [
    el(
      "header",
      {},
      el("h2", {}, head.name),
      badge(model.role(head)),
      el("span", { class: "hint" }, `of ${model.name}`),
    ),
    el("ul", { class: "evidence" }, ...evidence(model, head).map((line) => el("li", {}, line))),
    el("p", { class: "links" }, toText, " · ", toCircuits),
    training,
    ablations(model, head),
    neighbours(page, head),
    eigenvalues(model, head),
    skipTrigrams(model, head),
    probes(model, head),
    importance(model, head),
    headsAlike(page, head),
  ];
}

/** @param {string | null} role */
function badge(role) {
  if (!role) return null;
  const element = el("span", { class: "badge" }, role);
  const mark = roleColour(role);
  if (mark) element.style.borderColor = css(mark);
  return element;
}
