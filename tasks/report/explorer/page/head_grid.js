// All heads of a model as a grid, a row a layer, each coloured by a score.

import { colour, css, inkOn, roleColour, valueColour } from "./colours.js";
import { isChoice, svg, svgText } from "./elements.js";
import { clamp, readable } from "./numbers.js";

/** @import { Page } from "./page.js" */
/** @import { Head, Model } from "./study.js" */
/** @typedef {ReturnType<typeof placesIn>} Places */

const GRID_LEFT = 40; // room for the names of layers
const GRID_BOTTOM = 34; // for those of heads, and what the marks of roles mean
const MAX_NUMBERED = 16; // heads in a layer whose cells have room for numbers
const UNBOUNDED_SCORES = /logit|distance|rank|_sd$/; // those that don't end at 1
/** @type {Record<string, [number, number]>} heads across, layers up */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/**
 * @param {Page} page
 * @param {string} score
 * @param {Model[]} models of which equal colours mean the same
 */
export function headGrid(page, score, models = [page.model]) {
  const { model, room } = page;
  const places = placesIn(model, room);
  const height = places.bottom + GRID_BOTTOM;
  const roles = [...new Set(model.heads.map((head) => model.role(head)))].filter((role) => role !== null);
  const most = Math.max(...models.map((each) => mostOf(each, score)));
  const label = { role: "group", "aria-label": `Heads of ${model.name}`, "font-family": "sans-serif" };
  return svg(
    "svg",
    { viewBox: `0 0 ${room} ${height}`, ...label },
    ...layerNames(model, places),
    ...columnNames(places, room),
    ...model.heads.map((head) => gridCell(page, score, most, head, places)),
    ...roleLegend(roles, height - 6),
  );
}

/**
 * Where heads are in the picture.
 * @param {Model} model
 * @param {number} room
 */
function placesIn({ layers }, room) {
  const columns = Math.max(...layers.map((layer) => layer.length));
  const width = Math.min(150, (room - GRID_LEFT) / columns);
  const height = clamp(Math.min(width, 420 / layers.length), 15, 56);
  const x = (/** @type {number} */ head) => GRID_LEFT + head * width;
  const y = (/** @type {number} */ layer) => (layers.length - 1 - layer) * height;
  return { columns, width, height, bottom: layers.length * height, x, y };
}

/**
 * What the deepest colour stands for: 1, or the most that any checkpoint has.
 * @param {Model} model
 * @param {string} score
 */
function mostOf(model, score) {
  if (!UNBOUNDED_SCORES.test(score)) return 1;
  return Math.max(1e-9, ...model.rows.heads.map((row) => Math.abs(row[score] ?? 0)));
}

/** @param {Model} model @param {Places} places */
function layerNames({ layers }, { height, y }) {
  const look = { "text-anchor": "end", "font-size": 12, fill: css(colour("muted")) };
  return layers.map((_, layer) => svgText(`L${layer}`, { x: GRID_LEFT - 8, y: y(layer) + height / 2 + 4, ...look }));
}

/** @param {Places} places @param {number} room */
function columnNames({ columns, width, bottom, x }, room) {
  const look = { "text-anchor": "middle", "font-size": 12, fill: css(colour("muted")) };
  const every = Math.ceil(columns / (room / 30));
  return Array.from({ length: columns }, (_, head) => {
    return head % every === 0 && svgText(`H${head}`, { x: x(head) + width / 2, y: bottom + 14, ...look });
  });
}

/**
 * @param {Page} page
 * @param {string} score
 * @param {number} most
 * @param {Head} head
 * @param {Places} places
 */
function gridCell(page, score, most, head, places) {
  const { model } = page;
  const { width, height } = places;
  const [x, y] = [places.x(head.head), places.y(head.layer)];
  const value = model.score(score, page.at, head);
  const ground = valueColour(value, most);
  const role = model.role(head);
  const mark = roleColour(role);
  const isChosen = head.name === page.head?.name;
  const said = `${head.name}: ${score} ${readable(value)}`;
  const handling = {
    tabindex: (page.head ? isChosen : head.place === 0) ? 0 : -1,
    role: "button",
    "aria-pressed": isChosen,
    "data-focus": focusName(model, head),
    "data-head": head.name,
    "aria-label": role ? `${said}, ${role}` : said,
    on: {
      click: () => page.set({ head: head.name }),
      keydown: (/** @type {KeyboardEvent} */ event) => onGridKey(event, page, head),
    },
  };
  const outline = { stroke: css(colour(isChosen ? "ink" : "grid")), "stroke-width": isChosen ? 2.5 : 1 };
  const box = { x: x + 1.5, y: y + 1.5, width: width - 3, height: height - 3, rx: 3 };
  const number = { x: x + width / 2, y: y + height / 2 + 4, "text-anchor": "middle" };
  const size = Math.min(13, width / 3.2);
  return svg(
    "g",
    { class: "cell", ...handling },
    svg("title", {}, role ? `${said}\n${role}` : said),
    svg("rect", { ...box, class: "value", fill: css(ground), ...outline }),
    places.columns <= MAX_NUMBERED && value !== null
      ? svgText(value.toFixed(2), { ...number, "font-size": size, fill: css(inkOn(ground)) })
      : null,
    mark &&
      svg("circle", { cx: x + 8, cy: y + 8, r: 4, fill: css(mark), stroke: css(colour("card")), "stroke-width": 1 }),
  );
}

/** @param {Model} model @param {Head} head */
function focusName(model, head) {
  return `${model.id} ${head.name}`;
}

/**
 * Enter chooses a head, arrows go to the next one.
 * @param {KeyboardEvent} event
 * @param {Page} page
 * @param {Head} head that has the focus
 */
function onGridKey(event, page, head) {
  if (isChoice(event)) {
    page.set({ head: head.name });
    return;
  }
  const [across, up] = ARROWS[event.key] ?? [0, 0];
  const layer = across || up ? page.model.layers[head.layer + up] : undefined;
  const next = layer?.[up ? Math.min(head.head, layer.length - 1) : head.head + across];
  if (!next) return;
  event.preventDefault();
  page.set({ head: next.name });
  const cell = document.querySelector(`.cell[data-focus="${CSS.escape(focusName(page.model, next))}"]`);
  /** @type {SVGElement | null} */ (cell)?.focus({ preventScroll: true });
}

/** @param {string[]} roles @param {number} y */
function roleLegend(roles, y) {
  let x = GRID_LEFT + 6;
  return roles.flatMap((role) => {
    const mark = roleColour(role);
    if (!mark) return [];
    const parts = [
      svg("circle", { cx: x, cy: y - 4, r: 4, fill: css(mark) }),
      svgText(role, { x: x + 9, y, "font-size": 12, fill: css(colour("muted")) }),
    ];
    x += 30 + 7 * role.length;
    return parts;
  });
}
