"""Everything a run can be made of, with the digests by which it is known again in another process."""

import json
import sys
from typing import Any

from greenroom import (
    Agent,
    Bridge,
    Case,
    EvalSet,
    Expect,
    Lines,
    Scripted,
    SimulatedUser,
    Stop,
    Turn,
    UserAgents,
    call,
    fault,
    live,
    loop,
    route,
    step,
    tool,
    with_state_change,
)
from greenroom.backends.registry import backend_for
from greenroom.cases import by_args, in_turn
from greenroom.metrics import called, contains
from greenroom.metrics.judges import judge
from greenroom.suite.storage.identity import case_digest, plan_of


class Model:
    """A model that shows itself with its address."""

    name = "model"

    async def respond(self, request: Any, on_delta: Any = None) -> Any:
        raise AssertionError


class Polite:
    """A metric that is an object."""

    name = "polite"

    def __call__(self, ledger: Any) -> bool:
        return True


@tool
def look(key: str) -> str:
    """Look."""
    return key


@tool(yields=True)
def ask(question: str) -> str:
    """Ask."""
    return question


def mocked(key: str) -> str:
    return key


def passed_on(input: Any) -> Any:
    return input


def long_enough(ledger: Any) -> bool:
    return len(ledger) > 3


WORDS = {"alpha", "beta", "gamma", "delta"}
CASES = [
    Case("plain", "Hello"),
    Case("functions", "Hi", mocks={"look": mocked}, metrics=[long_enough, Polite()]),
    Case("lambdas", "Hi", mocks={"look": lambda key: key}, metrics=[lambda ledger: True]),
    Case("answers", "Hi", mocks={"look": in_turn("a", mocked, fault("no"))}),
    Case("by args", "Hi", mocks={"look": by_args(({"key": "a"}, mocked), otherwise=1)}),
    Case("live", "Hi", mocks={"look": live(look, hosts=["localhost"])}, allow_tools=[look]),
    Case("changes", "Hi", mocks={"look": with_state_change(1, {"s": {"x": 1}})}),
    Case("expecting", turns=[Turn("Hi", expect=Expect(tools=["look"], response="x"))]),
    Case("judged", "Hi", metrics=[judge("kind", "Is it?", model=Model()), called("look")]),
    Case("person", "Hi", user=SimulatedUser("Ill.", goal="Help", model=Model())),
    Case("script", "Hi", user=SimulatedUser("Ill.", model=Scripted(lambda r: "x", "y"))),
    Case("lines", "Hi", user=Lines("a", "b")),
    Case(
        "users",
        "Hi",
        user=UserAgents(
            loop=Agent("p", model=Model()),
            tools={"ask": lambda question: question, "other": step(passed_on, name="s")},
        ),
    ),
    Case("bridge", "Hi", bridge=Bridge(format_prompt=lambda main, wait: "x")),
    Case("own agent", "Hi", agent=Agent("own", model=Model(), tools=[look])),
    Case("stopping", "Hi", stop=Stop(state_matches={"s.x": {"$in": sorted(WORDS)}})),
    Case("data", "Hi", tags=["a"], metadata={"z": 1, "a": [1, {"b": None}]}, state={"s": {"x": 1}}),
]


def chosen(input: Any) -> str:
    return "a"


def agents() -> dict[str, Any]:
    clerk = Agent("clerk", model=Model(), tools=[look, ask], instructions="Be kind.")
    teller = Agent("teller", model=Scripted(call("look", key="a"), lambda r: "x", then="y"))
    return {
        "agent": clerk,
        "flow": (clerk | teller) >> step(passed_on, name="last"),
        "loop": loop(teller, until=lambda output: output == "x"),
        "route": route(chosen, a=clerk, b=step(lambda ctx: ctx.input, name="same")),
        "function": mocked,
    }


def digests() -> dict[str, str]:
    found = {f"case {case.id}": case_digest(case) for case in CASES}
    metrics: Any = [contains("x", name="x"), judge("kind", "Is it?", model=Model())]
    for name, agent in agents().items():
        backend = backend_for(agent)
        plan = plan_of(EvalSet("zoo", CASES), agent, backend, metrics)
        found[f"agent {name}"] = plan.digest
        found |= {f"metric {metric}": digest for metric, digest in plan.metrics.items()}
    return found


if __name__ == "__main__":
    json.dump(digests(), sys.stdout)
