// A text as a model reads it, and what of that the address asks to see.

import { colour, css, mixed, seriesColour, valueColour } from "./colours.js";
import { MAX_STRIPES } from "./head_buttons.js";
import { clamp, readable } from "./numbers.js";
import { OWN_TEXT } from "./passages.js";
import { plain } from "./tokens.js";

/** @import { Colour } from "./colours.js" */
/** @import { Page } from "./page.js" */
/** @import { Run } from "./runs.js" */
/** @import { State } from "./state.js" */
/** @import { Head, Text } from "./study.js" */
/** @typedef {{ name: string, attention: Float32Array, tint: Colour }} Stripe  a head, or the mean of several */

const LOSS_OF_DEEPEST = 6; // nats
const CHANGE_OF_DEEPEST = 3; // nats
const STRIPE_OPACITY = 0.85; // of a weight of 1

export class Reading {
  /**
   * @param {Page} page
   * @param {Text} text
   * @param {Run} run
   * @param {Run} intact the run with all heads on
   * @param {Head[]} heads that are shown
   * @param {string[]} without heads that are off
   */
  constructor(page, text, run, intact, heads, without) {
    this.model = page.model;
    this.text = text;
    this.state = page.state;
    this.run = run;
    this.intact = intact;
    this.without = without;
    this.labels = run.tokens.map((token) => text.label(token));
    this.names = this.labels.map(plain);
    this.position = positionOf(page.state, run, intact);
    this.stripes = stripesOf(page.state, run, heads);
  }

  /**
   * A stripe's weight between token i and the one that is pointed at.
   * @param {Stripe} stripe
   * @param {number} i
   * @param {number} at
   */
  weight({ attention }, i, at) {
    return this.state.way === "to" ? attention[i * this.run.n + at] : attention[at * this.run.n + i];
  }

  /**
   * Token i in words, while one is pointed at.
   * @param {number} i
   * @param {number} at
   */
  said(i, at) {
    const name = `${i}: ${this.names[i]}`;
    const [before, loss] = [readable(this.intact.losses[i]), readable(this.run.losses[i])];
    if (this.state.colour === "loss") return `${name}, loss ${loss} nats`;
    if (this.state.colour === "change") return `${name}, loss ${before} → ${loss} nats`;
    const weights = this.stripes.map((stripe) => `, ${stripe.name} ${readable(this.weight(stripe, i, at))}`);
    return name + weights.join("");
  }

  /**
   * The colours of token i, one above the other, while one is pointed at.
   * @param {number} i
   * @param {number} at
   * @returns {string[]}
   */
  shades(i, at) {
    const loss = this.run.losses[i];
    const before = this.intact.losses[i];
    if (this.state.colour === "loss") {
      return loss === null ? [] : [css(mixed(colour("card"), colour("amber"), clamp(loss / LOSS_OF_DEEPEST, 0, 1)))];
    }
    if (this.state.colour === "change") {
      return loss === null || before === null ? [] : [css(valueColour(before - loss, CHANGE_OF_DEEPEST))];
    }
    return this.stripes.map((stripe) => {
      return css(stripe.tint, clamp(this.weight(stripe, i, at), 0, 1) * STRIPE_OPACITY);
    });
  }

  /** What the colours show. */
  get title() {
    const { state, without, position } = this;
    const off = without.join(", ");
    if (state.colour === "loss") return `Loss of each token: deepest from ${LOSS_OF_DEEPEST} nats`;
    if (state.colour === "change") {
      const bar = `orange is worse, deepest from ${CHANGE_OF_DEEPEST} nats`;
      return without.length ? `How ${off} off changes the loss: ${bar}` : "Switch heads off to see what changes";
    }
    const name = this.names[position];
    return state.way === "to" ? `Who looks at token ${position}, ${name}` : `Where token ${position}, ${name}, looks`;
  }

  /** What is seen, a row a token. */
  rows() {
    const { run, intact, position } = this;
    const way = this.state.way === "to" ? "to" : "from";
    return this.labels.map((token, i) => {
      const before = this.without.length ? { intact_loss_nats: intact.losses[i] } : {};
      const weights = this.stripes.map((stripe) => {
        return [`${stripe.name} ${way} ${position}`, this.weight(stripe, i, position)];
      });
      return { position: i, token, loss_nats: run.losses[i], ...before, ...Object.fromEntries(weights) };
    });
  }
}

/**
 * The token that is pointed at: the address's, or that which says most at first.
 * @param {State} state
 * @param {Run} run
 * @param {Run} intact
 */
function positionOf(state, run, intact) {
  if (state.token !== "") return clamp(Math.round(Number(state.token)) || 0, 0, run.n - 1);
  return state.passage === OWN_TEXT ? run.n - 1 : wellPredicted(intact);
}

/**
 * The token before the best predicted one of the second half; else the last.
 * @param {Run} run
 */
function wellPredicted({ n, losses }) {
  const later = losses.flatMap((loss, i) => (loss !== null && i > n / 2 && i < n - 1 ? [{ i, loss }] : []));
  if (!later.length) return n - 1;
  return later.reduce((best, each) => (each.loss < best.loss ? each : best)).i - 1;
}

/**
 * @param {State} state
 * @param {Run} run
 * @param {Head[]} heads
 * @returns {Stripe[]}
 */
function stripesOf(state, run, heads) {
  if (!heads.length) return [];
  const isWeighed = Boolean(state.weighed);
  if (state.average || heads.length > MAX_STRIPES) {
    const name = heads.length === 1 ? heads[0].name : `mean of ${heads.length} heads`;
    return [{ name, attention: run.meanAttention(heads, isWeighed), tint: colour("blue") }];
  }
  return heads.map((head, i) => {
    return { name: head.name, attention: run.attention(head, isWeighed), tint: seriesColour(i) };
  });
}
