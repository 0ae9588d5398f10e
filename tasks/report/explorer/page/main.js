// The page: its header, its views, and the state that they share.

import { aboutView } from "./about_view.js";
import { headCard } from "./card.js";
import { circuitsView } from "./circuits_view.js";
import { DARK } from "./colours.js";
import { chooser, el } from "./elements.js";
import { checkpointSlider, headsView } from "./heads_view.js";
import { newerPage } from "./newer_page.js";
import { clamp, shortCount } from "./numbers.js";
import { Address } from "./state.js";
import { openStudy } from "./study.js";
import { textView } from "./text_view.js";

/** @typedef {{element: HTMLElement, update: () => void, stop: () => void}} View */

const VIEWS = /** @type {Record<string, {title: string, open: (page: Page) => View, hasCard: boolean}>} */ ({
  heads: { title: "Heads", open: headsView, hasCard: true },
  text: { title: "Text", open: textView, hasCard: false },
  circuits: { title: "Circuits", open: circuitsView, hasCard: true },
  about: { title: "About", open: aboutView, hasCard: false },
});
const FIRST_SCORE = "induction_random_period";

export class Page {
  /** @param {import("./study.js").Study} study @param {HTMLElement} root */
  constructor(study, root) {
    this.study = study;
    this.root = root;
    this.address = new Address(() => this.show());
    this.shown = "";
    DARK.addEventListener("change", () => this.show());
    let resizing = 0;
    window.addEventListener("resize", () => {
      cancelAnimationFrame(resizing);
      resizing = requestAnimationFrame(() => this.show());
    });
    this.model_chooser = chooser("Model", study.models.map((model) => [model.id, model.name]), (id) => {
      const model = /** @type {import("./study.js").Model} */ (study.model(id));
      const head = model.head(this.state.head) ? this.state.head : "";
      this.set({ model: this.nameOf(model), head, at: "", heads: "", off: "", edge: "", bar: "" });
    });
    this.tabs = el("nav", { "aria-label": "Views" });
    this.finding = el("p", { class: "finding" });
    this.body = el("div", { class: "body" });
    root.replaceChildren(
      el("header", { class: "top" },
        el("h1", {}, el("span", { class: "brand" }, "Headstream"), study.contents.study), this.model_chooser.element, this.tabs),
      newerPage(study.contents.version), this.finding, this.body);
    this.show();
  }

  get state() {
    return this.address.state;
  }

  /** The model of the address; of an address that names none, the first. */
  get model() {
    return this.study.model(this.state.model) ?? this.study.models[0];
  }

  /** The head of the address; of an address that names none, the one with most induction. @returns {import("./study.js").Head | null} */
  get head() {
    const { model } = this, asked = model.head(this.state.head);
    if (asked) return asked;
    const value = (/** @type {import("./study.js").Head} */ head) => model.score(FIRST_SCORE, model.last, head) ?? 0;
    return model.heads.reduce((best, head) => (!best || value(head) > value(best) ? head : best), /** @type {import("./study.js").Head | null} */ (null));
  }

  /** The checkpoint nearest to the address's, counted from 0. */
  get at() {
    const { model, state } = this, asked = Number(state.at);
    if (state.at === "" || Number.isNaN(asked)) return model.last;
    const apart = model.checkpoints.map(({ step }) => Math.abs(step - asked));
    return apart.indexOf(Math.min(...apart));
  }

  get score() {
    const names = this.study.scores.map(({ score }) => score);
    return [this.state.score, FIRST_SCORE].find((name) => names.includes(name)) ?? names[0];
  }

  /** How wide pictures are that have the view to themselves, in CSS pixels. */
  get room() {
    return clamp((this.body.querySelector("main")?.clientWidth ?? 640) - 36, 280, 820);
  }

  /** A checkpoint in words. @param {number} at */
  when(at) {
    const { step, tokens } = this.model.checkpoints[at];
    const seen = tokens === null ? `step ${step}` : `${shortCount(tokens)} tokens`;
    return this.model.last ? `${seen} (checkpoint ${at + 1} of ${this.model.last + 1})` : seen;
  }

  /** What a link calls a model: its label if it stands for that. @param {import("./study.js").Model} model */
  nameOf(model) {
    return model.row.stands_for_label ? model.row.label : model.id;
  }

  /** @param {Partial<import("./state.js").State>} changes */
  set(changes) {
    this.address.set({ model: this.nameOf(this.model), head: this.head?.name ?? "", ...changes });
  }

  /** @param {Partial<import("./state.js").State>} changes */
  link(changes) {
    return this.address.link({ model: this.nameOf(this.model), head: this.head?.name ?? "", ...changes });
  }

  /** A link that, followed, keeps what has changed since it was made. @param {Partial<import("./state.js").State>} changes @param {string} text */
  anchor(changes, text) {
    return el("a", { href: this.link(changes), on: { click: (/** @type {MouseEvent} */ event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return; // to another tab or window
      event.preventDefault();
      this.set(changes);
    } } }, text);
  }

  show() {
    const view = VIEWS[this.state.view] ? this.state.view : "heads", { title, open, hasCard } = VIEWS[view];
    const place = `${this.model.id} ${view}`;
    document.title = `${this.model.name} ${this.head?.name ?? ""}, ${title}: ${this.study.contents.study}`;
    this.model_chooser.select.value = this.model.id;
    if (place !== this.shown) {
      this.view?.stop();
      this.shown = place;
      this.view = open(this);
      this.card = hasCard ? headCard(this) : undefined;
      this.slider = ["text", "circuits"].includes(view) && this.model.last ? checkpointSlider(this) : undefined;
      this.body.className = hasCard ? "body with-card" : "body";
      this.body.replaceChildren(el("main", {}, ...(this.slider ? [this.slider.element] : []), this.view.element), ...(this.card ? [this.card.element] : []));
    }
    this.tabs.replaceChildren(...Object.entries(VIEWS).map(([name, { title }]) =>
      el("a", { href: this.link({ view: name }), "aria-current": name === view ? "page" : null, "data-focus": `tab ${name}` }, title)));
    this.finding.replaceChildren(...this.formation());
    this.view?.update();
    this.card?.update();
    this.slider?.update();
  }

  /** When the best head formed, with links to before and after. @returns {(Node | string)[]} */
  formation() {
    const { model } = this, change = model.rows.phase_changes.find((row) => row.score === "prefix_matching");
    if (!change) return [];
    const [before, after] = ["window_start_tokens", "window_end_tokens"].map((name) =>
      model.checkpoints.findIndex(({ tokens }) => tokens === change[name]));
    if (before < 0 || after < 0) return [];
    const name = `L${change.layer}H${change.head}`;
    const link = (/** @type {number} */ at) =>
      this.anchor({ head: name, at: at === model.last ? "" : String(model.checkpoints[at].step) }, this.when(at).split(" (")[0]);
    return [
      `${name} of ${model.name} formed abruptly between `, link(before), " and ", link(after),
      `: its prefix matching went from ${change.before.toFixed(2)} to ${change.after.toFixed(2)} over training.`,
    ];
  }
}

const root = /** @type {HTMLElement} */ (document.getElementById("page"));
openStudy().then((study) => new Page(study, root)).catch((error) => {
  root.replaceChildren(el("p", { class: "empty", role: "alert" }, `This page can't be shown: ${error.message}. It needs a browser of 2023 or later.`));
  throw error;
});
