"""What a run is made of is known again in another process, and anything else is told apart."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Bridge, Case, Scripted, SimulatedUser, UserAgents
from greenroom.cases.data import case_data
from greenroom.metrics import contains, judge
from greenroom.suite.storage.identity import case_digest

ZOO = Path(__file__).with_name("zoo.py")


def digests(seed: str) -> dict[str, str]:
    """As a fresh interpreter sees them, where addresses and the order of sets are others."""
    told = subprocess.run(
        [sys.executable, str(ZOO)],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    return json.loads(told.stdout)


def test_everything_is_known_again_in_another_process() -> None:
    here, there = digests("1"), digests("2")
    assert [name for name in here if here[name] != there[name]] == []
    of_cases = [digest for name, digest in here.items() if name.startswith("case")]
    assert len(set(of_cases)) == len(of_cases) > 10


class Model:
    """A model that shows itself with its address."""

    name = "model"

    async def respond(self, request: Any, on_delta: Any = None) -> Any:
        raise AssertionError


def one() -> int:
    return 1


def two() -> int:
    return 2


def case(**options: Any) -> Case:
    given: dict[str, Any] = {"says": "Hello", **options}
    return Case("a", **given)


@pytest.mark.parametrize(
    "now, other",
    [
        ({"says": "x"}, {"says": "y"}),
        ({"says": "look at 0x1000"}, {"says": "look at 0x2000"}),
        ({"mocks": {"t": 1}}, {"mocks": {"t": 1.5}}),
        ({"mocks": {"t": 1}}, {"mocks": {"t": "1"}}),
        ({"mocks": {"t": True}}, {"mocks": {"t": 1}}),
        ({"mocks": {"t": one}}, {"mocks": {"t": two}}),
        ({"metrics": [contains("x", name="m")]}, {"metrics": [contains("y", name="m")]}),
        ({"state": {"s": {"x": 1}}}, {"state": {"s": {"x": 2}}}),
        ({"user": SimulatedUser("A", model=Model())}, {"user": SimulatedUser("B", model=Model())}),
        ({"says": "half \ud83d"}, {"says": "half \udc80"}),
    ],
)
def test_another_case_has_another_digest(now: dict[str, Any], other: dict[str, Any]) -> None:
    assert case_digest(case(**now)) == case_digest(case(**now))
    assert case_digest(case(**now)) != case_digest(case(**other))


def test_two_models_that_differ_in_their_address_only_are_one() -> None:
    def users(model: Any) -> Case:
        return case(user=UserAgents(loop=SimulatedUser("Ill.", model=model)))

    assert case_digest(users(Model())) == case_digest(users(Model()))
    # Made where it is used, as a file that is read again in every process does.
    made = [users(Scripted(lambda r: "x", "y")) for _ in range(2)]
    assert case_digest(made[0]) == case_digest(made[1])
    assert case_digest(case(agent=Agent("x", model=Model()))) == case_digest(
        case(agent=Agent("x", model=Model()))
    )


def test_where_our_own_functions_stand_does_not_tell_cases_apart() -> None:
    judged = [judge("kind", "Is it kind?", model=Scripted("yes"))]
    user = SimulatedUser("A traveller", model=Model())
    written = json.dumps(case_data(case(metrics=judged, user=user, bridge=Bridge(), mocks={})))
    assert "SimulatedUser" in written
    assert "greenroom." not in written
