// People grade conversations without seeing what a judge or another rater said.
import { asked } from "./api.js";
import { field, notice } from "./bar.js";
import { button, fill, make } from "./elements.js";
import { panel } from "./overview.js";
import { timelineSection } from "./timeline.js";

const RATER = "greenroom-rater";

export function labelsPage(main, here) {
  fill(main, panel("labels", "Label sets", here.labels?.length
    ? make("ul", null, here.labels.map((name) => make("li", null, make("a", { href: `/label/${encodeURIComponent(name)}` }, name))))
    : make("p", { class: "dim" }, "There is none here.")));
}

export async function labelPage(main, here, set) {
  const path = `/labels/${encodeURIComponent(set)}`;
  const body = make("div");
  const trouble = make("div");
  const result = make("div");
  const rater = make("input", { type: "text", value: here.user || localStorage.getItem(RATER) || "", autocomplete: "off", "aria-label": "your name" });
  if (here.user) rater.setAttribute("readonly", "");
  rater.addEventListener("change", () => { localStorage.setItem(RATER, rater.value.trim()); next(); });
  const note = make("input", { type: "text", "aria-label": "note", placeholder: "a note, if you like" });
  const graded = [];
  let item = null;

  fill(main, make("div", { class: "page-bar" }, make("h2", null, set), field("rater", rater), make("span", { class: "dim" }, "what a judge and other raters said is hidden")), trouble, body, result);

  async function next() {
    if (!rater.value.trim()) {
      fill(body, make("p", { class: "remark" }, "Say who you are, so that your grades can be told apart."));
      return;
    }
    try {
      item = await asked(`${path}/next`, { query: { rater: rater.value.trim() } });
      paint();
      const found = await asked(`${path}/agreement`, { query: { rater: rater.value.trim() } });
      fill(result, found.says?.length > 0 && panel("agreement", "Agreement", found.says.map((line) => make("p", null, line))));
    } catch (error) {
      notice(trouble, error);
    }
  }

  function paint() {
    const undo = graded.length > 0 && button("Undo (u)", takeBack, { class: "quiet" });
    if (!item?.item) {
      fill(body, make("p", { class: "lead" }, "All are graded. "), undo);
      return;
    }
    note.value = "";
    fill(body,
      make("p", { class: "dim", role: "status" }, `${item.done ?? 0} of ${item.total} graded`),
      make("div", { class: "grading" },
        timelineSection({ timeline: item.timeline }, null),
        make("section", { class: "panel ask", "aria-labelledby": "ask-title" }, make("h3", { id: "ask-title" }, item.question),
          make("div", { class: "buttons" }, item.answers.map((answer, place) => button(`${place + 1}  ${answer}`, () => grade(item.item, answer), { class: "quiet strong" }))),
          field("note", note), undo)));
  }

  async function grade(which, value) {
    try {
      await asked(`${path}/grades`, { method: "POST", body: { item: which, rater: rater.value.trim(), value, note: note.value } });
      if (value !== null) graded.push(which);
      notice(trouble, "");
      await next();
    } catch (error) {
      notice(trouble, error);
    }
  }

  const takeBack = () => graded.length && grade(graded.pop(), null);
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const answer = item?.answers?.[Number(event.key) - 1];
    if (answer !== undefined) grade(item.item, answer);
    else if (event.key === "u") takeBack();
  });
  await next();
}
