// A source inside a file: the index is read at once, the stories are unpacked when they are opened.
// shapes.py says what a source is and answers; served.js is the other one.
import { STATUSES } from "./query.js";

const MOST_UNPACKED = 24;

export function packed(page) {
  const index = JSON.parse(page.getElementById("index").textContent);
  const cases = index.rows.map((row) => ({ row, words: wordsOf(row), said: "" }));
  const byId = new Map(cases.map((one) => [one.row.id, one]));
  const unpacked = new Map();  // the last packs that were unpacked, by number
  let listening = null;

  async function unpack(number) {
    if (unpacked.has(number)) return unpacked.get(number);
    const text = atob(page.getElementById(`pack-${number}`).textContent);
    const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const found = JSON.parse(await new Response(stream).text());
    if (unpacked.size >= MOST_UNPACKED) unpacked.delete(unpacked.keys().next().value);
    unpacked.set(number, found);
    return found;
  }

  async function story(id, trial) {
    const pack = byId.get(id)?.row.trials.find((each) => each.n === trial)?.pack;
    return pack ? (await unpack(pack[0]))[pack[1]] : null;
  }

  // What was said and called in every run, gathered pack by pack when the first search begins.
  async function listen(heard) {
    const waiting = new Map();
    for (const one of cases) {
      for (const { pack } of one.row.trials) {
        if (!pack) continue;
        if (!waiting.has(pack[0])) waiting.set(pack[0], []);
        waiting.get(pack[0]).push([one, pack[1]]);
      }
    }
    let done = 0;
    for (const [number, entries] of waiting) {
      const found = await unpack(number);
      for (const [one, place] of entries) one.said += spoken(found[place]);
      done += 1;
      if (done % 8 === 0) await new Promise((rest) => setTimeout(rest));
      heard(done / waiting.size);
    }
  }

  function rows(query, from, count, around = null) {
    const found = answers(cases, query);
    const place = around === null ? -1 : found.findIndex((one) => one.row.id === around);
    const first = place < 0 ? from : Math.floor(place / count) * count;
    return { total: found.length, first, place, rows: found.slice(first, first + count).map((one) => one.row) };
  }

  return {
    head: () => index.head, rows, story, event: () => null, follow: () => null,
    row: (id) => byId.get(id)?.row ?? null,
    find: (words, heard) => { listening ??= listen(heard); },
  };
}

function wordsOf(row) {
  return [row.id, row.name ?? "", ...(row.tags ?? []), ...row.trials.map((trial) => trial.why ?? "")].join("\n").toLowerCase();
}

function spoken(run) {
  const words = (run.timeline ?? []).map((row) =>
    [row.who, row.text, row.value && JSON.stringify(row.value)].filter(Boolean).join(" "));
  const reasons = (run.scores ?? []).map(([name, found]) => `${name} ${found.reason ?? ""}`);
  return [...words, ...reasons].join("\n").toLowerCase();
}

const ORDERS = {
  order: (row) => row.place ?? 0,
  status: (row) => STATUSES.indexOf(row.status),
  case: (row) => row.id,
  score: (row) => row.score ?? null,
  time: (row) => row.s ?? null,
  cost: (row) => row.cost ?? null,
};

// Of one kind any, of different kinds all.
function answers(cases, query) {
  const terms = query.q.toLowerCase().split(/\s+/).filter(Boolean);
  const found = cases.filter(({ row, words, said }) =>
    (!query.status.size || query.status.has(row.status)) && (!query.change.size || query.change.has(row.change)) &&
    meets(query.tag, row.tags) && meets(query.metric, row.missed) &&
    (query.min_s === null || (row.s ?? -1) >= query.min_s) && (query.min_cost === null || (row.cost ?? -1) >= query.min_cost) &&
    terms.every((term) => words.includes(term) || said.includes(term)));
  const of = ORDERS[query.sort];
  const way = query.down ? -1 : 1;
  return found.sort((one, other) => inOrder(of(one.row), of(other.row), way) || (one.row.place ?? 0) - (other.row.place ?? 0));
}

function meets(wanted, held) {
  return !wanted.size || (held ?? []).some((one) => wanted.has(one));
}

// What is unknown comes last, whichever way.
function inOrder(one, other, way) {
  if (one === null || other === null) return (one === null) - (other === null);
  return one < other ? -way : one > other ? way : 0;
}
