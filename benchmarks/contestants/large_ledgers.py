"""Cases whose ledgers are large, remembered in a store: by how much the process grows.

python -m contestants.large_ledgers <cases> <bytes>
"""

import asyncio
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from stopwatch import WARM_UP, peak_kb

from greenroom import Agent, Case, Scripted, call, evaluate, tool
from greenroom.ledger import ToolCall
from greenroom.metrics import contains
from greenroom.models import ModelRequest

READ = "I have read it."
WORD = "word "


@tool
def read(page: int) -> str:
    """Read a page."""
    raise RuntimeError(f"never reached in a rehearsal: {page!r}")


def asks(request: ModelRequest) -> ToolCall:
    """The page that the user named."""
    return call("read", page=int(request.messages[0].text))


def case(number: int, size: int) -> Case:
    """A case whose tool answers with a text of its own, which nobody holds before it is asked."""

    def text(page: int) -> str:
        return f"page {page}: " + WORD * (size // len(WORD))

    return Case(f"case-{number}", str(number), mocks={"read": text}, metrics=[contains(READ)])


async def play(place: Path, count: int, size: int) -> None:
    """Rehearse so many cases as anybody would; all of them must pass."""
    agent = Agent("reader", model=Scripted(asks, READ), tools=[read])
    report = await evaluate(agent, [case(n, size) for n in range(count)], store=place)
    if not report.passed:
        sys.exit(str(report))


def main(count: int, size: int) -> None:
    """Measure, and print the figures as a line of JSON."""
    with TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder), WARM_UP, 100))
        before = peak_kb()
        asyncio.run(play(Path(folder), count, size))
        print(json.dumps({"kb": peak_kb() - before}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
