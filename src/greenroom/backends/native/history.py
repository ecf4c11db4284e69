"""What an agent node remembers, read from the ledger: its own exchanges, those of others, and summaries of old ones."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from greenroom.agents.agent import Agent
from greenroom.agents.context import Exchange, History, Scene, history
from greenroom.agents.handoffs import transfers
from greenroom.ledger.attachments import text_and_attachments
from greenroom.ledger.events import Corrected, ModelFailed, ModelReplied, NodeStarted
from greenroom.ledger.index import Step, VoiceIndex
from greenroom.ledger.messages import Message, ToolCall
from greenroom.ledger.paths import branch_of, root_of
from greenroom.ledger.plain import Json
from greenroom.models.model import Model, ModelRequest, model_name
from greenroom.world.records import failing_as_recorded, raised_before

if TYPE_CHECKING:
    from greenroom.backends.native.agent_node import AgentRun

_ATTEMPT = re.compile(r"~\d+$")
_REMEMBER_ALL = (history(),)
_SUMMARISE = """\
Summarise this conversation for the assistant, who goes on with it and will not see it any more. Keep every \
name, number, date, decision, promise and open question. Write plain sentences, no more than needed."""
_NO_TRANSFERS: Mapping[str, str] = MappingProxyType({})


async def conversation(run: "AgentRun") -> tuple[Message, ...]:
    """All messages for the agent's model: context rules first, the current exchange last.

    A summary may replace the first exchanges. A team shares what was said.
    """
    index, node, path, team = run.index, run.node, run.path, run.team
    present = _shared(index, path, team) if team else _exchange(index, path)
    # Most agents are asked once: then there is no history to search.
    is_first = len(index.invocations) == 1 and len(index.runs[node]) == 1 and not index.answers
    earlier = [] if is_first else earlier_exchanges(index, node, path, team)
    if not earlier and run.agent.context == _REMEMBER_ALL:
        return present
    text, count = await _summary_of_the_past(run, earlier)
    state = run.world.ledger.fold(run.world.voice, branch_of(path))
    scene = Scene(earlier[count:], state, text)
    return (*(message for rule in run.agent.context for message in rule(scene)), *present)


def handed_over(calls: Iterable[ToolCall], transfers: Mapping[str, str]) -> str:
    """The agent that the calls of a reply hand over to; the first counts if there are several."""
    return next((transfers[call.tool] for call in calls if call.tool in transfers), "")


def _shared(index: VoiceIndex, path: str, team: Mapping[str, Agent]) -> Exchange:
    """What a team said and heard from one question up to the run at `path`; all members see all of it."""
    base = path.rpartition("/")[0]
    found = [run for node in team for run in index.runs.get(node, ())]
    runs = [r for r in found if r.path.rpartition("/")[0] == base]
    begun = index.started[path].seq
    messages: list[Message] = []
    by_name = {agent.name: agent for agent in team.values()}
    for run in sorted(runs, key=lambda run: run.seq):
        if run.path == path or (run.path in index.ended and run.seq < begun):
            said = _exchange(index, run.path, transfers(team[run.node], by_name))
            messages += said[len(_question(run.input)) if messages else 0 :]
    return tuple(messages)


def _exchange(
    index: VoiceIndex, path: str, transfers: Mapping[str, str] = _NO_TRANSFERS
) -> tuple[Message, ...]:
    """What was said and heard in one run of a node, beginning with its input.

    The index caches complete steps, so that each step adds only its own messages.
    """
    steps = index.steps.get(path, ())
    messages, count = index.exchanges.get(path) or (_question(index.started[path].input), 0)
    is_over = True
    if count < len(steps):
        said = list(messages)
        for step in steps[count:]:
            is_over = _add_step(said, index, step, transfers)
        messages = tuple(said)
    if is_over:
        index.exchanges[path] = messages, len(steps)
    return messages


def _question(given: Json) -> Exchange:
    if given is None or given == "":
        return ()
    text, attached = text_and_attachments(given)
    return (Message("user", text, attachments=attached),)


def _add_step(
    said: list[Message], index: VoiceIndex, step: Step, transfers: Mapping[str, str]
) -> bool:
    """Add what was said and heard in a step; False if it is incomplete: a running call has no result."""
    if not isinstance(step, ModelReplied):
        if isinstance(step, Corrected):
            said.append(Message("user", step.text))
        return True
    said.append(step.message)
    is_over = True
    for call in step.calls:
        if call.tool in transfers:
            to = handed_over(step.calls, transfers)
            text = f"The conversation was handed over to {to}."
            if transfers[call.tool] != to:
                text = f"Not handed over to {transfers[call.tool]}: {to} was first."
            said.append(Message("tool", text, (), call.id, call.tool))
            continue
        match index.results.get(call.id):
            case None:
                is_over = False
            case end:
                said.append(index.result_message(end))
    return is_over


def earlier_exchanges(
    index: VoiceIndex, node: str, path: str, team: Mapping[str, Agent]
) -> list[Exchange]:
    """Exchanges that were over before this run began, oldest first.

    A node remembers its own in full, even one in which the agent broke, because its tools may have acted. Of
    exchanges it took no part in (another branch of a route answered, another user agent spoke) it knows only
    the question and the answer.
    """
    own = [
        run
        for one in team or (node,)
        for run in index.earlier_runs(one, path)
        if run.path in index.ended
    ]
    found = _of_a_team(index, own, path, team) if team else []
    if not team:
        found = [(run.seq, _exchange(index, run.path)) for run in own]
    if failed := [root for root, end in index.invocations_ended.items() if end.outcome == "failed"]:
        runs = [run for one in team or (node,) for run in index.runs.get(one, ())]
        known = [run for run in runs if root_of(run.path) in failed and run.path not in index.ended]
        # Of runs that were tried again after they had failed, the last one.
        last = {_ATTEMPT.sub("", run.path): run for run in known}
        found += [(run.seq, _broken(index, run.path)) for run in last.values()]
    for seq, pair, place in _heard(index, path):
        if not any(run.path.startswith(f"{place}/") for run in own):
            found.append((seq, pair))
    return [exchange for _, exchange in sorted(found, key=lambda entry: entry[0])]


def _broken(index: VoiceIndex, path: str) -> Exchange:
    """What was said and heard in a run before it broke, with a note for every call without a result."""
    said = _exchange(index, path)
    ended = {message.call_id for message in said if message.role == "tool"}
    notes: list[Message] = []
    for call in (call for message in said for call in message.calls if call.id not in ended):
        text = "The turn broke off before this call was made."
        if call.id in index.called:
            text = "The turn broke off before this call returned: it is not known whether it acted."
        notes.append(Message("tool", text, (), call.id, call.tool))
    return (*said, *notes)


def _of_a_team(
    index: VoiceIndex, runs: list[NodeStarted], path: str, team: Mapping[str, Agent]
) -> list[tuple[int, Exchange]]:
    """The earlier exchanges of a team, each whole: from the question to the last one's answer."""
    last: dict[str, NodeStarted] = {}
    for run in sorted(runs, key=lambda run: run.seq):
        last[run.path.rpartition("/")[0]] = run
    # What was said in this exchange is part of the current one.
    last.pop(path.rpartition("/")[0], None)
    return [(run.seq, _shared(index, run.path, team)) for run in last.values()]


def _heard(index: VoiceIndex, path: str) -> list[tuple[int, Exchange, str]]:
    """Whole exchanges between a user and this voice: ended invocations, and rounds of a loop."""
    mine = index.started[path]
    found: list[tuple[int, Exchange, str]] = []
    for invocation in index.invocations.values():
        if not index.is_over_before(invocation.path, path):
            continue
        end = index.invocations_ended[invocation.path]
        if end.outcome != "failed":
            text, attached = text_and_attachments(end.output)
            answer = Message("assistant", text, attachments=attached)
            pair = (*_question(invocation.input), answer)
            found.append((invocation.seq, pair, invocation.path))
    for place, spoken in index.spoken.items():
        # The rounds of an invocation that has ended are part of the exchange above.
        is_round = "#" in place and root_of(place) not in index.invocations_ended
        if is_round and spoken.seq < mine.seq and index.is_visible(place, path):
            inside = [s for p, s in index.started.items() if p.startswith(f"{place}/")]
            first = min(inside, key=lambda started: started.seq, default=None)
            asked = _question(first.input if first else None)
            answer = Message("assistant", spoken.text, attachments=spoken.attachments)
            found.append((spoken.seq, (*asked, answer), place))
    return found


async def _summary_of_the_past(run: "AgentRun", earlier: list[Exchange]) -> tuple[str, int]:
    """The summary of the oldest exchanges, and how many it covers; new ones are summarised when needed.

    Nothing is summarised if no context rule of the agent asks for it.
    """
    for rule in run.agent.context:
        if isinstance(rule, History) and rule.summarise is not None:
            break
    else:
        return "", 0
    assert rule.last is not None
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
        steps = index.steps.get(_summary_place(place, number))
        if not steps:
            continue
        if isinstance(steps[-1], ModelReplied):
            return steps[-1].text
        if isinstance(steps[-1], ModelFailed) and place == path:
            raise raised_before(steps[-1].error, steps[-1].error_type, steps[-1].ours)
    request = ModelRequest(
        agent=run.agent.name,
        messages=(Message("user", _transcript(before, batch)),),
        instructions=_SUMMARISE,
        model=model_name(model),
        path=_summary_place(path, number),
        node=node,
        n=number,
    )
    with failing_as_recorded():
        return (await run.world.call_model(request, model.respond)).text or ""


def _summary_place(path: str, number: int) -> str:
    return f"{path}/summary:{number}"


def _transcript(before: str, batch: list[Exchange]) -> str:
    lines = [f"summary of what came before: {before}"] if before else []
    for message in (message for exchange in batch for message in exchange):
        asked = ", ".join(f"{call.tool}({dict(call.args)!r})" for call in message.calls)
        lines.append(f"{message.role}: {message.text}{f' [calls {asked}]' if asked else ''}")
    return "\n".join(lines)
