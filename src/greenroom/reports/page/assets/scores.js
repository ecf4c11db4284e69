// What the metrics concluded, and on what grounds. Nothing is measured here again.
import { draw, make, pill, shown } from "./elements.js";
import { counted, money, percent, signed, sum } from "./words.js";

// Metrics that need a look, each described once: expected next to actual where that says it all, else in the metric's words.
export function unmetCards(run) {
  const unmet = (run.scores ?? []).filter(([, found]) => found.not_applicable === undefined && !found.passed);
  const told = new Set();
  return unmet.map(([name, found]) => {
    const apart = (run.differences ?? []).filter((one) => one.metrics?.includes(name) && !told.has(one));
    for (const one of apart) told.add(one);
    return scoreCard(name, found, earlier(run, name), apart.length > 0 && expectations(run, apart));
  });
}

export function otherCards(run) {
  const others = (run.scores ?? []).filter(([, found]) => found.not_applicable !== undefined || found.passed);
  if (!others.length) return null;
  return make("section", { class: "scores", "aria-label": "Other scores" },
    make("h3", null, others.length < run.scores.length ? "What was met" : "Scores"),
    others.map(([name, found]) => scoreCard(name, found, earlier(run, name), null)));
}

// The mean of the baseline's trials, if they measured it.
function earlier(run, name) {
  const values = (run.before ?? []).flatMap((trial) =>
    trial.scores.filter(([metric, , value]) => metric === name && value !== null).map(([, , value]) => value));
  return values.length ? sum(values) / values.length : null;
}

function scoreCard(name, found, before, sides) {
  if (found.not_applicable !== undefined) return quietCard(name, "n/a", "not applicable", found.not_applicable, found);
  if (found.unmeasured !== undefined) return quietCard(name, "unmeasured", "unmeasured", found.unmeasured, found);
  if (found.score === undefined) return quietCard(name, "unmeasured", "left out", "see the trial's ledger", found);
  return make("article", { class: `score ${found.passed ? "good" : "bad"}` },
    make("header", null,
      pill(found.passed ? "passed" : "failed"), make("h4", null, name),
      make("span", { class: "value" }, found.score.toFixed(2)),
      found.threshold !== undefined && make("span", { class: "dim" }, `of ${found.threshold.toFixed(2)} needed`),
      gauge(found), change(found.score, before)),
    replacedBy(found),
    sides || (found.reason && make("p", { class: "reason" }, found.reason)),
    grounds(found, !found.passed && !sides && isJudged(found.details)));
}

// Where a judge was asked, its words are the reason; where calls were compared, the reason says it all.
function isJudged(details) {
  return details !== null && typeof details === "object" && ["reasoning", "votes", "rubrics", "claims", "goals", "judges", "dimensions"].some((key) => key in details);
}

// A hook put this in the place of what the metric had found.
function replacedBy(found) {
  return found.replaced && make("p", { class: "replaced" }, make("b", null, "replaced"), ` ${found.replaced}`);
}

function quietCard(name, kind, label, why, found) {
  return make("article", { class: `score ${kind === "n/a" ? "silent" : "unmeasured"}` },
    make("header", null, make("span", { class: `pill ${kind === "n/a" ? "skipped" : "terminated"}` }, `${kind === "n/a" ? "–" : "?"} ${label}`), make("h4", null, name)),
    replacedBy(found),
    make("p", { class: "reason" }, why));
}

function gauge(found) {
  const bar = found.threshold;
  return draw("svg", { class: "gauge", viewBox: "0 0 100 10", width: 100, height: 10, "aria-hidden": "true" },
    draw("rect", { class: "track", x: 0, y: 3, width: 100, height: 4, rx: 2 }),
    draw("rect", { class: `fill-${found.passed ? "passed" : "failed"}`, x: 0, y: 3, width: found.score * 100, height: 4, rx: 2 }),
    bar !== undefined && draw("line", { class: "tick", x1: bar * 98 + 1, x2: bar * 98 + 1, y1: 0, y2: 10 }));
}

function change(now, before) {
  if (before === null) return null;
  const by = now - before;
  const kind = Math.abs(by) < 0.005 ? "same" : by < 0 ? "worse" : "better";
  return make("span", { class: `moved ${kind}` }, kind === "same" ? "as in the baseline" : `${signed(by)} since ${before.toFixed(2)}`);
}

// Evidence and details

const ABOUT_JUDGE = ["agreement", "samples", "attempts", "cached", "model", "usage", "cost"];
const KINDS = { missing: "−", extra: "+", misplaced: "↕", wrong_arguments: "≠" };
const LISTS = ["rubrics", "categories", "claims", "goals", "judges", "turns", "compared", "dimensions"];

function grounds(found, open) {
  const parts = [
    evidence(found.evidence), detailParts(found.details, found.reason ?? ""),
    found.measured !== undefined && typeof found.measured === "object" &&
      make("div", { class: "fact" }, make("span", { class: "label" }, "measured"), shown(found.measured)),
  ].filter(Boolean);
  if (!parts.length) return null;
  return make("details", { class: "grounds", open }, make("summary", null, "Evidence"), parts);
}

function evidence(lines) {
  if (!lines?.length) return null;
  return make("ul", { class: "evidence" }, lines.map((line) => make("li", { class: marked(line) }, line)));
}

// A metric marks its lines itself: `-` missing, `+` extra, `>` misplaced, `~` other arguments.
function marked(line) {
  const mark = /^(?:turn \d+: )?([-+>~]) /.exec(line);
  return mark ? `mark ${{ "-": "missing", "+": "extra", ">": "misplaced", "~": "wrong" }[mark[1]]}` : null;
}

function detailParts(details, reason) {
  if (details === undefined) return null;
  if (Array.isArray(details)) return itemTable(details) ?? raw(details);
  if (typeof details !== "object") return raw(details);
  const rest = { ...details };
  const take = (key) => { const value = rest[key]; delete rest[key]; return value; };
  const parts = [sidesOf(rest, take), differing(rest, take)];
  const reasoning = take("reasoning");
  if (typeof reasoning === "string" && !reason.includes(reasoning)) parts.push(make("p", { class: "reason" }, reasoning));
  const votes = take("votes");
  parts.push(ballots(Array.isArray(votes) ? votes : take("given"), take("reasonings")));
  if (votes && !Array.isArray(votes)) rest.votes = `${votes.cast} cast of ${votes.of}`;
  for (const key of LISTS) {
    if (rest[key] === undefined || rest[key] === null) continue;
    const table = itemTable(rest[key]);
    if (!table) continue;
    delete rest[key];
    parts.push(make("div", { class: "fact" }, make("span", { class: "label" }, key), table));
  }
  parts.push(judgeLine(rest, take));
  if (Object.keys(rest).length) parts.push(raw(rest));
  return parts;
}

function raw(value) {
  return make("div", { class: "fact" }, make("span", { class: "label" }, "details"), shown(value));
}

function sidesOf(rest, take) {
  if (rest.expected === undefined || rest.actual === undefined) return null;
  return sideBySide(take("expected"), take("actual"));
}

function differing(rest, take) {
  const found = Object.keys(KINDS).filter((kind) => Array.isArray(rest[kind])).map((kind) => [kind, take(kind)]);
  const lines = found.flatMap(([kind, texts]) => texts.map((text) =>
    make("li", { class: `mark ${kind === "wrong_arguments" ? "wrong" : kind}` }, `${KINDS[kind]} ${kind.replace("_", " ")}: `, asText(text))));
  return lines.length ? make("ul", { class: "evidence" }, lines) : null;
}

function asText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function ballots(votes, reasonings) {
  if (!Array.isArray(votes) || !votes.length) return null;
  const why = Array.isArray(reasonings) ? reasonings : [];
  if (votes.length === 1 && !why.length) return null;
  return make("div", { class: "fact" }, make("span", { class: "label" }, "samples"),
    table(["#", "vote", "reasoning"], votes.map((vote, place) => [String(place + 1), typeof vote === "boolean" ? yesOrNo(vote) : asText(vote), asText(why[place] ?? "")])));
}

function yesOrNo(passed) {
  return pill(passed ? "passed" : "failed", passed ? "yes" : "no");
}

function judgeLine(rest, take) {
  const said = Object.fromEntries(ABOUT_JUDGE.map((key) => [key, rest[key] === undefined ? undefined : take(key)]));
  const words = [
    typeof said.model === "string" && said.model && `judged by ${said.model}`,
    said.samples > 1 && counted(said.samples, "sample"),
    typeof said.agreement === "number" && said.samples > 1 && `agreement ${percent(said.agreement)}`,
    said.attempts > 0 && counted(said.attempts, "call"),
    said.cached > 0 && `${said.cached} cached`,
    said.usage && typeof said.usage === "object" && `${said.usage.input.toLocaleString("en")} tokens in, ${said.usage.output.toLocaleString("en")} out`,
    typeof said.cost === "number" && money(said.cost),
  ].filter(Boolean);
  return words.length ? make("p", { class: "dim" }, words.join(" · ")) : null;
}

const TITLES = ["text", "rubric", "claim", "goal", "sentence", "id", "name", "property"];

// Rubrics, claims, goals, turns: whatever comes as several verdicts.
function itemTable(items) {
  const entries = Array.isArray(items) ? items.map((item) => [null, item]) : Object.entries(items);
  const objects = entries.every(([, item]) => item !== null && typeof item === "object");
  if (!entries.length || !objects) return null;
  return make("div", { class: "items" }, entries.map(([key, item]) => oneItem(key, item)));
}

function oneItem(key, item) {
  if (Array.isArray(item)) {
    return make("div", { class: "item" }, make("b", null, key), item.map((part) => make("p", null, asPlain(part))));
  }
  const rest = { ...item };
  const take = (name) => { const value = rest[name]; delete rest[name]; return value; };
  const title = TITLES.find((name) => typeof rest[name] === "string");
  const turn = take("turn");
  const reached = take("reached");
  const value = take("value");
  const passed = take("passed") ?? (typeof value === "number" && key === null ? value === 1 : undefined);
  const name = title ? take(title) : null;
  const words = [key, name !== key && name, turn !== undefined && `turn ${turn}`].filter((word) => word !== null && word !== undefined && word !== false);
  const votes = take("votes");
  const agreement = take("agreement");
  const parts = [sidesOf(rest, take), differing(rest, take)];
  const why = [take("reasoning"), take("reason"), take("unmeasured")].filter((text) => typeof text === "string" && text);
  return make("div", { class: "item" },
    make("div", { class: "item-head" },
      typeof passed === "boolean" && yesOrNo(passed),
      make("b", null, words.join(" · ")),
      typeof value === "number" && make("span", { class: "dim number" }, value.toFixed(2)),
      Array.isArray(votes) && votes.length > 1 && make("span", { class: "dim" }, `votes ${votes.map(asText).join(", ")}${typeof agreement === "number" ? `, agreement ${percent(agreement)}` : ""}`),
      reached === false && make("span", { class: "dim" }, "never reached")),
    why.map((text) => make("p", { class: "reason" }, text)),
    parts, Object.keys(rest).length > 0 && shown(rest));
}

function asPlain(part) {
  if (part === null || typeof part !== "object") return asText(part);
  return [part.label, part.reasoning].filter((text) => text !== undefined).map(asText).join(": ") || JSON.stringify(part);
}

function table(heads, rows) {
  return make("table", { class: "plain" },
    make("thead", null, make("tr", null, heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", null, rows.map((row) => make("tr", null, row.map((cell) => make("td", null, cell))))));
}

// Expected and actual

function expectations(run, apart) {
  return make("div", { class: "expectations", role: "group", "aria-label": "Expected and actual" },
    apart.map((one) => make("div", { class: "fact" },
      make("span", { class: "label" }, `Expected and actual, turn ${one.turn} · ${one.part}`), one.part === "tools"
        ? [sideBySide(one.expected, one.actual, marksOf(run, one.turn)), missingOf(run, one.turn)]
        : one.part === "contains" ? containing(one.expected, one.actual) : sideBySide(one.expected, one.actual))));
}

// A text that should contain others is not itself wrong: only what it lacks is marked.
function containing(expected, actual) {
  const said = actual.join("\n");
  return sides(expected.map((line) => make("pre", { class: said.includes(line) ? null : "mark missing" }, line)), actual.map((line) => make("pre", null, line)));
}

// What the metrics themselves found wrong with the calls of one turn.
function findings(run, turn) {
  return (run.scores ?? []).flatMap(([, found]) => {
    const parts = Array.isArray(found.details) ? found.details : found.details?.compared;
    return Array.isArray(parts) ? parts.filter((part) => part?.turn === turn) : [];
  });
}

function marksOf(run, turn) {
  const all = (kind) => findings(run, turn).flatMap((part) => Array.isArray(part[kind]) ? part[kind] : []);
  const [extra, misplaced, wrong] = ["extra", "misplaced", "wrong_arguments"].map(all);
  return (line) => {
    if (wrong.some((text) => text.startsWith(`${line} instead of `))) return "mark wrong";
    if (misplaced.some((text) => text.startsWith(`${line} (place `))) return "mark misplaced";
    return extra.includes(line) ? "mark extra" : null;
  };
}

function missingOf(run, turn) {
  const kinds = ["missing", "wrong_arguments"];
  const lines = new Map(findings(run, turn).flatMap((part) => kinds.flatMap((kind) =>
    (Array.isArray(part[kind]) ? part[kind] : []).map((text) => [text, kind]))));
  return lines.size > 0 && make("ul", { class: "evidence" }, [...lines].map(([text, kind]) =>
    make("li", { class: `mark ${kind === "missing" ? kind : "wrong"}` }, `${KINDS[kind]} ${kind.replace("_", " ")}: ${text}`)));
}

// `marks` tells how a line of the actual side is marked, where a metric said so.
function sideBySide(expected, actual, marks) {
  const [left, right] = [listed(expected), listed(actual)];
  const texts = !marks && left.length === 1 && right.length === 1 ? apart(left[0], right[0]) : null;
  const column = (lines, mine, others, kind) => lines.map((line) =>
    make("pre", { class: marks ? kind === "extra" && marks(line) : sideMark(line, others, kind) }, texts ? mine : line));
  return sides(column(left, texts?.[0], right, "missing"), column(right, texts?.[1], left, "extra"));
}

function sides(expected, actual) {
  const column = (title, lines) => make("div", { class: "side" }, make("span", { class: "label" }, title), lines.length ? lines : make("p", { class: "dim" }, "nothing"));
  return make("div", { class: "sides" }, column("expected", expected), column("actual", actual));
}

// A line that its metric marked wears that mark; a line that both sides have wears none.
function sideMark(line, others, kind) {
  return marked(line) ?? (others.some((other) => other.replace(/^ {2}/, "") === line.replace(/^ {2}/, "")) ? null : `mark ${kind}`);
}

function listed(value) {
  const items = Array.isArray(value) ? value : [value];
  return items.map((item) => item !== null && typeof item === "object" && typeof item.tool === "string"
    ? `${item.tool}(${Object.entries(item.args ?? {}).map(([name, arg]) => `${name}=${JSON.stringify(arg)}`).join(", ")})`
    : asText(item));
}

// Two texts with the stretch that differs between their common beginning and end marked.
export function apart(one, other) {
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start += 1;
  let end = 0;
  const room = Math.min(one.length, other.length) - start;
  while (end < room && one[one.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  const cut = (text) => [text.slice(0, start), make("mark", null, text.slice(start, text.length - end)), text.slice(text.length - end)];
  return [cut(one), cut(other)];
}
