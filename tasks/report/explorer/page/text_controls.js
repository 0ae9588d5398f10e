// Which text is shown, and what of it: the controls above a text.

import { chooser, el, tickBox } from "./elements.js";
import { OWN_TEXT, passageOf, passageOptions } from "./passages.js";

/** @import { Page } from "./page.js" */
/** @import { Text } from "./study.js" */

const TYPING_MS = 250;
const SAMPLE_TOKENS = 40; // of a passage, as a text to begin with
const WEIGHED_HINT = "Attention times the length of what the head would write of the key (Kobayashi et al. 2020)";
/** @type {[string, string][]} */
const WAYS = [
  ["from", "where a token looks"],
  ["to", "who looks at a token"],
];
/** @type {[string, string][]} */
const TINTS = [
  ["attention", "attention"],
  ["loss", "loss of each token"],
  ["change", "change of loss with heads off"],
];

export class TextControls {
  /** @param {Page} page @param {Text} text */
  constructor(page, text) {
    this.page = page;
    this.text = text;
    this.takesText = page.model.takesText;
    this.options = passageOptions(page.model);
    /** @type {[string, string][]} */
    const own = this.takesText ? [[OWN_TEXT, "your own text"]] : [];
    this.passage = chooser("Text", [...this.options, ...own], (value) => {
      if (value === OWN_TEXT) this.typeOwn();
      else page.set({ passage: value, token: "" });
    });
    const on = { click: () => this.typeOwn() };
    this.ownButton = el("button", { type: "button", on }, "Type a text of your own");
    this.way = chooser("Show", WAYS, (value) => page.set({ way: value }));
    this.tint = chooser("Colour", TINTS, (value) => page.set({ colour: value }));
    this.average = tickBox("average the heads", (checked) => page.set({ average: checked ? "1" : "" }));
    this.weighed = tickBox("weigh by what is read", (checked) => page.set({ weighed: checked ? "1" : "" }));
    this.weighed.element.title = WEIGHED_HINT;
    this.area = this.textArea();
    this.own = el("div", { class: "own" }, this.area);
    this.element = el(
      "div",
      { class: "controls" },
      this.passage.element,
      this.takesText && this.ownButton,
      ...[this.way, this.tint, this.average, this.weighed].map(({ element }) => element),
    );
  }

  /** Where a reader types: what is shown follows after a moment without a key. */
  textArea() {
    let typing = 0;
    const input = () => {
      clearTimeout(typing);
      typing = window.setTimeout(() => this.page.set({ text: area.value, passage: OWN_TEXT, token: "" }), TYPING_MS);
    };
    const label = { "aria-label": "Your own text", placeholder: "Type a text; every view follows." };
    const area = el("textarea", { rows: 3, spellcheck: "false", ...label, on: { input } });
    return area;
  }

  /** Begins with what is shown, so that there is something to change. */
  typeOwn() {
    const { page, text } = this;
    const shown = this.isOwn ? [] : (text.passages[Number(page.state.passage)]?.tokens ?? []);
    const start = shown.slice(text.opening.length, SAMPLE_TOKENS).map((token) => text.label(token));
    page.set({ passage: OWN_TEXT, text: page.state.text || start.join(""), token: "" });
    this.area.focus();
  }

  /** Whether the reader's own text is shown. */
  get isOwn() {
    return this.page.state.passage === OWN_TEXT && this.takesText;
  }

  /** The passage that is shown, counted from 0; null if it is none of the file's. */
  get place() {
    return this.isOwn ? null : passageOf(this.options, this.page.state.passage);
  }

  /** What is shown, whatever the model's context. */
  get tokens() {
    const { text, place } = this;
    if (place !== null) return text.passages[place].tokens;
    return this.isOwn ? [...text.opening, ...(text.tokenizer?.encode(this.page.state.text) ?? [])] : [];
  }

  update() {
    const { state } = this.page;
    this.passage.select.value = this.isOwn ? OWN_TEXT : String(this.place);
    this.way.select.value = state.way;
    this.tint.select.value = state.colour;
    this.average.input.checked = Boolean(state.average);
    this.weighed.input.checked = Boolean(state.weighed);
    this.own.hidden = !this.isOwn;
    this.ownButton.hidden = this.isOwn;
    if (document.activeElement !== this.area) this.area.value = state.text;
  }
}
