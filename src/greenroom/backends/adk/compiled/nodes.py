"""The kinds of flow as nodes of google-adk.

Sequences, parallels, routes and loops become a `Workflow`, whose edges `adk web` shows. Fallbacks, races and
maps become function nodes that run their parts by `ctx.run_node`: see `forks`. Each decision is its own
node, so that a conversation that waits for its user continues where it was.
"""

from typing import Any

from greenroom.agents.flow import Step
from greenroom.agents.graph import Graph, Node
from greenroom.agents.routes import Loop
from greenroom.backends.adk.compiled.agents import compiled_agent
from greenroom.backends.adk.compiled.compiler import START, Compiler, Events
from greenroom.backends.adk.compiled.past import given_of
from greenroom.backends.adk.compiled.visit import Visit
from greenroom.backends.adk.translation import response_of, said_in
from greenroom.backends.adk.versions import BaseNode, FunctionNode, JoinNode, Workflow
from greenroom.backends.backend import Yield
from greenroom.backends.native.approvals import decide_approval
from greenroom.backends.native.failures import describe, failure
from greenroom.backends.native.forks import merged
from greenroom.backends.native.kinds import KINDS
from greenroom.backends.native.listeners import branch_names
from greenroom.backends.native.sequences import await_message, choose_branch, is_last_round
from greenroom.backends.native.walk import Done
from greenroom.errors import AgentFailed, GreenroomError
from greenroom.ledger.events import (
    InvocationEnded,
    NodeFailed,
    NodeStarted,
    agent_words,
)
from greenroom.ledger.plain import Json
from greenroom.models.model import ModelReply


def _workflow(name: str, *chain: Any) -> BaseNode:
    """A workflow of one node after another; a mapping branches by what the node before it chose."""
    return Workflow(name=name, edges=[chain])


def leaf_node(compiler: Compiler, node: Node, name: str) -> BaseNode:
    """A step, a transform, or a remote agent."""
    run = KINDS[type(node.flow)]
    retries = node.flow.retries if isinstance(node.flow, Step) else 0

    async def act(visit: Visit, given: Json) -> Events:
        base = visit.path
        for attempt in range(1, retries + 2):
            path = base if attempt == 1 else f"{base}~{attempt}"
            if path not in visit.index.started:
                visit.world.record(NodeStarted(path=path, node=node.id, input=given))
            try:
                walked = await run(visit.walk, node, path, given)
            except GreenroomError:
                raise
            except Exception as error:
                visit.world.record(
                    NodeFailed(path=path, node=node.id, attempt=attempt, **failure(error))
                )
                if attempt <= retries:
                    continue
                yield visit.event()
                raise AgentFailed(
                    f"{node.segment!r} failed at {path}: {describe(error)}"
                ) from error
            if isinstance(walked, Done):
                yield visit.event(walked.output)
            else:
                for wait in walked.yields:
                    yield visit.asks(wait)
            return

    return compiler.code("", node, act, name=name)


def sequence_node(compiler: Compiler, node: Node, name: str) -> BaseNode:
    """One part after another."""
    return _workflow(name, START, *compiler.children(node).values())


def parallel_node(compiler: Compiler, node: Node, name: str) -> BaseNode:
    """All parts in parallel, and one node that merges their changes of the state."""
    parts = compiler.children(node)
    names = branch_names(node)

    async def merge(visit: Visit, given: Json) -> Events:
        assert isinstance(given, dict)
        outputs: Json = {names[key]: given_of(given[part.name]) for key, part in parts.items()}
        branches = [f"{visit.path}.{key}" for key in parts]
        ended = visit.walk.end(node, visit.path, outputs, merged(visit.walk, visit.path, branches))
        yield visit.event(ended.output)

    join = JoinNode(name=compiler.layout.name("join"))
    joined = compiler.code("merge", node, merge)
    return _workflow(name, START, tuple(parts.values()), join, joined)


def route_node(compiler: Compiler, node: Node, name: str) -> BaseNode:
    """A node that chooses, and an edge to each branch."""

    async def choose(visit: Visit, given: Json) -> Events:
        key = await choose_branch(visit.walk, node, visit.path, given)
        yield visit.event(given, route=key)

    chooser = compiler.code("choose", node, choose)
    return _workflow(name, START, chooser, dict(compiler.children(node)))


def loop_node(compiler: Compiler, node: Node, name: str) -> BaseNode:
    """The body, a node that decides whether to continue, and the edge back."""
    loop = node.flow
    assert isinstance(loop, Loop)

    async def look(visit: Visit, given: Json) -> Events:
        number = int(visit.ctx.run_id)
        here = f"{visit.path}#{number}"
        if await is_last_round(visit.walk, loop, visit.path, number, given):
            yield visit.event(given, route="stop")
            return
        if loop.awaits_input:
            wanted = await_message(visit.walk, here, given)
            if wanted is not None:
                yield visit.asks(wanted)
                return
            given = visit.index.answers[visit.world.new_id(here)].value
        yield visit.event(given, route="again")

    async def leave(visit: Visit, given: Json) -> Events:
        yield visit.event(given)

    body = compiler.part(node.children["body"], "#{run}")
    until, end = compiler.code("until", node, look), compiler.code("end", node, leave)
    return _workflow(name, START, body, until, {"again": body, "stop": end})


def approved_node(compiler: Compiler, node: Node, name: str) -> BaseNode:
    """A node that asks, and edges to what may then run."""

    async def ask(visit: Visit, given: Json) -> Events:
        settled = await decide_approval(visit.walk, node, visit.path, given)
        if isinstance(settled, Yield):
            yield visit.asks(settled)
        else:
            yield visit.event(settled[1], route=settled[0])

    asks = compiler.code("ask", node, ask)
    return _workflow(name, START, asks, dict(compiler.children(node)))


def answer_node(compiler: Compiler, graph: Graph) -> FunctionNode:
    """The last node of an app: it says the flow's output, unless an agent has just said it."""

    async def act(visit: Visit, given: Json) -> Events:
        path, words = visit.walk.root, agent_words(visit.walk.root, given)
        if given is not None:
            visit.world.record(words)
        outcome = "finished" if graph.awaits_input else "turn_over"
        visit.world.record(InvocationEnded(path=path, outcome=outcome, output=given))
        content = response_of(ModelReply(words.text, attachments=words.attachments)).content
        replies = [e for e in visit.ctx.session.events if e.content and e.content.role == "model"]
        is_said = any(
            e.invocation_id == visit.ctx.invocation_id and said_in(e.content) == said_in(content)
            for e in replies[-1:]
        )
        yield visit.event(given, content=None if given is None or is_said else content)

    return compiler.code("answer", graph.root, act)


def agent_node(compiler: Compiler, node: Node, name: str) -> BaseNode:
    """An agent."""
    return compiled_agent(compiler.layout, node, name)
