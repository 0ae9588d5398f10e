// All heads of a model coloured by a score, and the checkpoints through which that came about.

import { sidesOf } from "./beside.js";
import { besideControl } from "./beside_control.js";
import { checkpointSlider } from "./checkpoint_slider.js";
import { colour, seriesColour } from "./colours.js";
import { comparedCurves } from "./compared_curves.js";
import { chooser, el, emptyNote, refill } from "./elements.js";
import { figure } from "./figure.js";
import { headGrid } from "./head_grid.js";
import { lineChart } from "./line_chart.js";
import { sql } from "./sql.js";

/** @import { OpenView, Page, View } from "./page.js" */
/** @import { Model } from "./study.js" */

const MAX_LINES = 40;
const MAX_NAMED = 3; // lines beside that of the chosen head

/** @type {View} */
export const view = { name: "heads", title: "Heads", place: 1, hasCard: true, open: openHeads };

/** @param {Page} page @returns {OpenView} */
function openHeads(page) {
  const { model, study } = page;
  if (!model.heads.length) return { element: emptyNote(`${model.name} has no attention heads.`) };
  if (!study.scores.length) return { element: unscored(page) };
  const score = chooser(
    "Colour by",
    study.scores.map(({ score }) => [score, inWords(score)]),
    (value) => page.set({ score: value }),
  );
  const description = el("p", { class: "hint" });
  const beside = besideControl(page);
  const grid = el("div");
  const lines = el("div");
  const slider = checkpointSlider(page);
  const controls = el("div", { class: "controls" }, score.element, description);
  return {
    element: el("section", { "aria-label": "Heads" }, beside.element, controls, grid, slider.element, lines),
    update() {
      score.select.value = page.score;
      description.textContent = study.scores.find((each) => each.score === page.score)?.description ?? "";
      beside.update();
      slider.update();
      const sides = sidesOf(page);
      const models = sides.map((side) => side.model);
      refill(grid, sideBySide(sides.map((side) => gridFigure(side, models))));
      if (!model.last) return;
      const both = sides.length > 1 && comparedCurves(page, sides, page.score);
      refill(lines, both, sideBySide(sides.map((side) => trainingFigure(side, models))));
    },
    stop: slider.stop,
  };
}

/** @param {Page} page */
function unscored(page) {
  const elsewhere = el("a", { href: page.link({ view: "circuits" }) }, "Circuits");
  const note = emptyNote("This study measured no scores of heads. What it measured is under ");
  note.append(elsewhere, ".");
  return note;
}

/** @param {HTMLElement[]} figures */
function sideBySide(figures) {
  return figures.length > 1 ? el("div", { class: "sides" }, ...figures) : figures[0];
}

/** @param {string} score */
function inWords(score) {
  return score.replaceAll("_", " ");
}

/**
 * @param {Page} page
 * @param {Model[]} models that are shown
 */
function gridFigure(page, models) {
  const { model, score, at, step } = page;
  return figure({
    title: page.titled(`${inWords(score)} of every head`),
    name: `${model.id} ${score} step ${step}`,
    note: `${model.name} after ${page.when(at)}. The first layer is at the bottom; choose a head to see all of it.`,
    picture: headGrid(page, score, models),
    rows: () =>
      model.heads.map((head) => ({ layer: head.layer, head: head.head, [score]: model.score(score, at, head) })),
    sql: sql.scores(model.id, step, score),
  });
}

/**
 * @param {Page} page
 * @param {Model[]} models that are shown
 */
function trainingFigure(page, models) {
  const { model, score } = page;
  const rows = () =>
    model.heads.flatMap((head) =>
      model.checkpoints.map(({ step, tokens }, at) => {
        return { step, tokens, layer: head.layer, head: head.head, [score]: model.score(score, at, head) };
      }),
    );
  return figure({
    title: page.titled(`${inWords(score)} over training`),
    name: `${model.id} ${score} over training`,
    note: "A line a head; checkpoints side by side, whatever lies between them. Click to go to one.",
    picture: trajectories(page, score, models),
    rows,
    sql: sql.trajectories(model.id, score),
  });
}

/**
 * @param {Page} page
 * @param {string} score
 * @param {Model[]} models whose axes have the same values
 */
function trajectories(page, score, models) {
  const { model } = page;
  const chosen = page.head?.place ?? -1;
  const values = model.heads.map((head) => model.checkpoints.map((_, at) => model.score(score, at, head)));
  const end = (/** @type {number} */ place) => Math.abs(values[place][model.last] ?? 0);
  const order = model.heads.map((head) => head.place).sort((a, b) => end(b) - end(a));
  const named = new Set([chosen, ...order.slice(0, MAX_NAMED)]);
  const drawn = order.filter((place, rank) => rank < MAX_LINES || place === chosen);
  const lines = drawn.map((place, rank) => {
    const isChosen = place === chosen;
    const isNamed = named.has(place);
    const others = isNamed ? seriesColour(rank) : colour("grey");
    const own = isChosen ? colour("ink") : others;
    return { name: isNamed ? model.heads[place].name : "", values: values[place], colour: own, wide: isChosen };
  });
  const reach = models.length > 1 ? models.flatMap((each) => extremes(each, score)) : [];
  return lineChart(page, lines.reverse(), { width: page.room, height: 230, reach });
}

/**
 * The lowest and the highest value of a score at any checkpoint.
 * @param {Model} model
 * @param {string} score
 */
function extremes(model, score) {
  const { heads } = model.rows;
  return [Math.min, Math.max].map((most) => heads.reduce((value, row) => most(value, row[score] ?? value), 0));
}
