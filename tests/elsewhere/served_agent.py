"""An agent of ours for `greenroom serve`: the words of a message say what it does."""

import asyncio
from pathlib import Path
from typing import Any

from greenroom import Agent, call, tool
from greenroom.agents import Skill
from greenroom.backends.a2a import card_of
from greenroom.models import ModelReply, ModelRequest


def is_hurried() -> bool:
    return Path("hurry").exists()


def write(line: str) -> None:
    with Path("log").open("a") as file:
        file.write(f"{line}\n")


@tool
def refund(order: int) -> str:
    """Pay back."""
    write(f"refund {order}")
    return f"refunded {order}"


@tool
async def act_slowly() -> str:
    """Act, and take long to say so."""
    write("acted")
    await asyncio.sleep(60)
    return "acted"


@tool(yields=True)
def approve(price: int) -> bool:
    """Ask whether the price is all right."""
    raise NotImplementedError


class Words:
    """A model that does what the last message of the user says."""

    name = "words"

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        said = [message.text for message in request.messages if message.role == "user"]
        results = 0
        for message in reversed(request.messages):
            if message.role == "user":
                break
            results += message.role == "tool"
        text = said[-1]
        if "refund" in text and results == 0:
            return ModelReply(calls=(call("approve", price=90),))
        if "refund" in text and results == 1:
            return ModelReply(calls=(call("refund", order=7),))
        if "act" in text and results == 0:
            return ModelReply(calls=(call("act_slowly"),))
        if "break" in text:
            raise RuntimeError("the secret reason")
        if "half a letter" in text:
            return ModelReply("\ud800")
        if "slowly" in text and not is_hurried():
            write("asked")
            await asyncio.sleep(60)
        answer = f"{len(said)}: {text}"
        if "stream" in text:
            for piece in answer.split(" "):
                on_delta(f"{piece} ")
                await asyncio.sleep(0.01)
            answer += " "
        return ModelReply(answer)


agent = Agent("desk", description="Refunds.", model=Words(), tools=[refund, act_slowly, approve])
card = card_of(agent, "http://127.0.0.1/", skills=[Skill("refund", tags=("money",))])
