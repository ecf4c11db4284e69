// What changed since the baseline, and how sure that is. The sentences are the comparison's own.
import { make, pill } from "./elements.js";
import { duration, level, money, percent, signed } from "./words.js";

const VERDICT_TITLES = {
  regressed: "Regressed", suspect: "Suspects", flipped: "Flipped, one trial each", flaky: "Flaky", unclear: "Unclear",
  changed: "Changed cases, not comparable", improved: "Improved", added: "New", removed: "Removed",
};
const FIRST = ["regressed", "suspect", "flipped"];

export function comparedPanel(found) {
  if (!found) return null;
  return make("section", { class: "panel compared", "aria-labelledby": "compared" },
    make("h2", { id: "compared" }, "Compared with the baseline"),
    make("p", { class: "lead" }, totals(found)),
    make("p", { class: "lead dim" }, found.says?.replace(" -> ", " → ")),
    (found.worse ?? []).map((why) => make("p", { class: "lead worse" }, why)),
    (found.remarks ?? []).map((line) => make("p", { class: "dim" }, line)),
    (found.verdicts ?? []).map(verdictList),
    found.unchanged && make("p", { class: "dim" }, `${found.unchanged} unchanged`));
}

// Pass rate, cost and time then and now, as far as both are known.
function totals(found) {
  const parts = [make("span", { class: "dim" }, `against ${found.against}`)];
  const share = (value) => make("b", { class: level(value) }, percent(value));
  if (found.now !== undefined) parts.push(" · pass rate ", share(found.before), " → ", share(found.now));
  if (found.cost) parts.push(` · total cost ${money(found.cost[0])} → ${money(found.cost[1])}`);
  if (found.seconds) parts.push(` · time ${duration(found.seconds[0])} → ${duration(found.seconds[1])}`);
  return parts;
}

function verdictList(group) {
  const left = group.count - group.cases.length;
  return make("details", { class: `changed ${group.verdict}`, open: FIRST.includes(group.verdict) },
    make("summary", null, make("h3", null, `${VERDICT_TITLES[group.verdict] ?? group.verdict} `, make("b", null, group.count))),
    make("table", null, make("tbody", null, group.cases.map(caseLine))),
    left > 0 && make("p", { class: "dim" }, `${left} more are not shown here.`));
}

function caseLine(one) {
  const both = one.before && one.now;
  return make("tr", null,
    make("th", { scope: "row" }, one.now ? make("a", { href: `#case=${encodeURIComponent(one.id)}${both ? "&beside=1" : ""}` }, one.id) : one.id),
    make("td", null, trialsOf(one.before), both && " → ", trialsOf(one.now), one.again && [" again ", trialsOf(one.again)]),
    make("td", null, (one.metrics ?? []).map(movedMetric), make("span", { class: "dim" }, one.why)));
}

// Each status, with how many trials had it where there were several.
function trialsOf(counts) {
  const found = Object.entries(counts ?? {});
  const several = found.reduce((all, [, count]) => all + count, 0) > 1;
  return found.map(([status, count]) => make("span", null, several && `${count} × `, pill(status), " "));
}

function movedMetric(change) {
  const by = change.now - change.before;
  return make("span", { class: `moved ${by < 0 ? "worse" : "better"}` }, `${change.name} ${change.before.toFixed(2)} → ${change.now.toFixed(2)} (${signed(by)})`);
}
