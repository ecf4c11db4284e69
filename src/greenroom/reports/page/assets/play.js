// Talk to the agent in rehearsal: no tool body runs, mocks are edited on the fly, and a good talk becomes a case.
import { asked, followed } from "./api.js";
import { choice, confirmed, field, notice, typed } from "./bar.js";
import { button, fill, make, shown } from "./elements.js";
import { rehearse } from "./rerun.js";
import { caseToKeep } from "./sets.js";
import { eventRow, lengthOf } from "./timeline.js";
import { counted, moment, money } from "./words.js";

const MOCK_FIELDS = new Set(["value", "changes", "in_turn", "by_args", "otherwise", "fault"]);

export async function playsPage(main, here) {
  const found = await asked("/plays");
  const trouble = make("div");
  const state = make("textarea", { class: "code", rows: 4, spellcheck: "false", "aria-label": "start state" });
  state.value = '{"session": {}}';
  let agent = here.agents?.[0]?.n ?? null;
  const begin = async () => {
    try {
      const play = await asked("/plays", { method: "POST", body: { agent, state: JSON.parse(state.value || "{}") } });
      location.assign(`/play/${encodeURIComponent(play.id)}`);
    } catch (error) {
      notice(trouble, error);
    }
  };
  fill(main, make("section", { class: "panel", "aria-labelledby": "begin-title" },
    make("h2", { id: "begin-title" }, "A new conversation"),
    make("p", { class: "dim" }, "A rehearsal: no tool body runs. You say what a tool answers."),
    here.agents?.length ? make("div", { class: "begin" },
      field("agent", choice("agent", here.agents.map((one) => [String(one.n), one.name]), String(agent), (value) => { agent = Number(value); })),
      field("start state", state), button("Begin", begin, { class: "quiet strong" }))
      : make("p", { class: "remark" }, "No agent was named when the page was started: greenroom web agent.py:agent"), trouble),
  make("section", { class: "panel", "aria-labelledby": "plays-title" }, make("h2", { id: "plays-title" }, "Conversations"),
    found.plays?.length ? make("ul", { class: "plays links" }, found.plays.map((one) => make("li", null, make("a", { href: `/play/${encodeURIComponent(one.id)}` }, one.says || "nothing said yet"), " ",
      make("span", { class: "dim" }, [one.name, one.events !== undefined && counted(one.events, "event"), one.at && moment(one.at)].filter(Boolean).join(" · ")))))
      : make("p", { class: "dim" }, "None yet.")));
}

// What is typed is a mock as a file has it, or simply what the tool answers.
function asMock(value) {
  const names = value !== null && typeof value === "object" && !Array.isArray(value) ? Object.keys(value) : [];
  return names.length && names.every((name) => MOCK_FIELDS.has(name)) ? value : { value };
}

export async function playPage(main, here, id, live) {
  const path = `/plays/${encodeURIComponent(id)}`;
  let play = await asked(path);
  const trouble = make("div");
  const list = make("ol", { class: "timeline" });
  const side = make("aside", { class: "play-side", "aria-label": "Mocks and state" });
  const waits = make("div", { class: "waits", role: "group", "aria-label": "Questions of the agent" });
  const state = make("span", { class: "dim", role: "status" });
  const words = make("textarea", { rows: 2, "aria-label": "say something", placeholder: "Say something…   (Enter sends)" });
  const send = button("Send", () => say(), { class: "quiet strong" });
  const more = make("div", { class: "buttons" });

  fill(main,
    make("div", { class: "page-bar" }, make("h2", null, play.name || "Play"), make("span", { class: "pill passed" }, "rehearsal: no tool body runs"), state),
    make("div", { class: "stage" },
      // What went wrong is said where the reader has pressed: a long conversation hides the top of the page.
      make("section", { class: "talk", "aria-label": "Conversation" }, list, waits, trouble,
        make("div", { class: "say" }, words, send), more),
      side));
  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      say();
    }
  });

  async function act(name, body) {
    fill(state, "working…");
    send.disabled = true;
    try {
      const answer = await asked(`${path}/${name}`, { method: "POST", body });
      notice(trouble, "");
      return answer;
    } catch (error) {
      notice(trouble, error);
      return null;
    } finally {
      // Nothing is painted anew here: what the reader has typed and was refused is still theirs to correct.
      send.disabled = false;
      paintState();
    }
  }

  async function change(name, body) {
    const answer = await act(name, body);
    if (answer?.id && answer.id !== play.id) location.assign(`/play/${encodeURIComponent(answer.id)}`);
    else if (answer?.id) {
      play = answer;
      paint();
    }
    return answer;
  }

  async function say() {
    const text = words.value.trim();
    if (!text) return;
    const answer = await change("say", { text });
    if (answer) words.value = "";
    words.focus();
  }

  function paint() {
    const rows = play.timeline ?? [];
    const length = lengthOf(rows.length ? rows : [{}]);
    fill(list, rows.map((row) => {
      const line = eventRow(row, length);
      if (row.seq !== undefined && row.kind !== "end") line.querySelector(".when").append(button("Fork", () => fork(row.seq), { class: "quiet fork", "aria-label": `Fork before event ${row.seq}` }));
      return line;
    }), !rows.length && make("li", { class: "dim" }, "Nothing was said yet."));
    fill(waits, Object.entries(play.missing ?? {}).map(([tool, mock]) => missingMock(tool, mock)), (play.waits ?? []).map(question));
    paintState();
    fill(side, play.changed && make("p", { class: "remark" }, "The agent's code has changed. ", button("Fork with the new code", () => fork(play.events ?? 0), { class: "quiet" })),
      mocks(), values());
    fill(more,
      button("Step back", stepBack, { class: "quiet", title: "Fork before your last words", disabled: !rows.some((row) => row.kind === "user") }),
      button("Let a simulated user answer", () => change("simulate", {}), { class: "quiet" }),
      button("Save as a case…", keep, { class: "quiet", disabled: !rows.length || isAsking(), title: isAsking() ? "Answer what is asked first" : null }));
    // A tool without a mock is asked about in its place.
    if (play.error && !Object.keys(play.missing ?? {}).length) notice(trouble, new Error(play.error));
  }

  const isAsking = () => Object.keys(play.missing ?? {}).length > 0 || (play.waits ?? []).length > 0;

  function paintState() {
    const resting = isAsking() ? "it waits for an answer" : "it is your turn";
    fill(state, { resting, working: "working…", ended: "it is over", broken: "it broke" }[play.state ?? "resting"],
      ` · ${counted(play.events ?? 0, "event")}${play.cost === undefined ? "" : ` · ${money(play.cost)}`}`,
      play.forked_from && [" · forked from ", make("a", { href: `/play/${encodeURIComponent(play.forked_from)}` }, play.forked_from)]);
  }

  function stepBack() {
    const last = (play.timeline ?? []).findLast((row) => row.kind === "user" || row.kind === "answer");
    if (last?.seq !== undefined) fork(last.seq);
  }

  async function fork(at) {
    const sure = await confirmed(`Fork before event ${at}?`, "Everything before it stays and is not paid for again; this conversation stays as it is.", null, "Fork");
    if (sure) change("fork", { at });
  }

  // A tool without a mock was refused: fill one in, and the conversation continues from before the call.
  function missingMock(tool, mock) {
    const text = make("textarea", { class: "code", rows: 4, spellcheck: "false", "aria-label": `what ${tool} answers` });
    text.value = JSON.stringify(mock, null, 2);
    return make("div", { class: "question" }, make("p", null, make("b", null, tool), " has no mock. What does it answer?"), text,
      button("Use this and continue", () => parsed(text, (value) => change("mocks", { mocks: { ...play.mocks, [tool]: asMock(value) } })), { class: "quiet strong" }));
  }

  function question(one) {
    const text = make("textarea", { rows: 1, "aria-label": `answer ${one.tool || "the question"}` });
    const answer = (value) => change("answer", { answers: { [one.id]: value } });
    return make("div", { class: "question" },
      make("p", null, make("b", null, one.tool ? `${one.tool} waits for you` : "The agent waits for you"), one.prompt && `: ${one.prompt}`),
      one.args && Object.keys(one.args).length > 0 && make("p", null, shown(one.args)),
      make("div", { class: "buttons" }, button("Yes", () => answer(true), { class: "quiet" }), button("No", () => answer(false), { class: "quiet" }),
        text, button("Answer", () => answer(text.value), { class: "quiet strong" }),
        button("Answer as JSON", () => parsed(text, answer), { class: "quiet" })));
  }

  function parsed(text, use) {
    try {
      use(JSON.parse(text.value));
    } catch (error) {
      notice(trouble, new Error(`This is not JSON: ${error.message}`));
    }
  }

  function mocks() {
    const names = [...new Set([...(play.tools ?? []), ...Object.keys(play.mocks ?? {})])];
    return make("section", { class: "panel", "aria-labelledby": "mocks-title" }, make("h3", { id: "mocks-title" }, "Mocks"),
      make("p", { class: "dim" }, "They apply from the next call on."),
      names.map((name) => {
        const text = make("textarea", { class: "code", rows: 2, spellcheck: "false", placeholder: play.asking?.includes(name) ? "no mock: it waits for you" : "no mock: you are asked what it answers" });
        text.value = name in (play.mocks ?? {}) ? JSON.stringify(play.mocks[name]) : "";
        return field(name, text, button("Apply", () => {
          if (text.value.trim()) return parsed(text, (value) => change("mocks", { mocks: { ...play.mocks, [name]: asMock(value) } }));
          const { [name]: _, ...rest } = play.mocks ?? {};
          return change("mocks", { mocks: rest });
        }, { class: "quiet", "aria-label": `Apply the mock of ${name}` }));
      }), !names.length && make("p", { class: "dim" }, "The agent has no tools."));
  }

  function values() {
    return make("section", { class: "panel", "aria-labelledby": "state-title" }, make("h3", { id: "state-title" }, "State"),
      play.values?.length ? make("table", { class: "plain" }, make("tbody", null, play.values.map(([place, value]) =>
        make("tr", null, make("th", { scope: "row" }, make("code", null, place)), make("td", null, shown(value))))))
        : make("p", { class: "dim" }, "empty"));
  }

  async function keep() {
    const answer = await caseToKeep(here, "", "What you said becomes its turns, what tools answered its mocks, what the agent did its expectations.",
      (file, named) => typed("greenroom", "eval-set", "add", file, "--from-session", `${here.store}/plays/${id}.jsonl`, "--id", named));
    if (!answer) return;
    const saved = await act("case", answer);
    if (!saved) return;
    fill(trouble, make("p", { class: "remark", role: "alert" }, "Saved as ", make("a", { href: `/sets/${encodeURIComponent(answer.set)}#case=${encodeURIComponent(answer.id)}` }, answer.id), ". ",
      button("Rehearse it…", () => rehearse(here, { agent: here.agents?.find((one) => one.n === play.agent)?.ref, set: answer.set, cases: [answer.id] }), { class: "quiet" })));
  }

  paint();
  followed({ play: id }, null, (heard) => {
    if (heard.kind === "play" && heard.play?.id === id) {
      play = heard.play;
      paint();
    }
  }, live.tell);
}
