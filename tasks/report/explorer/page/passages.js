// The passages that a reader can choose from.

import { plain } from "./tokens.js";

/** @import { Model, Text } from "./study.js" */

export const OWN_TEXT = "own"; // what the address calls the text that a reader typed
const SAMPLE_SIGNS = 28; // of a passage, in its name

/**
 * The passages that the file can show of a model: their places, and what they are called.
 * @param {Model} model
 * @returns {[string, string][]}
 */
export function passageOptions(model) {
  const { text, network } = model;
  if (!text || !network) return [];
  const runs = model.readSteps.length > 0;
  /** @type {[string, string][]} */
  const options = text.passages.map(({ name, tokens }, i) => [String(i), `${name}: ${opening(text, tokens)} …`]);
  return options.filter(([i]) => runs || network.kept[i]);
}

/**
 * The passage that the address names, if there is that, else the first.
 * @param {[string, string][]} options
 * @param {string} asked
 * @returns {number | null} its place among the text's; null if there is none
 */
export function passageOf(options, asked) {
  const found = options.find(([i]) => i === asked) ?? options[0];
  return found ? Number(found[0]) : null;
}

/**
 * How a passage goes on after BOS.
 * @param {Text} text
 * @param {number[]} tokens
 */
function opening(text, tokens) {
  const labels = tokens.slice(1, 1 + SAMPLE_SIGNS).map((token) => text.label(token));
  return plain(labels.join("")).slice(0, SAMPLE_SIGNS);
}
