// What the reader looks at. It lives in the address, so a link shows what its sender saw.

export const STATUSES = ["error", "failed", "flaky", "terminated", "skipped", "passed"];
export const SHOWN = ["passed", "flaky", "failed", "error", "terminated", "skipped"];
export const SORTS = ["status", "order", "case", "score", "time", "cost"];
export const CHANGES = {
  regressed: "regressed", suspect: "suspect", flipped: "flipped", flaky: "flaky", unclear: "unclear",
  changed: "case changed", improved: "improved", added: "new", removed: "removed", unchanged: "unchanged",
};
export const THEMES = ["auto", "light", "dark"];
const NARROWING = ["status", "tag", "metric", "change"];
const LOOKED_AT = ["trial", "event", "with"];

export function emptyQuery() {
  return {
    q: "", status: new Set(), tag: new Set(), metric: new Set(), change: new Set(), min_s: null, min_cost: null,
    sort: "status", down: false, theme: "auto", case: null, trial: null, event: null, with: null, brief: false, beside: false,
  };
}

export function queryFrom(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const query = emptyQuery();
  const amount = (name) => (Number(given.get(name)) > 0 ? Number(given.get(name)) : null);
  query.q = given.get("q") ?? "";
  for (const kind of NARROWING) query[kind] = new Set(given.getAll(kind));
  query.status = new Set([...query.status].filter((status) => STATUSES.includes(status)));
  query.change = new Set([...query.change].filter((change) => Object.hasOwn(CHANGES, change)));
  query.min_s = amount("min_s");
  query.min_cost = amount("min_cost");
  const sort = given.get("sort") ?? "status";
  query.down = sort.startsWith("-");
  query.sort = SORTS.includes(sort.replace("-", "")) ? sort.replace("-", "") : "status";
  query.theme = THEMES.includes(given.get("theme")) ? given.get("theme") : "auto";
  query.case = given.get("case");
  for (const name of LOOKED_AT) query[name] = given.has(name) && Number(given.get(name)) >= 0 ? Number(given.get(name)) : null;
  query.brief = given.has("brief");
  query.beside = given.has("beside");
  return query;
}

export function hashOf(query) {
  const said = new URLSearchParams();
  if (query.q) said.set("q", query.q);
  for (const kind of NARROWING) for (const value of query[kind]) said.append(kind, value);
  for (const name of ["min_s", "min_cost"]) if (query[name] !== null) said.set(name, query[name]);
  if (query.sort !== "status" || query.down) said.set("sort", `${query.down ? "-" : ""}${query.sort}`);
  if (query.theme !== "auto") said.set("theme", query.theme);
  if (query.case !== null) {
    said.set("case", query.case);
    for (const name of LOOKED_AT) if (query[name] !== null) said.set(name, query[name]);
    for (const name of ["brief", "beside"]) if (query[name]) said.set(name, "1");
  }
  return `#${said}`;
}

export function isNarrowed(query) {
  return Boolean(query.q) || query.min_s !== null || query.min_cost !== null || NARROWING.some((kind) => query[kind].size > 0);
}

export function widened() {
  const { q, status, tag, metric, change, min_s, min_cost } = emptyQuery();
  return { q, status, tag, metric, change, min_s, min_cost };
}

export function toggled(set, key) {
  const next = new Set(set);
  if (!next.delete(key)) next.add(key);
  return next;
}
