"""What the store knows about a run: its plan, its progress, and the trials to be stored."""

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
"""Whether a run is in progress, was interrupted, or has ended."""
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
"""The place of a trial whose case has changed or was removed: it is in no report."""


class Plan(Struct, frozen=True, kw_only=True):
    """The plan of a run, with digests that reveal a change of any part."""

    name: str = ""
    evalset_id: str = ""
    agent: str = ""
    """The agent as it was given: a reference, or a name."""
    digest: str = ""
    """A digest of the agent; empty if each case brings its own."""
    set_digest: str = ""
    """A digest of all cases; empty if the code of a case cannot be read."""
    metrics: Mapping[str, str] = field(default_factory=dict[str, str])
    """The digest of each metric of the run."""
    cases: int = 0
    trials: int = 1
    adaptive: bool = False
    """Whether the run is adaptive: as many trials as needed, at most `trials`."""
    confirm: int = 0
    """The most times that a case that passed in the baseline and now fails is run again."""
    against: str | None = None
    """The id of the report that it is compared with; None without a baseline."""
    reference: str = ""
    """The agent's reference, if it was given as one: `desk.py:agent`."""
    model: str = ""
    """What answered in place of the agent's own models, if it was given by name: `desk.py:model`."""
    fence: str = ""
    """What enforces the fence in addition to each process: `kernel`, perhaps with hosts."""
    called: str = ""
    """The name by which the run is begun or resumed: `--resume-or-new nightly`."""
    shards: int = 0
    """How many processes share the run, each with a part of the cases; 0 if it is not shared."""
    around: Mapping[str, str] | None = None
    """The digest of all middleware and hooks that may change results; None if an earlier version began it."""
    by: str = ""
    """Who began it."""
    commit: str = ""
    """The commit of the code that it ran."""

    def changes(self, now: "Plan") -> list[str]:
        """The differences to `now` that would mix two things in one report; cases are compared elsewhere."""
        then, metrics = self.metrics, now.metrics
        found: list[str] = []
        if self.digest != now.digest:
            found.append(
                f"the agent has changed ({self.digest or 'none'}, now {now.digest or 'none'})"
            )
        if self.fence and not now.fence:
            found.append(f"the kernel enforced its fence (--fence {self.fence}), and now does not")
        for name, digest in then.items():
            if metrics.get(name, digest) != digest:
                found.append(f"metric {name!r} has changed")
        found += [f"metric {name!r} was added" for name in metrics if name not in then]
        found += [f"metric {name!r} was removed" for name in then if name not in metrics]
        if self.around is not None and now.around is not None:
            then, around = self.around, now.around
            found += [f"{n} has changed" for n in then if around.get(n, then[n]) != then[n]]
            found += [f"{name} was added" for name in around if name not in then]
            found += [f"{name} was removed" for name in then if name not in around]
        return found


def plan_from(text: str) -> Plan:
    """The plan that a run was stored with. One that cannot be read must not hide the other runs."""
    try:
        return Plan(**_read(text))
    except (ValueError, TypeError):
        return Plan(name="(cannot be read)")


def _read(text: str) -> Any:
    try:
        # Lists of runs are long, and the json module takes four times as long.
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return json.loads(text)  # json also reads lone surrogates


def notes_from(text: str) -> tuple[str, ...]:
    """The notes that a run was stored with; if they cannot be read, a note says so."""
    if text == "[]":
        return ()
    try:
        return tuple(map(str, _read(text)))
    except (ValueError, TypeError):
        return ("the notes of this run cannot be read",)


ReadVerdict = Callable[[str, object, LedgerSource | None, str], T]
"""Converts a verdict from JSON text; also given: its place as text, its ledger and its case's digest."""


def verdict_of(read: ReadVerdict[T], text: str, ledger: LedgerSource, asks: str) -> T:
    """The stored verdict of a trial, converted; StoreFailed if it is not JSON."""
    try:
        return read(text, ledger, ledger if ledger.size else None, asks)
    except (ValueError, TypeError) as error:
        raise StoreFailed(
            f"{ledger}: the verdict in the store cannot be read: {error}. Restore an older copy of "
            f"the store, or delete the run."
        ) from error


class Run(Struct, frozen=True, kw_only=True):
    """One execution of a set, as the store has it."""

    id: str
    plan: Plan
    status: RunStatus
    begun: float
    """Seconds since the epoch."""
    ended: float | None = None
    seconds: float = 0.0
    """How long it was active, over all processes that resumed it."""
    notes: Sequence[str] = ()
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many trials ended in each status."""
    again: int = 0
    """How many more trials were run of cases that passed in the baseline."""
    cost: float | None = 0.0
    """What agents, users and judges cost in USD; None if a price is unknown."""
    attempt: int = 1
    """How many processes have worked on it, one after the other."""
    begun_before: bool = False
    """Whether this process resumes what another started."""
    shard: str = ""
    """Which part of the cases this process runs, such as `2/4`; empty for all of them."""

    @property
    def total(self) -> int:
        """How many trials are planned; an adaptive run may need fewer."""
        return self.done if self.status == "finished" else self.plan.cases * self.plan.trials

    @property
    def done(self) -> int:
        """How many trials are safe in the store."""
        return sum(self.counts.values())


def journal_name(run_id: str, shard: str = "") -> str:
    """The name of a run's journal, or of one of its shards'."""
    return f"{run_id}.{shard.replace('/', '-')}" if shard else run_id


def journal_names(run_id: str, shards: int) -> list[str]:
    """The names of the journals of all processes that share a run."""
    parts = [f"{part}/{shards}" for part in range(1, shards + 1)]
    return [journal_name(run_id, part) for part in parts or [""]]


class Key(Struct, frozen=True, gc=False):
    """Which trial of which case."""

    case_id: str
    trial: int


class Change(Struct, frozen=True):
    """A change in the store: a run or a trial was written, or a run was deleted."""

    position: int
    """Its position among all changes of the store: higher than those committed before it."""
    kind: Literal["run", "trial", "deleted"]
    run_id: str
    key: Key | None = None
    status: str = ""


class Kept(Struct, frozen=True):
    """A finished trial in the store."""

    position: int
    place: int
    """Its place in the report; `ASIDE` if it is in none."""
    key: Key
    result: CaseResult


class Row(Struct, frozen=True, kw_only=True):
    """A finished trial to be stored."""

    key: Key
    place: int
    """Its place in the report."""
    digest: str
    """The digest of the case as it was run; a changed case with this id has a different one."""
    status: Status
    verdict: str
    """The result without what its ledger knows, as JSON."""
    ledger: bytes
    judging: bytes
    covers_code: bool = True
    """Whether the digest covers all code of the case; False if some of it cannot be read."""
    error_type: str | None = None
    cost: float | None = 0.0
    """What it cost in USD; None if a price is unknown."""
    spent: float = 0.0
    """The part of its cost whose prices are known."""
    began: float = 0.0
    """When it began: two attempts at one trial began at different times."""

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return len(self.verdict) + len(self.ledger) + len(self.judging)


def tally(plan: Plan, trials: Iterable[tuple[str, int, int, float | None]]) -> dict[str, float]:
    """The sums that a run keeps of its trials, each given by status, place, number and cost."""
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
