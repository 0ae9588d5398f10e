// Composition of one kind as a map: a row a head that writes, a column a head that reads.

import { edgeRow, KIND_COLOURS, KIND_WORDS } from "./composition.js";
import { figure } from "./figure.js";
import { matrix } from "./matrix.js";
import { readable } from "./numbers.js";
import { sql } from "./sql.js";

/** @import { Edge, Kind } from "./composition.js" */
/** @import { Page } from "./page.js" */

/**
 * @param {Page} page
 * @param {Edge[]} edges of all kinds
 * @param {Kind} kind
 * @param {number} most that any is above chance
 * @param {number} step
 */
export function compositionMap(page, edges, kind, most, step) {
  const { model } = page;
  const own = edges.filter((edge) => edge.kind === kind);
  const byName = new Map(own.map((edge) => [edge.name, edge]));
  // Heads of the last layer write to none, those of the first read none: neither has a row or a column.
  const writers = model.heads.filter((head) => head.layer < model.layers.length - 1);
  const readers = model.heads.filter((head) => head.layer > 0);
  const at = (/** @type {number} */ row, /** @type {number} */ column) =>
    byName.get(`${writers[row].name}-${readers[column].name}-${kind}`);
  const chosen = byName.get(page.state.edge);
  const picture = matrix({
    rows: writers.length,
    columns: readers.length,
    value: (row, column) => at(row, column)?.above ?? null,
    most,
    side: 300,
    tint: KIND_COLOURS[kind],
    label: `${kind}-composition of all pairs`,
    rowName: (row) => writers[row].name,
    columnName: (column) => readers[column].name,
    rowTitle: "writes",
    columnTitle: "reads",
    chosen: chosen ? [writers.indexOf(chosen.writer), readers.indexOf(chosen.reader)] : null,
    hint: (row, column) => {
      const edge = at(row, column);
      return edge ? `${edge.writer.name} → ${edge.reader.name}: ${readable(edge.score)}` : "";
    },
    onChoose: (row, column) => {
      const edge = at(row, column);
      if (edge) page.set({ edge: edge.name });
    },
  });
  const deepest = `deepest ${readable(most)} above it`;
  return figure({
    title: `${kind}-composition`,
    name: `${model.id} ${kind}-composition step ${step}`,
    note: `Rows write, columns read with their ${KIND_WORDS[kind]}; blank is what chance gives or less, ${deepest}.`,
    picture,
    rows: () => own.map(edgeRow),
    sql: sql.compositions(model.id, step),
  });
}
