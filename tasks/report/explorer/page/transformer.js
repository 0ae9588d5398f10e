// The forward pass of models/transformer.py. Row vectors: x is [position, width] and maps act on the right.

/**
 * @typedef {{
 *   heads: number[], keyValueHeads: number[], dModel: number, dHead: number, dValue: number, dMlp: number,
 *   dVocab: number, nContext: number, positions: string,
 *   rotaryWidth: number, rotaryBase: number, rotaryHalves: boolean,
 *   post: boolean, parallel: boolean, epsilon: number, headEpsilon: number,
 *   feedForward: string, stride: number, nVisible: number, topK: number | null,
 * }} Sizes
 * @typedef {Map<string, Float32Array>} Weights
 * @typedef {{patterns: Float32Array[][], lengths: Float32Array[][], logits: Float32Array}} Pass
 *   by layer and head: attention [query, key], and how long what a head would write of each key is
 */

const SINUSOID_BASE = 10000;

/** @param {[string, number[]][]} layout @param {Float32Array} numbers @returns {Weights} */
export function weightsOf(layout, numbers) {
  const weights = new Map();
  let start = 0;
  for (const [name, shape] of layout) {
    const size = shape.reduce((product, side) => product * side, 1);
    weights.set(name, numbers.subarray(start, start + size));
    start += size;
  }
  return weights;
}

/**
 * What a model computes on tokens. `isOff` says which heads write nothing.
 * @param {Sizes} sizes @param {Weights} weights @param {number[]} tokens
 * @param {(layer: number, head: number) => boolean} isOff @returns {Pass}
 */
export function forward(sizes, weights, tokens, isOff = () => false) {
  const n = tokens.length, width = sizes.dModel;
  /** @type {Float32Array} */
  let x = embedded(sizes, weights, tokens);
  const patterns = [], lengths = [];
  for (let layer = 0; layer < sizes.heads.length; layer++) {
    const name = `layers.${layer}`;
    const read = sizes.post ? x : normalised(x, n, sizes, weights, `${name}.attention_norm`);
    const attention = attended(sizes, weights, layer, read, n, isOff);
    patterns.push(attention.patterns);
    lengths.push(attention.lengths);
    /** @type {Float32Array} */
    let middle = sum(x, attention.written);
    if (sizes.post) middle = normalised(middle, n, sizes, weights, `${name}.attention_norm`);
    if (sizes.feedForward !== "none") {
      const entering = sizes.parallel ? x : middle;
      const input = sizes.post ? middle : normalised(entering, n, sizes, weights, `${name}.feed_forward_norm`);
      middle = sum(middle, fedForward(sizes, weights, `${name}.feed_forward`, input, n));
      if (sizes.post) middle = normalised(middle, n, sizes, weights, `${name}.feed_forward_norm`);
    }
    x = middle;
  }
  x = normalised(x, n, sizes, weights, "final_norm");
  return { patterns, lengths, logits: unembedded(sizes, weights, x, n, width) };
}

/** @param {Sizes} sizes @param {Weights} weights @param {number[]} tokens */
function embedded(sizes, weights, tokens) {
  const width = sizes.dModel, table = tensor(weights, "W_E");
  const x = new Float32Array(tokens.length * width);
  tokens.forEach((token, pos) => x.set(table.subarray(token * width, (token + 1) * width), pos * width));
  if (sizes.positions === "learned") return sum(x, tensor(weights, "W_pos").subarray(0, x.length));
  return sizes.positions === "sinusoidal" ? sum(x, sinusoids(tokens.length, width, SINUSOID_BASE)) : x;
}

/** @param {Sizes} sizes @param {Weights} weights @param {Float32Array} x @param {number} n @param {number} width */
function unembedded(sizes, weights, x, n, width) {
  const free = weights.get("W_U_free");
  const logits = free ? product(x, free, n, width, sizes.dVocab)
    : productTransposed(x, tensor(weights, "W_E"), n, width, sizes.dVocab);
  const bias = weights.get("b_U");
  return bias ? addRow(logits, bias) : logits;
}

/**
 * Attention of one layer, head by head.
 * @param {Sizes} sizes @param {Weights} weights @param {number} layer @param {Float32Array} read @param {number} n
 * @param {(layer: number, head: number) => boolean} isOff
 */
function attended(sizes, weights, layer, read, n, isOff) {
  const { dModel, dHead, dValue } = sizes;
  const name = `layers.${layer}.attention`, nHeads = sizes.heads[layer], nShared = sizes.keyValueHeads[layer];
  const added = sizes.positions === "shortformer" ? sinusoids(n, dModel, SINUSOID_BASE)
    : sizes.positions === "learned_shortformer" ? tensor(weights, `${name}.W_pos`).subarray(0, n * dModel) : null;
  const placed = added ? sum(read, added) : read;
  /** @param {string} map @param {Float32Array} x @param {number} width @param {number} index @param {string} end */
  const projected = (map, x, width, index, end) => {
    const size = dModel * width;
    const weight = tensor(weights, `${name}.W_${map}${end}`).subarray(index * size, (index + 1) * size);
    const bias = weights.get(`${name}.b_${map}${end}`);
    const out = product(x, weight, n, dModel, width);
    return bias ? addRow(out, bias.subarray(index * width, (index + 1) * width)) : out;
  };
  /** @param {Float32Array} x @param {string} norm */
  const finished = (x, norm) => {
    const scale = weights.get(`${name}.${norm}.weight`);
    const out = scale ? rootMeanSquare(x, dHead, scale, sizes.headEpsilon) : x;
    return sizes.positions === "rotary" ? rotated(out, n, dHead, sizes) : out;
  };
  const end = nShared < nHeads ? "_shared" : "";
  const patterns = [], lengths = [], written = new Float32Array(n * dModel);
  const outputBias = weights.get(`${name}.b_O`);
  if (outputBias) addRow(written, outputBias);
  const bias = weights.get(`${name}.position_bias`);
  for (let head = 0; head < nHeads; head++) {
    const shared = Math.floor(head / (nHeads / nShared));
    const queries = finished(projected("Q", placed, dHead, head, ""), "q_norm");
    const keys = finished(projected("K", placed, dHead, shared, end), "k_norm");
    const values = projected("V", read, dValue, shared, end);
    const byDistance = bias ? bias.subarray(head * sizes.nContext, (head + 1) * sizes.nContext) : null;
    const pattern = attentionPattern(sizes, queries, keys, n, byDistance);
    const size = dValue * dModel;
    const writing = tensor(weights, `${name}.W_O`).subarray(head * size, (head + 1) * size);
    patterns.push(pattern);
    lengths.push(rowLengths(product(values, writing, n, dValue, dModel), n, dModel));
    if (isOff(layer, head)) continue;
    const mixed = product(pattern, values, n, n, dValue);
    const gates = gatesOf(weights, `${name}.gates`, read, n, dModel, head);
    if (gates) mixed.forEach((value, i) => { mixed[i] = value * gates[Math.floor(i / dValue)]; });
    const out = product(mixed, writing, n, dValue, dModel);
    for (let i = 0; i < out.length; i++) written[i] += out[i];
  }
  return { patterns, lengths, written };
}

/**
 * Softmax over the keys that each query sees.
 * @param {Sizes} sizes @param {Float32Array} queries @param {Float32Array} keys @param {number} n
 * @param {Float32Array | null} byDistance
 */
function attentionPattern(sizes, queries, keys, n, byDistance) {
  const { dHead, stride, nVisible, topK } = sizes;
  const pattern = new Float32Array(n * n), scale = dHead ** -0.5;
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
 * @param {Weights} weights @param {string} name @param {Float32Array} read @param {number} n @param {number} width
 * @param {number} head
 */
function gatesOf(weights, name, read, n, width, head) {
  const fixed = weights.get(`${name}.fixed`), direction = weights.get(`${name}.direction`);
  if (fixed) return new Float32Array(n).fill(fixed[head]);
  if (!direction) return null;
  const open = new Float32Array(n), offset = tensor(weights, `${name}.offset`)[head];
  for (let pos = 0; pos < n; pos++) {
    let sign = offset;
    for (let i = 0; i < width; i++) sign += read[pos * width + i] * direction[head * width + i];
    open[pos] = sign > 0 ? 1 : 0;
  }
  return open;
}

/** @param {Sizes} sizes @param {Weights} weights @param {string} name @param {Float32Array} x @param {number} n */
function fedForward(sizes, weights, name, x, n) {
  const { dModel, dMlp, feedForward } = sizes;
  /** @param {string} part @param {Float32Array} from @param {number} before @param {number} after */
  const mapped = (part, from, before, after) => {
    const out = product(from, tensor(weights, `${name}.W_${part}`), n, before, after);
    const bias = weights.get(`${name}.b_${part}`);
    return bias ? addRow(out, bias) : out;
  };
  const activation = ACTIVATIONS[feedForward];
  const read = mapped("in", x, dModel, dMlp);
  const hidden = weights.has(`${name}.W_gate`)
    ? mapped("gate", x, dModel, dMlp).map((value, i) => activation(value) * read[i]) : read.map(activation);
  return mapped("out", hidden, dMlp, dModel);
}

/** @type {Record<string, (x: number) => number>} */
const ACTIVATIONS = {
  relu: (x) => Math.max(0, x), gelu, gelu_tanh: geluTanh, swiglu: (x) => x / (1 + Math.exp(-x)), geglu: gelu,
  geglu_tanh: geluTanh,
};

/** @param {number} x */
function gelu(x) {
  return 0.5 * x * (1 + errorFunction(x / Math.SQRT2));
}

/** @param {number} x */
function geluTanh(x) {
  return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
}

/** To 1.5e-7. Source: Abramowitz and Stegun 1964, 7.1.26. @param {number} x */
function errorFunction(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const polynomial = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return Math.sign(x) * (1 - polynomial * Math.exp(-x * x));
}

/**
 * The stream after a norm of the architecture's kind; itself where there is none of that name.
 * @param {Float32Array} x @param {number} n @param {Sizes} sizes @param {Weights} weights @param {string} name
 */
function normalised(x, n, sizes, weights, name) {
  const scale = weights.get(`${name}.weight`), bias = weights.get(`${name}.bias`), width = sizes.dModel;
  if (!scale) return x;
  if (!bias) return rootMeanSquare(x, width, scale, sizes.epsilon);
  const out = new Float32Array(x.length);
  for (let pos = 0; pos < n; pos++) {
    const row = x.subarray(pos * width, (pos + 1) * width);
    let mean = 0, variance = 0;
    for (const value of row) mean += value / width;
    for (const value of row) variance += (value - mean) ** 2 / width;
    const size = Math.sqrt(variance + sizes.epsilon);
    for (let i = 0; i < width; i++) out[pos * width + i] = (row[i] - mean) / size * scale[i] + bias[i];
  }
  return out;
}

/** @param {Float32Array} x @param {number} width @param {Float32Array} scale @param {number} epsilon */
function rootMeanSquare(x, width, scale, epsilon) {
  const out = new Float32Array(x.length);
  for (let start = 0; start < x.length; start += width) {
    let square = 0;
    for (let i = 0; i < width; i++) square += x[start + i] ** 2 / width;
    const size = Math.sqrt(square + epsilon);
    for (let i = 0; i < width; i++) out[start + i] = x[start + i] / size * scale[i];
  }
  return out;
}

/** Queries or keys with pairs of coordinates turned. @param {Float32Array} x @param {number} n @param {number} width @param {Sizes} sizes */
function rotated(x, n, width, sizes) {
  const { rotaryWidth, rotaryBase, rotaryHalves } = sizes;
  const out = x.slice();
  for (let pos = 0; pos < n; pos++) {
    for (let pair = 0; pair < rotaryWidth / 2; pair++) {
      const angle = pos * rotaryBase ** (-2 * pair / rotaryWidth);
      const first = pos * width + (rotaryHalves ? pair : 2 * pair);
      const second = first + (rotaryHalves ? rotaryWidth / 2 : 1);
      out[first] = x[first] * Math.cos(angle) - x[second] * Math.sin(angle);
      out[second] = x[first] * Math.sin(angle) + x[second] * Math.cos(angle);
    }
  }
  return out;
}

/** Sine and cosine in turn, at geometrically spaced wavelengths. @param {number} n @param {number} width @param {number} base */
function sinusoids(n, width, base) {
  const out = new Float32Array(n * width);
  for (let pos = 0; pos < n; pos++) {
    for (let i = 0; i < width; i++) {
      const angle = pos * base ** (-(i - i % 2) / width);
      out[pos * width + i] = i % 2 ? Math.cos(angle) : Math.sin(angle);
    }
  }
  return out;
}

/** [n, inner] times [inner, width]. @param {Float32Array} a @param {Float32Array} b @param {number} n @param {number} inner @param {number} width */
export function product(a, b, n, inner, width) {
  const out = new Float32Array(n * width);
  for (let row = 0; row < n; row++) {
    const target = out.subarray(row * width, (row + 1) * width);
    for (let i = 0; i < inner; i++) {
      const factor = a[row * inner + i];
      if (factor === 0) continue;
      const start = i * width;
      for (let column = 0; column < width; column++) target[column] += factor * b[start + column];
    }
  }
  return out;
}

/** [n, inner] times the transpose of [width, inner]. @param {Float32Array} a @param {Float32Array} b @param {number} n @param {number} inner @param {number} width */
function productTransposed(a, b, n, inner, width) {
  const out = new Float32Array(n * width);
  for (let row = 0; row < n; row++) {
    for (let column = 0; column < width; column++) {
      let total = 0;
      for (let i = 0; i < inner; i++) total += a[row * inner + i] * b[column * inner + i];
      out[row * width + column] = total;
    }
  }
  return out;
}

/** @param {Float32Array} x @param {number} n @param {number} width */
function rowLengths(x, n, width) {
  return Float32Array.from({ length: n }, (_, row) => {
    let square = 0;
    for (let i = row * width; i < (row + 1) * width; i++) square += x[i] ** 2;
    return Math.sqrt(square);
  });
}

/** @param {Float32Array} a @param {Float32Array} b */
function sum(a, b) {
  return a.map((value, i) => value + b[i]);
}

/** A row added to every row of x, in place. @param {Float32Array} x @param {Float32Array} row */
function addRow(x, row) {
  for (let i = 0; i < x.length; i++) x[i] += row[i % row.length];
  return x;
}

/** @param {Weights} weights @param {string} name */
function tensor(weights, name) {
  const found = weights.get(name);
  if (!found) throw new Error(`the model has no ${name}`);
  return found;
}
