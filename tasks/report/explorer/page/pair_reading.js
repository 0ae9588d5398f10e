// A pair of prompts side by side, what each head and feed-forward layer is worth on it, and patching by hand.

import { chooser, el, emptyNote, refill } from "./elements.js";
import { readable } from "./numbers.js";
import { OWN_PAIR, OwnPair } from "./own_pair.js";
import { effectFigure, gaugeFigure, patchSaid, promptFigure, spelled } from "./pair_figures.js";
import { PairRuns } from "./prompt_pair.js";
import { sql } from "./sql.js";

/** @import { Behaviour } from "./behaviours.js" */
/** @import { Effect } from "./effect_grid.js" */
/** @import { TokenPair } from "./pair_tokens.js" */
/** @import { Page } from "./page.js" */
/** @import { PairFields, Text } from "./study.js" */

const MAX_CACHED = 4;
const MEAN = "mean"; // what the address calls effects over the whole set
/** @type {[string, string][]} */
const WAYS = [
  ["clean", "clean run, from the corrupt one"],
  ["corrupt", "corrupt run, from the clean one"],
];

export class PairReading {
  /** @param {Page} page @param {Text} text @param {Behaviour[]} behaviours */
  constructor(page, text, behaviours) {
    this.page = page;
    this.text = text;
    this.behaviours = behaviours;
    this.runs = page.model.runnableSteps.length > 0;
    this.pair = chooser("Pair", [], (value) => page.set({ pair: value }));
    this.effects = chooser("Effects", this.effectOptions(), (value) => page.set({ effects: value }));
    this.into = chooser("Patch the", WAYS, (value) => page.set({ into: value }));
    this.own = new OwnPair(page, text);
    const on = { click: () => this.page.set({ patched: "" }) };
    this.clear = el("button", { type: "button", "data-focus": "patch nothing", on }, "Patch nothing");
    this.note = el("p", { class: "hint" });
    this.prompts = el("div");
    this.grid = el("div");
    this.gauge = el("div");
    this.said = el("p", { class: "pointed", role: "status" });
    /** @type {Map<string, PairRuns>} */
    this.cache = new Map();
    this.asked = 0; // how often; of several answers the last one asked for counts
    const controls = [this.pair, this.effects, this.into].map(({ element }) => element);
    this.element = el(
      "div",
      {},
      el("div", { class: "controls" }, ...controls, this.clear),
      this.own.element,
      this.note,
      this.prompts,
      this.gauge,
      this.grid,
    );
  }

  /** @returns {[string, string][]} */
  effectOptions() {
    /** @type {[string, string][]} */
    const onPair = this.runs ? [["", "on this pair"]] : [];
    return [...onPair, [MEAN, "mean over the set"]];
  }

  /** Begins with the pair that is shown, if that can be typed. */
  typeOwn() {
    const { page, own } = this;
    const shown = this.shown;
    page.set({ set: OWN_PAIR, patched: "", ...(shown && own.isEmpty ? own.spelled(shown) : {}) });
    own.areas[0].area.focus();
  }

  /** The prompt set of the address. */
  get behaviour() {
    return this.behaviours.find(({ name }) => name === this.page.state.set);
  }

  /** @returns {PairFields[]} */
  get pairs() {
    const { behaviour } = this;
    return (behaviour && this.page.model.network?.pairs[behaviour.name]) ?? [];
  }

  /** @returns {PairFields | undefined} */
  get shown() {
    return this.pairs[Number(this.page.state.pair)] ?? this.pairs[0];
  }

  async update() {
    const { page, own, pairs, shown } = this;
    const { state } = page;
    const isOwn = state.set === OWN_PAIR;
    const number = ++this.asked;
    own.update();
    own.element.hidden = !isOwn;
    this.pair.element.hidden = isOwn;
    this.into.element.hidden = !this.runs;
    this.effects.element.hidden = isOwn || !this.behaviour?.nodes.size;
    const options = pairs.map((each, i) => el("option", { value: i }, this.pairName(each)));
    this.pair.select.replaceChildren(...options);
    this.pair.select.value = String(shown ? pairs.indexOf(shown) : "");
    this.effects.select.value = this.isMean ? MEAN : "";
    this.into.select.value = this.isClean ? "clean" : "corrupt";
    const pair = isOwn ? own.tokens : (shown ?? "the file holds none of its pairs");
    if (typeof pair === "string") {
      this.clear.hidden = true;
      this.note.replaceChildren();
      refill(this.prompts, emptyNote(`Nothing to compare: ${pair}.`));
      refill(this.gauge);
      refill(this.grid);
      return;
    }
    const runs = this.runs ? this.runsOn(pair) : null;
    await this.show(pair, runs, number);
  }

  /** Keeps an answer that comes later from being shown. */
  stop() {
    this.asked++;
  }

  /** Whether effects over the whole set are shown. */
  get isMean() {
    const isKnown = Boolean(this.behaviour?.nodes.size);
    return isKnown && (!this.runs || this.page.state.effects === MEAN);
  }

  /** Whether the clean run is patched; else the corrupt one. */
  get isClean() {
    return this.page.state.into !== "corrupt";
  }

  /** Nodes that are patched by hand. */
  get patched() {
    const names = this.page.state.patched.split(",");
    return names.filter((name) => this.page.model.head(name) || /^L\d+MLP$/.test(name));
  }

  /** @param {PairFields} pair */
  pairName({ pair, template, answers, wrong }) {
    const against = `${spelled(this.text, answers)} or ${spelled(this.text, wrong)}`;
    return template ? `${template}: ${against}` : `pair ${pair + 1}: ${against}`;
  }

  /**
   * Its runs, those of before if they are still known.
   * @param {TokenPair} pair
   */
  runsOn(pair) {
    const { page, cache } = this;
    const key = JSON.stringify([page.runnableStep, pair.clean, pair.corrupt, pair.answers, pair.wrong]);
    let runs = cache.get(key);
    if (!runs) {
      runs = new PairRuns(page.model, page.runnableStep, pair);
      cache.set(key, runs);
      if (cache.size > MAX_CACHED) cache.delete(/** @type {string} */ (cache.keys().next().value));
    }
    return runs;
  }

  /**
   * @param {TokenPair} pair
   * @param {PairRuns | null} runs
   * @param {number} number how often was asked before
   */
  async show(pair, runs, number) {
    const { page, shown } = this;
    const whose = runs ? page.runnableName : "at its last checkpoint";
    this.note.textContent = `Log-odds of ${page.model.name} ${whose}, in nats.`;
    const seen = {
      pair,
      clean: runs ? runs.clean : (shown?.cleanNats ?? NaN),
      corrupt: runs ? runs.corrupt : (shown?.corruptNats ?? NaN),
    };
    const { isClean, isMean, behaviour } = this;
    const nodes = runs ? this.patched : [];
    const patch = { nodes, isClean, moved: runs && nodes.length ? runs.patched(isClean, nodes) : null };
    this.clear.hidden = !nodes.length;
    this.said.textContent = patchSaid(seen, patch);
    refill(this.prompts, promptFigure(page, this.text, seen));
    refill(this.gauge, gaugeFigure(page, seen, patch, this.runs && this.said));
    const effects = isMean || !runs ? this.meanEffects() : await this.pairEffects(runs);
    if (number !== this.asked) return;
    const over = isMean ? "mean over the set" : "on this pair";
    const asked = isMean && behaviour ? sql.nodeEffects(page.model.id, behaviour.name) : null;
    const about = { over, canPatch: Boolean(runs), sql: asked };
    refill(this.grid, effects.length ? effectFigure(page, effects, patch, about) : null);
  }

  /** @returns {Effect[]} */
  meanEffects() {
    return [...(this.behaviour?.nodes.entries() ?? [])].map(([node, worth]) => ({
      node,
      nats: this.isClean ? worth.effect_nats : worth.restored_nats,
      said:
        `${readable(worth.effect_nats)} nats lost without it (share ${readable(worth.share)}), ` +
        `${readable(worth.restored_nats)} put back (share ${readable(worth.restored_share)})`,
    }));
  }

  /** @param {PairRuns} runs @returns {Promise<Effect[]>} */
  async pairEffects(runs) {
    const effects = await runs.effects(this.isClean);
    const what = this.isClean ? "lost without it" : "put back";
    return [...effects].map(([node, nats]) => ({ node, nats, said: `${readable(nats)} nats ${what}` }));
  }
}
