// Elements made in one call. Text is always set as text: nothing of a corpus is ever read as HTML.

/**
 * @typedef {string | number | boolean | null | undefined} Attribute  true: there, without a value
 * @typedef {Node | string | null | undefined | false} Child  what is missing is left out
 * @typedef {{ [Name in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Name]) => void }} Listeners
 * @typedef {{ on?: Listeners, [attribute: string]: Attribute | Listeners }} Properties  on: listeners by event
 */

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Properties} properties
 * @param {Child[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function el(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/**
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Properties} properties
 * @param {Child[]} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function svg(tag, properties = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

/**
 * Words in a picture.
 * @param {string} words
 * @param {Properties} properties
 */
export function svgText(words, properties) {
  return svg("text", properties, words);
}

/**
 * @template {Element} Kind
 * @param {Kind} element
 * @param {Properties} properties
 * @param {Child[]} children
 */
function filled(element, { on = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("aria-") && typeof value === "boolean") element.setAttribute(name, String(value));
    else if (isThere(value)) element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const [event, listener] of Object.entries(on)) {
    element.addEventListener(event, /** @type {EventListener} */ (listener));
  }
  element.append(...children.filter(isThere));
  return element;
}

/**
 * @template Kind
 * @param {Kind | null | undefined | false} part
 * @returns {part is Kind}
 */
function isThere(part) {
  return part !== null && part !== undefined && part !== false;
}

/**
 * New children for an element; what had the focus has it again.
 * @param {Element} element
 * @param {Child[]} children
 */
export function refill(element, ...children) {
  const focused = element.contains(document.activeElement) ? focusName(document.activeElement) : undefined;
  element.replaceChildren(...children.filter(isThere));
  if (focused === undefined) return;
  const again = [...element.querySelectorAll("[data-focus]")].find((each) => focusName(each) === focused);
  /** @type {HTMLElement | undefined} */ (again)?.focus({ preventScroll: true });
}

/** @param {Element | null} element */
function focusName(element) {
  return /** @type {HTMLElement} */ (element).dataset.focus;
}

/**
 * Makes an element the only child of a place, where it isn't that already.
 * @param {Element} place
 * @param {Element} element
 */
export function showIn(place, element) {
  if (place.firstElementChild !== element) place.replaceChildren(element);
}

/**
 * What stands in place of a view or a figure that has nothing to show.
 * @param {string} why
 */
export function emptyNote(why) {
  return el("p", { class: "empty" }, why);
}

/**
 * A drop-down with its label.
 * @param {string} label
 * @param {[string, string][]} options values and what they are called
 * @param {(value: string) => void} onChange
 */
export function chooser(label, options, onChange) {
  const choices = options.map(([value, text]) => el("option", { value }, text));
  const select = el("select", { on: { change: () => onChange(select.value) } }, ...choices);
  return { select, element: el("label", { class: "field" }, el("span", {}, label), select) };
}

/**
 * A box to tick.
 * @param {string} label
 * @param {(checked: boolean) => void} onChange
 */
export function tickBox(label, onChange) {
  const input = el("input", { type: "checkbox", on: { change: () => onChange(input.checked) } });
  return { input, element: el("label", { class: "tick" }, input, label) };
}

/**
 * Whether a key chooses what has the focus; the page then doesn't scroll.
 * @param {KeyboardEvent} event
 */
export function isChoice(event) {
  const chooses = event.key === "Enter" || event.key === " ";
  if (chooses) event.preventDefault();
  return chooses;
}

/**
 * Lets arrow keys move among elements of which one can be tabbed to.
 * @param {KeyboardEvent} event
 * @param {(HTMLElement | SVGElement)[]} elements
 * @param {number} columns in a row, for up and down
 */
export function moveFocus(event, elements, columns) {
  /** @type {Record<string, number>} */
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
  const step = steps[event.key];
  const from = elements.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const target = step === undefined || from < 0 ? undefined : elements[from + step];
  if (!target) return;
  event.preventDefault();
  for (const element of elements) element.setAttribute("tabindex", element === target ? "0" : "-1");
  target.focus();
}
