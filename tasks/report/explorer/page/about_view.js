// What the page is, what it holds and what it leaves out.

import { table } from "./card.js";
import { el } from "./elements.js";
import { readable, shortCount } from "./numbers.js";

/** @param {import("./main.js").Page} page */
export function aboutView(page) {
  const { contents, models } = page.study;
  const element = el("section", { class: "about", "aria-label": "About" },
    el("h2", {}, contents.question || contents.study),
    el("ul", {}, ...contents.answer.map((line) => el("li", {}, line))),
    el("h3", {}, "Models"),
    table(["model", "parameters", "validation loss", "repeat gain", "in this page"], models.map((model) => [
      model.name, shortCount(model.row.parameters), readable(model.row.validation_loss_nats), readable(model.row.repeat_gain_nats), holding(model),
    ])),
    el("h3", {}, "What this page holds"),
    el("ul", {}, ...contents.notes.map((note) => el("li", {}, note))),
    el("h3", {}, "How to use it"),
    el("ul", {},
      el("li", {}, "The address holds what you see: copy it, and the link is a finding. Back goes back."),
      el("li", {}, "Tab and arrow keys move, Enter chooses; a head's name opens its card."),
      el("li", {}, "SVG, PNG and CSV save a view; SQL shows the SELECT behind it, for `headstream sql`."),
      el("li", {}, "The page is one file that needs no network and sends nothing: what you type stays in it.")));
  return { element, update() {}, stop() {} };
}

/** @param {import("./study.js").Model} model */
function holding(model) {
  const steps = model.runnableSteps.length, kept = Object.keys(model.network?.kept ?? {}).length;
  if (steps) return `weights of ${steps} checkpoint${steps > 1 ? "s" : ""}: it runs here`;
  return kept ? `attention on ${kept} passage${kept > 1 ? "s" : ""}` : "scores alone";
}
