// What a model does on tokens, from the program that serves this page: of models that are too large to run in it.

import { unzipped } from "./blocks.js";

/** @import { KeptRun, Model } from "./study.js" */
/** @typedef {{ fields: Omit<KeptRun, "block">, bytes: Uint8Array }} Answer */

/**
 * @param {Model} model
 * @param {number} step
 * @param {number[]} tokens
 * @param {string[]} off heads without output
 * @returns {Promise<Answer | null>} null if nobody serves the page any more
 */
export async function askServer(model, step, tokens, off) {
  try {
    const body = JSON.stringify({ model: model.id, step, tokens, off });
    const answer = await fetch("run", { method: "POST", body, cache: "no-store" });
    if (!answer.ok) return null;
    const { attention, ...fields } = await answer.json();
    return { fields, bytes: await unzipped(Uint8Array.from(atob(attention), (sign) => sign.charCodeAt(0))) };
  } catch {
    return null;
  }
}
