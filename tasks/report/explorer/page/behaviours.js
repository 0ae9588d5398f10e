// Circuits of behaviours, as the study found them on pairs of prompts.

import { grouped, readable } from "./numbers.js";

/** @import { Kind } from "./composition.js" */
/** @import { Model, Row } from "./study.js" */

/**
 * An edge of a model's graph, with what it is worth: shares of the difference between the prompts.
 * @typedef {object} PromptEdge
 * @property {string} name in the address
 * @property {string} writer
 * @property {string} reader
 * @property {Kind | "in"} port
 * @property {number} score to first order
 * @property {number | null} share exact; null if it wasn't patched by itself
 * @property {number | null} low of its 95 % interval
 * @property {number | null} high
 * @property {boolean | null} isSure
 * @property {boolean} isInCircuit
 * @property {number} resampled share of resamples that have it
 */
/**
 * What a node is worth, the mean over pairs: patched into the clean run, and put back into the corrupt one.
 * @typedef {object} NodeWorth
 * @property {number} effect_nats
 * @property {number} restored_nats
 * @property {number} share of the difference between the prompts
 * @property {number} restored_share
 */
/**
 * Circuits of one size: how much of the difference they make.
 * @typedef {object} Size
 * @property {number} n edges
 * @property {number} faithfulness of the edges with the largest scores
 * @property {number | null} completeness what is left without them
 * @property {number | null} low of random circuits
 * @property {number | null} high
 */

const EMBEDDING = "embedding";
const LOGITS = "logits";

export class Behaviour {
  /** @param {Model} model @param {Row} about it */
  constructor(model, about) {
    const ofSet = (/** @type {Row} */ row) => row.prompts === about.prompts;
    this.model = model;
    this.about = about;
    this.name = /** @type {string} */ (about.prompts);
    /** @type {PromptEdge[]} all that the file holds, the largest scores first */
    this.edges = model.rows.circuit_edges
      .filter(ofSet)
      .map(edgeOf)
      .sort((a, b) => Math.abs(b.score) - Math.abs(a.score));
    this.sizes = sizesOf(model.rows.circuit_curves.filter(ofSet), about);
    /** @type {Map<string, NodeWorth>} by node */
    this.nodes = new Map(model.rows.node_effects.filter(ofSet).map((row) => [row.node, /** @type {any} */ (row)]));
  }

  get hasCircuit() {
    return this.edges.length > 0;
  }

  /** Edges that circuits are drawn from: all, if the file has all; else those found and those surely in. */
  get ranked() {
    if (this.edges.length === this.about.n_edges) return this.edges;
    return this.edges.filter(({ isInCircuit, isSure }) => isInCircuit || isSure);
  }

  /**
   * The n edges with the largest scores, less those on no path from the embedding to the logits.
   * @param {number} n
   */
  circuit(n) {
    const chosen = this.ranked.slice(0, n);
    const fromStart = this.reached(chosen);
    const toEnd = this.leading(chosen);
    return chosen.filter(({ writer, reader }) => {
      return fromStart.has(writer) && (reader === LOGITS || this.nodesOf(reader).some((node) => toEnd.has(node)));
    });
  }

  /**
   * Nodes to which edges lead from the embedding.
   * @param {PromptEdge[]} edges
   */
  reached(edges) {
    const found = new Set([EMBEDDING]);
    for (let before = 0; before < found.size;) {
      before = found.size;
      for (const { writer, reader } of edges) {
        if (found.has(writer)) for (const node of this.nodesOf(reader)) found.add(node);
      }
    }
    return found;
  }

  /**
   * Nodes from which edges lead to the logits.
   * @param {PromptEdge[]} edges
   */
  leading(edges) {
    /** @type {Set<string>} */
    const found = new Set();
    for (let before = -1; before < found.size;) {
      before = found.size;
      for (const { writer, reader } of edges) {
        if (reader === LOGITS || this.nodesOf(reader).some((node) => found.has(node))) found.add(writer);
      }
    }
    return found;
  }

  /**
   * The nodes whose output a reader decides: of keys and values that heads share, these heads.
   * @param {string} reader
   */
  nodesOf(reader) {
    const shared = /^L(\d+)G(\d+)$/.exec(reader);
    if (!shared) return [reader];
    const [layer, group] = [Number(shared[1]), Number(shared[2])];
    const heads = this.model.layers[layer] ?? [];
    const size = heads.length / (this.model.row.n_key_value_heads ?? heads.length);
    return heads.slice(group * size, (group + 1) * size).map(({ name }) => name);
  }

  /** What the study says of it, in a sentence. */
  get said() {
    const { about, model, name } = this;
    if (about.why_refused) return `${name} wasn't measured: ${about.why_refused}.`;
    const right =
      `${model.name} is right in ${readable(about.accuracy)} of ${about.n_pairs} pairs (log-odds of the ` +
      `answer ${readable(about.clean_nats)} nats, at the corrupt prompt ${readable(about.corrupt_nats)})`;
    if (!about.can_do_it) return `${right}: that it can do ${name} is not shown, so no circuit was looked for.`;
    const size = `${grouped(about.n_edges_enough)} of ${grouped(about.n_edges)} edges`;
    return (
      `${right}. ${size} make ${readable(about.faithfulness_enough)} of ` +
      `the difference on pairs that they were not found on; ${about.n_surely_in} are surely in.`
    );
  }
}

/** @param {Model} model */
export function behavioursOf(model) {
  return model.rows.behaviours.map((about) => new Behaviour(model, about));
}

/**
 * What circuits of n edges make; of a size that didn't run, what those next to it do.
 * @param {Size[]} sizes
 * @param {number} n
 */
export function faithfulnessAt(sizes, n) {
  const exact = sizes.find((size) => size.n === n);
  if (exact) return `f = ${inShort(exact.faithfulness)}${randomAt(exact) || randomNext(sizes, n)}`;
  const beside = [sizes.findLast((size) => size.n < n), sizes.find((size) => size.n > n)];
  const known = beside.flatMap((size) => {
    return size ? [`${inShort(size.faithfulness)} at ${size.n}${randomAt(size)}`] : [];
  });
  return known.length ? `f = ${known.join(", ")}` : "";
}

/**
 * A share in two digits, never -0.00.
 * @param {number} share
 */
export function inShort(share) {
  return (Math.round(100 * share) / 100 + 0).toFixed(2);
}

/**
 * What circuits of each size make; the circuit that was found is one more.
 * @param {Row[]} rows
 * @param {Row} about
 * @returns {Size[]}
 */
function sizesOf(rows, about) {
  const sizes = rows.map((row) => ({
    n: row.n_edges,
    faithfulness: row.faithfulness,
    completeness: row.completeness,
    low: row.random_low,
    high: row.random_high,
  }));
  const [n, faithfulness] = [about.n_edges_enough, about.faithfulness_enough];
  if (!n || sizes.some((size) => size.n === n)) return sizes;
  return [...sizes, { n, faithfulness, completeness: null, low: null, high: null }].sort((a, b) => a.n - b.n);
}

/**
 * What random edges make at the next size at which any ran.
 * @param {Size[]} sizes
 * @param {number} n
 */
function randomNext(sizes, n) {
  const size = sizes.find((each) => each.n > n && each.low !== null);
  return size ? randomAt(size).replace("random edges", `${size.n} random edges`) : "";
}

/** @param {Size} size */
function randomAt({ low, high }) {
  return low === null || high === null ? "" : ` (random edges ${inShort(low)} to ${inShort(high)})`;
}

/**
 * An edge in words.
 * @param {PromptEdge} edge
 */
export function edgeName({ writer, reader, port }) {
  return `${writer} → ${port === "in" ? "" : `${port} of `}${reader}`;
}

/**
 * What an edge is worth, in words.
 * @param {PromptEdge} edge
 */
export function edgeWorth({ share, low, high, score, isSure, isInCircuit, resampled }) {
  const interval = low === null || high === null ? "" : ` (95 %: ${readable(low)} to ${readable(high)})`;
  const exact = share === null ? "not patched by itself" : `share ${readable(share)}${interval}`;
  const sure = isSure ? ", surely in" : "";
  const found = isInCircuit ? ", in the circuit" : "";
  return `${exact}, first-order ${readable(score)}${sure}${found}, in ${Math.round(100 * resampled)} % of resamples`;
}

/** @param {PromptEdge} edge what of it is known best */
export function shareOf({ share, score }) {
  return share ?? score;
}

/**
 * An edge as a row of a table.
 * @param {PromptEdge} edge
 */
export function edgeFields({ writer, reader, port, share, low, high, score, isSure, isInCircuit }) {
  const known = { share, share_low: low, share_high: high, score_share: score };
  return { writer, reader, port, ...known, surely_in: isSure, in_circuit: isInCircuit };
}

/** @param {Row} row @returns {PromptEdge} */
function edgeOf(row) {
  const { writer, reader, port } = row;
  return {
    name: `${writer}-${reader}-${port}`,
    writer,
    reader,
    port,
    score: row.score_share ?? 0,
    share: row.share,
    low: row.share_low,
    high: row.share_high,
    isSure: row.surely_in,
    isInCircuit: Boolean(row.in_circuit),
    resampled: row.resampled ?? 0,
  };
}
