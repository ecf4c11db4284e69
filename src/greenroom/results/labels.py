"""Trials that people grade without seeing the run's verdicts, as a folder of files.

`labels.json` says what is asked, `items.jsonl` which trials were drawn and the run's verdict on each,
`ledgers/` holds their conversations, and `grades.jsonl` what people said, line by line. Nothing else is
needed: deleting the run loses no human work.
"""

import fcntl
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from time import time
from typing import Literal, TypeVar, get_args

import msgspec
from msgspec import Struct, structs

from greenroom.cases.scores import Score
from greenroom.errors import BadFile, BadInput, NotFound
from greenroom.ledger.events import (
    AgentSaid,
    Answered,
    Event,
    ToolBlocked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    UserSaid,
    YieldOpened,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import is_object
from greenroom.ledger.questions import started
from greenroom.ledger.redaction import redactor
from greenroom.ledger.snapshots import Facts, as_facts, parts_of
from greenroom.ledger.text_files import bytes_of
from greenroom.results.comparisons.families import family
from greenroom.results.result import CaseResult
from greenroom.results.statistics.agreement import Agreement, agreement_between, alpha

Answer = Literal["yes", "no", "cannot tell"]
ANSWERS: tuple[Answer, ...] = get_args(Answer)
JUDGE = "the judge"
"""The name of the run's verdicts in a table with those of people."""
_CANNOT_TELL = "cannot tell"
_VERSION, _KIND = 1, "labels"
_LONGEST_NAME, _LONGEST_NOTE = 80, 2_000
_SETTINGS, _ITEMS, _GRADES, _LEDGERS = "labels.json", "items.jsonl", "grades.jsonl", "ledgers"

_SAID_AND_DONE = (
    UserSaid,
    AgentSaid,
    Answered,
    ToolCalled,
    ToolReturned,
    ToolFailed,
    ToolBlocked,
    YieldOpened,
)
_HIDDEN = "…"

L = TypeVar("L", bound=Struct)
E = TypeVar("E", bound=Event)


class Settings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What people are asked about every trial of a set."""

    version: int
    kind: str
    question: str
    metric: str = ""
    """The metric whose verdicts they are compared with; empty for those on whole trials."""
    seed: int = 0


class Item(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A trial that was drawn, and the run's verdict on it. Graders do not see this."""

    item: str
    run: str
    case: str
    trial: int
    passed: bool
    value: float | None = None
    metric: str = ""
    judge: str = ""
    """The digest of the metric then: another digest is another judge, and these grades say nothing about it."""


class Grade(Struct, frozen=True, kw_only=True):
    """What one person says about one item. Without a value, it withdraws an earlier grade."""

    item: str
    rater: str
    value: Answer | None = None
    note: str = ""
    at: float = 0.0


class LabelSet:
    """A folder of trials to be graded, with the grades. Any number of processes may add grades."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        place = self.folder / _SETTINGS
        self.settings = _decoded(bytes_of(place), Settings, str(place))
        if (self.settings.kind, self.settings.version) != (_KIND, _VERSION):
            raise BadFile(f"{place} is not a label set that this version of Greenroom can read.")
        place = self.folder / _ITEMS
        found = _lines(bytes_of(place), Item, str(place))
        if strange := [one.item for one in found if not one.item.isalnum()]:
            raise BadFile(
                f"{place}: {strange[0]!r} is not an id of an item: those are letters and digits."
            )
        self.items: Mapping[str, Item] = {one.item: one for one in found}
        """What was drawn, by its id."""
        if differ := [one.item for one in found if one != self.items[one.item]]:
            raise BadFile(
                f"{place}: two lines about item {differ[0]!r} differ. Remove the wrong one."
            )

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.name

    def ledger(self, item: str) -> Ledger:
        """What happened in a trial."""
        return Ledger.load(self.folder / _LEDGERS / f"{self._item(item)}.jsonl")

    def _item(self, item: str) -> str:
        if item not in self.items:
            raise NotFound(f"{str(self.folder)!r} has no item {item!r}.")
        return item

    # Grades

    def grades(self) -> list[Grade]:
        """The grades that count: the last of each person on each item, unless it was withdrawn."""
        last: dict[tuple[str, str], Grade] = {}
        place = self.folder / _GRADES
        for grade in _lines(_whole(bytes_of(place)), Grade, str(place)) if place.exists() else []:
            last.pop((grade.rater, grade.item), None)
            if grade.value is not None and grade.item in self.items:
                last[grade.rater, grade.item] = grade
        return list(last.values())

    def grade(self, item: str, rater: str, value: str | None, note: str = "") -> Grade:
        """Add a grade; it is on disk when this returns. None withdraws one, until the last item is graded."""
        known: dict[str, Answer] = {one: one for one in ANSWERS}
        if value is not None and value not in known:
            raise BadInput(f"{value!r} is not a grade. Use one of: {', '.join(ANSWERS)}.")
        if len(note) > _LONGEST_NOTE:
            raise BadInput(f"a note has at most {_LONGEST_NOTE:,} characters.")
        answer = None if value is None else known[value]
        name = rater_name(rater)
        if not self.left(name):
            return self._final(self._item(item), name, answer)
        note = redactor().text(note)
        found = Grade(item=self._item(item), rater=name, value=answer, note=note, at=time())
        _append(self.folder / _GRADES, msgspec.json.encode(found) + b"\n")
        return found

    def _final(self, item: str, rater: str, value: Answer | None) -> Grade:
        """The existing grade of a person who has graded all items, and so may have seen the verdicts."""
        [found] = [one for one in self.grades() if (one.item, one.rater) == (item, rater)]
        if found.value != value:
            said = "has graded all items and may have seen the verdicts, so these grades are final."
            raise BadInput(f"{rater!r} {said} To grade again, draw another set.")
        return found

    def left(self, rater: str) -> list[str]:
        """The items that this person has not graded yet, in a random order that is fixed for each person."""
        name, seed = rater_name(rater), self.settings.seed
        graded = {grade.item for grade in self.grades() if grade.rater == name}
        return sorted(self.items.keys() - graded, key=lambda item: _lot(seed, name, item))

    def said(self) -> dict[str, dict[str, str]]:
        """What each person says of each item; items they cannot judge are left out."""
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for grade in self.grades():
            if grade.value is not None and grade.value != _CANNOT_TELL:
                found[grade.rater][grade.item] = grade.value
        return dict(found)

    def agreements(self, rater: str = "") -> dict[tuple[str, str], Agreement]:
        """How far each pair agrees, people and the judge; with `rater`, only this person's pairs."""
        said = self.said()
        pairs = list(combinations([*said, JUDGE], 2))
        said[JUDGE] = self.verdicts()
        return {
            (a, b): agreement_between(said[a], said[b]) for a, b in pairs if rater in ("", a, b)
        }

    def alpha(self) -> float | None:
        """Krippendorff's alpha of all people together; None if it is undefined, or too few items are graded."""
        units: dict[str, list[str]] = defaultdict(list)
        for answers in self.said().values():
            for item, answer in answers.items():
                units[item].append(answer)
        return alpha(units.values())

    def verdicts(self) -> dict[str, str]:
        """The run's verdict on each item, as a grade."""
        return {name: "yes" if one.passed else "no" for name, one in self.items.items()}


def rater_name(given: str) -> str:
    """The name of a grader, if it is valid."""
    name = " ".join(given.split())
    if not name or len(name) > _LONGEST_NAME or not name.isprintable() or name == JUDGE:
        raise BadInput(
            f"{given[:_LONGEST_NAME]!r} cannot be the name of a person who grades. Use 1 to "
            f"{_LONGEST_NAME} visible characters."
        )
    return name


# Shown


def blind(ledger: Ledger) -> Ledger:
    """A trial as graders see it: what was said and done, without its agent, its models and how it ended."""
    first = started(ledger)
    names = set[str]() if first is None else {*_agent_names(as_facts(first.agent))} - {""}
    shown = Ledger()
    for event in ledger:
        if isinstance(event, _SAID_AND_DONE) and event.voice == "agent":
            shown.append(structs.replace(_without_names(event, names), seq=-1), event.at)
    return shown


def _agent_names(facts: Facts) -> Iterator[str]:
    """The names of an agent and of all its parts."""
    yield str(facts.get("name") or "")
    for part in parts_of(facts).values():
        yield from _agent_names(part)


def _without_names(event: E, names: Collection[str]) -> E:
    """Hide agent names in tool calls that hand over: transfer_to_billing, or agent_name="billing"."""
    changed: dict[str, object] = {}
    tool, args = getattr(event, "tool", ""), getattr(event, "args", None)
    if any(tool.endswith(f"_to_{name}") for name in names):
        changed["tool"] = f"{tool.rpartition('_to_')[0]}_to_{_HIDDEN}"
    if is_object(args):
        hidden = {key for key, said in args.items() if isinstance(said, str) and said in names}
        changed["args"] = {key: _HIDDEN if key in hidden else said for key, said in args.items()}
    return structs.replace(event, **changed)


# Drawn


class Drawn(Struct, frozen=True):
    """A trial of a run that may be graded."""

    run: str
    result: CaseResult
    judges: Mapping[str, str]
    """The digests of the metrics that measured it, by name."""


def draw_labels(
    folder: str | Path,
    trials: Iterable[Drawn],
    *,
    question: str,
    metric: str = "",
    count: int = 50,
    seed: int = 0,
) -> LabelSet:
    """Draw trials at random and write them into a new folder, for people to grade.

    Only trials with a verdict are drawn: of the metric, or as a whole if none is named. A second trial of a
    case comes only when every case has one.
    """
    target = Path(folder)
    if not question.strip():
        raise BadInput("say what people are asked, as in question='Is the agent polite?'.")
    if target.exists():
        raise BadInput(f"{str(target)!r} already exists. Name another folder, or remove it.")
    chosen = _chosen(trials, metric, count, seed)
    if not chosen:
        which = f"that {metric!r} has measured" if metric else "that passed or failed"
        raise BadInput(f"there is no trial {which} to draw from. Name another run or metric.")
    settings = Settings(
        version=_VERSION, kind=_KIND, question=question.strip(), metric=metric, seed=seed
    )
    try:
        (target / _LEDGERS).mkdir(parents=True)
    except OSError as error:
        raise BadFile(f"cannot write {str(target)!r}: {error.strerror}.") from error
    lines: list[bytes] = []
    for item, ledger in chosen:
        ledger.save(target / _LEDGERS / f"{item.item}.jsonl", redact=True)
        lines.append(msgspec.json.encode(redactor().value(item)) + b"\n")
    (target / _ITEMS).write_bytes(b"".join(lines))
    # Written last: without it, an interrupted folder is not a label set.
    (target / _SETTINGS).write_bytes(msgspec.json.format(msgspec.json.encode(settings)) + b"\n")
    return LabelSet(target)


def _chosen(
    trials: Iterable[Drawn], metric: str, count: int, seed: int
) -> list[tuple[Item, Ledger]]:
    """Trials drawn at random, each with its conversation."""
    cases: dict[tuple[str, str], list[tuple[str, Item, CaseResult]]] = defaultdict(list)
    for drawn in trials:
        item = _item(drawn, metric)
        if item is not None and drawn.result.kept is not None:
            lot = _lot(seed, "draw", item.item)
            cases[item.run, item.case].append((lot, item, drawn.result))
    ranked: list[tuple[int, str, Item, CaseResult]] = []
    for found in cases.values():
        found.sort(key=lambda one: one[0])
        ranked += [(rank, *one) for rank, one in enumerate(found)]
    ranked.sort(key=lambda one: one[:2])
    return [(item, result.ledger) for _, _, item, result in ranked[:count]]


def _item(drawn: Drawn, metric: str) -> Item | None:
    """The item for a trial; None if there is no verdict to compare with."""
    result, value = drawn.result, None
    if not metric:
        if result.status not in ("passed", "failed"):
            return None
        name, passed = "", result.status == "passed"
    else:
        scores = [(name, one) for name, one in result.scores.items() if isinstance(one, Score)]
        found = [(name, one) for name, one in scores if metric in (name, family(name))]
        if not found:
            return None
        name, value = found[0][0], min(one.value for _, one in found)
        passed = all(one.passed for _, one in found)
    place = (drawn.run, result.case_id, str(result.trial), metric)
    return Item(
        item=blake2b("\0".join(place).encode(), digest_size=6).hexdigest(),
        run=drawn.run,
        case=result.case_id,
        trial=result.trial,
        passed=passed,
        value=value,
        metric=name,
        judge=drawn.judges.get(name, ""),
    )


def _lot(seed: int, *words: str) -> str:
    return blake2b("\0".join((str(seed), *words)).encode(), digest_size=8).hexdigest()


# Files


def _decoded(line: bytes, shape: type[L], place: str) -> L:
    try:
        return msgspec.json.decode(line, type=shape)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadFile(f"{place}: {error}. Fix the line, or remove it.") from error


def _lines(data: bytes, shape: type[L], place: str) -> list[L]:
    numbered = enumerate(data.split(b"\n"), 1)
    return [_decoded(line, shape, f"{place}, line {n}") for n, line in numbered if line.strip()]


def _whole(data: bytes) -> bytes:
    """The whole lines of a file: a last one without a newline counts if it can be read.

    A process that was killed while it wrote leaves a torn line, which was never confirmed.
    """
    end = data.rfind(b"\n") + 1
    try:
        msgspec.json.decode(data[end:], type=Grade)
    except (msgspec.DecodeError, RecursionError):
        return data[:end]
    return data + b"\n"


def _append(place: Path, line: bytes) -> None:
    """Append a line to a file, atomically and synced to disk, even if other processes write to it."""
    is_new = not place.exists()
    with os.fdopen(os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = file.read()
        kept = _whole(before)
        file.truncate(min(len(kept), len(before)))
        file.seek(0, os.SEEK_END)
        file.write(kept[len(before) :] + line)
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        folder = os.open(place.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
