// Attention of a layer: what each head looks at, and what it writes.

import { addRow, product, rowLengths, sum } from "./arrays.js";
import { rootMeanSquare } from "./norms.js";
import { rotated, sinusoids } from "./positions.js";
import { tensor } from "./weights.js";

/** @import { Sizes, Written } from "./transformer.js" */
/** @import { Weights } from "./weights.js" */

/**
 * Attention of one layer, head by head.
 * @param {Sizes} sizes
 * @param {Weights} weights
 * @param {number} layer
 * @param {Float32Array} read
 * @param {number} n
 * @param {Written} written
 */
export function attended(sizes, weights, layer, read, n, written) {
  const { dModel, dValue, nContext } = sizes;
  const name = `layers.${layer}.attention`;
  const placed = withPositions(sizes, weights, name, read, n);
  const patterns = [];
  const lengths = [];
  const total = new Float32Array(n * dModel);
  const outputBias = weights.get(`${name}.b_O`);
  if (outputBias) addRow(total, outputBias);
  const bias = weights.get(`${name}.position_bias`);
  for (let head = 0; head < sizes.heads[layer]; head++) {
    const { queries, keys, values } = queriesKeysValues(sizes, weights, layer, head, { read, placed, n });
    const byDistance = bias ? partOf(bias, head, nContext) : null;
    const pattern = attentionPattern(sizes, queries, keys, n, byDistance);
    const writing = partOf(tensor(weights, `${name}.W_O`), head, dValue * dModel);
    patterns.push(pattern);
    lengths.push(rowLengths(product(values, writing, n, dValue, dModel), n, dModel));
    const mixed = product(pattern, values, n, n, dValue);
    const gates = gatesOf(weights, `${name}.gates`, read, n, dModel, head);
    const gated = gates ? mixed.map((value, i) => value * gates[Math.floor(i / dValue)]) : mixed;
    const out = written(`L${layer}H${head}`, product(gated, writing, n, dValue, dModel));
    if (out) for (let i = 0; i < out.length; i++) total[i] += out[i];
  }
  return { patterns, lengths, written: total };
}

/**
 * What queries and keys are made of: the stream, with positions where they are added here.
 * @param {Sizes} sizes
 * @param {Weights} weights
 * @param {string} name
 * @param {Float32Array} read
 * @param {number} n
 */
function withPositions({ positions, dModel }, weights, name, read, n) {
  if (positions === "shortformer") return sum(read, sinusoids(n, dModel));
  if (positions !== "learned_shortformer") return read;
  return sum(read, tensor(weights, `${name}.W_pos`).subarray(0, n * dModel));
}

/**
 * Queries, keys and values of a head; several may share keys and values.
 * @param {Sizes} sizes
 * @param {Weights} weights
 * @param {number} layer
 * @param {number} head
 * @param {{ read: Float32Array, placed: Float32Array, n: number }} stream without and with positions
 */
function queriesKeysValues(sizes, weights, layer, head, { read, placed, n }) {
  const { dModel, dHead, dValue, headEpsilon, positions } = sizes;
  const name = `layers.${layer}.attention`;
  const nHeads = sizes.heads[layer];
  const nShared = sizes.keyValueHeads[layer];
  const shared = Math.floor(head / (nHeads / nShared));
  const end = nShared < nHeads ? "_shared" : "";
  /**
   * @param {string} map
   * @param {Float32Array} x
   * @param {number} width
   * @param {number} index among the heads of the map
   */
  const projected = (map, x, width, index) => {
    const out = product(x, partOf(tensor(weights, `${name}.W_${map}`), index, dModel * width), n, dModel, width);
    const bias = weights.get(`${name}.b_${map}`);
    return bias ? addRow(out, partOf(bias, index, width)) : out;
  };
  /** @param {Float32Array} x @param {string} norm */
  const finished = (x, norm) => {
    const scale = weights.get(`${name}.${norm}.weight`);
    const out = scale ? rootMeanSquare(x, dHead, scale, headEpsilon) : x;
    return positions === "rotary" ? rotated(out, n, dHead, sizes) : out;
  };
  return {
    queries: finished(projected("Q", placed, dHead, head), "q_norm"),
    keys: finished(projected(`K${end}`, placed, dHead, shared), "k_norm"),
    values: projected(`V${end}`, read, dValue, shared),
  };
}

/**
 * The numbers of one head, of a tensor that holds those of all.
 * @param {Float32Array} numbers
 * @param {number} head
 * @param {number} size
 */
function partOf(numbers, head, size) {
  return numbers.subarray(head * size, (head + 1) * size);
}

/**
 * Softmax over the keys that each query sees.
 * @param {Sizes} sizes
 * @param {Float32Array} queries
 * @param {Float32Array} keys
 * @param {number} n
 * @param {Float32Array | null} byDistance
 */
function attentionPattern(sizes, queries, keys, n, byDistance) {
  const { dHead, stride, nVisible, topK } = sizes;
  const pattern = new Float32Array(n * n);
  const scale = dHead ** -0.5;
  for (let q = 0; q < n; q++) {
    /** @type {[number, number][]} */
    let seen = [];
    for (let distance = 0, i = 0; distance <= q && i < nVisible; distance += stride, i++) {
      const k = q - distance;
      let score = 0;
      for (let d = 0; d < dHead; d++) score += queries[q * dHead + d] * keys[k * dHead + d];
      seen.push([k, score * scale + (byDistance ? byDistance[distance] : 0)]);
    }
    // Of equal scores those of the nearest keys stay: they come first, and sorting keeps their order.
    if (topK !== null && seen.length > topK) seen = seen.sort((a, b) => b[1] - a[1]).slice(0, topK);
    const highest = seen.reduce((most, [, score]) => Math.max(most, score), -Infinity);
    let total = 0;
    for (const [k, score] of seen) total += pattern[q * n + k] = Math.exp(score - highest);
    for (const [k] of seen) pattern[q * n + k] /= total;
  }
  return pattern;
}

/**
 * What a head's mixed values are multiplied by at each position; null without gates.
 * @param {Weights} weights
 * @param {string} name
 * @param {Float32Array} read
 * @param {number} n
 * @param {number} width
 * @param {number} head
 */
function gatesOf(weights, name, read, n, width, head) {
  const fixed = weights.get(`${name}.fixed`);
  const direction = weights.get(`${name}.direction`);
  if (fixed) return new Float32Array(n).fill(fixed[head]);
  if (!direction) return null;
  const open = new Float32Array(n);
  const offset = tensor(weights, `${name}.offset`)[head];
  for (let pos = 0; pos < n; pos++) {
    let sign = offset;
    for (let i = 0; i < width; i++) sign += read[pos * width + i] * direction[head * width + i];
    open[pos] = sign > 0 ? 1 : 0;
  }
  return open;
}
