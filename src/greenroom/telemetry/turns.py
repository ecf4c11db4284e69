"""One turn of an agent, whose span is opened only if the agent's framework writes none."""

from contextvars import ContextVar
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, StatusCode, Tracer

from greenroom.ledger.paths import above_of
from greenroom.telemetry.attributes import Attributes

_ASKER: Final = ("gen_ai.agent.name", "greenroom.node")


class Turn:
    """A turn's spans; whether a framework writes its own is known only at its first request."""

    def __init__(self, tracer: Tracer, attributes: Attributes, begun: int, outer: Span) -> None:
        self.attributes = attributes
        self._agent = attributes.get("gen_ai.agent.name", "")
        self.name = f"invoke_agent {self._agent}".rstrip()
        self.outer = outer
        """The span around the turn."""
        self.span: Span | None = None
        self.failed = ""
        """The type of the error that ended the turn, if one did."""
        self._tracer = tracer
        self._begun = begun
        self._is_traced = False
        self._claimed: set[int] = set()
        self._agents: dict[str, Span] = {}
        self._askers: dict[str, Attributes] = {}

    def enter(self, path: str, name: str) -> None:
        """An agent inside a flow asks its model; a single agent needs no span besides the turn's."""
        alone = path.count("/") == 1 and name == self._agent
        if self.span is None or alone or not name or path in self._agents:
            return
        attributes = {**self.attributes, "gen_ai.agent.name": name, "greenroom.path": path}
        around = trace.set_span_in_context(self._innermost(path) or self.span)
        self._agents[path] = self._tracer.start_span(
            f"invoke_agent {name}", around, attributes=attributes
        )

    def leave(self, path: str, failed: str = "") -> None:
        """The agent at this place has ended."""
        if (span := self._agents.pop(path, None)) is not None:
            _end(span, failed)

    def asker(self, path: str, known: Attributes) -> Attributes:
        """The caller's attributes: if unknown, agent and node of the last model request at its place."""
        said = {key: known[key] for key in _ASKER if key in known}
        if said:
            self._askers[path] = said
        return self._askers.get(path, {})

    def _innermost(self, path: str) -> Span | None:
        return self._agents.get(path) or next(
            (self._agents[above] for above in reversed(above_of(path)) if above in self._agents),
            None,
        )

    def settle(self, is_traced: bool) -> None:
        """Open a span for the turn, unless another tracer writes its spans."""
        if is_traced and self.span is None:
            self._is_traced = True
        elif self.span is None and not self._is_traced:
            self._open()

    def _open(self) -> Span:
        self.span = self._tracer.start_span(
            self.name,
            trace.set_span_in_context(self.outer),
            attributes=self.attributes,
            start_time=self._begun,
        )
        return self.span

    def context(self, current: Span, path: str) -> Context | None:
        """The parent for a call of this turn; None for the current span."""
        if self.span is None or (current is not self.outer and current is not self.span):
            return None
        return trace.set_span_in_context(self._innermost(path) or self.span)

    def claim(self, span: Span) -> bool:
        """Use a framework's span for a call; False if it already represents another one."""
        key = span.get_span_context().span_id
        if key in self._claimed:
            return False
        self._claimed.add(key)
        return True

    def release(self, span: Span) -> None:
        """The call that this span represents is over."""
        self._claimed.discard(span.get_span_context().span_id)

    def end(self, opens: bool) -> None:
        """The turn is over; one without any request gets a span too, if `opens`."""
        if self.span is None and not self._is_traced and opens:
            self._open()
        # Agents that wait for the user, or were interrupted.
        for span in [*self._agents.values()][::-1]:
            _end(span, self.failed)
        if self.span is not None:
            _end(self.span, self.failed)


def _end(span: Span, failed: str) -> None:
    if failed:
        span.set_status(StatusCode.ERROR)
        span.set_attribute("error.type", failed)
    span.end()


TURN: Final = ContextVar["Turn | None"]("greenroom_turn_span", default=None)
"""The current turn."""
