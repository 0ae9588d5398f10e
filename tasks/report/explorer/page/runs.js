// What a model does on a passage: computed here where the page holds its weights, else as it was kept.

import { blockBytes, floatsOfHalves, unzipped } from "./blocks.js";
import { forward } from "./transformer.js";

/** @typedef {import("./study.js").Model} Model @typedef {import("./study.js").Head} Head */
/** @typedef {{token: number, probability: number}} Prediction */

const MOST_CACHED = 12;

export class Run {
  /**
   * @param {number[]} tokens @param {number} step
   * @param {(head: Head) => Float32Array} pattern attention [query, key]
   * @param {(head: Head) => Float32Array} lengths how long what a head would write of each key is
   * @param {(number | null)[]} losses of each token as it was predicted, nats; the first one wasn't
   * @param {(position: number, n: number) => Prediction[]} best predictions of the token after a position
   * @param {(position: number, token: number) => number | null} probability
   */
  constructor(tokens, step, pattern, lengths, losses, best, probability) {
    this.tokens = tokens;
    this.step = step;
    this.pattern = pattern;
    this.lengths = lengths;
    this.losses = losses;
    this.best = best;
    this.probability = probability;
  }

  get n() {
    return this.tokens.length;
  }

  /** Attention of a head, or its share of the lengths that it mixes. @param {Head} head @param {boolean} weighed */
  attention(head, weighed) {
    const pattern = this.pattern(head);
    if (!weighed) return pattern;
    const lengths = this.lengths(head), out = new Float32Array(pattern.length);
    for (let q = 0; q < this.n; q++) {
      let total = 0;
      for (let k = 0; k <= q; k++) total += out[q * this.n + k] = pattern[q * this.n + k] * lengths[k];
      for (let k = 0; total > 0 && k <= q; k++) out[q * this.n + k] /= total;
    }
    return out;
  }

  /** Mean attention of several heads. @param {Head[]} heads @param {boolean} weighed */
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
 * @param {Model} model @param {number} step the nearest of those that the page has @param {number[]} tokens
 * @param {number | null} passage which one of the text's the tokens are, if any @param {string[]} off heads without output
 * @returns {Promise<Run | null>} null where the page has neither weights nor a run
 */
export function runOn(model, step, tokens, passage, off) {
  const key = JSON.stringify([model.id, step, tokens, off]);
  const known = cache.get(key);
  if (known) return known;
  const run = model.runnableSteps.length ? computed(model, step, tokens, off)
    : passage !== null && model.network?.kept[passage] ? kept(model, passage, tokens) : Promise.resolve(null);
  cache.set(key, run);
  if (cache.size > MOST_CACHED) cache.delete(/** @type {string} */ (cache.keys().next().value));
  return run;
}

/** @param {Model} model @param {number} step @param {number[]} tokens @param {string[]} off */
async function computed(model, step, tokens, off) {
  const network = /** @type {import("./study.js").NetworkFields} */ (model.network);
  const { sizes } = network, without = new Set(off);
  const pass = forward(sizes, model.weightsAt(step), tokens, (layer, head) => without.has(`L${layer}H${head}`));
  const logits = tokens.map((_, position) => pass.logits.subarray(position * sizes.dVocab, (position + 1) * sizes.dVocab));
  const totals = logits.map(logSumExp);
  /** @param {number} position @param {number} token */
  const probability = (position, token) => Math.exp(logits[position][token] - totals[position]);
  return new Run(
    tokens, step,
    (head) => pass.patterns[head.layer][head.head],
    (head) => pass.lengths[head.layer][head.head],
    tokens.map((token, position) => (position ? totals[position - 1] - logits[position - 1][token] : null)),
    (position, n) => [...logits[position].keys()].sort((a, b) => logits[position][b] - logits[position][a]).slice(0, n)
      .map((token) => ({ token, probability: probability(position, token) })),
    probability,
  );
}

/** @param {Float32Array} logits */
function logSumExp(logits) {
  const highest = logits.reduce((most, logit) => Math.max(most, logit), -Infinity);
  return highest + Math.log(logits.reduce((total, logit) => total + Math.exp(logit - highest), 0));
}

/** @param {Model} model @param {number} passage @param {number[]} tokens */
async function kept(model, passage, tokens) {
  const network = /** @type {import("./study.js").NetworkFields} */ (model.network);
  const fields = network.kept[passage], bytes = await unzipped(blockBytes(fields.block));
  const n = fields.best.length, size = n * (n + 1) / 2, nHeads = model.heads.length;
  const lengths = floatsOfHalves(bytes.subarray(nHeads * size));
  const predictions = fields.best.map((tokens, position) =>
    tokens.map((token, i) => ({ token, probability: fields.bestProbabilities[position][i] })));
  return new Run(
    tokens.slice(0, n), model.checkpoints[model.last].step,
    (head) => {
      const pattern = new Float32Array(n * n);
      for (let q = 0, i = head.place * size; q < n; q++) {
        for (let k = 0; k <= q; k++) pattern[q * n + k] = bytes[i++] / 255;
      }
      return pattern;
    },
    (head) => lengths.subarray(head.place * n, (head.place + 1) * n),
    [null, ...fields.losses],
    (position, most) => predictions[position].slice(0, most),
    (position, token) => predictions[position].find((each) => each.token === token)?.probability
      ?? (token === tokens[position + 1] ? Math.exp(-fields.losses[position]) : null),
  );
}
