// What the reader sees, held by the page's address: #MODEL/L1H0?view=text&...

const DEFAULTS = {
  model: "",
  head: "",
  view: "heads",
  beside: "", // another model; its base if empty
  at: "", // a training step; the last one if empty
  score: "",
  passage: "0",
  text: "",
  token: "",
  way: "from",
  heads: "", // names with commas between
  average: "",
  weighed: "",
  off: "", // like heads
  colour: "attention",
  kinds: "QKV",
  bar: "",
  edge: "", // like L0H0-L1H3-K
  set: "", // a prompt set; OWN_PAIR for a pair that is typed
  edges: "", // of the circuit that is drawn; as many as were found if empty
  pair: "0", // place among those of the set that the file holds
  effects: "", // mean for those over the whole set
  into: "clean", // the run that others are patched into
  patched: "", // like heads
  clean: "",
  corrupt: "",
  answer: "",
  wrong: "",
};
/** @typedef {typeof DEFAULTS} State */

const PLACES = /** @type {const} */ (["model", "head", "view"]); // from which one can go back

/** @param {string} hash @returns {State} */
export function stateOf(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const [model = "", head = ""] = path.split("/").map(decoded);
  const given = new URLSearchParams(query);
  const state = { ...DEFAULTS, model, head };
  for (const name of /** @type {(keyof State)[]} */ (Object.keys(DEFAULTS))) {
    if (name !== "model" && name !== "head") state[name] = given.get(name) ?? DEFAULTS[name];
  }
  return state;
}

/**
 * A link may have been cut in the middle of a sign.
 * @param {string} part
 */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** @param {State} state */
export function hashOf(state) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    const isDefault = value === DEFAULTS[/** @type {keyof State} */ (name)];
    if (name !== "model" && name !== "head" && !isDefault) query.set(name, value);
  }
  const path = `#${encodeURIComponent(state.model)}/${encodeURIComponent(state.head)}`;
  return query.size ? `${path}?${query}` : path;
}

export class Address {
  /** @param {(state: State) => void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
    this.state = stateOf(location.hash);
    window.addEventListener("popstate", () => {
      this.state = stateOf(location.hash);
      onChange(this.state);
    });
  }

  /**
   * Going to another model, head or view can be undone by going back.
   * @param {Partial<State>} changes
   */
  set(changes) {
    const before = this.state;
    this.state = { ...before, ...changes };
    const hash = hashOf(this.state);
    if (hash !== location.hash) {
      const isElsewhere = PLACES.some((name) => this.state[name] !== before[name]);
      history[isElsewhere ? "pushState" : "replaceState"](null, "", hash);
    }
    this.onChange(this.state);
  }

  /**
   * The address of what the changes would show.
   * @param {Partial<State>} changes
   */
  link(changes) {
    return hashOf({ ...this.state, ...changes });
  }
}
