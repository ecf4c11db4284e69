"""The agent under test: it tells customers where their order is.

Put your own agent here. Greenroom runs its own agents as below, and those of google-adk, pydantic-ai,
langgraph, openai-agents and 10xscale-agentflow as they are: what this file calls `agent` (or
root_agent, graph, app) is rehearsed.
"""

import json
import re

from greenroom import Agent, Scripted, call, tool
from greenroom.ledger import ToolCall
from greenroom.models import ModelRequest


@tool
def find_order(number: int) -> dict[str, str]:
    """Look an order up by its number."""
    # In a rehearsal this body never runs: the cases in evals/ say what the tool answers.
    raise NotImplementedError("ask your shop system here")


def stand_in(request: ModelRequest) -> str | ToolCall:
    """Answers in place of a model, so that everything here runs without a key."""
    last = request.messages[-1]
    if last.role == "tool":
        return f"Your order is {json.loads(last.text)['status']}."
    number = re.search(r"\d+", last.text)
    if number is None:
        return "What is the number of your order?"
    return call("find_order", number=int(number[0]))


agent = Agent(
    "desk",
    # A real model: model="openai:gpt-4o-mini", with the extra `openai` (see requirements.txt) and
    # OPENAI_API_KEY set.
    model=Scripted(then=stand_in),
    instructions="Help customers find their order. Ask for its number if they do not give it.",
    tools=[find_order],
)
