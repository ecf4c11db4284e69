"""Summaries of long histories: a model condenses the oldest exchanges, and the ledger keeps that."""

from typing import TYPE_CHECKING

from greenroom.agents.context import Exchange, History
from greenroom.backends.native.history import earlier_exchanges
from greenroom.ledger.events import ModelFailed, ModelReplied
from greenroom.ledger.messages import Message
from greenroom.models.model import Model, ModelRequest, model_name
from greenroom.world.records import failing_as_recorded, raised_before

if TYPE_CHECKING:
    from greenroom.backends.native.agent_node import AgentRun

_INSTRUCTIONS = """\
Summarise this conversation for the assistant, who goes on with it and will not see it any more. Keep every \
name, number, date, decision, promise and open question. Write plain sentences, no more than needed."""


async def summary_of_the_past(run: "AgentRun") -> tuple[str, int]:
    """The summary of the oldest exchanges, and how many it covers; new ones are summarised when needed.

    Nothing is summarised if no context rule of the agent asks for it.
    """
    for rule in run.agent.context:
        if isinstance(rule, History) and rule.summarise is not None:
            break
    else:
        return "", 0
    assert rule.last is not None
    earlier = earlier_exchanges(run.index, run.node, run.path, run.team)
    batches = max(0, len(earlier) // rule.last - 1)
    summary = ""
    for number in range(batches):
        batch = earlier[number * rule.last : (number + 1) * rule.last]
        summary = await _summary(run, rule.summarise, number, summary, batch)
    return summary, batches * rule.last


async def _summary(
    run: "AgentRun", model: Model, number: int, before: str, batch: list[Exchange]
) -> str:
    """The n-th summary, from the ledger if it is there."""
    index, node, path = run.index, run.node, run.path
    places = [run.path for run in index.earlier_runs(node, path)] + [path]
    for place in places:
        steps = index.steps.get(_place(place, number))
        if not steps:
            continue
        if isinstance(steps[-1], ModelReplied):
            return steps[-1].text
        if isinstance(steps[-1], ModelFailed) and place == path:
            raise raised_before(steps[-1].error, steps[-1].error_type, steps[-1].ours)
    request = ModelRequest(
        agent=run.agent.name,
        messages=(Message("user", _transcript(before, batch)),),
        instructions=_INSTRUCTIONS,
        model=model_name(model),
        path=_place(path, number),
        node=node,
        n=number,
    )
    with failing_as_recorded():
        return (await run.world.call_model(request, model.respond)).text or ""


def _place(path: str, number: int) -> str:
    return f"{path}/summary:{number}"


def _transcript(before: str, batch: list[Exchange]) -> str:
    lines = [f"summary of what came before: {before}"] if before else []
    for message in (message for exchange in batch for message in exchange):
        asked = ", ".join(f"{call.tool}({dict(call.args)!r})" for call in message.calls)
        lines.append(f"{message.role}: {message.text}{f' [calls {asked}]' if asked else ''}")
    return "\n".join(lines)
