"""A function that is cut behind a failure and begun again comes to the same end."""

from typing import Any

import pytest

from greenroom import Case, Ledger, Scripted, Turn, call, fault, simulate, tool
from greenroom.backends.function import FunctionBackend
from greenroom.cases import in_turn
from greenroom.errors import GarbledReply
from greenroom.ledger import ended, messages, state, tool_calls
from greenroom.world import ToolError


@tool
def look(key: str) -> str:
    """Look something up."""
    raise AssertionError("a tool body ran in a rehearsal")


def asked_again() -> Any:
    async def clerk(message: str, ctx: Any) -> str:
        said: list[str] = []
        model = Scripted(ConnectionError("down"), "one", call("look", key="a"), "two")
        for _ in range(3):
            try:
                said.append((await ctx.ask(model, message)).text)
            except Exception as error:
                said.append(str(error))
        for key in ("a", "bad"):
            try:
                said.append(await look(key))
            except ToolError as error:
                said.append(f"no {error}")
        ctx.state.session["said"] = [*ctx.state.session.get("said", []), len(said)]
        return " ".join(said)

    return clerk


def broken_by_its_model() -> Any:
    async def clerk(message: str, ctx: Any) -> str:
        await look("a")
        try:
            await ctx.ask(Scripted(GarbledReply("no words")), message)
        except Exception as error:
            return f"I caught {error}"
        return "never"

    return clerk


def broken_by_itself() -> Any:
    async def clerk(message: str, ctx: Any) -> str:
        await look("a")
        reply = await ctx.ask(Scripted(ConnectionError("down")), message)
        return reply.text

    return clerk


def case() -> Case:
    mocks = {"look": in_turn("found", fault("it broke"), "found again", fault("and again"))}
    return Case("one", turns=[Turn("go"), Turn("on")], mocks=mocks, now=1.0)


@pytest.mark.parametrize("build", [asked_again, broken_by_its_model, broken_by_itself])
async def test_a_function_cut_at_any_event_comes_to_the_same_end(build: Any) -> None:
    def agent() -> FunctionBackend:
        return FunctionBackend(build(), tools=[look])

    whole = await simulate(case(), agent())
    lines = whole.dumps().splitlines(keepends=True)
    end = ended(whole)
    assert end is not None
    for k in range(len(lines)):
        again = await simulate(case(), agent(), ledger=Ledger.loads("".join(lines[:k])))
        over = ended(again)
        assert over is not None
        assert (over.reason, over.error, over.error_type, over.phase) == (
            *(end.reason, end.error, end.error_type, end.phase),
        ), k
        assert messages(again) == messages(whole), k
        assert state(again) == state(whole), k
        told = [
            [(c.tool, c.args, c.result, c.error) for c in tool_calls(one)] for one in (again, whole)
        ]
        assert told[0] == told[1], k
