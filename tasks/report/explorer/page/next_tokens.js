// What comes after a token: the likeliest of the whole model, and of the model with heads off.

import { colour, css } from "./colours.js";
import { svg, svgText } from "./elements.js";
import { figure } from "./figure.js";
import { readable } from "./numbers.js";
import { plain } from "./tokens.js";

/** @import { Page } from "./page.js" */
/** @import { Reading } from "./reading.js" */
/**
 * @typedef {object} Candidate
 * @property {string} label
 * @property {number | null} whole probability in the whole model; null where it wasn't kept
 * @property {number | null} off probability with heads off
 * @property {boolean} comes whether it is the token that does come
 */

const N_PREDICTIONS = 6;
const BAR_LEFT = 110; // room for tokens
const MAX_LABEL_LENGTH = 12;
const ROW_HEIGHT = 22;

/** @param {Page} page @param {Reading} reading */
export function nextTokens(page, reading) {
  const { position, names, without } = reading;
  const found = candidates(reading);
  const off = without.join(", ");
  const note = without.length
    ? `Probability in the whole model (blue) and with ${off} off (orange: it writes nothing); ✓ is what does come.`
    : "Probability of the next token; ✓ is what does come.";
  return figure({
    title: page.titled(`What comes after token ${position}, ${names[position]}`),
    name: `${page.model.id} next tokens`,
    note,
    picture: bars(found, Math.min(420, page.room), without.length > 0),
    rows: () =>
      found.map(({ label, whole, off, comes }) => {
        const beside = without.length ? { probability_with_heads_off: off } : {};
        return { token: label, probability: whole, ...beside, comes };
      }),
    sql: null,
  });
}

/**
 * What does come, and what either run holds likeliest; the whole model's likeliest first.
 * @param {Reading} reading
 * @returns {Candidate[]}
 */
function candidates({ run, intact, position, without, text }) {
  const real = run.tokens[position + 1];
  const likely = [intact, ...(without.length ? [run] : [])].flatMap((each) => each.best(position, N_PREDICTIONS));
  const tokens = new Set([...(real === undefined ? [] : [real]), ...likely.map(({ token }) => token)]);
  const found = [...tokens].map((token) => ({
    label: text.label(token),
    whole: intact.probability(position, token),
    off: run.probability(position, token),
    comes: token === real,
  }));
  return found.sort((a, b) => (b.whole ?? 0) - (a.whole ?? 0));
}

/**
 * @param {Candidate[]} found
 * @param {number} width
 * @param {boolean} isCompared whether heads are off
 */
function bars(found, width, isCompared) {
  const label = found.map((each) => `${plain(each.label)} ${readable(each.whole)}`).join(", ");
  const look = { role: "img", "font-family": "sans-serif", "font-size": 12, "aria-label": label };
  const room = width - BAR_LEFT - (isCompared ? 100 : 60);
  const rows = found.flatMap((each, i) => candidateRow(each, i * ROW_HEIGHT, room, isCompared));
  return svg("svg", { viewBox: `0 0 ${width} ${found.length * ROW_HEIGHT + 4}`, ...look }, ...rows);
}

/**
 * @param {Candidate} candidate
 * @param {number} y
 * @param {number} room for a probability of 1
 * @param {boolean} isCompared
 */
function candidateRow({ label, whole, off, comes }, y, room, isCompared) {
  const [blue, orange] = [whole ?? 0, isCompared ? (off ?? 0) : 0];
  const height = isCompared ? 7 : 14;
  const look = { "font-family": "monospace", "font-weight": comes ? "bold" : "normal", fill: css(colour("ink")) };
  const bar = (/** @type {number} */ share) => ({ x: BAR_LEFT, width: Math.max(0.5, share * room), height });
  const said = isCompared ? `${readable(whole)} → ${readable(off)}` : readable(whole);
  const name = plain(label).slice(0, MAX_LABEL_LENGTH) + (comes ? " ✓" : "");
  return [
    svgText(name, { x: BAR_LEFT - 8, y: y + 15, "text-anchor": "end", ...look }),
    svg("rect", { ...bar(blue), y: y + 4, fill: css(colour("blue")) }),
    isCompared && svg("rect", { ...bar(orange), y: y + 12, fill: css(colour("orange")) }),
    svgText(said, { x: BAR_LEFT + 6 + Math.max(blue, orange) * room, y: y + 15, fill: css(colour("muted")) }),
  ];
}
