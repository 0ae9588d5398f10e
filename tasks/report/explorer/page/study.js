// The study that the page is about, its tables turned into models, heads and checkpoints.

import { blockBytes, floatsOfHalves, unzipped } from "./blocks.js";
import { Tokenizer } from "./tokenizer.js";
import { weightsOf } from "./weights.js";

/** @import { TokenizerFields } from "./tokenizer.js" */
/** @import { Sizes } from "./transformer.js" */
/** @import { Weights } from "./weights.js" */

/** @typedef {Record<string, any>} Row */
/** @typedef {{ layer: number, head: number, name: string, place: number }} Head  place: among all heads of the model */
/** @typedef {{ name: string, tokens: number[] }} Passage */
/**
 * What a token set is, as the file has it.
 * @typedef {object} TextFields
 * @property {Record<string, string>} labels by token
 * @property {number[]} opening BOS, if there is one
 * @property {Passage[]} passages
 * @property {TokenizerFields | null} tokenizer
 */
/**
 * What a model did on a passage.
 * @typedef {object} KeptRun
 * @property {number[]} losses from the second token on, nats
 * @property {number[][]} best tokens by position
 * @property {number[][]} bestProbabilities
 * @property {string} block that holds its attention
 */
/**
 * A pair of prompts that the model was measured on, as tokens.
 * @typedef {object} PairFields
 * @property {number} pair its number in the set
 * @property {string} template
 * @property {number[]} clean
 * @property {number[]} corrupt
 * @property {number[]} answers
 * @property {number[]} wrong
 * @property {number} cleanNats
 * @property {number} corruptNats
 */
/**
 * What the file holds to run a model, or of its runs.
 * @typedef {object} NetworkFields
 * @property {number} text its token set, by place
 * @property {Sizes} sizes
 * @property {[string, number[]][]} layout
 * @property {Record<string, string>} weights blocks by step
 * @property {Record<string, KeptRun>} kept by passage
 * @property {number[]} served steps at which the program that serves the page runs it
 * @property {Record<string, PairFields[]>} pairs by prompt set
 */
/**
 * What the file holds.
 * @typedef {object} Contents
 * @property {string} study
 * @property {string} question
 * @property {string[]} answer
 * @property {string} version of a page whose study is running; else empty
 * @property {boolean} served by a program that runs models
 * @property {string[]} notes
 * @property {Record<string, Record<string, any[]>>} tables
 * @property {TextFields[]} texts
 * @property {Record<string, NetworkFields>} networks
 */

/**
 * Rows of a table by the value of a column.
 * @param {Record<string, any[]>} table
 * @param {string} column
 * @returns {Map<any, Row[]>}
 */
function rowsBy(table, column) {
  const names = Object.keys(table);
  const groups = new Map();
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

/**
 * The heads of each layer.
 * @param {number[]} sizes
 * @returns {Head[][]}
 */
function layersOf(sizes) {
  let place = 0;
  return sizes.map((n, layer) =>
    Array.from({ length: n }, (_, head) => ({ layer, head, name: headName(layer, head), place: place++ })),
  );
}

export class Text {
  /** @param {TextFields} fields */
  constructor(fields) {
    this.labels = fields.labels;
    this.opening = fields.opening;
    this.passages = fields.passages;
    this.tokenizer = fields.tokenizer ? new Tokenizer(fields.tokenizer) : null;
  }

  /**
   * What a token spells; signs that don't print are escaped, but for spaces and line ends.
   * @param {number} token
   */
  label(token) {
    return this.labels[token] ?? `#${token}`;
  }
}

/**
 * Checkpoints of which losses are known, and those whose weights are there all the same; one, if there are neither.
 * @param {Row[]} known
 * @param {number[]} steps
 * @returns {Row[]}
 */
function withSteps(known, steps) {
  const others = steps.filter((step) => !known.some((row) => row.step === step));
  const all = [...known, ...others.map((step) => ({ step, tokens: null }))];
  return all.length ? all.sort((a, b) => a.step - b.step) : [{ step: 0, tokens: null }];
}

export class Model {
  /**
   * @param {Row} row
   * @param {Record<string, Row[]>} rows of each table about it
   * @param {NetworkFields | undefined} network
   * @param {Text[]} texts
   */
  constructor(row, rows, network, texts) {
    this.id = row.model_id;
    this.row = row;
    this.rows = rows;
    this.layers = layersOf(row.heads_per_layer ?? []);
    this.heads = this.layers.flat();
    this.byName = new Map(this.heads.map((head) => [head.name, head]));
    this.network = network;
    this.checkpoints = withSteps(rows.checkpoints, this.readSteps);
    const places = new Map(this.checkpoints.map((checkpoint, i) => [checkpoint.step, i]));
    /** @type {(Row | undefined)[][]} heads' scores by checkpoint and place */
    this.scored = this.checkpoints.map(() => []);
    for (const scores of rows.heads) {
      const head = this.head(headName(scores.layer, scores.head));
      const at = places.get(scores.step);
      if (head && at !== undefined) this.scored[at][head.place] = scores;
    }
    this.text = network ? texts[network.text] : undefined;
    /** @type {Map<number, Weights>} */
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

  /**
   * @param {string} score
   * @param {number} at a checkpoint, counted from 0
   * @param {Head} head
   * @returns {number | null}
   */
  score(score, at, head) {
    return this.scored[at]?.[head.place]?.[score] ?? null;
  }

  /** @param {Head} head @returns {string | null} */
  role(head) {
    return this.rows.roles.find((row) => row.layer === head.layer && row.head === head.head)?.role ?? null;
  }

  /**
   * Rows of a table about one head.
   * @param {string} table
   * @param {Head} head
   */
  rowsOf(table, head) {
    return this.rows[table].filter((row) => row.layer === head.layer && row.head === head.head);
  }

  /**
   * The checkpoints between which a score changed abruptly; null if they aren't among these.
   * @param {Row} change
   */
  spanOf(change) {
    const place = (/** @type {string} */ column) =>
      this.checkpoints.findIndex((row) => row.tokens === change[column]);
    const start = place("window_start_tokens");
    const end = place("window_end_tokens");
    return start < 0 || end < 0 ? null : { start, end };
  }

  /** Steps at which the file holds its weights. */
  get runnableSteps() {
    return Object.keys(this.network?.weights ?? {})
      .map(Number)
      .sort((a, b) => a - b);
  }

  /** Steps at which the program that serves the page runs it. */
  get servedSteps() {
    return this.network?.served ?? [];
  }

  /** Steps at which it reads any text, here or where the page is served. */
  get readSteps() {
    return this.runnableSteps.length ? this.runnableSteps : this.servedSteps;
  }

  /** Whether it takes texts that a reader types. */
  get takesText() {
    return this.readSteps.length > 0 && Boolean(this.text?.tokenizer);
  }

  /**
   * Its weights at one of these steps.
   * @param {number} step
   */
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
    const byModel = Object.entries(others).map(([name, table]) => ({ name, groups: rowsBy(table, "model_id") }));
    /** @type {Model[]} */
    this.models = [...rowsBy(models, "model_id").values()].map(([row]) => {
      const rows = Object.fromEntries(byModel.map(({ name, groups }) => [name, groups.get(row.model_id) ?? []]));
      return new Model(row, rows, contents.networks[row.model_id], texts);
    });
    /** @type {{score: string, description: string}[]} */
    this.scores = [...rowsBy(scores, "score").values()]
      .map(([row]) => /** @type {any} */ (row))
      .filter(({ score }) => this.models.some((model) => model.rows.heads.some((row) => row[score] !== null)));
  }

  /**
   * The model of an id, or that stands for a label.
   * @param {string} name
   */
  model(name) {
    return (
      this.models.find((model) => model.id === name) ??
      this.models.find((model) => model.row.label === name && model.row.stands_for_label)
    );
  }
}

/** @returns {Promise<Study>} */
export async function openStudy() {
  const contents = new TextDecoder().decode(await unzipped(blockBytes("contents")));
  return new Study(JSON.parse(contents));
}
