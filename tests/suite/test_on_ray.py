"""Trials on a real Ray cluster come to the same as here, and outlive what they run on: `make test-all`."""

import json
import os
import signal
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from apps.terminals import started
from greenroom import Case, Expect, Turn, attach, evaluate
from greenroom.errors import BadInput
from greenroom.ledger import Ledger, response
from greenroom.results import Report
from greenroom.store import Store
from greenroom.suite import Ray
from greenroom.suite.plan import prepare
from ray_clusters import RayCluster, is_alive, processes_beside, relays
from store.timeless import timeless
from torture.acting import Acts

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]

SHOP = """
import os
from pathlib import Path
from time import monotonic, sleep

from greenroom import Agent, Scripted, call, step, tool
from greenroom.models import ModelReply


@tool
def refund(order: int) -> dict:
    "Pay an order back."


clerk = Agent(
    "clerk", model=Scripted("Which order?", call("refund", order=7), "Done."), tools=[refund]
)
variables = step(lambda: " ".join(sorted(n for n in os.environ if n.startswith(("RAY_", "SHOP_")))))
key = step(lambda: f"{len(os.environ.get('SHOP_KEY', ''))} signs", name="key")
files = step(lambda: " ".join(sorted(p.name for p in Path(__file__).parent.iterdir())), name="files")


def waits(ctx):
    folder = Path(os.environ["SHOP_FOLDER"])
    (folder / f"{os.getpid()}-{os.getppid()}").touch()
    while not (folder / "go").exists():
        sleep(0.02)
    return "survived"


waiting = step(waits)


def dies_once(ctx):
    folder = Path(os.environ["SHOP_FOLDER"])
    try:
        (folder / ctx.input).touch(exist_ok=False)
    except FileExistsError:
        return "survived"
    os._exit(7)


dying = step(dies_once)


class Timed:
    name = "acme:timed"

    async def respond(self, request, on_delta=None):
        with (Path(os.environ["SHOP_FOLDER"]) / "asked").open("a") as file:
            file.write(f"{os.getpid()} {monotonic()}\\n")
        return ModelReply("Hi.")


timed = Agent("timed", model=Timed())


def sees(ctx):
    return "saw it"


seeing = step(sees)
"""

FRAMEWORK = """
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel


def answer(messages, info):
    if len(messages) > 2:
        return ModelResponse(parts=[TextPart("Done.")])
    return ModelResponse(parts=[ToolCallPart("refund", {"order": 7})])


agent = Agent(FunctionModel(answer), name="clerk")


@agent.tool_plain
def refund(order: int) -> str:
    raise AssertionError("really called")
"""

TALKS = [
    Case(
        f"refunded-{n}",
        turns=[Turn("Money!"), Turn("Order 7.", Expect(tools=["refund"], response="Done."))],
        mocks={"refund": {"ok": True}},
    )
    for n in range(6)
] + [
    Case("wrong", says="Hello?", expect=Expect(contains=["sorry"])),
    Case("refused", turns=[Turn("Money!"), Turn("Order 7.", Expect(tools=[]))]),
]


@pytest.fixture
def shop(cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "seen").mkdir()
    monkeypatch.setenv("SHOP_FOLDER", str(tmp_path / "seen"))
    return tmp_path


def one(*names: str, contains: str = "") -> list[Case]:
    expect = Expect(contains=[contains]) if contains else Expect(tools=[])
    return [Case(name, name, expect=expect) for name in names]


def events(ledger: Ledger | None) -> list[dict[str, Any]]:
    assert ledger is not None
    told = [json.loads(line) for line in ledger.dumps().splitlines()]
    return [{**event, "at": 0, "seconds": 0} for event in told]


def told(report: Report) -> dict[str, Any]:
    """A report without times, and without the note that this process has loaded Ray."""
    return {**timeless(report), "notes": []}


async def wait_until(true: Any) -> None:
    import asyncio

    async with asyncio.timeout(90):
        while not true():  # noqa: ASYNC110 - other processes set no event
            await asyncio.sleep(0.05)


ON = Ray(env=["SHOP_FOLDER"])


async def test_ledgers_and_reports_are_the_same_here_in_processes_and_on_ray(shop: Path) -> None:
    given: dict[str, Any] = {"trials": 2, "store": False}
    here = await evaluate("shop.py:clerk", [*TALKS], **given)
    beside = await evaluate("shop.py:clerk", [*TALKS], workers=2, **given)
    there = await evaluate("shop.py:clerk", [*TALKS], on="ray", workers=2, concurrency=4, **given)
    assert told(here) == told(beside) == told(there)
    assert {result.status for result in there.results} == {"passed", "failed", "error"}
    for ours, theirs in zip(here.results, there.results, strict=True):
        assert events(theirs.ledger) == events(ours.ledger)
    await wait_until(lambda: not relays())  # Ray ends them in its own time


async def test_an_agent_of_a_framework_runs_on_ray(shop: Path) -> None:
    pytest.importorskip("pydantic_ai")
    (shop / "framework.py").write_text(FRAMEWORK)
    cases = [
        Case(f"c{n}", "Money!", mocks={"refund": "paid"}, expect=Expect(tools=["refund"], response="Done."))
        for n in range(4)
    ]  # fmt: skip
    here = await evaluate("framework.py:agent", cases, store=False)
    there = await evaluate("framework.py:agent", cases, store=False, on="ray")
    assert there.pass_rate == 1
    assert told(here) == told(there)


# What travels


async def test_variables_travel_by_name_only_and_none_of_rays_gets_to_an_agent(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "sesame-4711-open")
    cases = one("c")
    [without] = (await evaluate("shop.py:variables", cases, on="ray", store=False)).results
    assert response(without.ledger) == ""
    on = Ray(env=["SHOP_KEY"])
    [result] = (await evaluate("shop.py:key", cases, on=on, store=False)).results
    assert response(result.ledger) == "16 signs"
    run = await prepare("shop.py:key", cases, {"on": on, "store": False})
    place: Any = run.executor._place  # pyright: ignore[reportAttributeAccessIssue]
    assert "sesame" not in json.dumps(place._runtime_env())
    place.close(at_once=True)


async def test_a_variable_that_is_not_set_is_refused_by_name(shop: Path) -> None:
    with pytest.raises(BadInput, match="SHOP_NONE"):
        await evaluate("shop.py:clerk", [*TALKS], on=Ray(env=["SHOP_NONE"]), store=False)


async def test_the_project_travels_without_what_belongs_to_this_machine(shop: Path) -> None:
    files = {".env", ".env.local"}
    rays_own = "session_2026-11-17_15-12-53_750795_5838"
    folders = {".git", ".venv", ".greenroom", "runs", rays_own, "session_latest"}
    for name in files:
        (shop / name).write_text("KEY=1")
    for name in folders:
        (shop / name).mkdir()
        (shop / name / "kept").touch()
    (shop / "data.txt").touch()
    [result] = (await evaluate("shop.py:files", one("c"), on="ray", store=shop / "runs")).results
    sent = {*(response(result.ledger) or "").split()}
    assert {"shop.py", "data.txt", "pyproject.toml"} <= sent
    assert not sent & {*files, *folders}


async def test_a_run_that_was_started_in_a_folder_of_the_project_finds_its_files(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop / "evals").mkdir()
    (shop / "evals" / "cases.yaml").write_text(
        "version: 1\ncases:\n- {id: c, says: Hi, expect: {contains: [order]}}\n"
    )
    monkeypatch.chdir(shop / "evals")
    for agent in ("../shop.py:clerk", f"{shop / 'shop.py'}:clerk"):
        report = await evaluate(agent, "cases.yaml", on="ray", store=False)
        assert report.pass_rate == 1


async def test_attachments_travel_both_ways(shop: Path) -> None:
    picture = attach(b"\x89PNG\r\n\x1a\n" + os.urandom(200_000), "image/png", name="a.png")
    case = Case("c", turns=[Turn("Look.", Expect(contains=["saw"]), attachments=[picture])])
    here = await evaluate("shop.py:seeing", [case], store=False)
    there = await evaluate("shop.py:seeing", [case], on="ray", store=shop / "runs")
    assert there.pass_rate == 1
    assert told(here) == told(there)


# What is shared, and what is lost


async def test_a_rate_holds_on_ray_for_all_workers_together(shop: Path) -> None:
    cases = one(*(f"c{n}" for n in range(8)), contains="Hi")
    given: dict[str, Any] = {"on": ON, "workers": 2, "concurrency": 8, "store": False}
    report = await evaluate("shop.py:timed", cases, rate=["acme:timed=10/s"], **given)
    assert report.pass_rate == 1
    lines = (shop / "seen" / "asked").read_text().split()
    calls = sorted(map(float, lines[1::2]))
    assert calls[-1] - calls[0] >= 0.55


async def test_a_worker_process_that_dies_on_a_node_counts_against_its_trial(shop: Path) -> None:
    [result] = (
        await evaluate("shop.py:dying", one("c", contains="survived"), on=ON, store=False)
    ).results
    assert result.status == "passed"
    assert any("ended with exit code 7" in note for note in result.notes)


async def killed(shop: Path, run: Awaitable[Any], kill: Any, on: Ray = ON) -> Any:
    """The report of a run, in which something happened while a trial waited in a worker."""
    import asyncio

    task = asyncio.ensure_future(run)
    await wait_until(lambda: [*(shop / "seen").glob("*-*")] or task.done())
    [found] = (shop / "seen").glob("*-*")
    pid, parent = map(int, found.name.split("-"))
    kill(pid, parent)
    await wait_until(lambda: len([*(shop / "seen").glob("*-*")]) > 1 or task.done())
    (shop / "seen" / "go").touch()
    return pid, parent, await task


async def test_a_trial_is_not_blamed_for_a_relay_that_is_lost(shop: Path) -> None:
    run = evaluate("shop.py:waiting", one("c", contains="survived"), on=ON, workers=1, store=False)
    pid, _, report = await killed(shop, run, lambda _, parent: os.kill(parent, signal.SIGKILL))
    [result] = report.results
    assert result.status == "passed"
    assert any("lost with its node" in note for note in result.notes)
    await wait_until(lambda: not is_alive(pid))


async def test_a_relay_that_stands_still_is_given_up_and_its_processes_end_when_it_wakes(
    shop: Path,
) -> None:
    on = Ray(env=["SHOP_FOLDER"], patience=4)
    run = evaluate("shop.py:waiting", one("c", contains="survived"), on=on, workers=1, store=False)
    pid, relay, report = await killed(shop, run, lambda _, parent: os.kill(parent, signal.SIGSTOP))
    [result] = report.results
    assert result.status == "passed"
    assert any("did not respond" in note for note in result.notes)
    if is_alive(relay):
        os.kill(relay, signal.SIGCONT)
    await wait_until(lambda: not is_alive(pid) and not is_alive(relay))


# Kills, with tools that really act: each line in a file is one act


def acting(place: Path, monkeypatch: pytest.MonkeyPatch) -> Acts:
    monkeypatch.setenv("ACTS", str(place / "acts"))
    return Acts(place, "--on", "ray?env=ACTS", "--workers", "2", "--max-concurrency", "8")


def test_a_driver_that_is_killed_leaves_nothing_behind_and_its_run_is_resumed(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts = acting(shop, monkeypatch)
    assert acts.kill_after(5, 0.01, signal.SIGKILL) == -signal.SIGKILL
    until = time.monotonic() + 60
    while relays() and time.monotonic() < until:
        time.sleep(0.1)
    assert relays() == []
    acts.finish()
    acts.check()


def test_ctrl_c_ends_a_run_on_ray_without_orphans(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts = acting(shop, monkeypatch)
    with started(*acts.words, cwd=shop) as process:
        acts.wait_for_more(3, process)
        children = processes_beside(relays())
        assert children
        process.send_signal(signal.SIGINT)
        told = process.communicate()[0].decode()
    assert process.returncode == 128 + signal.SIGINT, told
    assert "Traceback" not in told, told
    until = time.monotonic() + 30
    while any(map(is_alive, (*children, *relays()))) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [pid for pid in (*children, *relays()) if is_alive(pid)]
    acts.finish()
    acts.check()


def test_ctrl_c_ends_a_run_that_waits_for_room_on_the_cluster(shop: Path) -> None:
    acts = Acts(shop, "--on", "ray?cpus=64", "--workers", "1")
    with started(*acts.words, cwd=shop) as process:
        until = time.monotonic() + 60
        while not Store(shop / "runs").runs() and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 128 + signal.SIGINT, told
    assert "to resume: greenroom eval run" in told
    assert "Traceback" not in told


async def test_a_cluster_is_reached_from_outside_by_its_address(
    shop: Path, cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS")
    there = f"ray://127.0.0.1:{cluster.client_port}"
    report = await evaluate("shop.py:clerk", [*TALKS], on=there, store=False)
    assert {result.status for result in report.results} == {"passed", "failed", "error"}
