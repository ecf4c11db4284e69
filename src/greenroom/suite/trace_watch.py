"""Conversations of production scored as they come: what was counted is kept, and counted once.

Each conversation is one line of a journal, written when it is scored and read again at the start. A line
that was cut by a crash is no line: its conversation is scored again, and counts once.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from time import time
from typing import Any

from greenroom.cases.parts import MetricLike
from greenroom.cases.scores import Unmeasured
from greenroom.errors import BadInput
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.results.streams import Drift, StreamRate
from greenroom.results.text import percent
from greenroom.suite.trace_scores import score_traces
from greenroom.traces.readers import conversations
from greenroom.traces.records import Flaw, Imported
from greenroom.world.answers import AnswerCache

RATES = {
    "passing": "conversations pass",
    "unbroken": "conversations end without an error",
    "measured": "conversations can be measured",
}
"""What is counted of each conversation, and how it is said."""
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
    rates: dict[str, StreamRate] = field(default_factory=dict[str, StreamRate])
    drifts: dict[str, Drift] = field(default_factory=dict[str, Drift])
    counted: dict[str, str] = field(default_factory=dict[str, str])
    alarms: list[str] = field(default_factory=list[str])
    unread: set[str] = field(default_factory=set[str])
    spent: dict[int, float] = field(default_factory=dict[int, float])
    looked_at: frozenset[tuple[str, int]] = frozenset()

    def __post_init__(self) -> None:
        self.rates = {name: StreamRate() for name in RATES}
        self.drifts = {
            name: Drift(rate, self.patience) for name, rate in baseline_rates(self.baseline)
        }
        self.state.mkdir(parents=True, exist_ok=True)
        for line in self._lines():
            self._count(line)
        self.alarms.clear()  # those were said before

    @property
    def journal(self) -> Path:
        """Where each conversation is written down that was scored or left out."""
        return self.state / "conversations.jsonl"

    def _lines(self) -> Iterator[dict[str, Any]]:
        if not self.journal.exists():
            return
        raw = self.journal.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]
        if len(whole) != len(raw):  # cut while it was written
            with self.journal.open("r+b") as file:
                file.truncate(len(whole))
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                found = json.loads(line)
            except ValueError as error:
                raise BadInput(
                    f"{self.journal}, line {number} is no line of a watch: {error}. Name another --state."
                ) from error
            yield found

    async def look(self) -> list[tuple[Imported, CaseResult]]:
        """Score what is new and has settled; returns what was scored."""
        files = sorted(self._settled())
        known = frozenset((str(file), file.stat().st_mtime_ns) for file in files)
        if known == self.looked_at:
            return []
        self.looked_at = known
        found: list[Imported] = []
        self.unread.clear()
        for one in conversations(files, self.reader) if files else ():
            if isinstance(one, Flaw):
                self.unread.add(str(one))
            elif one.conversation not in self.counted:
                found.append(one)
        scored: list[tuple[Imported, CaseResult]] = []
        for one in found:
            if one.conversation in self.counted:
                continue
            if not is_sampled(one.conversation, self.share):
                self._write({"conversation": one.conversation, "status": "not sampled"})
                continue
            result = await self._scored(one)
            scored.append((one, result))
        return scored

    def _settled(self) -> Iterator[Path]:
        """The files to which nothing was added for a while."""
        now = time()
        inbox = self.state / "inbox"
        for path in self.folder.rglob("*"):
            is_ours = self.state in path.parents and inbox not in path.parents
            if path.name.startswith(".") or is_ours or not path.is_file():
                continue
            if now - path.stat().st_mtime >= self.settle:
                yield path

    async def _scored(self, one: Imported) -> CaseResult:
        today = int(time() // _DAY)
        over = self.budget is not None and self.spent.get(today, 0.0) >= self.budget
        if over:
            why = Unmeasured("the budget of the day is used up")
            result = CaseResult(
                case_id=one.conversation, status="error", scores={"budget": why}, kept=one.ledger
            )
        else:
            report = await score_traces([one], metrics=self.metrics, cache=AnswerCache())
            (result,) = report.results
        line = {
            "conversation": one.conversation,
            "at": time(),
            "status": result.status,
            "broke": result.broke,
            "measured": not any(isinstance(o, Unmeasured) for o in result.scores.values()),
            "judges": result.judge_cost or 0.0,
        }
        self._write(line)
        return result

    def _write(self, line: dict[str, Any]) -> None:
        """Keep a line for good, then count it: the other way round, a crash could count it twice."""
        data = json.dumps(line).encode() + b"\n"
        with self.journal.open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self._count(line)

    def _count(self, line: dict[str, Any]) -> None:
        status = str(line["status"])
        if line["conversation"] in self.counted:
            return
        self.counted[line["conversation"]] = status
        if status == "not sampled":
            return
        day = int(float(line.get("at", 0)) // _DAY)
        self.spent[day] = self.spent.get(day, 0.0) + float(line.get("judges", 0.0))
        broke, is_measured = bool(line.get("broke")), bool(line.get("measured"))
        self._add("unbroken", not broke)
        if not broke:
            self._add("measured", is_measured)
        if status in ("passed", "failed", "terminated"):
            self._add("passing", status == "passed")

    def _add(self, name: str, holds: bool) -> None:
        self.rates[name].add(holds)
        drift = self.drifts.get(name)
        if drift is not None and drift.add(holds):
            told = self.told(name)
            self.alarms.append(f"ALARM: fewer {RATES[name]} than in the baseline: {told}")

    def told(self, name: str) -> str:
        """A rate with its interval, in words."""
        rate = self.rates[name]
        interval, share = rate.interval(), rate.share
        if interval is None or share is None:
            return "none yet"
        return f"{percent(share)} of {rate.total} ({percent(interval.low)} to {percent(interval.high)})"


def baseline_rates(report: Report | None) -> Iterable[tuple[str, float]]:
    """The least rates that a baseline speaks for: the low ends of their intervals."""
    if report is None:
        return
    results = report.results
    counted = {name: StreamRate() for name in RATES}
    for result in results:
        counted["unbroken"].add(not result.broke)
        if not result.broke:
            lacks = any(isinstance(one, Unmeasured) for one in result.scores.values())
            counted["measured"].add(not lacks)
        if result.status in ("passed", "failed", "terminated"):
            counted["passing"].add(result.status == "passed")
    for name, rate in counted.items():
        if (interval := rate.interval()) is not None:
            yield name, interval.low


def is_sampled(conversation: str, share: float) -> bool:
    """Whether a conversation is scored: by its id, so the same everywhere and every time."""
    digest = blake2b(conversation.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) < share * 2**64
