// What a head's role rests on, in sentences.

import { readable } from "./numbers.js";

/** @import { Head, Model, Row } from "./study.js" */

/** Scores, the bars from which they make a role, and what they say of a head's attention. */
const ATTENDED = /** @type {const} */ ([
  [
    "induction_random_period",
    "induction_bar",
    "goes to what followed earlier copies of the current token, on repeated random tokens",
  ],
  ["previous_token", "previous_token_bar", "goes to the token before"],
  ["duplicate_token", "duplicate_token_bar", "goes to earlier copies of the current token"],
  ["bos_attention", "bos_bar", "goes to BOS"],
]);

/**
 * @param {Model} model
 * @param {Head} head
 * @returns {string[]}
 */
export function evidence(model, head) {
  const told = [...byScores(model, head), ...byPatching(model, head)];
  return told.length ? told : ["Nothing that is worth a sentence was measured of it."];
}

/**
 * What it is worth in behaviours that it carries.
 * @param {Model} model
 * @param {Head} head
 */
function byPatching(model, head) {
  const own = model.rows.node_effects.filter(({ node, sentence }) => node === head.name && sentence);
  return own.map(({ prompts, sentence }) => `In ${prompts}: ${sentence}`);
}

/**
 * What its attention does.
 * @param {Model} model
 * @param {Head} head
 * @returns {string[]}
 */
function byScores(model, head) {
  const scores = model.scored[model.last][head.place];
  const bars = model.rowsOf("roles", head)[0];
  if (!scores) return [];
  return ATTENDED.flatMap(([score, bar, what]) => {
    const from = bars ? `; a role from ${readable(bars[bar])}` : "";
    const said =
      scores[score] === null ? [] : [`${withError(scores, score)} of its attention ${what} (${score}${from}).`];
    return score === "induction_random_period" ? [...said, ...copying(scores)] : said;
  });
}

/** @param {Row} scores */
function copying(scores) {
  const logit = scores.induction_copying_logit;
  if (logit === null) return [];
  const by = withError(scores, "induction_copying_logit").replace("-", "");
  return [`There it ${logit > 0 ? "raises" : "lowers"} the logit of what follows by ${by}.`];
}

/**
 * A score with its 95 % interval, if that is known.
 * @param {Row} scores
 * @param {string} name
 */
function withError(scores, name) {
  const sem = scores[`${name}_sem`];
  return sem ? `${readable(scores[name])} ± ${readable(1.96 * sem)}` : readable(scores[name]);
}
