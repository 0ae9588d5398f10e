// Colours of the theme that the reader's system asks for, as numbers to compute with.

/** @typedef {[number, number, number]} Colour */

export const DARK = matchMedia("(prefers-color-scheme: dark)");
const SERIES = ["blue", "orange", "green", "purple", "amber", "pink"];
/** @type {Record<string, string>} */
const ROLES = {
  induction: "purple",
  "anti-induction": "pink",
  "previous token": "green",
  "duplicate token": "amber",
  positional: "teal",
  BOS: "grey",
};

/**
 * A colour of style.css by its name there.
 * @param {string} name
 * @returns {Colour}
 */
export function colour(name) {
  const hex = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  return /** @type {Colour} */ ([1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
}

/** @param {Colour} colour @param {number} opacity */
export function css([red, green, blue], opacity = 1) {
  return opacity === 1 ? `rgb(${red} ${green} ${blue})` : `rgb(${red} ${green} ${blue} / ${opacity.toFixed(3)})`;
}

/**
 * A colour on the way from one to another.
 * @param {Colour} from
 * @param {Colour} to
 * @param {number} share 0..1
 * @returns {Colour}
 */
export function mixed(from, to, share) {
  return /** @type {Colour} */ (from.map((value, i) => Math.round(value + (to[i] - value) * share)));
}

/**
 * Whichever of two colours can be read better on a third.
 * @param {Colour} ground
 */
export function inkOn(ground) {
  const [ink, card] = [colour("ink"), colour("card")];
  return contrast(ink, ground) >= contrast(card, ground) ? ink : card;
}

/** @param {Colour} a @param {Colour} b */
function contrast(a, b) {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

/**
 * Source: WCAG 2.2, relative luminance.
 * @param {Colour} colour
 */
function luminance(colour) {
  const [red, green, blue] = colour.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/**
 * The colour of the i-th of a few things that are told apart.
 * @param {number} i
 */
export function seriesColour(i) {
  return colour(SERIES[i % SERIES.length]);
}

/**
 * A value's colour: from the card to blue, or, below 0, to orange.
 * @param {number | null} value
 * @param {number} most that a colour stands for
 */
export function valueColour(value, most) {
  const share = value === null || !most ? 0 : Math.min(1, Math.abs(value) / most);
  return mixed(colour("card"), colour(value !== null && value < 0 ? "orange" : "blue"), share);
}

/** @param {string | null} role */
export function roleColour(role) {
  const name = role && ROLES[role];
  return name ? colour(name) : null;
}
