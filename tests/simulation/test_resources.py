"""Resources: opened when a tool's body really runs, once in a trial, and closed with it."""

import asyncio
import os
import socket
import sqlite3
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest

import warm_python
from greenroom import Agent, Case, Expect, Scripted, call, live, rehearse, step, tool
from greenroom.agents import resource
from greenroom.errors import BadInput
from greenroom.simulation import simulate
from greenroom.suite import evaluate, simulate_all, stream
from nested_pytest import FEW_PLUGINS


class Db:
    """A connection that knows what became of it."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


@tool
def refund(order: int, db: Annotated[Db, resource]) -> str:
    """Refund an order."""
    assert not db.is_closed
    db.rows.append(order)
    return f"refunded {order}"


@tool
def look(order: int, db: Annotated[Db, resource]) -> int:
    """Look an order up."""
    return len(db.rows)


def clerk(*replies: Any) -> Agent:
    return Agent("clerk", model=Scripted(*replies, "Done."), tools=[refund, look])


ASKS = clerk([call("refund", order=7), call("look", order=7)], call("refund", order=8))
CASE = Case("refund", says="Refund 7.", expect=Expect(response="Done."))
BOTH = ["refund", "look"]


class Opened:
    """A factory that remembers what it opened."""

    def __init__(self) -> None:
        self.made: list[Db] = []

    def __call__(self) -> Db:
        self.made.append(Db())
        return self.made[-1]


def test_a_model_does_not_see_resources() -> None:
    assert refund.argument_names == ("order",)
    assert [*refund.parameters["properties"]] == ["order"]
    assert refund.resources == ("db",)


def test_a_resource_is_opened_once_in_a_trial_and_closed_with_it() -> None:
    opened = Opened()
    options: Any = {"allow_tools": BOTH, "resources": {"db": opened}}
    report = rehearse(ASKS, [CASE, replace(CASE, id="other")], trials=2, **options)
    assert report.passed
    assert [sorted(db.rows) for db in opened.made] == [[7, 8]] * 4
    assert all(db.is_closed for db in opened.made)


def test_nothing_is_opened_where_all_tools_are_mocked() -> None:
    opened = Opened()
    mocks = {"refund": lambda order: "ok", "look": 0}
    assert rehearse(ASKS, [CASE], mocks=mocks, resources={"db": opened}).passed
    assert opened.made == []
    rehearse(ASKS, [CASE], allow_tools=BOTH, resources={"db": opened})
    assert len(opened.made) == 1  # the canary sings


def test_nothing_is_opened_for_a_tool_that_is_refused() -> None:
    opened = Opened()
    report = rehearse(ASKS, [CASE], resources={"db": opened})
    assert [result.status for result in report] == ["error"]
    assert opened.made == []


def test_a_mock_is_lent_nothing() -> None:
    opened, seen = Opened(), list[Any]()

    def refunds(order: int, ctx: Any) -> str:
        seen.append(ctx.resources)
        return "ok"

    rehearse(ASKS, [CASE], mocks={"refund": refunds, "look": 0}, resources={"db": opened})
    assert seen == [None, None]


def manager() -> Any:
    class Manager:
        async def __aenter__(self) -> Db:
            LOG.append("entered")
            return Db()

        async def __aexit__(self, *_: object) -> None:
            await asyncio.sleep(0)
            LOG.append("left")

    return Manager()


def generated() -> Iterator[Db]:
    LOG.append("entered")
    yield Db()
    LOG.append("left")


async def awaited() -> Any:
    LOG.append("entered")

    class Closing(Db):
        async def close(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            LOG.append("left")

    return Closing()


async def generated_async() -> AsyncIterator[Db]:
    LOG.append("entered")
    yield Db()
    LOG.append("left")


LOG: list[str] = []


@pytest.mark.parametrize("factory", [manager, generated, awaited, generated_async])
async def test_whatever_opens_a_resource_is_left_again(factory: Any) -> None:
    LOG.clear()
    options: Any = {"allow_tools": BOTH, "resources": {"db": factory}}
    assert (await evaluate(ASKS, [CASE], **options)).passed
    assert LOG == ["entered", "left"]


def test_a_connection_of_sqlite_is_closed() -> None:
    made: list[sqlite3.Connection] = []

    def connect() -> sqlite3.Connection:
        made.append(sqlite3.connect(":memory:", check_same_thread=False))
        return made[-1]

    @tool
    def count(db: Annotated[Any, resource]) -> int:
        return int(db.execute("select 41 + 1").fetchone()[0])

    agent = Agent("counter", model=Scripted(call("count"), "42"), tools=[count])
    report = rehearse(
        agent,
        [Case("c", "Count.", expect=Expect(response="42"))],
        allow_tools=[count],
        resources={"db": connect},
    )
    assert [result.status for result in report] == ["passed"]
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        made[0].execute("select 1")


def test_a_resource_that_is_not_given_is_missed_before_anything_runs() -> None:
    for given in ({}, {"database": Opened()}):
        report = rehearse(ASKS, [CASE], allow_tools=[refund], mocks={"look": 0}, resources=given)
        [result] = report.results
        assert result.status == "error"
        assert "tool 'refund' may run for real and needs the resource 'db'" in str(result.error)
        assert result.turns == 0


def test_a_parameter_with_a_default_does_without() -> None:
    @tool
    def greet(name: str, book: Annotated[list[str] | None, resource] = None) -> str:
        return f"{name} {book}"

    agent = Agent("a", model=Scripted(call("greet", name="Bo"), "Hi."), tools=[greet])
    cases = [Case("c", "Hi", expect=Expect(tools=[call("greet", name="Bo")]))]
    book = ["page"]
    for given, said in (({}, "Bo None"), ({"book": lambda: book}, "Bo ['page']")):
        report = rehearse(agent, cases, allow_tools=[greet], resources=given)
        assert said in str(report.results[0].ledger.events)  # pyright: ignore[reportOptionalMemberAccess]


def test_one_that_cannot_be_opened_ends_the_case() -> None:
    def broken() -> Db:
        raise ConnectionError("no such host")

    report = rehearse(ASKS, [CASE], allow_tools=BOTH, resources={"db": broken})
    [result] = report.results
    assert result.status == "error"
    assert "the resource 'db' of tool" in str(result.error)
    assert "ConnectionError: no such host" in str(result.error)


def test_one_that_cannot_be_closed_ends_the_case() -> None:
    def broken() -> Iterator[Db]:
        yield Db()
        raise OSError("still locked")

    report = rehearse(ASKS, [CASE], allow_tools=BOTH, resources={"db": broken})
    [result] = report.results
    assert result.status == "error"
    assert "'db' failed to close: OSError: still locked" in str(result.error)


def test_opening_and_closing_stay_inside_the_fence() -> None:
    def connects() -> Db:
        socket.create_connection(("192.0.2.1", 80), timeout=0.1)
        return Db()

    def connects_later() -> Iterator[Db]:
        yield Db()
        socket.create_connection(("192.0.2.1", 80), timeout=0.1)

    for factory in (connects, connects_later):
        [result] = rehearse(ASKS, [CASE], allow_tools=BOTH, resources={"db": factory}).results
        assert result.status == "error"
        assert "the fence refused" in str(result.error)


def test_one_that_hangs_as_it_is_closed_does_not_hold_the_run() -> None:
    class Stuck(Db):
        async def close(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            await asyncio.sleep(3600)

    [result] = rehearse(ASKS, [CASE], allow_tools=BOTH, resources={"db": Stuck}).results
    assert result.status == "error"
    assert "resources were not closed within 5 s" in str(result.error)


def test_a_trial_that_is_cut_closes_what_it_opened() -> None:
    opened = Opened()

    @tool
    async def hang(db: Annotated[Db, resource]) -> str:
        await asyncio.sleep(3600)
        return ""

    from greenroom import Stop

    agent = Agent("slow", model=Scripted(call("hang"), "Done."), tools=[hang])
    case = Case("c", "Hi", stop=Stop(max_seconds=1))
    rehearse(agent, [case], allow_tools=[hang], resources={"db": opened})
    assert [db.is_closed for db in opened.made] == [True]


async def test_every_call_takes_resources() -> None:
    opened = Opened()
    options: Any = {"allow_tools": BOTH, "resources": {"db": opened}}
    rehearse(ASKS, [CASE], **options)
    await evaluate(ASKS, [CASE], **options)
    [_ async for _ in stream(ASKS, [CASE], **options)]
    await simulate_all(ASKS, [CASE], **options)
    await simulate(CASE, ASKS, **options)
    assert len(opened.made) == 5
    assert all(db.is_closed for db in opened.made)


def test_code_that_calls_a_tool_itself_gets_what_the_run_lends() -> None:
    opened, mine = Opened(), Db()

    @step
    def work() -> str:
        return f"{refund(order=7, db=mine)} {refund(8)}"  # pyright: ignore[reportUnknownArgumentType]

    options: Any = {"resources": {"db": opened}}
    case = Case("c", "Hi", expect=Expect(response="refunded 7 refunded 8"))
    assert rehearse(work, [case], allow_tools=[refund], **options).passed
    assert (mine.rows, [db.rows for db in opened.made]) == ([], [[7, 8]])
    assert not rehearse(work, [case], **options).passed
    mocked = Case("c", "Hi", mocks={"refund": "no"}, expect=Expect(response="no no"))
    assert rehearse(work, [mocked], **options).passed
    assert len(opened.made) == 1


def test_a_tool_handed_over_as_its_own_mock_is_lent_them_too() -> None:
    opened = Opened()
    mocks = {"refund": refund, "look": live(look)}
    assert rehearse(ASKS, [CASE], mocks=mocks, resources={"db": opened}).passed
    assert [db.is_closed for db in opened.made] == [True]


SHOP = """
from typing import Annotated, Any
from greenroom import Agent, Case, Expect, Scripted, call, tool
from greenroom.agents import resource

@tool
def refund(order: int, db: Annotated[Any, resource]) -> str:
    return db.write(f"refunded {order}")

class Db:
    def write(self, line):
        with open("log", "a") as log:
            log.write(line + "\\n")
        return line
    def close(self):
        self.write("closed")

def open_db():
    return Db()

resources = {"db": lambda: Db()}
nothing = {"db": 5}
agent = Agent("shop", model=Scripted(call("refund", order=7), "Done."), tools=[refund])
cases = [Case("a", says="Hi", expect=Expect(response="Done."))]
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(textwrap.dedent(SHOP))
    (tmp_path / "a.eval.yaml").write_text(
        "version: 1\ncases: [{id: a, says: Hi, expect: {response: Done.}}]"
    )
    return tmp_path


DOORS = {
    "eval": ["greenroom.apps.cli", "eval", "run", "shop.py", "shop.py:cases"],
    "workers": ["greenroom.apps.cli", "eval", "run", "shop.py", "shop.py:cases", "--workers", "1"],
    "simulate": ["greenroom.apps.cli", "simulate", "batch", "shop.py", "a.eval.yaml"],
    "pytest": ["pytest", "-p", "no:cacheprovider", "--greenroom-agent", "shop.py", "a.eval.yaml"],
}


@pytest.mark.parametrize("door", DOORS)
def test_every_command_takes_resources(shop: Path, door: str) -> None:
    prefix = "--greenroom-" if door == "pytest" else "--"
    named = [f"{prefix}resources", "shop.py:resources", f"{prefix}allow-tool", "refund"]
    done = warm_python.run(
        [sys.executable, "-m", *DOORS[door], *named],
        cwd=shop,
        env={**os.environ, **FEW_PLUGINS},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (shop / "log").read_text() == "refunded 7\nclosed\n"


def test_what_a_command_names_must_be_resources(shop: Path) -> None:
    done = warm_python.run(
        [sys.executable, "-m", *DOORS["eval"], "--resources", "shop.py:nothing"],
        cwd=shop,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "resources are a mapping from names to functions" in " ".join(done.stderr.split())


@pytest.mark.parametrize("given", ["shop.resources", "{'db': shop.open_db}"])
def test_workers_find_resources_by_where_they_stand(shop: Path, given: str) -> None:
    script = f"""
    import shop
    from greenroom import rehearse
    given = {given}
    report = rehearse(shop.agent, shop.cases, workers=1, allow_tools=["refund"], resources=given)
    assert report.passed, report.results[0].error
    """
    warm_python.run([sys.executable, "-c", textwrap.dedent(script)], cwd=shop, check=True)
    assert (shop / "log").read_text() == "refunded 7\nclosed\n"


def test_workers_are_not_sent_what_they_could_not_find() -> None:
    given: Any = {"db": lambda: refund}
    with pytest.raises(BadInput, match="what opens the resource 'db' is an object that a worker"):
        rehearse(ASKS, [CASE], workers=1, resources=given)
