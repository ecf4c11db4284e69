// The list of cases: filters above, and only the rows that can be seen below.
import { MARKS, button, fill, make, pill } from "./elements.js";
import { CHANGES, SHOWN, isNarrowed, toggled, widened } from "./query.js";
import { counted, duration, money } from "./words.js";

const SPARE = 8;
const FEW = 10;
const PAGE = 100;

export function caseList(section, source, { query, head, ask, open }) {
  const search = make("input", {
    type: "search", id: "search", placeholder: "Search cases and conversations  ( / )",
    "aria-label": "Search cases and conversations", autocomplete: "off", spellcheck: "false",
  });
  const chips = make("div", { class: "chips" });
  const folded = make("summary", { class: "quiet" }, "Filters");
  const folds = make("details", { class: "folds" }, folded, chips);
  const count = make("p", { class: "count", role: "status" });
  const fresh = make("div", { class: "fresh-cases" });
  const body = make("div", { class: "rows", role: "rowgroup" });
  const heads = make("div", { class: "heads", role: "rowgroup" });
  const grid = make("div", {
    class: "grid", role: "grid", id: "list", tabindex: -1, "aria-labelledby": "cases-title",
  }, heads, body);
  let pages = new Map();
  let total = 0;
  let current = 0;
  let asked = 0;
  let searched = null;
  let untold = 0;
  let height = 40;

  fill(section,
    make("h2", { id: "cases-title" }, "Cases"),
    make("div", { class: "filters" }, search, folds, count, fresh), grid);
  section.hidden = false;
  const wide = window.matchMedia("(min-width: 641px)");
  const unfold = () => { folds.open = wide.matches; };
  wide.addEventListener("change", unfold);
  unfold();

  let typing;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => ask({ q: search.value.trim() }), 80);
  });

  const at = (place) => pages.get(Math.floor(place / PAGE))?.[place % PAGE];

  // Ask again; the reader stays at the case they were at, as long as it is still listed.
  async function refresh(share = null) {
    if (document.activeElement !== search) search.value = query().q;
    searched = query().q ? share ?? searched : null;
    untold = 0;
    fill(fresh);
    asked += 1;
    const mine = asked;
    const kept = query().case ?? at(current)?.id ?? null;
    const found = await source.rows(query(), 0, PAGE, kept);
    if (mine !== asked) return;
    pages = new Map([[Math.floor((found.first ?? 0) / PAGE), found.rows]]);
    total = found.total;
    current = Math.max(found.place ?? -1, 0);
    fill(chips, chipGroups(head(), query(), ask));
    const on = ["status", "change", "metric", "tag"].reduce((all, kind) => all + query()[kind].size, 0);
    fill(folded, on ? `Filters (${on} on)` : "Filters");
    fill(heads, headRow(head(), query(), ask));
    grid.setAttribute("aria-rowcount", total + 1);
    fill(count, countWords(), isNarrowed(query()) && button("Clear filters", () => ask(widened()), { class: "quiet" }));
    measure();
    paint(true);
  }

  function countWords() {
    const all = counted(head().cases ?? 0, "case");
    const words = total === (head().cases ?? 0) ? all : `${total.toLocaleString("en")} of ${all}`;
    return searched !== null && searched < 1 ? `${words} · searching conversations, ${Math.round(searched * 100)} %` : words;
  }

  const waiting = new Map();
  function need(page) {
    const key = `${asked}:${page}`;
    if (!waiting.has(key)) {
      const mine = asked;
      const load = Promise.resolve(source.rows(query(), page * PAGE, PAGE)).then((found) => {
        waiting.delete(key);
        if (mine === asked) pages.set(page, found.rows);
      });
      waiting.set(key, load);
    }
    return waiting.get(key);
  }

  function measure() {
    height = parseFloat(getComputedStyle(grid).getPropertyValue("--row")) || 40;
    body.style.height = `${Math.max(total, 1) * height}px`;
  }

  let painted = [0, 0];
  function paint(anew) {
    const top = body.getBoundingClientRect().top;
    const first = Math.max(Math.floor(-top / height) - SPARE, 0);
    // Some rows are always there: a keyboard must find the list before an eye does.
    const below = Math.max(Math.ceil((window.innerHeight - top) / height) + SPARE, first + SPARE);
    const last = Math.min(below, total);
    if (!anew && painted[0] === first && painted[1] === last) return;
    painted = [first, last];
    const missing = new Set();
    for (let place = first; place < last; place += 1) if (!at(place)) missing.add(Math.floor(place / PAGE));
    if (missing.size) Promise.all([...missing].map(need)).then(() => paint(true));
    const reached = current >= first && current < last ? current : first;
    const held = body.contains(document.activeElement);
    const rows = [];
    for (let place = first; place < last; place += 1) {
      const one = at(place);
      const row = one ? caseRow(one, place, place === reached, one.id === query().case, head()) : waitingRow(place);
      row.style.transform = `translateY(${place * height}px)`;
      if (one) row.addEventListener("click", () => { current = place; open(one.id); });
      rows.push(row);
    }
    fill(body, total ? rows : make("p", { class: "empty" }, isNarrowed(query()) ? "No case matches these filters." : "No case has ended yet."));
    if (held) row()?.focus({ preventScroll: true });
  }

  async function move(by, focus = true) {
    if (!total) return null;
    current = Math.min(Math.max(current + by, 0), total - 1);
    if (!at(current)) await need(Math.floor(current / PAGE));
    reveal();
    paint(true);
    if (focus) row()?.focus({ preventScroll: true });
    return at(current);
  }

  function row() {
    return body.querySelector('[tabindex="0"]');
  }

  function reveal() {
    const bars = section.querySelector(".filters").getBoundingClientRect().height + 84;
    const top = body.getBoundingClientRect().top + current * height;
    if (top < bars) window.scrollBy(0, top - bars);
    else if (top + height > window.innerHeight - 20) window.scrollBy(0, top + height - window.innerHeight + 20);
  }

  function stand() {
    reveal();
    paint(true);
  }

  // A list that is being read does not move; what is new waits for a press.
  function tell(news) {
    untold += news;
    fill(fresh, button(`${counted(untold, "new result")} ↑`, () => refresh(), { class: "quiet" }));
  }

  window.addEventListener("scroll", () => paint(false), { passive: true });
  window.addEventListener("resize", () => { measure(); paint(true); });
  return {
    refresh, move, stand, search, tell, isBeingRead: () => body.getBoundingClientRect().top < 0 || query().case !== null, total: () => total,
    current: () => at(current),
    focus: (look = true) => { if (look) move(0); else row()?.focus({ preventScroll: true }); },
    holds: () => body.contains(document.activeElement),
  };
}

// Filters

function chipGroups(head, query, ask) {
  const choices = head.choices ?? {};
  const kinds = [
    ["status", "Status", head.counts ?? {}, SHOWN.filter((status) => head.counts?.[status]), (key) => `${MARKS[key]} ${key}`],
    ["change", "Since baseline", choices.change ?? {}, null, (key) => CHANGES[key] ?? key],
    ["metric", "Missed metric", choices.metric ?? {}, null, (key) => key],
    ["tag", "Tag", choices.tag ?? {}, null, (key) => key],
  ];
  return kinds.map(([kind, title, counts, order, name]) => {
    const known = order ?? Object.keys(counts);
    const keys = [...known, ...[...query[kind]].filter((key) => !known.includes(key))];
    if (!keys.length) return null;
    const few = keys.filter((key, place) => place < FEW || query[kind].has(key));
    const rest = keys.filter((key) => !few.includes(key));
    return make("div", { class: "chip-group", role: "group", "aria-label": title },
      make("span", { class: "label" }, title),
      few.map((key) => chip(kind, key, name(key), counts[key] ?? 0, query, ask)),
      rest.length > 0 && moreChips(kind, title, rest, name, query, ask));
  });
}

function chip(kind, key, name, count, query, ask) {
  const on = query[kind].has(key);
  return button([make("span", { class: "chip-name" }, name), " ", make("span", { class: "dim" }, count.toLocaleString("en"))],
    () => ask({ [kind]: toggled(query[kind], key) }),
    { class: `chip ${kind === "status" ? key : ""}`, "aria-pressed": String(on) });
}

function moreChips(kind, title, rest, name, query, ask) {
  const choice = make("select", { class: "chip", "aria-label": `More: ${title}` },
    make("option", { value: "" }, `${rest.length} more…`),
    rest.map((key, place) => make("option", { value: place }, name(key))));
  choice.addEventListener("change", () => choice.value !== "" && ask({ [kind]: toggled(query[kind], rest[Number(choice.value)]) }));
  return choice;
}

// Rows

function columnsOf(head) {
  return [
    { key: "status", label: "Status", class: "c-status" },
    { key: "case", label: "Case", class: "c-case" },
    ...(head.trials > head.cases ? [{ key: null, label: "Trials", class: "c-trials" }] : []),
    { key: "score", label: "Score", class: "c-score number", says: "The mean of its scores; none where something broke" },
    { key: "time", label: "Time", class: "c-time number", says: "All its trials together" },
    { key: "cost", label: "Cost", class: "c-cost number", says: "Agent, user and judges, all its trials together" },
  ];
}

function headRow(head, query, ask) {
  return make("div", { class: "row head", role: "row", "aria-rowindex": 1 }, columnsOf(head).map((column) => {
    const on = column.key === query.sort;
    const way = on ? (query.down ? "descending" : "ascending") : null;
    const press = () => ask({ sort: column.key, down: on ? !query.down : ["cost", "time"].includes(column.key) });
    return make("span", { class: column.class, role: "columnheader", "aria-sort": way },
      column.key ? button([column.label, make("span", { "aria-hidden": "true" }, on ? (query.down ? " ↓" : " ↑") : "")], press,
        { class: "quiet", title: column.says ?? null }) : column.label);
  }));
}

function waitingRow(place) {
  return make("div", { class: "row waiting", role: "row", "aria-rowindex": place + 2, "aria-busy": "true" },
    make("span", { class: "c-case", role: "gridcell" }, make("span", { class: "grey" }, "…")));
}

function caseRow(one, place, current, open, head) {
  const cells = {
    Status: pill(one.status),
    Case: [
      make("span", { class: "case-id", title: one.id }, one.id),
      one.name && make("span", { class: "case-name" }, one.name),
      one.change && one.change !== "unchanged" && make("span", { class: `moved ${one.change}` }, CHANGES[one.change]),
      one.why && make("span", { class: "why" }, one.why),
      one.tags?.length > 0 && make("span", { class: "tags" }, one.tags.slice(0, 4).map((tag) => make("span", { class: "tag" }, tag))),
    ],
    Trials: one.trials.length > 1 && make("span", { class: "trials", title: trialWords(one) }, one.trials.slice(0, 8).map((trial) =>
      make("span", { class: `dot ${trial.status}`, "aria-hidden": "true" }, MARKS[trial.status])), make("span", { class: "unseen" }, trialWords(one))),
    Score: one.score !== undefined && [make("b", { class: one.status === "passed" ? "good" : "poor" }, one.score.toFixed(2))],
    Time: one.s !== undefined && duration(one.s),
    Cost: one.cost !== undefined && (one.cost === 0 ? make("span", { class: "dim" }, "$0") : money(one.cost)),
  };
  return make("div", {
    class: `row${open ? " open" : ""}`, role: "row", tabindex: current ? 0 : -1,
    "aria-rowindex": place + 2, "aria-selected": String(open),
  }, columnsOf(head).map((column) => make("span", { class: column.class, role: "gridcell" }, cells[column.label])));
}

export function trialWords(one) {
  const good = one.trials.filter((trial) => trial.status === "passed").length;
  return `${good} of ${counted(one.trials.length, "trial")} passed`;
}
