// The list of cases: filters above, and only the rows that can be seen below.

const ROW = 40;  // pixels, as in the style
const SPARE = 8;
const FEW = 10;

function caseList(query, { ask, open }) {
  const section = document.getElementById("cases");
  const search = make("input", {
    type: "search", id: "search", placeholder: "Search cases and conversations  ( / )",
    "aria-label": "Search cases and conversations", autocomplete: "off", spellcheck: "false",
  });
  const chips = make("div", { class: "chips" });
  const count = make("p", { class: "count", role: "status" });
  const body = make("div", { class: "rows", role: "rowgroup" });
  const heads = make("div", { class: "heads", role: "rowgroup" });
  const grid = make("div", {
    class: "grid", role: "grid", id: "list", tabindex: -1, "aria-labelledby": "cases-title",
  }, heads, body);
  let found = [];
  let current = 0;

  fill(section,
    make("h2", { id: "cases-title" }, "Cases"),
    make("div", { class: "filters" }, search, chips, count), grid);
  section.hidden = false;

  let typing;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => ask({ q: search.value.trim() }), 80);
  });

  function refresh() {
    if (document.activeElement !== search) search.value = query().q;
    const kept = found[current];
    found = answers(query());
    current = Math.max(found.indexOf(kept), 0);
    fill(chips, chipGroups(query(), ask));
    fill(heads, headRow(query(), ask));
    grid.setAttribute("aria-rowcount", found.length + 1);
    body.style.height = `${Math.max(found.length, 1) * ROW}px`;
    fill(count, countWords(query(), found.length), clearButton(query(), ask));
    paint(true);
  }

  let painted = [0, 0];
  function paint(anew) {
    const top = body.getBoundingClientRect().top;
    const first = Math.max(Math.floor(-top / ROW) - SPARE, 0);
    // Some rows are always there: a keyboard must find the list before an eye does.
    const below = Math.max(Math.ceil((window.innerHeight - top) / ROW) + SPARE, first + SPARE);
    const last = Math.min(below, found.length);
    const reached = current >= first && current < last ? current : first;
    if (!anew && painted[0] === first && painted[1] === last) return;
    painted = [first, last];
    const held = body.contains(document.activeElement);
    const rows = [];
    for (let place = first; place < last; place += 1) {
      const row = caseRow(found[place], place, place === reached, found[place].id === query().case);
      row.style.transform = `translateY(${place * ROW}px)`;
      row.addEventListener("click", () => { current = place; open(found[place].id); });
      rows.push(row);
    }
    fill(body, found.length ? rows : make("p", { class: "empty" }, "No case fits these filters."));
    if (held) row()?.focus({ preventScroll: true });
  }

  function move(by, focus = true) {
    if (!found.length) return null;
    current = Math.min(Math.max(current + by, 0), found.length - 1);
    reveal();
    paint(true);
    if (focus) row()?.focus({ preventScroll: true });
    return found[current];
  }

  function row() {
    return body.querySelector('[tabindex="0"]');
  }

  function reveal() {
    const bars = section.querySelector(".filters").getBoundingClientRect().height + 84;
    const top = body.getBoundingClientRect().top + current * ROW;
    if (top < bars) window.scrollBy(0, top - bars);
    else if (top + ROW > window.innerHeight - 20) window.scrollBy(0, top + ROW - window.innerHeight + 20);
  }

  function stand(id) {
    const place = found.findIndex((one) => one.id === id);
    if (place >= 0) current = place;
    reveal();
    paint(true);
  }

  window.addEventListener("scroll", () => paint(false), { passive: true });
  window.addEventListener("resize", () => paint(true));
  return {
    refresh, move, stand, search,
    current: () => found[current],
    found: () => found,
    focus: (look = true) => { if (look) move(0); else row()?.focus({ preventScroll: true }); },
    holds: () => body.contains(document.activeElement),
  };
}

function countWords(query, number) {
  const listening = query.q && hearing.begun && hearing.done < hearing.packs;
  const share = hearing.packs ? Math.round((hearing.done / hearing.packs) * 100) : 0;
  return [
    number === CASES.length ? counted(number, "case") : `${number.toLocaleString("en")} of ${counted(CASES.length, "case")}`,
    listening && ` · searching conversations, ${share} %`,
  ].filter(Boolean).join("");
}

function clearButton(query, ask) {
  const narrowed = query.q || query.status.size || query.tag.size || query.metric.size || query.change.size;
  const { q, status, tag, metric, change } = emptyQuery();
  return Boolean(narrowed) && button("Clear filters", () => ask({ q, status, tag, metric, change }), { class: "quiet" });
}

// Filters

const COUNTS = {
  status: tally((one) => one.statuses), tag: tally((one) => one.tags),
  metric: tally((one) => one.missed), change: tally((one) => one.change ? [one.change] : []),
};

function tally(of) {
  const counts = new Map();
  for (const one of CASES) for (const key of of(one)) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

function chipGroups(query, ask) {
  const byCount = (kind) => [...COUNTS[kind].entries()].sort((a, b) => b[1] - a[1]).map(([key]) => key);
  const kinds = [
    ["status", "Status", WORST.filter((status) => COUNTS.status.has(status)), (key) => `${MARKS[key]} ${key}`],
    ["change", "Since baseline", byCount("change"), (key) => CHANGES[key]],
    ["metric", "Missed metric", byCount("metric"), (key) => INDEX.metrics[key]],
    ["tag", "Tag", byCount("tag"), (key) => INDEX.tags[key]],
  ];
  return kinds.filter(([, , keys]) => keys.length).map(([kind, title, keys, name]) => {
    const few = keys.filter((key, place) => place < FEW || query[kind].has(key));
    const rest = keys.filter((key) => !few.includes(key));
    return make("div", { class: "chip-group", role: "group", "aria-label": title },
      make("span", { class: "label" }, title),
      few.map((key) => chip(kind, key, name(key), query, ask)),
      rest.length > 0 && moreChips(kind, title, rest, name, query, ask));
  });
}

function chip(kind, key, name, query, ask) {
  const on = query[kind].has(key);
  return button([make("span", { class: "chip-name" }, name), " ", make("span", { class: "dim" }, COUNTS[kind].get(key) ?? 0)],
    () => ask({ [kind]: toggled(query[kind], key) }),
    { class: `chip ${kind === "status" ? key : ""}`, "aria-pressed": String(on) });
}

function moreChips(kind, title, rest, name, query, ask) {
  const choice = make("select", { class: "chip", "aria-label": `More: ${title}` },
    make("option", { value: "" }, `${rest.length} more…`),
    rest.map((key) => make("option", { value: key }, name(key))));
  choice.addEventListener("change", () =>
    choice.value !== "" && ask({ [kind]: toggled(query[kind], Number(choice.value)) }));
  return choice;
}

function toggled(set, key) {
  const next = new Set(set);
  if (!next.delete(key)) next.add(key);
  return next;
}

// Rows

const SEVERAL = CASES.some((one) => one.trials.length > 1);

const COLUMNS = [
  { key: "status", label: "Status", class: "c-status" },
  { key: "case", label: "Case", class: "c-case" },
  ...(SEVERAL ? [{ key: null, label: "Trials", class: "c-trials" }] : []),
  { key: "score", label: "Score", class: "c-score number" },
  { key: "time", label: "Time", class: "c-time number" },
  { key: "cost", label: "Cost", class: "c-cost number" },
];

function headRow(query, ask) {
  return make("div", { class: "row head", role: "row", "aria-rowindex": 1 }, COLUMNS.map((column) => {
    const on = column.key === query.sort;
    const way = on ? (query.down ? "descending" : "ascending") : null;
    const press = () => ask({ sort: column.key, down: on ? !query.down : ["cost", "time"].includes(column.key) });
    return make("span", { class: column.class, role: "columnheader", "aria-sort": way },
      column.key ? button([column.label, make("span", { "aria-hidden": "true" }, on ? (query.down ? " ↓" : " ↑") : "")], press, { class: "quiet" }) : column.label);
  }));
}

function caseRow(one, place, current, open) {
  const cells = {
    Status: pill(one.worst),
    Case: [
      make("span", { class: "case-id" }, one.id),
      one.name && make("span", { class: "case-name" }, one.name),
      one.change && one.change !== "unchanged" && make("span", { class: `moved ${one.change}` }, CHANGES[one.change]),
      one.worst !== "passed" && make("span", { class: "why" }, one.trials.find((trial) => trial.status === one.worst).why),
      one.tags.length > 0 && make("span", { class: "tags" }, one.tags.slice(0, 4).map((tag) => make("span", { class: "tag" }, INDEX.tags[tag]))),
    ],
    Trials: one.trials.length > 1 && make("span", { class: "trials", title: trialWords(one) }, one.trials.slice(0, 8).map((trial) =>
      make("span", { class: `dot ${trial.status}`, "aria-hidden": "true" }, MARKS[trial.status])), make("span", { class: "unseen" }, trialWords(one))),
    Score: one.score !== null && [make("b", { class: one.worst === "passed" ? "good" : "poor" }, one.score.toFixed(2))],
    Time: one.s !== null && duration(one.s),
    Cost: one.cost !== null && (one.cost === 0 ? make("span", { class: "dim" }, "$0") : money(one.cost)),
  };
  return make("div", {
    class: `row${open ? " open" : ""}`, role: "row", tabindex: current ? 0 : -1,
    "aria-rowindex": place + 2, "aria-selected": String(open),
  }, COLUMNS.map((column) => make("span", { class: column.class, role: "gridcell" }, cells[column.label])));
}

function trialWords(one) {
  const good = one.trials.filter((trial) => trial.status === "passed").length;
  return `${good} of ${counted(one.trials.length, "trial")} passed`;
}
