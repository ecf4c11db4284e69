"""Greenroom over the shapes an agent can have: what one case of each costs.

Every model call is scripted and free, so what is left is the walk over the graph, the gate, the
ledger and the score.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_, rshift
from typing import Any

from scenario import CONCURRENCY
from stopwatch import WARM_UP, cpu_seconds

from greenroom import (
    Agent,
    Case,
    Scripted,
    Turn,
    UserAgents,
    call,
    evaluate,
    loop,
    simulate,
    tool,
)
from greenroom.ledger import ModelReplied
from greenroom.metrics import contains

DONE = "that is done"
SCORED = (contains(DONE),)


@tool(yields=True)
def ask(question: str) -> str:
    """Ask the user one question."""
    raise RuntimeError(f"never reached: the user answers {question!r}")


@dataclass(frozen=True, slots=True)
class Pattern:
    """An agent of some shape, and the case it plays."""

    agent: Any
    case: Callable[[str], Case]


def speaker(name: str, *lines: Any, **options: Any) -> Agent:
    """An agent that says these lines in turn."""
    return Agent(name, model=Scripted(*lines), **options)


def lines(count: int) -> list[str]:
    """Something to say, so many times, and the end."""
    return [*(f"line {number}" for number in range(1, count)), DONE]


def one_message(case_id: str) -> Case:
    """The user says one thing."""
    return Case(case_id, says="please do it", metrics=SCORED)


def ten_turns(case_id: str) -> Case:
    """The user says ten things."""
    script = [Turn(f"message {number}") for number in range(1, 11)]
    return Case(case_id, turns=script, metrics=SCORED)


def talkative_user(case_id: str) -> Case:
    """The user is an agent, who answers nine times after the first message."""
    user = UserAgents(loop=speaker("user", *(f"reply {number}" for number in range(1, 10))))
    return Case(case_id, says="message 1", metrics=SCORED, user=user)


def questioned_user(case_id: str) -> Case:
    """The user is an agent, who answers five questions that the agent's tool asks."""
    user = UserAgents(tools={"ask": speaker("user", *(f"reply {n}" for n in range(1, 6)))})
    return Case(case_id, says="please do it", metrics=SCORED, user=user)


def is_done(output: str) -> bool:
    """Whether the last line was said."""
    return output == DONE


def patterns() -> Mapping[str, Pattern]:
    """The shapes, simple ones first."""
    five = [speaker(name, DONE) for name in ("a", "b", "c", "d", "e")]
    ten = speaker("worker", *lines(10))
    questions = [call("ask", question=f"question {number}") for number in range(1, 6)]
    return {
        "one agent": Pattern(speaker("worker", DONE), one_message),
        "sequence of 5": Pattern(reduce(rshift, five), one_message),
        "parallel, 5": Pattern(reduce(or_, five), one_message),
        "loop of 10": Pattern(loop(ten, until=is_done), one_message),
        "10 turns, scripted user": Pattern(ten, ten_turns),
        "10 turns, user agent": Pattern(
            loop(ten, until=is_done, awaits_input=True), talkative_user
        ),
        "5 questions to a user agent": Pattern(
            speaker("worker", *questions, DONE, tools=[ask]), questioned_user
        ),
    }


async def measured(pattern: Pattern, count: int) -> dict[str, float]:
    """CPU per case, and what one case comes to in events and model calls."""
    ledger = await simulate(pattern.case("sample"), pattern.agent)
    await play(pattern, WARM_UP)
    cpu = cpu_seconds()
    await play(pattern, count)
    cpu = cpu_seconds() - cpu
    return {
        "cpu": cpu / count,
        "events": len(ledger),
        "model_calls": len(ledger.of(ModelReplied, voice=None)),
    }


async def play(pattern: Pattern, count: int) -> None:
    """Rehearse so many cases; all of them must pass."""
    cases = [pattern.case(f"case-{number}") for number in range(count)]
    report = await evaluate(
        pattern.agent, cases, concurrency=CONCURRENCY, keep_ledgers=False, store=False
    )
    if not report.passed:
        sys.exit(str(next(result for result in report if not result.passed)))


async def main(count: int) -> None:
    """Measure every pattern and print the figures as a line of JSON."""
    found = {name: await measured(pattern, count) for name, pattern in patterns().items()}
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
