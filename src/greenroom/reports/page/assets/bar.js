// What all pages of the web share: the way to the others, whether it is live, questions and messages.
import { Refused } from "./api.js";
import { button, fill, make } from "./elements.js";

const PAGES = [["runs", "Runs", "r"], ["sets", "Sets", "s"], ["play", "Play", "p"], ["agent", "Agent", "a"], ["label", "Label", "l"]];
export const GO_HELP = [["g r", "runs"], ["g s", "sets"], ["g p", "play"], ["g a", "agent"], ["g l", "label"]];

export function navigation(here) {
  const now = location.pathname.split("/")[1];
  const shown = PAGES.filter(([path]) => path !== "play" || !here.read_only);
  return make("nav", { "aria-label": "Pages" }, shown.map(([path, name]) =>
    make("a", { href: `/${path}`, "aria-current": path === now || (now === "compare" && path === "runs") ? "page" : null }, name)),
  here.read_only && make("span", { class: "read-only", title: "Nothing can be started or saved from this page" }, "read-only"));
}

export function liveMark() {
  const mark = make("span", { class: "live", role: "status" }, "");
  const words = { live: "● live", glancing: "◐ live every few seconds", resting: "○ resting", gone: "○ no answer from the server", refused: "○ the server refuses" };
  return { mark, tell: (state) => { fill(mark, words[state]); mark.className = `live ${state}`; } };
}

let going = false;
export function goKeys() {
  const keys = { g: () => { going = true; setTimeout(() => { going = false; }, 1200); } };
  document.addEventListener("keydown", (event) => {
    const page = PAGES.find(([, , key]) => key === event.key);
    if (!going || !page || event.target.matches("input, select, textarea")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    location.assign(`/${page[0]}`);
  }, true);
  return keys;
}

// Something the server said, where a reader finds it.
export function notice(element, error) {
  const words = error instanceof Error ? error.message : String(error ?? "");
  fill(element, words && make("p", { class: error instanceof Error ? "remark bad-remark" : "remark", role: "alert" }, words, error?.next && ` ${error.next}`));
}

// Words as they are typed in a terminal, each in quotes that needs them.
export function typed(...words) {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${String(word).replaceAll("'", `'"'"'`)}'`)).join(" ");
}

// The command line that a button stands for, to copy.
export function commandLine(text) {
  return make("p", { class: "command" }, make("code", null, `$ ${text}`), " ",
    button("Copy", (event) => { navigator.clipboard?.writeText(text); fill(event.currentTarget, "Copied"); }, { class: "quiet" }));
}

// A dialog with what is inside it; the answer is what `done` is called with, or null.
export function dialogOf(title, inside) {
  return new Promise((answer) => {
    const close = (value) => { box.close(); box.remove(); answer(value); };
    const box = make("dialog", { "aria-labelledby": "dialog-title", class: "wide" },
      make("h2", { id: "dialog-title" }, title), inside(close));
    box.addEventListener("cancel", (event) => { event.preventDefault(); close(null); });
    document.body.append(box);
    box.showModal();
  });
}

export function confirmed(title, words, command, does) {
  return dialogOf(title, (close) => [
    make("p", null, words), command && commandLine(command),
    make("div", { class: "buttons" }, button(does, () => close(true), { class: "quiet strong" }), button("Cancel", () => close(null), { class: "quiet" })),
  ]);
}

export function field(label, input, more) {
  return make("label", { class: "field" }, make("span", { class: "label" }, label), input, more && make("span", { class: "dim" }, more));
}

export function choice(label, options, chosen, changed) {
  const select = make("select", { class: "chip", "aria-label": label }, options.map(([value, name]) =>
    make("option", { value, selected: value === chosen }, name)));
  select.addEventListener("change", () => changed(select.value));
  return select;
}

export function isConflict(error) {
  return error instanceof Refused && error.status === 409;
}
