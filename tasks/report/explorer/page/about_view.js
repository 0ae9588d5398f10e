// What the page is, what it holds and what it leaves out.

import { el } from "./elements.js";
import { readable, shortCount } from "./numbers.js";
import { table } from "./table.js";

/** @import { OpenView, Page, View } from "./page.js" */
/** @import { Model } from "./study.js" */

const COLUMNS = ["model", "parameters", "validation loss", "repeat gain", "in this page"];
const USES = [
  "The address holds what you see: copy it, and the link is a finding. Back goes back.",
  "Tab and arrow keys move, Enter chooses; a head's name opens its card.",
  "Beside sets a second model next to this one, at first its base; the slider moves both.",
  "SVG, PNG and CSV save a view; SQL shows the SELECT behind it, for `headstream sql`.",
  "The page is one file that needs no network and sends nothing: what you type stays in it.",
];

/** @type {View} */
export const view = { name: "about", title: "About", place: 4, open: openAbout };

/** @param {Page} page @returns {OpenView} */
function openAbout(page) {
  const { contents, models } = page.study;
  const element = el(
    "section",
    { class: "about", "aria-label": "About" },
    el("h2", {}, contents.question || contents.study),
    listOf(contents.answer),
    el("h3", {}, "Models"),
    table(COLUMNS, models.map(aboutModel)),
    el("h3", {}, "What this page holds"),
    listOf(contents.notes),
    el("h3", {}, "How to use it"),
    listOf(USES),
  );
  return { element };
}

/** @param {string[]} lines */
function listOf(lines) {
  return el("ul", {}, ...lines.map((line) => el("li", {}, line)));
}

/** @param {Model} model */
function aboutModel(model) {
  const { parameters, validation_loss_nats: loss, repeat_gain_nats: gain } = model.row;
  return [model.name, shortCount(parameters), readable(loss), readable(gain), holding(model)];
}

/** @param {Model} model */
function holding(model) {
  const steps = model.runnableSteps.length;
  const kept = Object.keys(model.network?.kept ?? {}).length;
  if (steps) return `weights of ${steps} checkpoint${steps > 1 ? "s" : ""}: it runs here`;
  return kept ? `attention on ${kept} passage${kept > 1 ? "s" : ""}` : "scores alone";
}
