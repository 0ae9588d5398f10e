// Norms of the stream, and of queries and keys.

/** @import { Sizes } from "./transformer.js" */
/** @import { Weights } from "./weights.js" */

/**
 * The stream after a norm of the architecture's kind; itself where there is none of that name.
 * @param {Float32Array} x
 * @param {number} n
 * @param {Sizes} sizes
 * @param {Weights} weights
 * @param {string} name
 */
export function normalised(x, n, sizes, weights, name) {
  const scale = weights.get(`${name}.weight`);
  const bias = weights.get(`${name}.bias`);
  const width = sizes.dModel;
  if (!scale) return x;
  if (!bias) return rootMeanSquare(x, width, scale, sizes.epsilon);
  const out = new Float32Array(x.length);
  for (let pos = 0; pos < n; pos++) {
    const row = x.subarray(pos * width, (pos + 1) * width);
    let mean = 0;
    let variance = 0;
    for (const value of row) mean += value / width;
    for (const value of row) variance += (value - mean) ** 2 / width;
    const size = Math.sqrt(variance + sizes.epsilon);
    for (let i = 0; i < width; i++) out[pos * width + i] = ((row[i] - mean) / size) * scale[i] + bias[i];
  }
  return out;
}

/**
 * @param {Float32Array} x
 * @param {number} width
 * @param {Float32Array} scale
 * @param {number} epsilon
 */
export function rootMeanSquare(x, width, scale, epsilon) {
  const out = new Float32Array(x.length);
  for (let start = 0; start < x.length; start += width) {
    let square = 0;
    for (let i = 0; i < width; i++) square += x[start + i] ** 2 / width;
    const size = Math.sqrt(square + epsilon);
    for (let i = 0; i < width; i++) out[start + i] = (x[start + i] / size) * scale[i];
  }
  return out;
}
