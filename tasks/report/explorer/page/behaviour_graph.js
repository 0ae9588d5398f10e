// The circuit of a behaviour as a graph: the embedding at the bottom, layers upward, the logits on top.

import { edgeName, edgeWorth, shareOf } from "./behaviours.js";
import { colour, css, roleColour } from "./colours.js";
import { KIND_COLOURS } from "./composition.js";
import { isChoice, moveFocus, svg, svgText } from "./elements.js";
import { readable } from "./numbers.js";

/** @import { Behaviour, PromptEdge } from "./behaviours.js" */
/** @import { Page } from "./page.js" */
/** @typedef {{ of: Map<string, { x: number, y: number }>, apart: number }} NodePlaces  apart: from row to row */

const BOX_HEIGHT = 22;
const BOX_WIDTH = 46; // of a head's name; others are wider
const WIDE_BOX = 84;
const APART = 52; // between rows; more where many lines run
const HEIGHT = 620; // of the graph, if its rows aren't nearer than that
const PORT_PLACES = { Q: -0.3, K: 0, V: 0.3, in: 0 }; // of a box's width, where edges enter it
const MAX_LINE = 7;
const PALE = [0.5, 0.85]; // opacity of edges: others, and those surely in

/**
 * @param {Page} page
 * @param {Behaviour} behaviour
 * @param {PromptEdge[]} edges
 * @param {(edge: PromptEdge | null) => void} onPoint
 */
export function behaviourGraph(page, behaviour, edges, onPoint) {
  const { room } = page;
  const { places, height } = placesOf(edges, room);
  const most = Math.max(1e-9, ...edges.map((edge) => Math.abs(shareOf(edge))));
  /** @type {SVGElement[]} */
  const lines = [];
  for (const edge of edges.toReversed()) {
    const width = 1 + (MAX_LINE * Math.abs(shareOf(edge))) / most;
    lines.push(edgeLine(page, edge, width, places, lines, onPoint));
  }
  lines.at(-1)?.setAttribute("tabindex", "0");
  const nodes = [...places.of.keys()].map((node) => nodeBox(page, behaviour, node, places));
  const label = { role: "group", "aria-label": `Circuit of ${behaviour.name}`, "font-family": "sans-serif" };
  return svg("svg", { viewBox: `0 0 ${room} ${height}`, ...label }, ...lines, ...nodes);
}

/**
 * Where the nodes are that an edge joins: a level a row, or several rows if it doesn't fit.
 * @param {PromptEdge[]} edges
 * @param {number} room
 */
function placesOf(edges, room) {
  /** @type {Map<number, Set<string>>} */
  const levels = new Map();
  for (const node of edges.flatMap(({ writer, reader }) => [writer, reader])) {
    const level = levels.get(levelOf(node));
    if (level) level.add(node);
    else levels.set(levelOf(node), new Set([node]));
  }
  const most = Math.max(1, Math.floor(room / (BOX_WIDTH + 8)));
  const rows = [...levels.keys()]
    .sort((a, b) => a - b)
    .flatMap((level) => {
      const nodes = [.../** @type {Set<string>} */ (levels.get(level))].sort((a, b) => orderOf(a) - orderOf(b));
      const n = Math.ceil(nodes.length / most);
      const size = Math.ceil(nodes.length / n);
      return Array.from({ length: n }, (_, i) => nodes.slice(i * size, (i + 1) * size));
    });
  const apart = Math.max(APART, Math.min(APART + edges.length, HEIGHT / rows.length));
  const height = rows.length * apart + 10;
  /** @type {NodePlaces["of"]} */
  const places = new Map();
  rows.forEach((row, i) => {
    const y = height - 30 - i * apart;
    const shift = i % 2 && row.length > 1 ? 0.15 : 0; // a line that passes a row runs between its boxes
    row.forEach((node, k) => places.set(node, { x: ((k + 0.5 + shift) * room) / (row.length + shift), y }));
  });
  return { places: { of: places, apart }, height };
}

/** @param {string} node */
function levelOf(node) {
  if (node === "embedding") return -1;
  if (node === "logits") return Infinity;
  const [, layer, kind] = /^L(\d+)(G|H|MLP)/.exec(node) ?? [];
  return 3 * Number(layer) + ["G", "H", "MLP"].indexOf(kind);
}

/** @param {string} node */
function orderOf(node) {
  return Number(/\d+$/.exec(node)?.[0] ?? 0);
}

/**
 * @param {Page} page
 * @param {PromptEdge} edge
 * @param {number} width
 * @param {NodePlaces} places
 * @param {SVGElement[]} all lines, among which arrow keys move
 * @param {(edge: PromptEdge | null) => void} onPoint
 */
function edgeLine(page, edge, width, places, all, onPoint) {
  const { name, port, isSure } = edge;
  const [start, end] = [edge.writer, edge.reader].map((node) => /** @type {any} */ (places.of.get(node)));
  const isChosen = name === page.state.edge;
  const ink = colour(portColour(port));
  const [x1, y1] = [start.x, start.y - BOX_HEIGHT / 2];
  const [x2, y2] = [end.x + PORT_PLACES[port] * widthOf(edge.reader), end.y + BOX_HEIGHT / 2 + 5];
  const bow = Math.abs(x2 - x1) < 24 && y1 - y2 > 1.2 * places.apart ? 46 : 0; // past the boxes between
  const rise = (y1 - y2) / 2.2;
  const d = `M${x1} ${y1}C${x1 + bow} ${y1 - rise} ${x2 + bow} ${y2 + rise} ${x2} ${y2}`;
  const choose = () => page.set({ edge: isChosen ? "" : name });
  const keydown = (/** @type {KeyboardEvent} */ event) => {
    if (isChoice(event)) choose();
    else moveFocus(event, all, 1);
  };
  const said = `${edgeName(edge)}: ${edgeWorth(edge)}`;
  const on = {
    click: choose,
    keydown,
    focus: () => onPoint(edge),
    blur: () => onPoint(null),
    pointerenter: () => onPoint(edge),
    pointerleave: () => onPoint(null),
  };
  const handling = { "data-focus": name, "data-edge": name, "aria-pressed": isChosen, "aria-label": said };
  const line = {
    stroke: css(ink, isChosen ? 1 : PALE[isSure ? 1 : 0]),
    "stroke-width": width + (isChosen ? 2 : 0),
    "stroke-dasharray": shareOf(edge) < 0 ? "5 4" : null,
  };
  const tip = 3 + width / 2;
  return svg(
    "g",
    { class: "edge", role: "button", tabindex: -1, ...handling, on },
    svg("title", {}, said),
    svg("path", { d, fill: "none", stroke: "transparent", "stroke-width": 14 }), // easier to hit
    svg("path", { d, fill: "none", ...line }),
    svg("path", { d: `M${x2 - tip} ${y2 + 1}L${x2 + tip} ${y2 + 1}L${x2} ${y2 - 6}Z`, fill: css(ink) }),
  );
}

/**
 * @param {Page} page
 * @param {Behaviour} behaviour
 * @param {string} node
 * @param {NodePlaces} places
 */
function nodeBox(page, behaviour, node, places) {
  const { x, y } = /** @type {{ x: number, y: number }} */ (places.of.get(node));
  const head = page.model.head(node);
  const role = head ? page.model.role(head) : null;
  const worth = behaviour.nodes.get(node);
  const effect = worth ? `share ${readable(worth.share)}, put back ${readable(worth.restored_share)}` : "";
  const said = [node, role, effect].filter(Boolean).join(", ");
  const width = widthOf(node);
  const isChosen = Boolean(head) && node === page.head?.name;
  const outline = { stroke: css(roleColour(role) ?? colour("grey")), "stroke-width": isChosen ? 3.5 : 1.5 };
  const box = {
    x: x - width / 2,
    y: y - BOX_HEIGHT / 2,
    width,
    height: BOX_HEIGHT,
    rx: 6,
    fill: css(colour("card")),
  };
  const words = { x, y: y + 4, "text-anchor": "middle", "font-size": 12, fill: css(colour("ink")) };
  const parts = [svg("title", {}, said), svg("rect", { class: "value", ...box, ...outline }), svgText(node, words)];
  if (!head) return svg("g", { role: "img", "aria-label": said }, ...parts);
  const choose = () => page.set({ head: node });
  const keydown = (/** @type {KeyboardEvent} */ event) => isChoice(event) && choose();
  const handling = { tabindex: 0, "data-focus": `node ${node}`, "aria-pressed": isChosen, "aria-label": said };
  return svg("g", { class: "cell", role: "button", ...handling, on: { click: choose, keydown } }, ...parts);
}

/** @param {string} node */
function widthOf(node) {
  return /^(embedding|logits)$/.test(node) ? WIDE_BOX : BOX_WIDTH + Math.max(0, node.length - 5) * 6;
}

/** @param {PromptEdge["port"]} port */
export function portColour(port) {
  return port === "in" ? "grey" : KIND_COLOURS[port];
}
