"""A running node of a compiled flow: the ledger of its session, its path, and what it adds to them."""

from collections.abc import Mapping
from typing import Any

from google.adk.events import Event, EventActions
from google.genai import types

from greenroom.agents.graph import Node
from greenroom.backends.adk.compiled.layout import Layout
from greenroom.backends.adk.compiled.past import (
    boxed,
    delta_of,
    ledger_of,
    metadata_of,
    without_changes,
)
from greenroom.backends.adk.state import state_changes
from greenroom.backends.adk.versions import Context
from greenroom.backends.backend import Yield
from greenroom.backends.native.kinds import KINDS
from greenroom.backends.native.walk import GraphWalk
from greenroom.backends.turn_ends import say_questions
from greenroom.ledger import events as ours
from greenroom.world.live import LiveWorld

_NO_OUTPUT = object()
NEXT_MESSAGE = "next_message"
"""The name of the call by which google-adk's user is asked for their next message."""


class Visit:
    """One run of a node. What is recorded in it is sent with the next event that it yields."""

    __slots__ = ("_facts", "ctx", "index", "node", "path", "walk", "world")

    def __init__(self, layout: Layout, node: Node, ctx: Context) -> None:
        ledger = ledger_of(ctx.session)
        self._facts: list[ours.Event] = []
        self.node = node
        self.ctx = ctx
        self.world = LiveWorld(ledger, run_id=ctx.session.id, on_event=self._facts.append)
        self.index = ledger.index_of()
        root = f"@{len(self.index.invocations)}"
        self.path = layout.path_of(ctx.node_path, root)
        self.walk = GraphWalk(ledger, self.world, self.index, root, KINDS)

    def adopt(self, delta: Mapping[str, Any]) -> None:
        """Record what others, such as a plug-in or a mock, changed in the session's state."""
        changes = state_changes(delta, self.world.ledger.fold())
        if changes:
            self.world.ledger.append(ours.StateChanged(path=self.path, changes=changes), 0.0)

    def event(
        self,
        output: Any = _NO_OUTPUT,
        *,
        route: str | None = None,
        content: types.Content | None = None,
        waits_for: str = "",
    ) -> Event:
        """An event with what was recorded since the last one, and with the node's output."""
        event = Event(
            output=None if output is _NO_OUTPUT else boxed(output),
            content=content,
            actions=EventActions(route=route),
            long_running_tool_ids={waits_for} if waits_for else None,
        )
        return self.attach(event)

    def attach(self, event: Event) -> Event:
        """The event, with what was recorded since the last one."""
        facts = self._facts.copy()
        self._facts.clear()
        delta, deleted = delta_of(facts, self.world.ledger.fold())
        event.actions.state_delta.update(delta)
        metadata = metadata_of([without_changes(fact) for fact in facts], deleted)
        if metadata:
            event.custom_metadata = {**(event.custom_metadata or {}), **metadata}
        return event

    @property
    def has_news(self) -> bool:
        """Whether something was recorded that no event has carried yet."""
        return bool(self._facts)

    def asks(self, wait: Yield) -> Event:
        """The event that tells google-adk to wait for the user's answer."""
        say_questions(self.world, self.index, (wait,))
        args = dict(wait.args) if wait.args is not None else {"message": wait.prompt}
        call = types.FunctionCall(id=wait.id, name=wait.tool or NEXT_MESSAGE, args=args)
        content = types.Content(role="model", parts=[types.Part(function_call=call)])
        return self.event(content=content, waits_for=wait.id)
