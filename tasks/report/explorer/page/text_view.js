// A passage, or a reader's own text: where each token looks, who looks at it, and what comes next with heads off. Or a
// pair of prompts: what of the model makes the difference between them.

import { attentionMatrix, attentionRows } from "./attention_matrix.js";
import { behavioursOf } from "./behaviours.js";
import { chooser, el, emptyNote, refill, showIn } from "./elements.js";
import { figure } from "./figure.js";
import { chosenHeads, fillChips, fillSwitches, headsOff, MAX_BUTTONS } from "./head_buttons.js";
import { nextTokens } from "./next_tokens.js";
import { OWN_PAIR } from "./own_pair.js";
import { PairReading } from "./pair_reading.js";
import { PassageFigure } from "./passage_figure.js";
import { Reading } from "./reading.js";
import { runOn } from "./runs.js";
import { TextControls } from "./text_controls.js";

/** @import { OpenView, Page, View } from "./page.js" */
/** @import { Text } from "./study.js" */

const NOT_HELD = "This file holds no attention of this model on this passage.";
const NOT_SERVED =
  "Nobody serves this page any more. Start `headstream explore --serve` again, and open its address.";

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
    const controls = el("div", { class: "controls", hidden: !this.options.length }, this.chosen.element);
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
    this.controls = new TextControls(page, text);
    this.chips = el("div", { class: "chips", role: "group", "aria-label": "Heads shown" });
    this.switches = el("div", { class: "chips", role: "group", "aria-label": "Heads switched off" });
    const off = { class: "off", open: model.heads.length <= MAX_BUTTONS };
    this.off = el("details", off, el("summary", {}, "Switch heads off"), this.switches);
    this.note = el("p", { class: "hint" });
    this.passage = el("div");
    this.next = el("div");
    this.square = el("div");
    this.asked = 0; // how often; of several answers the last one asked for counts
    this.element = el(
      "section",
      { "aria-label": "Attention on a text" },
      this.controls.element,
      this.controls.own,
      this.chips,
      model.readSteps.length ? this.off : null,
      this.note,
      this.passage,
      el("div", { class: "beside" }, this.next, this.square),
    );
  }

  async update() {
    const { page, controls } = this;
    const { model } = page;
    const number = ++this.asked;
    const without = headsOff(page);
    controls.update();
    fillChips(page, this.chips);
    fillSwitches(page, this.switches);
    if (without.length) this.off.open = true;
    const { place, tokens } = controls;
    const seen = tokens.slice(0, model.network?.sizes.nContext);
    const intact = await runOn(model, page.runnableStep, seen, place, []);
    const isRun = without.length > 0 && model.readSteps.length > 0;
    const run = isRun ? await runOn(model, page.runnableStep, seen, place, without) : intact;
    if (number !== this.asked) return;
    if (!run || !intact) {
      refill(this.passage, emptyNote(model.servedSteps.length ? NOT_SERVED : NOT_HELD));
      return;
    }
    this.note.replaceChildren(...this.notes(seen.length < tokens.length));
    this.show(new Reading(page, this.text, run, intact, chosenHeads(page), without));
  }

  /** Keeps an answer that comes later from being shown. */
  stop() {
    this.asked++;
  }

  /**
   * Which weights read the text, and links to the others that the file holds.
   * @param {boolean} isCut whether the text is longer than the model's context
   * @returns {(Node | string)[]}
   */
  notes(isCut) {
    const { page } = this;
    const { model, runnableStep } = page;
    const steps = model.checkpoints.map(({ step }) => step);
    const at = steps.indexOf(runnableStep);
    const isOther = model.runnableSteps.length > 0 && runnableStep !== page.step;
    const other = `No weights after ${page.seen(page.at)} are in this file: what follows is after ${page.seen(at)}. `;
    const warning = isOther && at >= 0 ? el("strong", { class: "elsewhere" }, other) : "";
    const cut = isCut ? `Cut to the model's context of ${model.network?.sizes.nContext} tokens. ` : "";
    const whose = `Attention of ${model.name} ${page.runnableName}.`;
    if (model.runnableSteps.length < 2) return [warning, cut, whose];
    const links = model.runnableSteps.flatMap((step) => {
      const place = steps.indexOf(step);
      const href = page.link({ at: page.stepName(place) });
      return [" ", el("a", { href, "aria-current": step === runnableStep ? "true" : null }, page.seen(place))];
    });
    return [warning, cut, whose, " The file holds its weights after", ...links];
  }

  /** @param {Reading} reading */
  show(reading) {
    const passage = new PassageFigure(this.page, reading);
    refill(this.passage, passage.element);
    passage.paint(reading.position); // after what has the focus has painted itself
    refill(this.next, nextTokens(this.page, reading));
    refill(this.square, attentionSquare(this.page, reading));
  }
}

/** @param {Page} page @param {Reading} reading */
function attentionSquare(page, { stripes, names, position }) {
  if (!stripes.length) return null;
  const { name, attention } = stripes[0];
  const shown = { name, attention, tokens: names };
  const onChoose = (/** @type {number} */ query) => page.set({ token: String(query), way: "from" });
  return figure({
    title: `Attention of ${name}`,
    name: `${page.model.id} ${name} attention`,
    note: "A row a token that looks, a column a token looked at; deeper is more.",
    picture: attentionMatrix(shown, { side: 420, query: position, onChoose }),
    rows: () => attentionRows(shown),
    sql: null,
  });
}
