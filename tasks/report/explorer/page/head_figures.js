// Figures and tables about one head; null where nothing was measured.

import { colour, css, seriesColour } from "./colours.js";
import { el, svg, svgText } from "./elements.js";
import { figure } from "./figure.js";
import { intervalChart } from "./interval_chart.js";
import { lineChart } from "./line_chart.js";
import { readable } from "./numbers.js";
import { sql } from "./sql.js";
import { headName } from "./study.js";
import { table } from "./table.js";

/** @import { Page } from "./page.js" */
/** @import { Head, Model, Row } from "./study.js" */

const OVER_TRAINING = [
  "induction_random_period",
  "prefix_matching",
  "previous_token",
  "duplicate_token",
  "bos_attention",
];
const MAX_PROBES = 6;
const PLANE_SIDE = 116; // of the complex plane, in a picture's own units
const PLANE_GAP = 12;

/** @param {Page} page @param {Head} head */
export function overTraining(page, head) {
  const { model } = page;
  const scores = OVER_TRAINING.filter((score) => model.score(score, model.last, head) !== null);
  if (!model.last || !scores.length) return null;
  const values = (/** @type {number} */ at) => scores.map((score) => [score, model.score(score, at, head)]);
  const lines = scores.map((score, i) => {
    const own = model.checkpoints.map((_, at) => model.score(score, at, head));
    return { name: "", values: own, colour: seriesColour(i) };
  });
  const picture = lineChart(page, lines, { width: 380, height: 190 });
  return figure({
    title: "Over training",
    name: `${model.id} ${head.name} over training`,
    picture,
    content: el("div", {}, picture, colourKey(scores)),
    rows: () =>
      model.checkpoints.map(({ step, tokens }, at) => ({ step, tokens, ...Object.fromEntries(values(at)) })),
    sql: sql.trajectory(model.id, head, scores),
  });
}

/**
 * Names of lines in their colours.
 * @param {string[]} names
 */
export function colourKey(names) {
  const items = names.map((name, i) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = css(seriesColour(i));
    return el("li", {}, swatch, name.replaceAll("_", " "));
  });
  return el("ul", { class: "key" }, ...items);
}

/** @param {Model} model @param {Head} head */
export function ablations(model, head) {
  const rows = model.rowsOf("ablations", head).filter((row) => row.loss_effect_nats !== null);
  if (!rows.length) return null;
  const intervals = rows.map((row) => {
    const name = row.method.replaceAll("_", " ");
    return { name, value: row.loss_effect_nats, low: row.ci_low_nats, high: row.ci_high_nats };
  });
  return figure({
    title: "Loss without it",
    name: `${model.id} ${head.name} ablations`,
    note:
      "Rise of the loss, nats per token, by what takes the place of its output; " +
      "bars are 95 % intervals over documents.",
    picture: intervalChart(intervals, "nats"),
    rows: () => rows,
    sql: sql.ablations(model.id, head),
  });
}

/** @param {Model} model @param {Head} head */
export function eigenvalues(model, head) {
  const rows = model.rowsOf("eigenvalues", head);
  if (!rows.length) return null;
  const scores = model.scored[model.last][head.place];
  /** @type {Record<string, number | null | undefined>} */
  const sums = { OV: scores?.copying_eigenvalues, QK: scores?.matching_eigenvalues };
  const circuits = [...new Set(rows.map((row) => row.circuit))];
  const planes = circuits.flatMap((circuit, i) => {
    const own = rows.filter((row) => row.circuit === circuit);
    return complexPlane(own, i * (PLANE_SIDE + PLANE_GAP), sums[circuit] ?? null);
  });
  const size = `0 0 ${circuits.length * (PLANE_SIDE + PLANE_GAP)} ${PLANE_SIDE + 40}`;
  const look = { "font-family": "sans-serif", "font-size": 12 };
  const label = "Eigenvalues in the complex plane";
  return figure({
    title: "Eigenvalues",
    name: `${model.id} ${head.name} eigenvalues`,
    note:
      "Right of the middle, OV copies tokens and QK looks for the query's own token; " +
      "score: their sum over the sum of their sizes.",
    picture: svg("svg", { viewBox: size, role: "img", "aria-label": label, ...look }, ...planes),
    rows: () => rows,
    sql: sql.eigenvalues(model.id, head),
  });
}

/**
 * The eigenvalues of one circuit.
 * @param {Row[]} rows
 * @param {number} left
 * @param {number | null} score
 */
function complexPlane(rows, left, score) {
  const [{ circuit, writer_layer: layer, writer_head: writer }] = rows;
  const name = layer === null ? circuit : `K, through ${headName(layer, writer)}`;
  const most = Math.max(...rows.map((row) => Math.hypot(row.real, row.imaginary)));
  const half = PLANE_SIDE / 2;
  const [x, y] = [left + half, half + 20];
  const grid = css(colour("grid"));
  const centred = (/** @type {number} */ at, /** @type {string} */ ink) => {
    return { x, y: at, "text-anchor": "middle", fill: css(colour(ink)) };
  };
  const points = rows.map(({ real, imaginary }) => {
    const place = { cx: x + (real / most) * (half - 6), cy: y - (imaginary / most) * (half - 6) };
    return svg("circle", { ...place, r: 3, fill: css(colour(real > 0 ? "blue" : "orange"), 0.75) });
  });
  return [
    svgText(name, centred(13, "ink")),
    svg("line", { x1: x - half, x2: x + half, y1: y, y2: y, stroke: grid }),
    svg("line", { x1: x, x2: x, y1: y - half, y2: y + half, stroke: grid }),
    ...points,
    score !== null && svgText(`score ${readable(score)}`, centred(PLANE_SIDE + 36, "muted")),
  ];
}

/** @param {Model} model @param {Head} head */
export function skipTrigrams(model, head) {
  const rows = model.rowsOf("skip_trigrams", head);
  if (!rows.length) return null;
  const cells = rows.map((row) => [row.skip_trigram, readable(row.qk_effect), readable(row.ov_effect), row.verdict]);
  return figure({
    title: "Strongest skip-trigrams",
    name: `${model.id} ${head.name} skip-trigrams`,
    note: "Source … destination → output, by its weights; right and bug: by the corpus.",
    content: table(["skip-trigram", "QK", "OV", "verdict"], cells),
    rows: () => rows,
    sql: sql.skipTrigrams(model.id, head),
  });
}

/** @param {Model} model @param {Head} head */
export function probes(model, head) {
  const rows = model.rowsOf("probes", head).filter((row) => row.gain !== null);
  if (!rows.length) return null;
  rows.sort((a, b) => b.gain - a.gain);
  const intervals = rows.slice(0, MAX_PROBES).map((row) => {
    return { name: row.task.replaceAll("_", " "), value: row.gain, low: row.gain_low, high: row.gain_high };
  });
  return figure({
    title: "What a probe reads of it",
    name: `${model.id} ${head.name} probes`,
    note: "Gain in accuracy over the best baseline, with its 95 % interval; above 0 the head tells something.",
    picture: intervalChart(intervals, "gain"),
    rows: () => rows,
    sql: sql.probes(model.id, head),
  });
}

/** @param {Model} model @param {Head} head */
export function importance(model, head) {
  const rows = model.rowsOf("importance", head).filter((row) => row.score !== null);
  if (!rows.length) return null;
  const cells = rows.map(({ method, score, rank }) => {
    return [method.replaceAll("_", " "), readable(score), `${rank + 1} of ${model.heads.length}`];
  });
  return figure({
    title: "How much it matters",
    name: `${model.id} ${head.name} importance`,
    content: table(["method", "score", "place"], cells),
    rows: () => rows,
    sql: sql.importance(model.id, head),
  });
}
