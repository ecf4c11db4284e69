// A source behind a server: one run, or one run compared with another. packed.js is the other source.
import { asked, eachLine, followed } from "./api.js";

export function servedRun(run, told) {
  return served({
    head: () => asked(`/runs/${encodeURIComponent(run)}`),
    rows: (query) => asked(`/runs/${encodeURIComponent(run)}/rows`, { query }),
    story: (id, trial) => asked(`/runs/${encodeURIComponent(run)}/story`, { query: { case: id, trial } }),
    event: (id, trial, seq) => asked(`/runs/${encodeURIComponent(run)}/event`, { query: { case: id, trial, seq } }),
    find: `/runs/${encodeURIComponent(run)}/find`, run, told,
  });
}

export function servedCompare(a, b, other, told) {
  return served({
    head: () => asked("/compare", { query: { a, b } }),
    rows: (query) => asked("/compare/rows", { query: { a, b, ...query } }),
    story: (id, trial) => asked("/compare/story", { query: { a, b, case: id, trial_b: trial, trial_a: other() } }),
    event: (id, trial, seq) => asked(`/runs/${encodeURIComponent(b)}/event`, { query: { case: id, trial, seq } }),
    find: `/runs/${encodeURIComponent(b)}/find`, run: b, told, choosesBaseline: true,
  });
}

function served(routes) {
  const going = new Map();  // trials in progress, by case
  let searching = null;
  let words = "";
  let position = null;

  const told = (query) => ({
    q: query.q, status: query.status, tag: query.tag, metric: query.metric, change: query.change,
    min_s: query.min_s, min_cost: query.min_cost, sort: `${query.down ? "-" : ""}${query.sort}`,
  });

  async function head() {
    const found = await routes.head();
    position ??= found.at ?? null;
    return found;
  }

  async function row(id) {
    const found = await routes.rows({ around: id, count: 1, from: 0 });
    if (found.rows[0]?.id === id) return found.rows[0];
    const trial = going.get(id);
    return trial === undefined ? null : { id, status: "going", trials: [{ n: trial.trial, status: "going" }] };
  }

  function find(given, heard) {
    if (given === words) return;
    words = given;
    searching?.abort();
    searching = new AbortController();
    eachLine(routes.find, { words: given }, (found) => heard(found.done), searching.signal).catch(() => null);
  }

  function follow(heard) {
    return followed({ run: routes.run }, position, (change) => {
      if (change.kind === "going") going.set(change.case, change);
      else if (change.case) going.delete(change.case);
      if (change.kind === "run" && change.status !== "running") going.clear();
      heard(change);
    }, routes.told);
  }

  return {
    live: true, going, head, row, find, follow, choosesBaseline: Boolean(routes.choosesBaseline),
    rows: (query, from, count, around) => routes.rows({ ...told(query), from, count, around }),
    story: (id, trial) => routes.story(id, trial),
    event: (id, trial, seq) => routes.event(id, trial, seq).catch(() => null),
  };
}
