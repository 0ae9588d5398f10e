// Positions, told by waves that are added or by coordinates that are turned.

/** @import { Sizes } from "./transformer.js" */

const SINUSOID_BASE = 10000;

/**
 * Queries or keys with pairs of coordinates turned.
 * @param {Float32Array} x
 * @param {number} n
 * @param {number} width
 * @param {Sizes} sizes
 */
export function rotated(x, n, width, sizes) {
  const { rotaryWidth, rotaryBase, rotaryHalves } = sizes;
  const out = x.slice();
  for (let pos = 0; pos < n; pos++) {
    for (let pair = 0; pair < rotaryWidth / 2; pair++) {
      const angle = pos * rotaryBase ** ((-2 * pair) / rotaryWidth);
      const first = pos * width + (rotaryHalves ? pair : 2 * pair);
      const second = first + (rotaryHalves ? rotaryWidth / 2 : 1);
      out[first] = x[first] * Math.cos(angle) - x[second] * Math.sin(angle);
      out[second] = x[first] * Math.sin(angle) + x[second] * Math.cos(angle);
    }
  }
  return out;
}

/**
 * Sine and cosine in turn, at geometrically spaced wavelengths.
 * @param {number} n
 * @param {number} width
 */
export function sinusoids(n, width) {
  const out = new Float32Array(n * width);
  for (let pos = 0; pos < n; pos++) {
    for (let i = 0; i < width; i++) {
      const angle = pos * SINUSOID_BASE ** (-(i - (i % 2)) / width);
      out[pos * width + i] = i % 2 ? Math.cos(angle) : Math.sin(angle);
    }
  }
  return out;
}
