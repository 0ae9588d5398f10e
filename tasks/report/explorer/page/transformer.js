// The forward pass of models/transformer.py. Row vectors: x is [position, width] and maps act on the right.

import { addRow, product, productTransposed, sum } from "./arrays.js";
import { attended } from "./attention.js";
import { fedForward } from "./feed_forward.js";
import { normalised } from "./norms.js";
import { sinusoids } from "./positions.js";
import { tensor } from "./weights.js";

/** @import { Weights } from "./weights.js" */

/**
 * Sizes and kinds of a model, as portable_models.py says them.
 * @typedef {object} Sizes
 * @property {number[]} heads by layer
 * @property {number[]} keyValueHeads by layer; fewer where heads share them
 * @property {number} dModel
 * @property {number} dHead
 * @property {number} dValue
 * @property {number} dMlp
 * @property {number} dVocab
 * @property {number} nContext
 * @property {string} positions
 * @property {number} rotaryWidth
 * @property {number} rotaryBase
 * @property {boolean} rotaryHalves
 * @property {boolean} post whether norms come after the sublayers
 * @property {boolean} parallel whether both sublayers read the same
 * @property {number} epsilon
 * @property {number} headEpsilon
 * @property {string} feedForward
 * @property {number} stride between the keys that a query sees
 * @property {number} nVisible
 * @property {number | null} topK
 */
/**
 * Decides what a head or feed-forward layer adds to the stream, given what it would write: null for nothing.
 * @typedef {(name: string, own: Float32Array) => Float32Array | null} Written
 */
/**
 * The stream after some layers, and by layer and head what was attended to.
 * @typedef {object} Passed
 * @property {Float32Array} x [position, width]
 * @property {Float32Array[][]} patterns attention [query, key]
 * @property {Float32Array[][]} lengths how long what a head would write of each key is
 * @property {Float32Array[]} streams that each layer reads
 */
/**
 * @typedef {object} Pass
 * @property {Float32Array[][]} patterns
 * @property {Float32Array[][]} lengths
 * @property {Float32Array} logits [position, token]
 */

/** @type {Written} */
const asItIs = (_, own) => own;

/**
 * What a model computes on tokens.
 * @param {Sizes} sizes
 * @param {Weights} weights
 * @param {number[]} tokens
 * @param {Written} written
 * @returns {Pass}
 */
export function forward(sizes, weights, tokens, written = asItIs) {
  const n = tokens.length;
  const { x, patterns, lengths } = passed(sizes, weights, embedded(sizes, weights, tokens), 0, written);
  const last = normalised(x, n, sizes, weights, "final_norm");
  return { patterns, lengths, logits: unembedded(sizes, weights, last, n, sizes.dModel) };
}

/**
 * The stream after all layers from one on.
 * @param {Sizes} sizes
 * @param {Weights} weights
 * @param {Float32Array} stream that this layer reads
 * @param {number} from
 * @param {Written} written
 * @returns {Passed}
 */
export function passed(sizes, weights, stream, from, written = asItIs) {
  const n = stream.length / sizes.dModel;
  let x = stream;
  const patterns = [];
  const lengths = [];
  const streams = [];
  for (let layer = from; layer < sizes.heads.length; layer++) {
    const name = `layers.${layer}`;
    streams.push(x);
    const read = sizes.post ? x : normalised(x, n, sizes, weights, `${name}.attention_norm`);
    const attention = attended(sizes, weights, layer, read, n, written);
    patterns.push(attention.patterns);
    lengths.push(attention.lengths);
    /** @type {Float32Array} */
    let middle = sum(x, attention.written);
    if (sizes.post) middle = normalised(middle, n, sizes, weights, `${name}.attention_norm`);
    if (sizes.feedForward !== "none") {
      const entering = sizes.parallel ? x : middle;
      const input = sizes.post ? middle : normalised(entering, n, sizes, weights, `${name}.feed_forward_norm`);
      const added = written(`L${layer}MLP`, fedForward(sizes, weights, `${name}.feed_forward`, input, n));
      if (added) middle = sum(middle, added);
      if (sizes.post) middle = normalised(middle, n, sizes, weights, `${name}.feed_forward_norm`);
    }
    x = middle;
  }
  return { x, patterns, lengths, streams };
}

/**
 * Logits after the last token, from the stream after all layers.
 * @param {Sizes} sizes
 * @param {Weights} weights
 * @param {Float32Array} x
 */
export function lastLogits(sizes, weights, x) {
  const last = normalised(x.slice(-sizes.dModel), 1, sizes, weights, "final_norm");
  return unembedded(sizes, weights, last, 1, sizes.dModel);
}

/**
 * @param {Sizes} sizes
 * @param {Weights} weights
 * @param {number[]} tokens
 */
export function embedded(sizes, weights, tokens) {
  const width = sizes.dModel;
  const table = tensor(weights, "W_E");
  const x = new Float32Array(tokens.length * width);
  tokens.forEach((token, pos) => x.set(table.subarray(token * width, (token + 1) * width), pos * width));
  if (sizes.positions === "learned") return sum(x, tensor(weights, "W_pos").subarray(0, x.length));
  return sizes.positions === "sinusoidal" ? sum(x, sinusoids(tokens.length, width)) : x;
}

/**
 * @param {Sizes} sizes
 * @param {Weights} weights
 * @param {Float32Array} x
 * @param {number} n
 * @param {number} width
 */
function unembedded(sizes, weights, x, n, width) {
  const free = weights.get("W_U_free");
  const logits = free
    ? product(x, free, n, width, sizes.dVocab)
    : productTransposed(x, tensor(weights, "W_E"), n, width, sizes.dVocab);
  const bias = weights.get("b_U");
  return bias ? addRow(logits, bias) : logits;
}
