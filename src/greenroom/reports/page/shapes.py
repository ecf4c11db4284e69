"""What a page shows, as JSON: the shapes that Python makes and the page's scripts draw.

The static report and the web page are drawn by the same scripts (`assets/`) from these shapes. They differ
in the *source* the shapes come from: `packed.js` reads them out of the file, `served.js` asks the server.
A source is an object with these functions, each of which may answer with a promise:

    head()                      → Head
    rows(query, from, count, around)
                                → Rows; with `around`, the id of a case, those around it if it is listed
    row(case)                   → Row, or null if the run has no such case
    story(case, trial)          → Story, or null where the run is not kept
    event(case, trial, seq)     → EventDetails, or null where there are none (always null in a file)
    find(words, heard)          → searches conversations, and calls heard(share done) as it finds more;
                                  `rows` with the same words then answers with what was found so far
    follow(heard)               → calls heard(change) for every change of the run; never called in a file

`query` has the fields of `Query`; a field that is empty narrows nothing. Of one field any value, of different
fields all must match. The route of each function is in its shape's docstring.

A server answers `find` with lines of JSON, `{"done": share}`, and follows by `GET /api/stream?since=&run=&play=`:
server-sent events whose `id` is the store's position, with `event` and `data`

    trial   {run, case, trial, status}          a trial has ended
    going   {run, case, trial, events}          a running trial has this many events by now
    run     {run, status}                       a run was begun, ended or deleted
    file    {set, digest}                       an eval set changed on disk
    play    {play: Play}                        a conversation in Play continued
    again   {}                                  the listener is too far behind, and must load everything again

An error is `{"error": what is wrong, "next": what to do}`. A `sort` with a minus in front reverses `rows`.

A field that has its default is left out of the JSON. Numbers that are not known are left out or null, never 0.
"""

from typing import Literal

from msgspec import Struct

from greenroom.ledger.plain import Json

CaseStatus = Literal["passed", "flaky", "failed", "error", "terminated", "skipped"]
"""How a case ended: as its trials did, or `flaky` if some passed and others fell short."""
RunState = Literal["running", "interrupted", "finished"]
Sort = Literal["status", "order", "case", "score", "time", "cost"]
WORST: tuple[CaseStatus, ...] = ("error", "failed", "flaky", "terminated", "skipped", "passed")
"""The order of a list that is sorted by status."""


class Shape(Struct, kw_only=True, omit_defaults=True):
    """A JSON object; fields with their default value are left out."""


# The head of a run


class Rate(Shape):
    """A share, its 95 % interval where that is known, and both in words: `82 % ± 6`."""

    share: float
    text: str
    low: float | None = None
    high: float | None = None


class Spent(Shape):
    """What the models of one role used and cost; a cost of null is unknown."""

    role: Literal["agent", "user", "judge"]
    models: dict[str, int]
    cost: float | None = None
    tokens: tuple[int, int] | None = None
    """Read and written."""


class MetricLine(Shape):
    """A metric over all trials; `members` has a line for each set of arguments, if there are several."""

    name: str
    passed: int = 0
    measured: int = 0
    not_applicable: int = 0
    unmeasured: int = 0
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    bins: list[int] = []
    """How many scores fall into each tenth from 0 to 1; the last one includes 1."""
    members: list["MetricLine"] = []


class TagLine(Shape):
    """The trials of all cases that carry a tag."""

    name: str
    total: int
    passed: int
    evaluated: int
    rate: Rate | None = None
    cost: float | None = None


class NodeLine(Shape):
    """What the models of one node of the agent used and cost."""

    node: str
    calls: int
    models: list[str]
    tokens: tuple[int, int] | None = None
    cost: float | None = None
    known_cost: float = 0.0
    """The minimum cost, if the exact cost is unknown."""


class Reason(Shape):
    """A reason that several trials fell short for, and how many of them."""

    text: str
    count: int
    status: str


class GateLine(Shape):
    """The quality gate's verdict on the run."""

    passed: bool
    exit_code: int
    missed: list[str] = []


class Steady(Shape):
    """pass^k: the chance that `k` trials of a case all pass, over all cases."""

    k: int
    share: float


class Head(Shape):
    """Everything about a run except its cases: `GET /api/runs/{run}`.

    While a run is in progress, the head is rebuilt from the finished trials.
    """

    title: str
    run: str = ""
    evalset: str = ""
    agent: str = ""
    digest: str = ""
    """Of the agent."""
    model: str = ""
    """The model that answers in place of the agent's own."""
    state: RunState = "finished"
    begun: float | None = None
    """Seconds since the epoch."""
    seconds: float = 0.0
    cases: int = 0
    trials: int = 0
    """How many trials are done."""
    planned: int = 0
    """How many trials the run should make, while it is not finished."""
    counts: dict[CaseStatus, int] = {}
    """Cases by how they ended: what the header shows, and what each choice of status lists."""
    passed: int = 0
    """Trials that passed, of those that were `evaluated`."""
    evaluated: int = 0
    rate: Rate | None = None
    steady: Steady | None = None
    cost: float | None = None
    """Agent, users and judges together; null if a price is unknown."""
    spent: list[Spent] = []
    metrics: list[MetricLine] = []
    tags: list[TagLine] = []
    nodes: list[NodeLine] = []
    why: list[Reason] = []
    """Equal reasons together, the most frequent first."""
    notes: list[str] = []
    gate: GateLine | None = None
    compared: "Compared | None" = None
    left_out: dict[str, int] = {}
    """How many `metrics`, `tags` and `nodes` are not listed, where there are very many."""
    choices: dict[str, dict[str, int]] = {}
    """For `tag`, `metric` and `change`: each value and how many cases it lists."""
    at: int | None = None
    """The store's position at which this was read; None in a file."""


# The list of cases


class Query(Shape):
    """What a list is narrowed to, and its order; the parameters of `GET /api/runs/{run}/rows`."""

    q: str = ""
    """Words that must all be in the id, the name, the tags, the reasons or what was said."""
    status: list[CaseStatus] = []
    tag: list[str] = []
    metric: list[str] = []
    """Metrics without their arguments that a trial missed or could not be measured by."""
    change: list[str] = []
    """Verdicts of the comparison."""
    min_s: float | None = None
    """Cases whose trials together took at least this many seconds."""
    min_cost: float | None = None
    sort: Sort = "status"
    down: bool = False
    """Reverse order; unknown values come last either way, and equal ones keep the run's order."""


class Trial(Shape, gc=False):
    """One trial of a case in the list."""

    n: int
    status: str
    score: float | None = None
    """The mean of its scores; none of a trial that broke."""
    s: float | None = None
    cost: float | None = None
    """Agent, user and judges together."""
    turns: int | None = None
    why: str = ""
    pack: tuple[int, int] | None = None
    """In a file: where its story is packed."""


class Row(Shape, gc=False):  # a list may have a hundred thousand, which hold no cycles
    """One case in the list, with all its trials."""

    id: str
    status: CaseStatus
    trials: tuple[Trial, ...]
    place: int = 0
    """Its position in the run."""
    name: str = ""
    tags: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    """Metrics without their arguments that a trial missed or could not be measured by."""
    change: str = ""
    score: float | None = None
    """The mean over its trials; none if one of them broke."""
    s: float | None = None
    """All trials together."""
    cost: float | None = None
    why: str = ""
    """Why the first of its worst trials fell short."""


class Rows(Shape):
    """Some rows of a list: `GET /api/runs/{run}/rows?…&from=&count=&around=` (count at most 500).

    With `around` they begin at the multiple of `count` that contains that case, if it is listed.
    """

    total: int
    """How many cases match the query in total."""
    rows: list[Row]
    first: int = 0
    """The place of the first of them."""
    place: int = -1
    """The position of the requested case; -1 if it is not listed, or none was requested."""
    at: int | None = None


class Progress(Shape):
    """How much of a run the server has read: `GET /api/runs/{run}/progress`."""

    read: int
    trials: int


# One trial


class Part(Shape):
    """A node of the agent's graph, and what happened to it in one trial; the picture is nested as the graph is."""

    kind: str
    """agent, step, sequence, parallel, race, map_over, fallback, route, loop, timeout, approved, team …"""
    name: str
    id: str = ""
    label: str = ""
    """What a structure does, in words: `route on intent`, `until done, at most 3 rounds`."""
    key: str = ""
    """The label of the edge that leads to it: the choice of a route, `yes`, `if that fails`."""
    model: str = ""
    tools: list[tuple[str, int]] = []
    """Each tool, and how often it was called."""
    parts: list["Part"] = []
    visits: int = 0
    s: float | None = None
    cost: float | None = None
    trouble: str = ""
    """`1 failed`, `1 not finished`."""


class BesideRow(Shape):
    """Two events of two timelines that belong together, by their places; None where one side has none."""

    a: int | None = None
    b: int | None = None
    differs: Literal["", "words", "act"] = ""
    """`words`: something else was said; `act`: something else was done."""


class Beside(Shape):
    """Two trials next to each other; `words` and `act` are the places of the first row that differs so."""

    rows: list[BesideRow]
    words: int | None = None
    act: int | None = None


class Earlier(Shape):
    """A trial of the baseline next to this one."""

    n: int
    status: str
    why: str = ""
    timeline: list[dict[str, Json]] = []
    beside: Beside | None = None


class Story(Shape):
    """Everything about one trial: `GET /api/runs/{run}/story?case=&trial=`.

    A running trial has a story as well: `going`, without scores. `timeline` is described in
    `greenroom.reports.page.timeline`.
    """

    ended: str | None = None
    going: bool = False
    error: Json = None
    notes: list[str] = []
    trace: tuple[str, str] | None = None
    """The id of the trace, and where it can be looked at."""
    blame: tuple[str, list[str]] | None = None
    scores: list[tuple[str, Json]] = []
    """Each metric with its outcome; those that need a look come first."""
    differences: list[dict[str, Json]] = []
    """Expected next to actual: turn, part, expected, actual."""
    before: list[dict[str, Json]] = []
    """The trials of the baseline: n, status, scores, why."""
    earlier: Earlier | None = None
    parted: str = ""
    """Of a flaky case: where a trial that passed and one that did not part."""
    spent: list[Spent] = []
    timeline: list[dict[str, Json]] = []
    brief: bool = False
    """Whether only the trajectory was kept, without the ledger."""
    state: list[tuple[str, Json]] = []
    """The places of the state and their values as the trial began."""
    graph: Part | None = None
    case: Json = None
    cuts: int = 0
    """How many long values were shortened."""


class EventDetails(Shape):
    """One event as it is recorded: `GET /api/runs/{run}/event?case=&trial=&seq=`."""

    event: Json
    state: list[tuple[str, Json]] = []
    """The places of the state and their values after it."""
    trace: tuple[str, str] | None = None
    """The ids of its trace and its span, where spans were written."""
    attributes: dict[str, Json] = {}
    """Those of its span."""


# Two runs


class Moved(Shape):
    """A mean, then and now."""

    name: str
    before: float
    now: float


class CaseMoved(Shape):
    """How one case changed since the baseline."""

    id: str
    before: dict[str, int] = {}
    """Trials by status, on both sides and when it was run again."""
    now: dict[str, int] = {}
    again: dict[str, int] = {}
    metrics: list[Moved] = []
    why: str = ""


class Verdicts(Shape):
    """The cases of one verdict; of very many the first, and how many there are."""

    verdict: str
    count: int
    cases: list[CaseMoved]


class Compared(Shape):
    """What changed since a baseline, and how sure that is; all sentences are the comparison's own.

    `GET /api/compare?a=&b=` answers with the head of b in which `compared` is a; its rows come from
    `/api/compare/rows?a=&b=&…` and its stories from
    `/api/compare/story?a=&b=&case=&trial_a=&trial_b=` (with `earlier`).
    """

    against: str
    says: str
    before: float | None = None
    now: float | None = None
    cost: tuple[float, float] | None = None
    seconds: tuple[float, float] | None = None
    worse: list[str] = []
    remarks: list[str] = []
    verdicts: list[Verdicts] = []
    unchanged: int = 0


# Pages of the web


class RunLine(Shape):
    """One run in the list of runs."""

    id: str
    name: str
    evalset: str
    agent: str
    state: RunState
    begun: float
    digest: str = ""
    set_digest: str = ""
    seconds: float = 0.0
    cases: int = 0
    trials: int = 0
    """How many are done."""
    planned: int = 0
    counts: dict[str, int] = {}
    """Trials by how they ended."""
    rate: Rate | None = None
    cost: float | None = None
    notes: list[str] = []
    mine: bool = False
    """Whether this server started it, and so can stop it."""
    by: str = ""
    """Who began it."""
    commit: str = ""
    """The commit of the code that it ran."""
    against: str = ""
    """The baseline for which cases were run again, if there was one."""


class Runs(Shape):
    """`GET /api/runs?set=&agent=&before=&limit=`; `next` is the `before` of the next page."""

    runs: list[RunLine]
    sets: list[str] = []
    agents: list[str] = []
    next: str = ""
    at: int | None = None


class TrendPoint(Shape):
    """One finished run of a set: `GET /api/trend?set=` answers `{"points": […]}`, the oldest first."""

    run: str
    begun: float
    rate: float
    low: float | None = None
    high: float | None = None
    cost: float | None = None
    seconds: float = 0.0
    digest: str = ""
    set_digest: str = ""


class SetLine(Shape):
    """An eval set that the server was started with."""

    id: str
    name: str
    cases: int
    evalset: str = ""
    """The set's own id: its runs have this name."""
    problems: int = 0
    writable: bool = True
    why: str = ""
    """Why it cannot be edited here, if so."""


class AgentLine(Shape):
    """An agent that the server was started with, by its number."""

    n: int
    ref: str
    name: str


class Child(Shape):
    """A command that the server runs or has run: `GET /api/children/{id}`, and what starting one answers."""

    id: str
    command: str
    state: Literal["waiting", "running", "ended"]
    run: str = ""
    exit_code: int | None = None
    said: str = ""
    """The end of what it printed."""


class Here(Shape):
    """What this server is and may do: `GET /api/here`."""

    version: str
    store: str
    read_only: bool = False
    user: str = ""
    """The user, if a proxy names them."""
    agents: list[AgentLine] = []
    sets: list[SetLine] = []
    children: list[Child] = []
    labels: list[str] = []
    """The label sets."""
    budget: float = 1.0
    """The most that one action may spend, in USD."""


class Flaw(Shape):
    """Something wrong in the text of an eval set."""

    text: str
    line: int | None = None
    column: int | None = None
    path: str = ""
    hint: str = ""


class SetCase(Shape):
    """A case of an eval set, and where it begins in the text."""

    id: str
    line: int | None = None
    name: str = ""
    tags: list[str] = []


class SetText(Shape):
    """`GET /api/sets/{id}`: the file as it is. Saved by `PUT` with `If-Match: digest`; 409 holds `theirs`, a SetText."""

    id: str
    name: str
    text: str
    digest: str
    shape: str
    writable: bool = True
    why: str = ""
    cases: list[SetCase] = []
    problems: list[Flaw] = []


class Checked(Shape):
    """`POST /api/sets/{id}/check` with `{"text": …}`: what is wrong with it, and its cases."""

    problems: list[Flaw]
    cases: list[SetCase] = []


class Estimated(Shape):
    """`POST /api/runs/plan`: what a run would cost, and the command it is.

    Asked with `{"agent": n, "set": id, "cases": [ids], "trials": n, "model": "", "budget": usd,
    "baseline": run}`; `POST /api/runs` with `{"plan": id, "code": [names]}` begins it, once and within ten
    minutes.
    """

    plan: str
    command: str
    cases: int
    trials: int
    cost: float | None = None
    cost_high: float | None = None
    seconds: float | None = None
    based_on: int = 0
    """How many earlier trials the estimate is based on."""
    warnings: list[str] = []
    code: list[str] = []
    """Python code that the set names and the run would import; `POST /api/runs` must name it too."""


class Command(Shape):
    """`GET /api/runs/{run}/stop` and `…/resume`: the command for what `POST` on the same route does."""

    command: str
    code: list[str] = []
    """Python code that the set names and the run would import; `POST` must name it too."""


class Waiting(Shape):
    """A question of the agent that waits for an answer, in Play."""

    id: str
    tool: str = ""
    prompt: str = ""
    args: Json = None


class Play(Shape):
    """A conversation in rehearsal: `GET /api/plays/{id}`; the answer of every action on it.

    `POST /api/plays` with `{"agent": n, "state": {}, "mocks": {}, "user": {}}`, or with `{"from": {"run",
    "case", "trial", "at"}}` to continue a recorded trial; then to `/api/plays/{id}/`: `say` `{"text"}`, `answer` `{"answers": {id: value}}`, `mocks` `{"mocks"}`,
    `simulate` `{}` (let the simulated user answer once), `fork` `{"at": seq, "mocks"}` (a new play),
    `case` `{"id", "set"}` (save it as a case of a set).
    """

    id: str
    agent: int
    name: str = ""
    state: Literal["resting", "working", "ended", "broken"] = "resting"
    timeline: list[dict[str, Json]] = []
    values: list[tuple[str, Json]] = []
    """The agent's state: its places and their values."""
    waits: list[Waiting] = []
    mocks: dict[str, Json] = {}
    tools: list[str] = []
    asking: list[str] = []
    """Those of them that leave their answer to the user."""
    missing: dict[str, Json] = {}
    """Tools that were refused because they have no mock, each with a mock that would work."""
    error: str = ""
    cost: float | None = None
    events: int = 0
    forked_from: str = ""
    changed: bool = False
    """Whether the agent's code has changed since it began."""


class AgentDetails(Shape):
    """`GET /api/agents/{n}`, and `GET /api/runs/{run}/agent` for the agent of a recorded run."""

    ref: str
    name: str
    graph: Part
    mermaid: str = ""
    issues: list[dict[str, Json]] = []
    """Contract issues: code, text, place, hint."""
    links: list[tuple[str, str, str]] = []
    """Data that goes from node to node: who writes, who reads, which place of the state."""
    estimate: str = ""
    why: str = ""
    """Why a part of it is missing."""


class LabelLine(Shape):
    """A set of trials to be graded, in the list that `GET /api/labels` answers."""

    name: str
    question: str = ""
    items: int = 0
    graded: dict[str, int] = {}
    """How many items each person has graded."""
    why: str = ""
    """Why it cannot be read, if so."""


class LabelItem(Shape):
    """`GET /api/labels/{set}/next?rater=`: a conversation to grade, without any verdict or name.

    `item` is empty when all are graded. A grade is `POST /api/labels/{set}/grades` with `{"item", "rater",
    "value", "note"}`; the last one counts, and a value of null takes it back. The answer is the next item.
    """

    question: str
    answers: list[str]
    item: str = ""
    timeline: list[dict[str, Json]] = []
    done: int = 0
    total: int = 0
    last: str = ""
    """What this person graded last, to be taken back."""
    command: str = ""
    """The command to type for the same in a terminal."""


class AgreementLine(Shape):
    """How far two agree: the judge is named as such."""

    who: tuple[str, str]
    says: str
    items: int
    kappa: float | None = None
    low: float | None = None
    high: float | None = None


class LabelApart(Shape):
    """An item on which the judge and a person disagree; shown to those who have graded everything."""

    item: str
    said: dict[str, str]
    run: str
    case: str
    trial: int


class AgreementPage(Shape):
    """`GET /api/labels/{set}/agreement?rater=`: only what this person may see and still grade blind.

    Sums are said once there are enough grades; what the judge and others say of an item, when all are graded.
    """

    lines: list[AgreementLine] = []
    notes: list[str] = []
    apart: list[LabelApart] = []
