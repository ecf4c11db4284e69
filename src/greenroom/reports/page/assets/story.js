// Everything about one trial: why it fell short, then what happened, then the rest.
import { besideView } from "./beside.js";
import { MARKS, button, leadingTo, make, pill } from "./elements.js";
import { graphPicture, sizeOf, wayWords } from "./graph.js";
import { price } from "./overview.js";
import { otherCards, unmetCards } from "./scores.js";
import { timelineSection } from "./timeline.js";
import { counted } from "./words.js";

const BLAMED = {
  agent: "the agent", user: "the simulated user", tool_mock: "a mock", expectation: "the expectation",
  undecided: "undecided",
};
const WHO = { agent: "agent", user: "user", judge: "judges" };

// look: see timeline.js; and beside, compare: whether the baseline is next to it; baseline(n): another trial of it.
export function story(trial, run, look = null) {
  const together = run.earlier && look?.beside;
  return [
    run.going && make("p", { class: "remark" }, "This trial is running."),
    spending(run),
    trial.status === "terminated" && make("p", { class: "remark" }, `Stopped at a limit (${run.ended}): never counted as passed.`),
    (run.notes ?? []).map((note) => make("p", { class: "remark" }, note)),
    run.trace && make("p", { class: "remark" }, "Trace: ", leadingTo(run.trace[1], run.trace[0])),
    beforeLine(run, look),
    together && besideView({ title: `Baseline, trial ${run.earlier.n}`, status: run.earlier.status, timeline: run.earlier.timeline },
      { title: "This run", status: trial.status, timeline: run.timeline }, run.earlier.beside),
    reasons(run),
    partedLine(run),
    graphSection(run),
    !together && timelineSection(withoutRepeats(run), look),
    otherCards(brokeAll(run) ? {} : run),
    run.case && make("details", { class: "asked" }, make("summary", null, "The case"), make("pre", { tabindex: 0 }, JSON.stringify(run.case, null, 2))),
    run.cuts > 0 && make("p", { class: "remark" }, `${counted(run.cuts, "long value")} of this case ${run.cuts === 1 ? "was" : "were"} shortened to keep this page small. The trial's ledger has all of it: save it with result.ledger.save("run.jsonl").`),
  ];
}

function reasons(run) {
  const broke = brokeAll(run);
  const cards = broke ? [] : unmetCards(run);
  if (!run.error && !cards.length && !run.blame) return null;
  return make("section", { class: "whys", "aria-label": "Why it fell short" },
    make("h3", null, "Why it fell short"),
    errorBox(run),
    broke && make("p", { class: "dim" }, `Nothing was measured: ${run.scores.map(([name]) => name).join(", ")}`),
    cards, blameLine(run));
}

// Whether the trial broke, so that every metric only repeats that.
function brokeAll(run) {
  return Boolean(run.error) && run.scores?.length > 0 && run.scores.every(([, found]) => found.unmeasured !== undefined);
}

function errorBox(run) {
  if (!run.error) return null;
  return make("div", { class: "trouble", role: "group", "aria-label": "Error" },
    make("h4", null, `Error in phase ${run.error.phase}`, run.error.type && make("span", { class: "dim" }, ` ${run.error.type}`)),
    make("pre", { tabindex: 0 }, run.error.message));
}

// The error is shown at the top; in the conversation a word is enough.
function withoutRepeats(run) {
  if (!run.error?.message || !run.timeline) return run;
  return { ...run, timeline: run.timeline.map((row) => row.kind === "error" && row.text === run.error.message ? { ...row, text: "the error above" } : row) };
}

// Of a flaky case, in each of its trials.
function partedLine(run) {
  return run.parted && make("p", { class: "blame" }, make("span", { class: "label" }, "where its trials part"), " ", run.parted);
}

function blameLine(run) {
  if (!run.blame) return null;
  const told = [run.error?.message ?? "", ...(run.scores ?? []).map(([name, found]) => `${name}: ${found.reason ?? ""}`)].join("\n");
  const lines = run.blame[1].filter((line) => !told.includes(line));
  return make("div", { class: "blame" }, make("p", null, make("span", { class: "label" }, "whose failure"), " ", make("b", null, BLAMED[run.blame[0]] ?? run.blame[0])),
    lines.length > 0 && make("ul", null, lines.map((line) => make("li", null, line))));
}

function spending(run) {
  return (run.spent ?? []).map((one) => make("p", { class: "facts" },
    make("span", { class: "label" }, WHO[one.role]), " ",
    Object.entries(one.models).map(([name, times]) => `${name} × ${times}`).join(", "),
    one.tokens && ` · ${one.tokens[0].toLocaleString("en")} tokens in, ${one.tokens[1].toLocaleString("en")} out`,
    ` · ${price(one.cost)}`));
}

function beforeLine(run, look) {
  if (!run.before?.length) return null;
  return make("p", { class: "facts" }, make("span", { class: "label" }, "baseline"), " ",
    run.before.map((trial) => [baselineTrial(trial, run, look), " "]), run.earlier && look?.compare && [" ", look.compare],
    run.before[0].why && make("span", { class: "baseline-why" }, run.before[0].why));
}

// If the baseline has several trials, the reader chooses which one is next to this one.
function baselineTrial(trial, run, look) {
  if (!look?.baseline || run.before.length < 2 || !run.earlier) return pill(trial.status);
  return button(`${MARKS[trial.status]} trial ${trial.n}`, () => look.baseline(trial.n),
    { class: `chip ${trial.status}`, "aria-pressed": String(look.beside && run.earlier.n === trial.n), title: "Compare with this trial of the baseline" });
}

function graphSection(run) {
  if (!run.graph || sizeOf(run.graph) < 2) return null;
  return make("details", { class: "way", open: true },
    make("summary", null, make("h3", null, "The way through the agent"), " ", make("span", { class: "dim" }, wayWords(run.graph))),
    make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "The agent's graph" }, graphPicture(run.graph)));
}
