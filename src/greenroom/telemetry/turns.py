"""One turn of an agent, whose span is opened only if the agent's framework writes none."""

from contextvars import ContextVar
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, StatusCode, Tracer


class Turn:
    """Whether a framework writes spans in this turn is known when it first asks for something."""

    def __init__(self, tracer: Tracer, attributes: dict[str, Any], begun: int, outer: Span) -> None:
        self.attributes = attributes
        self.name = f"invoke_agent {attributes.get('gen_ai.agent.name', '')}".rstrip()
        self.outer = outer
        """The span around the turn."""
        self.span: Span | None = None
        self.failed = ""
        """The type of the error that ended the turn, if one did."""
        self._tracer = tracer
        self._begun = begun
        self._is_traced = False
        self._claimed: set[int] = set()

    def settle(self, is_traced: bool) -> None:
        """Open a span for the turn, unless somebody else writes its spans."""
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

    def context(self, current: Span) -> Context | None:
        """Where a call of this turn belongs; None: where it is made."""
        if self.span is None or current is not self.outer:
            return None
        return trace.set_span_in_context(self.span)

    def claim(self, span: Span) -> bool:
        """Take a framework's span for a call; False if it stands for another one."""
        key = span.get_span_context().span_id
        if key in self._claimed:
            return False
        self._claimed.add(key)
        return True

    def release(self, span: Span) -> None:
        """The call that this span stood for is over."""
        self._claimed.discard(span.get_span_context().span_id)

    def end(self, opens: bool) -> None:
        """The turn is over; one in which nothing was asked for has a span too, if `opens`."""
        if self.span is None and not self._is_traced and opens:
            self._open()
        if self.span is not None:
            if self.failed:
                self.span.set_status(StatusCode.ERROR)
                self.span.set_attribute("error.type", self.failed)
            self.span.end()


TURN: Final = ContextVar["Turn | None"]("greenroom_turn_span", default=None)
"""The turn that is being worked on."""
