// The slider of a model's checkpoints, which can go through them by itself.

import { el } from "./elements.js";

/** @import { Page } from "./page.js" */

const PLAY_MS = 650; // a checkpoint

/** @param {Page} page */
export function checkpointSlider(page) {
  const { last } = page.model;
  let timer = 0;
  const go = (/** @type {number} */ at) => page.set({ at: page.stepName(at) });
  const start = () => {
    if (page.at === last) go(0);
    timer = window.setInterval(() => (page.at < last ? go(page.at + 1) : stop()), PLAY_MS);
    label();
  };
  const stop = () => {
    window.clearInterval(timer);
    timer = 0;
    label();
  };
  const slide = () => {
    stop();
    go(Number(input.value));
  };
  const label = () => (play.textContent = timer ? "❚❚ Pause" : "▶ Play");
  const play = el("button", { type: "button", class: "play", on: { click: () => (timer ? stop() : start()) } });
  const range = { type: "range", min: 0, max: last, step: 1 };
  const input = el("input", { ...range, "aria-label": "Checkpoint", on: { input: slide } });
  const output = el("output");
  label();
  return {
    element: el("div", { class: "slider", hidden: last === 0 }, play, input, output),
    update() {
      input.value = String(page.at);
      output.textContent = page.when(page.at);
      input.setAttribute("aria-valuetext", page.when(page.at));
    },
    stop,
  };
}
