// What the views share: the study, the model, head and checkpoint that the address names, and links to others.

import { el } from "./elements.js";
import { clamp, nearest, shortCount } from "./numbers.js";

/** @import { Address, State } from "./state.js" */
/** @import { Head, Model, Study } from "./study.js" */

/**
 * A view of one model.
 * @typedef {object} OpenView
 * @property {HTMLElement} element
 * @property {() => void} [update] shows what the address now says
 * @property {() => void} [stop] ends what goes on by itself
 */

/**
 * A tab of the page. A module NAME_view.js is found by its name, and exports one of these as `view`.
 * @typedef {object} View
 * @property {string} name in the address
 * @property {string} title
 * @property {number} place among the tabs
 * @property {boolean} [hasCard] whether the chosen head's card is beside it
 * @property {boolean} [hasSlider] whether the slider of checkpoints is above it
 * @property {(page: Page) => OpenView} open
 */

const FIRST_SCORE = "induction_random_period";

export class Page {
  /** @param {Study} study @param {Address} address */
  constructor(study, address) {
    this.study = study;
    this.address = address;
  }

  get state() {
    return this.address.state;
  }

  /** The model of the address; of an address that names none, the first. */
  get model() {
    return this.study.model(this.state.model) ?? this.study.models[0];
  }

  /**
   * The head of the address; of an address that names none, the one with most induction or, where that wasn't
   * measured, the one that carries most of a behaviour.
   * @returns {Head | null}
   */
  get head() {
    const { model } = this;
    const asked = model.head(this.state.head);
    if (asked || !model.heads.length) return asked ?? null;
    const share = new Map(model.rows.node_effects.map((row) => [row.node, Math.abs(row.share ?? 0)]));
    const value = (/** @type {Head} */ head) =>
      this.study.scores.length ? (model.score(FIRST_SCORE, model.last, head) ?? 0) : (share.get(head.name) ?? 0);
    return model.heads.reduce((best, head) => (value(head) > value(best) ? head : best));
  }

  /** The checkpoint nearest to the address's, counted from 0. */
  get at() {
    const { model, state } = this;
    const asked = Number(state.at);
    if (state.at === "" || Number.isNaN(asked)) return model.last;
    const steps = model.checkpoints.map(({ step }) => step);
    return steps.indexOf(nearest(steps, asked));
  }

  /** The training step of that checkpoint. */
  get step() {
    return this.model.checkpoints[this.at].step;
  }

  /** The nearest step at which the model reads any text; of one that reads none, the last, of which runs are kept. */
  get runnableStep() {
    const { readSteps, checkpoints, last } = this.model;
    return readSteps.length ? nearest(readSteps, this.step) : checkpoints[last].step;
  }

  get score() {
    const names = this.study.scores.map(({ score }) => score);
    return [this.state.score, FIRST_SCORE].find((name) => names.includes(name)) ?? names[0];
  }

  /** How wide pictures are that have the view to themselves, in CSS pixels. */
  get room() {
    return clamp((document.querySelector("main")?.clientWidth ?? 640) - 36, 280, 820);
  }

  /**
   * A checkpoint in words.
   * @param {number} at
   */
  when(at) {
    const { last } = this.model;
    return last ? `${this.seen(at)} (checkpoint ${at + 1} of ${last + 1})` : this.seen(at);
  }

  /** The checkpoint of the weights that run, in words. */
  get runnableName() {
    const at = this.model.checkpoints.findIndex(({ step }) => step === this.runnableStep);
    return `after ${this.when(at < 0 ? this.model.last : at)}`;
  }

  /**
   * How much a checkpoint has seen.
   * @param {number} at
   */
  seen(at) {
    const { step, tokens } = this.model.checkpoints[at];
    return tokens === null ? `step ${step}` : `${shortCount(tokens)} tokens`;
  }

  /**
   * The title of a figure; of two models beside each other it says of which.
   * @param {string} title
   */
  titled(title) {
    return title;
  }

  /**
   * What the address calls a checkpoint: nothing if it is the last.
   * @param {number} at
   */
  stepName(at) {
    return at === this.model.last ? "" : String(this.model.checkpoints[at].step);
  }

  /**
   * What a link calls a model: its label if it stands for that.
   * @param {Model} model
   */
  nameOf(model) {
    return model.row.stands_for_label ? model.row.label : model.id;
  }

  /** @param {Partial<State>} changes */
  set(changes) {
    this.address.set(this.withPlace(changes));
  }

  /** @param {Partial<State>} changes */
  link(changes) {
    return this.address.link(this.withPlace(changes));
  }

  /** @param {Partial<State>} changes */
  withPlace(changes) {
    return { model: this.nameOf(this.model), head: this.head?.name ?? "", ...changes };
  }

  /**
   * A link that, followed, keeps what has changed since it was made.
   * @param {Partial<State>} changes
   * @param {string} text
   */
  anchor(changes, text) {
    const click = (/** @type {MouseEvent} */ event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return; // to another tab or window
      event.preventDefault();
      this.set(changes);
    };
    return el("a", { href: this.link(changes), on: { click } }, text);
  }
}
