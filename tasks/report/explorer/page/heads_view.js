// All heads of a model coloured by a score, and the checkpoints through which that came about.

import { colour, css, inkOn, roleColour, seriesColour, valueColour } from "./colours.js";
import { chooser, el, isChoice, refill, svg } from "./elements.js";
import { figure } from "./figure.js";
import { clamp, readable, shortCount } from "./numbers.js";
import { sql } from "./sql.js";

/** @typedef {import("./study.js").Model} Model @typedef {import("./study.js").Head} Head */

const LEFT = 40; // of pictures: room for the names of their rows
const MOST_NUMBERED = 16; // heads in a layer whose cells have room for numbers
const MOST_LINES = 40;
const PLAY_MS = 650; // a checkpoint
const UNBOUNDED_SCORES = /logit|distance|rank|_sd$/; // those that don't end at 1

/** What the deepest colour stands for: 1, or the most that any checkpoint has. @param {Model} model @param {string} score */
function mostOf(model, score) {
  if (!UNBOUNDED_SCORES.test(score)) return 1;
  return Math.max(1e-9, ...model.rows.heads.map((row) => Math.abs(row[score] ?? 0)));
}

/** @param {import("./main.js").Page} page */
export function headsView(page) {
  const model = page.model;
  if (!model.heads.length) {
    return { element: el("p", { class: "empty" }, `${model.name} has no attention heads.`), update() {}, stop() {} };
  }
  const score = chooser("Colour by", page.study.scores.map(({ score }) => [score, score.replaceAll("_", " ")]),
    (value) => page.set({ score: value }));
  const description = el("p", { class: "hint" });
  const grid = el("div"), lines = el("div");
  const slider = checkpointSlider(page);
  const element = el("section", { "aria-label": "Heads" },
    el("div", { class: "controls" }, score.element, description), grid, slider.element, lines);
  return {
    element,
    update() {
      const name = page.score, at = page.at;
      score.select.value = name;
      description.textContent = page.study.scores.find((each) => each.score === name)?.description ?? "";
      slider.update();
      const step = model.checkpoints[at].step;
      const picture = headGrid(page, name);
      refill(grid, figure({
        title: `${name.replaceAll("_", " ")} of every head`, name: `${model.id} ${name} step ${step}`, content: picture, picture,
        note: `${model.name} after ${page.when(at)}. The first layer is at the bottom; choose a head to see all of it.`,
        rows: () => model.heads.map((head) => ({ layer: head.layer, head: head.head, [name]: model.score(name, at, head) })),
        sql: sql.scores(model.id, step, name),
      }));
      if (model.last > 0) {
        const picture = trajectories(page, name);
        refill(lines, figure({
          title: `${name.replaceAll("_", " ")} over training`, name: `${model.id} ${name} over training`, content: picture, picture,
          note: "A line a head; checkpoints side by side, whatever lies between them. Click to go to one.",
          rows: () => model.heads.flatMap((head) => model.checkpoints.map(({ step, tokens }, at) => ({
            step, tokens, layer: head.layer, head: head.head, [name]: model.score(name, at, head),
          }))),
          sql: sql.trajectories(model.id, name),
        }));
      }
    },
    stop: slider.stop,
  };
}

/** @param {import("./main.js").Page} page */
export function checkpointSlider(page) {
  const { model } = page;
  const input = el("input", {
    type: "range", min: 0, max: model.last, step: 1, "aria-label": "Checkpoint",
    on: { input: () => { stop(); go(Number(input.value)); } },
  });
  const output = el("output");
  const play = el("button", { type: "button", class: "play", on: { click: () => (timer ? stop() : start()) } });
  let timer = 0;
  /** @param {number} at */
  const go = (at) => page.set({ at: at === model.last ? "" : String(model.checkpoints[at].step) });
  const label = () => { play.textContent = timer ? "❚❚ Pause" : "▶ Play"; };
  function stop() {
    window.clearInterval(timer);
    timer = 0;
    label();
  }
  function start() {
    if (page.at === model.last) go(0);
    timer = window.setInterval(() => (page.at < model.last ? go(page.at + 1) : stop()), PLAY_MS);
    label();
  }
  label();
  return {
    element: el("div", { class: "slider", hidden: model.last === 0 }, play, input, output),
    update() {
      input.value = String(page.at);
      output.textContent = page.when(page.at);
      input.setAttribute("aria-valuetext", page.when(page.at));
    },
    stop,
  };
}

/** @param {import("./main.js").Page} page @param {string} score @returns {SVGSVGElement} */
function headGrid(page, score) {
  const { model, at } = page;
  const columns = Math.max(...model.layers.map((layer) => layer.length)), most = mostOf(model, score);
  const width = page.room, cell = Math.min(150, (width - LEFT) / columns);
  const high = clamp(Math.min(cell, 420 / model.layers.length), 15, 56), bottom = 34;
  const height = model.layers.length * high + bottom;
  const numbered = columns <= MOST_NUMBERED;
  const cells = model.heads.map((head) => {
    const value = model.score(score, at, head), ground = valueColour(value, most), role = model.role(head);
    const x = LEFT + head.head * cell, y = (model.layers.length - 1 - head.layer) * high;
    const chosen = head.name === page.head?.name, mark = roleColour(role);
    return svg("g", {
      class: "cell", tabindex: (page.head ? chosen : head.place === 0) ? 0 : -1, role: "button", "aria-pressed": chosen,
      "data-focus": head.name, "data-head": head.name,
      "aria-label": `${head.name}: ${score} ${readable(value)}${role ? `, ${role}` : ""}`,
      on: { click: () => page.set({ head: head.name }), keydown: onKey },
    },
    svg("title", {}, `${head.name}: ${score} ${readable(value)}${role ? `\n${role}` : ""}`),
    svg("rect", {
      x: x + 1.5, y: y + 1.5, width: cell - 3, height: high - 3, rx: 3, class: "value", fill: css(ground),
      stroke: css(colour(chosen ? "ink" : "grid")), "stroke-width": chosen ? 2.5 : 1,
    }),
    numbered && value !== null && svg("text", {
      x: x + cell / 2, y: y + high / 2 + 4, "text-anchor": "middle", "font-size": Math.min(13, cell / 3.2), fill: css(inkOn(ground)),
    }, value.toFixed(2)),
    mark && svg("circle", { cx: x + 8, cy: y + 8, r: 4, fill: css(mark), stroke: css(colour("card")), "stroke-width": 1 }));
  });
  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (isChoice(event)) return void (/** @type {SVGElement} */ (event.currentTarget).dispatchEvent(new MouseEvent("click")));
    const head = model.head(/** @type {SVGElement} */ (event.currentTarget).dataset.head ?? "");
    const [across, up] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [0, 0];
    const layer = head && (across || up) ? model.layers[head.layer + up] : undefined;
    const next = layer?.[up ? Math.min(/** @type {Head} */ (head).head, layer.length - 1) : /** @type {Head} */ (head).head + across];
    if (!next) return;
    event.preventDefault();
    page.set({ head: next.name });
    /** @type {HTMLElement | null} */ (document.querySelector(`.cell[data-focus="${next.name}"]`))?.focus({ preventScroll: true });
  }
  const every = Math.ceil(columns / (width / 30));
  const roles = [...new Set(model.heads.map((head) => model.role(head)))].filter((role) => roleColour(role));
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Heads of ${model.name}`, "font-family": "sans-serif" },
    ...model.layers.map((_, layer) => svg("text", {
      x: LEFT - 8, y: (model.layers.length - 0.5 - layer) * high + 4, "text-anchor": "end", "font-size": 12, fill: css(colour("muted")),
    }, `L${layer}`)),
    ...Array.from({ length: columns }, (_, head) => head % every === 0 && svg("text", {
      x: LEFT + (head + 0.5) * cell, y: height - bottom + 14, "text-anchor": "middle", "font-size": 12, fill: css(colour("muted")),
    }, `H${head}`)),
    ...cells, ...roleLegend(roles, height - 6));
}

/** @param {(string | null)[]} roles @param {number} y */
function roleLegend(roles, y) {
  let x = LEFT + 6;
  return roles.flatMap((role) => {
    const parts = [
      svg("circle", { cx: x, cy: y - 4, r: 4, fill: css(/** @type {any} */ (roleColour(role))) }),
      svg("text", { x: x + 9, y, "font-size": 12, fill: css(colour("muted")) }, role),
    ];
    x += 30 + 7 * String(role).length;
    return parts;
  });
}

/** @param {import("./main.js").Page} page @param {string} score @returns {SVGSVGElement} */
function trajectories(page, score) {
  const { model, at } = page, values = model.heads.map((head) => model.checkpoints.map((_, i) => model.score(score, i, head)));
  const chosen = page.head?.place ?? -1;
  const order = model.heads.map((head) => head.place)
    .sort((a, b) => Math.abs(values[b][model.last] ?? 0) - Math.abs(values[a][model.last] ?? 0));
  const drawn = order.filter((place, rank) => rank < MOST_LINES || place === chosen);
  const named = new Set([chosen, ...order.slice(0, 3)]);
  return lineChart(page, drawn.map((place, rank) => ({
    name: named.has(place) ? model.heads[place].name : "", values: values[place],
    colour: place === chosen ? colour("ink") : named.has(place) ? seriesColour(rank) : colour("grey"),
    wide: place === chosen,
  })).reverse(), at, { width: page.room, height: 230 });
}

/**
 * Lines over checkpoints, with the window of a phase change behind them.
 * @param {import("./main.js").Page} page
 * @param {{name: string, values: (number | null)[], errors?: (number | null)[], colour: import("./colours.js").Colour, wide?: boolean}[]} series
 * @param {number} at @param {{width: number, height: number}} size @returns {SVGSVGElement}
 */
export function lineChart(page, series, at, { width, height }) {
  const { model } = page, right = series.some(({ name }) => name) ? 54 : 10, bottom = 40, top = 18;
  const all = series.flatMap(({ values }) => values).filter((value) => value !== null);
  const low = Math.min(0, ...all), most = Math.max(low + 1e-6, ...all);
  /** @param {number} i */
  const x = (i) => LEFT + (model.last ? i / model.last : 0) * (width - LEFT - right);
  /** @param {number} value */
  const y = (value) => top + (1 - (value - low) / (most - low)) * (height - top - bottom);
  const muted = css(colour("muted")), ends = /** @type {number[]} */ ([]);
  const ticks = [low, (low + most) / 2, most];
  const every = Math.ceil(model.checkpoints.length / (width / 80));
  const change = model.rows.phase_changes.find((row) => row.score === "prefix_matching") ?? model.rows.phase_changes[0];
  const window = change && ["window_start_tokens", "window_end_tokens"].map((name) =>
    model.checkpoints.findIndex(({ tokens }) => tokens === change[name]));
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Lines over checkpoints", "font-family": "sans-serif", "font-size": 12 },
    window && window[0] >= 0 && window[1] >= 0 && svg("g", {},
      svg("rect", { x: x(window[0]), y: top, width: x(window[1]) - x(window[0]), height: height - top - bottom, fill: css(colour("purple"), 0.18) }),
      svg("text", { x: (x(window[0]) + x(window[1])) / 2, y: top - 5, "text-anchor": "middle", fill: muted }, "phase change")),
    ...ticks.map((value) => svg("g", {},
      svg("line", { x1: LEFT, x2: width - right, y1: y(value), y2: y(value), stroke: css(colour("grid")) }),
      svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end", fill: muted }, readable(value).slice(0, 5)))),
    ...model.checkpoints.map(({ step, tokens }, i) => i % every === 0 && svg("text", {
      x: x(i), y: height - bottom + 16, "text-anchor": "middle", fill: muted,
    }, shortCount(tokens ?? step).replace(" ", ""))),
    svg("text", { x: (LEFT + width - right) / 2, y: height - 6, "text-anchor": "middle", fill: muted }, model.checkpoints[0].tokens === null ? "training steps, checkpoint by checkpoint" : "tokens seen, checkpoint by checkpoint"),
    svg("line", { x1: x(at), x2: x(at), y1: top, y2: height - bottom, stroke: css(colour("ink")), "stroke-dasharray": "3 3" }),
    ...series.flatMap(({ values, colour, wide }) => {
      const points = values.flatMap((value, i) => (value === null ? [] : [`${x(i).toFixed(1)},${y(value).toFixed(1)}`]));
      return [svg("polyline", { points: points.join(" "), fill: "none", stroke: css(colour, wide || series.length < 9 ? 1 : 0.6), "stroke-width": wide ? 3 : 1.6 })];
    }),
    ...series.slice().reverse().flatMap(({ name, values, colour: own }) => {
      const last = values[model.last];
      if (!name || last === null) return [];
      let place = y(last) + 4;
      while (ends.some((other) => Math.abs(other - place) < 12)) place += 3;
      ends.push(place);
      return [svg("text", { x: width - right + 6, y: place, fill: css(own), "font-weight": "bold" }, name)];
    }));
  picture.addEventListener("click", (/** @type {MouseEvent} */ event) => {
    const box = picture.getBoundingClientRect();
    const where = (event.clientX - box.left) / box.width * width;
    const nearest = clamp(Math.round((where - LEFT) / (width - LEFT - right) * model.last), 0, model.last);
    page.set({ at: nearest === model.last ? "" : String(model.checkpoints[nearest].step) });
  });
  return picture;
}
