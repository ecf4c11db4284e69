"""A run whose tools act for real, played by the command line for others to kill.

Each body appends one line to `acts`, and is on disk with it before it comes back. So the file knows
how often each call was really made, whatever the run that made it knows of it.
"""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from apps.terminals import started
from greenroom.ledger import Noted, ToolCalled
from greenroom.simulation.gate import CALLED_DIRECTLY
from greenroom.store import Store
from store.servers import children_of

COUNT = 24
"""Cases in a run."""

WRITTEN = '''
import asyncio
import os
import re
import time
from pathlib import Path

from greenroom import Agent, Case, EvalSet, Scripted, UserAgents, call, step, tool
from greenroom.metrics import contains

HERE = Path(__file__).parent
COUNT = {count}


def act(line: str) -> str:
    file = os.open(os.environ.get("ACTS", HERE / "acts"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, line.encode() + b"\\n")
    os.fsync(file)
    os.close(file)
    time.sleep(0.002)
    return "done"


@tool
def pay(case: str, n: int) -> str:
    """Pay for real."""
    return act(f"pay {{case}} {{n}}")


@tool
async def ship(case: str, n: int) -> str:
    """Ship for real."""
    return act(f"ship {{case}} {{n}}")


@tool
def look(case: str) -> str:
    """Look up something, as the user does it: a part of the play, which may run again."""
    return "found"


@tool(yields=True)
def ask(question: str) -> str:
    """Ask the user."""


def case_of(request):
    said = next(m.text for m in request.messages if m.role == "user")
    return re.search(r"case-\\d+", said)[0]


AGENT = Scripted(
    lambda r: [call("pay", case=case_of(r), n=0), call("ship", case=case_of(r), n=0)],
    lambda r: call("ask", question=case_of(r)),
    lambda r: call("pay", case=case_of(r), n=1),
    lambda r: [call("ship", case=case_of(r), n=1), call("pay", case=case_of(r), n=2)],
    "All is paid.",
    latency=0.004,
)
USER = Scripted(lambda r: call("look", case=case_of(r)), "Yes.", latency=0.003)
agent = Agent("clerk", model=AGENT, tools=[pay, ship, ask])
helper = Agent("helper", model=USER, tools=[look])
cases = EvalSet(
    "acts",
    [
        Case(
            f"case-{{i}}",
            f"case-{{i}}",
            allow_tools=["pay", "ship"],
            user=UserAgents(tools={{"ask": helper}}),
            metrics=[contains("paid")],
        )
        for i in range(COUNT)
    ],
)
{more}
'''


class Acts:
    """One run in a folder, killed and continued."""

    def __init__(
        self, place: Path, *words: str, more: str = "", count: int = COUNT, store: str = "runs"
    ) -> None:
        self.place = place
        self.folder = store
        """Where the store is."""
        self.words = ["eval", "run", "acts.py", "--store", store, *words]
        (place / "acts.py").write_text(WRITTEN.format(count=count, more=more), encoding="utf-8")

    @property
    def lines(self) -> list[str]:
        """Every act there was."""
        try:
            return (self.place / "acts").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []

    def kill_after(self, acts: int, pause: float, sent: signal.Signals, *words: str) -> int:
        """How a process ended that was sent a signal a moment after so many more acts."""
        with started(*self.words, *words, cwd=self.place) as process:
            self.wait_for_more(acts, process)
            time.sleep(pause)
            process.send_signal(sent)
            told = process.communicate()[0].decode()
        assert "Traceback" not in told, told
        return process.returncode

    def wait_for_more(self, acts: int, process: "subprocess.Popen[bytes]") -> None:
        """Come back after so many more acts, or when the process has ended."""
        until = len(self.lines) + acts
        while process.poll() is None and len(self.lines) < until:
            time.sleep(0.002)

    def finish(self, codes: Collection[int] = (0, 2)) -> None:
        """Let the run come to its end, if it has not."""
        if self.status != "finished":
            with started(*self.words, "--resume", cwd=self.place) as process:
                told = process.communicate()[0].decode()
            assert process.returncode in codes, told

    def killed(self, choose: random.Random, sent: signal.Signals, kills: int) -> int:
        """Kill process after process; how many were really cut."""
        cut = 0
        for _ in range(kills):
            if self.status == "finished":
                break
            words = ["--resume"] if self.status else []
            code = self.kill_after(choose.randint(1, 9), choose.uniform(0, 0.02), sent, *words)
            cut += code in (-sent, 128 + sent)
        return cut

    @property
    def status(self) -> str:
        """How far the run is; empty before it is in the store."""
        return next((run.status for run in self.store().runs()), "")

    def store(self, folder: str = "") -> Store:
        """The store, or the one of another folder."""
        named = folder or self.folder
        return Store(named if "://" in named else self.place / named)

    @property
    def run_id(self) -> str:
        """The run."""
        [run] = self.store().runs()
        return run.id

    def recorded(self, store: Store) -> Counter[str]:
        """Every act that some ledger knows of."""
        [run] = store.runs()
        found: Counter[str] = Counter()
        for key in store.keys(run.id):
            ledger = store.ledger(run.id, key)
            calls = [c for c in ledger.of(ToolCalled, voice=None) if c.tool != "ask"]
            found += Counter(f"{c.tool} {c.args['case']} {c.args.get('n', 0)}" for c in calls)
            notes: list[Any] = [
                n.data for n in ledger.of(Noted, voice=None) if n.name == CALLED_DIRECTLY
            ]
            found += Counter(f"{data['tool']} {key.case_id} 9" for data in notes)
        return found

    def check(
        self,
        trials: int = 1,
        place: str = "",
        most: int = 0,
        earlier: Mapping[str, int] | None = None,
        doubts: Collection[str] = ("InDoubt",),
    ) -> None:
        """No act was done twice, every act is known, and every trial has come to a verdict.

        `earlier` are acts of attempts that others have replaced.
        """
        store = self.store(place)
        [run] = store.runs()
        assert (run.status, run.done) == ("finished", run.plan.cases * trials)
        twice = Counter(self.lines) - self.recorded(store) - Counter(earlier or {})
        assert not twice, f"done more often than recorded: {twice}"
        assert max(Counter(self.lines).values()) <= (most or trials)
        for result in store.report(run.id):
            assert result.status == "passed" or (
                result.error is not None and result.error.type in doubts
            ), result


def kill_workers(process: "subprocess.Popen[bytes]") -> None:
    """Kill the processes that a process has started."""
    for pid in children_of(process.pid):
        with suppress(ProcessLookupError):  # it left before it could be killed
            os.kill(pid, signal.SIGKILL)
