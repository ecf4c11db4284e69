// The top of a run's page: the quality gate, counts, time and cost, metrics, tags, nodes, reasons.
import { button, draw, make, pill } from "./elements.js";
import { SHOWN } from "./query.js";
import { counted, duration, level, money, percent } from "./words.js";

const ROLES = { agent: "agent", user: "users", judge: "judges" };

export function overview(head, ask) {
  return make("section", { class: "overview", "aria-labelledby": "summary" },
    make("h2", { class: "unseen", id: "summary" }, "Summary"),
    gateLines(head.gate),
    make("div", { class: "tiles" }, tiles(head)),
    make("div", { class: "whole" }, countsBar(head)),
    make("ul", { class: "key" }, SHOWN.filter((status) => head.counts?.[status]).map((status) =>
      make("li", null, button([pill(status), " ", make("b", null, head.counts[status].toLocaleString("en"))],
        () => ask({ status: new Set([status]) }), { class: "plain-button", title: `Show the ${status} cases` })))),
    (head.notes ?? []).map((note) => make("p", { class: "remark" }, make("b", null, "Note: "), note)));
}

function gateLines(gate) {
  if (!gate) return null;
  const says = gate.passed ? "passed" : `missed (exit code ${gate.exit_code})`;
  return [
    make("p", { class: "lead gate" }, pill(gate.passed ? "passed" : "failed", `Gate ${says}`)),
    (gate.missed ?? []).map((why) => make("p", { class: "lead worse" }, why))];
}

function tile(label, value, more, kind) {
  return make("div", { class: "tile" }, make("span", { class: "label" }, label), make("b", { class: kind ?? null }, value),
    more && make("span", { class: "more" }, more));
}

function tiles(head) {
  const going = head.state && head.state !== "finished";
  const found = [head.rate
    ? tile(going ? "pass rate so far" : "pass rate", head.rate.text, `${(head.passed ?? 0).toLocaleString("en")} of ${(head.evaluated ?? 0).toLocaleString("en")} evaluated ${head.trials > head.cases ? "trials" : "cases"} passed`,
      going ? "big" : `big ${level(head.rate.share)}`)
    : tile("pass rate", "nothing evaluated")];
  const cases = counted(head.cases ?? 0, "case");
  const trials = head.trials ?? 0;
  found.push(tile("run", going && head.planned ? `${trials.toLocaleString("en")} of ${counted(head.planned, "trial")}` : trials === (head.cases ?? 0) ? cases : `${trials.toLocaleString("en")} trials of ${cases}`,
    head.counts?.flaky ? `${counted(head.counts.flaky, "case")} flaky: some trials passed, others did not` : null));
  if (head.steady) found.push(tile(`pass^${head.steady.k}`, percent(head.steady.share), `the chance that all ${head.steady.k} trials of a case pass`));
  if (head.seconds) found.push(tile("time", duration(head.seconds)));
  const spent = head.spent ?? [];
  if (spent.length) found.push(tile("total cost", amount(head.cost), spent.length > 1 ? spent.map((one) => `${ROLES[one.role]} ${amount(one.cost)}`).join(" · ") : `all of it the ${ROLES[spent[0].role]}'s`));
  for (const one of spent) {
    const tokens = one.tokens ? `${one.tokens[0].toLocaleString("en")} in, ${one.tokens[1].toLocaleString("en")} out` : "unknown";
    found.push(tile(`${ROLES[one.role]}: tokens`, tokens, Object.keys(one.models).join(", ")));
  }
  return found;
}

function amount(cost) {
  return cost === undefined ? "unknown" : money(cost);
}

export function price(cost) {
  return cost === undefined || cost === null ? "cost unknown" : money(cost);
}

function svg(kind, width, height, label, ...parts) {
  return draw("svg", {
    class: kind, viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label,
    preserveAspectRatio: kind === "bar" ? "none" : null,
  }, parts);
}

function block(kind, x, y, width, height, title) {
  const shape = draw("rect", { class: kind, x: x.toFixed(1), y: y.toFixed(1), width: width.toFixed(1), height: height.toFixed(1) });
  return title ? draw("g", null, draw("title", null, title), shape) : shape;
}

// Parts of a whole, side by side.
function countsBar(head) {
  const found = SHOWN.filter((status) => head.counts?.[status]).map((status) => [status, head.counts[status]]);
  const all = found.reduce((sum, [, count]) => sum + count, 0) || 1;
  let at = 0;
  const parts = found.map(([status, count], place) => {
    const width = (count / all) * 240;
    at += width;
    return block(`fill-${status}`, at - width, 0, place === found.length - 1 ? width : Math.max(width - 1, 1), 10, `${count} ${status}`);
  });
  return svg("bar", 240, 10, found.map(([status, count]) => `${count} ${status}`).join(", ") || "no cases", parts);
}

export function shareBar(share, label) {
  return svg("bar", 240, 8, label, block("track", 0, 0, 240, 8), block(`fill-${level(share)}`, 0, 0, share * 240, 8));
}

function histogram(line) {
  const bins = line.bins ?? [];
  const top = Math.max(...bins, 1);
  const bars = bins.map((count, n) => count > 0 && block("fill-bin", n * 9, 24 - Math.max((count / top) * 22, 1.5), 7.5, Math.max((count / top) * 22, 1.5),
    `${(n / 10).toFixed(1)} to ${((n + 1) / 10).toFixed(1)}: ${count}`));
  return svg("histogram", 90, 25, `scores of ${line.name} from ${line.low.toFixed(2)} to ${line.high.toFixed(2)}`, block("track", 0, 24, 90, 1), bars);
}

// Panels

export function panels(head, ask) {
  const columns = [[whyPanel(head, ask), metricPanel(head, ask), nodePanel(head)], [tagPanel(head, ask)]];
  return make("div", { class: "panels" }, columns.map((column) => column.some(Boolean) && make("div", null, column)));
}

function leftOut(head, kind) {
  const count = head.left_out?.[kind];
  return count > 0 && make("p", { class: "dim" }, `${count} more ${kind} are not shown here.`);
}

export function panel(id, title, ...inside) {
  return make("section", { class: "panel", "aria-labelledby": id }, make("h2", { id }, title), inside);
}

// A table wider than its panel scrolls, which must work with the keyboard as well.
export function scrolled(kind, heads, rows) {
  return make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `${heads[0]}s` },
    make("table", { class: kind },
      make("thead", null, make("tr", null, heads.map((name) => name ? make("th", { scope: "col" }, name) : make("td")))),
      make("tbody", null, rows)));
}

function whyPanel(head, ask) {
  if (!head.why?.length) return null;
  return panel("why", "The same reason, several times",
    make("ul", { class: "reasons" }, head.why.map((one) => make("li", null,
      make("b", { class: "number" }, `${one.count} ×`), " ",
      button([pill(one.status), " ", one.text], () => ask({ q: wordsOfReason(one.text), status: new Set() }), { class: "quiet link", title: "Show the cases with this reason" })))));
}

// What a search for it finds: rows name a metric with its arguments, and a long reason is shortened.
function wordsOfReason(text) {
  return text.replace(/^[\p{L}\p{N}_]+: /u, "").replace(/…$/, "");
}

function named(name, press, title) {
  return make("th", { scope: "row" }, press ? button(name, press, { class: "quiet link", title }) : make("span", { class: "name" }, name));
}

function metricPanel(head, ask) {
  if (!head.metrics?.length) return null;
  return panel("metrics", "Metrics", scrolled("metric-rows", ["metric", "passing", "", "mean", "spread"], head.metrics.map((line) => {
    const missed = head.choices?.metric?.[line.name];
    const press = missed ? () => ask({ metric: new Set([line.name]) }, { list: true }) : null;
    const label = named(line.name, press, "Show the cases that missed it");
    if (line.members?.length) label.append(memberLines(line));
    return metricRow(line, label);
  })), leftOut(head, "metrics"));
}

function metricRow(line, label) {
  const apart = [line.not_applicable && `${line.not_applicable} n/a`, line.unmeasured && `${line.unmeasured} unmeasured`].filter(Boolean).join(", ");
  if (!line.measured) return make("tr", null, label, make("td", { colspan: 4, class: "dim" }, apart || "nothing measured"));
  const share = (line.passed ?? 0) / line.measured;
  return make("tr", null, label,
    make("td", { class: "chart" }, shareBar(share, `${percent(share)} passing`)),
    make("td", null, make("b", { class: level(share) }, percent(share)), " ", make("span", { class: "dim" }, `${line.passed ?? 0}/${line.measured}${apart ? ` · ${apart}` : ""}`)),
    make("td", { class: "number" }, line.mean.toFixed(2)),
    make("td", { class: "chart" }, histogram(line)));
}

// One line for a metric; what it was asked with are details.
function memberLines(line) {
  const one = line.members.length === 1;
  return make("details", { class: "members" }, make("summary", null, one ? "its arguments" : `${line.members.length} with other arguments`),
    make("ul", null, line.members.map((member) => make("li", null, make("code", null, member.name), " ",
      make("span", { class: "dim" }, member.measured ? `${member.passed ?? 0}/${member.measured}, mean ${member.mean.toFixed(2)}` : "nothing measured")))));
}

function tagPanel(head, ask) {
  if (!head.tags?.length) return null;
  const priced = (head.spent ?? []).some((one) => one.role === "agent");
  const several = head.trials > head.cases;
  const heads = ["tag", "passing", "", ...(priced ? ["agent's cost"] : [])];
  return panel("tags", "Tags", scrolled("tag-rows", heads, head.tags.map((line) => {
    const label = named(line.name, () => ask({ tag: new Set([line.name]) }, { list: true }), "Show the cases with this tag");
    const cost = priced && make("td", { class: "number" }, line.cost === undefined ? "unknown" : money(line.cost));
    if (!line.rate) return make("tr", null, label, make("td", { colspan: 2, class: "dim" }, `nothing evaluated of ${line.total}`), cost);
    return make("tr", null, label,
      make("td", { class: "chart" }, shareBar(line.rate.share, `${percent(line.rate.share)} passing`)),
      make("td", null, make("b", { class: level(line.rate.share) }, line.rate.text), " ", make("span", { class: "dim" }, `${line.passed}/${line.evaluated}${several ? " trials" : ""}`)), cost);
  })), leftOut(head, "tags"));
}

function nodePanel(head) {
  if (!head.nodes?.length) return null;
  return panel("nodes", "Nodes of the agent", scrolled("node-rows", ["node", "calls", "tokens in", "tokens out", "cost", "models"], head.nodes.map((line) => {
    const least = line.known_cost ? `unknown, at least ${money(line.known_cost)}` : "unknown";
    const cells = [line.calls.toLocaleString("en"), ...(line.tokens ?? [null, null]).map((n) => n === null ? "unknown" : n.toLocaleString("en")), line.cost === undefined ? least : money(line.cost)];
    return make("tr", null, named(line.node), cells.map((cell) => make("td", { class: "number" }, cell)), make("td", { class: "dim" }, line.models.join(", ")));
  })), leftOut(head, "nodes"));
}
