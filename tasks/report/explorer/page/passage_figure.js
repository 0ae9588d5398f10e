// A text, each token in the colours of what is asked of it.

import { colour, css } from "./colours.js";
import { el, isChoice, moveFocus, svg, svgText } from "./elements.js";
import { figure } from "./figure.js";
import { tokenNodes } from "./tokens.js";

/** @import { Page } from "./page.js" */
/** @import { Reading } from "./reading.js" */

export class PassageFigure {
  /** @param {Page} page @param {Reading} reading */
  constructor(page, reading) {
    this.page = page;
    this.reading = reading;
    this.together = [/** @type {PassageFigure} */ (this)]; // passages in which the same token is pointed at
    this.tokens = reading.labels.map((label, i) => this.token(label, i));
    const lines = this.tokens.flatMap((token, i) => (reading.labels[i].includes("\n") ? [token, el("br")] : [token]));
    const label = { role: "group", "aria-label": "Tokens; arrow keys move" };
    const on = { pointerleave: () => this.point(reading.position) };
    this.passage = el("div", { class: "passage", ...label, on }, ...lines);
    this.element = figure({
      title: page.titled(reading.title),
      name: `${reading.model.id} text`,
      note: passageNote(reading),
      content: this.passage,
      picture: () => this.picture(),
      rows: () => reading.rows(),
      sql: null,
    });
  }

  /** @param {string} label @param {number} i */
  token(label, i) {
    const isChosen = i === this.reading.position;
    const choose = () => this.page.set({ token: String(i) });
    const on = {
      pointerenter: (/** @type {PointerEvent} */ event) => event.pointerType === "mouse" && this.point(i),
      focus: () => this.point(i),
      click: choose,
      keydown: (/** @type {KeyboardEvent} */ event) => {
        if (isChoice(event)) choose();
        else moveFocus(event, this.tokens, tokensInLine(this.tokens));
      },
    };
    const kind = { class: "token", role: "button", tabindex: isChosen ? 0 : -1 };
    const handling = { "data-focus": `token ${i}`, "data-token": i, "aria-pressed": isChosen, on };
    return el("span", { ...kind, ...handling }, ...tokenNodes(label));
  }

  /**
   * Colours for a token that is pointed at, here and in passages beside this one.
   * @param {number} at
   */
  point(at) {
    for (const passage of this.together) passage.paint(Math.min(at, passage.tokens.length - 1));
  }

  /**
   * Colours for one token that is pointed at.
   * @param {number} at
   */
  paint(at) {
    this.tokens.forEach((token, i) => {
      token.style.background = striped(this.reading.shades(i, at));
      token.classList.toggle("at", i === at);
      token.title = this.reading.said(i, at);
      token.setAttribute("aria-label", token.title);
    });
  }

  /** The passage as a picture: each token where it is on the page. */
  picture() {
    const box = this.passage.getBoundingClientRect();
    const look = { "font-size": 14, "font-family": "monospace", fill: css(colour("ink")) };
    const parts = this.tokens.flatMap((token, i) => {
      const { left, top, width, height } = token.getBoundingClientRect();
      const [x, y] = [left - box.left, top - box.top];
      const shades = this.reading.shades(i, this.reading.position);
      const high = height / shades.length;
      return [
        ...shades.map((fill, k) => svg("rect", { x, y: y + k * high, width, height: high, fill })),
        svgText(token.textContent ?? "", { x: x + 2, y: y + height * 0.72, ...look }),
      ];
    });
    return svg("svg", { viewBox: `0 0 ${Math.ceil(box.width)} ${Math.ceil(box.height)}` }, ...parts);
  }
}

/**
 * A background of stripes of equal height.
 * @param {string[]} shades from the top
 */
function striped(shades) {
  if (!shades.length) return "";
  const end = (/** @type {number} */ k) => `${(100 * k) / shades.length}%`;
  return `linear-gradient(to bottom, ${shades.map((shade, k) => `${shade} ${end(k)} ${end(k + 1)}`).join(", ")})`;
}

/** @param {Reading} reading */
function passageNote({ state, stripes }) {
  if (state.colour !== "attention") return "The first token is given, not predicted.";
  const key = stripes.flatMap(({ name, tint }) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = css(tint);
    return [swatch, `${name} `];
  });
  return el("span", {}, "Point at a token, or choose one. ", ...key);
}

/** @param {HTMLElement[]} tokens */
function tokensInLine(tokens) {
  const top = tokens[0]?.offsetTop;
  const second = tokens.findIndex((token) => token.offsetTop > top); // the first of the second line
  return Math.max(1, second);
}
