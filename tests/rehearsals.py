"""Small things that tests of whole rehearsals share."""

from typing import Any

from greenroom import Agent, Ledger, Scripted, call
from greenroom.agents import Tool
from greenroom.ledger import RunEnded, ended, tool_calls


def end_of(ledger: Ledger) -> RunEnded:
    """How the run ended; every run does."""
    end = ended(ledger)
    assert end is not None
    return end


def results(ledger: Ledger) -> list[Any]:
    """What the tools gave, or the errors they failed with."""
    return [record.error or record.result for record in tool_calls(ledger)]


def caller(tool: Tool, *calls: dict[str, Any]) -> Agent:
    """An agent that calls `tool` with each of these arguments, and then says so."""
    script = [call(tool.name, **args) for args in calls]
    return Agent("caller", model=Scripted(*script, "Done."), tools=[tool])
