"""What the store knows of a run: what was planned, and how far it got."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

from msgspec import Struct

from greenroom.errors import StoreFailed

RunStatus = Literal["running", "interrupted", "finished"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run set out to do, named so that a change of any part is noticed."""

    name: str = ""
    evalset_id: str = ""
    agent: str = ""
    """The agent as its author calls it: a reference, a name."""
    digest: str = ""
    """Changes with the agent; empty where each case brings its own."""
    metrics: Mapping[str, str] = field(default_factory=dict[str, str])
    """The digest of each metric of the run."""
    cases: int = 0
    trials: int = 1
    adaptive: bool = False
    """Whether as many trials are played as it takes, `trials` at most."""
    confirm: int = 0
    """How often a case that passed in the baseline and fails is played again at most."""
    against: str | None = None
    """The id of that baseline; None if no case is played again."""

    def changes(self, now: "Plan") -> list[str]:
        """What makes `now` another undertaking, in words; the cases are looked at one by one."""
        found: list[str] = []
        if self.digest != now.digest:
            found.append(
                f"the agent has changed ({self.digest or 'none'}, now {now.digest or 'none'})"
            )
        found += [
            f"metric {name!r} has changed" for name in self.metrics if _differ(self, now, name)
        ]
        found += [f"metric {name!r} was added" for name in now.metrics if name not in self.metrics]
        found += [
            f"metric {name!r} was removed" for name in self.metrics if name not in now.metrics
        ]
        return found


def plan_from(text: str) -> Plan:
    """The plan as it was written down; one that was torn is nobody's, and hides no other run."""
    try:
        return Plan(**json.loads(text))
    except (ValueError, TypeError):
        return Plan(name="(cannot be read)")


def notes_from(text: str) -> tuple[str, ...]:
    """The notes as they were written down; that they cannot be read is a note."""
    try:
        return tuple(map(str, json.loads(text)))
    except (ValueError, TypeError):
        return ("the notes of this run cannot be read",)


def verdict_text(text: str, where: str) -> Any:
    """The verdict of a trial as it was written down; StoreFailed if it was torn."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise StoreFailed(
            f"{where}: the verdict in the store cannot be read: {error}. Bring back an older copy of "
            f"the store, or delete the run."
        ) from error


def _differ(before: Plan, now: Plan, name: str) -> bool:
    return name in now.metrics and before.metrics[name] != now.metrics[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of a set, as the store remembers it."""

    id: str
    plan: Plan
    status: RunStatus
    begun: float
    """Seconds since the epoch."""
    ended: float | None = None
    seconds: float = 0.0
    """How long it worked; a run that was continued has worked several times."""
    notes: Sequence[str] = ()
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many trials ended how."""
    again: int = 0
    """How many trials more were played of cases that passed in the baseline."""
    begun_before: bool = False
    """Whether this process goes on with what another began."""

    @property
    def total(self) -> int:
        """How many trials it set out to play; one that found out sooner needed fewer."""
        return self.done if self.status == "finished" else self.plan.cases * self.plan.trials

    @property
    def done(self) -> int:
        """How many trials are safe in the store."""
        return sum(self.counts.values())


class Key(Struct, frozen=True):
    """Which trial of which case."""

    case_id: str
    trial: int


class Row(Struct, frozen=True, kw_only=True):
    """A finished trial on its way into the store."""

    key: Key
    position: int
    digest: str
    """The case as it was played; another case with this id has another one."""
    status: str
    verdict: str
    """The result without what its ledger knows, as JSON."""
    ledger: bytes
    judging: bytes

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return len(self.verdict) + len(self.ledger) + len(self.judging)


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
