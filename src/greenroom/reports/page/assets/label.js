// People grade conversations without seeing what a judge or another person said of them.
import { asked } from "./api.js";
import { commandLine, field, notice } from "./bar.js";
import { button, fill, make } from "./elements.js";
import { panel, scrolled } from "./overview.js";
import { eventRow } from "./timeline.js";
import { counted } from "./words.js";

const RATER = "greenroom-rater";
const DRAW = "greenroom labels draw RUN --question 'Is the agent polite?' --metric NAME -o labels/polite";
export const LABEL_HELP = [["1 2 3", "grade"], ["n", "write a note"], ["u", "undo the last grade"]];

export async function labelsPage(main) {
  const { labels } = await asked("/labels");
  fill(main, panel("labels", "Trials to grade",
    labels.length ? scrolled("set-rows", ["set", "question", "trials", "graded"], labels.map(setLine))
      : make("p", { class: "dim" }, "There are none yet."),
    make("p", { class: "dim" }, "Trials of a run are drawn in the terminal:"), commandLine(DRAW)));
}

function setLine(one) {
  const link = one.why ? one.name : make("a", { href: `/label/${encodeURIComponent(one.name)}` }, one.name);
  return make("tr", null, make("th", { scope: "row" }, link),
    make("td", null, one.why ? make("span", { class: "poor" }, one.why) : one.question),
    make("td", { class: "number" }, one.items ?? 0),
    make("td", null, Object.entries(one.graded ?? {}).map(([who, count]) => `${who} ${count}`).join(", ") || "no one yet"));
}

// The rater is in the address, so two people may grade in two tabs of one browser.
function raterNow(here) {
  return here.user || new URLSearchParams(location.hash.slice(1)).get("rater") || localStorage.getItem(RATER) || "";
}

export async function labelPage(main, here, set) {
  const path = `/labels/${encodeURIComponent(set)}`;
  const body = make("div");
  const trouble = make("div");
  const result = make("div", { "aria-live": "polite" });
  const below = make("div");
  const rater = make("input", { type: "text", value: raterNow(here), autocomplete: "off", maxlength: 80, "aria-label": "your name" });
  if (here.user) rater.setAttribute("readonly", "");
  const note = make("input", { type: "text", maxlength: 2000, "aria-label": "note", placeholder: "a note, if you like (n)" });
  const blind = make("span", { class: "dim" }, "You see neither verdict nor agent, and no one else's grade.");
  let item = null;
  let busy = false;
  const me = () => rater.value.trim();

  fill(main, make("div", { class: "page-bar" }, make("h2", null, set), field("you are", rater), blind), trouble, body, result, below);
  rater.addEventListener("change", () => {
    localStorage.setItem(RATER, me());
    rater.blur();  // or the keys that grade would keep typing into the name
    history.replaceState(null, "", `#${new URLSearchParams({ rater: me() })}`);
    load();
  });

  async function load() {
    fill(result);
    if (!me()) {
      item = null;
      fill(body, make("p", { class: "remark" }, "Say who you are: every grade has a name. "), button("Begin", load, { class: "quiet strong" }));
      rater.focus();
      return;
    }
    await told(async () => show(await asked(`${path}/next`, { query: { rater: me() } })));
  }

  // One thing at a time: a key that is held, or pressed twice, grades once.
  async function told(act) {
    if (busy) return;
    busy = true;
    try {
      await act();
      notice(trouble, "");
    } catch (error) {
      notice(trouble, error);
    } finally {
      busy = false;
    }
  }

  function show(found) {
    item = found;
    note.value = "";
    blind.hidden = !found.item;
    const done = found.done ?? 0;
    const undo = found.last && !here.read_only && button("Undo (u)", takeBack, { class: "quiet" });
    const progress = make("p", { class: "dim", role: "status" }, found.item ? `${done} of ${found.total} graded` : `All ${counted(found.total ?? 0, "trial")} are graded. The grades are final: what the judge and others said is shown now.`);
    if (!found.item) {
      fill(body, progress, undo);
    } else {
      fill(body, progress, make("div", { class: "grading" },
        make("section", { class: "panel", tabindex: -1, "aria-label": "Conversation" }, make("ol", { class: "timeline" }, (found.timeline ?? []).map((row) => eventRow(row, 1)))),
        make("section", { class: "panel ask", "aria-labelledby": "ask-title" }, make("h3", { id: "ask-title" }, found.question),
          here.read_only ? make("p", { class: "remark" }, "This page is read-only: nothing can be graded.")
            : [make("div", { class: "answers" }, found.answers.map((answer, place) => button([make("kbd", null, place + 1), " ", answer], () => grade(item.item, answer), { class: "quiet strong" }))),
              field("note", note)],
          undo && make("div", { class: "buttons" }, undo))));
      window.scrollTo(0, 0);
    }
    fill(below, !here.read_only && found.command && commandLine(found.command));
    showAgreement();
  }

  const grade = (which, value) => told(async () =>
    show(await asked(`${path}/grades`, { method: "POST", body: { item: which, rater: me(), value, note: value === null ? "" : note.value } })));
  const takeBack = () => item?.last && grade(item.last, null);

  async function showAgreement() {
    const mine = item;
    const found = await asked(`${path}/agreement`, { query: { rater: me() } }).catch(() => ({}));
    if (mine !== item) return;
    fill(result, found.lines?.length > 0 && panel("agreement", "How far you agree",
      found.lines.map((line) => make("p", null, line.says)), (found.notes ?? []).map((line) => make("p", { class: "dim" }, line)), whereApart(found.apart ?? [])));
  }

  document.addEventListener("keydown", (event) => {
    const inText = event.target.matches("input, textarea, select");
    if (event.target === note && (event.key === "Escape" || event.key === "Enter")) note.blur();
    if (inText || event.repeat || event.ctrlKey || event.metaKey || event.altKey || here.read_only || document.querySelector("dialog[open]")) return;
    const answer = item?.item && item.answers[Number(event.key) - 1];
    if (answer) grade(item.item, answer);
    else if (event.key === "u") takeBack();
    else if (event.key === "n" && item?.item) {
      event.preventDefault();
      note.focus();
    }
  });
  await load();
}

function whereApart(items) {
  if (!items.length) return null;
  const link = (one) => make("a", { href: `/runs/${encodeURIComponent(one.run)}#case=${encodeURIComponent(one.case)}&trial=${one.trial}` }, one.case);
  return make("details", { open: items.length <= 20 }, make("summary", null, `${counted(items.length, "trial")} on which the raters disagree`),
    make("ul", null, items.map((one) => make("li", null, link(one), " ", make("span", { class: "dim" }, Object.entries(one.said).map(([who, said]) => `${who}: ${said}`).join(" · "))))));
}
