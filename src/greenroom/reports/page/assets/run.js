// The page of one run: what the reader asks for, where they are, and the keys they press.
import { nextDifference } from "./beside.js";
import { comparedPanel } from "./compared.js";
import { fill, make } from "./elements.js";
import { frame, listenToKeys, nextTheme } from "./frame.js";
import { caseList } from "./list.js";
import { firstOf, openedCase } from "./opened.js";
import { overview, panels } from "./overview.js";
import { printing } from "./paper.js";
import { hashOf, queryFrom } from "./query.js";

const HELP = [
  ["/", "search"], ["j, ↓", "next case"], ["k, ↑", "previous case"], ["Enter", "open the case"],
  ["[ and ]", "previous and next trial"], ["e and E", "next and previous event"], ["c", "side by side with the baseline"], ["n", "next difference"],
  ["Esc", "close"], ["y", "copy the address"], ["t", "light, dark or system theme"], ["?", "this help"],
];

// more: what the web adds: {nav, tools, above(head), caseTools(row, trial, head), keys, help}
export async function runPage(source, more = {}) {
  let query = queryFrom(location.hash);
  let head = await source.head();
  const bar = frame({
    title: head.title, begun: head.begun, nav: more.nav, tools: more.tools, keys: [...HELP, ...(more.help ?? [])],
    theme: () => query.theme, setTheme: (theme) => ask({ theme }),
  });
  const above = make("div", { id: "above" });
  const section = make("section", { id: "cases", hidden: true, "aria-labelledby": "cases-title" });
  const main = document.getElementById("main");
  fill(main, above, section);

  const list = caseList(section, source, { query: () => query, head: () => head, ask, open: (id) => openCase(id) });
  const opening = openedCase(document.getElementById("opened"), source, {
    query: () => query, ask, close: closeCase, go: step, settle: () => list.stand(), tools: (row, trial) => more.caseTools?.(row, trial, head),
  });

  function ask(change, { list: down = false } = {}) {
    query = { ...query, ...change };
    remember("replaceState");
    if (down) section.scrollIntoView();
    return show();
  }

  function remember(how) {
    const address = hashOf(query);
    if (address !== location.hash) history[how](null, "", address);
  }

  async function show() {
    bar.applyTheme();
    if (query.q) source.find(query.q, later);
    await list.refresh();
    await showCase();
  }

  function summarize() {
    fill(above, more.above?.(head), overview(head, (change) => ask(change, { list: true })), comparedPanel(head.compared), panels(head, (change) => ask(change, { list: true })));
  }

  // While conversations are still being searched, the list grows as they come in.
  let due = null;
  let share = 0;
  function later(done) {
    share = done;
    due ??= setTimeout(() => { due = null; list.refresh(share); }, 250);
    if (done >= 1) list.refresh(1);
  }

  async function showCase(fresh = false) {
    const row = query.case === null ? null : await source.row(query.case);
    if (!row) {
      query.case = null;
      opening.hide();
      return;
    }
    list.stand();
    await opening.show(row, fresh);
  }

  async function openCase(id, focus = true) {
    const first = query.case === null;
    query = { ...query, case: id, trial: null, event: null, with: null };
    remember(first ? "pushState" : "replaceState");
    await showCase();
    if (focus) opening.focus();
  }

  async function closeCase() {
    await ask({ case: null, trial: null, event: null, with: null, beside: false });
    list.focus(false);
  }

  async function step(by) {
    const inside = opening.holds();
    const next = await list.move(by, !inside);
    if (next && query.case !== null) await openCase(next.id, inside);
  }

  async function stepTrial(by) {
    const row = query.case === null ? null : await source.row(query.case);
    if (!row) return;
    const now = row.trials.findIndex((trial) => trial.n === (query.trial ?? firstOf(row).n));
    const next = row.trials[now + by];
    if (next) ask({ trial: next.n, event: null, with: null });
  }

  function stepEvent(by) {
    const seqs = (opening.run()?.timeline ?? []).map((row) => row.seq).filter((seq) => seq !== undefined);
    if (query.case === null || !seqs.length) return;
    const now = seqs.indexOf(query.event);
    const next = seqs[Math.min(Math.max(now + by, 0), seqs.length - 1)];
    ask({ event: next }).then(() => document.querySelector(".event.chosen")?.scrollIntoView({ block: "nearest" }));
  }

  const keys = {
    "/": () => { list.search.focus(); list.search.select(); },
    j: () => step(1), k: () => step(-1),
    t: () => ask({ theme: nextTheme(query.theme) }), "?": () => bar.help.showModal(),
    "[": () => stepTrial(-1), "]": () => stepTrial(1), e: () => stepEvent(1), E: () => stepEvent(-1),
    c: () => document.getElementById("beside")?.click(), n: () => nextDifference(),
    y: () => navigator.clipboard?.writeText(location.href),
    ...more.keys,
  };
  const listKeys = {
    ArrowDown: () => step(1), ArrowUp: () => step(-1),
    PageDown: () => step(10), PageUp: () => step(-10),
    Home: () => step(-list.total()), End: () => step(list.total()),
    Enter: () => list.current() && openCase(list.current().id),
  };
  listenToKeys(keys, (event) => {
    if (event.key === "Escape") {
      leave(event.target);
      return true;
    }
    if (event.target === list.search && (event.key === "Enter" || event.key === "ArrowDown")) {
      event.preventDefault();
      list.focus();
      return true;
    }
    if (list.holds() && Object.hasOwn(listKeys, event.key)) {
      event.preventDefault();
      listKeys[event.key]();
      return true;
    }
    return false;
  });

  function leave(target) {
    if (query.case !== null) {
      closeCase();
    } else if (target === list.search) {
      if (query.q) {
        list.search.value = "";
        ask({ q: "" });
      } else {
        list.search.blur();
      }
    }
  }

  function follow() {
    query = queryFrom(location.hash);
    list.search.value = query.q;
    show();
  }
  window.addEventListener("popstate", follow);
  window.addEventListener("hashchange", follow);

  // What the store says of this run from now on, painted a few times a second; a file never says anything.
  let changes = [];
  let painting = null;
  async function catchUp() {
    const heard = changes;
    changes = [];
    head = await source.head();
    bar.retitle(head.title, head.begun);
    summarize();
    const news = heard.filter((change) => change.kind === "trial").length;
    if (news && list.isBeingRead()) list.tell(news);
    else if (heard.some((change) => change.kind !== "going")) await list.refresh();
    const mine = heard.some((change) => change.kind === "again" || change.case === query.case);
    if (query.case !== null && mine) await showCase(true);
  }

  summarize();
  await show();
  source.follow((change) => {
    changes.push(change);
    painting ??= setTimeout(() => catchUp().finally(() => {
      painting = null;
    }), 150);
  });
  printing(source, () => head);
  performance.mark("greenroom-ready");
}
