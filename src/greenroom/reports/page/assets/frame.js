// The bar at the top, the theme, and the keys that work everywhere.
import { button, fill, make } from "./elements.js";
import { THEMES } from "./query.js";
import { moment } from "./words.js";

// given: {title, begun, nav, tools, keys: [[key, what it does]], theme(), setTheme(theme)}
export function frame(given) {
  const themeButton = button("", () => given.setTheme(nextTheme(given.theme())), { class: "quiet", id: "theme" });
  const help = make("dialog", { id: "help", "aria-labelledby": "help-title" },
    make("h2", { id: "help-title" }, "Keys"),
    make("dl", null, given.keys.map(([key, does]) => [make("dt", null, make("kbd", null, key)), make("dd", null, does)])),
    button("Close", () => help.close(), { class: "quiet" }));
  const title = make("h1", { class: given.quiet ? "unseen" : null });
  const time = make("span", { class: "when-begun" });
  fill(document.getElementById("top"), given.nav, title, time,
    make("div", { id: "tools" }, given.tools, themeButton, button("? Keys", () => help.showModal(), { class: "quiet" })));
  document.body.append(help);

  function retitle(words, begun) {
    document.title = words;
    fill(title, words);
    fill(time, begun !== undefined && begun !== null && moment(begun) && make("time", { datetime: new Date(begun * 1000).toISOString() }, moment(begun)));
  }

  function applyTheme() {
    document.documentElement.style.colorScheme = given.theme() === "auto" ? "light dark" : given.theme();
    fill(themeButton, `Theme: ${given.theme()}`);
  }

  retitle(given.title, given.begun);
  applyTheme();
  return { retitle, applyTheme, help };
}

export function nextTheme(theme) {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
}

// keys: key → what it does; false leaves it to the browser. Keys with Ctrl, Alt or Meta are never taken.
export function listenToKeys(keys, first = () => false) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (first(event)) return;
    if (event.target.matches("input, select, textarea") || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key](event);
  });
}
