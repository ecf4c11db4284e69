// On paper: the summary, and every case that did not pass as far as it was read beforehand.
import { fill, make, pill } from "./elements.js";
import { emptyQuery } from "./query.js";
import { story } from "./story.js";

const MOST_PRINTED = 100;
const FALLEN = ["failed", "error", "terminated"];

export function printing(source, head) {
  const ready = [];
  let all = 0;
  let unfolded = [];  // paper cannot be pressed, so what is folded is printed open

  async function prepare() {
    const query = { ...emptyQuery(), status: new Set(["error", "failed", "flaky", "terminated"]) };
    const { total, rows } = await source.rows(query, 0, MOST_PRINTED);
    all = total;
    const fallen = rows.flatMap((row) => row.trials.filter((trial) => FALLEN.includes(trial.status)).map((trial) => [row, trial]));
    for (const [row, trial] of fallen.slice(0, MOST_PRINTED)) {
      ready.push([row, trial, await Promise.resolve(source.story(row.id, trial.n)).catch(() => null)]);
      await new Promise((rest) => setTimeout(rest));  // a page that is at rest may never call itself idle
    }
  }

  window.addEventListener("beforeprint", () => {
    const left = all - new Set(ready.map(([row]) => row)).size;
    fill(document.getElementById("print"),
      ready.length > 0 && make("h2", null, "Cases that did not pass"),
      ready.map(([row, trial, run]) => make("article", { class: "printed" },
        make("h3", null, pill(trial.status), " ", row.id, row.trials.length > 1 && ` (trial ${trial.n})`),
        run ? story(trial, run) : make("p", null, trial.why))),
      left > 0 && make("p", { class: "remark" }, `${left} more cases of ${head().title} did not pass.`));
    unfolded = [...document.querySelectorAll("details.grounds, details.changed, details.members")].filter((folded) => !folded.open);
    for (const folded of unfolded) folded.open = true;
  });
  window.addEventListener("afterprint", () => {
    fill(document.getElementById("print"));
    for (const folded of unfolded) folded.open = false;
  });
  // A run that is followed changes; a file is read once.
  if (!source.live) setTimeout(prepare);
  else {
    window.addEventListener("beforeprint", () => { if (!ready.length) prepare(); });
    // Paper does not wait for the server, so what it needs is read before it is asked for.
    window.addEventListener("keydown", (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.key !== "p" || ready.length) return;
      event.preventDefault();
      prepare().finally(() => window.print());
    });
  }
}
