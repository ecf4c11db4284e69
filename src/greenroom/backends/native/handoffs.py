"""A team of agents: one has the conversation, and may hand it over to another.

All stand side by side in a path: `@1/clerk`, then `@1/billing`, and `@1/clerk#2` if it comes back.
"""

from collections import Counter
from dataclasses import replace

from greenroom.agents.agent import Agent
from greenroom.agents.graph import Node
from greenroom.backends.native.walk import GraphWalk, Paused, Walked
from greenroom.errors import LoopLimit
from greenroom.ledger.events import Decided, NodeStarted
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.paths import root_of
from greenroom.ledger.plain import Json


async def run_team(walk: GraphWalk, entry: Node, base: str, given: Json) -> Walked:
    """Let one agent after the other have the conversation, until one of them has answered."""
    assert isinstance(entry.flow, Agent)
    nodes = {entry.segment: replace(entry, children={}), **entry.children}
    name, visits = _first(walk, entry, nodes, base), Counter[str]()
    for _ in range(entry.flow.max_steps + 1):
        visits[name] += 1
        node = nodes[name]
        if visits[name] > 1:
            node = replace(node, segment=f"{name}#{visits[name]}")
        walked = await walk.walk(node, base, given)
        if isinstance(walked, Paused) or not walked.to:
            return walked
        name = walked.to
    raise LoopLimit(
        f"the agents at {base} handed the conversation over {entry.flow.max_steps + 1} times. Raise "
        f"max_steps of {entry.segment!r}, or look why nobody answers."
    )


def _first(walk: GraphWalk, entry: Node, nodes: dict[str, Node], base: str) -> str:
    """Who begins: the one who answered last, decided once; at first the one that leads the team."""
    index, place = walk.index, f"{base}/{entry.segment}.first"
    if place in index.decided:
        return index.decided[place]
    runs = [run for node in nodes.values() for run in index.runs.get(node.id, ())]
    if any(run.path.rpartition("/")[0] == base for run in runs):
        return entry.segment
    over = [run for run in runs if _has_answered(index, run, base)]
    last = max(over, key=lambda run: index.ended[run.path].seq, default=None)
    if last is None or last.node == entry.id:
        return entry.segment
    name = last.node.rpartition("/")[2]
    walk.world.record(Decided(path=place, choice=name))
    return name


def _has_answered(index: VoiceIndex, run: NodeStarted, base: str) -> bool:
    """Whether this run ended with an answer, before and as seen from `base`."""
    if run.path not in index.ended or run.path in index.decided:
        return False
    if not index.is_visible(run.path, base):
        return False
    invocations = [root_of(path).split("~")[0] for path in (run.path, base)]
    return invocations[0] == invocations[1] or index.is_over_before(run.path, base)
