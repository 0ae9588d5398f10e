// Who reads whom: the circuit of a behaviour; or composition as a graph and as maps, and the patterns of a pair.

import { BehaviourCircuit } from "./behaviour_circuit.js";
import { behavioursOf } from "./behaviours.js";
import { colour, css } from "./colours.js";
import { edgeRow, edgesAt, firstBar, KIND_COLOURS, KIND_WORDS, KINDS } from "./composition.js";
import { compositionGraph } from "./composition_graph.js";
import { compositionMap } from "./composition_map.js";
import { chooser, el, emptyNote, refill, showIn, tickBox } from "./elements.js";
import { figure } from "./figure.js";
import { pairFigures, pairHeading } from "./head_pair.js";
import { nearest, readable } from "./numbers.js";
import { passageOf, passageOptions } from "./passages.js";
import { runOn } from "./runs.js";
import { sql } from "./sql.js";

/** @import { Edge, Kind } from "./composition.js" */
/** @import { OpenView, Page, View } from "./page.js" */

const MAX_DRAWN_EDGES = 300; // drawn at once
const BAR_STEPS = 200; // from 0 to 1
const GRAPH_NOTE =
  "Lines run up from the head that writes to the head that reads it, with its queries, keys or values; the thicker, " +
  "the further its composition score is above chance; dashed where that isn't significant.";

/** @type {View} */
export const view = {
  name: "circuits",
  title: "Circuits",
  place: 3,
  hasCard: true,
  hasSlider: true,
  open: openCircuits,
};

/** @param {Page} page @returns {OpenView} */
function openCircuits(page) {
  const { name, rows } = page.model;
  if (rows.behaviours.length) return new EitherCircuit(page);
  if (rows.compositions.length) return new Composition(page);
  return { element: emptyNote(`${name} has no two layers of heads whose composition was measured.`) };
}

/** Composition, and the circuit of each prompt set. */
class EitherCircuit {
  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    this.behaviours = behavioursOf(page.model);
    this.composition = page.model.rows.compositions.length ? new Composition(page) : null;
    /** @type {[string, string][]} */
    const options = this.behaviours.map((each) => [each.name, `${each.name}, by patching prompts`]);
    if (this.composition) options.unshift(["", "composition of heads, by weights"]);
    this.chosen = chooser("Circuit", options, (value) => page.set({ set: value, edge: "", edges: "" }));
    this.circuit = new BehaviourCircuit(page);
    const controls = el("div", { class: "controls" }, this.chosen.element);
    const label = { "aria-label": "Circuits and behaviours" };
    this.place = el("div");
    this.element = el("section", label, controls, this.place);
  }

  update() {
    const asked = this.behaviours.find(({ name }) => name === this.page.state.set);
    const behaviour = asked ?? (this.composition ? null : this.behaviours[0]);
    this.chosen.select.value = behaviour?.name ?? "";
    if (behaviour) {
      showIn(this.place, this.circuit.element);
      this.circuit.update(behaviour);
    } else if (this.composition) {
      showIn(this.place, this.composition.element);
      void this.composition.update();
    }
  }

  /** Keeps an answer that comes later from being shown. */
  stop() {
    this.composition?.stop();
  }
}

class Composition {
  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    this.steps = [...new Set(page.model.rows.compositions.map((row) => row.step))];
    this.ticks = KINDS.map((kind) => this.tick(kind));
    const label = "Least composition above chance that is drawn";
    const on = { input: () => page.set({ bar: this.bar.value }) };
    this.bar = el("input", { type: "range", min: 0, max: 1, step: 1 / BAR_STEPS, "aria-label": label, on });
    this.count = el("output");
    this.options = passageOptions(page.model);
    this.passage = chooser("Patterns on", this.options, (value) => page.set({ passage: value, token: "" }));
    this.graph = el("div");
    this.pair = el("div");
    this.maps = el("div");
    this.asked = 0; // how often; of several answers the last one asked for counts
    const field = el("label", { class: "field wide" }, el("span", {}, "Above chance by"), this.bar);
    const ticks = this.ticks.map(({ element }) => element);
    const controls = el("div", { class: "controls" }, ...ticks, field, this.count);
    this.element = el("section", { "aria-label": "Composition" }, controls, this.graph, this.pair, this.maps);
  }

  /** @param {Kind} kind */
  tick(kind) {
    const box = tickBox(`${kind}: ${KIND_WORDS[kind]}`, (checked) => {
      const isOn = (/** @type {Kind} */ each) => (each === kind ? checked : this.page.state.kinds.includes(each));
      this.page.set({ kinds: KINDS.filter(isOn).join("") });
    });
    box.element.style.color = css(colour(KIND_COLOURS[kind]));
    return { kind, ...box };
  }

  async update() {
    const { page } = this;
    const { kinds, edge: chosen, bar } = page.state;
    const step = nearest(this.steps, page.step);
    const edges = edgesAt(page.model, step);
    const most = Math.max(0, ...edges.map(({ above }) => above));
    const least = bar === "" ? firstBar(edges) : Number(bar);
    for (const { kind, input } of this.ticks) input.checked = kinds.includes(kind);
    this.bar.max = String(Math.max(1, Math.ceil(BAR_STEPS * most)) / BAR_STEPS);
    this.bar.value = String(least);
    const high = edges.filter(({ kind, above }) => above >= least && kinds.includes(kind));
    const cut = high.length > MAX_DRAWN_EDGES ? `, the ${MAX_DRAWN_EDGES} highest drawn` : "";
    this.count.textContent = `${readable(least)}: ${high.length} of ${edges.length} pairs${cut}`;
    const drawn = high.sort((a, b) => b.above - a.above).slice(0, MAX_DRAWN_EDGES);
    refill(this.graph, this.graphFigure(edges, drawn.reverse(), step));
    const maps = KINDS.filter((kind) => kinds.includes(kind)).map((kind) => {
      return compositionMap(page, edges, kind, most, step);
    });
    refill(this.maps, el("div", { class: "maps" }, ...maps));
    await this.showPair(edges.find(({ name }) => name === chosen));
  }

  /** Keeps an answer that comes later from being shown. */
  stop() {
    this.asked++;
  }

  /**
   * @param {Edge[]} edges
   * @param {Edge[]} drawn
   * @param {number} step
   */
  graphFigure(edges, drawn, step) {
    const { page } = this;
    const { model } = page;
    const when = step === page.step ? "" : ` at step ${step}`;
    return figure({
      title: "Which head reads which",
      name: `${model.id} composition step ${step}`,
      note: `${GRAPH_NOTE} ${model.name}${when}. Choose a line to see both heads.`,
      picture: compositionGraph(page, drawn),
      rows: () => edges.map((edge) => ({ ...edgeRow(edge), significant: edge.significant })),
      sql: sql.compositions(model.id, step),
    });
  }

  /** @param {Edge | undefined} edge */
  async showPair(edge) {
    const { page } = this;
    const { model, runnableStep } = page;
    const number = ++this.asked;
    const place = passageOf(this.options, page.state.passage);
    if (!edge) {
      refill(this.pair);
      return;
    }
    const tokens = place === null ? undefined : model.text?.passages[place].tokens;
    const run = tokens ? await runOn(model, runnableStep, tokens, place, []) : null;
    if (number !== this.asked) return;
    this.passage.select.value = String(place ?? "");
    const figures = run ? pairFigures(page, edge, run) : [];
    refill(
      this.pair,
      el("div", { class: "pair" }, ...pairHeading(model, edge), run && this.passage.element),
      run && el("div", { class: "maps" }, ...figures),
    );
  }
}
