// One case, opened beside the list.

function openedCase({ close, go, pick, settle }) {
  const aside = document.getElementById("opened");
  let turn = 0;

  async function show(one, trialNumber) {
    const trial = one.trials.find((each) => each.n === trialNumber) ?? firstOf(one);
    turn += 1;
    const mine = turn;
    let run = null;
    let trouble = null;
    try {
      run = await details(trial);
    } catch (error) {
      trouble = error;
    }
    if (mine !== turn) return;  // the reader has moved on
    fill(aside, head(one, trial), run ? story(one, trial, run) : missing(trial, trouble));
    aside.scrollTop = 0;
    reveal();
  }

  function head(one, trial) {
    return make("header", { class: "case-head" },
      make("div", { class: "case-tools" },
        button("← Previous", () => go(-1), { class: "quiet", title: "Previous case (k)" }),
        button("Next →", () => go(1), { class: "quiet", title: "Next case (j)" }),
        make("span", { class: "space" }),
        button("Close ✕", close, { class: "quiet", id: "close", title: "Close (Esc)" })),
      make("h2", { tabindex: -1, id: "opened-title" }, pill(trial.status), " ", make("span", { class: "case-title" }, one.id)),
      one.name && make("p", { class: "case-name" }, one.name),
      make("p", { class: "facts" }, facts(one, trial)),
      one.trials.length > 1 && make("div", { class: "chips", role: "group", "aria-label": "Trials" },
        make("span", { class: "label" }, trialWords(one)),
        one.trials.map((each) => button(`${MARKS[each.status]} trial ${each.n}`, () => pick(each.n),
          { class: `chip ${each.status}`, "aria-pressed": String(each === trial) }))));
  }

  function facts(one, trial) {
    const words = [
      trial.turns !== null && counted(trial.turns, "turn"),
      trial.s !== null && duration(trial.s),
    ].filter(Boolean);
    return [words.join(" · "), " ", one.tags.map((tag) => make("span", { class: "tag" }, INDEX.tags[tag]))];
  }

  // The list takes the place of the charts while a case is open, and gives it back afterwards.
  let scrolled = 0;
  function reveal() {
    if (!aside.hidden) return;
    scrolled = window.scrollY;
    aside.hidden = false;
    document.body.classList.add("beside");
    settle();
  }

  function hide() {
    turn += 1;
    if (aside.hidden) return;
    aside.hidden = true;
    fill(aside);
    document.body.classList.remove("beside");
    window.scrollTo(0, scrolled);
  }

  return {
    show, hide,
    focus: () => document.getElementById("opened-title")?.focus(),
    holds: () => aside.contains(document.activeElement),
  };
}

// The first trial that needs a look.
function firstOf(one) {
  return one.trials.find((trial) => trial.status === one.worst);
}

function missing(trial, trouble) {
  const why = trouble
    ? "This browser could not unpack the run; one from 2023 or later can."
    : "The runs of this report fill the file, so this one is not included. Its ledger and the JSON report have it.";
  return [make("p", { class: "remark" }, why), trial.why && make("p", { class: "reason" }, trial.why)];
}

function errorBox(run) {
  if (!run.error) return null;
  return make("section", { class: "trouble", "aria-label": "Error" },
    make("h3", null, `Error in phase ${run.error.phase}`, run.error.type && make("span", { class: "dim" }, ` ${run.error.type}`)),
    make("pre", { tabindex: 0 }, run.error.message));
}

const BLAMED = {
  agent: "the agent", user: "the simulated user", tool_mock: "a mock", expectation: "the expectation",
  undecided: "undecided",
};

function story(one, trial, run) {
  return [
    spending(run),
    trial.status === "terminated" && make("p", { class: "remark" }, `Cut at its limit (${run.ended}): never counted as passed.`),
    (run.notes ?? []).map((note) => make("p", { class: "remark" }, note)),
    run.trace && make("p", { class: "remark" }, "Trace: ", leadingTo(run.trace[1], run.trace[0])),
    errorBox(run),
    run.blame && make("p", { class: "blame" }, make("span", { class: "label" }, "whose failure"), make("b", null, BLAMED[run.blame[0]] ?? run.blame[0]),
      make("ul", null, run.blame[1].map((line) => make("li", null, line)))),
    beforeLine(run),
    expectations(run),
    scoreCards(run),
    timelineSection(run),
    run.case && make("details", { class: "asked" }, make("summary", null, "The case"), make("pre", { tabindex: 0 }, JSON.stringify(run.case, null, 2))),
    run.cuts && make("p", { class: "remark" }, `${counted(run.cuts, "long value")} of this case ${run.cuts === 1 ? "was" : "were"} cut to keep this file small. The run's ledger has all of it: save it with result.ledger.save("run.jsonl").`),
  ];
}

function spending(run) {
  const side = (who, models, tokens, cost) => models && Object.keys(models).length > 0 && make("p", { class: "facts" },
    make("span", { class: "label" }, who), " ",
    Object.entries(models).map(([name, times]) => `${name} × ${times}`).join(", "),
    tokens && ` · ${tokens[0].toLocaleString("en")} tokens in, ${tokens[1].toLocaleString("en")} out`,
    ` · ${cost === undefined ? "cost unknown" : money(cost)}`);
  return [
    side("agent", run.models, run.tokens, run.cost),
    side("user", run.user_models, run.user_tokens, run.user_cost),
    side("judges", run.judge_models, run.judge_tokens, run.judge_cost)];
}

function beforeLine(run) {
  if (!run.before?.length) return null;
  return make("p", { class: "facts" }, make("span", { class: "label" }, "baseline"), " ",
    run.before.map((trial) => [pill(trial.status), " "]), run.before[0].why && make("span", { class: "dim" }, run.before[0].why));
}
