// The agent's graph as nested boxes, and the way a trial took through it. It is a nested list, and is read aloud as one.
import { make } from "./elements.js";
import { counted, duration, money } from "./words.js";

const WORDS = {
  sequence: "one after the other", parallel: "at the same time", race: "the first answer wins", fallback: "until one succeeds",
  team: "may hand over", map_over: "for each", tap: "listens",
};
// How the parts of a structure lie: one after the other, or next to each other.
const ROWS = new Set(["sequence"]);

export function graphPicture(part) {
  return make("ul", { class: "picture" }, partBox(part));
}

export function partBox(part) {
  const below = part.parts ?? [];
  const plain = below.length > 0 && !part.model;
  return make("li", { class: `part ${plain ? "structure" : "node"} ${part.kind}${part.visits ? " visited" : ""}${part.trouble?.includes("failed") ? " bad" : ""}` },
    part.key && make("span", { class: "key-word" }, part.key),
    make("div", { class: "part-head" },
      make("b", null, plain ? structureName(part) : part.name || part.kind),
      part.model && make("span", { class: "dim" }, part.model),
      plain && part.name && part.name !== part.kind && make("span", { class: "dim" }, part.name)),
    figures(part),
    part.tools?.length > 0 && make("ul", { class: "part-tools" }, part.tools.map(([name, calls]) =>
      make("li", { class: calls ? "used" : null }, name, calls > 0 && ` × ${calls}`))),
    below.length > 0 && make("ul", { class: `parts ${ROWS.has(part.kind) ? "in-order" : "beside"}` }, below.map(partBox)));
}

function structureName(part) {
  return part.label || WORDS[part.kind] || part.kind;
}

function figures(part) {
  if (!part.visits) return null;
  const words = [
    part.visits > 1 ? counted(part.visits, "visit") : "visited",
    part.s > 0 && duration(part.s), part.cost > 0 && money(part.cost), part.trouble,
  ].filter(Boolean).join(" · ");
  return make("p", { class: "figures" }, words);
}

// The nodes that were visited, as one line.
export function wayWords(part) {
  const names = [];
  const visit = (one) => {
    const leaf = !one.parts?.length || one.model;
    if (leaf && one.visits) names.push(one.visits > 1 ? `${one.name} × ${one.visits}` : one.name);
    for (const below of one.parts ?? []) visit(below);
  };
  visit(part);
  return names.length > 8 ? `${names.slice(0, 8).join(", ")} and ${names.length - 8} more` : names.join(", ");
}

export function sizeOf(part) {
  return 1 + (part.parts ?? []).reduce((all, below) => all + sizeOf(below), 0);
}
