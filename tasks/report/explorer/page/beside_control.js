// Which model stands beside the page's, what was done to each, and whether their checkpoints differ.

import { baseOf, modelBeside, NO_MODEL, othersOf, sidesOf } from "./beside.js";
import { chooser, el, refill } from "./elements.js";
import { doneTo, fullName, toldOf } from "./interventions.js";

/** @import { Page } from "./page.js" */
/** @import { Model } from "./study.js" */

/** @param {Page} page */
export function besideControl(page) {
  const others = othersOf(page);
  /** @type {[string, string][]} */
  const options = others.map((model) => [page.nameOf(model), fullName(model)]);
  const base = baseOf(page);
  const unasked = base ? page.nameOf(base) : NO_MODEL;
  const beside = chooser("Beside", [[NO_MODEL, "no other model"], ...options], (value) =>
    page.set({ beside: value === unasked ? "" : value }),
  );
  const swap = el("span", { class: "tick" });
  const told = el("ul", { class: "told" });
  const controls = el("div", { class: "controls", hidden: !others.length }, beside.element, swap);
  return {
    element: el("div", {}, controls, told),
    update() {
      const other = modelBeside(page);
      beside.select.value = other ? page.nameOf(other) : NO_MODEL;
      refill(swap, other && swapLink(page, other));
      refill(told, ...sentences(page, other));
    },
  };
}

/**
 * A link to the other model, with this one beside it, after as many tokens.
 * @param {Page} page
 * @param {Model} other
 */
function swapLink(page, other) {
  const { at, step } = sidesOf(page)[1];
  const there = { model: page.nameOf(other), at: at === other.last ? "" : String(step) };
  return page.anchor({ ...there, beside: page.nameOf(page.model) }, "Swap them");
}

/**
 * @param {Page} page
 * @param {Model | null} other
 */
function sentences(page, other) {
  const models = [page.model, ...(other ? [other] : [])];
  if (!models.some(doneTo)) return [matched(page)];
  const told = models.map((model) => el("li", {}, el("strong", {}, model.name), `: ${toldOf(model)}`));
  return [...told, matched(page)];
}

/**
 * Says when checkpoints beside each other have not seen the same.
 * @param {Page} page
 */
function matched(page) {
  const [own, other] = sidesOf(page);
  if (!other || own.seen(own.at) === other.seen(other.at)) return null;
  const [here, there] = [own, other].map((side) => `${side.seen(side.at)} of ${side.model.name}`);
  return el("li", {}, `Not after the same: the checkpoint nearest to ${here} is ${there}.`);
}
