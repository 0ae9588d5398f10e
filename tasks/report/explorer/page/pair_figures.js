// What is seen of a pair of prompts: both side by side, their log-odds, and what each node is worth.

import { effectGrid } from "./effect_grid.js";
import { el } from "./elements.js";
import { figure } from "./figure.js";
import { readable } from "./numbers.js";
import { oddsGauge } from "./odds_gauge.js";
import { plain, tokenNodes } from "./tokens.js";

/** @import { Effect } from "./effect_grid.js" */
/** @import { TokenPair } from "./pair_tokens.js" */
/** @import { Page } from "./page.js" */
/** @import { Text } from "./study.js" */
/** A pair and its log-odds. @typedef {{ pair: TokenPair, clean: number, corrupt: number }} Seen */
/**
 * What is patched by hand.
 * @typedef {object} Patch
 * @property {string[]} nodes
 * @property {boolean} isClean whether into the clean run, from the corrupt one; else the other way round
 * @property {number | null} moved log-odds then
 */

const MAX_ANSWERS = 3; // that are spelled
const GAUGE_WIDTH = 560;

/**
 * Answers as people read them.
 * @param {Text} text
 * @param {number[]} tokens
 */
export function spelled(text, tokens) {
  const names = tokens.slice(0, MAX_ANSWERS).map((token) => plain(text.label(token)));
  return tokens.length > MAX_ANSWERS ? `${names.join(", ")} …` : names.join(", ");
}

/** @param {Page} page @param {Text} text @param {Seen} seen */
export function promptFigure(page, text, { pair, clean, corrupt }) {
  const against = `${spelled(text, pair.answers)} against ${spelled(text, pair.wrong)}`;
  /** @param {string} name @param {number[]} own @param {number[]} other @param {number} odds */
  const column = (name, own, other, odds) =>
    el(
      "div",
      {},
      el("h4", {}, `${name}: ${readable(odds)} nats for ${against}`),
      el("p", { class: "passage" }, ...own.map((token, i) => tokenOf(text, token, token !== other[i]))),
    );
  return figure({
    title: "A pair of prompts",
    name: `${page.model.id} pair`,
    note: "They differ in what is marked. Above 0, the right answer is the likelier one.",
    content: el(
      "div",
      { class: "beside" },
      column("Clean", pair.clean, pair.corrupt, clean),
      column("Corrupt", pair.corrupt, pair.clean, corrupt),
    ),
    rows: () =>
      pair.clean.map((token, i) => {
        return { position: i, clean: text.label(token), corrupt: text.label(pair.corrupt[i]) };
      }),
  });
}

/** @param {Text} text @param {number} token @param {boolean} isOther than at the other prompt */
function tokenOf(text, token, isOther) {
  const nodes = tokenNodes(text.label(token));
  return isOther ? el("mark", { class: "token" }, ...nodes) : el("span", { class: "token" }, ...nodes);
}

/**
 * @param {Page} page
 * @param {Seen} seen
 * @param {Patch} patch
 * @param {Node | false} said beside the picture
 */
export function gaugeFigure(page, { clean, corrupt }, { moved }, said) {
  const picture = oddsGauge(clean, corrupt, moved, Math.min(page.room, GAUGE_WIDTH));
  return figure({
    title: "Log-odds of the right answer, nats",
    name: `${page.model.id} log-odds`,
    content: el("div", {}, picture, said),
    picture,
  });
}

/**
 * What patching did, in a sentence.
 * @param {Seen} seen
 * @param {Patch} patch
 */
export function patchSaid({ clean, corrupt }, { nodes, isClean, moved }) {
  if (moved === null) return "Nothing is patched: choose a head below.";
  const [from, into, before] = isClean ? ["corrupt", "clean", clean] : ["clean", "corrupt", corrupt];
  return (
    `With ${nodes.join(", ")} of the ${from} run, log-odds of the ${into} one go from ${readable(before)} to ` +
    `${readable(moved)} nats.`
  );
}

/**
 * @param {Page} page
 * @param {Effect[]} effects
 * @param {Patch} patch
 * @param {{ over: string, canPatch: boolean, sql: string | null }} about
 */
export function effectFigure(page, effects, { nodes, isClean }, { over, canPatch, sql }) {
  const way = isClean
    ? "Fall of the log-odds if it writes what it writes at the corrupt prompt (orange: they rise)."
    : "Rise of the log-odds at the corrupt prompt if it writes what it writes at the clean one (orange: they fall).";
  const choose = (/** @type {string} */ node) => {
    const names = nodes.includes(node) ? nodes.filter((each) => each !== node) : [...nodes, node];
    page.set({ patched: names.join(",") });
  };
  return figure({
    title: `What each head is worth, nats, ${over}`,
    name: `${page.model.id} effects`,
    note: canPatch ? `${way} Choose one, or several, to patch them in the pair above.` : way,
    picture: effectGrid(page, effects, { patched: nodes, onChoose: canPatch ? choose : null }),
    rows: () => effects.map(({ node, nats }) => ({ node, [isClean ? "effect_nats" : "restored_nats"]: nats })),
    sql,
  });
}
