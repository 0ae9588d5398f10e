// Patching: what a head or feed-forward layer writes at one prompt, put into the run at another one.

import { embedded, lastLogits, passed } from "./transformer.js";

/** @import { Sizes } from "./transformer.js" */
/** @import { Weights } from "./weights.js" */

/**
 * A run at one prompt, kept so that others can take over what it wrote.
 * @typedef {object} PromptRun
 * @property {number[]} tokens
 * @property {Float32Array[]} streams that each layer reads
 * @property {Map<string, Float32Array>} outputs of each head and feed-forward layer
 * @property {Float32Array} logits after the last token
 */
/** Tokens that would be right to go on with, and wrong ones. @typedef {{ answers: number[], wrong: number[] }} Asked */

/**
 * @param {Sizes} sizes
 * @param {Weights} weights
 * @param {number[]} tokens
 * @returns {PromptRun}
 */
export function promptRun(sizes, weights, tokens) {
  /** @type {Map<string, Float32Array>} */
  const outputs = new Map();
  const { x, streams } = passed(sizes, weights, embedded(sizes, weights, tokens), 0, (name, own) => {
    outputs.set(name, own);
    return own;
  });
  return { tokens, streams, outputs, logits: lastLogits(sizes, weights, x) };
}

/**
 * Logits after the last token if some nodes write what they write in the other run. What is before them stays as it is.
 * @param {Sizes} sizes
 * @param {Weights} weights
 * @param {PromptRun} run
 * @param {PromptRun} other
 * @param {Iterable<string>} nodes
 */
export function patchedLogits(sizes, weights, run, other, nodes) {
  const patched = new Set(nodes);
  if (!patched.size) return run.logits;
  const from = Math.min(...[...patched].map(layerOf));
  const { x } = passed(sizes, weights, run.streams[from], from, (name, own) => {
    return (patched.has(name) && other.outputs.get(name)) || own;
  });
  return lastLogits(sizes, weights, x);
}

/**
 * Log-odds of right answers against wrong ones, in nats.
 * @param {Float32Array} logits
 * @param {Asked} asked
 */
export function logOdds(logits, { answers, wrong }) {
  return logSum(logits, answers) - logSum(logits, wrong);
}

/** @param {Float32Array} logits @param {number[]} tokens */
function logSum(logits, tokens) {
  const own = tokens.map((token) => logits[token]);
  const highest = Math.max(...own);
  return highest + Math.log(own.reduce((total, logit) => total + Math.exp(logit - highest), 0));
}

/** @param {string} node */
function layerOf(node) {
  return Number(/^L(\d+)/.exec(node)?.[1]);
}
