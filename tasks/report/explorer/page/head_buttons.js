// Buttons that choose the heads to see, and switches that turn heads off.

import { colour, css, seriesColour } from "./colours.js";
import { chooser, el, refill } from "./elements.js";

/** @import { Page } from "./page.js" */
/** @import { Head } from "./study.js" */

export const MAX_BUTTONS = 16;
const N_BEST = 8; // of more heads, those that have a button
const ROLE_SCORES = ["induction_random_period", "previous_token", "duplicate_token"];
export const MAX_STRIPES = 6; // heads that a token can show side by side

/**
 * Heads whose attention is shown.
 * @param {Page} page
 * @returns {Head[]}
 */
export function chosenHeads(page) {
  const named = page.state.heads.split(",").flatMap((name) => page.model.head(name) ?? []);
  return named.length || !page.head ? named : [page.head];
}

/**
 * Names of the heads that write nothing.
 * @param {Page} page
 */
export function headsOff(page) {
  return page.state.off.split(",").filter((name) => page.model.head(name));
}

/** @param {Page} page @param {Element} container */
export function fillChips(page, container) {
  const chosen = chosenHeads(page);
  const names = chosen.map(({ name }) => name);
  const atHand = headsAtHand(page, names);
  const add = (/** @type {string} */ name) => page.set({ heads: [...names, name].join(","), head: name });
  const every = page.model.heads.map(({ name }) => name).join(",");
  const on = { click: () => page.set({ heads: every, average: "1" }) };
  refill(
    container,
    el("span", { class: "hint" }, "Heads: "),
    ...atHand.map((head) => headChip(page, head, chosen)),
    otherHeads(page, atHand, add),
    el("button", { type: "button", class: "chip", "data-focus": "chip all", on }, "all, averaged"),
  );
}

/**
 * A button that shows a head, or no longer.
 * @param {Page} page
 * @param {Head} head
 * @param {Head[]} chosen
 */
function headChip(page, head, chosen) {
  const place = chosen.indexOf(head);
  const role = page.model.role(head);
  const click = () => {
    const wanted = place < 0 ? [...chosen, head] : chosen.filter((each) => each !== head);
    const heads = (wanted.length ? wanted : [head]).map(({ name }) => name).join(",");
    page.set({ heads, head: head.name });
  };
  const focus = { "data-focus": `chip ${head.name}`, title: role ?? "" };
  const button = el(
    "button",
    { type: "button", class: "chip", "aria-pressed": place >= 0, ...focus, on: { click } },
    head.name,
    role && role !== "other" && el("small", {}, role),
  );
  if (place >= 0 && chosen.length <= MAX_STRIPES) {
    button.style.borderColor = css(page.state.average ? colour("blue") : seriesColour(place));
  }
  return button;
}

/** @param {Page} page @param {Element} container */
export function fillSwitches(page, container) {
  const without = headsOff(page);
  const atHand = headsAtHand(page, without);
  const set = (/** @type {string[]} */ names) => page.set({ off: names.join(",") });
  const on = { click: () => set([]) };
  const switches = atHand.map(({ name }) => {
    const isOff = without.includes(name);
    const state = isOff ? "off" : "on";
    const click = () => set(isOff ? without.filter((each) => each !== name) : [...without, name]);
    const label = { "aria-checked": !isOff, "aria-label": `${name} ${state}`, "data-focus": `switch ${name}` };
    const kind = { type: "button", class: "chip switch", role: "switch" };
    return el("button", { ...kind, ...label, on: { click } }, name, el("small", {}, state));
  });
  refill(
    container,
    ...switches,
    otherHeads(page, atHand, (name) => set([...without, name])),
    without.length > 0 && el("button", { type: "button", class: "chip", "data-focus": "switch all", on }, "all on"),
  );
}

/**
 * Heads that have a button: all of a few; of many those that are chosen or have most of a role.
 * @param {Page} page
 * @param {string[]} chosen
 */
function headsAtHand({ model }, chosen) {
  const { heads } = model;
  if (heads.length <= MAX_BUTTONS) return heads;
  const value = (/** @type {Head} */ head) =>
    Math.max(...ROLE_SCORES.map((score) => model.score(score, model.last, head) ?? 0));
  const best = heads.toSorted((a, b) => value(b) - value(a)).slice(0, N_BEST);
  return heads.filter((head) => best.includes(head) || chosen.includes(head.name));
}

/**
 * A drop-down of the heads that have no button; null if all have.
 * @param {Page} page
 * @param {Head[]} atHand
 * @param {(name: string) => void} choose
 */
function otherHeads({ model }, atHand, choose) {
  const others = model.heads.filter((head) => !atHand.includes(head));
  /** @type {[string, string][]} */
  const options = others.map(({ name }) => [name, name]);
  return others.length ? chooser("", [["", "another head"], ...options], choose).element : null;
}
