// The page of a study that is running: whether its server has a newer one.

import { el } from "./elements.js";

const EVERY_MS = 3000;
const RUNNING = "This study is running: scores are preliminary, and newer checkpoints come by themselves.";
const NEWER = "A newer checkpoint is there. ";
const ALONE = "Nobody serves this page any more: it stays as it is.";

/**
 * A line above the views, empty in a page that has no server. A page that nobody has touched shows the newer one by
 * itself; another says that there is one.
 * @param {string} version of this page
 */
export function newerPage(version) {
  const element = el("p", { class: "newer", role: "status" });
  if (!version) return element;
  let touched = false;
  let said = "";
  for (const event of ["pointerdown", "keydown"]) {
    window.addEventListener(event, () => {
      touched = true;
    });
  }
  const reload = el("button", { type: "button", on: { click: () => location.reload() } }, "Show it");
  const say = (/** @type {string} */ words) => {
    if (words === said) return; // a screen reader would read it again
    said = words;
    element.replaceChildren(words, ...(words === NEWER ? [reload] : []));
  };
  const ask = async () => {
    try {
      const answer = await fetch("version", { cache: "no-store" });
      const newer = (await answer.text()) !== version;
      if (newer && !touched) location.reload();
      else say(newer ? NEWER : RUNNING);
    } catch {
      say(ALONE);
    }
  };
  say(RUNNING);
  setInterval(ask, EVERY_MS);
  return element;
}
