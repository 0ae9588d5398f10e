// A passage, or a reader's own text: where each token looks, who looks at it, and what comes next with heads off. Or a
// pair of prompts: what of the model makes the difference between them.

import { behavioursOf } from "./behaviours.js";
import { sidesOf } from "./beside.js";
import { besideControl } from "./beside_control.js";
import { chooser, el, emptyNote, showIn } from "./elements.js";
import { fillChips, fillSwitches, headsOff, MAX_BUTTONS } from "./head_buttons.js";
import { OWN_PAIR } from "./own_pair.js";
import { PairReading } from "./pair_reading.js";
import { TextControls } from "./text_controls.js";
import { arranged, readingOf, TextSide } from "./text_side.js";

/** @import { OpenView, Page, View } from "./page.js" */
/** @import { PassageFigure } from "./passage_figure.js" */
/** @import { Reading } from "./reading.js" */
/** @import { Text } from "./study.js" */

/** @type {View} */
export const view = { name: "text", title: "Text", place: 2, hasSlider: true, open: openText };

/** @param {Page} page @returns {OpenView} */
function openText(page) {
  const { text, network, name } = page.model;
  if (text && network) return new TextOrPair(page, text);
  const why = `This file holds neither weights nor attention of ${name}: About says what it holds.`;
  return { element: emptyNote(why) };
}

class TextOrPair {
  /** @param {Page} page @param {Text} text */
  constructor(page, text) {
    const { model } = page;
    this.page = page;
    this.reading = new ReadText(page, text);
    const shown = behavioursOf(model).filter(({ name }) => model.network?.pairs[name]?.length);
    this.pair = new PairReading(page, text, shown);
    /** @type {[string, string][]} */
    const sets = shown.map(({ name }) => [name, `pairs of ${name}`]);
    /** @type {[string, string][]} */
    const own = model.takesText ? [[OWN_PAIR, "your own pair of prompts"]] : [];
    this.options = [...sets, ...own];
    this.chosen = chooser("Read", [["", "a text"], ...this.options], (value) => {
      if (value === OWN_PAIR) this.pair.typeOwn();
      else page.set({ set: value, pair: "0", patched: "" });
    });
    const controls = el("div", { class: "controls lead", hidden: !this.options.length }, this.chosen.element);
    this.place = el("div");
    this.element = el("section", { "aria-label": "Text" }, controls, this.place);
  }

  async update() {
    const isPair = this.options.some(([value]) => value === this.page.state.set);
    this.chosen.select.value = isPair ? this.page.state.set : "";
    const shown = isPair ? this.pair : this.reading;
    showIn(this.place, shown.element);
    await shown.update();
  }

  /** Keeps an answer that comes later from being shown. */
  stop() {
    this.reading.stop();
    this.pair.stop();
  }
}

class ReadText {
  /** @param {Page} page @param {Text} text */
  constructor(page, text) {
    const { model } = page;
    this.page = page;
    this.text = text;
    this.beside = besideControl(page);
    this.controls = new TextControls(page, text);
    this.chips = el("div", { class: "chips", role: "group", "aria-label": "Heads shown" });
    this.switches = el("div", { class: "chips", role: "group", "aria-label": "Heads switched off" });
    const off = { class: "off", open: model.heads.length <= MAX_BUTTONS };
    this.off = el("details", off, el("summary", {}, "Switch heads off"), this.switches);
    this.sides = [new TextSide(), new TextSide()];
    this.shown = el("div");
    this.nShown = 0;
    this.asked = 0; // how often; of several answers the last one asked for counts
    this.element = el(
      "section",
      { "aria-label": "Attention on a text" },
      this.beside.element,
      this.controls.element,
      this.controls.own,
      this.chips,
      model.readSteps.length ? this.off : null,
      this.shown,
    );
  }

  async update() {
    const { page, text, controls } = this;
    const number = ++this.asked;
    this.beside.update();
    controls.update();
    fillChips(page, this.chips);
    fillSwitches(page, this.switches);
    if (headsOff(page).length) this.off.open = true;
    const { place, tokens } = controls;
    const pages = sidesOf(page);
    const readings = await Promise.all(pages.map((side) => readingOf(side, text, tokens, place)));
    if (number !== this.asked) return;
    this.arrange(pages.length);
    this.show(pages, readings, tokens.length);
  }

  /** Keeps an answer that comes later from being shown. */
  stop() {
    this.asked++;
  }

  /** @param {number} n how many models are shown */
  arrange(n) {
    if (n === this.nShown) return; // what has the focus keeps it
    this.nShown = n;
    this.shown.replaceChildren(...arranged(this.sides.slice(0, n)));
  }

  /**
   * The text as each model reads it, at the same token.
   * @param {Page[]} pages
   * @param {(Reading | null)[]} readings
   * @param {number} n tokens of the text
   */
  show(pages, readings, n) {
    /** @type {PassageFigure[]} */
    const passages = [];
    pages.forEach((page, i) => {
      const reading = readings[i];
      if (reading && readings[0]) reading.position = Math.min(readings[0].position, reading.run.n - 1);
      if (reading) passages.push(this.sides[i].show(page, reading, reading.run.n < n));
      else this.sides[i].showNothing(page, this.text);
    });
    for (const passage of passages) passage.together = passages;
  }
}
