// A model's weights, tensor by tensor.

/** @typedef {Map<string, Float32Array>} Weights */

/**
 * @param {[string, number[]][]} layout
 * @param {Float32Array} numbers
 * @returns {Weights}
 */
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

/** @param {Weights} weights @param {string} name */
export function tensor(weights, name) {
  const found = weights.get(name);
  if (!found) throw new Error(`the model has no ${name}`);
  return found;
}
