// What a model does on a passage: computed here where the page holds its weights, else as it was kept.

import { blockBytes, floatsOfHalves, unzipped } from "./blocks.js";
import { askServer } from "./served.js";
import { forward } from "./transformer.js";

/** @import { Head, KeptRun, Model, NetworkFields } from "./study.js" */
/** @typedef {{ token: number, probability: number }} Prediction */

const MAX_CACHED = 12;

/**
 * @typedef {object} RunFields
 * @property {number[]} tokens
 * @property {(head: Head) => Float32Array} pattern attention [query, key]
 * @property {(head: Head) => Float32Array} lengths how long what a head would write of each key is
 * @property {(number | null)[]} losses of each token as it was predicted, nats; the first one wasn't
 * @property {(position: number, most: number) => Prediction[]} best predictions of the token after a position
 * @property {(position: number, token: number) => number | null} probability
 */

export class Run {
  /** @param {RunFields} fields */
  constructor(fields) {
    this.tokens = fields.tokens;
    this.pattern = fields.pattern;
    this.lengths = fields.lengths;
    this.losses = fields.losses;
    this.best = fields.best;
    this.probability = fields.probability;
  }

  get n() {
    return this.tokens.length;
  }

  /**
   * Attention of a head, or its share of the lengths that it mixes.
   * @param {Head} head
   * @param {boolean} weighed
   */
  attention(head, weighed) {
    const pattern = this.pattern(head);
    if (!weighed) return pattern;
    const lengths = this.lengths(head);
    const out = new Float32Array(pattern.length);
    for (let q = 0; q < this.n; q++) {
      let total = 0;
      for (let k = 0; k <= q; k++) total += out[q * this.n + k] = pattern[q * this.n + k] * lengths[k];
      for (let k = 0; total > 0 && k <= q; k++) out[q * this.n + k] /= total;
    }
    return out;
  }

  /**
   * Mean attention of several heads.
   * @param {Head[]} heads
   * @param {boolean} weighed
   */
  meanAttention(heads, weighed) {
    const mean = new Float32Array(this.n ** 2);
    for (const head of heads) {
      const attention = this.attention(head, weighed);
      for (let i = 0; i < mean.length; i++) mean[i] += attention[i] / heads.length;
    }
    return mean;
  }
}

/** @type {Map<string, Promise<Run | null>>} */
const cache = new Map();

/**
 * @param {Model} model
 * @param {number} step the nearest of those that the page has
 * @param {number[]} tokens
 * @param {number | null} passage which one of the text's the tokens are, if any
 * @param {string[]} off heads without output
 * @returns {Promise<Run | null>} null where the page has neither weights nor a run
 */
export function runOn(model, step, tokens, passage, off) {
  const key = JSON.stringify([model.id, step, tokens, off]);
  const known = cache.get(key);
  if (known) return known;
  const run = made(model, step, tokens, passage, off);
  cache.set(key, run);
  if (model.servedSteps.length) run.then((found) => found ?? cache.delete(key)); // the server may come back
  if (cache.size > MAX_CACHED) cache.delete(/** @type {string} */ (cache.keys().next().value));
  return run;
}

/**
 * @param {Model} model
 * @param {number} step
 * @param {number[]} tokens
 * @param {number | null} passage
 * @param {string[]} off
 * @returns {Promise<Run | null>}
 */
function made(model, step, tokens, passage, off) {
  if (model.runnableSteps.length) return computed(model, step, tokens, off);
  return model.servedSteps.length ? served(model, step, tokens, off) : kept(model, passage, tokens);
}

/**
 * @param {Model} model
 * @param {number} step
 * @param {number[]} tokens
 * @param {string[]} off
 */
async function computed(model, step, tokens, off) {
  const network = /** @type {NetworkFields} */ (model.network);
  const { sizes } = network;
  const without = new Set(off);
  const pass = forward(sizes, model.weightsAt(step), tokens, (name, own) => (without.has(name) ? null : own));
  const logits = tokens.map((_, position) =>
    pass.logits.subarray(position * sizes.dVocab, (position + 1) * sizes.dVocab),
  );
  const totals = logits.map(logSumExp);
  const loss = (/** @type {number} */ token, /** @type {number} */ after) => totals[after] - logits[after][token];
  /** @param {number} position @param {number} token */
  const probability = (position, token) => Math.exp(logits[position][token] - totals[position]);
  /** @param {number} position @param {number} most */
  const best = (position, most) => {
    const own = logits[position];
    const ranked = [...own.keys()].sort((a, b) => own[b] - own[a]).slice(0, most);
    return ranked.map((token) => ({ token, probability: probability(position, token) }));
  };
  return new Run({
    tokens,
    pattern: ({ layer, head }) => pass.patterns[layer][head],
    lengths: ({ layer, head }) => pass.lengths[layer][head],
    losses: tokens.map((token, position) => (position ? loss(token, position - 1) : null)),
    best,
    probability,
  });
}

/** @param {Float32Array} logits */
function logSumExp(logits) {
  const highest = logits.reduce((most, logit) => Math.max(most, logit), -Infinity);
  return highest + Math.log(logits.reduce((total, logit) => total + Math.exp(logit - highest), 0));
}

/**
 * @param {Model} model
 * @param {number | null} passage
 * @param {number[]} tokens
 */
async function kept(model, passage, tokens) {
  const fields = passage === null ? undefined : model.network?.kept[passage];
  if (!fields) return null;
  return runOf(model, tokens, fields, await unzipped(blockBytes(fields.block)));
}

/**
 * @param {Model} model
 * @param {number} step
 * @param {number[]} tokens
 * @param {string[]} off
 */
async function served(model, step, tokens, off) {
  const answer = await askServer(model, step, tokens, off);
  return answer && runOf(model, tokens, answer.fields, answer.bytes);
}

/**
 * @param {Model} model
 * @param {number[]} tokens
 * @param {Omit<KeptRun, "block">} fields
 * @param {Uint8Array} bytes attention and lengths
 */
function runOf(model, tokens, fields, bytes) {
  const n = fields.best.length;
  const size = (n * (n + 1)) / 2; // of a head's pattern: the keys up to each query
  const lengths = floatsOfHalves(bytes.subarray(model.heads.length * size));
  const predictions = fields.best.map((best, position) =>
    best.map((token, i) => ({ token, probability: fields.bestProbabilities[position][i] })),
  );
  /** @param {Head} head */
  const pattern = (head) => {
    const square = new Float32Array(n * n);
    for (let q = 0, i = head.place * size; q < n; q++) {
      for (let k = 0; k <= q; k++) square[q * n + k] = bytes[i++] / 255;
    }
    return square;
  };
  /** @param {number} position @param {number} token */
  const probability = (position, token) => {
    const found = predictions[position].find((each) => each.token === token);
    if (found) return found.probability;
    return token === tokens[position + 1] ? Math.exp(-fields.losses[position]) : null;
  };
  return new Run({
    tokens: tokens.slice(0, n),
    pattern,
    lengths: (head) => lengths.subarray(head.place * n, (head.place + 1) * n),
    losses: [null, ...fields.losses],
    best: (position, most) => predictions[position].slice(0, most),
    probability,
  });
}
