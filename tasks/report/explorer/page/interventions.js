// What was done to a model in training, in words, and when.

import { shortCount } from "./numbers.js";

/** @import { Model, Row } from "./study.js" */
/** @typedef {{ tokens: number, words: string, isEnd: boolean }} Moment  at which something begins or ends */

/** @type {Record<string, string>} where the kind itself isn't a noun */
const NOUNS = { unlearn: "unlearning", several: "intervention" };

/**
 * What was done to it; undefined if nothing was.
 * @param {Model} model
 * @returns {Row | undefined}
 */
export function doneTo(model) {
  return model.rows.interventions[0];
}

/**
 * Its name, and what was done to it: tells apart those of one label.
 * @param {Model} model
 */
export function fullName(model) {
  const own = doneTo(model);
  return own ? `${model.name}: ${inShort(own.done)}` : model.name;
}

/**
 * What was done to it in training, and what that changed.
 * @param {Model} model
 */
export function toldOf(model) {
  const own = doneTo(model);
  if (!own) return "nothing was done to it in training.";
  const which = own.head && !own.what.includes(own.head) ? ` (${own.head})` : "";
  const when = own.kind === "smear" ? "" : "in training, ";
  return `${when}${inShort(own.what)}${which}. ${delay(own)}`;
}

/**
 * How much later than its base it has an induction head, as the view intervention_effects defines that.
 * @param {Row} own
 */
function delay({ base_reader: baseReader, is_censored: isCensored, delay_log2: doublings }) {
  if (!baseReader) return "Its base has no induction head.";
  if (isCensored === null) return "Its base had formed one before.";
  if (isCensored) return "Its best head never has half the induction that its base's ends with.";
  const times = (2 ** doublings).toFixed(2);
  return `Its best head has half the induction that its base's ends with after ${times} times as many tokens as there.`;
}

/**
 * When within its training something begins or ends.
 * @param {Model} model
 * @returns {Moment[]}
 */
export function momentsOf(model) {
  const own = doneTo(model);
  if (!own) return [];
  const noun = NOUNS[own.kind] ?? own.kind;
  /** @param {number[] | null} all @param {boolean} isEnd */
  const named = (all, isEnd) =>
    (all ?? []).map((tokens) => ({ tokens, words: `${noun} ${isEnd ? "ends" : "begins"}`, isEnd }));
  const end = model.checkpoints[model.last].tokens ?? 0;
  return [...named(own.begins, false), ...named(own.ends, true)].filter(({ tokens }) => tokens > 0 && tokens < end);
}

/**
 * Numbers of tokens as people say them.
 * @param {string} words
 */
function inShort(words) {
  return words.replace(/\b(from|until) (\d+)/g, (_, word, count) => `${word} ${shortCount(Number(count))} tokens`);
}
