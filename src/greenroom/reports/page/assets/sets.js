// Eval sets: the text of a file is the truth. It is checked as it is typed, and a conflict loses nothing.
import { asked, followed } from "./api.js";
import { choice, commandLine, dialogOf, field, isConflict, notice, typed } from "./bar.js";
import { button, fill, make, sentence } from "./elements.js";
import { panel, scrolled } from "./overview.js";
import { rehearse } from "./rerun.js";
import { counted } from "./words.js";

export function setsPage(main, here) {
  fill(main, panel("sets", "Eval sets", here.sets?.length
    ? scrolled("set-rows", ["set", "cases", "state"], here.sets.map((one) => make("tr", null,
      make("th", { scope: "row" }, make("a", { href: `/sets/${encodeURIComponent(one.id)}` }, one.name)),
      make("td", { class: "number" }, one.cases),
      make("td", null, one.problems ? make("span", { class: "poor" }, counted(one.problems, "problem")) : "valid", one.writable === false && make("span", { class: "dim" }, ` · read only: ${one.why}`)))))
    : make("p", { class: "dim" }, "No set was named when the page was started: greenroom web agent.py:agent tests/evals")));
}

// Which id a new case gets, in which set; null if the reader thinks better of it.
// command(file, id): the line in a terminal that does the same.
export function caseToKeep(here, id, words, command) {
  const sets = (here.sets ?? []).filter((one) => one.writable !== false);
  const name = make("input", { type: "text", value: id, required: true, spellcheck: "false", "aria-label": "id of the case" });
  let set = sets[0]?.id ?? "";
  const line = make("div");
  const tell = () => fill(line, sets.length > 0 && commandLine(command(sets.find((one) => one.id === set).name, name.value.trim())));
  name.addEventListener("input", tell);
  tell();
  return dialogOf("Save as a case", (close) => [
    make("p", null, words),
    sets.length ? make("div", { class: "fields" }, field("id", name), field("set", choice("set", sets.map((one) => [one.id, one.name]), set, (value) => { set = value; tell(); })))
      : make("p", { class: "remark" }, "No set was named when the page was started: greenroom web agent.py:agent tests/evals"),
    line,
    make("div", { class: "buttons" }, sets.length > 0 && button("Save", () => name.value.trim() && close({ id: name.value.trim(), set }), { class: "quiet strong" }), button("Cancel", () => close(null), { class: "quiet" }))]);
}

export async function setPage(main, here, id, live) {
  const path = `/sets/${encodeURIComponent(id)}`;
  let kept = await asked(path);
  let checking = null;
  const trouble = make("div");
  const text = make("textarea", { class: "code", rows: 30, wrap: "off", spellcheck: "false", "aria-label": `The text of ${kept.name}`, "aria-describedby": "problems-title" });
  const gutter = make("pre", { class: "gutter", "aria-hidden": "true" });
  const onPaper = make("pre", { class: "on-paper" });
  const problems = make("section", { class: "panel problems", "aria-labelledby": "problems-title" });
  const cases = make("ul", { class: "case-links" });
  const search = make("input", { type: "search", placeholder: "Search cases", "aria-label": "Search the cases of this set" });
  const save = button("Save", store, { class: "quiet strong", disabled: true });
  const state = make("span", { class: "dim", role: "status" });
  const writable = !here.read_only && kept.writable !== false;
  let listed = kept.cases ?? [];

  text.value = kept.text;
  if (!writable) text.setAttribute("readonly", "");
  fill(main,
    make("div", { class: "page-bar" }, make("h2", null, kept.name), state, make("span", { class: "space" }), writable && save,
      !here.read_only && button("Rehearse these…", () => rehearse(here, { set: id }), { class: "quiet" })),
    writable ? commandLine(`$EDITOR ${typed(kept.name)} && ${typed("greenroom", "eval-set", "validate", kept.name)}`) : make("p", { class: "remark" }, kept.why || "Read only."), trouble,
    make("div", { class: "editor" },
      make("nav", { class: "cases-nav", "aria-label": "Cases" }, search, cases),
      make("div", { class: "text" }, make("div", { class: "numbered" }, gutter, text), onPaper, problems)));
  search.addEventListener("input", showCases);
  // A field is printed as far as it can be seen, and its lines are clipped: paper gets the text itself.
  window.addEventListener("beforeprint", () => fill(onPaper, text.value));
  window.addEventListener("afterprint", () => fill(onPaper));
  text.addEventListener("scroll", () => { gutter.scrollTop = text.scrollTop; });
  text.addEventListener("input", () => { touched(); clearTimeout(checking); checking = setTimeout(check, 200); });
  text.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      store();
    }
  });
  window.addEventListener("beforeunload", (event) => { if (writable && text.value !== kept.text) event.preventDefault(); });

  function touched() {
    const changed = text.value !== kept.text;
    save.disabled = !changed;
    const lines = text.value.split("\n").length;
    fill(gutter, Array.from({ length: lines }, (_, line) => line + 1).join("\n"));
    fill(state, `${counted(listed.length, "case")} · ${changed ? "not saved" : "saved"}`);
  }

  async function check() {
    const mine = text.value;
    try {
      const found = await asked(`${path}/check`, { method: "POST", body: { text: mine } });
      if (mine !== text.value) return;
      listed = found.cases ?? [];
      showProblems(found.problems);
      showCases();
      touched();
    } catch (error) {
      notice(trouble, error);
    }
  }

  function showProblems(found) {
    fill(problems, make("h3", { id: "problems-title" }, found.length ? counted(found.length, "problem") : "No problem"),
      make("ul", null, found.map((one) => make("li", null,
        button([one.line && !one.text.startsWith("line ") ? make("b", null, `line ${one.line}: `) : null, one.hint ? sentence(one.text) : one.text, one.hint && make("span", { class: "dim" }, ` ${one.hint}`)],
          () => goTo(one.line ?? 1, one.column), { class: "quiet link" })))));
  }

  function showCases() {
    const words = search.value.toLowerCase();
    fill(cases, listed.filter((one) => `${one.id} ${one.name ?? ""} ${(one.tags ?? []).join(" ")}`.toLowerCase().includes(words)).map((one) => make("li", null,
      button(one.id, () => goTo(one.line ?? 1), { class: "quiet link" }), (one.tags ?? []).map((tag) => make("span", { class: "tag" }, tag)))));
  }

  function goTo(line, column = 1) {
    const lines = text.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((all, one) => all + one.length + 1, 0) + Math.max((column ?? 1) - 1, 0);
    text.focus();
    text.setSelectionRange(start, start + Math.max((lines[line - 1] ?? "").length - (column ?? 1) + 1, 0));
    text.scrollTop = Math.max((line - 4) * (text.scrollHeight / lines.length), 0);
  }

  async function store() {
    if (!writable || text.value === kept.text) return;
    const mine = text.value;
    try {
      const saved = await asked(path, { method: "PUT", body: { text: mine }, more: { "If-Match": kept.digest } });
      kept = { ...kept, ...saved, text: mine };
      notice(trouble, "");
      touched();
    } catch (error) {
      if (isConflict(error)) conflict(mine, error.data.theirs);
      else notice(trouble, error);
    }
  }

  // Both texts are shown; whichever is kept, the other is not lost until the reader says so.
  async function conflict(mine, theirs) {
    const area = (name, value) => {
      const one = make("textarea", { class: "code", rows: 20, wrap: "off", "aria-label": name, spellcheck: "false" });
      one.value = value;
      return one;
    };
    const left = area("Yours", mine);
    const right = area("On disk", theirs.text);
    const [ours, others] = [mine.split("\n"), theirs.text.split("\n")];
    const line = Math.max(ours.findIndex((one, place) => one !== others[place]), 0);
    setTimeout(() => { for (const one of [left, right]) one.scrollTop = (one.scrollHeight / one.value.split("\n").length) * (line - 3); });
    const answer = await dialogOf("The file has changed since you opened it", (close) => [
      make("p", null, `Nothing is lost: here are your text and the one on disk; they first differ in line ${line + 1}. Correct the one you want to keep.`),
      make("div", { class: "two-texts" }, make("div", null, make("h3", null, "Yours"), left), make("div", null, make("h3", null, "On disk"), right)),
      make("div", { class: "buttons" },
        button("Save yours", () => close(left.value), { class: "quiet strong" }),
        button("Take the one on disk", () => close(right.value), { class: "quiet" }),
        button("Keep editing mine", () => close(null), { class: "quiet" }))]);
    kept = { ...theirs };
    if (answer !== null) text.value = answer;
    await check();
    touched();
    if (answer !== null && answer !== theirs.text) await store();
  }

  touched();
  showCases();
  showProblems(kept.problems ?? []);
  const named = new URLSearchParams(location.hash.slice(1)).get("case");
  const there = listed.find((one) => one.id === named);
  if (there) goTo(there.line ?? 1);
  followed({}, null, async (change) => {
    if (change.kind !== "file" || change.set !== id || change.digest === kept.digest) return;
    const fresh = await asked(path);
    if (text.value === kept.text) {
      kept = fresh;
      text.value = kept.text;
      check();
    } else {
      notice(trouble, "The file was changed by another program. Saving will show you both texts.");
    }
  }, live.tell);
}
