// The page of the web: which page an address means, and what it needs.
import { agentPage } from "./agent.js";
import { Refused, asked, downloaded, takeToken } from "./api.js";
import { GO_HELP, confirmed, goKeys, liveMark, navigation, notice } from "./bar.js";
import { button, fill, make } from "./elements.js";
import { frame, listenToKeys, nextTheme } from "./frame.js";
import { labelPage, labelsPage } from "./label.js";
import { playPage, playsPage } from "./play.js";
import { THEMES, queryFrom } from "./query.js";
import { rehearse } from "./rerun.js";
import { runPage } from "./run.js";
import { runsPage } from "./runs.js";
import { servedCompare, servedRun } from "./served.js";
import { setPage, setsPage } from "./sets.js";

const THEME = "greenroom-theme";
const OTHERS = {
  runs: (main, here, id, live) => runsPage(main, here, live),
  sets: (main, here, id, live) => (id ? setPage(main, here, id, live) : setsPage(main, here)),
  play: (main, here, id, live) => (id ? playPage(main, here, id, live) : playsPage(main, here)),
  agent: (main, here, id) => agentPage(main, here, id),
  label: (main, here, id) => (id ? labelPage(main, here, id) : labelsPage(main, here)),
};
const TITLES_OF = { runs: "Runs", sets: "Sets", play: "Play", agent: "Agent", label: "Label" };

async function start() {
  takeToken();
  const main = document.getElementById("main");
  const live = liveMark();
  try {
    const here = await asked("/here");
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
  }
}

async function otherPage(here, page, id, live, main) {
  let theme = THEMES.includes(localStorage.getItem(THEME)) ? localStorage.getItem(THEME) : "auto";
  const setTheme = (given) => { theme = given; localStorage.setItem(THEME, given); bar.applyTheme(); };
  const bar = frame({
    title: TITLES_OF[page], quiet: true, nav: navigation(here), tools: live.mark, keys: [["t", "light, dark or system theme"], ["?", "this help"], ...GO_HELP],
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

function oneRun(here, id, live) {
  const source = servedRun(id, live.tell);
  return runPage(source, {
    nav: navigation(here), help: GO_HELP, keys: goKeys(), tools: [live.mark,
      button("Report ⬇", () => downloaded(`/runs/${encodeURIComponent(id)}/report.html`, `${id}.html`), { class: "quiet" }),
      make("a", { class: "quiet", href: `/agent?run=${encodeURIComponent(id)}` }, "Agent")],
    above: (head) => underWay(here, id, head, source.going),
    caseTools: (row, trial) => !here.read_only && caseTools(here, id, row, trial),
  });
}

async function twoRuns(here, live) {
  const given = new URLSearchParams(location.search);
  const source = servedCompare(given.get("a"), given.get("b"), () => queryFrom(location.hash).with, live.tell);
  await runPage(source, {
    nav: navigation(here), help: GO_HELP, keys: goKeys(), tools: live.mark,
    above: () => make("div", { class: "page-bar" },
      make("a", { class: "quiet", href: `/compare?a=${encodeURIComponent(given.get("b"))}&b=${encodeURIComponent(given.get("a"))}` }, "Swap"),
      make("a", { class: "quiet", href: `/runs/${encodeURIComponent(given.get("b"))}` }, "The run alone")),
  });
}

// What a run that is not finished is doing, and what can be done about it.
function underWay(here, id, head, going) {
  const state = head.state ?? "finished";
  const act = (path) => asked(`/runs/${encodeURIComponent(id)}${path}`, { method: "POST", body: {} }).then(() => location.reload(), (error) => notice(trouble, error));
  const trouble = make("div");
  const again = !here.read_only && button("Rerun…", () => rehearse(here, { baseline: id }).then((begun) => begun?.run && location.assign(`/runs/${encodeURIComponent(begun.run)}`)), { class: "quiet" });
  const trials = [...going.values()].slice(0, 8);
  return [make("div", { class: "page-bar" },
    state !== "finished" && make("b", { class: `state ${state}` }, state === "running" ? "● running" : "■ interrupted"),
    trials.length > 0 && make("span", { class: "dim" }, "under way: ", trials.map((one) => [make("a", { href: `#case=${encodeURIComponent(one.case)}` }, one.case), ` (${one.events} events) `])),
    make("span", { class: "space" }),
    !here.read_only && state === "running" && button("Stop", () => confirmed("Stop this run?", "What is done stays; it can be resumed.", null, "Stop").then((sure) => sure && act("/stop")), { class: "quiet" }),
    !here.read_only && state === "interrupted" && button("Resume", () => act("/resume"), { class: "quiet" }),
    again), trouble];
}

function caseTools(here, id, row, trial) {
  return [
    button("Rerun…", () => rehearse(here, { cases: [row.id], trials: 5, baseline: id }).then((begun) => begun?.run && location.assign(`/runs/${encodeURIComponent(begun.run)}`)), { class: "quiet" }),
    button("Ledger ⬇", () => downloaded(`/runs/${encodeURIComponent(id)}/ledger.jsonl`, `${row.id}.jsonl`, { case: row.id, trial: trial.n }), { class: "quiet" })];
}

start();
