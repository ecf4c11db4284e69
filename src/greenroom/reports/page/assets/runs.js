// All runs, the latest first, and how their pass rate went from run to run.
import { asked, followed } from "./api.js";
import { choice, commandLine, confirmed, notice, typed } from "./bar.js";
import { button, draw, fill, make } from "./elements.js";
import { price, scrolled } from "./overview.js";
import { rehearse, resumeRun, stopRun } from "./rerun.js";
import { counted, duration, level, moment, money, percent } from "./words.js";

const MARK_OF = { running: "●", interrupted: "■", finished: "" };

export async function runsPage(main, here, live) {
  const given = () => Object.fromEntries(new URLSearchParams(location.hash.replace(/^#/, "")));
  const chosen = new Set();
  const trouble = make("div");
  const choices = make("div", { class: "page-bar choices" });  // stays in sight while runs are chosen further down
  const above = make("div");
  const table = make("div");
  let runs = [];
  let next = "";
  let found = {};
  let due = null;
  let drawTrend = () => null;

  fill(main, make("h2", { class: "unseen" }, "Runs"), trouble, choices, above, table);

  function ask(change) {
    const query = new URLSearchParams({ ...given(), ...change });
    for (const [name, value] of [...query]) if (!value) query.delete(name);
    history.replaceState(null, "", `#${query}`);
    refresh();
  }

  async function refresh() {
    try {
      found = await asked("/runs", { query: { set: given().set, agent: given().agent, limit: 100 } });
      runs = found.runs;
      next = found.next ?? "";
      const set = given().set || runs[0]?.evalset || runs[0]?.name;
      const trend = set ? await asked("/trend", { query: { set } }) : { points: [] };
      drawTrend = () => fill(above, trendPanel(set, trend.points ?? [], above.clientWidth));
      fill(choices, bar());
      drawTrend();
      paint();
      notice(trouble, "");
    } catch (error) {
      notice(trouble, error);
    }
  }

  const isFiltered = () => Boolean(given().set || given().agent);

  function bar() {
    const option = (names, all) => [["", all], ...(names ?? []).map((name) => [name, name])];
    return [
      (runs.length > 0 || isFiltered()) && [choice("set", option(found.sets, "every set"), given().set ?? "", (set) => ask({ set })),
        choice("agent", option(found.agents, "every agent"), given().agent ?? "", (agent) => ask({ agent }))],
      make("span", { class: "space" }), runs.length > 1 && compareButton(),
      !here.read_only && button("Rehearse…", () => rehearse(here), { class: "quiet strong" })];
  }

  function compareButton() {
    const [b, a] = runs.filter((run) => chosen.has(run.id)).map((run) => run.id);
    return chosen.size === 2
      ? make("a", { class: "quiet", href: `/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}` }, "Compare the two")
      : make("span", { class: "dim" }, chosen.size ? "choose one more to compare" : "choose two to compare");
  }

  function paint() {
    const heads = ["run", "choose", "pass rate", "trials", "set", "agent", "total cost", "time", ...(here.read_only ? [] : ["actions"])];
    fill(table, runs.length ? scrolled("run-rows", heads, runs.map(runLine)) : noRun(),
      next && button("Earlier runs", more, { class: "quiet" }));
  }

  function noRun() {
    if (isFiltered()) return make("p", { class: "dim" }, "No run of this set and agent.");
    return make("section", { class: "panel" }, make("h2", null, "No run yet"),
      make("p", { class: "dim" }, here.read_only ? "A run that is started in a terminal shows up here:" : "Press Rehearse…, or start one in a terminal; it shows up here:"),
      commandLine(typed("greenroom", "eval", "run", here.agents?.[0]?.ref ?? "agent.py", here.sets?.[0]?.name ?? "cases.yaml")));
  }

  async function more() {
    const older = await asked("/runs", { query: { set: given().set, agent: given().agent, limit: 100, before: next } });
    runs = [...runs, ...older.runs];
    next = older.next ?? "";
    paint();
  }

  function runLine(run) {
    const box = make("input", { type: "checkbox", checked: chosen.has(run.id), "aria-label": `choose ${run.id}` });
    box.addEventListener("change", () => {
      if (box.checked) chosen.add(run.id);
      else chosen.delete(run.id);
      if (chosen.size > 2) chosen.delete([...chosen][0]);
      fill(choices, bar());
      paint();
    });
    const going = run.state === "running";
    return make("tr", { class: run.state },
      make("th", { scope: "row" }, make("a", { href: `/runs/${encodeURIComponent(run.id)}` }, moment(run.begun)), " ",
        run.state !== "finished" && make("span", { class: `state ${run.state}` }, `${MARK_OF[run.state]} ${run.state}`),
        make("span", { class: "dim run-id" }, run.id)),
      make("td", null, box),
      make("td", null, run.rate ? make("b", { class: going ? null : level(run.rate.share) }, run.rate.text, going && " so far") : make("span", { class: "dim" }, "–")),
      make("td", null, run.planned > (run.trials ?? 0) ? `${run.trials ?? 0} of ${run.planned}` : (run.trials ?? 0), " ", countWords(run.counts ?? {})),
      make("td", null, run.name || run.evalset), make("td", null, run.agent, " ", run.digest && make("code", { class: "dim" }, run.digest.slice(0, 6)), origin(run)),
      make("td", { class: "number" }, price(run.cost)), make("td", { class: "number" }, run.seconds ? duration(run.seconds) : ""),
      !here.read_only && make("td", { class: "doing" }, doing(run)));
  }

  function doing(run) {
    const act = (name, does) => button(name, () => does(run.id).then((done) => done && refresh(), (error) => notice(trouble, error)), { class: "quiet" });
    if (run.state === "running") return run.mine ? act("Stop…", stopRun) : make("span", { class: "dim" }, "started elsewhere");
    return [run.state === "interrupted" && act("Resume…", resumeRun), " ", act("Delete…", () => deleteRun(run))];
  }

  async function deleteRun(run) {
    const command = typed("greenroom", "runs", "delete", run.id, "--store", here.store);
    const sure = await confirmed("Delete this run?", `${run.name || run.id} of ${moment(run.begun)} with all its trials.`, command, "Delete");
    if (sure) await asked(`/runs/${encodeURIComponent(run.id)}`, { method: "DELETE", body: {} });
    return sure;
  }

  window.addEventListener("hashchange", refresh);
  window.addEventListener("resize", () => drawTrend());
  await refresh();
  followed({}, found.at ?? null, (change) => {
    if (change.kind !== "going") due ??= setTimeout(() => { due = null; refresh(); }, 400);
  }, live.tell);
}

// Who began a run, on which commit, and the baseline that it was held against.
function origin(run) {
  const words = [run.by && `by ${run.by}`, run.commit && `at ${run.commit.slice(0, 8)}`, run.against && `against ${run.against}`].filter(Boolean);
  return words.length ? make("span", { class: "dim" }, ` ${words.join(", ")}`) : "";
}

function countWords(counts) {
  const marks = { passed: "✓", failed: "✗", error: "!", terminated: "■", skipped: "–" };
  return make("span", { class: "dim" }, Object.entries(marks).filter(([status]) => counts[status]).map(([status, mark]) => `${mark}\u00a0${counts[status]}`).join("  "));
}

// The run before this one that had the same cases; -1 if there is none.
function lastOfSameSet(points, place) {
  return points.slice(0, place).findLastIndex((point) => point.set_digest === points[place].set_digest);
}

// The pass rate from run to run with its interval. A line joins runs of the same cases: other questions are no trend.
function trendPanel(set, points, room) {
  if (points.length < 2) return null;
  const [width, height, left, base] = [Math.max(room - 36, 240), 150, 44, 130];  // 36: the edges of the panel
  const shown = points.slice(-60);
  const x = (place) => left + 10 + (place * (width - left - 20)) / Math.max(shown.length - 1, 1);
  const y = (share) => base - share * (base - 10);
  const parts = [0, 0.5, 1].map((share) => [
    draw("line", { class: "grid-line", x1: left, x2: width, y1: y(share), y2: y(share) }),
    draw("text", { class: "axis", x: 2, y: y(share) + 4 }, `${share * 100} %`)]);
  shown.forEach((point, place) => {
    const before = shown[place - 1];
    const last = lastOfSameSet(shown, place);
    const changed = before && before.digest !== point.digest;
    if (last >= 0) parts.push(draw("line", { class: "trend-line", x1: x(last), y1: y(shown[last].rate), x2: x(place), y2: y(point.rate) }));
    if (point.low !== undefined) parts.push(draw("line", { class: "whisker", x1: x(place), x2: x(place), y1: y(point.low), y2: y(point.high) }));
    const isNew = before && last < 0;
    const says = `${moment(point.begun)}: ${percent(point.rate)}${changed ? ", the agent changed" : ""}${isNew ? ", other cases" : ""}`;
    const dot = isNew ? draw("path", { class: "dot-set", d: `M${x(place)} ${y(point.rate) - 5}l5 9h-10z` })
      : draw("circle", { class: changed ? "dot-changed" : "dot-same", cx: x(place), cy: y(point.rate), r: 4 });
    parts.push(draw("a", { href: `/runs/${encodeURIComponent(point.run)}`, "aria-label": says }, draw("title", null, says), dot));
  });
  parts.push([[shown[0], left, ""], [shown.at(-1), width, " last"]].map(([point, at, kind]) => draw("text", { class: `axis${kind}`, x: at, y: height - 2 }, moment(point.begun))));
  const says = [
    shown.some((point) => point.low !== undefined) && "Bars are 95 % intervals.",
    shown.some((point, place) => place && point.digest !== shown[place - 1].digest) && "● the agent changed.",
    shown.some((_, place) => place && lastOfSameSet(shown, place) < 0) && "▲ other cases than before: no line, because the questions are different.",
  ].filter(Boolean);
  const costs = shown.filter((point) => point.cost !== undefined).map((point) => point.cost);
  return make("section", { class: "panel", "aria-label": "Trend" },
    make("h2", null, `Pass rate of ${set}`, " ", make("span", { class: "dim" }, counted(points.length, "run"))),
    make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "The pass rate from run to run" },
      draw("svg", { class: "trend", viewBox: `0 0 ${width} ${height}`, width, height }, parts)),
    make("p", { class: "dim" }, says.join(" "), costs.length > 1 && ` A run cost ${span(money(Math.min(...costs)), money(Math.max(...costs)))}.`));
}

function span(least, most) {
  return least === most ? least : `${least} to ${most}`;
}
