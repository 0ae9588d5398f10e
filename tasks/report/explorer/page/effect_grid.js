// What each head and feed-forward layer is worth on prompts, a row a layer; each cell patches its node if chosen.

import { inShort } from "./behaviours.js";
import { colour, css, inkOn, valueColour } from "./colours.js";
import { isChoice, moveFocus, svg, svgText } from "./elements.js";
import { clamp } from "./numbers.js";

/** @import { Page } from "./page.js" */
/** @typedef {{ node: string, nats: number | null, said: string }} Effect */
/** @typedef {{ patched: string[], onChoose: ((node: string) => void) | null }} Choice  null where nothing can run */
/** @typedef {{ columns: number, width: number, height: number, bottom: number }} Grid */

const LEFT = 40; // room for the names of layers
const MAX_NUMBERED = 14; // columns of which cells have room for numbers
const LEAST_DEEPEST = 0.5; // nats

/**
 * @param {Page} page
 * @param {Effect[]} effects
 * @param {Choice} choice
 */
export function effectGrid(page, effects, choice) {
  const { layers } = page.model;
  const hasFeedForward = effects.some(({ node }) => node.endsWith("MLP"));
  const columns = Math.max(0, ...layers.map((layer) => layer.length)) + (hasFeedForward ? 1 : 0);
  const width = Math.min(120, (page.room - LEFT) / Math.max(1, columns));
  const height = clamp(Math.min(width, 380 / Math.max(1, layers.length)), 18, 46);
  const grid = { columns, width, height, bottom: layers.length * height };
  const byNode = new Map(effects.map((effect) => [effect.node, effect]));
  const most = Math.max(LEAST_DEEPEST, ...effects.map(({ nats }) => Math.abs(nats ?? 0)));
  /** @type {SVGElement[]} */
  const cells = [];
  layers.forEach((heads, layer) => {
    const nodes = heads.map(({ name }) => name);
    const all = hasFeedForward ? [...nodes, `L${layer}MLP`] : nodes;
    all.forEach((node) => {
      const effect = byNode.get(node);
      const column = node.endsWith("MLP") ? columns - 1 : nodes.indexOf(node);
      if (effect) {
        cells.push(effectCell(effect, most, { column, row: layers.length - 1 - layer }, grid, choice, cells));
      }
    });
  });
  cells[0]?.setAttribute("tabindex", "0");
  const label = { role: "group", "aria-label": "Effects by node", "font-family": "sans-serif" };
  const size = `0 0 ${page.room} ${grid.bottom + 22}`;
  return svg("svg", { class: "limited", viewBox: size, ...label }, ...names(page, grid, hasFeedForward), ...cells);
}

/**
 * @param {Page} page
 * @param {Grid} grid
 * @param {boolean} hasFeedForward
 */
function names({ model, room }, { columns, width, height, bottom }, hasFeedForward) {
  const look = { "font-size": 12, fill: css(colour("muted")) };
  const every = Math.ceil(columns / (room / 30));
  const rows = model.layers.map((_, layer) => {
    const y = (model.layers.length - 1 - layer + 0.5) * height + 4;
    return svgText(`L${layer}`, { x: LEFT - 8, y, "text-anchor": "end", ...look });
  });
  const heads = Array.from({ length: columns }, (_, i) => {
    const isMlp = hasFeedForward && i === columns - 1;
    const place = { x: LEFT + (i + 0.5) * width, y: bottom + 15, "text-anchor": "middle", ...look };
    return isMlp || i % every === 0 ? svgText(isMlp ? "MLP" : `H${i}`, place) : null;
  });
  return [...rows, ...heads];
}

/**
 * @param {Effect} effect
 * @param {number} most that a colour stands for
 * @param {{ column: number, row: number }} place
 * @param {Grid} grid
 * @param {Choice} choice
 * @param {SVGElement[]} all cells, among which arrow keys move
 */
function effectCell({ node, nats, said }, most, { column, row }, { columns, width, height }, choice, all) {
  const { patched, onChoose } = choice;
  const isPatched = patched.includes(node);
  const ground = valueColour(nats, most);
  const [x, y] = [LEFT + column * width, row * height];
  const box = { x: x + 1.5, y: y + 1.5, width: width - 3, height: height - 3, rx: 3, class: "value" };
  const outline = { stroke: css(colour(isPatched ? "orange" : "grid")), "stroke-width": isPatched ? 3.5 : 1 };
  const number = { x: x + width / 2, y: y + height / 2 + 4, "text-anchor": "middle", fill: css(inkOn(ground)) };
  const words = `${node}: ${said}${isPatched ? ", patched" : ""}`;
  const keydown = (/** @type {KeyboardEvent} */ event) => {
    if (onChoose && isChoice(event)) onChoose(node);
    else moveFocus(event, all, columns);
  };
  const kind = onChoose
    ? { class: "cell", role: "button", "aria-pressed": isPatched, on: { click: () => onChoose(node), keydown } }
    : { role: "img", on: { keydown } };
  return svg(
    "g",
    { ...kind, tabindex: -1, "data-focus": `effect ${node}`, "data-node": node, "aria-label": words },
    svg("title", {}, words),
    svg("rect", { ...box, fill: css(ground), ...outline }),
    columns <= MAX_NUMBERED && nats !== null
      ? svgText(inShort(nats), { ...number, "font-size": Math.min(12, width / 3.4) })
      : null,
  );
}
