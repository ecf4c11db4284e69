"""Production conversations, scored as they arrive; each is recorded, and counted once.

Each conversation is one line of a journal, written when it is scored and read again at the start. A line
that a crash left incomplete is dropped: its conversation is scored again, and counts once.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf
from pathlib import Path
from time import time
from typing import Any

from greenroom.cases.parts import MetricLike
from greenroom.cases.scores import Unmeasured
from greenroom.errors import BadInput
from greenroom.ledger.events import Noted
from greenroom.ledger.plain import Json, is_object
from greenroom.ledger.private_folders import make_private
from greenroom.ledger.questions import TRACE, turns
from greenroom.metrics.scores import recorded_case
from greenroom.results.endings import EVALUATED
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.results.statistics.streams import Drift, StreamRate
from greenroom.results.text import percent
from greenroom.results.trial_verdict import concluded
from greenroom.suite.recorded.trace_scores import score_traces
from greenroom.suite.recorded.watched_files import WatchedFiles
from greenroom.traces.records import Flaw, Imported
from greenroom.world.answers import AnswerCache

RATES = {
    "passing": "conversations pass",
    "unbroken": "conversations end without an error",
    "measured": "conversations can be measured",
}
"""The rates that are watched, and the words for each in an alarm."""
_DAY = 86_400


@dataclass(slots=True)
class TraceWatch:
    """Scores what is new in a folder, and knows what it has counted."""

    folder: Path
    state: Path
    metrics: Sequence[MetricLike]
    baseline: Report | None = None
    share: float = 1.0
    budget: float | None = None
    patience: int = 10_000
    settle: float = 10.0
    reader: str = ""
    before_counting: Callable[[Imported, CaseResult], None] | None = None
    """Called with each result. After a crash it may be called again for the same one; none is left out."""
    rates: dict[str, StreamRate] = field(default_factory=dict[str, StreamRate])
    drifts: dict[str, Drift] = field(default_factory=dict[str, Drift])
    counted: dict[str, int | None] = field(default_factory=dict[str, int | None])
    """The conversations that were counted, with their turns then; None if they were left out."""
    traces: set[str] = field(default_factory=set[str])
    """The traces that were counted with them."""
    alarms: list[str] = field(default_factory=list[str])
    late: set[str] = field(default_factory=set[str])
    """The conversations that continued after they were counted."""
    spent: dict[int, float] = field(default_factory=dict[int, float])
    files: WatchedFiles = field(init=False)
    waiting: dict[str, tuple[Imported, float]] = field(
        default_factory=dict[str, tuple[Imported, float]]
    )
    """The conversations that are not counted yet, and since when nothing was added to them."""
    flaws: dict[str, float] = field(default_factory=dict[str, float])
    """The files that cannot be read, and since when."""

    def __post_init__(self) -> None:
        self.rates = {name: StreamRate() for name in RATES}
        self.drifts = {
            name: Drift(rate, self.patience) for name, rate in baseline_rates(self.baseline)
        }
        self.files = WatchedFiles(self.folder, self.state, self.reader)
        make_private(self.state)
        for line in self._lines():
            self._count(line)
        self.alarms.clear()  # they were reported before

    @property
    def journal(self) -> Path:
        """The file that records each conversation that was scored or left out."""
        return self.state / "conversations.jsonl"

    def _lines(self) -> Iterator[dict[str, Json]]:
        if not self.journal.exists():
            return
        raw = self.journal.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]
        if len(whole) != len(raw):  # the last line is incomplete: a crash interrupted it
            with self.journal.open("r+b") as file:
                file.truncate(len(whole))
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                found = json.loads(line)
            except ValueError as error:
                raise BadInput(
                    f"{self.journal}, line {number} is not a line of a watch: {error}. Name another --state."
                ) from error
            yield found

    async def look(self) -> list[tuple[Imported, CaseResult]]:
        """Score what is new and has settled; returns what was scored."""
        now = time()
        is_changed = self.files.refresh()
        if is_changed:
            self._take_in(min(self.files.newest, now))
        ready = [one for one, since in self.waiting.values() if now - since >= self.settle]
        scored: list[tuple[Imported, CaseResult]] = []
        for one in ready:
            if is_sampled(one.conversation, self.share):
                scored.append((one, await self._scored(one)))
            else:
                self._write(one, {"status": "not sampled"})
            del self.waiting[one.conversation]
        if ready or is_changed:
            open_traces = {name for one, _ in self.waiting.values() for name in _traces(one)}
            self.files.release(self.counted, self.traces - open_traces, until=now - self.settle)
        return scored

    @property
    def unread(self) -> set[str]:
        """The files that cannot be read and have not changed for a while."""
        now = time()
        return {why for why, since in self.flaws.items() if now - since >= self.settle}

    def _take_in(self, at: float) -> None:
        """Read the files as they are now; what has not changed since the last time keeps waiting."""
        found: dict[str, Imported] = {}
        flaws: list[str] = []
        for one in self.files.conversations():
            if isinstance(one, Flaw):
                flaws.append(str(one))
            elif one.conversation in self.counted:
                self._check_late(one)
            elif one.conversation in self.traces:
                continue  # what is left of a trace that was counted; its conversation is named elsewhere
            elif (known := found.get(one.conversation)) is None or len(known.ledger) < len(
                one.ledger
            ):
                found[one.conversation] = one
        before = self.waiting
        self.flaws = {why: min(self.flaws.get(why, at), at) for why in flaws}
        self.waiting = {}
        for name, one in found.items():
            known, since = before.get(name, (None, at))
            is_same = known is not None and list(known.ledger) == list(one.ledger)
            self.waiting[name] = (one, min(since, at) if is_same else at)

    def _check_late(self, one: Imported) -> None:
        turns_then, traces = self.counted[one.conversation], _traces(one)
        if turns_then is not None and (turns(one.ledger) > turns_then or traces - self.traces):
            self.late.add(one.conversation)
        self.traces |= traces

    async def _scored(self, one: Imported) -> CaseResult:
        spent = self.spent.get(int(time() // _DAY), 0.0)
        if self.budget is not None and spent >= self.budget:
            why = "the budget of the day is used up"
            if spent == inf:
                why = "the price of a judge is unknown, so the budget cannot be kept"
            result = concluded(recorded_case(one.ledger), one.ledger, {"budget": Unmeasured(why)})
        else:
            report = await score_traces([one], metrics=self.metrics, cache=AnswerCache())
            (result,) = report.results
        if self.before_counting is not None:
            self.before_counting(one, result)
        line = {
            "at": time(),
            "status": result.status,
            "broke": result.broke,
            "measured": not any(isinstance(o, Unmeasured) for o in result.scores.values()),
            "judges": result.judge_cost,
            "turns": turns(one.ledger),
        }
        self._write(one, line)
        return result

    def _write(self, one: Imported, line: dict[str, Any]) -> None:
        """Write a line to disk, then count it: the other way round, a crash could count it twice."""
        line = {"conversation": one.conversation, **line, "traces": sorted(_traces(one))}
        data = json.dumps(line).encode() + b"\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with os.fdopen(os.open(self.journal, flags, 0o600), "ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self._count(line)

    def _count(self, line: dict[str, Any]) -> None:
        status = str(line["status"])
        if line["conversation"] in self.counted:
            return
        self.counted[line["conversation"]] = line.get("turns")
        self.traces.update(line.get("traces", ()))
        if status == "not sampled":
            return
        day = int(float(line.get("at", 0)) // _DAY)
        cost = line.get("judges", 0.0)
        # An unknown price may be any amount, so the budget of that day can no longer be kept.
        self.spent[day] = self.spent.get(day, 0.0) + (inf if cost is None else float(cost))
        broke, is_measured = bool(line.get("broke")), bool(line.get("measured"))
        self._add("unbroken", not broke)
        if not broke:
            self._add("measured", is_measured)
        if status in EVALUATED:
            self._add("passing", status == "passed")

    def _add(self, name: str, holds: bool) -> None:
        self.rates[name].add(holds)
        drift = self.drifts.get(name)
        if drift is not None and drift.add(holds):
            rate_now = self.describe_rate(name)
            self.alarms.append(f"ALARM: fewer {RATES[name]} than in the baseline: {rate_now}")

    def describe_rate(self, name: str) -> str:
        """A rate with its interval, in words."""
        rate = self.rates[name]
        interval, share = rate.interval(), rate.share
        if interval is None or share is None:
            return "none yet"
        return f"{percent(share)} of {rate.total} ({percent(interval.low)} to {percent(interval.high)})"


def baseline_rates(report: Report | None) -> Iterable[tuple[str, float]]:
    """The lowest rates that agree with a baseline: the low ends of their intervals."""
    if report is None:
        return
    results = report.results
    counted = {name: StreamRate() for name in RATES}
    for result in results:
        counted["unbroken"].add(not result.broke)
        if not result.broke:
            lacks = any(isinstance(one, Unmeasured) for one in result.scores.values())
            counted["measured"].add(not lacks)
        if result.status in EVALUATED:
            counted["passing"].add(result.status == "passed")
    for name, rate in counted.items():
        if (interval := rate.interval()) is not None:
            yield name, interval.low


def _traces(one: Imported) -> set[str]:
    """The traces that a conversation was put together from."""
    notes = (note.data for note in one.ledger.of(Noted) if note.name == TRACE)
    return {str(data["trace_id"]) for data in notes if is_object(data) and "trace_id" in data}


def is_failure(result: CaseResult) -> bool:
    """Whether a conversation went wrong; one that could not be measured may have gone well."""
    return result.broke or result.status in ("failed", "terminated")


def is_sampled(conversation: str, share: float) -> bool:
    """Whether a conversation is scored: by its id, so the same everywhere and every time."""
    digest = blake2b(conversation.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) < share * 2**64
