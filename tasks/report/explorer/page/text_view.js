// A passage, or a reader's own text: where each token looks, who looks at it, and what comes next with heads switched off.

import { colour, css, mixed, seriesColour, valueColour } from "./colours.js";
import { chooser, el, isChoice, moveFocus, refill, svg, tickBox } from "./elements.js";
import { figure } from "./figure.js";
import { matrix } from "./matrix.js";
import { clamp, readable } from "./numbers.js";
import { runOn } from "./runs.js";
import { plain, tokenNodes } from "./tokens.js";

/** @typedef {import("./study.js").Head} Head @typedef {import("./runs.js").Run} Run */

const OWN = "own";
const N_PREDICTIONS = 6;
const MOST_STRIPES = 6; // heads that a token can show side by side
const LOSS_OF_DEEPEST = 6; // nats
const CHANGE_OF_DEEPEST = 3; // nats
const TYPING_MS = 250;
const MOST_BUTTONS = 16, N_BEST = 8; // heads that have a button each; of more, the best by role
const ROLE_SCORES = ["induction_random_period", "previous_token", "duplicate_token"];
const SAMPLE_SIGNS = 28, SAMPLE_TOKENS = 40; // of a passage, in its name and as a text to begin with

/** @param {import("./main.js").Page} page */
export function textView(page) {
  const { model } = page;
  if (!model.text || !model.network) {
    return { element: el("p", { class: "empty" }, `This file holds neither weights nor attention of ${model.name}: About says what it holds.`), update() {}, stop() {} };
  }
  const text = model.text;
  /** @type {[string, string][]} */
  const passages = text.passages.map(({ name, tokens }, i) => [String(i), passageName(text, name, tokens)]);
  const available = model.runnableSteps.length ? passages : passages.filter(([i]) => model.network?.kept[i]);
  const passage = chooser("Text", model.takesText ? [...available, [OWN, "your own text"]] : available,
    (value) => (value === OWN ? typeOwn() : page.set({ passage: value, token: "" })));
  const ownButton = el("button", { type: "button", on: { click: () => typeOwn() } }, "Type a text of your own");
  /** Begins with what is shown, so that there is something to change. */
  function typeOwn() {
    const shown = page.state.passage === OWN ? [] : text.passages[Number(page.state.passage)]?.tokens ?? [];
    const start = shown.slice(text.opening.length, SAMPLE_TOKENS).map((token) => text.label(token)).join("");
    page.set({ passage: OWN, text: page.state.text || start, token: "" });
    area.focus();
  }
  const way = chooser("Show", [["from", "where a token looks"], ["to", "who looks at a token"]], (value) => page.set({ way: value }));
  const tint = chooser("Colour", [["attention", "attention"], ["loss", "loss of each token"], ["change", "change of loss with heads off"]],
    (value) => page.set({ colour: value }));
  const average = tickBox("average the heads", (checked) => page.set({ average: checked ? "1" : "" }));
  const weighed = tickBox("weigh by what is read", (checked) => page.set({ weighed: checked ? "1" : "" }));
  weighed.element.title = "Attention times the length of what the head would write of the key (Kobayashi et al. 2020)";
  let typing = 0;
  const area = el("textarea", {
    rows: 3, spellcheck: "false", "aria-label": "Your own text", placeholder: "Type a text; every view follows.",
    on: { input: () => { clearTimeout(typing); typing = window.setTimeout(() => page.set({ text: area.value, passage: OWN, token: "" }), TYPING_MS); } },
  });
  const own = el("div", { class: "own" }, area);
  const chips = el("div", { class: "chips", role: "group", "aria-label": "Heads shown" }), switches = el("div", { class: "chips", role: "group", "aria-label": "Heads switched off" });
  const note = el("p", { class: "hint" }), shown = el("div"), square = el("div"), next = el("div");
  const off = el("details", { class: "off", open: model.heads.length <= MOST_BUTTONS }, el("summary", {}, "Switch heads off"), switches);
  const element = el("section", { "aria-label": "Attention on a text" },
    el("div", { class: "controls" }, passage.element, model.takesText && ownButton, way.element, tint.element, average.element, weighed.element),
    own, chips, model.runnableSteps.length ? off : null, note, shown,
    el("div", { class: "beside" }, next, square));
  let asked = 0;

  async function update() {
    const { state } = page, number = ++asked;
    const isOwn = state.passage === OWN && model.takesText;
    const index = isOwn ? null : Number(available.some(([i]) => i === state.passage) ? state.passage : available[0]?.[0]);
    passage.select.value = isOwn ? OWN : String(index);
    way.select.value = state.way;
    tint.select.value = state.colour;
    average.input.checked = Boolean(state.average);
    weighed.input.checked = Boolean(state.weighed);
    own.hidden = !isOwn;
    ownButton.hidden = isOwn;
    if (document.activeElement !== area) area.value = state.text;
    const heads = chosenHeads(page), without = state.off.split(",").filter((name) => model.head(name));
    headChips(page, chips, heads);
    headSwitches(page, switches, without);
    if (without.length) off.open = true;
    const all = isOwn ? [...text.opening, ...(text.tokenizer?.encode(state.text) ?? [])] : text.passages[/** @type {number} */ (index)].tokens;
    const tokens = all.slice(0, model.network?.sizes.nContext);
    const steps = model.runnableSteps, wanted = model.checkpoints[page.at].step;
    const step = steps.reduce((best, each) => (Math.abs(each - wanted) < Math.abs(best - wanted) ? each : best), steps[0] ?? wanted);
    const intact = await runOn(model, step, tokens, index, []);
    const run = without.length && steps.length ? await runOn(model, step, tokens, index, without) : intact;
    if (number !== asked) return;
    if (!run || !intact) {
      refill(shown, el("p", { class: "empty" }, "This file holds no attention of this model on this passage."));
      return;
    }
    note.replaceChildren(...notes(step, all.length > tokens.length));
    show(run, intact, heads, without);
  }

  /** @param {number} step @param {boolean} isCut @returns {(Node | string)[]} */
  function notes(step, isCut) {
    const steps = model.runnableSteps, places = model.checkpoints.map((checkpoint) => checkpoint.step);
    const links = steps.length > 1 ? steps.flatMap((each) => {
      const at = places.indexOf(each);
      return [" ", el("a", { href: page.link({ at: at === model.last ? "" : String(each) }), "aria-current": each === step ? "true" : null }, page.when(at).split(" (")[0])];
    }) : [];
    return [
      isCut ? `Cut to the model's context of ${model.network?.sizes.nContext} tokens. ` : "",
      `Attention of ${model.name} after ${page.when(places.indexOf(step) < 0 ? model.last : places.indexOf(step))}.`,
      ...(links.length ? [" The file holds its weights after", ...links] : []),
    ];
  }

  /** @param {Run} run @param {Run} intact @param {Head[]} heads @param {string[]} without */
  function show(run, intact, heads, without) {
    const { state } = page, names = run.tokens.map((token) => plain(text.label(token)));
    const position = state.token === "" ? (state.passage === OWN ? run.n - 1 : defaultToken(intact)) : clamp(Number(state.token) || 0, 0, run.n - 1);
    const averaged = Boolean(state.average) || heads.length > MOST_STRIPES;
    /** @type {{name: string, attention: Float32Array, tint: import("./colours.js").Colour}[]} */
    const layers = !heads.length ? [] : averaged
      ? [{ name: heads.length === 1 ? heads[0].name : `mean of ${heads.length} heads`, attention: run.meanAttention(heads, Boolean(state.weighed)), tint: colour("blue") }]
      : heads.map((head, i) => ({ name: head.name, attention: run.attention(head, Boolean(state.weighed)), tint: seriesColour(i) }));
    const passageElement = el("div", { class: "passage", role: "group", "aria-label": "Tokens; arrow keys move" });
    const spans = run.tokens.map((token, i) => el("span", {
      class: "token", role: "button", tabindex: i === position ? 0 : -1, "data-focus": `token ${i}`, "data-token": i, "aria-pressed": i === position,
      on: {
        pointerenter: (/** @type {PointerEvent} */ event) => event.pointerType === "mouse" && paint(i), focus: () => paint(i),
        click: () => page.set({ token: String(i) }),
        keydown: (/** @type {KeyboardEvent} */ event) => {
          if (isChoice(event)) page.set({ token: String(i) });
          else moveFocus(event, spans, tokensInLine(spans));
        },
      },
    }, ...tokenNodes(text.label(token))));
    passageElement.addEventListener("pointerleave", () => paint(position));
    spans.forEach((span, i) => {
      passageElement.append(span);
      if (text.label(run.tokens[i]).includes("\n")) passageElement.append(el("br"));
    });

    /** Colours for one token. @param {number} at */
    function paint(at) {
      spans.forEach((span, i) => {
        const shades = shadesOf(i, at);
        span.style.background = shades.length ? `linear-gradient(to bottom, ${shades.map((shade, k) =>
          `${shade} ${100 * k / shades.length}% ${100 * (k + 1) / shades.length}%`).join(", ")})` : "";
        span.classList.toggle("at", i === at);
        span.setAttribute("aria-label", `${i}: ${names[i]}${said(i, at)}`);
        span.title = `${i}: ${names[i]}${said(i, at)}`;
      });
    }

    /** What layer `each` says between token i and the one that is pointed at. @param {Float32Array} attention @param {number} i @param {number} at */
    const weight = (attention, i, at) => (state.way === "to" ? attention[i * run.n + at] : attention[at * run.n + i]);

    /** @param {number} i @param {number} at */
    function said(i, at) {
      if (state.colour === "loss") return `, loss ${readable(run.losses[i])} nats`;
      if (state.colour === "change") return `, loss ${readable(intact.losses[i])} → ${readable(run.losses[i])} nats`;
      return layers.map(({ name, attention }) => `, ${name} ${readable(weight(attention, i, at))}`).join("");
    }

    /** The colours of token i, one above the other. @param {number} i @param {number} at @returns {string[]} */
    function shadesOf(i, at) {
      const loss = run.losses[i], before = intact.losses[i];
      if (state.colour === "loss") return loss === null ? [] : [css(mixed(colour("card"), colour("amber"), clamp(loss / LOSS_OF_DEEPEST, 0, 1)))];
      if (state.colour === "change") return loss === null || before === null ? [] : [css(valueColour(before - loss, CHANGE_OF_DEEPEST))];
      return layers.map(({ attention, tint }) => css(tint, clamp(weight(attention, i, at), 0, 1) * 0.85));
    }

    const what = { loss: `Loss of each token: deepest from ${LOSS_OF_DEEPEST} nats`, change: without.length
      ? `How ${without.join(", ")} off changes the loss: orange is worse, deepest from ${CHANGE_OF_DEEPEST} nats` : "Switch heads off to see what changes" }[state.colour]
      ?? (state.way === "to" ? `Who looks at token ${position}, ${names[position]}` : `Where token ${position}, ${names[position]}, looks`);
    refill(shown, figure({
      title: what, name: `${model.id} text`, content: passageElement, picture: () => textPicture(passageElement, spans, (i) => shadesOf(i, position)),
      note: state.colour === "attention" ? el("span", {}, "Point at a token, or choose one. ", ...layers.flatMap(({ name, tint }) => {
        const swatch = el("span", { class: "swatch" });
        swatch.style.background = css(tint);
        return [swatch, `${name} `];
      })) : "The first token is given, not predicted.",
      sql: null, rows: () => run.tokens.map((_, i) => ({
        position: i, token: text.label(run.tokens[i]), loss_nats: run.losses[i],
        ...(without.length ? { intact_loss_nats: intact.losses[i] } : {}),
        ...Object.fromEntries(layers.map(({ name, attention }) => [`${name} ${state.way === "to" ? "to" : "from"} ${position}`, weight(attention, i, position)])),
      })),
    }));
    paint(position);
    refill(next, nextTokens(run, intact, position, names, without));
    if (layers.length) refill(square, attentionSquare(page, layers[0], run, names, position));
    else square.replaceChildren();
  }

  /** @param {Run} run @param {Run} intact @param {number} position @param {string[]} names @param {string[]} without */
  function nextTokens(run, intact, position, names, without) {
    const real = run.tokens[position + 1];
    const wanted = [...intact.best(position, N_PREDICTIONS), ...(without.length ? run.best(position, N_PREDICTIONS) : [])].map(({ token }) => token);
    const tokens = [...new Set([...(real === undefined ? [] : [real]), ...wanted])];
    const rows = tokens.map((token) => ({ token, whole: intact.probability(position, token), off: run.probability(position, token) }))
      .sort((a, b) => (b.whole ?? 0) - (a.whole ?? 0));
    const high = 22, left = 110, width = Math.min(420, page.room), room = width - left - (without.length ? 100 : 60);
    const picture = svg("svg", { viewBox: `0 0 ${width} ${rows.length * high + 4}`, role: "img", "font-family": "sans-serif", "font-size": 12,
      "aria-label": rows.map(({ token, whole }) => `${plain(text.label(token))} ${readable(whole)}`).join(", ") },
      ...rows.flatMap(({ token, whole, off }, i) => {
        const y = i * high, bar = without.length ? 7 : 14;
        return [
          svg("text", { x: left - 8, y: y + 15, "text-anchor": "end", "font-family": "monospace", "font-weight": token === real ? "bold" : "normal", fill: css(colour("ink")) },
            `${plain(text.label(token)).slice(0, 12)}${token === real ? " ✓" : ""}`),
          svg("rect", { x: left, y: y + 4, width: Math.max(0.5, (whole ?? 0) * room), height: bar, fill: css(colour("blue")) }),
          without.length > 0 && svg("rect", { x: left, y: y + 12, width: Math.max(0.5, (off ?? 0) * room), height: bar, fill: css(colour("orange")) }),
          svg("text", { x: left + 6 + Math.max(whole ?? 0, without.length ? off ?? 0 : 0) * room, y: y + 15, fill: css(colour("muted")) },
            without.length ? `${readable(whole)} → ${readable(off)}` : readable(whole)),
        ];
      }));
    return figure({
      title: `What comes after token ${position}, ${names[position]}`, name: `${model.id} next tokens`, content: picture, picture,
      note: without.length ? `Probability in the whole model (blue) and with ${without.join(", ")} off (orange: it writes nothing); ✓ is what does come.`
        : "Probability of the next token; ✓ is what does come.",
      sql: null, rows: () => rows.map(({ token, whole, off }) => ({ token: text.label(token), probability: whole, ...(without.length ? { probability_with_heads_off: off } : {}), comes: token === real })),
    });
  }

  return { element, update: () => void update(), stop() {} };
}

/** A passage's name and how it goes on after BOS. @param {import("./study.js").Text} text @param {string} name @param {number[]} tokens */
export function passageName(text, name, tokens) {
  return `${name}: ${plain(tokens.slice(1, 1 + SAMPLE_SIGNS).map((token) => text.label(token)).join("")).slice(0, SAMPLE_SIGNS)} …`;
}

/** The token that says most at first: in the second half, the best predicted one, or the last. @param {Run} run */
function defaultToken(run) {
  const later = run.losses.map((loss, i) => ({ i, loss })).filter(({ i, loss }) => loss !== null && i > run.n / 2 && i < run.n - 1);
  return later.length ? later.reduce((best, each) => (/** @type {number} */ (each.loss) < /** @type {number} */ (best.loss) ? each : best)).i - 1 : run.n - 1;
}

/** @param {HTMLElement[]} spans */
function tokensInLine(spans) {
  const top = spans[0]?.offsetTop;
  const next = spans.findIndex((span) => span.offsetTop > top);
  return Math.max(1, next);
}

/** Heads whose attention is shown. @param {import("./main.js").Page} page @returns {Head[]} */
export function chosenHeads(page) {
  const named = page.state.heads.split(",").map((name) => page.model.head(name)).filter((head) => head !== undefined);
  return named.length ? named : page.head ? [page.head] : [];
}

/** Heads that have a button: all of a few; of many those that are chosen or have most of a role. @param {import("./main.js").Page} page @param {string[]} chosen */
function headsAtHand(page, chosen) {
  const { heads } = page.model;
  if (heads.length <= MOST_BUTTONS) return heads;
  const value = (/** @type {Head} */ head) => Math.max(...ROLE_SCORES.map((score) => page.model.score(score, page.model.last, head) ?? 0));
  const best = [...heads].sort((a, b) => value(b) - value(a)).slice(0, N_BEST);
  return heads.filter((head) => best.includes(head) || chosen.includes(head.name));
}

/** A drop-down of the heads that have no button; null if all have. @param {import("./main.js").Page} page @param {Head[]} atHand @param {string} label @param {(name: string) => void} choose */
function otherHeads(page, atHand, label, choose) {
  const others = page.model.heads.filter((head) => !atHand.includes(head));
  if (!others.length) return null;
  const { element } = chooser(label, [["", "another head"], ...others.map(({ name }) => /** @type {[string, string]} */ ([name, name]))], choose);
  return element;
}

/** @param {import("./main.js").Page} page @param {Element} container @param {Head[]} chosen */
function headChips(page, container, chosen) {
  const { model } = page, names = chosen.map(({ name }) => name), atHand = headsAtHand(page, names);
  /** @param {string[]} wanted @param {string} head */
  const set = (wanted, head) => page.set({ heads: (wanted.length ? wanted : [head]).join(","), head });
  const chip = (/** @type {Head} */ head) => {
    const place = chosen.indexOf(head), role = model.role(head);
    const button = el("button", {
      type: "button", class: "chip", "aria-pressed": place >= 0, "data-focus": `chip ${head.name}`, title: role ?? "",
      on: { click: () => set(place >= 0 ? names.filter((name) => name !== head.name) : [...names, head.name], head.name) },
    }, head.name, role && role !== "other" && el("small", {}, role));
    if (place >= 0 && chosen.length <= MOST_STRIPES) button.style.borderColor = css(page.state.average ? colour("blue") : seriesColour(place));
    return button;
  };
  refill(container, el("span", { class: "hint" }, "Heads: "), ...atHand.map(chip),
    otherHeads(page, atHand, "", (name) => set([...names, name], name)),
    el("button", { type: "button", class: "chip", "data-focus": "chip all", on: { click: () => page.set({ heads: model.heads.map(({ name }) => name).join(","), average: "1" }) } }, "all, averaged"));
}

/** @param {import("./main.js").Page} page @param {Element} container @param {string[]} without */
function headSwitches(page, container, without) {
  /** @param {string[]} names */
  const set = (names) => page.set({ off: names.join(",") });
  const atHand = headsAtHand(page, without);
  refill(container, ...atHand.map(({ name }) => {
    const isOff = without.includes(name);
    return el("button", {
      type: "button", class: "chip switch", role: "switch", "aria-checked": !isOff, "aria-label": `${name} ${isOff ? "off" : "on"}`, "data-focus": `switch ${name}`,
      on: { click: () => set(isOff ? without.filter((each) => each !== name) : [...without, name]) },
    }, name, el("small", {}, isOff ? "off" : "on"));
  }), otherHeads(page, atHand, "", (name) => set([...without, name])),
  without.length > 0 && el("button", { type: "button", class: "chip", "data-focus": "switch all", on: { click: () => set([]) } }, "all on"));
}

/** @param {import("./main.js").Page} page @param {{name: string, attention: Float32Array}} layer @param {Run} run @param {string[]} names @param {number} position */
function attentionSquare(page, { name, attention }, run, names, position) {
  const picture = attentionMatrix({ name, attention, n: run.n, names, position, onChoose: (query) => page.set({ token: String(query), way: "from" }), side: 420 });
  return figure({
    title: `Attention of ${name}`, name: `${page.model.id} ${name} attention`, content: picture, picture,
    note: "A row a token that looks, a column a token looked at; deeper is more.",
    sql: null, rows: () => pairs(attention, run.n, names),
  });
}

/** @param {{name: string, attention: Float32Array, n: number, names: string[], position: number | null, onChoose: (query: number, key: number) => void, side: number, tint?: string}} shown */
export function attentionMatrix({ name, attention, n, names, position, onChoose, side, tint }) {
  return matrix({
    rows: n, columns: n, value: (q, k) => (k > q ? null : attention[q * n + k]), most: 1, side, tint, label: `Attention of ${name}`,
    rowName: (q) => names[q], columnName: (k) => names[k], rowTitle: "looks", columnTitle: "looked at",
    chosen: position === null ? null : [position, null], onChoose,
    hint: (q, k) => (k > q ? "" : `${q} ${names[q]} → ${k} ${names[k]}: ${readable(attention[q * n + k])}`),
  });
}

/** @param {Float32Array} attention @param {number} n @param {string[]} names */
export function pairs(attention, n, names) {
  return Array.from({ length: n }, (_, q) => Array.from({ length: q + 1 }, (_, k) => ({
    query: q, key: k, query_token: names[q], key_token: names[k], weight: attention[q * n + k],
  }))).flat();
}

/**
 * The passage as a picture: each token where it is on the page.
 * @param {HTMLElement} passage @param {HTMLElement[]} spans @param {(i: number) => string[]} shadesOf @returns {SVGSVGElement}
 */
function textPicture(passage, spans, shadesOf) {
  const box = passage.getBoundingClientRect();
  return svg("svg", { viewBox: `0 0 ${Math.ceil(box.width)} ${Math.ceil(box.height)}` }, ...spans.flatMap((span, i) => {
    const found = span.getBoundingClientRect(), x = found.left - box.left, y = found.top - box.top, shades = shadesOf(i);
    const high = found.height / shades.length;
    return [
      ...shades.map((fill, k) => svg("rect", { x, y: y + k * high, width: found.width, height: high, fill })),
      svg("text", { x: x + 2, y: y + found.height * 0.72, "font-size": 14, "font-family": "monospace", fill: css(colour("ink")) }, span.textContent),
    ];
  }));
}
