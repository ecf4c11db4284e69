"""Summaries of long histories: a model condenses the oldest exchanges, and the ledger keeps that."""

from collections.abc import Mapping

from greenroom.agents.agent import Agent
from greenroom.agents.context import Exchange, History
from greenroom.backends.native.history import earlier_exchanges
from greenroom.errors import GreenroomError
from greenroom.ledger.events import ModelFailed, ModelReplied
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.messages import Message
from greenroom.models.model import ModelRequest, model_name
from greenroom.world.records import RecordedFailure, describe_error, raised_before
from greenroom.world.world import World

_INSTRUCTIONS = """\
Summarise this conversation for the assistant, who goes on with it and will not see it any more. Keep every \
name, number, date, decision, promise and open question. Write plain sentences, no more than needed."""


def rule_that_summarises(agent: Agent) -> History | None:
    """The agent's rule that has older exchanges summarised, if it has one."""
    for rule in agent.context:
        if isinstance(rule, History) and rule.summarise is not None:
            return rule
    return None


async def summary_of_the_past(
    agent: Agent,
    rule: History,
    world: World,
    index: VoiceIndex,
    node: str,
    path: str,
    team: Mapping[str, Agent],
) -> tuple[str, int]:
    """The summary of the oldest exchanges, and how many it covers; new ones are summarised when needed."""
    assert rule.last is not None
    earlier = earlier_exchanges(index, node, path, team)
    batches = max(0, len(earlier) // rule.last - 1)
    summary = ""
    for number in range(batches):
        batch = earlier[number * rule.last : (number + 1) * rule.last]
        summary = await _summary(number, summary, batch, agent, rule, world, index, node, path)
    return summary, batches * rule.last


async def _summary(
    number: int,
    before: str,
    batch: list[Exchange],
    agent: Agent,
    rule: History,
    world: World,
    index: VoiceIndex,
    node: str,
    path: str,
) -> str:
    """The n-th summary, from the ledger if it is there."""
    assert rule.summarise is not None
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
        agent=agent.name,
        messages=(Message("user", _transcript(before, batch)),),
        instructions=_INSTRUCTIONS,
        model=model_name(rule.summarise),
        path=_place(path, number),
        node=node,
        n=number,
    )
    try:
        return (await world.call_model(request, rule.summarise.respond)).text or ""
    except GreenroomError:
        raise
    except Exception as error:
        raise RecordedFailure(**describe_error(error)) from error


def _place(path: str, number: int) -> str:
    return f"{path}/summary:{number}"


def _transcript(before: str, batch: list[Exchange]) -> str:
    lines = [f"summary of what came before: {before}"] if before else []
    for message in (message for exchange in batch for message in exchange):
        asked = ", ".join(f"{call.tool}({dict(call.args)!r})" for call in message.calls)
        lines.append(f"{message.role}: {message.text}{f' [calls {asked}]' if asked else ''}")
    return "\n".join(lines)
