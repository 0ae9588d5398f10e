// Heads of two models in one figure over training: the chosen one, and that which has most of a score in the end.

import { seriesColour } from "./colours.js";
import { el } from "./elements.js";
import { figure } from "./figure.js";
import { colourKey } from "./head_figures.js";
import { lineChart } from "./line_chart.js";
import { placeAmong } from "./numbers.js";
import { sql } from "./sql.js";

/** @import { Line } from "./line_chart.js" */
/** @import { Page } from "./page.js" */
/** @import { Head, Model } from "./study.js" */
/** @typedef {{ model: Model, place: number, head: Head, isChosen: boolean }} Curve  place: of the model, of the two */

/**
 * @param {Page} page
 * @param {Page[]} sides
 * @param {string} score
 */
export function comparedCurves(page, sides, score) {
  const curves = sides.flatMap((side, place) => curvesOf(side, place, score));
  const models = sides.map(({ model }) => model);
  const lines = curves.map((curve) => line(curve, page.model, score));
  const picture = lineChart(page, lines.reverse(), { width: page.room, height: 260 }, models);
  const rows = () => curves.flatMap((curve) => rowsOf(curve, score));
  return figure({
    title: `${score.replaceAll("_", " ")} of both models`,
    name: `${models.map(({ id }) => id).join(" ")} ${score}`,
    note: "Thick: the chosen head; thin: another that ends with more. Both lie where they had seen as many tokens.",
    picture,
    content: el("div", {}, picture, colourKey([models[0].name, `${models[1].name}, dashed`])),
    rows,
    sql: sql.compared(curves, score),
  });
}

/**
 * The chosen head, and the one with most of the score in the end if that is another.
 * @param {Page} side
 * @param {number} place
 * @param {string} score
 * @returns {Curve[]}
 */
function curvesOf(side, place, score) {
  const { model } = side;
  const chosen = /** @type {Head} */ (side.head);
  const end = (/** @type {Head} */ head) => model.score(score, model.last, head) ?? 0;
  const best = model.heads.reduce((most, head) => (end(head) > end(most) ? head : most), chosen);
  return [...new Set([chosen, best])].map((head) => ({ model, place, head, isChosen: head === chosen }));
}

/**
 * @param {Curve} curve
 * @param {Model} along whose checkpoints the picture goes
 * @param {string} score
 * @returns {Line}
 */
function line({ model, place, head, isChosen }, along, score) {
  const seen = along.checkpoints.map(({ step, tokens }) => tokens ?? step);
  return {
    name: head.name,
    values: model.checkpoints.map((_, at) => model.score(score, at, head)),
    places: model.checkpoints.map(({ step, tokens }) => placeAmong(seen, tokens ?? step)),
    colour: seriesColour(place),
    wide: isChosen,
    dashed: place > 0,
  };
}

/** @param {Curve} curve @param {string} score */
function rowsOf({ model, head }, score) {
  return model.checkpoints.map(({ step, tokens }, at) => {
    const place = { model_id: model.id, layer: head.layer, head: head.head, step, tokens };
    return { ...place, [score]: model.score(score, at, head) };
  });
}
