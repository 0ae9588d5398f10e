// Attention as a square, a row a query, and as rows of a table.

import { matrix } from "./matrix.js";
import { readable } from "./numbers.js";

/**
 * @typedef {object} Attention
 * @property {string} name of the head
 * @property {Float32Array} attention [query, key]
 * @property {string[]} tokens
 */
/**
 * @typedef {object} AttentionLook
 * @property {number} side
 * @property {string} [tint]
 * @property {number} [query] whose row is marked
 * @property {(query: number) => void} [onChoose]
 */

/** @param {Attention} shown @param {AttentionLook} look */
export function attentionMatrix({ name, attention, tokens }, { side, tint, query, onChoose = () => {} }) {
  const n = tokens.length;
  const weight = (/** @type {number} */ q, /** @type {number} */ k) => attention[q * n + k];
  return matrix({
    rows: n,
    columns: n,
    value: (q, k) => (k > q ? null : weight(q, k)),
    most: 1,
    side,
    tint,
    label: `Attention of ${name}`,
    rowName: (q) => tokens[q],
    columnName: (k) => tokens[k],
    rowTitle: "looks",
    columnTitle: "looked at",
    chosen: query === undefined ? null : [query, null],
    onChoose,
    hint: (q, k) => (k > q ? "" : `${q} ${tokens[q]} → ${k} ${tokens[k]}: ${readable(weight(q, k))}`),
  });
}

/** @param {Attention} shown */
export function attentionRows({ attention, tokens }) {
  const n = tokens.length;
  return tokens.flatMap((query, q) =>
    tokens.slice(0, q + 1).map((key, k) => {
      return { query: q, key: k, query_token: query, key_token: key, weight: attention[q * n + k] };
    }),
  );
}
