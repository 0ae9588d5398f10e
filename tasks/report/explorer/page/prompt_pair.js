// A pair of prompts as a model reads it: its runs at both, and what each node is worth between them.

import { logOdds, patchedLogits, promptRun } from "./patching.js";

/** @import { Asked, PromptRun } from "./patching.js" */
/** @import { TokenPair } from "./pair_tokens.js" */
/** @import { Model, NetworkFields } from "./study.js" */

const MS_AT_A_TIME = 40; // between pauses in which the page answers

export class PairRuns {
  /** @param {Model} model @param {number} step @param {TokenPair} pair */
  constructor(model, step, pair) {
    this.sizes = /** @type {NetworkFields} */ (model.network).sizes;
    this.weights = model.weightsAt(step);
    /** @type {Asked} */
    this.asked = pair;
    this.runs = {
      clean: promptRun(this.sizes, this.weights, pair.clean),
      corrupt: promptRun(this.sizes, this.weights, pair.corrupt),
    };
    /** @type {Record<string, Promise<Map<string, number>>>} by the run that is patched */
    this.found = {};
  }

  get clean() {
    return logOdds(this.runs.clean.logits, this.asked);
  }

  get corrupt() {
    return logOdds(this.runs.corrupt.logits, this.asked);
  }

  /**
   * Log-odds if some nodes write what they write at the other prompt.
   * @param {boolean} isClean whether the clean run is patched; else the corrupt one
   * @param {string[]} nodes
   */
  patched(isClean, nodes) {
    const { clean, corrupt } = this.runs;
    /** @type {[PromptRun, PromptRun]} */
    const both = isClean ? [clean, corrupt] : [corrupt, clean];
    return logOdds(patchedLogits(this.sizes, this.weights, ...both, nodes), this.asked);
  }

  /**
   * What each node is worth by itself: how much the log-odds fall in the clean run, or rise in the corrupt one.
   * @param {boolean} isClean
   */
  effects(isClean) {
    return (this.found[String(isClean)] ??= this.computed(isClean));
  }

  /** @param {boolean} isClean */
  async computed(isClean) {
    const before = isClean ? this.clean : this.corrupt;
    /** @type {Map<string, number>} */
    const effects = new Map();
    let started = performance.now();
    for (const node of this.runs.clean.outputs.keys()) {
      const after = this.patched(isClean, [node]);
      effects.set(node, isClean ? before - after : after - before);
      if (performance.now() - started > MS_AT_A_TIME) {
        await new Promise((resolve) => setTimeout(resolve));
        started = performance.now();
      }
    }
    return effects;
  }
}
