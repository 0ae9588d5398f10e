// Elements made in one call. Text is always set as text: nothing of a corpus is ever read as HTML.

/** @typedef {Record<string, any>} Properties  on: listeners by event; the rest are attributes */

/** @param {string} tag @param {Properties} properties @param {(Node | string | null | undefined | false)[]} children @returns {any} */
export function el(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** @param {string} tag @param {Properties} properties @param {(Node | string | null | undefined | false)[]} children @returns {any} */
export function svg(tag, properties = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

/** @param {Element} element @param {Properties} properties @param {(Node | string | null | undefined | false)[]} children */
function filled(element, { on = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("aria-") && typeof value === "boolean") element.setAttribute(name, String(value));
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** New children for an element; what had the focus has it again. @param {Element} element @param {(Node | string | null | undefined | false)[]} children */
export function refill(element, ...children) {
  const focused = element.contains(document.activeElement)
    ? /** @type {HTMLElement} */ (document.activeElement).dataset.focus : undefined;
  element.replaceChildren(...children.filter((child) => child !== null && child !== undefined && child !== false));
  if (focused !== undefined) {
    const again = [...element.querySelectorAll("[data-focus]")]
      .find((each) => /** @type {HTMLElement} */ (each).dataset.focus === focused);
    /** @type {HTMLElement | undefined} */ (again)?.focus({ preventScroll: true });
  }
}

/** A drop-down with its label. @param {string} label @param {[string, string][]} options values and what they are called @param {(value: string) => void} onChange */
export function chooser(label, options, onChange) {
  const select = el("select", { on: { change: () => onChange(select.value) } },
    ...options.map(([value, text]) => el("option", { value }, text)));
  return { select, element: el("label", { class: "field" }, el("span", {}, label), select) };
}

/** A box to tick. @param {string} label @param {(checked: boolean) => void} onChange */
export function tickBox(label, onChange) {
  const input = el("input", { type: "checkbox", on: { change: () => onChange(input.checked) } });
  return { input, element: el("label", { class: "tick" }, input, label) };
}

/** Whether a key chooses what has the focus; the page then doesn't scroll. @param {KeyboardEvent} event */
export function isChoice(event) {
  const chooses = event.key === "Enter" || event.key === " ";
  if (chooses) event.preventDefault();
  return chooses;
}

/** Lets arrow keys move among elements of which one can be tabbed to. @param {KeyboardEvent} event @param {HTMLElement[]} elements @param {number} columns in a row, for up and down */
export function moveFocus(event, elements, columns) {
  const steps = /** @type {Record<string, number>} */ ({ ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns });
  const step = steps[event.key], from = elements.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const target = step === undefined || from < 0 ? undefined : elements[from + step];
  if (!target) return null;
  event.preventDefault();
  for (const element of elements) element.setAttribute("tabindex", element === target ? "0" : "-1");
  target.focus();
  return target;
}
