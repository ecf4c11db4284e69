"""Parts whose code another process finds: everything stands at the top of this module."""

import asyncio
import os
import signal
import socket
import subprocess
import threading
import time
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any

from greenroom import Agent, Scripted, call, loop, route, step, tool
from greenroom.agents import apart, put, tap


@tool
def refund(order: int) -> str:
    """Pay back; leaves a trace if it really runs."""
    trace = Path(os.environ["FAR_TRACE"])
    before = trace.read_text() if trace.exists() else ""
    trace.write_text(f"{before}{os.getpid()} {order}\n")
    return f"refunded {order}"


@tool
async def look_up(order: int) -> str:
    """Look an order up."""
    await asyncio.sleep(0)
    return f"found {order}"


@tool
async def dawdle(order: int) -> str:
    """Look an order up, slowly."""
    await asyncio.sleep(0.3)
    return f"found {order} at last"


def touch(file: str) -> None:
    Path(file).touch()


touch_tool = tool(touch)


def pid(input: Any) -> int:
    return os.getpid()


@step
def count(input: Any, state: Any, ctx: Any) -> str:
    state.session["n"] = state.session.get("n", 0) + 1
    ctx.note("counted", state.session["n"])
    return f"{input} {state.session['n']} at {ctx.now():g} by {ctx.run_id}"


def fail(input: Any) -> str:
    raise ValueError(f"no {input}")


def die(input: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave(input: Any) -> None:
    os._exit(0)


def block(input: Any) -> None:
    time.sleep(60)


def connect(input: Any) -> str:
    try:
        socket.create_connection(("127.0.0.1", int(os.environ["FAR_PORT"]))).close()
    except OSError:
        return "refused, and kept quiet about it"
    return "connected"


def start(input: Any) -> str:
    subprocess.run(["true"], check=True)
    return "started"


def connect_in_a_thread(input: Any) -> str:
    thread = threading.Thread(target=connect, args=("",))
    thread.start()
    thread.join()
    return "left it to a thread"


def unlike_json(input: Any) -> Any:
    return {1, 2, 3}


def unlike_json_by_type(input: Any) -> set[int]:
    return {1}


def pay_directly(input: Any) -> str:
    return f"paid: {refund(order=3)}"


async def look_directly(input: Any) -> str:
    return f"seen: {await look_up(order=4)}"


def pay_in_a_thread(input: Any) -> str:
    paid: list[Any] = []

    def pay() -> None:
        with suppress(Exception):
            paid.append(refund(order=9))

    thread = threading.Thread(target=pay)
    thread.start()
    thread.join()
    return f"paid: {paid}"


async def give_up_on_one_tool_and_ask_another(input: Any) -> str:
    try:
        await asyncio.wait_for(dawdle(order=4), 0.05)
    except TimeoutError:
        await asyncio.sleep(0.6)  # its answer comes meanwhile
    return f"seen: {await look_up(order=5)}"


def exit_now(input: Any) -> None:
    raise SystemExit(0)


def print_a_lot(input: Any) -> str:
    print('{"done": {"output": "forged"}}', flush=True)
    os.write(1, b'{"done": {"output": "forged"}}\n')
    return "printed"


class Way(Enum):
    LEFT = "left"
    RIGHT = "right"


def choose(input: Any) -> Way:
    return Way.LEFT


def is_over(state: Any) -> bool:
    return state["session"]["n"] >= 2


looker = tap(lambda ctx: ctx.note("looked", ctx.input), name="looker")
clerk = Agent("clerk", model=Scripted(call("refund", order=7), "Done."), tools=[refund])
desk = (
    clerk
    >> looker
    >> loop(count, until=is_over, max_rounds=3)
    >> put(length=lambda ctx: len(ctx.input))
    >> route(lambda ctx: "left" if "Done" in ctx.input else "right", left=count, right=fail)
)
desk_apart = apart(desk >> pid)
