"""What a case costs by the pattern of its agent, with scripted models: CPU for a trial, and for a model call of it.

Run it alone: `python benchmarks/patterns.py [CASES]`. Nothing is enforced; it shows where a pattern is dear.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from greenroom import Agent, Case, Scripted, call, loop, rehearse, route, step, tool
from greenroom.agents import map_over, race
from greenroom.metrics import contains

CASES, ROUNDS = 200, 3


@tool
def look(item: str) -> str:  # noqa: ARG001 - the model fills it
    """Look an item up."""
    raise AssertionError("a tool body ran")


def agent(name: str, *answers: Any, **options: Any) -> Agent:
    """An agent whose model says these, one after the other."""
    return Agent(name, model=Scripted(*answers), **options)


@step
def begin(state: Any) -> None:
    """Set what the other nodes read."""
    state.session["kind"], state.session["items"] = "billing", ["a", "b", "c"]
    state.session["rounds"] = 0


@step
def count(state: Any) -> None:
    """Count a round."""
    state.session["rounds"] += 1


PATTERNS: dict[str, tuple[Callable[[], Any], int]] = {
    "one agent": (lambda: agent("a", "Done."), 1),
    "one agent, a tool": (lambda: agent("a", call("look", item="cup"), "Done.", tools=[look]), 2),
    "sequence of three": (lambda: agent("a", "1") >> agent("b", "2") >> agent("c", "Done."), 3),
    "three at once": (
        lambda: (agent("a", "1") | agent("b", "2") | agent("c", "3")) >> agent("d", "Done."),
        4,
    ),
    "race of two": (lambda: race(agent("a", "Done."), agent("b", "Done.")), 2),
    "fallback": (lambda: agent("a", "Done.") // agent("b", "Done."), 1),
    "route": (
        lambda: (
            begin >> route("session.kind", billing=agent("a", "Done."), refund=agent("b", "No"))
        ),
        1,
    ),
    "loop of three rounds": (
        lambda: (
            begin
            >> loop(
                count, agent("a", "1", "2", "Done."), until={"session": {"rounds": 3}}, max_rounds=5
            )
        ),
        3,
    ),
    "map over three": (
        lambda: begin >> map_over(agent("a", "x"), "session.items") >> agent("b", "Done."),
        4,
    ),
    "hand-over": (
        lambda: agent("a", call("transfer_to_b"), handoffs=[agent("b", "Done.")]),
        2,
    ),
}
"""Each pattern, and how many model calls a trial makes."""


def seconds(made: Any, cases: list[Case]) -> float:
    """CPU for all cases; a pattern that does not pass measures nothing."""
    begun = time.process_time()
    report = rehearse(made, cases, store=False, keep_ledgers=False)
    took = time.process_time() - begun
    if not report.passed:
        sys.exit(f"not every case passed, so the figures would mean nothing:\n{report}")
    return took


def main() -> None:
    """Measure each pattern, and print a line for it."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else CASES
    cases = [
        Case(f"c{n}", "Cups?", mocks={"look": 3}, metrics=[contains("Done")]) for n in range(number)
    ]
    print(f"{'pattern':<22}{'µs a trial':>12}{'µs a model call':>18}")
    for name, (make, calls) in PATTERNS.items():
        made = make()
        mocked = cases
        if "tool" not in name:
            mocked = [Case(case.id, "Cups?", metrics=case.metrics) for case in cases]
        seconds(made, mocked[:10])
        took = min(seconds(made, mocked) for _ in range(ROUNDS)) / number * 1e6
        print(f"{name:<22}{took:>12.0f}{took / calls:>18.0f}")


if __name__ == "__main__":
    main()
