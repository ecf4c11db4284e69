"""Who may call a tool: metrics, hooks and rescoring never; work of no case is a fault of the run."""

import asyncio
import contextlib
import contextvars
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

import warm_python
from greenroom import (
    Agent,
    Case,
    Expect,
    Report,
    Scripted,
    UserAgents,
    call,
    evaluate,
    live,
    perform,
    rehearse,
    score,
    simulate,
    step,
    tool,
)
from greenroom.agents import Issue, register_check
from greenroom.agents.contracts.registry import forget_check
from greenroom.errors import BadCase, FenceBreach, ImportRefused, MetricRefused, Refusal
from greenroom.ledger.events import Event
from greenroom.ledger.questions import ended
from greenroom.results.gate import Gate
from greenroom.suite import simulate_all
from greenroom.suite.recorded.rescores import rescore
from greenroom.world import Middleware

ACTED: list[str] = []


@tool
def delete() -> str:
    """Delete everything."""
    ACTED.append("deleted")
    return "gone"


@pytest.fixture(autouse=True)
def nothing_acted():
    ACTED.clear()
    yield
    ACTED.clear()


def quiet() -> Agent:
    return Agent("desk", model=Scripted("Hello."), tools=[delete])


def acts(response: str) -> bool:
    try:
        delete()
    except Exception:
        return True
    return True


def test_outside_a_rehearsal_the_tool_acts() -> None:
    delete()
    assert ACTED == ["deleted"]


async def test_a_metric_never_acts_when_a_run_is_measured_anew() -> None:
    report = await evaluate(quiet(), Case("c", "Hi"))
    assert (await rescore(report, metrics=[acts])).report.results[0].status == "error"
    assert ACTED == []


async def test_a_metric_never_acts_on_a_ledger_by_itself() -> None:
    ledger = await simulate(Case("c", "Hi"), quiet())
    with pytest.raises(MetricRefused, match="called the tool 'delete'"):
        await score(ledger, [acts])
    assert ACTED == []


def test_a_metric_never_acts_in_a_process_that_never_rehearsed(tmp_path: Path) -> None:
    script = tmp_path / "alone.py"
    script.write_text(
        "import asyncio\n"
        "from greenroom import Ledger, score, tool\n"
        "from greenroom.errors import Refusal\n"
        "from greenroom.ledger.events import AgentSaid, RunEnded, UserSaid\n"
        "acted = []\n"
        "@tool\n"
        "def delete() -> str:\n"
        "    acted.append(1)\n"
        "    return 'gone'\n"
        "def acts(response: str) -> bool:\n"
        "    delete()\n"
        "    return True\n"
        "ledger = Ledger([UserSaid(text='Hi'), AgentSaid(text='Hello'), RunEnded(reason='completed')])\n"
        "try:\n"
        "    asyncio.run(score(ledger, [acts]))\n"
        "except Refusal as refusal:\n"
        "    print(type(refusal).__name__, acted)\n"
    )
    done = warm_python.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stdout == "MetricRefused []\n", done.stderr


def polite(response: str) -> bool:
    return True


def on_start(_: Case) -> None:
    delete()


def on_complete(_: Any) -> None:
    delete()


def on_each(_: Case, __: Event) -> None:
    delete()


def on_metric(*_: Any) -> None:
    delete()


@pytest.mark.parametrize(
    "moment, hook",
    [
        ("on_case_start", on_start),
        ("on_case_complete", on_complete),
        ("on_event", on_each),
        ("on_metric_complete", on_metric),
    ],
)
async def test_a_hook_never_acts_and_is_a_fault_of_the_run(moment: str, hook: Any) -> None:
    given: dict[str, Any] = {moment: hook}
    case = Case("c", "Hi", allow_tools=["delete"], metrics=[polite])
    report = await evaluate(quiet(), case, **given)
    assert ACTED == []
    assert len(report.faults) == 1, report.notes
    assert "called the tool 'delete'" in report.faults[0]
    assert not report.passed
    assert Gate(max_errors=99).decide(report).missed[0].kind == "errors"


async def test_a_hook_inside_a_function_does_not_reach_its_tools() -> None:
    async def clerk(message: str) -> str:
        await asyncio.sleep(0)
        return "Hello."

    case = Case("c", "Hi", mocks={"delete": "ok"})
    report = await evaluate(clerk, case, on_event=on_each)
    assert ACTED == []
    assert report.faults


async def test_a_hook_may_connect() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def upload(_: Any) -> None:
            socket.create_connection(server.getsockname(), 1).close()

        report = await evaluate(quiet(), Case("c", "Hi"), on_case_complete=upload)
    assert not report.notes


def stray_call() -> None:
    with contextlib.suppress(Refusal):
        contextvars.Context().run(delete)


def stray_connection() -> None:
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", 9), 1)


@pytest.mark.parametrize("stray", [stray_call, stray_connection])
async def test_what_belongs_to_no_case_is_a_fault_and_ends_all_that_are_open(stray: Any) -> None:
    go, gone = threading.Event(), threading.Event()

    def older() -> None:
        go.wait(5)
        stray()
        gone.set()

    thread = threading.Thread(target=older)
    thread.start()

    async def patient(message: str) -> str:
        if message == "go":
            go.set()
        while not gone.is_set():  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0.005)
        return "fine"

    cases = [Case(str(n), "go" if n else "wait") for n in range(3)]
    report = await evaluate(patient, cases, concurrency=3)
    thread.join()
    assert ACTED == []
    assert [result.status for result in report.results] == ["error"] * 3
    assert "work of no case" in report.faults[0]
    assert Gate(max_errors=99, min_pass_rate=0).decide(report).missed[0].kind == "errors"
    assert report.faults[0] in str(report)


def test_work_of_no_case_must_not_act_between_two_trials():
    asked, done = threading.Event(), threading.Event()

    def older() -> None:
        asked.wait(60)
        with contextlib.suppress(Refusal):
            delete()
        done.set()

    def hook(_: object) -> None:
        asked.set()
        done.wait(60)

    threading.Thread(target=older).start()
    report = rehearse(quiet(), Case("a", says="Hi"), on_case_complete=hook, store=False)
    assert ACTED == []
    assert "work of no case tried a call of the tool 'delete'" in report.faults[0]


def test_a_callback_of_the_loop_is_not_blamed_on_the_line_that_began_the_run():
    async def clerk(message: str) -> str:
        empty, done = contextvars.Context(), asyncio.Event()
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        asyncio.get_running_loop().call_soon(stray_connection, context=empty)
        asyncio.get_running_loop().call_soon(delete, context=empty)
        asyncio.get_running_loop().call_soon(done.set)
        await done.wait()
        return "Hello."

    first, second = rehearse(clerk, Case("a", says="Hi"), store=False).faults
    assert "in stray_connection" in first
    assert "a call of the tool 'delete' during the run" in second


@pytest.mark.parametrize("mocks, faults", [({}, 1), ({"delete": "ok"}, 0)])
async def test_a_call_without_a_mock_by_work_that_a_case_left_behind_is_a_fault(
    mocks: dict[str, Any], faults: int
):
    is_over, was_called = asyncio.Event(), asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    async def delete_later() -> None:
        await is_over.wait()
        with contextlib.suppress(Refusal):
            await asyncio.to_thread(delete)
        was_called.set()

    async def clerk(message: str) -> str:
        if message == "Leave!":
            tasks.append(asyncio.create_task(delete_later()))
        else:
            await was_called.wait()
        return "Hello."

    leaves = Case("leaves", says="Leave!", mocks=mocks, expect=Expect(response="Hello."))
    stays = Case("stays", says="Stay!", expect=Expect(response="Hello."))
    report = await evaluate(clerk, [leaves, stays], on_case_complete=lambda _: is_over.set())
    assert ACTED == []
    assert [result.status for result in report.results] == ["passed", "passed"]
    assert len(report.faults) == faults
    assert all("'leaves' left behind tried a call of the tool 'delete'" in f for f in report.faults)


async def test_a_fault_stands_in_a_batch_of_simulations() -> None:
    def older() -> None:
        go.wait(5)
        stray_call()
        gone.set()

    go, gone = threading.Event(), threading.Event()
    thread = threading.Thread(target=older)
    thread.start()

    async def patient(message: str) -> str:
        go.set()
        while not gone.is_set():  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0.005)
        return "fine"

    batch = await simulate_all(patient, Case("c", "Hi"))
    thread.join()
    assert batch.faults
    assert batch.errors


async def test_a_signal_handler_does_not_act() -> None:
    def handler(*_: Any) -> None:
        with contextlib.suppress(Refusal):
            delete()

    before = signal.signal(signal.SIGUSR1, handler)
    try:

        async def poked(message: str) -> str:
            signal.raise_signal(signal.SIGUSR1)
            return "fine"

        report = await evaluate(poked, Case("c", "Hi"))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert ACTED == []
    assert report.results[0].status == "error"


@pytest.mark.parametrize("begin", [evaluate, simulate_all])
async def test_a_rehearsal_inside_a_case_ends_the_case_whatever_its_code_does(begin: Any) -> None:
    async def nested(message: str) -> str:
        with contextlib.suppress(BadCase):
            await begin(quiet(), [Case("inner", "Hi", allow_tools=["delete"])])
        return "Hello."

    ledger = await simulate(Case("c", "Hi"), nested)
    end = ended(ledger)
    assert end is not None
    assert "a rehearsal was begun inside case 'c' at test_who_may_call.py" in end.error


@pytest.mark.parametrize("workers", [0, 1])
def test_no_hook_and_no_worker_of_a_rehearsal_inside_a_case_acts(
    workers: int, tmp_path: Path
) -> None:
    def acts(_: Case) -> None:
        subprocess.run(["touch", tmp_path / "here"], check=True)

    def nested(message: str) -> str:
        with contextlib.suppress(Exception):
            rehearse(
                lambda message: "Hello.",
                Case("inner", "Hi", metrics=[polite]),
                on_case_start=acts,
                workers=workers,
                store=False,
            )
        return "Hello."

    result = rehearse(nested, Case("c", "Hi", metrics=[polite]), store=False).results[0]
    assert result.status == "error"
    assert not (tmp_path / "here").exists()


def test_a_rehearsal_inside_a_metric_is_not_a_score() -> None:
    def asks(response: str) -> bool:
        with contextlib.suppress(Exception):
            rehearse(quiet(), Case("inner", "Hi"), store=False)
        return True

    result = rehearse(quiet(), Case("c", "Hi", metrics=[asks]), store=False).results[0]
    assert result.status == "error"


def test_the_command_line_exits_with_two_whatever_errors_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "import contextvars\n"
        "import threading\n"
        "from greenroom import tool\n"
        "@tool\n"
        "def delete() -> str:\n"
        "    return 'gone'\n"
        "go, gone = threading.Event(), threading.Event()\n"
        "def older():\n"
        "    go.wait(10)\n"
        "    try:\n"
        "        delete()\n"
        "    except Exception:\n"
        "        pass\n"
        "    gone.set()\n"
        "threading.Thread(target=older, daemon=True).start()\n"
        "def agent(message):\n"
        "    go.set()\n"
        "    gone.wait(10)\n"
        "    return 'Hello.'\n"
    )
    (tmp_path / "cases.yaml").write_text(
        "version: 1\ncases:\n- id: a\n  says: Hi\n  expect: {response: Hello.}\n"
    )
    command = [sys.executable, "-m", "greenroom.apps.cli", "eval", "run", "agent.py:agent"]
    options = ["cases.yaml", "--max-errors", "5", "--min-pass-rate", "0"]
    done = warm_python.run(
        [*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "fault of the run: what the import of agent.py started" in done.stdout + done.stderr


def test_rehearse_is_silent_about_faults_when_there_are_none() -> None:
    assert rehearse(quiet(), Case("c", "Hi")).faults == []


# Code that Greenroom itself calls before the first trial, between two, and after the last


def swallowing() -> None:
    """Act, and hide the refusal."""
    with contextlib.suppress(Exception):
        delete()
    with contextlib.suppress(Exception):
        subprocess.run(["true"], check=False)
        ACTED.append("started a process")


class Closes(Middleware):
    async def close(self) -> None:
        swallowing()


class Redacts(Middleware):
    def __init__(self, most: int = 1) -> None:
        self.left = most

    def redact(self, text: str) -> str:
        if self.left:
            self.left -= 1
            swallowing()
        return text


class Named(Scripted):
    @property
    def name(self) -> str:
        swallowing()
        return "named"

    @name.setter
    def name(self, _: str) -> None: ...


def faults(report: Report) -> list[str]:
    return [note for note in report.notes if note.startswith("fault of the run")]


def test_middleware_that_is_closed_never_acts() -> None:
    case = Case("c", "Hi", metrics=[polite])
    report = rehearse(quiet(), case, middleware=[Closes()], store=False)
    assert ACTED == []
    assert report.results[0].passed
    assert [str(delete) in fault for fault in faults(report)] == [True, False]


def test_middleware_that_raises_the_refusal_is_one_fault() -> None:
    class Raises(Middleware):
        async def close(self) -> None:
            delete()

    report = rehearse(quiet(), Case("c", "Hi"), middleware=[Raises()], store=False)
    assert ACTED == []
    assert len(report.notes) == len(faults(report)) == 1


async def test_what_middleware_leaves_behind_when_it_is_closed_never_acts() -> None:
    left: list[asyncio.Task[None]] = []

    class Leaves(Middleware):
        async def close(self) -> None:
            async def later() -> None:
                await asyncio.sleep(0)
                swallowing()

            left.append(asyncio.create_task(later()))

    await evaluate(quiet(), Case("c", "Hi"), middleware=[Leaves()], store=False)
    await asyncio.gather(*left, return_exceptions=True)
    assert ACTED == []


async def test_middleware_of_a_batch_never_acts() -> None:
    batch = await simulate_all(quiet(), Case("c", "Hi"), middleware=[Closes()])
    assert ACTED == []
    assert len(batch.faults) == 2


@pytest.mark.parametrize("most", [1, 1000])
def test_middleware_that_redacts_never_acts(most: int) -> None:
    report = rehearse(quiet(), Case("c", "Hi"), middleware=[Redacts(most)], store=False)
    assert ACTED == []
    assert report.results[0].status == "error"
    assert (error := report.results[0].error) is not None
    assert "delete" in error.message


async def test_middleware_that_redacts_never_acts_in_a_simulation() -> None:
    ledger = await simulate(Case("c", "Hi"), quiet(), middleware=[Redacts()])
    assert ACTED == []
    assert (end := ended(ledger)) is not None
    assert end.error_type == "FenceBreach"


def test_a_function_that_makes_middleware_never_acts(tmp_path: Path) -> None:
    made = tmp_path / "made_middleware.py"
    made.write_text(
        "from greenroom import tool\n"
        "from greenroom.world import Middleware\n"
        "@tool\n"
        "def pay() -> str:\n"
        "    raise SystemExit('paid')\n"
        "class Looks(Middleware):\n"
        "    async def close(self) -> None: ...\n"
        "def make():\n"
        "    try:\n"
        "        pay()\n"
        "    except Exception:\n"
        "        pass\n"
        "    return Looks()\n"
    )
    with pytest.raises(
        ImportRefused, match=r"called the tool 'pay' at made_middleware.py:10 in make"
    ):
        rehearse(quiet(), Case("c", "Hi"), middleware=[f"{made}:make"], store=False)


def test_a_contract_check_never_acts() -> None:
    def looks(*_: object) -> Iterator[Issue]:
        swallowing()
        yield from ()

    register_check("acts", looks)
    try:
        with pytest.raises(FenceBreach, match=r"tool 'delete' at .* before the first trial"):
            rehearse(quiet(), Case("c", "Hi"), store=False)
    finally:
        forget_check("acts")
    assert ACTED == []


def test_a_generator_of_cases_calls_no_tool() -> None:
    def cases() -> Iterator[Case]:
        with contextlib.suppress(Exception):
            delete()
        yield Case("c", "Hi")

    with pytest.raises(FenceBreach, match="tool 'delete'"):
        rehearse(quiet(), cases(), store=False)
    with pytest.raises(FenceBreach, match="tool 'delete'"):
        asyncio.run(simulate_all(quiet(), cases()))
    assert ACTED == []


def test_a_generator_of_cases_may_connect_like_the_program_that_passes_it() -> None:
    def cases() -> Iterator[Case]:
        assert subprocess.run(["true"], check=False).returncode == 0
        yield Case("c", "Hi", metrics=[polite])

    assert rehearse(quiet(), cases(), store=False).passed


def test_a_generator_of_cases_in_a_file_is_fenced_like_the_file(tmp_path: Path) -> None:
    file = tmp_path / "generated_cases.py"
    file.write_text(
        "import subprocess\n"
        "from greenroom import Case\n"
        "def made():\n"
        "    subprocess.run(['true'])\n"
        "    yield Case('c', 'Hi')\n"
        "cases = made()\n"
    )
    with pytest.raises(ImportRefused, match="subprocess"):
        rehearse(quiet(), f"{file}:cases", store=False)


def test_a_property_of_a_model_that_is_read_never_acts() -> None:
    agent = Agent("desk", model=Named("Hello."), tools=[delete])
    with pytest.raises(FenceBreach):
        rehearse(agent, Case("c", "Hi"), store=False)
    case = Case("c", "Hi", agent=Agent("desk", model=Named("Hello."), tools=[delete]))
    with pytest.raises(FenceBreach):
        asyncio.run(simulate(case))
    assert ACTED == []


def test_a_rehearsal_inside_a_case_is_still_refused() -> None:
    def nested(message: str) -> str:
        inner = Case("inner", "Hi", allow_tools=["delete"])
        clerk = Agent("clerk", model=Scripted(call("delete"), "Done"), tools=[delete])
        with contextlib.suppress(Exception):
            rehearse(clerk, inner, store=False)
        return "Hello."

    rehearse(nested, Case("c", "Hi"), store=False)
    assert ACTED == []


def test_what_runs_after_a_rehearsal_is_free_again() -> None:
    rehearse(quiet(), Case("c", "Hi"), store=False)
    delete()
    assert subprocess.run(["true"], check=False).returncode == 0
    assert ACTED == ["deleted"]


@pytest.mark.parametrize("allowed", [False, True])
def test_a_conversation_for_real_inside_a_case_is_an_error_whatever_the_case_does(
    allowed: bool,
) -> None:
    clerk = Agent("clerk", model=Scripted(call("delete"), "Done"), tools=[delete])

    async def desk(message: str) -> str:
        with contextlib.suppress(Exception):
            await perform(clerk, message)
        return "Hello."

    case = Case("c", "Hi", metrics=[polite], allow_tools=["delete"] if allowed else [])
    error = rehearse(desk, case, store=False).results[0].error
    assert error is not None
    assert "perform() was called inside case 'c' at test_who_may_call.py" in error.message
    assert ACTED == []


def test_a_conversation_for_real_inside_a_metric_is_not_a_score() -> None:
    clerk = Agent("clerk", model=Scripted(call("delete"), "Done"), tools=[delete])

    async def asks(response: str) -> bool:
        with contextlib.suppress(Exception):
            await perform(clerk, "Hi")
        return True

    result = rehearse(quiet(), Case("c", "Hi", metrics=[asks]), store=False).results[0]
    assert result.status == "error"
    assert ACTED == []


def test_a_generator_that_a_case_leaves_behind_does_not_act_when_it_is_closed() -> None:
    left: list[Any] = []

    async def pieces() -> AsyncGenerator[str]:
        try:
            yield "Hello."
        finally:
            with contextlib.suppress(Refusal):
                delete()

    async def clerk(message: str) -> str:
        left.append(generator := pieces())
        return await anext(generator)

    rehearse(clerk, Case("c", "Hi", metrics=[polite]), store=False)
    assert left[0].ag_frame is None, "it was not closed"
    assert ACTED == []


def test_a_body_that_never_runs_does_not_run_if_the_tool_is_its_own_mock() -> None:
    @tool(yields=True)
    def ask(q: str) -> str:
        """Ask the customer."""
        ACTED.append("asked")
        return "from the body"

    @step
    def calls() -> str:
        with contextlib.suppress(Exception):
            ask("?")
        return "from the user"

    agent = Agent("desk", model=Scripted(call("ask", q="?"), lambda r: r.last), tools=[ask])
    user = UserAgents(tools={"ask": "from the user"})
    expect = Expect(response="from the user")
    for mock in (ask, ask.fn, live(ask, hosts=["localhost"])):
        case = Case("c", "Hi", mocks={"ask": mock}, user=user, expect=expect)
        assert rehearse(agent, case, store=False).passed
        rehearse(calls, Case("c", "Hi", mocks={"ask": mock}), store=False)
    assert ACTED == []
