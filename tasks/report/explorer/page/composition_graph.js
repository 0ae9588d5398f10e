// Composition as a graph: heads by layer, the first at the bottom, and lines from writers up to readers.

import { colour, css, roleColour } from "./colours.js";
import { KIND_COLOURS, KIND_WORDS, KINDS } from "./composition.js";
import { isChoice, moveFocus, svg, svgText } from "./elements.js";
import { readable } from "./numbers.js";

/** @import { Edge } from "./composition.js" */
/** @import { Page } from "./page.js" */
/** @import { Head, Model } from "./study.js" */
/** @typedef {ReturnType<typeof graphPlaces>} GraphPlaces */

const GRAPH_MARGIN = 40;

/**
 * @param {Page} page
 * @param {Edge[]} edges the strongest last
 */
export function compositionGraph(page, edges) {
  const { model, room } = page;
  const places = graphPlaces(model, room);
  const most = Math.max(...edges.map(({ above }) => above));
  /** @type {SVGElement[]} */
  const lines = [];
  /** @type {SVGElement[]} */
  const nodes = [];
  for (const edge of edges) lines.push(graphEdge(page, edge, edge.above / most, places, lines));
  for (const head of model.heads) nodes.push(graphNode(page, head, places, nodes));
  lines.at(-1)?.setAttribute("tabindex", "0");
  const look = { "font-size": 12, fill: css(colour("muted")) };
  const names = model.layers.map((_, layer) => svgText(`L${layer}`, { x: 4, y: places.level(layer) + 4, ...look }));
  const label = { role: "group", "aria-label": "Composition graph", "font-family": "sans-serif" };
  return svg("svg", { viewBox: `0 0 ${room} ${places.height}`, ...label }, ...names, ...lines, ...nodes);
}

/** @param {Model} model @param {number} width */
function graphPlaces({ layers }, width) {
  const apart = Math.max(44, Math.min(110, 500 / layers.length));
  const height = (layers.length - 1) * apart + 70;
  const room = width - 2 * GRAPH_MARGIN;
  const radius = Math.min(17, apart / 3.4, room / Math.max(...layers.map((layer) => layer.length)) / 2.4);
  const level = (/** @type {number} */ layer) => height - 35 - layer * apart;
  const x = (/** @type {Head} */ head) => GRAPH_MARGIN + ((head.head + 0.5) / layers[head.layer].length) * room;
  const y = (/** @type {Head} */ head) => level(head.layer);
  return { apart, height, radius, level, x, y };
}

/**
 * @param {Page} page
 * @param {Edge} edge
 * @param {number} share of what the strongest has above chance
 * @param {GraphPlaces} places
 * @param {SVGElement[]} all lines, among which arrow keys move
 */
function graphEdge(page, edge, share, { apart, radius, x, y }, all) {
  const { name, writer, reader, kind, score, significant } = edge;
  const isChosen = name === page.state.edge;
  const ink = colour(KIND_COLOURS[kind]);
  const aside = (KINDS.indexOf(kind) - 1) * radius * 0.7;
  const [x1, y1, x2, y2] = [x(writer) + aside, y(writer) - radius, x(reader) + aside, y(reader) + radius];
  const d = `M${x1} ${y1}C${x1} ${y1 - apart / 3} ${x2} ${y2 + apart / 3} ${x2} ${y2}`;
  const choose = () => page.set({ edge: isChosen ? "" : name });
  const keydown = (/** @type {KeyboardEvent} */ event) => {
    if (isChoice(event)) choose();
    else moveFocus(event, all, 1);
  };
  const label = `${reader.name} reads ${writer.name} with its ${KIND_WORDS[kind]}, score ${readable(score)}`;
  const handling = { "data-focus": name, "data-edge": name, "aria-pressed": isChosen, "aria-label": label };
  const line = {
    stroke: css(ink, isChosen ? 1 : 0.7),
    "stroke-width": (isChosen ? 2 : 0) + 1 + 5 * Math.max(0, share),
    "stroke-dasharray": significant === false ? "5 4" : null,
  };
  return svg(
    "g",
    { class: "edge", role: "button", tabindex: -1, ...handling, on: { click: choose, keydown } },
    svg("title", {}, `${writer.name} → ${reader.name} by ${kind}: ${readable(score)}`),
    svg("path", { d, fill: "none", stroke: "transparent", "stroke-width": 12 }), // easier to hit
    svg("path", { d, fill: "none", ...line }),
    svg("circle", { cx: x2, cy: y2, r: 3.5, fill: css(ink) }),
  );
}

/**
 * @param {Page} page
 * @param {Head} head
 * @param {GraphPlaces} places
 * @param {SVGElement[]} all nodes, among which arrow keys move
 */
function graphNode(page, head, { radius, x, y }, all) {
  const { model } = page;
  const { name } = head;
  const role = model.role(head);
  const isChosen = name === page.head?.name;
  const choose = () => page.set({ head: name });
  const keydown = (/** @type {KeyboardEvent} */ event) => {
    if (isChoice(event)) choose();
    else moveFocus(event, all, model.layers[head.layer].length);
  };
  const label = { "aria-label": role ? `${name}, ${role}` : name, "aria-pressed": isChosen };
  const handling = { tabindex: head.place === 0 ? 0 : -1, "data-focus": `node ${name}`, ...label };
  const line = { stroke: css(roleColour(role) ?? colour("grey")), "stroke-width": isChosen ? 4 : 2 };
  const size = Math.min(11, radius * 0.75);
  const place = { x: x(head), y: y(head) + 4, "text-anchor": "middle", "font-size": size, fill: css(colour("ink")) };
  return svg(
    "g",
    { class: "node", role: "button", ...handling, on: { click: choose, keydown } },
    svg("title", {}, role ? `${name}\n${role}` : name),
    svg("circle", { cx: x(head), cy: y(head), r: radius, fill: css(colour("card")), ...line }),
    radius > 9 && svgText(name, place),
  );
}
