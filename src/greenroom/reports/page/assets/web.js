// The page of the web: which page an address means, and what it needs.
import { agentPage } from "./agent.js";
import { Refused, asked, downloaded, takeToken } from "./api.js";
import { GO_HELP, dialogOf, goKeys, liveMark, navigation, notice, typed } from "./bar.js";
import { button, fill, make } from "./elements.js";
import { frame, listenToKeys, nextTheme } from "./frame.js";
import { LABEL_HELP, labelPage, labelsPage } from "./label.js";
import { playPage, playsPage } from "./play.js";
import { THEMES, queryFrom } from "./query.js";
import { rehearse, resumeRun, stopRun } from "./rerun.js";
import { runPage } from "./run.js";
import { runsPage } from "./runs.js";
import { servedCompare, servedRun } from "./served.js";
import { caseToKeep, setPage, setsPage } from "./sets.js";
import { counted } from "./words.js";

const THEME = "greenroom-theme";
const OTHERS = {
  runs: (main, here, id, live) => runsPage(main, here, live),
  sets: (main, here, id, live) => (id ? setPage(main, here, id, live) : setsPage(main, here)),
  play: (main, here, id, live) => (id ? playPage(main, here, id, live) : playsPage(main, here)),
  agent: (main, here, id) => agentPage(main, here, id),
  label: (main, here, id) => (id ? labelPage(main, here, id) : labelsPage(main)),
};
const TITLES_OF = { runs: "Runs", sets: "Sets", play: "Play", agent: "Agent", label: "Label" };

async function start() {
  takeToken();
  const main = document.getElementById("main");
  const live = liveMark();
  // A large run takes seconds to read, and an agent to be loaded: an empty page would look broken.
  fill(main, make("p", { class: "empty", role: "status" }, "Reading…"));
  let here = null;
  try {
    here = await asked("/here");
    const [page, id] = location.pathname.split("/").slice(1).map(decodeURIComponent);
    if (page === "runs" && id) await oneRun(here, id, live);
    else if (page === "compare") await twoRuns(here, live);
    else await otherPage(here, OTHERS[page] ? page : "runs", id, live, main);
    performance.mark("greenroom-ready");
  } catch (error) {
    if (error instanceof Refused && error.status === 401) error.next = "Open the address that `greenroom web` printed: it holds the key to this page.";
    const box = make("div");
    fill(main, box);
    notice(box, error);
    // From a page that is not there, the others can still be reached.
    if (here && !document.querySelector("#top nav")) fill(document.getElementById("top"), navigation(here));
  }
}

async function otherPage(here, page, id, live, main) {
  let theme = THEMES.includes(localStorage.getItem(THEME)) ? localStorage.getItem(THEME) : "auto";
  const setTheme = (given) => { theme = given; localStorage.setItem(THEME, given); bar.applyTheme(); };
  const bar = frame({
    title: TITLES_OF[page], quiet: true, nav: navigation(here), tools: live.mark, keys: [...(page === "label" && id ? LABEL_HELP : []), ["t", "light, dark or system theme"], ["?", "this help"], ...GO_HELP],
    theme: () => theme, setTheme,
  });
  listenToKeys({ t: () => setTheme(nextTheme(theme)), "?": () => bar.help.showModal(), ...goKeys() });
  const skip = document.querySelector(".skip");
  main.tabIndex = -1;
  skip.setAttribute("href", "#main");
  fill(skip, "Skip to the content");
  // The address says what is looked at, so it stays as it is.
  skip.addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
  await OTHERS[page](main, here, id, live);
}

// How far the reading of a large run is; what it is read for is said once that is done.
function tellProgress(run, next) {
  const line = document.querySelector("main [role=status]");
  const timer = setInterval(async () => {
    const { read, trials } = await asked(`/runs/${encodeURIComponent(run)}/progress`).catch(() => ({}));
    if (read) fill(line, read < trials ? `Reading ${read.toLocaleString("en")} of ${counted(trials, "trial")}…` : next);
  }, 500);
  return () => clearInterval(timer);
}

function oneRun(here, id, live) {
  const told = tellProgress(id, "Counting…");
  const source = servedRun(id, live.tell);
  return runPage(source, {
    nav: navigation(here), help: GO_HELP, keys: goKeys(), tools: [live.mark,
      button("Report ⬇", () => downloaded(`/runs/${encodeURIComponent(id)}/report.html`, `${id}.html`), { class: "quiet" }),
      make("a", { class: "quiet", href: `/agent?run=${encodeURIComponent(id)}` }, "Agent")],
    above: (head) => underWay(here, id, head, source.going),
    caseTools: (row, trial, head) => !here.read_only && caseTools(here, { ...head, run: id }, row, trial),
  }).finally(told);
}

async function twoRuns(here, live) {
  const given = new URLSearchParams(location.search);
  const told = tellProgress(given.get("b"), "Comparing…");
  const source = servedCompare(given.get("a"), given.get("b"), () => queryFrom(location.hash).with, live.tell);
  await runPage(source, {
    nav: navigation(here), help: GO_HELP, keys: goKeys(), tools: live.mark,
    above: () => make("div", { class: "page-bar" },
      make("span", null, "baseline ", runLink(given.get("a")), " → ", runLink(given.get("b"))),
      make("a", { class: "quiet", href: `/compare?a=${encodeURIComponent(given.get("b"))}&b=${encodeURIComponent(given.get("a"))}` }, "Swap")),
  }).finally(told);
}

function runLink(id) {
  return make("a", { href: `/runs/${encodeURIComponent(id)}` }, id);
}

// What a run that is not finished is doing, and what can be done about it.
function underWay(here, id, head, going) {
  const state = head.state ?? "finished";
  const trouble = make("div");
  const act = (name, does) => button(name, () => does(id).then((done) => done && location.reload(), (error) => notice(trouble, error)), { class: "quiet" });
  const again = !here.read_only && button("Rerun…", () => rehearse(here, { agent: head.agent, evalset: head.evalset, model: head.model, baseline: id }), { class: "quiet" });
  const trials = state === "running" ? [...going.values()].slice(0, 8) : [];
  return [make("div", { class: `page-bar run-bar ${state}` },
    make("code", { class: "run-id", title: "The id of this run, as commands take it" }, id), head.agent && make("span", { class: "label" }, head.agent),
    state !== "finished" && make("b", { class: `state ${state}` }, state === "running" ? "● running" : "■ interrupted"),
    trials.length > 0 && make("span", { class: "dim" }, "in progress: ", trials.map((one) => [make("a", { href: `#case=${encodeURIComponent(one.case)}` }, one.case), ` (${one.events} events) `])),
    make("span", { class: "space" }),
    !here.read_only && state === "running" && act("Stop…", stopRun),
    !here.read_only && state === "interrupted" && act("Resume…", resumeRun),
    again), trouble];
}

function caseTools(here, head, row, trial) {
  const id = head.run;
  const event = queryFrom(location.hash).event;
  const going = trial.status === "going";
  return [
    !going && here.sets?.some((one) => one.writable !== false) && button("Add to set…", () => addToSet(here, { run: id, case: row.id, trial: trial.n }), { class: "quiet" }),
    !going && here.agents?.length > 0 && button(event === null ? "Play on" : `Play from event ${event}`, () => playFrom({ run: id, case: row.id, trial: trial.n, at: event }),
      { class: "quiet", title: "Continue this conversation yourself, as a rehearsal; what was recorded stays as it is" }),
    button("Rerun…", () => rehearse(here, { agent: head.agent, evalset: head.evalset, model: head.model, cases: [row.id], trials: 5, baseline: id }), { class: "quiet" }),
    button("Ledger ⬇", () => downloaded(`/runs/${encodeURIComponent(id)}/ledger.jsonl`, `${row.id}.jsonl`, { case: row.id, trial: trial.n }), { class: "quiet" })];
}

// The reader continues a recorded trial, from before an event or from its end.
async function playFrom(from) {
  try {
    const play = await asked("/plays", { method: "POST", body: { from } });
    location.assign(`/play/${encodeURIComponent(play.id)}`);
  } catch (error) {
    told("This cannot be played from here", error);
  }
}

async function addToSet(here, from) {
  const added = await caseToKeep(here, from.case, "What the user said becomes its turns, what tools answered its mocks, what the agent did its expectations.",
    (file, named) => typed("greenroom", "eval-set", "add", file, "--from-run", from.run, "--case", from.case, "--trial", from.trial, "--id", named, "--store", here.store));
  if (!added) return;
  try {
    await asked(`/sets/${encodeURIComponent(added.set)}/cases`, { method: "POST", body: { ...from, id: added.id } });
    location.assign(`/sets/${encodeURIComponent(added.set)}#case=${encodeURIComponent(added.id)}`);
  } catch (error) {
    told("It could not be added", error);
  }
}

function told(title, error) {
  const words = make("div");
  notice(words, error);
  dialogOf(title, (close) => [words, make("div", { class: "buttons" }, button("Close", () => close(null), { class: "quiet" }))]);
}

start();
