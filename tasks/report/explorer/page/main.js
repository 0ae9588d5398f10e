// The page: its header, its views, and what of them is seen.

import { headCard } from "./card.js";
import { checkpointSlider } from "./checkpoint_slider.js";
import { DARK } from "./colours.js";
import { chooser, el } from "./elements.js";
import { finding } from "./finding.js";
import { fullName } from "./interventions.js";
import { newerPage } from "./newer_page.js";
import { Page } from "./page.js";
import { Address } from "./state.js";
import { openStudy } from "./study.js";

/** @import { OpenView, View } from "./page.js" */
/** @import { Model, Study } from "./study.js" */

/**
 * Shows the study that the file holds.
 * @param {View[]} views
 */
export async function openPage(views) {
  const root = /** @type {HTMLElement} */ (document.getElementById("page"));
  try {
    const frame = new Frame(await openStudy(), views);
    root.replaceChildren(...frame.parts);
    frame.show();
  } catch (error) {
    const why = /** @type {Error} */ (error).message;
    const advice = "Open it without what follows # in its address, or in a browser of 2023 or later.";
    const words = `This page can't be shown: ${why}. ${advice}`;
    root.replaceChildren(el("p", { class: "empty", role: "alert" }, words));
    throw error;
  }
}

class Frame {
  /** @param {Study} study @param {View[]} views */
  constructor(study, views) {
    this.views = views.toSorted((a, b) => a.place - b.place);
    this.page = new Page(study, new Address(() => this.show()));
    this.shown = ""; // the model and the view
    /** @type {OpenView[]} the slider, the view and the card, as far as they are there */
    this.open = [];
    this.models = chooser(
      "Model",
      study.models.map((model) => [model.id, fullName(model)]),
      (id) => this.showModel(/** @type {Model} */ (study.model(id))),
    );
    this.tabs = el("nav", { "aria-label": "Views" });
    this.finding = el("p", { class: "finding" });
    this.body = el("div", { class: "body" });
    const title = el("h1", {}, el("span", { class: "brand" }, "Headstream"), study.contents.study);
    const header = el("header", { class: "top" }, title, this.models.element, this.tabs);
    this.parts = [header, newerPage(study.contents.version), this.finding, this.body];
    DARK.addEventListener("change", () => this.show());
    let resizing = 0;
    window.addEventListener("resize", () => {
      cancelAnimationFrame(resizing);
      resizing = requestAnimationFrame(() => this.show());
    });
  }

  /** @param {Model} model */
  showModel(model) {
    const { page } = this;
    const head = model.head(page.state.head) ? page.state.head : "";
    const ofThisOne = { at: "", heads: "", off: "", edge: "", bar: "", edges: "", patched: "" };
    page.set({ ...ofThisOne, model: page.nameOf(model), head });
  }

  show() {
    const { page } = this;
    const view = this.views.find(({ name }) => name === page.state.view) ?? this.views[0];
    const place = `${page.model.id} ${view.name}`;
    document.title = `${page.model.name} ${page.head?.name ?? ""}, ${view.title}: ${page.study.contents.study}`;
    this.models.select.value = page.model.id;
    if (place !== this.shown) {
      this.shown = place;
      this.openView(view);
    }
    this.tabs.replaceChildren(...this.views.map((each) => this.tab(each, each === view)));
    this.finding.replaceChildren(...finding(page));
    for (const part of this.open) part.update?.();
  }

  /** @param {View} view */
  openView(view) {
    const { page } = this;
    for (const part of this.open) part.stop?.();
    const seen = view.open(page);
    const sliders = view.hasSlider && page.model.last ? [checkpointSlider(page)] : [];
    const cards = view.hasCard ? [headCard(page)] : [];
    this.open = [seen, ...cards, ...sliders];
    this.body.className = view.hasCard ? "body with-card" : "body";
    const main = el("main", {}, ...sliders.map(({ element }) => element), seen.element);
    this.body.replaceChildren(main, ...cards.map(({ element }) => element));
  }

  /** @param {View} view @param {boolean} isShown */
  tab({ name, title }, isShown) {
    const href = this.page.link({ view: name });
    return el("a", { href, "aria-current": isShown ? "page" : null, "data-focus": `tab ${name}` }, title);
  }
}
