// All that was measured of one head.

import { colour, css, DARK, roleColour, seriesColour } from "./colours.js";
import { el, refill, svg } from "./elements.js";
import { figure } from "./figure.js";
import { lineChart } from "./heads_view.js";
import { readable } from "./numbers.js";
import { sql } from "./sql.js";
import { headName } from "./study.js";

/** @typedef {import("./study.js").Model} Model @typedef {import("./study.js").Head} Head @typedef {import("./study.js").Row} Row */

const OVER_TRAINING = ["induction_random_period", "prefix_matching", "previous_token", "duplicate_token", "bos_attention"];
const MOST_LINKS = 8; // heads read, or reading
const MOST_PROBES = 6;

/** @param {import("./main.js").Page} page */
export function headCard(page) {
  const element = el("aside", { "aria-label": "The chosen head", "aria-live": "polite" });
  const training = el("div");
  let shown = "";
  return {
    element,
    update() {
      const head = page.head, now = `${head?.name} ${DARK.matches} ${page.link({ at: "" })}`;
      if (head) refill(training, overTraining(page, head)); // all else is of the last checkpoint
      if (now === shown) return;
      shown = now;
      refill(element, ...(head ? sections(page, head, training) : [el("p", { class: "empty" }, "There are no heads to choose.")]));
    },
  };
}

/** @param {import("./main.js").Page} page @param {Head} head @param {HTMLElement} training */
function sections(page, head, training) {
  const { model } = page, role = model.role(head), mark = roleColour(role);
  const badge = role && el("span", { class: "badge" }, role);
  if (badge && mark) badge.style.borderColor = css(mark);
  return [
    el("header", {}, el("h2", {}, head.name), badge, el("span", { class: "hint" }, `of ${model.name}`)),
    el("ul", { class: "evidence" }, ...evidence(model, head).map((line) => el("li", {}, line))),
    el("p", { class: "links" },
      page.anchor({ view: "text", heads: head.name, way: "from" }, "Where it looks in a text"), " · ",
      page.anchor({ view: "circuits" }, "Its circuits")),
    training, ablations(model, head), neighbours(page, head), eigenvalues(model, head), skipTrigrams(model, head),
    probes(model, head), importance(model, head), alike(page, head),
  ].filter((section) => section !== null);
}

/** What its role rests on, in sentences. @param {Model} model @param {Head} head */
function evidence(model, head) {
  const scores = model.scored[model.last][head.place], bars = model.rowsOf("roles", head)[0];
  if (!scores) return ["Nothing was measured of it."];
  /** @param {string} name */
  const value = (name) => {
    const sem = scores[`${name}_sem`];
    return sem ? `${readable(scores[name])} ± ${readable(1.96 * sem)}` : readable(scores[name]);
  };
  /** @param {string} score @param {string} bar @param {string} what */
  const line = (score, bar, what) => scores[score] === null ? null
    : `${value(score)} of its attention ${what} (${score}${bars ? `; a role from ${readable(bars[bar])}` : ""}).`;
  const logit = scores.induction_copying_logit;
  return [
    line("induction_random_period", "induction_bar", "goes to what followed earlier copies of the current token, on repeated random tokens"),
    logit === null ? null : `There it ${logit > 0 ? "raises" : "lowers"} the logit of what follows by ${value("induction_copying_logit").replace("-", "")}.`,
    line("previous_token", "previous_token_bar", "goes to the token before"),
    line("duplicate_token", "duplicate_token_bar", "goes to earlier copies of the current token"),
    line("bos_attention", "bos_bar", "goes to BOS"),
  ].filter((each) => each !== null);
}

/** @param {import("./main.js").Page} page @param {Head} head */
function overTraining(page, head) {
  const { model } = page;
  const scores = OVER_TRAINING.filter((score) => model.score(score, model.last, head) !== null);
  if (!model.last || !scores.length) return null;
  const series = scores.map((score, i) => ({
    name: "", values: model.checkpoints.map((_, at) => model.score(score, at, head)), colour: seriesColour(i),
  }));
  const picture = lineChart(page, series, page.at, { width: 380, height: 190 });
  return figure({
    title: "Over training", name: `${model.id} ${head.name} over training`, picture, content: el("div", {}, picture, key(scores)),
    rows: () => model.checkpoints.map(({ step, tokens }, at) => ({ step, tokens, ...Object.fromEntries(scores.map((score) => [score, model.score(score, at, head)])) })),
    sql: sql.trajectory(model.id, head, scores),
  });
}

/** Names of series in their colours. @param {string[]} names */
function key(names) {
  return el("ul", { class: "key" }, ...names.map((name, i) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = css(seriesColour(i));
    return el("li", {}, swatch, name.replaceAll("_", " "));
  }));
}

/** @param {Model} model @param {Head} head */
function ablations(model, head) {
  const rows = model.rowsOf("ablations", head).filter((row) => row.loss_effect_nats !== null);
  if (!rows.length) return null;
  const picture = intervals(rows.map((row) => ({
    name: row.method.replaceAll("_", " "), value: row.loss_effect_nats, low: row.ci_low_nats, high: row.ci_high_nats,
  })), "nats");
  return figure({
    title: "Loss without it", name: `${model.id} ${head.name} ablations`, content: picture, picture,
    note: "Rise of the loss, nats per token, by what takes the place of its output; bars are 95 % intervals over documents.",
    rows: () => rows, sql: sql.ablations(model.id, head),
  });
}

/** Values with intervals, a line each. @param {{name: string, value: number, low: number | null, high: number | null}[]} rows @param {string} unit */
function intervals(rows, unit) {
  const width = 400, left = 150, right = 70, high = 24;
  const ends = rows.flatMap(({ value, low, high }) => [value, low ?? value, high ?? value, 0]);
  const least = Math.min(...ends), most = Math.max(...ends, least + 1e-9);
  /** @param {number} value */
  const x = (value) => left + (value - least) / (most - least) * (width - left - right);
  const ink = css(colour("ink")), blue = css(colour("blue"));
  return svg("svg", { viewBox: `0 0 ${width} ${rows.length * high + 6}`, role: "img", "aria-label": rows.map(({ name, value }) => `${name} ${readable(value)} ${unit}`).join(", "), "font-family": "sans-serif", "font-size": 12 },
    svg("line", { x1: x(0), x2: x(0), y1: 2, y2: rows.length * high, stroke: css(colour("muted")), "stroke-dasharray": "2 3" }),
    ...rows.flatMap(({ name, value, low, high: top }, i) => {
      const y = i * high + high / 2;
      return [
        svg("text", { x: left - 10, y: y + 4, "text-anchor": "end", fill: ink }, name),
        low !== null && top !== null && svg("line", { x1: x(low), x2: x(top), y1: y, y2: y, stroke: blue, "stroke-width": 2 }),
        svg("circle", { cx: x(value), cy: y, r: 4, fill: blue }),
        svg("text", { x: width - right + 10, y: y + 4, fill: ink }, readable(value)),
      ];
    }));
}

/** @param {import("./main.js").Page} page @param {Head} head */
function neighbours(page, head) {
  const { model } = page, last = model.checkpoints[model.last].step;
  const strongest = model.rows.compositions.filter((row) => row.step === last && row.significant !== false)
    .sort((a, b) => (b.z ?? b.score) - (a.z ?? a.score));
  const read = strongest.filter((row) => row.reader_layer === head.layer && row.reader_head === head.head);
  const readBy = strongest.filter((row) => row.writer_layer === head.layer && row.writer_head === head.head);
  if (!model.rows.compositions.length) return null;
  /** @param {Row[]} rows @param {"writer" | "reader"} side */
  const list = (rows, side) => rows.length ? el("ul", {}, ...rows.slice(0, MOST_LINKS).map((row) => {
    const other = headName(row[`${side}_layer`], row[`${side}_head`]);
    const [writer, reader] = side === "writer" ? [other, head.name] : [head.name, other];
    const what = { K: "keys", Q: "queries", V: "values" }[/** @type {"K"} */ (row.kind)];
    const size = row.z === null ? `score ${readable(row.score)}` : `z = ${readable(row.z)}`;
    return el("li", {}, page.anchor({ head: other }, other), ` by ${side === "writer" ? "its" : "their"} ${what} `,
      page.anchor({ view: "circuits", edge: `${writer}-${reader}-${row.kind}` }, size), checked(model, row));
  }), rows.length > MOST_LINKS && el("li", { class: "hint" }, `and ${rows.length - MOST_LINKS} more`)) : el("p", { class: "hint" }, "no head, significantly");
  return el("section", { class: "pairs" },
    el("div", {}, el("h3", {}, "Heads it reads"), list(read, "writer")),
    el("div", {}, el("h3", {}, "Heads that read it"), list(readBy, "reader")));
}

/** What became of the reader without the writer, in a few words. @param {Model} model @param {Row} row */
function checked(model, row) {
  const names = ["writer_layer", "writer_head", "reader_layer", "reader_head", "kind"];
  const found = model.rows.causal_checks.find((check) => names.every((name) => check[name] === row[name]));
  if (!found || found.prefix_matching === null || Math.abs(found.prefix_matching - found.prefix_matching_without) < 0.02) return "";
  return `: without it, prefix matching ${readable(found.prefix_matching_without)} instead of ${readable(found.prefix_matching)}`;
}

/** @param {Model} model @param {Head} head */
function eigenvalues(model, head) {
  const rows = model.rowsOf("eigenvalues", head);
  if (!rows.length) return null;
  const circuits = [...new Set(rows.map((row) => row.circuit))], side = 116, gap = 12;
  const scores = model.scored[model.last][head.place];
  const picture = svg("svg", { viewBox: `0 0 ${circuits.length * (side + gap)} ${side + 40}`, role: "img", "aria-label": "Eigenvalues in the complex plane", "font-family": "sans-serif", "font-size": 12 },
    ...circuits.flatMap((circuit, i) => {
      const own = rows.filter((row) => row.circuit === circuit), most = Math.max(...own.map((row) => Math.hypot(row.real, row.imaginary)));
      const middle = [i * (side + gap) + side / 2, side / 2 + 20];
      const score = { OV: scores?.copying_eigenvalues, QK: scores?.matching_eigenvalues }[/** @type {"OV"} */ (circuit)];
      const name = own[0].writer_layer === null ? circuit : `K, through ${headName(own[0].writer_layer, own[0].writer_head)}`;
      return [
        svg("text", { x: middle[0], y: 13, "text-anchor": "middle", fill: css(colour("ink")) }, name),
        svg("line", { x1: middle[0] - side / 2, x2: middle[0] + side / 2, y1: middle[1], y2: middle[1], stroke: css(colour("grid")) }),
        svg("line", { x1: middle[0], x2: middle[0], y1: middle[1] - side / 2, y2: middle[1] + side / 2, stroke: css(colour("grid")) }),
        ...own.map((row) => svg("circle", {
          cx: middle[0] + row.real / most * (side / 2 - 6), cy: middle[1] - row.imaginary / most * (side / 2 - 6), r: 3,
          fill: css(colour(row.real > 0 ? "blue" : "orange"), 0.75),
        })),
        score !== null && score !== undefined && svg("text", { x: middle[0], y: side + 36, "text-anchor": "middle", fill: css(colour("muted")) }, `score ${readable(score)}`),
      ];
    }));
  return figure({
    title: "Eigenvalues", name: `${model.id} ${head.name} eigenvalues`, content: picture, picture,
    note: "Right of the middle, OV copies tokens and QK looks for the query's own token; score: their sum over the sum of their sizes.",
    rows: () => rows, sql: sql.eigenvalues(model.id, head),
  });
}

/** @param {Model} model @param {Head} head */
function skipTrigrams(model, head) {
  const rows = model.rowsOf("skip_trigrams", head);
  if (!rows.length) return null;
  return figure({
    title: "Strongest skip-trigrams", name: `${model.id} ${head.name} skip-trigrams`, rows: () => rows, sql: sql.skipTrigrams(model.id, head),
    note: "Source … destination → output, by its weights; right and bug: by the corpus.",
    content: table(["skip-trigram", "QK", "OV", "verdict"], rows.map((row) => [row.skip_trigram, readable(row.qk_effect), readable(row.ov_effect), row.verdict])),
  });
}

/** @param {string[]} headings @param {string[][]} rows */
export function table(headings, rows) {
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ...headings.map((heading) => el("th", { scope: "col" }, heading)))),
    el("tbody", {}, ...rows.map((cells) => el("tr", {}, ...cells.map((cell) => el("td", {}, cell)))))));
}

/** @param {Model} model @param {Head} head */
function probes(model, head) {
  const rows = model.rowsOf("probes", head).filter((row) => row.gain !== null).sort((a, b) => b.gain - a.gain);
  if (!rows.length) return null;
  const picture = intervals(rows.slice(0, MOST_PROBES).map((row) => ({
    name: row.task.replaceAll("_", " "), value: row.gain, low: row.gain_low, high: row.gain_high,
  })), "gain");
  return figure({
    title: "What a probe reads of it", name: `${model.id} ${head.name} probes`, content: picture, picture,
    note: "Gain in accuracy over the best baseline, with its 95 % interval; above 0 the head tells something.",
    rows: () => rows, sql: sql.probes(model.id, head),
  });
}

/** @param {Model} model @param {Head} head */
function importance(model, head) {
  const rows = model.rowsOf("importance", head).filter((row) => row.score !== null);
  if (!rows.length) return null;
  return figure({
    title: "How much it matters", name: `${model.id} ${head.name} importance`, rows: () => rows, sql: sql.importance(model.id, head),
    content: table(["method", "score", "place"], rows.map((row) => [row.method.replaceAll("_", " "), readable(row.score), `${row.rank + 1} of ${model.heads.length}`])),
  });
}

/** @param {import("./main.js").Page} page @param {Head} head */
function alike(page, head) {
  const rows = page.model.rows.similar_heads
    .map((row) => ({ ...row, pair: [headName(row.first_layer, row.first_head), headName(row.second_layer, row.second_head)] }))
    .filter(({ pair }) => pair.includes(head.name))
    .sort((a, b) => /** @type {any} */ (a).jensen_shannon_distance - /** @type {any} */ (b).jensen_shannon_distance).slice(0, 3);
  if (!rows.length) return null;
  return el("section", {}, el("h3", {}, "Heads that attend most alike"), el("ul", {}, ...rows.map((row) => {
    const other = row.pair[0] === head.name ? row.pair[1] : row.pair[0];
    return el("li", {}, page.anchor({ head: other }, other),
      ` at distance ${readable(/** @type {any} */ (row).jensen_shannon_distance)} of 0 to 1`);
  })));
}
