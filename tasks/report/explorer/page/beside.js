// Two models beside each other: the page as each of them has it, at checkpoints that have seen as much.

import { doneTo, fullName } from "./interventions.js";
import { nearest } from "./numbers.js";
import { Page } from "./page.js";

/** @import { State } from "./state.js" */
/** @import { Model } from "./study.js" */

export const NO_MODEL = "none"; // in the address
const LEAST_WIDTH = 300; // of a picture beside another, with its frame, as in style.css
const GAP = 14;
const FRAME = 36;

/** The page of one of the two. Links lead to the model of the page itself. */
export class Side extends Page {
  /**
   * @param {Page} page
   * @param {Model} model
   * @param {string} name that tells it from the other
   */
  constructor(page, model, name) {
    super(page.study, page.address);
    this.page = page;
    this.shown = model;
    this.name = name;
  }

  get model() {
    return this.shown;
  }

  get head() {
    return this.model.head(this.page.head?.name ?? "") ?? super.head;
  }

  get at() {
    return matching(this.page.model, this.page.at, this.model);
  }

  get room() {
    const whole = document.querySelector("main")?.clientWidth ?? 0;
    return whole < 2 * LEAST_WIDTH + GAP ? this.page.room : (whole - GAP) / 2 - FRAME;
  }

  /** @param {string} title */
  titled(title) {
    return `${this.name} · ${title}`;
  }

  /** @param {number} at */
  stepName(at) {
    return this.page.stepName(matching(this.model, at, this.page.model));
  }

  /** @param {Partial<State>} changes */
  withPlace(changes) {
    return this.page.withPlace(changes);
  }
}

/**
 * The page for each model that is shown: its own, and the one beside it, if there is one.
 * @param {Page} page
 * @returns {Page[]}
 */
export function sidesOf(page) {
  const other = modelBeside(page);
  if (!other) return [page];
  const models = [page.model, other];
  const nameOf = page.model.name === other.name ? fullName : (/** @type {Model} */ model) => model.name;
  return models.map((model) => new Side(page, model, nameOf(model)));
}

/**
 * The model that the address sets beside the page's.
 * @param {Page} page
 * @returns {Model | null}
 */
export function modelBeside(page) {
  const { beside } = page.state;
  if (beside === NO_MODEL) return null;
  const others = othersOf(page);
  return others.find((model) => page.nameOf(model) === beside || model.id === beside) ?? baseOf(page);
}

/**
 * The model that stands beside it unasked: its base, if something was done to it in training.
 * @param {Page} page
 * @returns {Model | null}
 */
export function baseOf(page) {
  const base = doneTo(page.model)?.base_model_id;
  return othersOf(page).find(({ id }) => id === base) ?? null;
}

/** @param {Page} page */
export function othersOf({ study, model }) {
  return study.models.filter((other) => other !== model && other.heads.length);
}

/**
 * The checkpoint of a model that has seen about as many tokens as one of another.
 * @param {Model} from
 * @param {number} at
 * @param {Model} to
 */
function matching(from, at, to) {
  if (from === to) return at;
  const wanted = from.checkpoints[at].tokens;
  /** @type {(number | null)[]} */
  const seen = to.checkpoints.map(({ tokens }) => tokens);
  const known = seen.filter((tokens) => tokens !== null);
  return wanted === null || !known.length ? to.last : seen.indexOf(nearest(known, wanted));
}
