// Attention in a notebook: a small map of each head, one of them large, and the weight under the pointer or the keys.
// Several drawings may stand on one page: each run of this script draws those that are not drawn yet.

(() => {
  const TINT = [59, 143, 212];
  const MOVES = /** @type {Record<string, [number, number]>} */ ({
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
  });

  /**
   * @typedef {object} Drawn what is drawn
   * @property {string[]} tokens
   * @property {string[]} heads
   * @property {Uint16Array} weights thousandths: for each head, for each query, one for each key up to it
   */
  /** @typedef {{ head: number, query: number, key: number }} Place what is pointed at */
  /** @typedef {(change: Partial<Place>) => void} Go to what looks; without a key, to what that looks at most */

  /** @param {Drawn} drawn @param {Place} place */
  function weightAt({ tokens, weights }, { head, query, key }) {
    const n = tokens.length;
    return weights[(head * n * (n + 1)) / 2 + (query * (query + 1)) / 2 + key] / 1000;
  }

  /**
   * The key that a query looks at most.
   * @param {Drawn} drawn
   * @param {number} head
   * @param {number} query
   */
  function strongestKey(drawn, head, query) {
    const weights = Array.from({ length: query + 1 }, (_, key) => weightAt(drawn, { head, query, key }));
    return weights.indexOf(Math.max(...weights));
  }

  /**
   * @template {keyof HTMLElementTagNameMap} Tag
   * @param {Tag} tag
   * @param {Record<string, string>} attributes
   * @param {(Node | string)[]} children
   */
  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  /** @param {Drawn} drawn @param {number} head @param {Record<string, string>} attributes */
  function map(drawn, head, attributes) {
    const n = drawn.tokens.length;
    const canvas = element("canvas", { ...attributes, width: `${n}`, height: `${n}` });
    paint(canvas, drawn, head);
    return canvas;
  }

  /** @param {HTMLCanvasElement} canvas @param {Drawn} drawn @param {number} head */
  function paint(canvas, drawn, head) {
    const n = drawn.tokens.length;
    const image = new ImageData(n, n);
    for (let query = 0; query < n; query++) {
      for (let key = 0; key <= query; key++) {
        image.data.set([...TINT, 255 * weightAt(drawn, { head, query, key })], 4 * (query * n + key));
      }
    }
    canvas.getContext("2d")?.putImageData(image, 0, 0);
  }

  /**
   * A row of buttons for each layer, the last one on top, of which one is chosen.
   * @param {Drawn} drawn
   * @param {Go} go
   */
  function headButtons(drawn, go) {
    const rows = /** @type {Map<string, HTMLElement[]>} */ (new Map());
    const buttons = drawn.heads.map((name, head) => {
      const layer = name.slice(0, name.indexOf("H"));
      const button = element("button", { type: "button", role: "radio" }, map(drawn, head, {}), name);
      button.addEventListener("click", () => go({ head }));
      rows.set(layer, [...(rows.get(layer) ?? []), button]);
      return button;
    });
    const layers = [...rows.values()].reverse().map((row) => element("div", { class: "layer" }, ...row));
    const group = element("div", { class: "heads", role: "radiogroup", "aria-label": "Heads" }, ...layers);
    group.addEventListener("keydown", (event) => {
      const row = layers.findIndex((layer) => layer.contains(document.activeElement));
      const [up, right] = MOVES[event.key] ?? [0, 0];
      const own = layers[row]?.children ?? [];
      const column = [...own].indexOf(/** @type {Element} */ (document.activeElement));
      const other = layers[row + up];
      const next = other?.children[up ? Math.min(column, other.children.length - 1) : column + right];
      if (event.key in MOVES) event.preventDefault();
      if (next instanceof HTMLElement) next.click();
    });
    return { group, buttons };
  }

  /**
   * The text: the token that looks has a frame, and those that it looks at are tinted.
   * @param {Drawn} drawn
   * @param {Go} go
   */
  function tokenButtons({ tokens }, go) {
    const buttons = tokens.map((token, query) => {
      const button = element("button", { type: "button", role: "radio", "aria-label": `${query} ${token}` }, token);
      button.addEventListener("click", () => go({ query }));
      button.addEventListener("pointerenter", () => go({ query }));
      return button;
    });
    const group = element("div", { class: "tokens", role: "radiogroup", "aria-label": "Token that looks" });
    group.append(...buttons);
    group.addEventListener("keydown", (event) => {
      const [down, right] = MOVES[event.key] ?? [0, 0];
      const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
      if (event.key in MOVES) event.preventDefault();
      buttons[at + down + right]?.click();
    });
    return { group, buttons };
  }

  /**
   * The large map: a row for each token that looks, a column for each that is looked at.
   * @param {Drawn} drawn
   * @param {Place} place
   * @param {Go} go
   */
  function largeMap(drawn, place, go) {
    const n = drawn.tokens.length;
    const canvas = map(drawn, place.head, { role: "img", tabindex: "0" });
    const mark = element("span", { class: "mark" });
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      const query = Math.floor(((event.clientY - box.top) / box.height) * n);
      const key = Math.floor(((event.clientX - box.left) / box.width) * n);
      if (key <= query && query < n) go({ query, key });
    });
    canvas.addEventListener("keydown", (event) => {
      const [down, right] = MOVES[event.key] ?? [0, 0];
      const query = Math.min(n - 1, Math.max(0, place.query + down));
      if (event.key in MOVES) event.preventDefault();
      go({ query, key: Math.min(query, Math.max(0, place.key + right)) });
    });
    return { canvas, mark, frame: element("div", { class: "large" }, canvas, mark) };
  }

  /**
   * Of a group of buttons, the one that is chosen, which alone is reached by Tab.
   * @param {HTMLElement[]} buttons
   * @param {number} chosen
   */
  function choose(buttons, chosen) {
    const moves = buttons.includes(/** @type {HTMLElement} */ (document.activeElement));
    buttons.forEach((button, i) => {
      button.setAttribute("aria-checked", `${i === chosen}`);
      button.tabIndex = i === chosen ? 0 : -1;
    });
    if (moves) buttons[chosen].focus();
  }

  /** @param {HTMLElement} root @param {Drawn} drawn @param {number} first head that is shown */
  function draw(root, drawn, first) {
    const last = drawn.tokens.length - 1;
    const place = { head: first, query: last, key: last };
    const heads = headButtons(drawn, go);
    const text = tokenButtons(drawn, go);
    const large = largeMap(drawn, place, go);
    const said = element("p", { class: "said", role: "status" });
    const hint = element("p", { class: "hint" });
    hint.textContent = "Rows look, columns are looked at. Point at a cell or token, choose a head.";
    const right = element("div", { class: "right" }, said, text.group, large.frame, hint);
    root.querySelector(".title")?.after(element("div", { class: "drawing" }, heads.group, right));
    root.querySelector("details")?.removeAttribute("open");

    /** @param {Partial<Place>} change */
    function go(change) {
      const { head, query } = Object.assign(place, change);
      place.key = change.key ?? strongestKey(drawn, head, query);
      const name = drawn.heads[head];
      choose(heads.buttons, head);
      choose(text.buttons, query);
      text.buttons.forEach((button, i) => {
        const weight = i <= query ? weightAt(drawn, { head, query, key: i }) : 0;
        button.style.background = `rgba(${TINT.join()}, ${0.75 * weight})`;
        const to = `${i} ${drawn.tokens[i]}: ${weight.toFixed(3)}`;
        button.title = i <= query ? `${query} ${drawn.tokens[query]} → ${to}` : "";
      });
      if ("head" in change) paint(large.canvas, drawn, head);
      const side = 100 / drawn.tokens.length;
      large.mark.style.cssText = `left:${place.key * side}%;top:${query * side}%;width:${side}%;height:${side}%`;
      const from = `${query} ${drawn.tokens[query]}`;
      const to = `${place.key} ${drawn.tokens[place.key]}`;
      said.textContent = `${name}: ${from} → ${to}: ${weightAt(drawn, place).toFixed(3)}`;
      large.canvas.setAttribute("aria-label", `Attention of ${name}, arrow keys move: ${said.textContent}`);
    }
    go({ head: first });
    heads.group.scrollTop = heads.buttons[first].offsetTop - heads.group.offsetTop - 5;
  }

  /** @param {HTMLElement} root */
  async function start(root) {
    const { tokens = "[]", heads = "[]", weights = "", first = "0" } = root.dataset;
    const packed = Uint8Array.from(atob(weights), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const unpacked = new Uint16Array(await new Response(stream).arrayBuffer());
    draw(root, { tokens: JSON.parse(tokens), heads: JSON.parse(heads), weights: unpacked }, Number(first));
  }

  for (const root of document.querySelectorAll(".headstream-attention:not([data-drawn])")) {
    if (root instanceof HTMLElement) {
      root.dataset.drawn = "";
      start(root);
    }
  }
})();
