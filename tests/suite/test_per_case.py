"""Agents, dependencies and mocks made again for every trial: nothing is left over from another."""

import asyncio
import socket
import sys
import textwrap
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent as PydanticAgent

import warm_python
from greenroom import Agent, Case, Expect, Scripted, call, per_case, rehearse, simulate, tool
from greenroom.errors import BadAgent, FenceBreach
from greenroom.ledger import responses

MADE: list[int] = []


class Desk:
    """An agent that keeps something between runs, as authors' objects do."""

    def __init__(self) -> None:
        MADE.append(1)
        self.heard = 0

    def __call__(self, message: str) -> str:
        self.heard += 1
        return f"heard {self.heard}"


def make() -> Any:
    return Desk()


FIRST = [Case(name, "Hi", expect=Expect(response="heard 1")) for name in ("a", "b", "c")]


def test_an_agent_that_is_shared_leaks_from_case_to_case() -> None:
    assert not rehearse(make(), FIRST, concurrency=1).passed


def test_every_trial_has_an_agent_of_its_own() -> None:
    MADE.clear()
    report = rehearse(per_case(make), FIRST, trials=2)
    assert report.passed, str(report)
    assert len(MADE) == 1 + 6  # one that is looked at, and one for each trial


def test_mocks_that_keep_something_are_made_with_the_agent() -> None:
    @tool
    def refund(order: int) -> str:
        """Pay back."""
        raise RuntimeError("never reached in a rehearsal")

    def shop() -> Any:
        paid: list[int] = []

        def answer(order: int) -> str:
            paid.append(order)
            return f"{len(paid)} paid"

        model = Scripted(call("refund", order=7), lambda request: request.last)
        return Agent("shop", model=model, tools=[refund]), {"refund": answer}

    cases = [Case(name, "Hi", expect=Expect(response="1 paid")) for name in ("a", "b")]
    assert rehearse(per_case(shop), cases).passed
    own = Case("own", "Hi", mocks={"refund": "ours"}, expect=Expect(response="ours"))
    assert rehearse(per_case(shop), [own]).passed


async def test_it_goes_with_models_frameworks_and_single_cases() -> None:
    def shop() -> Any:
        return PydanticAgent(name="shop")

    cases = [Case(name, "Hi", expect=Expect(response="Hello.")) for name in ("a", "b")]
    report = rehearse(per_case(shop), cases, model=Scripted("Hello."))
    assert report.passed, str(report)
    ledger = await simulate(cases[0], per_case(shop), model=Scripted("Hello."))
    assert responses(ledger) == ["Hello."]


def test_a_stored_run_is_resumed(tmp_path: Path) -> None:
    first = rehearse(per_case(make), FIRST, store=tmp_path)
    assert rehearse(per_case(make), FIRST, store=tmp_path, resume=first.id).passed


def test_what_makes_no_agent_is_an_error_that_names_the_function() -> None:
    async def later() -> Any:
        return make()

    with pytest.raises(BadAgent, match=r"later.*is async"):
        per_case(later)
    with pytest.raises(BadAgent, match="give a function"):
        per_case(7)  # pyright: ignore[reportArgumentType]

    def nothing() -> Any:
        return None

    with pytest.raises(BadAgent, match=r"nothing\(\) made None"):
        rehearse(per_case(nothing), FIRST)


@pytest.mark.parametrize("is_case_s", [False, True], ids=["of the run", "of a case"])
@pytest.mark.parametrize("act", ["a tool", "a connection"])
def test_what_makes_an_agent_neither_acts_nor_connects(act: str, is_case_s: bool) -> None:
    acted: list[str] = []

    @tool
    def pay() -> str:
        """Pay."""
        acted.append("paid")
        return "paid"

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)

        def eager() -> Any:
            with suppress(Exception):
                if act == "a tool":
                    pay()
                else:
                    socket.create_connection(server.getsockname(), 5).close()
            return Desk()

        maker = per_case(eager)
        cases = [replace(FIRST[0], agent=maker)] if is_case_s else FIRST
        with pytest.raises(FenceBreach, match=r"eager\(\) tried .*while it made the agent"):
            rehearse(None if is_case_s else maker, cases)
        with pytest.raises(FenceBreach, match=r"eager\(\) tried .*while it made the agent"):
            asyncio.run(simulate(FIRST[0], per_case(eager)))
        with pytest.raises(BlockingIOError):
            server.accept()
    assert acted == []


def test_one_that_fails_later_breaks_its_case_alone() -> None:
    made: list[int] = []

    def second_fails() -> Any:
        made.append(1)
        if len(made) == 3:
            raise OSError("no more")
        return Desk()

    report = rehearse(per_case(second_fails), FIRST, concurrency=1)
    assert [result.status for result in report.results] == ["passed", "error", "passed"]
    assert "second_fails() could not make the agent" in str(report)


@pytest.mark.parametrize("workers", [[], ["--workers", "1"]])
def test_the_command_line_makes_an_agent_for_every_case(tmp_path: Path, workers: list[str]) -> None:
    (tmp_path / "shop.py").write_text(
        textwrap.dedent("""
        from greenroom import Case, Expect

        class Desk:
            heard = 0

            def __call__(self, message: str) -> str:
                self.heard += 1
                return f"heard {self.heard}"

        def make_agent():
            return Desk()

        cases = [Case(name, "Hi", expect=Expect(response="heard 1")) for name in ("a", "b")]
        """)
    )

    def run(agent: str) -> int:
        words = ["eval", "run", agent, "shop.py:cases", "--no-store", "--sequential", *workers]
        done = warm_python.run(
            [sys.executable, "-m", "greenroom.apps.cli", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.returncode

    assert run("shop.py:make_agent") == 1
    assert run("shop.py:make_agent()") == 0
