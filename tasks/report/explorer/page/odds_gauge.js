// Log-odds at both prompts on one line, and where patching moves them.

import { colour, css } from "./colours.js";
import { svg, svgText } from "./elements.js";
import { readable } from "./numbers.js";

const [LEFT, RIGHT, MIDDLE, HEIGHT] = [30, 30, 46, 84];

/**
 * @param {number} clean
 * @param {number} corrupt
 * @param {number | null} patched null if nothing is
 * @param {number} width
 */
export function oddsGauge(clean, corrupt, patched, width) {
  const values = [clean, corrupt, 0, ...(patched === null ? [] : [patched])];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (/** @type {number} */ value) => LEFT + ((value - low) / (high - low || 1)) * (width - LEFT - RIGHT);
  const said = `Log-odds: clean ${readable(clean)}, corrupt ${readable(corrupt)}`;
  const label = { role: "img", "aria-label": patched === null ? said : `${said}, patched ${readable(patched)}` };
  const muted = css(colour("muted"));
  /**
   * @param {number} value
   * @param {string} name
   * @param {string} ink
   * @param {number} y of its words
   */
  const mark = (value, name, ink, y) => {
    const place = Math.min(width - 48, Math.max(48, x(value)));
    return svg(
      "g",
      {},
      svg("circle", { cx: x(value), cy: MIDDLE, r: 7, fill: css(colour(ink)) }),
      svgText(`${name} ${readable(value)}`, { x: place, y, "text-anchor": "middle", fill: css(colour(ink)) }),
    );
  };
  const rail = { stroke: css(colour("grid")), "stroke-width": 3 };
  const isClose = Math.abs(x(clean) - x(corrupt)) < 100;
  return svg(
    "svg",
    { class: "narrow", viewBox: `0 0 ${width} ${HEIGHT}`, ...label, "font-family": "sans-serif", "font-size": 12 },
    svg("line", { x1: LEFT, x2: width - RIGHT, y1: MIDDLE, y2: MIDDLE, ...rail }),
    svg("line", { x1: x(0), x2: x(0), y1: MIDDLE - 10, y2: MIDDLE + 10, stroke: muted }),
    mark(corrupt, "corrupt", "amber", isClose ? MIDDLE - 30 : MIDDLE - 14),
    mark(clean, "clean", "blue", MIDDLE - 14),
    patched !== null && mark(patched, "patched", "purple", MIDDLE + 26),
  );
}
