"""Writes a running trial as spans, by the conventions for generative AI.

If a framework writes its own spans, those get more attributes; a span is opened only where there is none.
None of our spans is inside a framework's own tree.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from time import perf_counter, time_ns
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import (
    Link,
    Span,
    SpanKind,
    StatusCode,
    TracerProvider,
)

from greenroom.errors import BadInput
from greenroom.ledger.events import BranchCancelled, Event, InvocationEnded, NodeEnded, NodeFailed
from greenroom.ledger.plain import Json
from greenroom.ledger.questions import TRACE, traces
from greenroom.models.model import ModelRequest
from greenroom.telemetry.attributes import Attributes, about_agent, about_run, context_of
from greenroom.telemetry.calls import CALL, Call
from greenroom.telemetry.foreign import ALWAYS_TRACES, MAY_TRACE, OURS, is_foreign, span_for
from greenroom.telemetry.meters import Meters
from greenroom.telemetry.providers import Kind, flush, meter_provider, tracer_provider
from greenroom.telemetry.turns import TURN, Turn
from greenroom.telemetry.verdicts import Verdicts
from greenroom.world.middleware.current import Run, current_run
from greenroom.world.middleware.protocol import Middleware
from greenroom.world.world import ToolRequest

CONTENT_CHARS: Final = 16_000
_SWITCH: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ON_SPANS: Final = ("true", "1", "span_only", "span_and_event")
_NOT_ON_SPANS: Final = ("", "false", "0", "no_content", "event_only")


def spans(
    *,
    provider: TracerProvider | None = None,
    meters: MeterProvider | None = None,
    content: bool | None = None,
    content_chars: int = CONTENT_CHARS,
    case_span: bool = True,
    link: str | None = None,
    exporter: Kind | None = None,
) -> "Spans":
    """Writes runs as OpenTelemetry spans and metrics: pass it in `middleware=[...]`.

    Spans go to `provider`, else to that of the process, else where `exporter` ("otlp", "console" or "none")
    or the environment says: OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_ENDPOINT and the like.
    What is said, asked and returned is written only with `content=True`, or if
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT asks for it; strings are shortened to `content_chars`.
    `case_span=False` leaves out the span around each conversation, and with it the verdicts. `link`, or
    GREENROOM_TRACE_LINK, is the URL of a trace, with {trace_id} in it: reports link to it.
    """
    link = os.environ.get("GREENROOM_TRACE_LINK", "") if link is None else link
    if type(content_chars) is not int or content_chars < 1:
        raise BadInput(f"spans(content_chars={content_chars!r}) should be 1 or more.")
    if link and "{trace_id}" not in link:
        raise BadInput(f"spans(link={link!r}) has no {{trace_id}} in it.")
    chars = content_chars if (_asked_for_content() if content is None else content) else 0
    to = tracer_provider(provider, exporter)
    return Spans(to, meter_provider(meters, exporter), chars, case_span, link)


def otlp() -> "Spans":
    """`spans()` to an OTLP collector: the one that OTEL_EXPORTER_OTLP_ENDPOINT names, else one on this machine.

    On the command line: `--telemetry otlp`.
    """
    return spans(exporter="otlp")


def console() -> "Spans":
    """`spans()` printed on the terminal as JSON; on the command line: `--telemetry console`."""
    return spans(exporter="console")


def _asked_for_content() -> bool:
    said = os.environ.get(_SWITCH, "").strip().lower()
    if said not in (*_ON_SPANS, *_NOT_ON_SPANS):
        known = ", ".join(one.upper() for one in (*_ON_SPANS, *_NOT_ON_SPANS) if one)
        raise BadInput(f"{_SWITCH}={said!r} is not known; set one of {known}.")
    return said in _ON_SPANS


def _within(run: Run) -> Context | None:
    """The trial whose judges are running, as a parent: its own span has ended."""
    known = [] if run.judged is None else traces(run.judged)
    if not known:
        return None
    return trace.set_span_in_context(trace.NonRecordingSpan(context_of(known[-1])))


class Spans(Middleware):
    """Writes runs as spans and metrics."""

    name = "spans"
    observes = True

    def __init__(
        self,
        provider: TracerProvider,
        meters: MeterProvider,
        content_chars: int,
        case_span: bool,
        link: str,
    ) -> None:
        self._providers = (provider, meters)
        self._tracer = provider.get_tracer(OURS, version("greenroom"))
        self._meters = Meters(meters)
        self._chars = content_chars
        self._case_span = case_span
        self._link = link
        self.plugin = Verdicts(self._tracer if case_span else None, self._meters, content_chars > 0)

    @contextmanager
    def around_run(self) -> Generator[None]:
        """A span for the conversation, which no framework has."""
        run, begun = current_run(), perf_counter()
        try:
            if not self._case_span:
                yield
                return
            earlier = [Link(context_of(one)) for one in traces(run.ledger)]
            attributes = about_run(run)
            case = attributes.get("greenroom.case.id")
            name = f"rehearse {case}" if case else "converse"
            with self._open(name, SpanKind.INTERNAL, attributes, links=earlier) as span:
                self._note(run, span)
                yield
        finally:
            self._meters.conversed(perf_counter() - begun, run.backend)

    @contextmanager
    def around_turn(self) -> Generator[None]:
        """A span for the agent's work on one turn, unless its framework writes one."""
        run = current_run()
        turn = Turn(self._tracer, about_agent(run), time_ns(), trace.get_current_span())
        token = TURN.set(turn)
        try:
            if run.backend in MAY_TRACE:
                yield
            else:
                turn.span = self._tracer.start_span(turn.name, attributes=turn.attributes)
                with trace.use_span(turn.span, False, False, False):
                    yield
        except BaseException as error:
            turn.failed = type(error).__name__
            raise
        finally:
            TURN.reset(token)
            turn.end(opens=run.backend not in ALWAYS_TRACES)

    @contextmanager
    def around_call(self, call: ModelRequest | ToolRequest) -> Generator[None]:
        """A span for a model request or tool call: the framework's own, else one of ours."""
        run, turn = current_run(), TURN.get()
        if run.voice != "agent" and not self._case_span:
            yield  # there is no span of ours that could be its parent
            return
        made = Call(call, self._chars, run)
        if turn is not None:
            made.attributes |= turn.asker(call.path, made.attributes)
        found = span_for(made.operation, made.target)
        current = trace.get_current_span()
        if turn is not None:
            turn.settle(found is not None or (is_foreign(current) and current is not turn.outer))
        if found is not None and (turn is None or turn.claim(found)):
            made.span, made.is_own = found, False
            made.write(made.attributes)
            inside = current
        else:
            if turn is not None and isinstance(call, ModelRequest) and run.backend not in MAY_TRACE:
                turn.enter(call.path, call.agent)
            within = _within(run) if turn is None else turn.context(current, call.path)
            kind = SpanKind.CLIENT if made.operation == "chat" else SpanKind.INTERNAL
            made.span = self._tracer.start_span(made.name, within, kind, made.attributes)
            inside = made.span
        if not self._case_span:
            self._note(run, made.span)
        token = CALL.set(made)
        try:
            with trace.use_span(inside, False, False, False):
                yield
        except BaseException as error:
            made.fail(type(error).__name__, str(error))
            raise
        finally:
            CALL.reset(token)
            made.end(self._meters)
            if turn is not None:
                turn.release(made.span)

    async def on_event(self, event: Event) -> None:
        """Record what an event says about the current call, or about its agent."""
        voice = event.voice if current_run().judged is None else "judge"
        self._meters.happened(event, voice)
        turn, call = TURN.get(), CALL.get()
        if turn is not None and isinstance(event, InvocationEnded) and event.outcome == "failed":
            turn.failed = event.error_type or "_OTHER"
        elif turn is not None and isinstance(event, NodeEnded | NodeFailed | BranchCancelled):
            turn.leave(event.path, event.error_type if isinstance(event, NodeFailed) else "")
        if call is not None and voice == call.voice:
            call.happened(event)

    async def close(self) -> None:
        """Send what is still buffered."""
        await flush(*self._providers)

    @contextmanager
    def _open(
        self,
        name: str,
        kind: SpanKind,
        attributes: Attributes,
        links: list[Link],
    ) -> Generator[Span]:
        span = self._tracer.start_span(name, None, kind, attributes, links)
        try:
            # An error's message may contain what was said, so only its type is written.
            with trace.use_span(span, False, False, False):
                yield span
        except BaseException as error:
            span.set_status(StatusCode.ERROR)
            span.set_attribute("error.type", type(error).__name__)
            raise
        finally:
            span.end()

    def _note(self, run: Run, span: Span) -> None:
        """Record the link to the trace in the ledger, once for each trace."""
        context = span.get_span_context()
        trace_id = trace.format_trace_id(context.trace_id)
        known = traces(run.ledger)
        if not context.is_valid or (known and known[-1].trace_id == trace_id):
            return
        data: dict[str, Json] = {
            "trace_id": trace_id,
            "span_id": trace.format_span_id(context.span_id),
        }
        if self._link:
            data["link"] = self._link.replace("{trace_id}", trace_id)
        run.note(TRACE, data)
