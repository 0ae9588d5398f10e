// How much of a behaviour circuits of each size make, above the band of random circuits of the same sizes.

import { colour, css } from "./colours.js";
import { svg, svgText } from "./elements.js";
import { nearest, readable } from "./numbers.js";

/** @import { Size } from "./behaviours.js" */
/** @import { Page } from "./page.js" */
/** @typedef {ReturnType<typeof axesOf>} CurveAxes */

const [HEIGHT, LEFT, TOP, BOTTOM] = [230, 40, 14, 42];
const WORDS = { "font-family": "sans-serif", "font-size": 12 };

/**
 * @param {Page} page
 * @param {Size[]} sizes at least one
 * @param {number} n edges of the circuit that is seen
 * @param {number} width
 */
export function behaviourCurve(page, sizes, n, width) {
  const axes = axesOf(sizes, width);
  const { x, y, right } = axes;
  const click = (/** @type {MouseEvent} */ event) => {
    const box = picture.getBoundingClientRect();
    const where = ((event.clientX - box.left) / box.width) * width;
    const wanted = nearest(
      sizes.map((size) => x(size.n)),
      where,
    );
    const size = sizes.find((each) => x(each.n) === wanted);
    if (size) page.set({ edges: String(size.n) });
  };
  const said = sizes.map((size) => `${readable(size.faithfulness)} with ${size.n}`).join(", ");
  const label = { role: "img", "aria-label": `Share of the difference by edges: ${said}` };
  const found = line(sizes, axes, (size) => size.faithfulness);
  const without = line(sizes, axes, (size) => size.completeness);
  const blue = css(colour("blue"));
  const here = { x1: x(n), x2: x(n), y1: TOP, y2: HEIGHT - BOTTOM, stroke: css(colour("ink")) };
  const picture = svg(
    "svg",
    { class: "narrow", viewBox: `0 0 ${width} ${HEIGHT}`, ...label, ...WORDS, on: { click } },
    ...valueTicks(axes, right),
    ...edgeTicks(axes, sizes, width),
    nullBand(sizes, axes),
    svg("line", { ...here, "stroke-dasharray": "3 3" }),
    svg("polyline", { points: without, fill: "none", stroke: css(colour("muted")), "stroke-dasharray": "2 3" }),
    svg("polyline", { points: found, fill: "none", stroke: blue, "stroke-width": 2 }),
    ...sizes.map((size) => {
      return svg("circle", { cx: x(size.n), cy: y(size.faithfulness), r: size.n === n ? 5.5 : 3.5, fill: blue });
    }),
  );
  return picture;
}

/** @param {Size[]} sizes @param {number} width */
function axesOf(sizes, width) {
  const values = sizes.flatMap(({ faithfulness, completeness, low, high }) => [
    faithfulness,
    completeness,
    low,
    high,
  ]);
  const known = values.filter((value) => value !== null);
  const low = Math.min(0, ...known);
  const high = Math.max(1, ...known);
  const most = Math.log(Math.max(2, ...sizes.map(({ n }) => n)));
  const right = width - 14;
  const x = (/** @type {number} */ n) => LEFT + (Math.log(Math.max(1, n)) / most) * (right - LEFT);
  const y = (/** @type {number} */ value) => TOP + (1 - (value - low) / (high - low)) * (HEIGHT - BOTTOM - TOP);
  return { low, high, right, x, y };
}

/**
 * @param {Size[]} sizes
 * @param {CurveAxes} axes
 * @param {(size: Size) => number | null} value
 */
function line(sizes, { x, y }, value) {
  return sizes
    .flatMap((size) => {
      const own = value(size);
      return own === null ? [] : [`${x(size.n).toFixed(1)},${y(own).toFixed(1)}`];
    })
    .join(" ");
}

/** @param {Size[]} sizes @param {CurveAxes} axes */
function nullBand(sizes, axes) {
  const points = [line(sizes, axes, ({ high }) => high), line(sizes.toReversed(), axes, ({ low }) => low)];
  return svg("polygon", { points: points.join(" "), fill: css(colour("grey"), 0.35) });
}

/** @param {CurveAxes} axes @param {number} right */
function valueTicks({ low, high, y }, right) {
  const values = [...new Set([low, 0, 0.5, 1, high])].filter((value, _, all) => {
    return [0, 1].includes(value) || all.every((other) => other === value || Math.abs(y(other) - y(value)) > 14);
  });
  const look = { "text-anchor": "end", fill: css(colour("muted")) };
  return values.flatMap((value) => [
    svg("line", { x1: LEFT, x2: right, y1: y(value), y2: y(value), stroke: css(colour("grid")) }),
    svgText(readable(value).slice(0, 5), { x: LEFT - 6, y: y(value) + 4, ...look }),
  ]);
}

/** @param {CurveAxes} axes @param {Size[]} sizes @param {number} width */
function edgeTicks({ x, right }, sizes, width) {
  const fill = css(colour("muted"));
  let last = -Infinity;
  const ticks = sizes.flatMap(({ n }) => {
    if (x(n) - last < 34) return [];
    last = x(n);
    return [svgText(String(n), { x: x(n), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle", fill })];
  });
  const title = { x: (LEFT + right) / 2, y: HEIGHT - 6, "text-anchor": "middle", fill };
  return [...ticks, svgText(width < 300 ? "edges" : "edges of the circuit", title)];
}
