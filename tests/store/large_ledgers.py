"""Runs whose ledgers are large, in a process of their own, and how much memory they took.

    python large_ledgers.py <store> <cases> <bytes> <concurrency>

It prints by how many MB the most that the process ever held grew.
"""

import os
import resource
import subprocess
import sys
from pathlib import Path

from greenroom import Agent, Case, Report, Scripted, call, rehearse, tool
from greenroom.ledger import ToolCall
from greenroom.metrics import contains
from greenroom.models import ModelRequest

WORD = "word "
AT_ONCE = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}
"""What is freed goes back to the system, where it listens: the peak is what was really held."""


@tool
def read(page: int) -> str:
    """Read a page."""
    raise AssertionError("a tool body ran in a rehearsal")


def asks(request: ModelRequest) -> ToolCall:
    return call("read", page=int(request.messages[0].text))


def case(number: int, size: int) -> Case:
    """A case whose one tool answers with a text of its own, made when it is asked for."""

    def text(page: int) -> str:
        return f"page {page}: " + WORD * (size // len(WORD))

    return Case(
        f"case {number}", says=str(number), mocks={"read": text}, metrics=[contains("Read.")]
    )


def played(place: Path, count: int, size: int, concurrency: int) -> Report:
    agent = Agent("reader", model=Scripted(asks, "Read."), tools=[read])
    cases = [case(number, size) for number in range(count)]
    return rehearse(agent, cases, store=place, concurrency=concurrency)


def peak_mb() -> float:
    """The most memory this process ever held."""
    if sys.platform == "linux":
        # What `resource` says there would begin with the peak of whoever started the process.
        status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in status if "VmHWM" in line) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def grown(
    place: Path, count: int, size: int, *, concurrency: int = 4, exact: bool = False
) -> float:
    """By how many MB a process grows that plays so many cases with ledgers of so many bytes."""
    numbers = [str(number) for number in (count, size, concurrency)]
    settings = {**os.environ, **(AT_ONCE if exact else {})}
    told = subprocess.run(
        [sys.executable, __file__, str(place), *numbers],
        env=settings,
        capture_output=True,
        check=False,
        text=True,
    )
    assert told.returncode == 0, told.stderr
    return float(told.stdout)


def main(place: Path, count: int, size: int, concurrency: int) -> None:
    played(place, 8, 100, concurrency)  # opens what is opened once
    before = peak_mb()
    report = played(place, count, size, concurrency)
    grown = peak_mb() - before
    assert report.passed
    ledger = report.results[-1].ledger
    assert ledger is not None
    assert len(ledger.dumps()) > size
    print(grown)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
