// Rehearse: which cases, how often, with which model; what it will cost is asked first, and its command is shown.
import { asked } from "./api.js";
import { choice, commandLine, confirmed, dialogOf, field, notice } from "./bar.js";
import { button, fill, make } from "./elements.js";
import { counted, duration, money } from "./words.js";

// given: {agent: its reference, evalset: what a set calls itself, set: id, cases: [ids], trials, model, baseline}
export function rehearse(here, given = {}) {
  if (!here.agents?.length || !here.sets?.length) {
    return dialogOf("Rehearse", (close) => [
      make("p", null, "The page can only rehearse agents and sets that were named when it was started."),
      commandLine("greenroom web agent.py:agent tests/evals"),
      make("div", { class: "buttons" }, button("Close", () => close(null), { class: "quiet" }))]);
  }
  const wish = {
    agent: (here.agents.find((one) => one.ref === given.agent) ?? here.agents[0]).n,
    set: given.set ?? (here.sets.find((one) => one.evalset === given.evalset) ?? here.sets[0]).id, cases: given.cases ?? [], trials: given.trials ?? 1,
    model: given.model ?? "", budget: here.budget ?? 1, ...(given.baseline ? { baseline: given.baseline } : {}),
  };
  return dialogOf(wish.cases.length ? `Rehearse ${counted(wish.cases.length, "case")}` : "Rehearse", (close) => {
    const plan = make("div", { class: "plan", role: "status" });
    const trouble = make("div");
    const begin = button("Begin", start, { class: "quiet strong", disabled: true });
    let planned = null;
    let asking = 0;

    async function estimate() {
      asking += 1;
      const mine = asking;
      begin.disabled = true;
      planned = null;
      try {
        const found = await asked("/runs/plan", { method: "POST", body: wish });
        if (mine !== asking) return;
        planned = found;
        notice(trouble, "");
        fill(plan, make("p", null, costWords(found)), (found.warnings ?? []).map((line) => make("p", { class: "remark" }, line)), namedCode(found.code, (agreed) => { begin.disabled = !agreed; }), commandLine(found.command));
        begin.disabled = Boolean(found.code?.length);
      } catch (error) {
        if (mine === asking) notice(trouble, error);
      }
    }

    async function start() {
      begin.disabled = true;
      try {
        const child = await asked("/runs", { method: "POST", body: { plan: planned.plan, ...(planned.code ? { code: planned.code } : {}) } });
        close(null);
        showStart(child);
      } catch (error) {
        notice(trouble, error);
        estimate();
      }
    }

    const number = (label, name, least, step, more) => {
      const input = make("input", { type: "number", min: least, step, value: wish[name] });
      input.addEventListener("change", () => { wish[name] = Math.max(Number(input.value) || least, least); estimate(); });
      return field(label, input, more);
    };
    const model = make("input", { type: "text", value: wish.model, placeholder: "as it is", spellcheck: "false", autocomplete: "off" });
    model.addEventListener("change", () => { wish.model = model.value.trim(); estimate(); });
    estimate();
    return [
      make("div", { class: "fields" },
        field("agent", choice("agent", here.agents.map((one) => [String(one.n), one.name]), String(wish.agent), (value) => { wish.agent = Number(value); estimate(); })),
        field("set", choice("set", here.sets.map((one) => [one.id, one.name]), wish.set, (value) => { wish.set = value; estimate(); })),
        number("trials", "trials", 1, 1), field("model", model, "provider:name"),
        number("budget in USD", "budget", 0.01, 0.01, `at most ${money(here.budget ?? 1)}`)),
      plan, trouble,
      make("div", { class: "buttons" }, begin, button("Cancel", () => close(null), { class: "quiet" })),
    ];
  });
}

// A run starts some time after its command: the reader waits here for it, and sees why if it never does.
async function showStart(child) {
  const state = make("p", { role: "status" }, "Starting…");
  const said = make("div");
  let isOpen = true;
  dialogOf("Rehearse", (close) => [state, said, commandLine(child.command),
    make("div", { class: "buttons" }, button("Close", () => close(null), { class: "quiet" }))]).then(() => { isOpen = false; });
  while (isOpen && !child.run && child.state !== "ended") {
    await new Promise((wake) => setTimeout(wake, 300));
    child = await asked(`/children/${encodeURIComponent(child.id)}`).catch((error) => ({ ...child, state: "ended", said: error.message }));
    fill(state, child.state === "waiting" ? "It starts when the other run of this set has ended." : "Starting…");
  }
  if (!isOpen) return;
  if (child.run) location.assign(`/runs/${encodeURIComponent(child.run)}`);
  else {
    fill(state, "No run was started.");
    fill(said, make("pre", { tabindex: 0 }, child.said || `exit code ${child.exit_code}`));
  }
}

// Stop or resume a run, once the reader has seen the command for it; true if it was done.
export async function stopRun(id) {
  const path = `/runs/${encodeURIComponent(id)}/stop`;
  const { command } = await asked(path);
  const sure = await confirmed("Stop this run?", "What is done stays; the run can be resumed.", command, "Stop");
  if (sure) await asked(path, { method: "POST", body: {} });
  return Boolean(sure);
}

export async function resumeRun(id) {
  const path = `/runs/${encodeURIComponent(id)}/resume`;
  const { command, code = [] } = await asked(path);
  const sure = await dialogOf("Resume this run?", (close) => {
    const resume = button("Resume", () => close(true), { class: "quiet strong", disabled: code.length > 0 });
    return [make("p", null, "Trials that are done do not run again."), namedCode(code, (agreed) => { resume.disabled = !agreed; }), commandLine(command),
      make("div", { class: "buttons" }, resume, button("Cancel", () => close(null), { class: "quiet" }))];
  });
  if (sure) await asked(path, { method: "POST", body: { code } });
  return Boolean(sure);
}

// What a set names is imported by its run, so somebody looks at it first.
function namedCode(code, agree) {
  if (!code?.length) return null;
  const box = make("input", { type: "checkbox" });
  box.addEventListener("change", () => agree(box.checked));
  return make("div", { class: "remark" }, make("p", null, "The text of this set names Python code, which the run would import:"),
    make("ul", null, code.map((one) => make("li", null, make("code", null, one)))), make("label", null, box, " I know this code. Import it."));
}

function costWords(found) {
  const parts = [`${counted(found.cases, "case")}, ${counted(found.trials, "trial")}`];
  parts.push(found.cost === undefined ? "cost unknown" : `about ${money(found.cost)}${found.cost_high === undefined ? "" : `, up to ${money(found.cost_high)}`}`);
  if (found.seconds !== undefined) parts.push(`about ${duration(found.seconds)}`);
  if (found.based_on) parts.push(`from ${counted(found.based_on, "earlier trial")}`);
  return parts.join(" · ");
}
