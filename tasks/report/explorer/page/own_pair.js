// Where a reader types a pair of prompts: two prompts, and a right and a wrong way to go on.

import { el } from "./elements.js";
import { pairTokens } from "./pair_tokens.js";

/** @import { TokenPair, TypedPair } from "./pair_tokens.js" */
/** @import { Page } from "./page.js" */
/** @import { PairFields, Text } from "./study.js" */

export const OWN_PAIR = "+"; // what the address calls it; no prompt set has this name
const TYPING_MS = 250;
const HINT =
  "Two prompts of as many tokens that differ in one thing. An answer continues its prompt: begin it with a space " +
  "where a word would.";
/** @type {[keyof TypedPair, string][]} */
const PARTS = [
  ["clean", "Clean prompt"],
  ["corrupt", "Corrupt prompt"],
  ["answer", "Right answer"],
  ["wrong", "Wrong answer"],
];

export class OwnPair {
  /** @param {Page} page @param {Text} text */
  constructor(page, text) {
    this.page = page;
    this.text = text;
    this.typing = 0;
    this.areas = PARTS.map(([part, label]) => this.area(part, label));
    const hint = el("p", { class: "hint" }, HINT);
    const fields = this.areas.map(({ element }) => element);
    this.element = el("div", { class: "own" }, hint, el("div", { class: "typed" }, ...fields));
  }

  /** @param {keyof TypedPair} part @param {string} label */
  area(part, label) {
    const input = () => {
      clearTimeout(this.typing);
      this.typing = window.setTimeout(() => this.read(), TYPING_MS);
    };
    const area = el("textarea", { rows: 2, spellcheck: "false", on: { input } });
    return { part, area, element: el("label", {}, el("span", {}, label), area) };
  }

  read() {
    const typed = Object.fromEntries(this.areas.map(({ part, area }) => [part, area.value]));
    this.page.set({ ...typed, patched: "" });
  }

  /** @returns {TypedPair} */
  get typed() {
    const { clean, corrupt, answer, wrong } = this.page.state;
    return { clean, corrupt, answer, wrong };
  }

  get isEmpty() {
    return Object.values(this.typed).every((words) => !words);
  }

  /** @returns {TokenPair | string} */
  get tokens() {
    if (this.isEmpty) return "type two prompts, a right answer and a wrong one";
    return pairTokens(this.typed, this.text, this.page.model.network?.sizes.nContext ?? 0);
  }

  /**
   * What a pair of a set spells, to begin with, if it is read again as the same tokens; else nothing.
   * @param {PairFields} pair
   * @returns {Partial<TypedPair>}
   */
  spelled({ clean, corrupt, answers, wrong }) {
    const { text, page } = this;
    const spell = (/** @type {number[]} */ tokens) => tokens.map((token) => text.label(token)).join("");
    const [first, second] = [clean, corrupt].map((tokens) => spell(tokens.slice(text.opening.length)));
    const [answer, other] = [answers, wrong].map((tokens) => spell(tokens.slice(0, 1)));
    const typed = { clean: first, corrupt: second, answer, wrong: other };
    const read = pairTokens(typed, text, page.model.network?.sizes.nContext ?? 0);
    return typeof read !== "string" && String(read.clean) === String(clean) ? typed : {};
  }

  update() {
    for (const { part, area } of this.areas) {
      if (document.activeElement !== area) area.value = this.page.state[part];
    }
  }
}
