// The agent: its graph, the data that flows in it, what is wrong with it, what it costs, and the way a run took.
import { asked } from "./api.js";
import { choice } from "./bar.js";
import { button, fill, make, sentence } from "./elements.js";
import { graphPicture } from "./graph.js";
import { panel } from "./overview.js";

export async function agentPage(main, here, chosen) {
  const run = new URLSearchParams(location.search).get("run");
  if (!run && !here.agents?.length) {
    fill(main, make("p", { class: "remark" }, "No agent was named when the page was started: greenroom web agent.py:agent. The agent of a recorded run is shown from that run's page."));
    return;
  }
  const found = run ? await asked(`/runs/${encodeURIComponent(run)}/agent`) : await asked(`/agents/${chosen ?? here.agents[0].n}`);
  const several = !run && here.agents.length > 1;  // then the choice of one names it
  const picture = make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "The agent's graph" }, graphPicture(found.graph));
  fill(main,
    make("div", { class: "page-bar" }, make("h2", { class: several ? "unseen" : null }, found.name), found.ref !== found.name && make("code", { class: "dim" }, found.ref),
      run && make("span", null, "in run ", make("a", { href: `/runs/${encodeURIComponent(run)}` }, run)),
      several && choice("agent", here.agents.map((one) => [String(one.n), one.name]), String(chosen ?? here.agents[0].n), (value) => location.assign(`/agent/${value}`))),
    found.why && make("p", { class: run ? "dim" : "remark" }, found.why),
    panel("graph", "Graph", picture),
    !run && !found.why && panel("issues", "Contracts", found.issues?.length ? make("ul", { class: "reasons" }, found.issues.map((one) => make("li", null,
      make("b", null, one.code ?? ""), make("p", null, one.text, one.place && make("span", { class: "dim" }, ` At ${sentence(one.place)}`), one.hint && make("span", { class: "dim" }, ` ${one.hint}`)))))
      : make("p", { class: "dim" }, "No problems found.")),
    found.links?.length > 0 && panel("data", "Data", make("ul", { class: "links" }, found.links.map(([writer, reader, place]) => make("li", null,
      button([make("code", null, place)], (event) => light(picture, event.currentTarget, [writer, reader]), { class: "quiet", "aria-pressed": "false", title: "Show who writes and who reads it" }), " ",
      writer, " → ", reader)))),
    found.estimate && panel("estimate", "Estimate", make("pre", { class: "ruled", tabindex: 0 }, found.estimate)),
    found.mermaid && make("details", { class: "asked" }, make("summary", null, "As Mermaid text"), make("pre", { tabindex: 0 }, found.mermaid)));
}

// Those who write and read a place light up; they are named next to it as well.
function light(picture, pressed, names) {
  const on = pressed.getAttribute("aria-pressed") !== "true";
  for (const other of document.querySelectorAll(".links [aria-pressed]")) other.setAttribute("aria-pressed", "false");
  pressed.setAttribute("aria-pressed", String(on));
  for (const part of picture.querySelectorAll(".part")) {
    const name = part.querySelector(":scope > .part-head b")?.textContent;
    part.classList.toggle("lit", on && names.some((one) => one === name || one.endsWith(`/${name}`)));
  }
}
