// A run from its first word to its end.
import { bar, button, draw, fill, make, shown } from "./elements.js";
import { duration, money } from "./words.js";

// Drawn in a square of 16; what begins with a dot is filled, the rest is a line.
const ICONS = {
  user: ".M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 14a5.5 5 0 0 1 11 0z",
  answer: ".M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 14a5.5 5 0 0 1 11 0z",
  agent: "M3 5.5h10v8H3zM8 5.5V2.5M6 9v1.5M10 9v1.5",
  tool: "M8 2l5.2 3v6L8 14l-5.2-3V5zM8 6.2a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6z",
  model: "M8 2l6 6-6 6-6-6z",
  node: "M5 3l6 5-6 5z",
  pause: ".M4.5 3h2.4v10H4.5zM9.1 3h2.4v10H9.1z",
  decision: "M8 14V9L3.5 4M8 9l4.5-5M3.5 7V4h3M12.5 7V4h-3",
  state: "M2.5 5.5h11M10.5 2.5l3 3-3 3M13.5 11h-11",
  note: "M3 4h10M3 8h10M3 12h6",
  refused: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM4 12l8-8",
  error: "M8 2l6.5 11.5h-13zM8 6.5v3.5M8 11.6v.6",
  end: ".M4 4h8v8H4z",
  gap: "M3 8h1.5M7.2 8h1.5M11.5 8H13",
};

function icon(kind) {
  const shape = ICONS[kind] ?? ICONS.note;
  const filled = shape.startsWith(".");
  return draw("svg", { class: `glyph${filled ? " filled" : ""}`, viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true" },
    draw("path", { d: filled ? shape.slice(1) : shape }));
}

const NAMES = {
  user: "user", agent: "agent", tool: "tool", model: "model", node: "node", pause: "pause",
  answer: "user", decision: "decision", state: "state", note: "note", refused: "refused",
  error: "error", end: "end", gap: "",
};
// What a reader of the conversation may want out of the way.
const SLIM = new Set(["model", "node", "decision", "note"]);

// look: {event, brief, pick(event), toggle(), details(seq)}: what the reader looks at, and how they ask for more.
export function timelineSection(run, look) {
  const rows = run.timeline ?? [];
  if (!rows.length) return make("p", { class: "dim" }, run.going ? "Nothing has happened yet." : "The conversation itself was not kept.");
  const length = lengthOf(rows);
  look = look && { ...look, event: nearestTo(look.event, rows) };
  const slim = rows.some((row) => SLIM.has(row.kind) || row.theirs);
  const list = make("ol", { class: `timeline${look?.brief ? " brief" : ""}` }, rows.map((row) => eventRow(row, length, look, run)));
  return make("section", { class: "run", "aria-label": "Conversation" },
    make("h3", null, "Conversation", " ", make("span", { class: "dim" }, `over ${duration(length)}`),
      slim && look && button("Only what was said and done", look.toggle, { class: "quiet", "aria-pressed": String(Boolean(look.brief)) })),
    run.brief && make("p", { class: "remark" }, "The ledger was not kept; this is the trajectory."),
    look && stateSlider(run, look),
    list);
}

// An address may name an event that has no row of its own, such as the end of a node: the row before it is shown in its place.
function nearestTo(event, rows) {
  return event === null ? null : rows.findLast((row) => row.seq !== undefined && row.seq <= event)?.seq ?? event;
}

export function lengthOf(rows) {
  return Math.max(...rows.map((row) => (row.at ?? 0) + (row.s ?? 0)), 1e-9);
}

export function eventRow(row, length, look = null, run = null, element = "li") {
  const timed = row.s !== undefined;
  const chosen = look !== null && row.seq !== undefined && look.event === row.seq;
  const source = row.source && row.source !== "user" ? make("span", { class: `source ${row.source}` }, row.source) : null;
  const took = timed ? duration(row.s) : row.at !== undefined ? `+${duration(row.at)}` : "";
  const press = look && row.seq !== undefined && button(took, () => look.pick(chosen ? null : row.seq),
    { class: "quiet link took", title: `Event ${row.seq}: its record and the state after it`, "aria-expanded": String(chosen), "aria-label": `event ${row.seq}, ${took}` });
  return make(element, {
    class: `event ${row.kind}${(SLIM.has(row.kind) || row.theirs) && !row.bad ? " slim" : ""}${row.bad ? " bad" : ""}${row.theirs ? " theirs" : ""}${chosen ? " chosen" : ""}`,
  },
  icon(row.kind),
  make("span", { class: "kind" }, row.theirs && [make("span", { class: "unseen" }, "user's "), "↳ "], NAMES[row.kind] ?? row.kind),
  make("div", { class: "what" }, happened(row, source), chosen && atEvent(row, run, look)),
  make("span", { class: "when" },
    timed && bar(row.at / length, row.s / length, row.kind === "model" ? "model" : "tool", null),
    press || make("span", { class: "took" }, took)));
}

// The state at an event

function hasState(run) {
  return Boolean(run.state?.length) || (run.timeline ?? []).some((row) => row.changes?.length);
}

// The places of the state and their values after an event, and which of them it changed.
export function stateAt(run, seq) {
  const held = new Map(run.state ?? []);
  const changed = new Set();
  for (const row of run.timeline ?? []) {
    if (row.seq === undefined || row.seq > seq || row.theirs) continue;
    for (const [place, , now] of row.changes ?? []) {
      for (const known of held.keys()) if (known.startsWith(`${place}.`)) held.delete(known);
      if (now === null) held.delete(place);
      else held.set(place, now);
      if (row.seq === seq) changed.add(place);
    }
  }
  return [held, changed];
}

function stateSlider(run, look) {
  const seqs = (run.timeline ?? []).map((row) => row.seq).filter((seq) => seq !== undefined);
  if (!hasState(run) || !seqs.length) return null;
  const place = Math.max(seqs.findLastIndex((seq) => seq <= (look.event ?? Infinity)), 0);
  const slider = make("input", { type: "range", min: 0, max: seqs.length - 1, value: place, "aria-label": "The event whose state is shown", "aria-valuetext": `event ${seqs[place]}` });
  slider.addEventListener("change", () => look.pick(seqs[Number(slider.value)]));
  return make("p", { class: "slider" }, make("label", { class: "label" }, "state at event ", slider), " ",
    make("span", { class: "dim" }, look.event === null ? "move it, or press the time of an event" : `event ${look.event} of ${seqs.at(-1)}`));
}

function atEvent(row, run, look) {
  const [held, changed] = stateAt(run, row.seq);
  const record = make("div", { class: "record" });
  Promise.resolve(look.details(row.seq)).then((found) => fill(record, found && eventRecord(found)), () => null);
  return make("div", { class: "at-event" },
    make("p", { class: "label" }, `event ${row.seq}${row.path ? ` at ${row.path}` : ""}: the state after it`),
    held.size ? make("table", { class: "plain" }, make("tbody", null, [...held].map(([place, value]) =>
      make("tr", { class: changed.has(place) ? "fresh" : null }, make("th", { scope: "row" }, make("code", null, place)), make("td", null, shown(value), changed.has(place) && make("span", { class: "dim" }, " changed here"))))))
      : make("p", { class: "dim" }, "The state is empty."),
    record);
}

function eventRecord(found) {
  const attributes = Object.entries(found.attributes ?? {});
  return [
    make("details", { class: "json" }, make("summary", null, "As it is recorded"), make("pre", { tabindex: 0 }, JSON.stringify(found.event, null, 2))),
    found.trace && make("p", { class: "dim" }, "trace ", make("code", null, found.trace[0]), " span ", make("code", null, found.trace[1])),
    attributes.length > 0 && make("details", { class: "json" }, make("summary", null, "Attributes of its span"),
      make("table", { class: "plain" }, make("tbody", null, attributes.map(([name, value]) => make("tr", null, make("th", { scope: "row" }, name), make("td", null, shown(value))))))),
  ];
}

function happened(row, source) {
  const speech = row.kind === "user" || row.kind === "agent" || row.kind === "answer";
  const parts = [];
  if (speech) {
    if (row.who) parts.push(make("span", { class: "dim" }, `${row.who} `));
    if (row.text || (row.text !== undefined && !row.files)) {
      parts.push(make("p", { class: "speech", dir: "auto" }, row.text || "(nothing)"));
    }
  } else if (row.value?.args !== undefined && row.who) {
    parts.push(make("div", { class: "call" }, callText(row), source));
    if (row.text) parts.push(make("p", { class: row.bad ? "wrong-words" : "dim" }, row.text));
  } else {
    parts.push(make("div", { class: "call" },
      row.who && make("b", null, row.who), " ",
      row.text && make("span", { class: row.bad ? "wrong-words" : "" }, row.text), source,
      row.tokens && make("span", { class: "dim" }, ` ${row.tokens[0]} tokens in, ${row.tokens[1]} out`),
      row.cost > 0 && make("span", { class: "dim" }, ` · ${money(row.cost)}`)));
  }
  for (const [name, value] of Object.entries(row.value ?? {})) {
    if (name === "args") continue;
    parts.push(make("div", { class: "result" }, make("span", { class: "label" }, name === "result" ? "→" : name), shown(value)));
  }
  if (row.files?.length) parts.push(make("ul", { class: "files" }, row.files.map(fileLine)));
  if (row.changes?.length) parts.push(make("ul", { class: "changes" }, row.changes.map(changeLine)));
  return parts;
}

const PICTURE = /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/;

function fileLine(file) {
  return make("li", null,
    PICTURE.test(file.src ?? "") && make("img", { src: file.src, alt: file.name }),
    make("span", { class: "dim" }, `${file.name} · ${file.type} · ${file.size}`));
}

function callText(row) {
  const args = Object.entries(row.value.args ?? {});
  const line = args.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
  if (line.length <= 160) return make("code", null, make("b", null, row.who), make("span", { class: "args" }, `(${line})`));
  return [make("code", null, make("b", null, row.who), "(…)"), shown(row.value.args)];
}

function changeLine([place, old, now]) {
  const name = make("code", { class: "place" }, place);
  if (old !== null && JSON.stringify(old) === JSON.stringify(now)) return make("li", null, name, make("span", { class: "dim" }, " written again, unchanged"));
  return make("li", null, name, " ",
    old !== null && [shown(old), " → "], now === null ? make("span", { class: "dim" }, "removed") : shown(now));
}
