"""What an evaluation cannot be told is said before anything is begun."""

import asyncio
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, Expect, Scripted, call, live, rehearse, tool
from greenroom.errors import BadInput
from greenroom.models import ModelReply
from greenroom.store import Store
from greenroom.suite import Options
from greenroom.suite.hooks import HOOKS
from greenroom.suite.options import OPTIONS
from marks import heavy

AGENT = Agent("hello", model=Scripted("Hello."))
CASE = Case("a", says="Hi.", expect=Expect(response="Hello."))


@pytest.mark.parametrize(
    "option, value, wanted",
    [
        ("budget", "1", "an amount of USD"),
        ("cancel", object(), r"a greenroom\.suite\.Cancel"),
        ("plugins", object(), "a list of objects"),
        ("store", 5, "a folder, the address of a server, a Store, or False"),
        ("trials", "many", "a whole number of 1 or more, or 'auto'"),
        ("trials", 0, "a whole number of 1 or more, or 'auto'"),
        ("concurrency", 0, "a whole number of 1 or more"),
        ("min_pass_rate", 2, "a share from 0 to 1"),
        ("on_event", 5, "a function"),
        ("resume", 7, "the id of a run, or True"),
        ("retry_errors", True, "is for resume="),
        ("accept_changes", True, "is for resume= or resume_or_new="),
        ("unknown_prices", "allow", "is for budget="),
        ("confirm", 5, "is for baseline="),
    ],
)
def test_a_value_that_cannot_be_is_named(option: str, value: Any, wanted: str) -> None:
    begun: list[Case] = []
    options: Any = {option: value}
    with pytest.raises(BadInput, match=rf"{option}=.*{wanted}"):
        rehearse(AGENT, [CASE], on_case_start=begun.append, **options)
    assert begun == []


NEVER = [object(), b"no", 5j]
WRONG: dict[str, list[Any]] = {
    "fence": ["nobody", "", 1, None],
    "trials": [0, -1, True, 1.5, "many"],
    "min_pass_rate": [None, -0.1, 1.1, float("nan"), "0.9", True],
    "baseline": ["report.json", [], ["report.json"]],
    "confirm": [-1, 1.5, "off", False],
    "metrics": [None, "contains", 5, {"contains": 1}, len],
    "config": [5, "", ["config.json"], {"criteria": {}}],
    "mocks": [None, "mocks.yaml", ["refund"], {5: "ok"}],
    "model": ["", " ", 5, object()],
    "resources": [None, "resources.py", ":db", ["db"], {5: open}, {"db": 5}],
    "middleware": [None, "audit.py:name", ["name"], [":name"], {"a": 5}],
    "cache": [5, "", True],
    "seconds_per_metric": [0, -1, float("nan"), "60"],
    "seconds_per_case": [0, -1, float("inf"), "60", True],
    "progress": [None, 1, "yes"],
    "metric_attempts": [None, 0, -1, 1.5, "3", True],
    "allow_tools": [None, "refund", 5, {"refund": 1}, len, [5], [""], [None]],
    "budget": [0, -1, float("nan"), float("inf"), "1", True],
    "unknown_prices": [None, "x", True, ["allow"]],
    "check": [None, "x", True, ["warn"]],
    "concurrency": [None, 0, -1, 1.5, "4", True],
    "on": ["", "local", "ray:", "kubernetes", 5, True, ["ray"]],
    "rate": [None, 5, "openai:gpt-x=5/s", ["5/s"], [5], {"m": "often"}, {"m": 0}, {5: "5/s"}],
    "workers": [0, -1, 4097, 1.5, "4", True],
    "on_error": [None, "x", True],
    "record": [5, "", ["folder"], True],
    "replay": [5, "", ["folder"], True],
    "on_drift": [None, "x", "skip", True, ["live"]],
    "cancel": ["now", True],
    "store": [5, "", ["runs"]],
    "resume_or_new": [5, ""],
    "shard": [5, "0/2", "3/2", "a/b", "1"],
    "resume": [None, 7],
    "plugins": [None, "plugin", len],
    **{name: ["print", 5] for name in HOOKS},
    **{
        name: [None, "no", "False", 0, 1]
        for name, option in OPTIONS.items()
        if option.wanted == "True or False"
    },
}


HUGE = 10**400
UNNAMEABLE = ["a\0b", "\ud800", Path("a\0b"), " "]


@pytest.mark.parametrize(
    "name, value",
    [
        *((name, HUGE) for name in ("budget", "seconds_per_metric", "seconds_per_case")),
        *((name, path) for name in ("cache", "record", "replay", "store") for path in UNNAMEABLE),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else None,
)
def test_a_number_or_a_path_that_the_system_cannot_take_is_refused(name: str, value: Any) -> None:
    options: Any = {name: value}
    with pytest.raises(BadInput, match=f"{name}=.* should be "):
        rehearse(AGENT, [CASE], **options)


class Contrary(list[Any]):
    """A value that cannot be compared, as an array of numbers."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # pyright: ignore[reportAssignmentType]


@pytest.mark.parametrize("name", OPTIONS)
def test_a_value_that_cannot_be_compared_is_judged_by_what_it_is(name: str) -> None:
    options: Any = {name: Contrary([object()])}
    with pytest.raises(BadInput, match=f"{name}"):
        rehearse(AGENT, [CASE], **options)


def test_the_table_declares_what_type_checkers_are_told() -> None:
    assert OPTIONS.keys() == Options.__annotations__.keys() == WRONG.keys()


@pytest.mark.parametrize("name", WRONG)
def test_every_option_refuses_what_it_cannot_be_by_its_name(name: str) -> None:
    for value in (*WRONG[name], *NEVER):
        options: Any = {name: value}
        with pytest.raises(BadInput) as refused:
            rehearse(AGENT, [CASE], **options)
        assert str(refused.value) == f"{name}={value!r} should be {OPTIONS[name].wanted}."


def test_unknown_prices_are_allowed_by_name() -> None:
    agent = Agent("a", model=Scripted(ModelReply("Hello.", cost=None)))
    refused = rehearse(agent, [CASE], trials=2, budget=1.0, concurrency=1)
    assert [result.status for result in refused] == ["passed", "skipped"]
    allowed = rehearse(agent, [CASE], trials=2, budget=1.0, unknown_prices="allow")
    assert [result.status for result in allowed] == ["passed", "passed"]


def test_a_run_does_not_go_on_with_other_words_of_a_scripted_model(tmp_path: Path) -> None:
    first = rehearse(AGENT, [CASE], store=tmp_path)
    other = Agent("hello", model=Scripted("Hello!"))
    with pytest.raises(BadInput, match="the agent has changed"):
        rehearse(other, [CASE], store=tmp_path, resume=first.id)


@pytest.mark.parametrize("runner", ["asyncio.run(cell())", heavy("bare(cell())")])
def test_ctrl_c_stops_a_run_that_stands_beside_a_running_loop(tmp_path: Path, runner: str) -> None:
    script = f"""
    import asyncio, signal, sys, threading
    from greenroom import Agent, Case, Expect, Scripted, call, live, rehearse, tool
    signal.signal(signal.SIGINT, signal.default_int_handler)
    agent = Agent("slow", model=Scripted("Hello.", latency=0.5))
    cases = [Case(f"c{{n}}", says="Hi.", expect=Expect(response="Hello.")) for n in range(200)]

    def told(result):
        print("done", flush=True)

    async def cell():
        rehearse(agent, cases, store={str(tmp_path)!r}, concurrency=1, on_case_complete=told)
        await asyncio.sleep(0)

    def bare(work):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(work)

    {runner}
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    child.wait(60)
    child.stdout.close()
    [run] = Store(tmp_path).runs()
    assert run.status == "interrupted"
    assert 0 < run.done < 100


async def test_a_run_inside_a_running_loop_gives_its_report() -> None:
    report = rehearse(AGENT, [CASE])
    await asyncio.sleep(0)
    assert report.passed


@tool
def look_up(order: int) -> str:
    """Look an order up."""
    return f"order {order}: paid"


@pytest.mark.parametrize(
    "named",
    ["look_up", look_up, look_up.fn, live(look_up), live("look_up")],
    ids=["name", "tool", "function", "live tool", "live name"],
)
def test_a_tool_is_allowed_by_its_name_as_itself_and_as_live(named: Any) -> None:
    clerk = Agent("clerk", model=Scripted(call("look_up", order=7), "Hello."), tools=[look_up])
    assert rehearse(clerk, [CASE])["a"].status == "error"
    report = rehearse(clerk, [CASE], allow_tools=[named])
    assert report["a"].status != "error", report["a"].error
