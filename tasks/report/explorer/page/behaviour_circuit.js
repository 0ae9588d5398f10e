// The circuit of a behaviour: a slider for its edges, the graph that they make, and what circuits of each size do.

import { behaviourCurve } from "./behaviour_curve.js";
import { behaviourGraph, portColour } from "./behaviour_graph.js";
import { edgeFields, edgeName, edgeWorth, faithfulnessAt } from "./behaviours.js";
import { colour, css } from "./colours.js";
import { KIND_WORDS } from "./composition.js";
import { el, emptyNote, refill } from "./elements.js";
import { figure } from "./figure.js";
import { clamp, grouped } from "./numbers.js";
import { sql } from "./sql.js";

/** @import { Behaviour, PromptEdge } from "./behaviours.js" */
/** @import { Page } from "./page.js" */

const MAX_DRAWN = 120; // edges
const POINT = "Point at a line, or reach it with Tab and the arrow keys, to read what its edge is worth.";
const GRAPH_NOTE =
  "Lines run up from who writes to who reads; the wider, the more of the difference is lost without the edge, dashed " +
  "where it works against the behaviour, paler where it isn't surely in.";
const CURVE_NOTE =
  "Blue: share of the difference that the edges with the largest scores make, on pairs that they were not found on. " +
  "Dotted: what is left without them. Grey: random circuits of the same sizes. Choose a point to draw its circuit.";

export class BehaviourCircuit {
  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    this.about = el("p", { class: "hint" });
    const label = "Edges of the circuit that is drawn";
    const on = { input: () => page.set({ edges: this.slider.value }) };
    this.slider = el("input", { type: "range", min: 1, step: 1, "aria-label": label, on });
    this.count = el("output", { "aria-live": "polite" });
    const field = el("label", { class: "field wide" }, el("span", {}, "Edges"), this.slider);
    this.controls = el("div", { class: "controls" }, field, this.count);
    this.pointed = el("p", { class: "pointed", role: "status" });
    this.figures = el("div");
    this.element = el("div", {}, this.about, this.controls, this.figures);
  }

  /** @param {Behaviour} behaviour */
  update(behaviour) {
    const { page } = this;
    const { ranked, sizes } = behaviour;
    this.about.textContent = behaviour.said;
    this.controls.hidden = !behaviour.hasCircuit;
    if (!behaviour.hasCircuit) {
      refill(this.figures, emptyNote(`There is no circuit of ${behaviour.name} in ${page.model.name}.`));
      return;
    }
    const asked = Math.round(Number(page.state.edges)) || behaviour.about.n_edges_enough;
    const n = clamp(asked, 1, ranked.length);
    this.slider.max = String(ranked.length);
    this.slider.value = String(n);
    const circuit = behaviour.circuit(n);
    const drawn = circuit.slice(0, MAX_DRAWN);
    const dangling = n - circuit.length;
    const counted = [
      `${grouped(n)} of ${grouped(behaviour.about.n_edges)}`,
      dangling > 0 && `${dangling} of them on no path`,
      drawn.length < circuit.length && `the ${MAX_DRAWN} largest drawn`,
      faithfulnessAt(sizes, n),
    ];
    this.count.textContent = counted.filter(Boolean).join(", ");
    this.point(circuit, null);
    refill(this.figures, this.graphFigure(behaviour, drawn, circuit), this.curveFigure(behaviour, n));
  }

  /**
   * Says what an edge is worth: the one that is pointed at, else the one that is chosen.
   * @param {PromptEdge[]} circuit
   * @param {PromptEdge | null} edge
   */
  point(circuit, edge) {
    const shown = edge ?? circuit.find(({ name }) => name === this.page.state.edge);
    this.pointed.textContent = shown ? `${edgeName(shown)}: ${edgeWorth(shown)}.` : POINT;
  }

  /**
   * @param {Behaviour} behaviour
   * @param {PromptEdge[]} drawn
   * @param {PromptEdge[]} circuit
   */
  graphFigure(behaviour, drawn, circuit) {
    const { page } = this;
    const title = `Circuit of ${behaviour.name}`;
    const name = `${page.model.id} ${behaviour.name} circuit`;
    if (!drawn.length) {
      const why = "No path of these edges leads from the embedding to the logits: take more edges.";
      return figure({ title, name, content: emptyNote(why), sql: sql.circuitEdges(page.model.id, behaviour.name) });
    }
    const picture = behaviourGraph(page, behaviour, drawn, (edge) => this.point(circuit, edge));
    return figure({
      title,
      name,
      note: el("span", {}, `${GRAPH_NOTE} Of the last checkpoint. `, ...portKey(drawn)),
      content: el("div", {}, this.pointed, picture),
      picture,
      rows: () => circuit.map(edgeFields),
      sql: sql.circuitEdges(page.model.id, behaviour.name),
    });
  }

  /** @param {Behaviour} behaviour @param {number} n */
  curveFigure(behaviour, n) {
    const { page } = this;
    const { sizes, name } = behaviour;
    if (!sizes.length) return null;
    return figure({
      title: `How much circuits of ${name} make`,
      name: `${page.model.id} ${name} by size`,
      note: CURVE_NOTE,
      picture: behaviourCurve(page, sizes, n, Math.min(page.room, 560)),
      rows: () =>
        sizes.map(({ n: edges, faithfulness, completeness, low, high }) => {
          return { edges, faithfulness, completeness, random_low: low, random_high: high };
        }),
      sql: sql.circuitCurve(page.model.id, name),
    });
  }
}

/** @param {PromptEdge[]} edges */
function portKey(edges) {
  const words = { ...KIND_WORDS, in: "the whole input" };
  const ports = [...new Set(edges.map(({ port }) => port))].sort();
  return ports.flatMap((port) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = css(colour(portColour(port)));
    return [swatch, `into ${words[port]} `];
  });
}
