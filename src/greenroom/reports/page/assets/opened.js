// One case, opened next to the list.
import { firstDifference } from "./beside.js";
import { MARKS, button, fill, make, pill } from "./elements.js";
import { trialWords } from "./list.js";
import { story } from "./story.js";
import { counted, duration } from "./words.js";

// view: {query(), ask(change), close(), go(by), settle(), tools(row, trial)}
export function openedCase(aside, source, view) {
  let turn = 0;
  let shownNow = { case: null, trial: null, beside: null };
  let run = null;

  async function show(row, fresh = false) {
    const { trial: number, event, beside, brief, with: baseline } = view.query();
    const trial = row.trials.find((each) => each.n === number) ?? firstOf(row);
    turn += 1;
    const mine = turn;
    const same = !fresh && shownNow.case === row.id && shownNow.trial === trial.n && shownNow.baseline === baseline;
    let trouble = null;
    if (!same) {
      run = null;
      try {
        run = await source.story(row.id, trial.n);
      } catch (error) {
        trouble = error;
      }
      if (mine !== turn) return;  // the reader has moved on
    }
    const scrolled = same && shownNow.beside === beside ? aside.scrollTop : 0;
    fill(aside, head(row, trial), run ? story(trial, run, look(row, trial, event, brief, beside)) : missing(trial, trouble));
    reveal();
    aside.scrollTop = scrolled;
    if (beside && run?.earlier && shownNow.beside !== true) firstDifference(aside)?.scrollIntoView({ block: "center" });
    if (event !== null && !same) aside.querySelector(".event.chosen")?.scrollIntoView({ block: "center" });
    shownNow = { case: row.id, trial: trial.n, baseline, beside: Boolean(beside && run?.earlier) };
  }

  function look(row, trial, event, brief, beside) {
    return {
      event, brief, beside,
      pick: (seq) => view.ask({ event: seq }), toggle: () => view.ask({ brief: !brief }),
      baseline: source.choosesBaseline && ((n) => view.ask({ with: n, beside: true })),
      details: (seq) => source.event(row.id, trial.n, seq),
      compare: button(beside ? "Show only this trial" : "Compare side by side", () => view.ask({ beside: !beside }), { class: "quiet", id: "beside", "aria-pressed": String(beside) }),
    };
  }

  function head(row, trial) {
    return make("header", { class: "case-head" },
      make("div", { class: "case-tools" },
        button("← Previous", () => view.go(-1), { class: "quiet", title: "Previous case (k)" }),
        button("Next →", () => view.go(1), { class: "quiet", title: "Next case (j)" }),
        make("span", { class: "space" }),
        view.tools?.(row, trial),
        button("Close ✕", view.close, { class: "quiet", id: "close", title: "Close (Esc)" })),
      make("h2", { tabindex: -1, id: "opened-title" }, pill(row.trials.length > 1 ? row.status : trial.status), " ", make("span", { class: "case-title" }, row.id)),
      row.name && make("p", { class: "case-name" }, row.name),
      make("p", { class: "facts" }, facts(row, trial)),
      row.trials.length > 1 && make("div", { class: "chips", role: "group", "aria-label": "Trials" },
        make("span", { class: "label" }, trialWords(row)),
        row.trials.map((each) => button(`${MARKS[each.status]} trial ${each.n}`, () => view.ask({ trial: each.n, event: null, with: null }),
          { class: `chip ${each.status}`, "aria-pressed": String(each === trial) }))));
  }

  function facts(row, trial) {
    const words = [
      row.trials.length > 1 && `trial ${trial.n}: ${trial.status}`,
      trial.turns !== undefined && counted(trial.turns, "turn"),
      trial.s !== undefined && duration(trial.s),
    ].filter(Boolean);
    return [words.join(" · "), " ", (row.tags ?? []).map((tag) => make("span", { class: "tag" }, tag))];
  }

  // The list takes the place of the charts while a case is open, and gives it back afterwards.
  let scrolledTo = 0;
  function reveal() {
    if (!aside.hidden) return;
    scrolledTo = window.scrollY;
    aside.hidden = false;
    document.body.classList.add("beside");
    view.settle();
  }

  function hide() {
    turn += 1;
    shownNow = { case: null, trial: null, beside: null };
    if (aside.hidden) return;
    aside.hidden = true;
    fill(aside);
    document.body.classList.remove("beside");
    window.scrollTo(0, scrolledTo);
  }

  return {
    show, hide, run: () => run,
    focus: () => document.getElementById("opened-title")?.focus(),
    holds: () => aside.contains(document.activeElement),
  };
}

const WORST_FIRST = ["error", "failed", "terminated", "skipped", "passed"];

// The first trial that needs a look.
export function firstOf(row) {
  const worst = WORST_FIRST.find((status) => row.trials.some((trial) => trial.status === status));
  return row.trials.find((trial) => trial.status === worst);
}

function missing(trial, trouble) {
  const why = trouble
    ? `The trial could not be read: ${trouble.message ?? trouble}. A browser from 2023 or later can unpack a report.`
    : "The file is full: this trial did not fit. Its ledger and the JSON report have it.";
  return [make("p", { class: "remark" }, why), trial.why && make("p", { class: "reason" }, trial.why)];
}
