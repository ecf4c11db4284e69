// What the reader asks for. It lives in the address, so a link shows what the sender saw.

const SORTS = {
  order: { label: "order", of: (one) => one.place },
  status: { label: "status", of: (one) => WORST.indexOf(one.worst) },
  case: { label: "case", of: (one) => one.id },
  score: { label: "score", of: (one) => one.score },
  time: { label: "time", of: (one) => one.s },
  cost: { label: "cost", of: (one) => one.cost },
};
const CHANGES = {
  regressed: "regressed", suspect: "suspect", flipped: "flipped", flaky: "flaky", unclear: "unclear", changed: "case changed", improved: "improved",
  added: "new", unchanged: "unchanged",
};
const THEMES = ["auto", "light", "dark"];

function emptyQuery() {
  return {
    q: "", status: new Set(), tag: new Set(), metric: new Set(), change: new Set(),
    sort: "status", down: false, theme: "auto", case: null, trial: null,
  };
}

// Names, not numbers, stand in the address: a link outlives a report's order.
function queryFrom(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const query = emptyQuery();
  const names = (key) => new Set(given.getAll(key));
  query.q = given.get("q") ?? "";
  query.status = new Set([...names("status")].filter((status) => WORST.includes(status)));
  query.change = new Set([...names("change")].filter((change) => Object.hasOwn(CHANGES, change)));
  query.tag = numbered(names("tag"), INDEX.tags);
  query.metric = numbered(names("metric"), INDEX.metrics);
  const sort = given.get("sort") ?? "status";
  query.down = sort.startsWith("-");
  query.sort = Object.hasOwn(SORTS, sort.replace("-", "")) ? sort.replace("-", "") : "status";
  query.theme = THEMES.includes(given.get("theme")) ? given.get("theme") : "auto";
  query.case = BY_ID.has(given.get("case")) ? given.get("case") : null;
  query.trial = Number(given.get("trial")) || null;
  return query;
}

function numbered(names, known) {
  return new Set([...names].map((name) => known.indexOf(name)).filter((number) => number >= 0));
}

function hashOf(query) {
  const said = new URLSearchParams();
  if (query.q) said.set("q", query.q);
  for (const status of query.status) said.append("status", status);
  for (const change of query.change) said.append("change", change);
  for (const tag of query.tag) said.append("tag", INDEX.tags[tag]);
  for (const metric of query.metric) said.append("metric", INDEX.metrics[metric]);
  if (query.sort !== "status" || query.down) said.set("sort", `${query.down ? "-" : ""}${query.sort}`);
  if (query.theme !== "auto") said.set("theme", query.theme);
  if (query.case !== null) said.set("case", query.case);
  if (query.case !== null && query.trial) said.set("trial", query.trial);
  return `#${said}`;
}

// Of one kind any, of different kinds all.
function answers(query) {
  const terms = query.q.toLowerCase().split(/\s+/).filter(Boolean);
  const found = CASES.filter((one) =>
    meets(query.status, one.statuses) && meets(query.tag, one.tags) &&
    meets(query.metric, one.missed) && (!query.change.size || query.change.has(one.change)) &&
    terms.every((term) => one.words.includes(term) || one.said?.includes(term)));
  const { of } = SORTS[query.sort];
  const way = query.down ? -1 : 1;
  return found.sort((one, other) => compared(of(one), of(other), way) || one.place - other.place);
}

function meets(wanted, held) {
  if (!wanted.size) return true;
  for (const one of held) if (wanted.has(one)) return true;
  return false;
}

// What is unknown comes last, whichever way.
function compared(one, other, way) {
  if (one === null || other === null) return (one === null) - (other === null);
  return one < other ? -way : one > other ? way : 0;
}
