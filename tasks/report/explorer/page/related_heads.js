// Heads that a head reads, that read it, and that do as it does.

import { causalCheck, edgesAt, KIND_WORDS } from "./composition.js";
import { el } from "./elements.js";
import { readable } from "./numbers.js";
import { headName } from "./study.js";

/** @import { Edge, Kind } from "./composition.js" */
/** @import { Page } from "./page.js" */
/** @import { Head, Model } from "./study.js" */

const MAX_LINKS = 8; // heads read, or reading
const MAX_ALIKE = 3;
const MIN_CHANGE = 0.02; // of prefix matching that is worth a word

/** @param {Page} page @param {Head} head */
export function neighbours(page, head) {
  const { model } = page;
  if (!model.rows.compositions.length) return null;
  const strength = (/** @type {Edge} */ edge) => edge.z ?? edge.score;
  const edges = edgesAt(model, model.checkpoints[model.last].step).filter(({ significant }) => significant !== false);
  edges.sort((a, b) => strength(b) - strength(a));
  const read = edges.filter(({ reader }) => reader === head);
  const readBy = edges.filter(({ writer }) => writer === head);
  return el(
    "section",
    { class: "pairs" },
    el("div", {}, el("h3", {}, "Heads it reads"), edgeList(page, read, "writer"), ...jointSentences(model, head)),
    el("div", {}, el("h3", {}, "Heads that read it"), edgeList(page, readBy, "reader")),
  );
}

/**
 * @param {Page} page
 * @param {Edge[]} edges
 * @param {"writer" | "reader"} side that is listed
 */
function edgeList(page, edges, side) {
  if (!edges.length) return el("p", { class: "hint" }, "no head, significantly");
  const whose = side === "writer" ? "its" : "their";
  const items = edges.slice(0, MAX_LINKS).map((edge) => {
    const other = edge[side].name;
    const size = edge.z === null ? `score ${readable(edge.score)}` : `z = ${readable(edge.z)}`;
    const toHead = page.anchor({ head: other }, other);
    const toEdge = page.anchor({ view: "circuits", edge: edge.name }, size);
    return el("li", {}, toHead, ` by ${whose} ${KIND_WORDS[edge.kind]} `, toEdge, checked(page.model, edge));
  });
  const others = edges.length - MAX_LINKS;
  return el("ul", {}, ...items, others > 0 && el("li", { class: "hint" }, `and ${others} more`));
}

/**
 * What became of the head without all earlier heads that its induction takes, by queries, keys and values.
 * @param {Model} model
 * @param {Head} head
 */
function jointSentences({ rows }, head) {
  const own = rows.joint_checks.filter((row) => headName(row.reader_layer, row.reader_head) === head.name);
  return own.map((row) => {
    const [what, measure] =
      row.kind === "V"
        ? ["the logit of what followed", "induction_copying_logit"]
        : ["prefix matching", "prefix_matching"];
    const change = `${readable(row[`${measure}_without`])} instead of ${readable(row[measure])}`;
    return el(
      "p",
      {},
      `Without ${row.writers} in its ${KIND_WORDS[/** @type {Kind} */ (row.kind)]}: ${what} ${change}.`,
    );
  });
}

/**
 * What became of the reader without the writer, in a few words.
 * @param {Model} model
 * @param {Edge} edge
 */
function checked(model, edge) {
  const check = causalCheck(model, edge);
  if (!check || check.prefix_matching === null) return "";
  const { prefix_matching: before, prefix_matching_without: after } = check;
  if (Math.abs(before - after) < MIN_CHANGE) return "";
  return `: without it, prefix matching ${readable(after)} instead of ${readable(before)}`;
}

/** @param {Page} page @param {Head} head */
export function headsAlike(page, head) {
  const found = page.model.rows.similar_heads.flatMap((row) => {
    const pair = [headName(row.first_layer, row.first_head), headName(row.second_layer, row.second_head)];
    const other = pair[0] === head.name ? pair[1] : pair[0];
    const distance = /** @type {number} */ (row.jensen_shannon_distance);
    return pair.includes(head.name) ? [{ other, distance }] : [];
  });
  if (!found.length) return null;
  const nearest = found.sort((a, b) => a.distance - b.distance).slice(0, MAX_ALIKE);
  const items = nearest.map(({ other, distance }) => {
    return el("li", {}, page.anchor({ head: other }, other), ` at distance ${readable(distance)} of 0 to 1`);
  });
  return el("section", {}, el("h3", {}, "Heads that attend most alike"), el("ul", {}, ...items));
}
