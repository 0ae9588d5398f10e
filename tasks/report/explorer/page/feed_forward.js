// A feed-forward layer.

import { addRow, product } from "./arrays.js";
import { tensor } from "./weights.js";

/** @import { Sizes } from "./transformer.js" */
/** @import { Weights } from "./weights.js" */

/**
 * @param {Sizes} sizes
 * @param {Weights} weights
 * @param {string} name
 * @param {Float32Array} x
 * @param {number} n
 */
export function fedForward(sizes, weights, name, x, n) {
  const { dModel, dMlp, feedForward } = sizes;
  /**
   * @param {string} part
   * @param {Float32Array} from
   * @param {number} before
   * @param {number} after
   */
  const mapped = (part, from, before, after) => {
    const out = product(from, tensor(weights, `${name}.W_${part}`), n, before, after);
    const bias = weights.get(`${name}.b_${part}`);
    return bias ? addRow(out, bias) : out;
  };
  const activation = ACTIVATIONS[feedForward];
  const read = mapped("in", x, dModel, dMlp);
  const hidden = weights.has(`${name}.W_gate`)
    ? mapped("gate", x, dModel, dMlp).map((value, i) => activation(value) * read[i])
    : read.map(activation);
  return mapped("out", hidden, dMlp, dModel);
}

/** @type {Record<string, (x: number) => number>} */
const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  gelu,
  gelu_tanh: geluTanh,
  swiglu: (x) => x / (1 + Math.exp(-x)),
  geglu: gelu,
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

/**
 * To 1.5e-7. Source: Abramowitz and Stegun 1964, 7.1.26.
 * @param {number} x
 */
function errorFunction(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const polynomial = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return Math.sign(x) * (1 - polynomial * Math.exp(-x * x));
}
