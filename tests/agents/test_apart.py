"""A part that stands apart has its code in a process of its own; gate, ledger and resumption are the same."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import far_parts as far

from greenroom import Agent, Case, Expect, Ledger, Scripted, Stop, perform, rehearse, simulate, step
from greenroom.agents import Flow, apart, check, compile_flow, estimate, timeout
from greenroom.agents.boundaries import Apart
from greenroom.agents.mermaid import mermaid
from greenroom.backends.native import children
from greenroom.errors import BadAgent, FenceBreach, ToolRefused
from greenroom.ledger import InvocationEnded, NodeFailed, Noted, ToolCalled, ToolReturned, state
from greenroom.world.threads import Expired
from rehearsals import end_of

NODE = [sys.executable, "-m", "greenroom", "node"]


async def played(flow: Any, ledger: Ledger | None = None, **options: Any) -> Ledger:
    options = {"stop": Stop(max_seconds=60), "now": 1_700_000_000.0, **options}
    return await simulate(Case("far", "hello", **options), flow, ledger=ledger)


def output(ledger: Ledger) -> Any:
    return ledger.of(InvocationEnded)[-1].output


def told(ledger: Ledger) -> list[str]:
    """What happened, event by event, but for the times, what the graph is, and the boundary's own two events."""
    lines: list[str] = []
    for event in ledger[1:]:
        facts = {name: getattr(event, name) for name in event.__struct_fields__}
        for name in ("at", "seq", "seconds"):
            facts.pop(name, None)
        lines.append(f"{event.kind} {facts}")
    return lines


class Trace:
    """What a tool leaves behind if it really runs."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def taken(self) -> str:
        """What it left; gone then."""
        left = self._path.read_text() if self._path.exists() else ""
        self._path.unlink(missing_ok=True)
        return left


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    monkeypatch.setenv("FAR_TRACE", str(tmp_path / "trace"))
    return Trace(tmp_path / "trace")


def _end_those_that_wait() -> None:
    for child in children._idle:
        child.kill()
    children._idle.clear()


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """A server, and who came to it."""
    came: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                came.append(connection.getpeername())
                connection.close()

        Thread(target=serve, daemon=True).start()
        monkeypatch.setenv("FAR_PORT", str(server.getsockname()[1]))
        _end_those_that_wait()  # they know nothing of this port
        yield came


def somebody_at(port: list[Any]) -> None:
    end = time.monotonic() + 600
    while not port:
        assert time.monotonic() < end
        time.sleep(0.01)


async def test_the_code_runs_in_another_process_and_the_ledger_is_the_same() -> None:
    here = await played(apart(far.desk, "none"), mocks={"refund": "ok"})
    there = await played(apart(far.desk), mocks={"refund": "ok"})
    assert told(there) == told(here)
    assert state(there) == state(here)
    assert [note.name for note in there.of(Noted)] == ["looked", "counted", "counted", "counted"]
    assert output(await played(far.pid)) == os.getpid()
    assert output(await played(apart(far.pid))) != os.getpid()


async def test_a_failure_there_is_told_as_one_here_with_its_place() -> None:
    here, there = await played(apart(far.fail, "none")), await played(apart(far.fail))
    assert told(there) == told(here)
    (failed,) = there.of(NodeFailed)
    assert "no hello (" in failed.error
    assert "far_parts.py:" in failed.error
    assert failed.error_type == "ValueError"


async def test_what_is_no_json_is_an_error_by_name_here_and_there() -> None:
    here = await played(apart(far.unlike_json, "none"))
    there = await played(apart(far.unlike_json))
    assert end_of(there).error == end_of(here).error
    assert end_of(there).error_type == "BadValue"
    assert "the output of 'unlike_json'" in end_of(there).error


# The gate


async def test_tools_of_an_agent_apart_are_mocked_or_refused_and_never_run(trace: Trace) -> None:
    far.refund.fn(1)
    assert trace.taken().endswith(" 1\n")  # the canary sings
    assert output(await played(apart(far.clerk), mocks={"refund": "ok"})) == "Done."
    refused = await played(apart(far.clerk >> far.count))
    assert end_of(refused).error_type == "ToolRefused"
    assert not trace.taken()


async def test_a_tool_that_the_code_calls_itself_is_answered_by_the_case(trace: Trace) -> None:
    mocked = await played(apart(far.pay_directly), mocks={"refund": "ok"})
    assert output(mocked) == "paid: ok"
    assert told(mocked) == told(
        await played(apart(far.pay_directly, "none"), mocks={"refund": "ok"})
    )
    assert output(await played(apart(far.look_directly), mocks={"look_up": "it"})) == "seen: it"
    refused = await played(apart(far.pay_directly))
    assert end_of(refused).error_type == "ToolRefused"
    assert not trace.taken()


async def test_a_tool_that_its_author_named_runs_once_and_in_this_process(trace: Trace) -> None:
    ledger = await played(apart(far.pay_directly), allow_tools=["refund"])
    assert output(ledger) == "paid: refunded 3"
    assert trace.taken() == f"{os.getpid()} 3\n"
    ledger = await played(apart(far.clerk >> far.count), allow_tools=["refund"])
    assert [end.source for end in ledger.of(ToolReturned)] == ["live"]
    assert trace.taken() == f"{os.getpid()} 7\n"


@pytest.mark.parametrize("isolation", ["none", "process"])
async def test_a_tool_that_a_thread_of_the_code_calls_is_answered_by_the_case(
    isolation: Any, trace: Trace
) -> None:
    flow = apart(far.pay_in_a_thread, isolation)
    assert output(await played(flow, mocks={"refund": "ok"})) == "paid: ['ok']"
    refused = await played(flow)
    assert end_of(refused).error_type == "ToolRefused"
    assert not trace.taken()


@pytest.mark.parametrize("isolation", ["none", "process"])
async def test_an_answer_that_comes_too_late_is_passed_over(isolation: Any) -> None:
    flow = apart(far.give_up_on_one_tool_and_ask_another, isolation)
    ledger = await played(flow, allow_tools=["dawdle", "look_up"], stop=Stop(max_seconds=10))
    assert output(ledger) == "seen: found 5"


# The fence


@pytest.mark.parametrize("code", [far.connect, far.connect_in_a_thread, far.start])
async def test_code_that_reaches_for_the_outside_ends_the_case(code: Any, port: list[Any]) -> None:
    code("")
    if code is not far.start:
        somebody_at(port)  # the canary sings
    before = len(port)
    assert (before > 0) == (code is not far.start)
    ledger = await played(apart(code) // apart(far.pid))
    assert end_of(ledger).error_type == "FenceBreach"
    assert "code that runs apart tried to reach the outside" in end_of(ledger).error
    assert len(port) == before


async def test_the_fence_is_up_before_the_authors_code_is_imported(
    port: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "eager.py").write_text(
        "import os, socket\n"
        "socket.create_connection(('127.0.0.1', int(os.environ['FAR_PORT']))).close()\n"
        "def work(input): return 'worked'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import eager  # pyright: ignore[reportMissingImports]

    somebody_at(port)  # imported here it has connected
    ledger = await played(apart(eager.work))
    assert end_of(ledger).error_type == "FenceBreach"
    assert len(port) == 1


async def test_a_tool_that_its_file_calls_and_swallows_as_it_is_imported_ends_the_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hasty.py").write_text(
        "import os\n"
        "from greenroom import tool\n"
        "@tool\n"
        "def refund(order: int) -> str:\n"
        "    open('acted', 'w').close()\n"
        "    return 'ok'\n"
        "if 'HASTY' in os.environ:\n"
        "    try: refund(order=7)\n"
        "    except Exception: pass\n"
        "def work(input): return 'done'\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    import hasty  # pyright: ignore[reportMissingImports]

    monkeypatch.setenv("HASTY", "yes")
    ledger = await simulate(Case("a", "go"), apart(step(hasty.work)))
    assert not (tmp_path / "acted").exists()
    assert "tool 'refund' was called while its file was imported" in end_of(ledger).error


async def test_performing_calls_real_tools_here_and_fences_the_code_all_the_same(
    trace: Trace, port: list[Any]
) -> None:
    ledger = await perform(apart(far.clerk >> far.pid), "hello")
    assert output(ledger) != os.getpid()
    assert trace.taken() == f"{os.getpid()} 7\n"
    with pytest.raises(FenceBreach, match="code that runs apart"):
        await perform(apart(far.connect), "hello")
    assert port == []


# The end of a process


@pytest.mark.parametrize(
    "code, why",
    [
        (far.die, "was killed by SIGKILL"),
        pytest.param(far.leave, "ended with exit code 0", marks=pytest.mark.heavy),
    ],
)
async def test_a_process_that_dies_has_failed_its_step(code: Any, why: str) -> None:
    ledger = await played(apart(code))
    assert end_of(ledger).error_type == "AgentFailed"
    assert f"ChildProcessError: its process {why}" in end_of(ledger).error
    assert output(await played(apart(code) // step(lambda: "else", name="other"))) == "else"
    again = step(code, name="again", retries=2)
    assert len((await played(apart(again))).of(NodeFailed)) == 3


@pytest.mark.heavy
@pytest.mark.parametrize("at", range(12))
async def test_a_process_killed_at_any_event_lets_no_tool_act_twice(at: int, trace: Trace) -> None:
    """Killed from outside, after each event in turn."""
    flow = apart(far.count >> far.clerk >> far.count)

    def kill(event: Any) -> None:
        if event.seq == at:
            for child in list(children._idle):
                child._process.kill()

    case = Case("far", "hello", allow_tools=["refund"])
    ledger = await simulate(case, flow, on_event=kill)
    assert end_of(ledger).reason == "completed"
    assert trace.taken() == f"{os.getpid()} 7\n"
    assert len(ledger.of(ToolCalled)) == 1


async def test_a_blocked_process_is_ended_when_its_time_is_up() -> None:
    loop = asyncio.get_running_loop()
    await played(apart(far.pid))  # a process waits now, so that only the work is timed
    began = loop.time()
    ledger = await played(apart(far.block, seconds=0.3))
    assert loop.time() - began < 30  # it sleeps for a minute
    (failed,) = ledger.of(NodeFailed)
    assert (failed.path, failed.error_type) == ("@1/apart/within", "TimeoutError")
    late = await played(apart(far.block, seconds=0.3) // apart(far.pid))
    assert isinstance(output(late), int)
    cut = await played(apart(far.block), stop=Stop(max_seconds=0.5))
    assert end_of(cut).reason == "max_seconds"


@pytest.mark.parametrize("moment", ["its reader starts", "the fence closes again"])
async def test_a_process_whose_case_runs_out_of_time_while_it_starts_is_ended(
    moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Noticed(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            started.append(self)

    class NeverReading(Thread):
        def start(self) -> None:
            raise Expired

    @contextmanager
    def closing_late() -> Generator[None]:
        yield
        raise Expired

    monkeypatch.setattr(children.subprocess, "Popen", Noticed)
    if moment == "its reader starts":
        monkeypatch.setattr(children, "Thread", NeverReading)
    _end_those_that_wait()
    with pytest.raises(Expired):
        await children.make_ready((), nullcontext if "reader" in moment else closing_late)
    (process,) = started
    assert process.returncode is not None
    assert process.stdin is not None
    assert process.stdin.closed
    assert children._idle == []


@pytest.mark.heavy
async def test_a_process_that_is_not_needed_any_more_is_ended() -> None:
    started = len(children._idle)
    await played(timeout(apart(far.block), 0.5))
    await played(apart(far.pid) | apart(far.count) | apart(far.pid))
    assert len(children._idle) <= max(started, 3)
    assert not any(child.is_gone for child in children._idle)


async def test_what_the_code_prints_is_no_message_and_an_exit_is_a_failure() -> None:
    assert output(await played(apart(far.print_a_lot))) == "printed"
    assert "tried to end the process" in end_of(await played(apart(far.exit_now))).error


# Another command


@pytest.mark.heavy
async def test_a_command_runs_the_code_wherever_it_leads(tmp_path: Path) -> None:
    folder = str(Path(__file__).parent)
    flow = apart(far.desk >> far.pid, command=["env", f"PYTHONPATH={folder}", *NODE])
    there = await played(flow, mocks={"refund": "ok"})
    assert isinstance(output(there), int)
    assert output(there) != os.getpid()
    lost = await played(apart(far.pid, command=["env", "-C", str(tmp_path), *NODE]))
    assert output(lost) != os.getpid()  # it lies where it lay: the file is found by its path


# A program at the other end that asks for whatever it likes.
FORGED = """
import json, sys
def send(**message): print(json.dumps(message), flush=True)
send(ready=True)
call = json.loads(sys.stdin.readline())["call"]
send(begun=True)
send(ask=0, tool="touch", args={"file": sys.argv[1]}, place={**call["place"], "name": sys.argv[2]})
answer = json.loads(sys.stdin.readline())
send(done={"output": answer.get("value"), "asks": [], "error": None, "refused": None, "changes": [], "clean": False})
"""


@pytest.mark.parametrize("name", ["touch", "touch_tool"])
async def test_a_process_apart_has_nothing_run_here_that_is_no_tool(
    name: str, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    flow = apart(far.pid, command=[sys.executable, "-c", FORGED, str(mark), name])
    if name == "touch":
        with pytest.raises(ToolRefused, match="not a tool"):
            await perform(flow, "go")
    else:
        await perform(flow, "go")
    assert mark.exists() == (name == "touch_tool")


@pytest.mark.heavy
async def test_other_code_in_the_container_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, answer in (("here", "this version"), ("image", "another version")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "packed.py").write_text(f"def work(input): return {answer!r}\n")
    monkeypatch.syspath_prepend(tmp_path / "here")
    import packed  # pyright: ignore[reportMissingImports]

    flow = apart(packed.work, command=["env", f"PYTHONPATH={tmp_path / 'image'}", *NODE])
    assert output(await played(flow)) == "this version"  # the file is found by its path
    (tmp_path / "here").rename(tmp_path / "away")  # a container has no such file
    _end_those_that_wait()
    ledger = await played(flow)
    assert end_of(ledger).error_type == "BadAgent"
    assert "the separate process has other code" in end_of(ledger).error


@pytest.mark.parametrize(
    "command, why",
    [
        (["no-such-command-anywhere"], "cannot be started"),
        (["false"], "ended with exit code 1 before it was ready"),
        (["echo", "hello"], "before it was ready"),
        (["echo", '{"a": 1}'], "its command must end in `greenroom node`"),
    ],
)
async def test_a_command_that_is_no_node_is_a_failure_by_name(command: list[str], why: str) -> None:
    ledger = await played(apart(far.pid, command=command))
    assert why in end_of(ledger).error
    assert end_of(ledger).error_type == "AgentFailed"
    assert output(
        await played(apart(far.pid, command=command) // apart(far.fail, "none") // far.pid)
    )


# What is refused, checked, drawn and counted


def closure() -> Flow:
    return apart(step(lambda ctx: ctx.input, name="inner"))


async def test_code_that_no_process_would_find_is_found_by_check_and_refused_by_name() -> None:
    flow = closure()
    (issue,) = check(flow).of("error")
    assert (issue.kind, issue.node) == ("CodeNotFound", "apart/inner")
    ledger = await played(flow)
    assert end_of(ledger).error_type == "BadAgent"
    assert "at the top level of a module" in end_of(ledger).error
    assert not check(apart(step(lambda ctx: ctx.input, name="inner"), "none")).of("error")


def test_values_that_cannot_travel_are_found_by_check() -> None:
    (issue,) = check(apart(far.unlike_json_by_type)).of("error")
    assert (issue.kind, issue.node) == ("CannotTravel", "apart/unlike_json_by_type")
    assert "set" in issue.says
    found = check(apart(far.count), given={"session": {"n": {1, 2}}}).of("error")
    assert [(one.kind, one.place) for one in found] == [("CannotTravel", "session.n")]
    assert not check(apart(far.desk)).of("error")


@pytest.mark.parametrize(
    "options",
    [
        {"isolation": "vm"},
        {"command": "docker run"},
        {"command": [""]},
        {"command": [1]},
        {"command": ["a"], "isolation": "none"},
        {"seconds": 0},
        {"seconds": "1"},
    ],
)
def test_a_boundary_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BadAgent):
        apart(far.pid, **options)


def test_graphs_pictures_and_estimates_know_the_boundary() -> None:
    flow = apart(far.clerk >> far.count, seconds=5)
    graph = compile_flow(flow)
    assert isinstance(flow, Apart)
    assert [node.id for node in graph.nodes()][:3] == ["apart", "apart/within", "apart/within/seq"]
    assert repr(flow) == "apart(timeout(Agent('clerk') >> count, 5))"
    assert graph.digest != compile_flow(apart(far.clerk >> far.count, "none")).digest
    assert "apart: process" in mermaid(graph.snapshot)
    assert "apart: docker" in mermaid(compile_flow(apart(far.pid, command=["docker"])).snapshot)
    inside, beside = estimate(apart(far.clerk)), estimate(far.clerk)
    assert [n.calls for n in inside.nodes.values()] == [n.calls for n in beside.nodes.values()]


@pytest.mark.heavy
def test_a_rehearsal_in_workers_has_parts_apart_too() -> None:
    case = Case("one", "hello", mocks={"refund": "ok"}, expect=Expect(tools=["refund"]))
    report = rehearse(far.desk_apart, [case], workers=1)
    assert report.passed, report


async def test_an_agent_of_no_code_needs_no_process() -> None:
    before = list(children._idle)
    agent = Agent("clerk", model=Scripted("Hello."))
    assert output(await played(apart(agent))) == "Hello."
    assert children._idle == before
