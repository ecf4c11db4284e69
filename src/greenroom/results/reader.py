"""Results read back from JSON: everything is doubted here, and named with its place if it is wrong."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast, get_args

from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import BadFile, BadMetric, Phase
from greenroom.ledger.events import EndReason
from greenroom.ledger.messages import Usage
from greenroom.ledger.plain import Json
from greenroom.ledger.questions import Step, StepType
from greenroom.results.blame import Blame, Whom
from greenroom.results.data import KIND, VERSION
from greenroom.results.report import Report
from greenroom.results.result import CaseResult, LedgerSource, Problem, Status

T = TypeVar("T")


class _Part:
    """A mapping of a file, whose values are taken one by one, and which must not hold others."""

    def __init__(self, data: Json, where: str) -> None:
        if not isinstance(data, Mapping):
            raise BadFile(f"{where} is {_short(data)}, but should be a mapping.")
        self.data = cast("Mapping[str, Any]", data)
        self.where = where
        self._taken: set[str] = set()

    def value(self, name: str) -> Json:
        self._taken.add(name)
        if name not in self.data:
            raise BadFile(f"{self.where} has no `{name}`.")
        return self.data[name]

    def wrong(self, name: str, wanted: str) -> BadFile:
        return BadFile(
            f"{self.where}.{name} is {_short(self.data.get(name))}, but should be {wanted}."
        )

    def text(self, name: str) -> str:
        return self._typed(name, (str,), "a text")

    def whole(self, name: str) -> int:
        number = self._typed(name, (int,), "a whole number")
        if number < 0:
            raise self.wrong(name, "0 or more")
        return number

    def number(self, name: str) -> float:
        try:
            return float(self._typed(name, (int, float), "a number"))
        except OverflowError:
            raise self.wrong(name, "a number of reasonable size") from None

    def amount(self, name: str) -> float:
        if (number := self.number(name)) < 0:
            raise self.wrong(name, "0 or more")
        return number

    def truth(self, name: str) -> bool:
        return self._typed(name, (bool,), "true or false")

    def _typed(self, name: str, kinds: tuple[type, ...], wanted: str) -> Any:
        value = self.value(name)
        # Not isinstance: True is no number here, though Python says so.
        if type(value) not in kinds:
            raise self.wrong(name, wanted)
        return value

    def maybe(self, name: str, take: Callable[[str], T]) -> T | None:
        """What `take` finds, or None where the file says null."""
        return None if self.value(name) is None else take(name)

    def one_of(self, name: str, words: tuple[str, ...]) -> Any:
        if (value := self.value(name)) not in words or not isinstance(value, str):
            raise self.wrong(name, f"one of {', '.join(words)}")
        return value

    def list(self, name: str) -> list[Json]:
        value = self.value(name)
        if not isinstance(value, list):
            raise self.wrong(name, "a list")
        return cast("list[Json]", value)

    def texts(self, name: str) -> tuple[str, ...]:
        found = self.list(name)
        if not all(isinstance(text, str) for text in found):
            raise self.wrong(name, "a list of texts")
        return tuple(found)

    def part(self, name: str) -> "_Part":
        return _Part(self.value(name), f"{self.where}.{name}")

    def counts(self, name: str) -> dict[str, int]:
        part = self.part(name)
        return {key: part.whole(key) for key in part.data}

    def done(self, *others: str) -> None:
        """Refuse what nobody asked for: it would be lost in silence."""
        known = {*self._taken, *others}
        for name in self.data:
            if name not in known:
                raise BadFile(f"{self.where} has the unknown field {name!r}.")


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def report_from(data: Json, where: str) -> Report:
    """The report written down in `data`. What follows from its results is computed, not believed."""
    part = _Part(data, where)
    if part.data.get("kind") != KIND or part.data.get("version") != VERSION:
        kind, version = part.data.get("kind"), part.data.get("version")
        raise BadFile(
            f"{where} is {_short(kind)}, version {_short(version)}; a report is {KIND!r}, version "
            f"{VERSION}. Reports are written by report.save(...)."
        )
    if part.truth("failures_only"):
        raise BadFile(
            f"{where} holds failures only, so its counts cannot be found again. Save the whole "
            f"report: report.save(path)."
        )
    report = Report(
        [
            _result_from(item, f"{where}: results[{i}]")
            for i, item in enumerate(part.list("results"))
        ],
        name=part.text("name"),
        seconds=part.amount("seconds"),
        notes=part.texts("notes"),
        id=part.text("id"),
        evalset_id=part.text("evalset_id"),
        at=part.maybe("at", part.number),
        # What reports of earlier versions do not have.
        adaptive="adaptive" in part.data and part.truth("adaptive"),
        against=part.maybe("against", part.text) if "against" in part.data else None,
        confirmed=_confirmed_from(part) if "confirmed" in part.data else (),
    )
    part.done("kind", "version", "summary", "errors", "gate")
    return report


def _confirmed_from(part: _Part) -> tuple[CaseResult, ...]:
    found = enumerate(part.list("confirmed"))
    return tuple([_result_from(item, f"{part.where}: confirmed[{i}]") for i, item in found])


def _result_from(data: Json, where: str) -> CaseResult:
    part = _Part(data, where)
    result = CaseResult(
        **_verdict(part),
        asked=part.maybe("case", lambda name: part.part(name).data),
        steps=[
            _step_from(_Part(step, f"{where}.trajectory[{i}]"))
            for i, step in enumerate(part.list("trajectory"))
        ],
    )
    part.done("responses")
    return result


def verdict_from(data: Json, where: str, kept: LedgerSource | None, asks: str = "") -> CaseResult:
    """The result whose verdict was written down, and whose ledger is elsewhere, or nowhere."""
    part = _Part(data, where)
    asked = part.maybe("case", lambda name: part.part(name).data) if "case" in part.data else None
    result = CaseResult(**_verdict(part), asked=asked, kept=kept, asks=asks)
    part.done()
    return result


def _verdict(part: _Part) -> dict[str, Any]:
    return {
        "case_id": part.text("case_id"),
        "name": part.text("name"),
        "tags": part.texts("tags"),
        "trial": part.whole("trial"),
        "status": part.one_of("status", get_args(Status)),
        "scores": _scores_from(part.part("scores")),
        "ended": part.maybe("ended", lambda name: part.one_of(name, get_args(EndReason))),
        "error": part.maybe("error", lambda name: _problem_from(part.part(name))),
        "turns": part.whole("turns"),
        "seconds": part.amount("seconds"),
        "usage": _usage_from(part, "usage"),
        "cost": part.maybe("cost", part.amount),
        "user_usage": _usage_from(part, "user_usage"),
        "user_cost": part.maybe("user_cost", part.amount),
        "judge_usage": _usage_from(part, "judge_usage"),
        "judge_cost": part.maybe("judge_cost", part.amount),
        "models": part.counts("models"),
        "user_models": part.counts("user_models"),
        "judge_models": part.counts("judge_models"),
        "notes": part.texts("notes"),
        "fixed": "fixed" in part.data and part.truth("fixed"),
        "blamed": part.maybe("blame", lambda name: _blame_from(part.part(name))),
    }


def _scores_from(part: _Part) -> dict[str, Outcome]:
    return {name: _outcome_from(part.part(name)) for name in part.data}


def _outcome_from(part: _Part) -> Outcome:
    outcome = _outcome(part)
    part.done()
    return outcome


def _outcome(part: _Part) -> Outcome:
    if "not_applicable" in part.data:
        return NotApplicable(part.text("not_applicable"))
    if "unmeasured" in part.data:
        return Unmeasured(part.text("unmeasured"), part.one_of("phase", get_args(Phase)))
    try:
        return Score(
            part.number("score"),
            part.truth("passed"),
            threshold=part.maybe("threshold", part.number),
            reason=part.text("reason"),
            evidence=part.texts("evidence"),
            details=part.value("details"),
            measured=part.value("measured"),
            name=part.text("name"),
        )
    except BadMetric as error:
        raise BadFile(f"{part.where}: {error}") from error


def _problem_from(part: _Part) -> Problem:
    phase = part.one_of("phase", get_args(Phase))
    problem = Problem(phase, part.text("message"), part.text("type"))
    part.done()
    return problem


def _blame_from(part: _Part) -> Blame:
    found = Blame(part.one_of("whom", get_args(Whom)), part.texts("evidence"))
    part.done()
    return found


def _usage_from(whole: _Part, name: str) -> Usage | None:
    if whole.value(name) is None:
        return None
    part = whole.part(name)
    usage = Usage(part.whole("input"), part.whole("output"))
    part.done()
    return usage


def _step_from(part: _Part) -> Step:
    step = Step(
        part.one_of("type", get_args(StepType)),
        part.text("name"),
        part.value("args"),
        part.number("at"),
        part.amount("seconds"),
        part.value("details"),
    )
    part.done()
    return step
