"""What the store knows of a run: what was planned, how far it got, and its trials on their way in."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct, field

from greenroom.errors import StoreFailed
from greenroom.results.endings import Status
from greenroom.results.result import CaseResult, LedgerSource

T = TypeVar("T")

RunStatus = Literal["running", "interrupted", "finished"]
"""Whether a run goes on, was cut off, or has ended."""
COUNTED: tuple[str, ...] = (
    "passed",
    "failed",
    "error",
    "terminated",
    "skipped",
    "again",
    "unpriced",
    "cost",
)
"""The columns of a run that are sums over its trials."""
ASIDE = -1
"""The place of a trial whose case has changed, or is not among the cases: no report has it."""


class Plan(Struct, frozen=True, kw_only=True):
    """What a run set out to do, with digests by which a change of any part is noticed."""

    name: str = ""
    evalset_id: str = ""
    agent: str = ""
    """The agent as its author calls it: a reference, a name."""
    digest: str = ""
    """Changes with the agent; empty where each case brings its own."""
    set_digest: str = ""
    """Changes with any case; empty where the code of a case cannot be read."""
    metrics: Mapping[str, str] = field(default_factory=dict[str, str])
    """The digest of each metric of the run."""
    cases: int = 0
    trials: int = 1
    adaptive: bool = False
    """Whether as many trials are run as it takes, `trials` at most."""
    confirm: int = 0
    """How often a case that passed in the baseline and fails is run again at most."""
    against: str | None = None
    """The id of the report that it is compared with; None without a baseline."""
    reference: str = ""
    """Where the agent is found, if it was given so: `desk.py:agent`."""
    fence: str = ""
    """Who holds the fence besides each process: `kernel`, perhaps with hosts."""
    called: str = ""
    """The name by which the run is begun or resumed: `--resume-or-new nightly`."""
    shards: int = 0
    """How many processes share the run, each with a part of the cases; 0 if it is one's own."""
    by: str = ""
    """Who began it."""
    commit: str = ""
    """The commit of the code that it ran."""

    def changes(self, now: "Plan") -> list[str]:
        """What differs in `now` and would mix two things in one report; cases are compared elsewhere."""
        then, metrics = self.metrics, now.metrics
        found: list[str] = []
        if self.digest != now.digest:
            found.append(
                f"the agent has changed ({self.digest or 'none'}, now {now.digest or 'none'})"
            )
        if self.fence and not now.fence:
            found.append(f"the kernel held its fence (--fence {self.fence}), and does not now")
        for name, digest in then.items():
            if metrics.get(name, digest) != digest:
                found.append(f"metric {name!r} has changed")
        found += [f"metric {name!r} was added" for name in metrics if name not in then]
        found += [f"metric {name!r} was removed" for name in then if name not in metrics]
        return found


def plan_from(text: str) -> Plan:
    """The plan that a run was stored with. One that cannot be read must not hide the other runs."""
    try:
        return Plan(**_read(text))
    except (ValueError, TypeError):
        return Plan(name="(cannot be read)")


def _read(text: str) -> Any:
    try:
        # Lists of runs are long, and json takes four times as long.
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return json.loads(text)  # which reads lone surrogates, too


def notes_from(text: str) -> tuple[str, ...]:
    """The notes that a run was stored with; if they cannot be read, a note says so."""
    if text == "[]":
        return ()
    try:
        return tuple(map(str, _read(text)))
    except (ValueError, TypeError):
        return ("the notes of this run cannot be read",)


ReadVerdict = Callable[[str, object, LedgerSource | None, str], T]
"""Makes something of a verdict that is JSON text; its place as text, its ledger and what the case asks are given."""


def verdict_of(read: ReadVerdict[T], text: str, ledger: LedgerSource, asks: str) -> T:
    """What is read of the verdict that a trial was stored with; StoreFailed if it is not JSON."""
    try:
        return read(text, ledger, ledger if ledger.size else None, asks)
    except (ValueError, TypeError) as error:
        raise StoreFailed(
            f"{ledger}: the verdict in the store cannot be read: {error}. Restore an older copy of "
            f"the store, or delete the run."
        ) from error


class Run(Struct, frozen=True, kw_only=True):
    """One execution of a set, as the store remembers it."""

    id: str
    plan: Plan
    status: RunStatus
    begun: float
    """Seconds since the epoch."""
    ended: float | None = None
    seconds: float = 0.0
    """How long it worked; a run that was resumed has worked several times."""
    notes: Sequence[str] = ()
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many trials ended how."""
    again: int = 0
    """How many more trials were run of cases that passed in the baseline."""
    cost: float | None = 0.0
    """What agents, users and judges cost in USD; None if a price is unknown."""
    attempt: int = 1
    """How many processes have worked on it, one after the other."""
    begun_before: bool = False
    """Whether this process resumes what another began."""
    shard: str = ""
    """Which part of the cases this process runs, such as `2/4`; empty for all of them."""

    @property
    def total(self) -> int:
        """How many trials it set out to run; one that knew enough sooner needed fewer."""
        return self.done if self.status == "finished" else self.plan.cases * self.plan.trials

    @property
    def done(self) -> int:
        """How many trials are safe in the store."""
        return sum(self.counts.values())


def journal_name(run_id: str, shard: str = "") -> str:
    """What the journal of a run is called, or that of one of its shards."""
    return f"{run_id}.{shard.replace('/', '-')}" if shard else run_id


def journal_names(run_id: str, shards: int) -> list[str]:
    """What the journals of all processes are called that share a run."""
    parts = [f"{part}/{shards}" for part in range(1, shards + 1)]
    return [journal_name(run_id, part) for part in parts or [""]]


class Key(Struct, frozen=True, gc=False):
    """Which trial of which case."""

    case_id: str
    trial: int


class Change(Struct, frozen=True):
    """A row of the store that was written, of a run or of a trial, or a run that was deleted."""

    position: int
    """Where it stands among all changes of the store: higher than those committed before it."""
    kind: Literal["run", "trial", "deleted"]
    run_id: str
    key: Key | None = None
    status: str = ""


class Kept(Struct, frozen=True):
    """A finished trial in the store."""

    position: int
    place: int
    """Where it stands in the report; `ASIDE` if it stands in none."""
    key: Key
    result: CaseResult


class Row(Struct, frozen=True, kw_only=True):
    """A finished trial on its way into the store."""

    key: Key
    place: int
    """Where it stands in the report."""
    digest: str
    """Of the case as it was run; another case with this id has another one."""
    status: Status
    verdict: str
    """The result without what its ledger knows, as JSON."""
    ledger: bytes
    judging: bytes
    covers_code: bool = True
    """Whether the digest covers all code of the case: not if some of it cannot be read."""
    error_type: str | None = None
    cost: float | None = 0.0
    """What it cost in USD; None if a price is unknown."""
    spent: float = 0.0
    """What it cost as far as prices are known."""
    began: float = 0.0
    """When it began: two tries at one trial began at different times."""

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return len(self.verdict) + len(self.ledger) + len(self.judging)


def tally(plan: Plan, trials: Iterable[tuple[str, int, int, float | None]]) -> dict[str, float]:
    """The sums that a run keeps of its trials; each is its status, place, number and cost."""
    found: dict[str, float] = dict.fromkeys(COUNTED, 0)
    for status, place, trial, cost in trials:
        if place != ASIDE:
            found["again" if plan.confirm and trial > plan.trials else status] += 1
            found["unpriced"] += cost is None
            found["cost"] += cost or 0.0
    return found


def batches(rows: Iterable[Row], size: int, count: float = inf) -> Iterator[list[Row]]:
    """The rows, some at a time: as many as fit, and at least one."""
    some: list[Row] = []
    left = size
    for row in rows:
        taken = row.size
        if some and (taken > left or len(some) >= count):
            yield some
            some, left = [], size
        some.append(row)
        left -= taken
    if some:
        yield some
