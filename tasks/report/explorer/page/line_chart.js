// Lines over checkpoints, with the window of a phase change behind them.

import { colour, css } from "./colours.js";
import { svg, svgText } from "./elements.js";
import { momentsOf } from "./interventions.js";
import { clamp, placeAmong, readable, shortCount } from "./numbers.js";

/** @import { Colour } from "./colours.js" */
/** @import { Page } from "./page.js" */
/** @import { Model } from "./study.js" */

/**
 * @typedef {object} Line
 * @property {string} name written at its end; nothing if empty
 * @property {(number | null)[]} values one a checkpoint
 * @property {Colour} colour
 * @property {(number | null)[]} [places] where its values lie, counted in checkpoints; those without one aren't drawn
 * @property {boolean} [wide]
 * @property {boolean} [dashed]
 */
/** @typedef {{ width: number, height: number, reach?: number[] }} Size  reach: values that the axis must show */
/** @typedef {ReturnType<typeof axesOf>} Axes */

const CHART_LEFT = 40; // room for numbers
const MAX_SOLID = 8; // lines; more are drawn paler

/**
 * @param {Page} page
 * @param {Line[]} lines the last one on top
 * @param {Size} size
 * @param {Model[]} models whose interventions are marked where they begin and end
 */
export function lineChart(page, lines, size, models = [page.model]) {
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
    phaseChange(model, models, axes),
    ...valueTicks(axes),
    ...checkpointTicks(model, axes, size),
    svg("line", here),
    ...lines.map((line) => polyline(line, axes, lines.length <= MAX_SOLID)),
    ...lineNames(lines, axes),
    ...moments(model, models, axes),
  );
  return picture;
}

/** @param {Model} model @param {Line[]} lines @param {Size} size */
function axesOf(model, lines, { width, height, reach = [] }) {
  const values = [...reach, ...lines.flatMap((line) => line.values)].filter((value) => value !== null);
  const low = Math.min(0, ...values);
  const high = Math.max(low + 1e-6, ...values);
  const [left, right] = [CHART_LEFT, width - (lines.some(({ name }) => name) ? 54 : 10)];
  const [top, bottom] = [18, height - 40];
  const x = (/** @type {number} */ at) => left + (model.last ? at / model.last : 0) * (right - left);
  const y = (/** @type {number} */ value) => top + (1 - (value - low) / (high - low)) * (bottom - top);
  return { low, high, left, right, top, bottom, x, y };
}

/**
 * @param {Model} model
 * @param {Model[]} models of which it is one; of several it is named
 * @param {Axes} axes
 */
function phaseChange(model, models, { x, top, bottom }) {
  const changes = model.rows.phase_changes;
  const change = changes.find((row) => row.score === "prefix_matching") ?? changes[0];
  const span = change && model.spanOf(change);
  if (!span) return null;
  const [start, end] = [x(span.start), x(span.end)];
  const fill = css(colour("purple"), 0.18);
  const words = { x: (start + end) / 2, y: top - 5, "text-anchor": "middle", fill: css(colour("muted")) };
  const ground = svg("rect", { x: start, y: top, width: end - start, height: bottom - top, fill });
  return svg("g", {}, ground, svgText(models.length > 1 ? `phase change of ${model.name}` : "phase change", words));
}

/**
 * Lines where something that is done to a model in training begins or ends, with words at their tops.
 * @param {Model} along whose checkpoints the axis goes
 * @param {Model[]} models
 * @param {Axes} axes
 */
function moments({ checkpoints }, models, axes) {
  const { x, top, bottom } = axes;
  const seen = checkpoints.map(({ step, tokens }) => tokens ?? step);
  const named = models.filter((model) => momentsOf(model).length).length > 1;
  const all = models.flatMap((model) => momentsOf(model).map((moment) => ({ ...moment, of: model.name })));
  return all.map(({ tokens, words, isEnd, of }, i) => {
    const place = placeAmong(seen, tokens);
    if (place === null) return null;
    const said = named ? `${words} (${of})` : words;
    const side = sideOf(x(place), isEnd, 7 * said.length, axes);
    const halo = { stroke: css(colour("card")), "stroke-width": 3, "paint-order": "stroke" };
    const line = { x1: x(place), x2: x(place), y1: top, y2: bottom, stroke: css(colour("pink")), "stroke-width": 2 };
    const label = svgText(said, { ...side, y: top + 12 + 15 * i, fill: css(colour("ink")), ...halo });
    return svg("g", { class: "moment" }, svg("line", line), label);
  });
}

/**
 * Where words go: those of a beginning before its line, those of an end behind it, if there is room.
 * @param {number} x of the line
 * @param {boolean} isEnd
 * @param {number} width of the words
 * @param {Axes} axes
 */
function sideOf(x, isEnd, width, { left, right }) {
  const isBefore = isEnd ? right - x < width : x - left > width;
  return { x: isBefore ? x - 5 : x + 5, "text-anchor": isBefore ? "end" : "start" };
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
function polyline({ values, places, colour, wide, dashed }, { x, y }, isSolid) {
  const points = values.flatMap((value, i) => {
    const place = places ? places[i] : i;
    return value === null || place === null ? [] : [`${x(place).toFixed(1)},${y(value).toFixed(1)}`];
  });
  const look = { stroke: css(colour, wide || isSolid ? 1 : 0.6), "stroke-dasharray": dashed && "7 4" };
  return svg("polyline", { points: points.join(" "), fill: "none", ...look, "stroke-width": wide ? 3 : 1.6 });
}

/**
 * The names at the ends of lines, none on top of another.
 * @param {Line[]} lines
 * @param {Axes} axes
 */
function lineNames(lines, { right, y }) {
  /** @type {number[]} */
  const taken = [];
  return lines.toReversed().map(({ name, values, places, colour }) => {
    const value = values.findLast((_, i) => !places || places[i] !== null) ?? null;
    if (!name || value === null) return null;
    let place = y(value) + 4;
    while (taken.some((other) => Math.abs(other - place) < 12)) place += 3;
    taken.push(place);
    return svgText(name, { x: right + 6, y: place, fill: css(colour), "font-weight": "bold" });
  });
}
