// The page: what the reader asks for, where they are, and the keys they press.

let query = queryFrom(location.hash);
const HELP = [
  ["/", "search"], ["j, ↓", "next case"], ["k, ↑", "previous case"], ["Enter", "open the case"],
  ["[ and ]", "previous and next trial"], ["Esc", "close"], ["t", "light, dark or system theme"], ["?", "this help"],
];

function ask(change, { visit = false } = {}) {
  query = { ...query, ...change };
  const address = hashOf(query);
  if (address !== location.hash) history[visit ? "pushState" : "replaceState"](null, "", address === "#" ? "#" : address);
  show();
}

const list = caseList(() => query, { ask, open: (id) => openCase(id) });
const opening = openedCase({
  close: closeCase, go: (by) => step(by), pick: (trial) => ask({ trial }),
  settle: () => list.stand(query.case),
});

function show() {
  applyTheme();
  if (query.q) listen(later);
  list.refresh();
  showCase();
}

// While conversations are still being gathered, the list grows as they come in.
let due = null;
function later() {
  due ??= setTimeout(() => { due = null; list.refresh(); }, 250);
}

function showCase() {
  if (query.case === null) {
    opening.hide();
    return Promise.resolve();
  }
  list.stand(query.case);
  return opening.show(BY_ID.get(query.case), query.trial);
}

async function openCase(id, focus = true) {
  const first = query.case === null;
  query = { ...query, case: id, trial: null };
  history[first ? "pushState" : "replaceState"](null, "", hashOf(query));
  await showCase();
  if (focus) opening.focus();
}

function closeCase() {
  ask({ case: null, trial: null });
  list.focus(false);
}

function step(by) {
  const inside = opening.holds();
  const next = list.move(by, !inside);
  if (next && query.case !== null) openCase(next.id, inside);
}

function stepTrial(by) {
  const one = BY_ID.get(query.case);
  if (!one) return;
  const now = one.trials.findIndex((trial) => trial.n === (query.trial ?? firstOf(one).n));
  const next = one.trials[now + by];
  if (next) ask({ trial: next.n });
}

// Theme, help and the bar at the top

const themeButton = button("", nextTheme, { class: "quiet", id: "theme" });
const help = make("dialog", { id: "help", "aria-labelledby": "help-title" },
  make("h2", { id: "help-title" }, "Keys"),
  make("dl", null, HELP.map(([key, does]) => [make("dt", null, make("kbd", null, key)), make("dd", null, does)])),
  button("Close", () => help.close(), { class: "quiet" }));
fill(document.getElementById("tools"), themeButton, button("? Keys", () => help.showModal(), { class: "quiet" }));
document.body.append(help);

function nextTheme() {
  ask({ theme: THEMES[(THEMES.indexOf(query.theme) + 1) % THEMES.length] });
}

function applyTheme() {
  document.documentElement.style.colorScheme = query.theme === "auto" ? "light dark" : query.theme;
  fill(themeButton, `Theme: ${query.theme}`);
}

// Names in the charts are filters.
for (const name of document.querySelectorAll(".name[data-n]")) {
  const kind = name.dataset.kind;
  const number = Number(name.dataset.n);
  const press = button(name.textContent, () => {
    ask({ [kind]: toggled(query[kind], number) });
    document.getElementById("cases").scrollIntoView();
  }, { class: "quiet link", title: kind === "tag" ? "Show the cases with this tag" : "Show the cases that did not pass it" });
  if (kind === "tag" || COUNTS.metric.has(number)) name.replaceWith(press);
}

const KEYS = {
  "/": () => { list.search.focus(); list.search.select(); },
  j: () => step(1), k: () => step(-1),
  t: nextTheme, "?": () => help.showModal(),
  "[": () => stepTrial(-1), "]": () => stepTrial(1),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  const writing = event.target.matches("input, select, textarea");
  if (event.key === "Escape") return leave(event.target);
  if (event.target === list.search && (event.key === "Enter" || event.key === "ArrowDown")) {
    event.preventDefault();
    return list.focus();
  }
  if (writing) return;
  if (list.holds() && LIST_KEYS[event.key]) {
    event.preventDefault();
    return LIST_KEYS[event.key]();
  }
  if (KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
});

const LIST_KEYS = {
  ArrowDown: () => step(1), ArrowUp: () => step(-1),
  PageDown: () => step(10), PageUp: () => step(-10),
  Home: () => step(-CASES.length), End: () => step(CASES.length),
  Enter: () => openCase(list.current().id),
};

function leave(target) {
  if (query.case !== null) return closeCase();
  if (target === list.search) {
    if (query.q) {
      list.search.value = "";
      ask({ q: "" });
    } else {
      list.search.blur();
    }
  }
}

function follow() {
  query = queryFrom(location.hash);
  list.search.value = query.q;
  show();
}

window.addEventListener("popstate", follow);
window.addEventListener("hashchange", follow);

// On paper: the summary, and every case that did not pass as far as it was unpacked beforehand.

const MOST_PRINTED = 100;
const fallen = CASES.flatMap((one) => one.trials.filter((trial) => ["failed", "error", "terminated"].includes(trial.status)).map((trial) => [one, trial]));
const ready = new Map();

async function readyForPrint() {
  for (const [, trial] of fallen.slice(0, MOST_PRINTED)) {
    ready.set(trial, await details(trial).catch(() => null));
    await new Promise((rest) => (window.requestIdleCallback ?? setTimeout)(rest));
  }
}

window.addEventListener("beforeprint", () => {
  const printed = fallen.slice(0, MOST_PRINTED);
  fill(document.getElementById("print"),
    printed.length > 0 && make("h2", null, "Cases that did not pass"),
    printed.map(([one, trial]) => make("article", { class: "printed" },
      make("h3", null, pill(trial.status), " ", one.id, one.trials.length > 1 && ` (trial ${trial.n})`),
      ready.get(trial) ? story(one, trial, ready.get(trial)) : make("p", null, trial.why))),
    fallen.length > printed.length && make("p", { class: "remark" }, `${fallen.length - printed.length} more cases did not pass; the file has them.`));
  for (const folded of document.querySelectorAll("#print details.grounds")) folded.open = true;
});
window.addEventListener("afterprint", () => fill(document.getElementById("print")));

show();
performance.mark("greenroom-ready");
(window.requestIdleCallback ?? setTimeout)(readyForPrint);
