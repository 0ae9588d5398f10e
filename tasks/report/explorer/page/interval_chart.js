// Values with their intervals, a line each.

import { colour, css } from "./colours.js";
import { svg, svgText } from "./elements.js";
import { readable } from "./numbers.js";

/** @typedef {{ name: string, value: number, low: number | null, high: number | null }} Interval */

const INTERVALS_WIDTH = 400;
const INTERVALS_LEFT = 150; // room for names
const INTERVALS_RIGHT = 70; // for values
const INTERVAL_HEIGHT = 24;

/** @param {Interval[]} intervals @param {string} unit */
export function intervalChart(intervals, unit) {
  const ends = intervals.flatMap(({ value, low, high }) => [value, low ?? value, high ?? value, 0]);
  const least = Math.min(...ends);
  const most = Math.max(...ends, least + 1e-9);
  const room = INTERVALS_WIDTH - INTERVALS_LEFT - INTERVALS_RIGHT;
  const x = (/** @type {number} */ value) => INTERVALS_LEFT + ((value - least) / (most - least)) * room;
  const height = intervals.length * INTERVAL_HEIGHT;
  const label = intervals.map(({ name, value }) => `${name} ${readable(value)} ${unit}`).join(", ");
  const look = { role: "img", "aria-label": label, "font-family": "sans-serif", "font-size": 12 };
  const zero = { x1: x(0), x2: x(0), y1: 2, y2: height, stroke: css(colour("muted")), "stroke-dasharray": "2 3" };
  return svg(
    "svg",
    { viewBox: `0 0 ${INTERVALS_WIDTH} ${height + 6}`, ...look },
    svg("line", zero),
    ...intervals.flatMap((interval, i) => intervalRow(interval, (i + 0.5) * INTERVAL_HEIGHT, x)),
  );
}

/**
 * @param {Interval} interval
 * @param {number} y
 * @param {(value: number) => number} x
 */
function intervalRow({ name, value, low, high }, y, x) {
  const ink = css(colour("ink"));
  const blue = css(colour("blue"));
  const isBounded = low !== null && high !== null;
  return [
    svgText(name, { x: INTERVALS_LEFT - 10, y: y + 4, "text-anchor": "end", fill: ink }),
    isBounded && svg("line", { x1: x(low), x2: x(high), y1: y, y2: y, stroke: blue, "stroke-width": 2 }),
    svg("circle", { cx: x(value), cy: y, r: 4, fill: blue }),
    svgText(readable(value), { x: INTERVALS_WIDTH - INTERVALS_RIGHT + 10, y: y + 4, fill: ink }),
  ];
}
