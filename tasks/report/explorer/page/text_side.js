// What one model does with a text: its attention, and what it takes to come next.

import { attentionMatrix, attentionRows } from "./attention_matrix.js";
import { el, emptyNote, refill } from "./elements.js";
import { figure } from "./figure.js";
import { chosenHeads, headsOff } from "./head_buttons.js";
import { nextTokens } from "./next_tokens.js";
import { PassageFigure } from "./passage_figure.js";
import { Reading } from "./reading.js";
import { runOn } from "./runs.js";

/** @import { Page } from "./page.js" */
/** @import { Text } from "./study.js" */

const NOT_HELD = "This file holds no attention of this model on this passage.";
const NOT_SERVED =
  "Nobody serves this page any more. Start `headstream explore --serve` again, and open its address.";
const OTHER_TOKENS = "This model reads text in other tokens.";

/**
 * The text as the page's model reads it; null if it isn't known.
 * @param {Page} page
 * @param {Text} text
 * @param {number[]} tokens
 * @param {number | null} place of the passage that they are, if they are one
 */
export async function readingOf(page, text, tokens, place) {
  const { model } = page;
  if (model.text !== text) return null;
  const without = model.readSteps.length ? headsOff(page) : [];
  const seen = tokens.slice(0, model.network?.sizes.nContext);
  const intact = await runOn(model, page.runnableStep, seen, place, []);
  const run = without.length ? await runOn(model, page.runnableStep, seen, place, without) : intact;
  return run && intact && new Reading(page, text, run, intact, chosenHeads(page), without);
}

export class TextSide {
  constructor() {
    this.note = el("p", { class: "hint" });
    this.passage = el("div");
    this.next = el("div");
    this.square = el("div");
    this.top = el("div", {}, this.note, this.passage);
  }

  /**
   * @param {Page} page
   * @param {Reading} reading
   * @param {boolean} isCut whether the text is longer than the model's context
   */
  show(page, reading, isCut) {
    this.note.replaceChildren(...notes(page, isCut));
    const passage = new PassageFigure(page, reading);
    refill(this.passage, passage.element);
    passage.paint(reading.position); // after what has the focus has painted itself
    refill(this.next, nextTokens(page, reading));
    refill(this.square, attentionSquare(page, reading));
    return passage;
  }

  /**
   * Says why there is nothing to show.
   * @param {Page} page
   * @param {Text} text
   */
  showNothing({ model }, text) {
    const why = model.servedSteps.length ? NOT_SERVED : NOT_HELD;
    const other = model.text && model.text !== text;
    refill(this.passage, emptyNote(other ? OTHER_TOKENS : why));
    for (const place of [this.note, this.next, this.square]) place.replaceChildren();
  }
}

/**
 * Which weights read the text, and links to the others that the file holds.
 * @param {Page} page
 * @param {boolean} isCut
 * @returns {(Node | string)[]}
 */
function notes(page, isCut) {
  const { model, runnableStep } = page;
  const steps = model.checkpoints.map(({ step }) => step);
  const at = steps.indexOf(runnableStep);
  const isOther = !model.servedSteps.length && runnableStep !== page.step;
  const other = `No weights after ${page.seen(page.at)} are in this file: what follows is after ${page.seen(at)}. `;
  const warning = isOther && at >= 0 ? el("strong", { class: "elsewhere" }, other) : "";
  const cut = isCut ? `Cut to the model's context of ${model.network?.sizes.nContext} tokens. ` : "";
  const on = headsOff(page).length && !model.readSteps.length ? "It doesn't run here: no head of it is off. " : "";
  const whose = `${on}Attention of ${model.name} ${page.runnableName}.`;
  if (model.runnableSteps.length < 2) return [warning, cut, whose];
  const links = model.runnableSteps.flatMap((step) => {
    const place = steps.indexOf(step);
    const href = page.link({ at: page.stepName(place) });
    return [" ", el("a", { href, "aria-current": step === runnableStep ? "true" : null }, page.seen(place))];
  });
  return [warning, cut, whose, " The file holds its weights after", ...links];
}

/** @param {Page} page @param {Reading} reading */
function attentionSquare(page, { stripes, names, position }) {
  if (!stripes.length) return null;
  const { name, attention } = stripes[0];
  const shown = { name, attention, tokens: names };
  const onChoose = (/** @type {number} */ query) => page.set({ token: String(query), way: "from" });
  return figure({
    title: page.titled(`Attention of ${name}`),
    name: `${page.model.id} ${name} attention`,
    note: "A row a token that looks, a column a token looked at; deeper is more.",
    picture: attentionMatrix(shown, { side: 420, query: position, onChoose }),
    rows: () => attentionRows(shown),
    sql: null,
  });
}

/**
 * One side alone, or two beside each other, like beside like.
 * @param {TextSide[]} sides
 */
export function arranged(sides) {
  const below = [...sides.map(({ next }) => next), ...sides.map(({ square }) => square)];
  const tops = sides.map(({ top }) => top);
  if (sides.length > 1) return [el("div", { class: "sides" }, ...tops, ...below)];
  return [...tops, el("div", { class: "beside" }, ...below)];
}
