// Lines over checkpoints, with the window of a phase change behind them.

import { colour, css } from "./colours.js";
import { svg, svgText } from "./elements.js";
import { clamp, readable, shortCount } from "./numbers.js";

/** @import { Colour } from "./colours.js" */
/** @import { Page } from "./page.js" */
/** @import { Model } from "./study.js" */

/**
 * @typedef {object} Line
 * @property {string} name written at its end; nothing if empty
 * @property {(number | null)[]} values one a checkpoint
 * @property {Colour} colour
 * @property {boolean} [wide]
 */
/** @typedef {{ width: number, height: number }} Size */
/** @typedef {ReturnType<typeof axesOf>} Axes */

const CHART_LEFT = 40; // room for numbers
const MAX_SOLID = 8; // lines; more are drawn paler

/**
 * @param {Page} page
 * @param {Line[]} lines the last one on top
 * @param {Size} size
 */
export function lineChart(page, lines, size) {
  const { model, at } = page;
  const axes = axesOf(model, lines, size);
  const { x, left, right, top, bottom } = axes;
  const here = { x1: x(at), x2: x(at), y1: top, y2: bottom, stroke: css(colour("ink")), "stroke-dasharray": "3 3" };
  const click = (/** @type {MouseEvent} */ event) => {
    const box = picture.getBoundingClientRect();
    const where = ((event.clientX - box.left) / box.width) * size.width;
    const place = clamp(Math.round(((where - left) / (right - left)) * model.last), 0, model.last);
    page.set({ at: page.stepName(place) });
  };
  const label = { role: "img", "aria-label": "Lines over checkpoints", "font-family": "sans-serif", "font-size": 12 };
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${size.width} ${size.height}`, ...label, on: { click } },
    phaseChange(model, axes),
    ...valueTicks(axes),
    ...checkpointTicks(model, axes, size),
    svg("line", here),
    ...lines.map((line) => polyline(line, axes, lines.length <= MAX_SOLID)),
    ...lineNames(lines, axes, model.last),
  );
  return picture;
}

/** @param {Model} model @param {Line[]} lines @param {Size} size */
function axesOf(model, lines, { width, height }) {
  const values = lines.flatMap((line) => line.values).filter((value) => value !== null);
  const low = Math.min(0, ...values);
  const high = Math.max(low + 1e-6, ...values);
  const [left, right] = [CHART_LEFT, width - (lines.some(({ name }) => name) ? 54 : 10)];
  const [top, bottom] = [18, height - 40];
  const x = (/** @type {number} */ at) => left + (model.last ? at / model.last : 0) * (right - left);
  const y = (/** @type {number} */ value) => top + (1 - (value - low) / (high - low)) * (bottom - top);
  return { low, high, left, right, top, bottom, x, y };
}

/** @param {Model} model @param {Axes} axes */
function phaseChange(model, { x, top, bottom }) {
  const changes = model.rows.phase_changes;
  const change = changes.find((row) => row.score === "prefix_matching") ?? changes[0];
  const span = change && model.spanOf(change);
  if (!span) return null;
  const [start, end] = [x(span.start), x(span.end)];
  const fill = css(colour("purple"), 0.18);
  const words = { x: (start + end) / 2, y: top - 5, "text-anchor": "middle", fill: css(colour("muted")) };
  const ground = svg("rect", { x: start, y: top, width: end - start, height: bottom - top, fill });
  return svg("g", {}, ground, svgText("phase change", words));
}

/** @param {Axes} axes */
function valueTicks({ low, high, left, right, y }) {
  return [low, (low + high) / 2, high].map((value) => {
    const line = svg("line", { x1: left, x2: right, y1: y(value), y2: y(value), stroke: css(colour("grid")) });
    const place = { x: left - 6, y: y(value) + 4, "text-anchor": "end", fill: css(colour("muted")) };
    return svg("g", {}, line, svgText(readable(value).slice(0, 5), place));
  });
}

/** @param {Model} model @param {Axes} axes @param {Size} size */
function checkpointTicks({ checkpoints }, { x, left, right, bottom }, { width, height }) {
  const fill = css(colour("muted"));
  const every = Math.ceil(checkpoints.length / (width / 80));
  const counted = checkpoints[0].tokens === null ? "training steps" : "tokens seen";
  const title = { x: (left + right) / 2, y: height - 6, "text-anchor": "middle", fill };
  const ticks = checkpoints.map(({ step, tokens }, i) => {
    const words = shortCount(tokens ?? step).replace(" ", "");
    return i % every === 0 && svgText(words, { x: x(i), y: bottom + 16, "text-anchor": "middle", fill });
  });
  return [...ticks, svgText(`${counted}, checkpoint by checkpoint`, title)];
}

/** @param {Line} line @param {Axes} axes @param {boolean} isSolid */
function polyline({ values, colour, wide }, { x, y }, isSolid) {
  const points = values.flatMap((value, i) => (value === null ? [] : [`${x(i).toFixed(1)},${y(value).toFixed(1)}`]));
  const stroke = css(colour, wide || isSolid ? 1 : 0.6);
  return svg("polyline", { points: points.join(" "), fill: "none", stroke, "stroke-width": wide ? 3 : 1.6 });
}

/**
 * The names at the ends of lines, none on top of another.
 * @param {Line[]} lines
 * @param {Axes} axes
 * @param {number} last
 */
function lineNames(lines, { right, y }, last) {
  /** @type {number[]} */
  const taken = [];
  return lines.toReversed().map(({ name, values, colour }) => {
    const value = values[last];
    if (!name || value === null) return null;
    let place = y(value) + 4;
    while (taken.some((other) => Math.abs(other - place) < 12)) place += 3;
    taken.push(place);
    return svgText(name, { x: right + 6, y: place, fill: css(colour), "font-weight": "bold" });
  });
}
