// The study that the page is about, its tables turned into models, heads and checkpoints.

import { blockBytes, floatsOfHalves, unzipped } from "./blocks.js";
import { Tokenizer } from "./tokenizer.js";
import { weightsOf } from "./transformer.js";

/**
 * @typedef {Record<string, any>} Row
 * @typedef {{layer: number, head: number, name: string, place: number}} Head  place: among all heads of the model
 * @typedef {{name: string, tokens: number[]}} Passage
 * @typedef {{labels: Record<string, string>, opening: number[], passages: Passage[],
 *   tokenizer: import("./tokenizer.js").TokenizerFields | null}} TextFields
 * @typedef {{losses: number[], best: number[][], bestProbabilities: number[][], block: string}} KeptRun
 * @typedef {{text: number, sizes: import("./transformer.js").Sizes, layout: [string, number[]][],
 *   weights: Record<string, string>, kept: Record<string, KeptRun>}} NetworkFields
 * @typedef {{study: string, question: string, answer: string[], version: string, notes: string[],
 *   tables: Record<string, Record<string, any[]>>, texts: TextFields[], networks: Record<string, NetworkFields>}} Contents
 */

/** Rows of a table by the value of a column. @param {Record<string, any[]>} table @param {string} column @returns {Map<any, Row[]>} */
function rowsBy(table, column) {
  const names = Object.keys(table), groups = new Map();
  for (let i = 0; i < (table[column]?.length ?? 0); i++) {
    const row = Object.fromEntries(names.map((name) => [name, table[name][i]]));
    const group = groups.get(row[column]);
    if (group) group.push(row);
    else groups.set(row[column], [row]);
  }
  return groups;
}

/** @param {number} layer @param {number} head */
export function headName(layer, head) {
  return `L${layer}H${head}`;
}

export class Text {
  /** @param {TextFields} fields */
  constructor(fields) {
    this.labels = fields.labels;
    this.opening = fields.opening; // BOS, if there is one
    this.passages = fields.passages;
    this.tokenizer = fields.tokenizer ? new Tokenizer(fields.tokenizer) : null;
  }

  /** What a token spells; signs that don't print are escaped, but for spaces and line ends. @param {number} token */
  label(token) {
    return this.labels[token] ?? `#${token}`;
  }
}

export class Model {
  /** @param {Row} row @param {Record<string, Row[]>} rows of each table about it @param {NetworkFields | undefined} network @param {Text[]} texts */
  constructor(row, rows, network, texts) {
    this.id = row.model_id;
    this.row = row;
    this.rows = rows;
    /** @type {Head[]} */
    this.heads = [];
    /** @type {Head[][]} */
    this.layers = (row.heads_per_layer ?? []).map((/** @type {number} */ n, /** @type {number} */ layer) =>
      Array.from({ length: n }, (_, head) => {
        const found = { layer, head, name: headName(layer, head), place: this.heads.length };
        this.heads.push(found);
        return found;
      }));
    this.byName = new Map(this.heads.map((head) => [head.name, head]));
    this.checkpoints = rows.checkpoints.length ? rows.checkpoints : [{ step: 0, tokens: null }];
    const places = new Map(this.checkpoints.map((checkpoint, i) => [checkpoint.step, i]));
    /** @type {(Row | undefined)[][]} heads' scores by checkpoint and place */
    this.scored = this.checkpoints.map(() => []);
    for (const scores of rows.heads) {
      const head = this.head(headName(scores.layer, scores.head)), at = places.get(scores.step);
      if (head && at !== undefined) this.scored[at][head.place] = scores;
    }
    this.network = network;
    this.text = network ? texts[network.text] : undefined;
    /** @type {Map<number, import("./transformer.js").Weights>} */
    this.decoded = new Map();
  }

  /** What people call it: its label, and its seed where that doesn't say which. */
  get name() {
    return this.row.stands_for_label ? this.row.label : `${this.row.label}, seed ${this.row.seed}`;
  }

  get last() {
    return this.checkpoints.length - 1;
  }

  /** @param {string} name @returns {Head | undefined} */
  head(name) {
    return this.byName.get(name);
  }

  /** @param {string} score @param {number} at a checkpoint, counted from 0 @param {Head} head @returns {number | null} */
  score(score, at, head) {
    return this.scored[at]?.[head.place]?.[score] ?? null;
  }

  /** @param {Head} head @returns {string | null} */
  role(head) {
    return this.rows.roles.find((row) => row.layer === head.layer && row.head === head.head)?.role ?? null;
  }

  /** Rows of a table about one head. @param {string} table @param {Head} head */
  rowsOf(table, head) {
    return this.rows[table].filter((row) => row.layer === head.layer && row.head === head.head);
  }

  /** Steps at which the file holds its weights. */
  get runnableSteps() {
    return Object.keys(this.network?.weights ?? {}).map(Number).sort((a, b) => a - b);
  }

  /** Whether it takes texts that a reader types. */
  get takesText() {
    return this.runnableSteps.length > 0 && Boolean(this.text?.tokenizer);
  }

  /** Its weights at one of these steps. @param {number} step */
  weightsAt(step) {
    const network = /** @type {NetworkFields} */ (this.network);
    let weights = this.decoded.get(step);
    if (!weights) {
      weights = weightsOf(network.layout, floatsOfHalves(blockBytes(network.weights[step])));
      this.decoded.set(step, weights);
    }
    return weights;
  }
}

export class Study {
  /** @param {Contents} contents */
  constructor(contents) {
    this.contents = contents;
    const texts = contents.texts.map((fields) => new Text(fields));
    const { models, scores, ...others } = contents.tables;
    const byModel = Object.entries(others).map(([name, table]) => /** @type {const} */ ([name, rowsBy(table, "model_id")]));
    /** @type {Model[]} */
    this.models = [...rowsBy(models, "model_id").values()].map(([row]) => {
      const rows = Object.fromEntries(byModel.map(([name, groups]) => [name, groups.get(row.model_id) ?? []]));
      return new Model(row, rows, contents.networks[row.model_id], texts);
    });
    /** @type {{score: string, description: string}[]} */
    this.scores = [...rowsBy(scores, "score").values()].map(([row]) => /** @type {any} */ (row))
      .filter(({ score }) => this.models.some((model) => model.rows.heads.some((row) => row[score] !== null)));
  }

  /** The model of an id, or that stands for a label. @param {string} name */
  model(name) {
    return this.models.find((model) => model.id === name)
      ?? this.models.find((model) => model.row.label === name && model.row.stands_for_label);
  }
}

/** @returns {Promise<Study>} */
export async function openStudy() {
  const contents = new TextDecoder().decode(await unzipped(blockBytes("contents")));
  return new Study(JSON.parse(contents));
}
