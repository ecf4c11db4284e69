import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from greenroom.apps.cli import main

AUTHOR = """
from greenroom import Agent, Case, EvalSet, Lines, Scripted, Stop, call, loop, tool
from greenroom.metrics import contains, metric

@tool
def refund(order: int) -> dict:
    '''Pay an order back.'''
    raise RuntimeError("never reached in a rehearsal")

def clerk(*answers):
    return Agent("clerk", model=Scripted(*answers), tools=[refund])

agent = clerk(call("refund", order=7), "Your money is on its way.")
"""

Write = Callable[..., Path]
CommandGroup = Callable[..., Result]


@pytest.fixture
def author(tmp_path, monkeypatch) -> Write:
    """Writes a file as an author would, below the usual imports, and stands in its folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(text: str, name: str = "shop.py", *, bare: bool = False) -> Path:
        path = tmp_path / name
        path.write_text(textwrap.dedent(text if bare else AUTHOR + textwrap.dedent(text)))
        return path

    return write


@pytest.fixture
def greenroom(monkeypatch) -> CommandGroup:
    """The command line, called as from a pipe, which has no width."""
    monkeypatch.delenv("COLUMNS", raising=False)
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])
