// Two trials side by side, from the first word; where they first say and first do something else is marked.
import { button, fill, make, pill } from "./elements.js";
import { apart } from "./scores.js";
import { eventRow, lengthOf } from "./timeline.js";

// a and b: {title, status, timeline}; found: which rows belong together, and where they first differ.
export function besideView(a, b, found) {
  const rows = found.rows.map((pair, place) => pairRow(pair, place, a, b, found));
  const says = found.act !== undefined && found.act !== null ? "They first act differently below."
    : found.words !== undefined && found.words !== null ? "Only the words differ: what was done is the same." : "Nothing differs in what was said and done.";
  return make("section", { class: "beside-view", "aria-label": "Two trials side by side" },
    make("h3", null, "Side by side"),
    make("p", { class: "facts" }, says, " ",
      found.rows.some((pair) => pair.differs) && button("Next difference (n)", () => nextDifference(), { class: "quiet" })),
    make("div", { class: "two-heads" },
      make("h4", null, a.title, " ", pill(a.status)), make("h4", null, b.title, " ", pill(b.status))),
    make("ol", { class: "two" }, rows));
}

function pairRow(pair, place, a, b, found) {
  const left = pair.a === undefined || pair.a === null ? null : a.timeline[pair.a];
  const right = pair.b === undefined || pair.b === null ? null : b.timeline[pair.b];
  const first = place === found.act ? "first different act" : place === found.words ? "first different words" : "";
  const same = left && right && !pair.differs && !worthRepeating(right);
  const halves = [left && oneSide(left, a), right && !same && oneSide(right, b)];
  if (pair.differs && left && right) for (const place of [".speech", ".args"]) markApart(...halves.map((half) => half.querySelector(place)));
  return make("li", { class: `pair ${pair.differs ?? ""}${same ? " same" : ""}${first ? " first" : ""}`, tabindex: pair.differs ? -1 : null },
    first && make("p", { class: `flag ${place === found.act ? "act" : "words"}` }, first),
    halves.map((half, side) => make("div", { class: "half" }, half || make("span", { class: "dim" }, side && same ? "= same" : "–"))));
}

// The stretch in which two texts differ is marked in both.
function markApart(one, other) {
  if (!one || !other || one.textContent === other.textContent) return;
  const texts = apart(one.textContent, other.textContent);
  fill(one, texts[0]);
  fill(other, texts[1]);
}

function oneSide(row, side) {
  return eventRow(row, lengthOf(side.timeline), null, null, "div");
}

// What was said stays on both sides, so that the conversation can be read.
function worthRepeating(row) {
  return row.kind === "user" || row.kind === "agent";
}

export function firstDifference(root = document) {
  return root.querySelector(".pair.first.act") ?? root.querySelector(".pair.first");
}

export function nextDifference(root = document) {
  const all = [...root.querySelectorAll(".pair.act, .pair.words")];
  if (!all.length) return;
  const now = all.indexOf(document.activeElement);
  const next = all[(now + 1) % all.length];
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "center" });
}
