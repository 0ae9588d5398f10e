// A pair of heads of which one reads the other: what is known of them, and their patterns on a passage.

import { attentionMatrix, attentionRows } from "./attention_matrix.js";
import { causalCheck, KIND_COLOURS, KIND_WORDS } from "./composition.js";
import { el } from "./elements.js";
import { figure } from "./figure.js";
import { readable } from "./numbers.js";
import { plain } from "./tokens.js";
import { product } from "./arrays.js";

/** @import { Edge, Kind } from "./composition.js" */
/** @import { Page } from "./page.js" */
/** @import { Run } from "./runs.js" */
/** @import { Model } from "./study.js" */

/** @type {Record<Kind, string>} */
const COMPOSED = {
  K: "Where the keys that the reader looks at come from, through the writer: its pattern times the writer's.",
  V: "Where what the reader moves comes from, through the writer: its pattern times the writer's.",
  Q: "Where the reader looks, by the token that the writer brought to its query: mean over queries.",
};

/** @param {Model} model @param {Edge} edge */
export function pairHeading(model, edge) {
  const { writer, reader, kind, score, z, significant } = edge;
  const beyond = z === null ? "" : `, z = ${readable(z)}`;
  const verdict = significant ? ", significant" : ", not significant";
  const measured = `composition score ${readable(score)}${beyond}${significant === null ? "" : verdict}`;
  const reads = `${reader.name} reads ${writer.name} with its ${KIND_WORDS[kind]}`;
  return [
    el("h3", {}, `${writer.name} → ${reader.name} by ${kind}`),
    el("p", {}, `${reads}: ${measured}.${causalSentence(model, edge)}`),
  ];
}

/** @param {Model} model @param {Edge} edge */
function causalSentence(model, edge) {
  const check = causalCheck(model, edge);
  if (!check || check.prefix_matching === null) return "";
  const { writer, reader, kind } = edge;
  const [before, after] = [readable(check.prefix_matching), readable(check.prefix_matching_without)];
  const rise = `the loss ${readable(check.loss_effect_nats)} nats higher`;
  const without = `Without ${writer.name} in its ${KIND_WORDS[kind]}`;
  return ` ${without}, ${reader.name}'s prefix matching is ${after} instead of ${before}, and ${rise}.`;
}

/**
 * The patterns of both heads on a passage, and what they come to together.
 * @param {Page} page
 * @param {Edge} edge
 * @param {Run} run
 */
export function pairFigures({ model }, edge, run) {
  const { writer, reader, kind } = edge;
  const tokens = run.tokens.map((token) => plain(model.text?.label(token) ?? ""));
  const [early, late] = [run.pattern(writer), run.pattern(reader)];
  const shown = [
    { name: `${writer.name}, the writer`, attention: early, note: "What it copies from where." },
    { name: `${reader.name}, the reader`, attention: late, note: "Where it looks." },
    { name: "composed", attention: composed(early, late, run.n, kind), note: COMPOSED[kind] },
  ];
  return shown.map(({ name, attention, note }) =>
    figure({
      title: name,
      name: `${model.id} ${edge.name} ${name}`,
      note,
      picture: attentionMatrix({ name, attention, tokens }, { side: 300, tint: KIND_COLOURS[kind] }),
      rows: () => attentionRows({ name, attention, tokens }),
      sql: null,
    }),
  );
}

/**
 * @param {Float32Array} early of the writer
 * @param {Float32Array} late of the reader
 * @param {number} n
 * @param {Kind} kind
 */
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
