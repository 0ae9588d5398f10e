// A reader's own pair of prompts as tokens, or why it can't be compared: the rules of tasks/prompts/tokenised_pairs.py.

/** @import { Asked } from "./patching.js" */
/** @import { Text } from "./study.js" */

/** A pair as text. @typedef {{ clean: string, corrupt: string, answer: string, wrong: string }} TypedPair */
/** @typedef {{ clean: number[], corrupt: number[] } & Asked} TokenPair */

/**
 * @param {TypedPair} typed
 * @param {Text} text
 * @param {number} nContext
 * @returns {TokenPair | string} or why there is none, in words
 */
export function pairTokens(typed, text, nContext) {
  const encode = (/** @type {string} */ words) => text.tokenizer?.encode(words) ?? [];
  const missing = Object.entries({ answer: typed.answer, "wrong answer": typed.wrong }).find(([, words]) => !words);
  if (missing) return `there is no ${missing[0]}`;
  const [clean, corrupt] = [typed.clean, typed.corrupt].map(encode);
  if (equal(clean, corrupt)) return "the prompts are the same";
  if (clean.length !== corrupt.length) return `the prompts have ${clean.length} and ${corrupt.length} tokens`;
  const ends = [typed.answer, typed.wrong].map((answer) => {
    const own = continuation(typed.clean, clean, answer, encode);
    return own && continuation(typed.corrupt, corrupt, answer, encode) ? own : null;
  });
  const [right, wrong] = ends;
  if (!right || !wrong) return "an answer merges with the end of its prompt into other tokens";
  const first = right.findIndex((token, i) => token !== wrong[i]);
  if (first < 0 || first >= wrong.length) return "one answer is the beginning of another";
  const shared = right.slice(0, first);
  const whole = [clean, corrupt].map((tokens) => [...text.opening, ...tokens, ...shared]);
  if (whole[0].length > nContext) return `the prompt has ${whole[0].length} tokens, and the context ${nContext}`;
  return { clean: whole[0], corrupt: whole[1], answers: [right[first]], wrong: [wrong[first]] };
}

/**
 * The tokens of an answer after its prompt; null if the prompt's own tokens change.
 * @param {string} prompt
 * @param {number[]} tokens
 * @param {string} answer
 * @param {(words: string) => number[]} encode
 */
function continuation(prompt, tokens, answer, encode) {
  const both = encode(prompt + answer);
  return both.length > tokens.length && equal(both.slice(0, tokens.length), tokens)
    ? both.slice(tokens.length)
    : null;
}

/** @param {number[]} a @param {number[]} b */
function equal(a, b) {
  return a.length === b.length && a.every((token, i) => token === b[i]);
}
