// Elements made so that data can only ever become text: nothing here parses HTML.

// Invisible characters can deceive, so they are written out. Joiners hold emoji and scripts together.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu;
const LEFT_ALONE = "\n\t\u200c\u200d";

export function visible(text) {
  return String(text).replaceAll("\r\n", "\n").replace(UNSEEN, (char) =>
    LEFT_ALONE.includes(char) ? char : `\\u{${char.codePointAt(0).toString(16)}}`);
}

// make("td", {class: "number", on: {click}}, "text", element, …): null and false children are left out.
export function make(name, props, ...children) {
  return furnish(document.createElement(name), props, children);
}

// A link only to a page of the web: any other address stays text.
export function leadingTo(address, text) {
  if (!/^https?:\/\/[^\s]+$/i.test(address ?? "")) return text;
  return make("a", { href: address, rel: "noreferrer noopener" }, text);
}

export function draw(name, props, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", name), props, children);
}

const ATTRIBUTES = new Set([
  "class", "id", "type", "role", "tabindex", "title", "scope", "colspan", "open", "hidden", "for",
  "placeholder", "value", "selected", "disabled", "width", "height", "x", "y", "rx", "x1", "x2",
  "y1", "y2", "viewBox", "preserveAspectRatio", "autocomplete", "spellcheck", "d", "dir", "href", "rel",
  "src", "alt", "datetime", "min", "max", "step", "name", "rows", "label", "checked", "maxlength", "download", "wrap", "required", "cx", "cy", "r",
]);
const ADDRESS = /^(#|\/(?!\/)|https?:\/\/[^\s]+$)/i;

function furnish(element, props, children) {
  for (const [key, value] of Object.entries(props ?? {})) {
    if (key === "on") {
      for (const [event, heard] of Object.entries(value)) element.addEventListener(event, heard);
    } else if (value !== null && value !== undefined && value !== false) {
      if (!ATTRIBUTES.has(key) && !key.startsWith("aria-")) throw new Error(`attribute ${key}`);
      if (key === "href" && !ADDRESS.test(value)) throw new Error(`address ${value}`);
      element.setAttribute(key, value === true ? "" : visible(value));
    }
  }
  put(element, children);
  return element;
}

function put(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
}

export function fill(element, ...children) {
  element.replaceChildren();
  put(element, children);
}

// A sentence that another follows.
export function sentence(text) {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

export function button(label, press, props) {
  return make("button", { type: "button", ...props, on: { click: press } }, label);
}

export const MARKS = { passed: "✓", flaky: "≈", failed: "✗", error: "!", terminated: "■", skipped: "–", going: "…" };

export function pill(status, label = status) {
  return make("span", { class: `pill ${status}` }, MARKS[status] ?? "?", make("span", { class: "pill-word" }, ` ${label}`));
}

export function bar(from, length, kind, label) {
  const x = Math.min(from * 100, 99);
  return draw("svg", {
    class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", height: 8,
    ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }),
  },
  draw("rect", { class: "track", x: 0, y: 3, width: 100, height: 2 }),
  draw("rect", { class: `fill-${kind}`, x, y: 0, width: Math.max(length * 100, 0.8), height: 8, rx: 1 }));
}

// A JSON value: short ones as they are, long ones folded behind their beginning.
export function shown(value) {
  if (typeof value === "string" && value.length <= 200 && !value.includes("\n")) {
    return make("code", { class: "json" }, JSON.stringify(value));
  }
  const line = JSON.stringify(value);
  if (line.length <= 120) return make("code", { class: "json" }, line);
  const whole = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return make("details", { class: "json" },
    make("summary", null, make("code", null, `${line.slice(0, 100)}…`)),
    make("pre", { tabindex: 0 }, whole));
}
