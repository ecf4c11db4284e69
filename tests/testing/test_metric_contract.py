"""The suite for metrics: ours pass it, and each way of being wrong is found."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from greenroom import Agent, Case, Expect, NotApplicable, Score, Scripted, Turn, call, tool
from greenroom.ledger import ToolCalled, responses
from greenroom.ledger.messages import Usage
from greenroom.metrics import (
    called,
    contains,
    cost_within,
    event_count,
    exact,
    forbidden_calls,
    keywords,
    matches,
    metric,
    node_sequence,
    reference_recall,
    response_match_score,
    tokens_within,
    tool_name_match,
    tool_trajectory_avg_score,
    turns_within,
)
from greenroom.models.model import ModelReply
from greenroom.testing import MetricContract, rehearsed
from greenroom.testing.metrics import Sample

TESTS = [name for name in vars(MetricContract) if name.startswith("test_")]


@tool
def refund(order: int) -> str:
    """Refund an order."""
    raise AssertionError("mocked")


@tool
def look_up(order: int) -> str:
    """Look an order up."""
    raise AssertionError("mocked")


MOCKS = {"refund": "ok", "look_up": "lost"}


def said(*replies: Any, expect: Expect | None = None, turns: int = 1, **options: Any) -> Sample:
    turn = Turn("Hi") if expect is None else Turn("Hi", expect=expect)
    case = Case("c", turns=[turn] * turns, mocks=MOCKS, **options)
    return rehearsed(case, Agent("clerk", model=Scripted(*replies), tools=[refund, look_up]))


REFUND, LOOK = call("refund", order=7), call("look_up", order=7)
DEAR = ModelReply("Done.", (), Usage(900, 200), 0.5)
CHEAP = ModelReply("Done.", (), Usage(9, 2), 0.001)
WANTED = Expect(tools=[LOOK, REFUND])
REFERENCE = Expect(reference="The order is lost.")


@metric(threshold=1.0)
def thanks(response: str) -> float:
    return 1.0 if "thank" in response.lower() else 0.25


class Counts:
    """The calls, counted from the ledger, as it says."""

    name = "counts"
    needs = frozenset({"tools"})

    def measure(self, case: Case, ledger: Any, world: Any) -> Score:
        return Score(bool(ledger.of(ToolCalled)), name=self.name)


OURS: dict[str, tuple[Callable[[], Any], Callable[[], Sample], Callable[[], Sample]]] = {
    "called": (lambda: called("refund"), lambda: said(REFUND, "ok"), lambda: said("no")),
    "forbidden_calls": (
        lambda: forbidden_calls("refund"),
        lambda: said(LOOK, "no"),
        lambda: said(REFUND, "ok"),
    ),
    "trajectory": (
        tool_trajectory_avg_score,
        lambda: said(LOOK, REFUND, "ok", expect=WANTED),
        lambda: said(REFUND, "ok", expect=WANTED),
    ),
    "names": (
        tool_name_match,
        lambda: said(LOOK, REFUND, "ok", expect=WANTED),
        lambda: said("ok", expect=WANTED),
    ),
    "contains": (lambda: contains("lost"), lambda: said("It is lost."), lambda: said("No.")),
    "exact": (lambda: exact("Lost."), lambda: said("Lost."), lambda: said("Found.")),
    "matches": (lambda: matches(r"\d+"), lambda: said("Order 7"), lambda: said("Order")),
    "keywords": (lambda: keywords("lost"), lambda: said("lost"), lambda: said("found")),
    "turns": (lambda: turns_within(1), lambda: said("a"), lambda: said("a", "b", turns=2)),
    "tokens": (lambda: tokens_within(100), lambda: said(CHEAP), lambda: said(DEAR)),
    "cost": (lambda: cost_within(0.01), lambda: said(CHEAP), lambda: said(DEAR)),
    "events": (
        lambda: event_count("tool_called", at_most=1),
        lambda: said(LOOK, "a"),
        lambda: said(LOOK, REFUND, "a"),
    ),
    "likeness": (
        response_match_score,
        lambda: said("The order is lost.", expect=REFERENCE),
        lambda: said("Nothing at all", expect=REFERENCE),
    ),
    "recall": (
        reference_recall,
        lambda: said("The order is lost.", expect=REFERENCE),
        lambda: said("Nothing at all", expect=REFERENCE),
    ),
    "nodes": (
        lambda: node_sequence(["clerk"]),
        lambda: said("a"),
        lambda: said("a", "b", turns=2),
    ),
    "function": (lambda: thanks, lambda: said("Thanks!"), lambda: said("No.")),
    "object": (Counts, lambda: said(REFUND, "ok"), lambda: said("no")),
}


def contract(
    make: Callable[[], Any], good: Callable[[], Sample], bad: Callable[[], Sample]
) -> MetricContract:
    class Made(MetricContract):
        def metric(self) -> Any:
            return make()

        def good(self) -> Sample:
            return good()

        def bad(self) -> Sample:
            return bad()

    return Made()


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("test", TESTS)
def test_our_own_metrics_pass(name: str, test: str) -> None:
    getattr(contract(*OURS[name]), test)()


# Wrong ones


class Wrong:
    """A metric that does what it should but for one thing."""

    name = "wrong"

    def measure(self, case: Case, ledger: Any, world: Any) -> Any:
        said = responses(ledger)
        return Score("thank" in said[-1].lower(), name="wrong") if said else NotApplicable("silent")


class Generous(Wrong):
    def measure(self, case: Case, ledger: Any, world: Any) -> Any:
        return Score(True, name="wrong")


class Nameless(Wrong):
    name = " "


class Renamed(Wrong):
    numbers = count()

    def __init__(self) -> None:
        self.name = f"wrong {next(self.numbers)}"


class Moody(Wrong):
    numbers = count()

    def measure(self, case: Case, ledger: Any, world: Any) -> Any:
        found = super().measure(case, ledger, world)
        return Score(found.passed, details={"n": next(self.numbers)}, name="wrong")


class Remembers(Wrong):
    """Keeps what belongs to one run in the object."""

    def __init__(self) -> None:
        self.last: Any = None

    def measure(self, case: Case, ledger: Any, world: Any) -> Any:
        before, self.last = self.last, responses(ledger)
        return super().measure(case, ledger, world) if before in (None, self.last) else Score(False)


class Edits(Wrong):
    def measure(self, case: Case, ledger: Any, world: Any) -> Any:
        for event in ledger.of(ToolCalled):
            event.args["seen"] = True
        return super().measure(case, ledger, world)


class Trusting(Wrong):
    def measure(self, case: Case, ledger: Any, world: Any) -> Any:
        return Score("thank" in responses(ledger)[0].lower(), name="wrong")


class TooMuch(Wrong):
    def measure(self, case: Case, ledger: Any, world: Any) -> Any:
        return 7 if responses(ledger) else 3.5


class Blind(Wrong):
    needs = frozenset[str]()

    def measure(self, case: Case, ledger: Any, world: Any) -> Any:
        return Score(not ledger.of(ToolCalled), name="wrong")


PASSES, NAME, SAME, AT_ONCE, LEAVES, LACKS, UNSEEN = TESTS


@pytest.mark.parametrize(
    "wrong, test",
    [
        (Generous, PASSES),
        (TooMuch, PASSES),
        (Nameless, NAME),
        (Renamed, NAME),
        (Moody, SAME),
        (Remembers, AT_ONCE),
        (Edits, LEAVES),
        (Trusting, LACKS),
        (TooMuch, LACKS),
        (Blind, UNSEEN),
    ],
)
def test_a_metric_that_is_wrong_fails(wrong: Callable[[], Any], test: str) -> None:
    def good() -> Sample:
        return said(LOOK, "Thank you.")

    def bad() -> Sample:
        return said(LOOK, "No.")

    getattr(contract(Wrong, good, bad), test)()
    with pytest.raises(Exception):  # noqa: B017, PT011 - each fails in its own way
        getattr(contract(wrong, good, bad), test)()
