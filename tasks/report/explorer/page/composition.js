// Composition of pairs of heads, as the study measured it.

import { headName } from "./study.js";

/** @import { Head, Model } from "./study.js" */

/** @typedef {"Q" | "K" | "V"} Kind */
/**
 * @typedef {object} Edge
 * @property {string} name in the address
 * @property {Head} writer
 * @property {Head} reader
 * @property {Kind} kind
 * @property {number} score
 * @property {number} above the score less what heads turned at random give
 * @property {number | null} z
 * @property {boolean | null} significant
 */

/** @type {Kind[]} */
export const KINDS = ["Q", "K", "V"];
/** @type {Record<Kind, string>} */
export const KIND_COLOURS = { Q: "blue", K: "orange", V: "green" };
/** @type {Record<Kind, string>} */
export const KIND_WORDS = { Q: "queries", K: "keys", V: "values" };
const FIRST_EDGES = 12; // above the bar at first
const FIRST_SIGNIFICANT = 60;

/**
 * @param {Model} model
 * @param {number} step
 * @returns {Edge[]}
 */
export function edgesAt(model, step) {
  const rows = model.rows.compositions.filter((row) => row.step === step && row.score !== null);
  return rows.flatMap(({ kind, score, chance, z, significant, ...row }) => {
    const writer = model.head(headName(row.writer_layer, row.writer_head));
    const reader = model.head(headName(row.reader_layer, row.reader_head));
    if (!writer || !reader) return [];
    const name = `${writer.name}-${reader.name}-${kind}`;
    return [{ name, writer, reader, kind, score, above: score - (chance ?? 0), z, significant }];
  });
}

/**
 * The bar at first: the highest pairs are above it, of significant ones more than of others.
 * @param {Edge[]} edges
 */
export function firstBar(edges) {
  const significant = edges.filter((edge) => edge.significant);
  const most = significant.length ? FIRST_SIGNIFICANT : FIRST_EDGES;
  const ranked = (significant.length ? significant : edges).map(({ above }) => above).sort((a, b) => b - a);
  return Math.max(0, ranked[Math.min(most, ranked.length) - 1]);
}

/**
 * An edge as a row of a table.
 * @param {Edge} edge
 */
export function edgeRow({ writer, reader, kind, score, above, z }) {
  return { writer: writer.name, reader: reader.name, kind, score, above_chance: above, z };
}

/**
 * What became of the reader without the writer; undefined if nobody tried.
 * @param {Model} model
 * @param {Edge} edge
 */
export function causalCheck(model, { writer, reader, kind }) {
  return model.rows.causal_checks.find((row) => {
    const names = [headName(row.writer_layer, row.writer_head), headName(row.reader_layer, row.reader_head)];
    return names[0] === writer.name && names[1] === reader.name && row.kind === kind;
  });
}
