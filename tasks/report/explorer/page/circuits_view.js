// Which head reads which: composition as a graph and as maps, and the patterns of a pair.

import { colour, css, roleColour } from "./colours.js";
import { chooser, el, isChoice, moveFocus, refill, svg, tickBox } from "./elements.js";
import { figure } from "./figure.js";
import { matrix } from "./matrix.js";
import { readable } from "./numbers.js";
import { runOn } from "./runs.js";
import { sql } from "./sql.js";
import { headName } from "./study.js";
import { attentionMatrix, pairs, passageName } from "./text_view.js";
import { plain } from "./tokens.js";
import { product } from "./transformer.js";

/** @typedef {import("./study.js").Head} Head */
/**
 * @typedef {{writer: Head, reader: Head, kind: string, score: number, above: number, z: number | null, significant: boolean | null}} Edge
 *   above: the score less what heads turned at random give
 */

const KINDS = /** @type {const} */ (["Q", "K", "V"]);
const KIND_COLOURS = /** @type {Record<string, string>} */ ({ Q: "blue", K: "orange", V: "green" });
const KIND_WORDS = /** @type {Record<string, string>} */ ({ Q: "queries", K: "keys", V: "values" });
const MOST_EDGES = 300; // drawn at once
const FIRST_EDGES = 12, FIRST_SIGNIFICANT = 60; // above the bar at first

/** @param {import("./main.js").Page} page */
export function circuitsView(page) {
  const { model } = page;
  if (!model.rows.compositions.length) {
    return { element: el("p", { class: "empty" }, `${model.name} has no two layers of heads whose composition was measured.`), update() {}, stop() {} };
  }
  const steps = [...new Set(model.rows.compositions.map((row) => row.step))];
  const ticks = KINDS.map((kind) => {
    const box = tickBox(`${kind}: ${KIND_WORDS[kind]}`, (checked) => page.set({
      kinds: KINDS.filter((each) => (each === kind ? checked : page.state.kinds.includes(each))).join(""),
    }));
    box.element.style.color = css(colour(KIND_COLOURS[kind]));
    return { kind, ...box };
  });
  const bar = el("input", { type: "range", min: 0, max: 1, step: 0.005, "aria-label": "Least composition above chance that is drawn", on: { input: () => page.set({ bar: bar.value }) } });
  const output = el("output");
  /** @type {[string, string][]} */
  const passages = (model.text?.passages ?? []).map(({ name, tokens }, i) => /** @type {[string, string]} */ ([String(i), passageName(/** @type {any} */ (model.text), name, tokens)]))
    .filter(([i]) => model.runnableSteps.length || model.network?.kept[i]);
  const passage = chooser("Patterns on", passages, (value) => page.set({ passage: value, token: "" }));
  const graph = el("div"), pair = el("div"), maps = el("div");
  const element = el("section", { "aria-label": "Circuits" },
    el("div", { class: "controls" }, ...ticks.map((tick) => tick.element),
      el("label", { class: "field wide" }, el("span", {}, "Above chance by"), bar), output),
    graph, pair, maps);
  let asked = 0;

  async function update() {
    const { state } = page, number = ++asked, wanted = model.checkpoints[page.at].step;
    const step = steps.reduce((best, each) => (Math.abs(each - wanted) < Math.abs(best - wanted) ? each : best));
    const edges = edgesAt(step), most = Math.max(0, ...edges.map(({ above }) => above));
    const least = state.bar === "" ? firstBar(edges) : Number(state.bar);
    for (const { kind, input } of ticks) input.checked = state.kinds.includes(kind);
    bar.max = String(Math.ceil(200 * Math.max(most, 0.005)) / 200);
    bar.value = String(least);
    const drawn = edges.filter(({ kind, above }) => above >= least && state.kinds.includes(kind)).sort((a, b) => b.above - a.above);
    output.textContent = `${readable(least)}: ${drawn.length} of ${edges.length} pairs${drawn.length > MOST_EDGES ? `, the ${MOST_EDGES} highest drawn` : ""}`;
    const picture = compositionGraph(page, drawn.slice(0, MOST_EDGES).reverse());
    const rows = () => edges.map(({ writer, reader, kind, score, above, z, significant }) => ({ writer: writer.name, reader: reader.name, kind, score, above_chance: above, z, significant }));
    refill(graph, figure({
      title: "Which head reads which", name: `${model.id} composition step ${step}`, content: picture, picture, rows, sql: sql.compositions(model.id, step),
      note: `Lines run up from the head that writes to the head that reads it, with its queries, keys or values; the thicker, the further its composition score is above chance; dashed where that isn't significant. ${model.name}${step === wanted ? "" : ` at step ${step}`}. Choose a line to see both heads.`,
    }));
    refill(maps, el("div", { class: "maps" }, ...KINDS.filter((kind) => state.kinds.includes(kind)).map((kind) => heatMap(page, edges, kind, most, step))));
    const chosen = edges.find((edge) => edgeName(edge) === state.edge);
    await showPair(chosen, number);
  }

  /** @param {number} step @returns {Edge[]} */
  function edgesAt(step) {
    return model.rows.compositions.filter((row) => row.step === step && row.score !== null).flatMap((row) => {
      const writer = model.head(headName(row.writer_layer, row.writer_head)), reader = model.head(headName(row.reader_layer, row.reader_head));
      return writer && reader ? [{ writer, reader, kind: row.kind, score: row.score, above: row.score - (row.chance ?? 0), z: row.z, significant: row.significant }] : [];
    });
  }

  /** @param {Edge | undefined} edge @param {number} number */
  async function showPair(edge, number) {
    if (!edge) { refill(pair); return; }
    const { writer, reader, kind } = edge, text = model.text;
    const sentence = `${reader.name} reads ${writer.name} with its ${KIND_WORDS[kind]}: composition score ${readable(edge.score)}${edge.z === null ? "" : `, z = ${readable(edge.z)}`}${edge.significant === null ? "" : edge.significant ? ", significant" : ", not significant"}.${causal(edge)}`;
    const index = passages.some(([i]) => i === page.state.passage) ? page.state.passage : passages[0]?.[0];
    const wanted = model.checkpoints[page.at].step, runnable = model.runnableSteps;
    const step = runnable.reduce((best, each) => (Math.abs(each - wanted) < Math.abs(best - wanted) ? each : best), runnable[0] ?? wanted);
    const run = text && index !== undefined ? await runOn(model, step, text.passages[Number(index)].tokens, Number(index), []) : null;
    if (number !== asked) return;
    passage.select.value = index ?? "";
    const heading = el("div", { class: "pair" }, el("h3", {}, `${writer.name} → ${reader.name} by ${kind}`), el("p", {}, sentence), run && passage.element);
    if (!run || !text) { refill(pair, heading); return; }
    const names = run.tokens.map((token) => plain(text.label(token)));
    const [early, late] = [run.pattern(writer), run.pattern(reader)];
    const shown = [
      { name: `${writer.name}, the writer`, attention: early, note: "What it copies from where." },
      { name: `${reader.name}, the reader`, attention: late, note: "Where it looks." },
      { name: "composed", attention: composed(early, late, run.n, kind), note: COMPOSED[kind] },
    ];
    refill(pair, heading, el("div", { class: "maps" }, ...shown.map(({ name, attention, note }) => {
      const picture = attentionMatrix({ name, attention, n: run.n, names, position: null, side: 300, onChoose: () => {}, tint: KIND_COLOURS[kind] });
      return figure({ title: name, name: `${model.id} ${edgeName(edge)} ${name}`, note, content: picture, picture, sql: null, rows: () => pairs(attention, run.n, names) });
    })));
  }

  /** @param {Edge} edge */
  function causal({ writer, reader, kind }) {
    const found = model.rows.causal_checks.find((row) => headName(row.writer_layer, row.writer_head) === writer.name
      && headName(row.reader_layer, row.reader_head) === reader.name && row.kind === kind);
    return !found || found.prefix_matching === null ? ""
      : ` Without ${writer.name} in its ${KIND_WORDS[kind]}, ${reader.name}'s prefix matching is ${readable(found.prefix_matching_without)} instead of ${readable(found.prefix_matching)}, and the loss ${readable(found.loss_effect_nats)} nats higher.`;
  }

  return { element, update: () => void update(), stop() {} };
}

const COMPOSED = /** @type {Record<string, string>} */ ({
  K: "Where the keys that the reader looks at come from, through the writer: its pattern times the writer's.",
  V: "Where what the reader moves comes from, through the writer: its pattern times the writer's.",
  Q: "Where the reader looks, by the token that the writer brought to its query: mean over queries.",
});

/** @param {Float32Array} early of the writer @param {Float32Array} late of the reader @param {number} n @param {string} kind */
function composed(early, late, n, kind) {
  if (kind !== "Q") return product(late, early, n, n, n);
  const turned = early.map((_, i) => early[(i % n) * n + Math.floor(i / n)]);
  const out = product(turned, late, n, n, n);
  for (let p = 0; p < n; p++) {
    const total = turned.subarray(p * n, (p + 1) * n).reduce((sum, weight) => sum + weight, 0);
    for (let k = 0; total > 0 && k < n; k++) out[p * n + k] /= total;
  }
  return out;
}

/** The bar at first: the highest pairs are above it, of significant ones more than of others. @param {Edge[]} edges */
function firstBar(edges) {
  const found = edges.filter(({ significant }) => significant);
  const ranked = (found.length ? found : edges).map(({ above }) => above).sort((a, b) => b - a);
  return Math.max(0, ranked[Math.min(found.length ? FIRST_SIGNIFICANT : FIRST_EDGES, ranked.length) - 1]);
}

/** @param {Edge} edge */
function edgeName({ writer, reader, kind }) {
  return `${writer.name}-${reader.name}-${kind}`;
}

/** @param {import("./main.js").Page} page @param {Edge[]} edges the strongest last @returns {SVGSVGElement} */
function compositionGraph(page, edges) {
  const { model } = page, width = page.room, margin = 40, apart = Math.max(44, Math.min(110, 500 / model.layers.length));
  const height = (model.layers.length - 1) * apart + 70;
  const radius = Math.min(17, apart / 3.4, (width - 2 * margin) / Math.max(...model.layers.map((layer) => layer.length)) / 2.4);
  /** @param {Head} head */
  const x = (head) => margin + (head.head + 0.5) / model.layers[head.layer].length * (width - 2 * margin);
  /** @param {Head} head */
  const y = (head) => height - 35 - head.layer * apart;
  const most = Math.max(...edges.map(({ above }) => above));
  /** @type {HTMLElement[]} */
  const lines = edges.map((edge, place) => {
    const { writer, reader, kind, score, above, significant } = edge, name = edgeName(edge), isChosen = name === page.state.edge;
    const aside = (KINDS.indexOf(/** @type {"Q"} */ (kind)) - 1) * radius * 0.7;
    const [x1, y1, x2, y2] = [x(writer) + aside, y(writer) - radius, x(reader) + aside, y(reader) + radius];
    const path = `M${x1} ${y1}C${x1} ${y1 - apart / 3} ${x2} ${y2 + apart / 3} ${x2} ${y2}`;
    const choose = () => page.set({ edge: isChosen ? "" : name });
    return svg("g", {
      class: "edge", role: "button", tabindex: place === edges.length - 1 ? 0 : -1, "data-focus": name, "data-edge": name, "aria-pressed": isChosen,
      "aria-label": `${reader.name} reads ${writer.name} with its ${KIND_WORDS[kind]}, score ${readable(score)}`,
      on: { click: choose, keydown: (/** @type {KeyboardEvent} */ event) => (isChoice(event) ? choose() : moveFocus(event, lines, 1)) },
    },
    svg("title", {}, `${writer.name} → ${reader.name} by ${kind}: ${readable(score)}`),
    svg("path", { d: path, fill: "none", stroke: "transparent", "stroke-width": 12 }),
    svg("path", { d: path, fill: "none", stroke: css(colour(KIND_COLOURS[kind]), isChosen ? 1 : 0.7), "stroke-width": (isChosen ? 2 : 0) + 1 + 5 * Math.max(0, above / most), "stroke-dasharray": significant === false ? "5 4" : null }),
    svg("circle", { cx: x2, cy: y2, r: 3.5, fill: css(colour(KIND_COLOURS[kind])) }));
  });
  /** @type {HTMLElement[]} */
  const nodes = model.heads.map((head, place) => {
    const role = model.role(head), mark = roleColour(role), isChosen = head.name === page.head?.name;
    return svg("g", {
      class: "node", role: "button", tabindex: place === 0 ? 0 : -1, "data-focus": `node ${head.name}`, "aria-label": `${head.name}${role ? `, ${role}` : ""}`, "aria-pressed": isChosen,
      on: { click: () => page.set({ head: head.name }), keydown: (/** @type {KeyboardEvent} */ event) => (isChoice(event) ? page.set({ head: head.name }) : moveFocus(event, nodes, model.layers[head.layer].length)) },
    },
    svg("title", {}, `${head.name}${role ? `\n${role}` : ""}`),
    svg("circle", { cx: x(head), cy: y(head), r: radius, fill: css(colour("card")), stroke: css(mark ?? colour("grey")), "stroke-width": isChosen ? 4 : 2 }),
    radius > 9 && svg("text", { x: x(head), y: y(head) + 4, "text-anchor": "middle", "font-size": Math.min(11, radius * 0.75), fill: css(colour("ink")) }, head.name));
  });
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Composition graph", "font-family": "sans-serif" },
    ...model.layers.map((_, layer) => svg("text", { x: 4, y: height - 31 - layer * apart, "font-size": 12, fill: css(colour("muted")) }, `L${layer}`)), ...lines, ...nodes);
}

/** @param {import("./main.js").Page} page @param {Edge[]} edges @param {string} kind @param {number} most @param {number} step */
function heatMap(page, edges, kind, most, step) {
  const { model } = page, n = model.heads.length;
  const own = new Map(edges.filter((edge) => edge.kind === kind).map((edge) => [edge.writer.place * n + edge.reader.place, edge]));
  // Heads of the last layer write to none, those of the first read none: neither has a row or a column.
  const writers = model.heads.filter((head) => head.layer < model.layers.length - 1), readers = model.heads.filter((head) => head.layer > 0);
  /** @param {number} row @param {number} column */
  const at = (row, column) => own.get(writers[row].place * n + readers[column].place);
  const chosen = edges.find((edge) => edgeName(edge) === page.state.edge && edge.kind === kind);
  const picture = matrix({
    rows: writers.length, columns: readers.length, value: (row, column) => at(row, column)?.above ?? null, most, side: 300, tint: KIND_COLOURS[kind],
    rowName: (row) => writers[row].name, columnName: (column) => readers[column].name, rowTitle: "writes", columnTitle: "reads",
    label: `${kind}-composition of all pairs`, chosen: chosen ? [writers.indexOf(chosen.writer), readers.indexOf(chosen.reader)] : null,
    hint: (row, column) => { const edge = at(row, column); return edge ? `${edge.writer.name} → ${edge.reader.name}: ${readable(edge.score)}` : ""; },
    onChoose: (row, column) => { const edge = at(row, column); if (edge) page.set({ edge: edgeName(edge) }); },
  });
  return figure({
    title: `${kind}-composition`, name: `${model.id} ${kind}-composition step ${step}`, content: picture, picture,
    note: `Rows write, columns read with their ${KIND_WORDS[kind]}; blank is what chance gives or less, deepest ${readable(most)} above it.`,
    rows: () => [...own.values()].map(({ writer, reader, score, above, z }) => ({ writer: writer.name, reader: reader.name, kind, score, above_chance: above, z })),
    sql: sql.compositions(model.id, step),
  });
}
