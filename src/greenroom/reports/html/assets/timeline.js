// A run from its first word to its end.

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

function timelineSection(run) {
  const rows = run.timeline ?? [];
  if (!rows.length) return make("p", { class: "dim" }, "Nothing was kept of the run itself.");
  const length = Math.max(...rows.map((row) => (row.at ?? 0) + (row.s ?? 0)), 1e-9);
  const list = make("ol", { class: "timeline" }, rows.map((row) => eventRow(row, length)));
  const slim = rows.some((row) => SLIM.has(row.kind) || row.theirs);
  return make("section", { class: "run", "aria-label": "Conversation" },
    make("h3", null, "Conversation", " ", make("span", { class: "dim" }, `over ${duration(length)}`),
      slim && button("Only what was said and done", (event) => {
        const on = list.classList.toggle("brief");
        event.currentTarget.setAttribute("aria-pressed", String(on));
      }, { class: "quiet", "aria-pressed": "false" })),
    run.brief && make("p", { class: "remark" }, "The ledger was not kept; this is the trajectory."),
    list);
}

function eventRow(row, length) {
  const timed = row.s !== undefined;
  const source = row.source && row.source !== "user" ? make("span", { class: `source ${row.source}` }, row.source) : null;
  return make("li", {
    class: `event ${row.kind}${(SLIM.has(row.kind) || row.theirs) && !row.bad ? " slim" : ""}${row.bad ? " bad" : ""}${row.theirs ? " theirs" : ""}`,
  },
  icon(row.kind),
  make("span", { class: "kind" }, row.theirs && [make("span", { class: "unseen" }, "user's "), "↳ "], NAMES[row.kind] ?? row.kind),
  make("div", { class: "what" }, happened(row, source)),
  make("span", { class: "when" },
    timed ? [bar(row.at / length, row.s / length, row.kind === "model" ? "model" : "tool", null), make("span", { class: "took" }, duration(row.s))]
      : row.at !== undefined && make("span", { class: "at" }, `+${duration(row.at)}`)));
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
  if (line.length <= 160) return make("code", null, make("b", null, row.who), `(${line})`);
  return [make("code", null, make("b", null, row.who), "(…)"), shown(row.value.args)];
}

function changeLine([place, old, now]) {
  return make("li", null, make("code", { class: "place" }, place), " ",
    old !== null && [shown(old), " → "], now === null ? make("span", { class: "dim" }, "removed") : shown(now));
}
