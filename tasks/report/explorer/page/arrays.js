// Arithmetic of arrays of numbers, row by row.

/**
 * [n, inner] times [inner, width].
 * @param {Float32Array} a
 * @param {Float32Array} b
 * @param {number} n
 * @param {number} inner
 * @param {number} width
 */
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

/**
 * [n, inner] times the transpose of [width, inner].
 * @param {Float32Array} a
 * @param {Float32Array} b
 * @param {number} n
 * @param {number} inner
 * @param {number} width
 */
export function productTransposed(a, b, n, inner, width) {
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

/**
 * @param {Float32Array} x
 * @param {number} n
 * @param {number} width
 */
export function rowLengths(x, n, width) {
  return Float32Array.from({ length: n }, (_, row) => {
    let square = 0;
    for (let i = row * width; i < (row + 1) * width; i++) square += x[i] ** 2;
    return Math.sqrt(square);
  });
}

/** @param {Float32Array} a @param {Float32Array} b */
export function sum(a, b) {
  return a.map((value, i) => value + b[i]);
}

/**
 * A row added to every row of x, in place.
 * @param {Float32Array} x
 * @param {Float32Array} row
 */
export function addRow(x, row) {
  for (let i = 0; i < x.length; i++) x[i] += row[i % row.length];
  return x;
}
