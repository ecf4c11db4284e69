// The report's data: the index is read at once, the runs are unpacked when they are opened.

const INDEX = JSON.parse(document.getElementById("index").textContent);
const WORST = ["error", "failed", "terminated", "skipped", "passed"];
const STATE = ["passed", "failed", "n/a", "unmeasured"];

const CASES = INDEX.cases.map((row, place) => {
  const statuses = row.trials.map((trial) => trial.status);
  const scores = row.trials.map((trial) => trial.score).filter((score) => score !== null);
  return {
    ...row,
    place,
    name: row.name ?? "",
    worst: WORST.find((status) => statuses.includes(status)),
    statuses: new Set(statuses),
    score: scores.length ? sum(scores) / scores.length : null,
    s: total(row.trials.map((trial) => trial.s)),
    cost: total(row.trials.map((trial) => trial.cost)),
    missed: new Set(row.trials.flatMap((trial) =>
      trial.scores.filter(([, state]) => state === 1 || state === 3).map(([metric]) => metric))),
    words: [row.id, row.name ?? "", ...row.tags.map((tag) => INDEX.tags[tag]),
      ...row.trials.map((trial) => trial.why)].join("\n").toLowerCase(),
    said: null,
  };
});
const BY_ID = new Map(CASES.map((one) => [one.id, one]));

function sum(numbers) {
  return numbers.reduce((all, number) => all + number, 0);
}

// All of it, or nothing if some of it is unknown.
function total(numbers) {
  return numbers.includes(null) ? null : sum(numbers);
}

const opened = new Map();  // the last packs that were unpacked, by number
const MOST_OPENED = 24;

async function unpack(number) {
  if (opened.has(number)) return opened.get(number);
  const text = atob(document.getElementById(`pack-${number}`).textContent);
  const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const found = JSON.parse(await new Response(stream).text());
  if (opened.size >= MOST_OPENED) opened.delete(opened.keys().next().value);
  opened.set(number, found);
  return found;
}

async function details(trial) {
  if (trial.pack === null) return null;
  const [number, place] = trial.pack;
  return (await unpack(number))[place];
}

// What was said and called in every run, gathered pack by pack when the first search begins.
const hearing = { begun: false, done: 0, packs: 0 };

async function listen(heard) {
  if (hearing.begun) return;
  hearing.begun = true;
  const waiting = new Map();
  for (const one of CASES) {
    for (const { pack } of one.trials) {
      if (pack === null) continue;
      if (!waiting.has(pack[0])) waiting.set(pack[0], []);
      waiting.get(pack[0]).push([one, pack[1]]);
    }
  }
  hearing.packs = waiting.size;
  for (const [number, entries] of waiting) {
    const found = await unpack(number);
    for (const [one, place] of entries) one.said = `${one.said ?? ""}${spoken(found[place])}`;
    hearing.done += 1;
    if (hearing.done % 8 === 0) await new Promise((rest) => setTimeout(rest));
    heard();
  }
}

function spoken(run) {
  const words = (run.timeline ?? []).map((row) =>
    [row.who, row.text, row.value && JSON.stringify(row.value)].filter(Boolean).join(" "));
  const reasons = (run.scores ?? []).map(([name, found]) => `${name} ${found.reason ?? ""}`);
  return [...words, ...reasons].join("\n").toLowerCase();
}
