// Numbers as people read them, and as the file holds them.

/**
 * A count in two or three digits, like 5.0 M.
 * @param {number} count
 */
export function shortCount(count) {
  for (const [unit, size] of /** @type {[string, number][]} */ ([
    ["G", 1e9],
    ["M", 1e6],
    ["k", 1e3],
  ])) {
    if (Math.abs(count) >= 0.9995 * size) {
      return `${(count / size).toFixed(Math.abs(count) < 99.95 * size ? 1 : 0)} ${unit}`;
    }
  }
  return count.toFixed(0);
}

/**
 * A count in full, like 70,651.
 * @param {number} count
 */
export function grouped(count) {
  return count.toLocaleString("en-US");
}

/**
 * A number in the digits that it deserves; a missing one says so.
 * @param {number | null | undefined} value
 */
export function readable(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "missing";
  if (Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  if (size < 0.0005) return String(Number(value.toPrecision(1)));
  if (size < 10) return value.toFixed(3);
  return value.toFixed(size < 100 ? 1 : 0);
}

/**
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
export function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

/**
 * Where a number lies among rising ones: 1.5 is halfway from the second to the third; null beyond the last.
 * @param {number[]} numbers
 * @param {number} wanted
 */
export function placeAmong(numbers, wanted) {
  const next = numbers.findIndex((each) => each >= wanted);
  if (next < 1) return next < 0 ? null : 0;
  const before = numbers[next - 1];
  return next - 1 + (wanted - before) / (numbers[next] - before);
}

/**
 * Whichever of some numbers is nearest to one; of two as near, the first.
 * @param {number[]} numbers at least one
 * @param {number} wanted
 */
export function nearest(numbers, wanted) {
  return numbers.reduce((best, each) => (Math.abs(each - wanted) < Math.abs(best - wanted) ? each : best));
}
