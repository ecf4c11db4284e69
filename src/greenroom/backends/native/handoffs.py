"""A team of agents: one has the conversation, and may hand it over to another.

Their paths are below that of the leading agent: `@1/clerk/clerk`, then `@1/clerk/billing`, and
`@1/clerk/clerk#2` if it comes back.
"""

from collections import Counter

from msgspec import structs

from greenroom.agents.graph import Node
from greenroom.agents.handoffs import Team
from greenroom.backends.native.walk import GraphWalk, Paused, Walked
from greenroom.errors import LoopLimit
from greenroom.ledger.events import Decided
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.plain import Json


async def run_team(walk: GraphWalk, node: Node, path: str, given: Json) -> Walked:
    """Let one agent after the other have the conversation, until one of them has answered."""
    team = node.flow
    assert isinstance(team, Team)
    if path not in walk.index.decided:
        walk.world.record(Decided(path=path, choice=first_speaker(walk.index, node, path)))
    name, visits = walk.index.decided[path], Counter[str]()
    for _ in range(team.leader.max_steps + 1):
        visits[name] += 1
        here = node.children[name]
        if visits[name] > 1:
            here = structs.replace(here, segment=f"{name}#{visits[name]}")
        walked = await walk.walk(here, path, given)
        if isinstance(walked, Paused):
            return walked
        if not walked.to:
            return walk.end(node, path, walked.output)
        name = walked.to
    raise too_many_handovers(team, path)


def too_many_handovers(team: Team, path: str) -> LoopLimit:
    """The error of a team none of whose agents answers."""
    return LoopLimit(
        f"the agents at {path} handed the conversation over {team.leader.max_steps + 1} times. Raise "
        f"max_steps of {team.leader.name!r}, or find out why none of them answers."
    )


def first_speaker(index: VoiceIndex, node: Node, path: str) -> str:
    """The agent that begins: the one that answered last; in the first turn the leader of the team."""
    runs = [run for child in node.children.values() for run in index.runs.get(child.id, ())]
    # Those that ended with an answer that is known at this path.
    over = [
        run
        for run in runs
        if run.path in index.ended
        and run.path not in index.decided
        and index.is_known(run.path, path)
    ]
    last = max(over, key=lambda run: index.ended[run.path].seq, default=None)
    return node.segment if last is None else last.node.rpartition("/")[2]
