"""Fallbacks, races, maps, timeouts and teams as function nodes, which run their parts by `ctx.run_node`."""

import asyncio
from collections.abc import Mapping
from typing import Any

from greenroom.agents.forks import MapOver
from greenroom.agents.graph import Node
from greenroom.agents.guards import Timeout
from greenroom.agents.handoffs import Team
from greenroom.backends.adk.compiled.agents import HANDED_TO
from greenroom.backends.adk.compiled.compiler import Act, Compiler, Events
from greenroom.backends.adk.compiled.past import boxed, given_of
from greenroom.backends.adk.compiled.visit import Visit
from greenroom.backends.adk.versions import BaseNode
from greenroom.backends.native.failures import is_its_own
from greenroom.backends.native.forks import items_of, merged
from greenroom.backends.native.handoffs import first_speaker, too_many_handovers
from greenroom.backends.task_group import begin, stop
from greenroom.errors import AgentFailed
from greenroom.ledger.events import (
    BranchCancelled,
    Decided,
    NodeFailed,
    NodeStarted,
)
from greenroom.ledger.plain import Json, is_object
from greenroom.world.records import describe_error


def timeout_node(compiler: Compiler, node: Node, name: str) -> BaseNode:
    """The body, which fails after the given number of seconds."""
    flow = node.flow
    assert isinstance(flow, Timeout)
    body = compiler.part(node.children["body"], "")

    async def act(visit: Visit, given: Json) -> Events:
        path, segment = visit.path, node.children["body"].segment
        task = begin(visit.ctx.run_node(body, boxed(given)))
        try:
            await asyncio.wait({task}, timeout=flow.seconds)
            is_late = not task.done()
        finally:
            await stop([task])
        if not is_late:
            yield visit.event(given_of(task.result()))
            return
        why = f"it had worked for {flow.seconds:g} s"
        visit.world.record(
            NodeFailed(path=path, node=node.id, attempt=1, error=why, error_type="TimeoutError")
        )
        visit.world.record(BranchCancelled(path=f"{path}/{segment}"))
        yield visit.event()
        raise AgentFailed(f"{segment!r} failed at {path}: TimeoutError: {why}")

    return compiler.code("", node, act, name=name)


def fallback_node(compiler: Compiler, node: Node, name: str) -> BaseNode:
    """Each part inside a node that records its failure."""
    *tries, last = compiler.children(node).items()
    attempts = [compiler.code("try", node, _attempt(key, part)) for key, part in tries]

    async def act(visit: Visit, given: Json) -> Events:
        for attempt in attempts:
            outcome = await visit.ctx.run_node(attempt, boxed(given))
            if "failed" not in outcome:
                yield visit.event(given_of(outcome["output"]))
                return
        yield visit.event(given_of(await visit.ctx.run_node(last[1], boxed(given))))

    return compiler.code("", node, act, name=name)


def _attempt(key: str, part: BaseNode) -> Act:
    """Run a part whose failure is an outcome too, so that a failed part is not retried after a wait."""

    async def act(visit: Visit, given: Json) -> Events:
        try:
            output = await visit.ctx.run_node(part, boxed(given))
        except Exception as error:  # noqa: BLE001 - what is not a failure of its own is raised again
            cause = _cause(error)
            found = describe_error(cause)
            why = f"{found['error_type']}: {found['error']}"
            visit.world.record(Decided(path=f"{visit.path}.{key}", choice="next", why=why))
            yield visit.event({"failed": str(cause)})
        else:
            yield visit.event({"output": output})

    return act


def _cause(error: Exception) -> Exception:
    """Why a part failed; an error that is not the part's own is raised."""
    if type(error).__name__ != "DynamicNodeFailError":
        raise error
    cause: Exception = getattr(error, "error", error)
    if not is_its_own(cause):
        raise cause
    return cause


def race_node(compiler: Compiler, node: Node, name: str) -> BaseNode:
    """All parts at once; the first to end counts."""
    parts = compiler.children(node)

    async def act(visit: Visit, given: Json) -> Events:
        path = visit.path
        tasks = {key: begin(visit.ctx.run_node(part, boxed(given))) for key, part in parts.items()}
        try:
            winner, reasons = await _first_end(tasks)
        finally:
            await stop(tasks.values())
        if not winner:
            raise AgentFailed(f"every part of the race at {path} failed: {'; '.join(reasons)}")
        over = Visit(compiler.layout, node, visit.ctx)
        over.world.record(Decided(path=path, choice=winner))
        for key, child in node.children.items():
            if key != winner:
                over.world.record(BranchCancelled(path=f"{path}.{key}/{child.segment}"))
        changes = merged(over.walk, path, [f"{path}.{winner}"])
        output = given_of(tasks[winner].result())
        yield over.event(over.walk.end(node, path, output, changes).output)

    return compiler.code("", node, act, name=name)


async def _first_end(tasks: Mapping[str, "asyncio.Task[Any]"]) -> tuple[str, list[str]]:
    """The first to end, or none and the reasons if all have failed."""
    reasons: list[str] = []
    running = set(tasks.values())
    while running:
        done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for key, task in tasks.items():
            if task not in done:
                continue
            error = task.exception()
            if error is None:
                return key, reasons
            cause = _cause(error) if isinstance(error, Exception) else error
            reasons.append(f"{type(cause).__name__}: {cause}")
    return "", reasons


def map_over_node(compiler: Compiler, node: Node, name: str) -> BaseNode:
    """The body for each item of a list."""
    flow = node.flow
    assert isinstance(flow, MapOver)
    body = compiler.part(node.children["body"], ".{run}")

    async def act(visit: Visit, given: Json) -> Events:
        path = visit.path
        if path not in visit.index.started:
            items = visit.walk.items(flow, path)
            visit.world.record(NodeStarted(path=path, node=node.id, input=given, items=items))
            yield visit.event()
        items = items_of(flow, visit.index, path, given)
        slots = asyncio.Semaphore(flow.at_once)

        async def run_item(number: int, item: Json) -> Any:
            async with slots:
                return await visit.ctx.run_node(body, boxed(item), run_id=f"item{number}")

        tasks = [begin(run_item(number, item)) for number, item in enumerate(items)]
        outputs = [given_of(output) for output in await _all_of(tasks)]
        over = Visit(compiler.layout, node, visit.ctx)
        changes = merged(over.walk, path, [f"{path}.{number}" for number in range(len(items))])
        yield over.event(over.walk.end(node, path, outputs, changes).output)

    return compiler.code("", node, act, name=name)


async def _all_of(tasks: "list[asyncio.Task[Any]]") -> list[Any]:
    """All results; a failure stops the rest, a wait lets the rest finish first."""
    running = set(tasks)
    try:
        while running:
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if isinstance(task.exception(), Exception):
                    task.result()
        return [task.result() for task in tasks]
    finally:
        await stop(tasks)


def team_node(compiler: Compiler, node: Node, name: str) -> BaseNode:
    """A team of agents: one of them has the conversation, and may hand it over."""
    team = node.flow
    assert isinstance(team, Team)
    agents = {key: compiler.part(one, "", counts=True) for key, one in node.children.items()}

    async def act(visit: Visit, given: Json) -> Events:
        speaker = first_speaker(visit.index, node, visit.path)
        for _ in range(team.leader.max_steps + 1):
            output = given_of(await visit.ctx.run_node(agents[speaker], boxed(given)))
            if not is_object(output) or set(output) != {HANDED_TO}:
                ended = visit.walk.end(node, visit.path, output)
                yield visit.event(ended.output)
                return
            speaker = str(output[HANDED_TO])
        raise too_many_handovers(team, visit.path)

    return compiler.code("", node, act, name=name)
