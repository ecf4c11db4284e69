"""One turn of an agent as described by spans, and its tool calls."""

from msgspec import Struct, field, structs

from greenroom.ledger.messages import Message, ToolCall
from greenroom.ledger.plain import is_object
from greenroom.traces.acts import ModelAct, ToolAct, reply_of
from greenroom.traces.messages import messages_in, parsed
from greenroom.traces.records import Span


class Turn(Struct, kw_only=True):
    """One invocation of an agent: its span, and the requests and calls below it."""

    top: Span
    is_agent: bool
    conversation: str
    models: list[ModelAct] = field(default_factory=list[ModelAct])
    tools: list[ToolAct] = field(default_factory=list[ToolAct])


def spans_of(turn: Turn) -> list[Span]:
    """Its span, and those of its requests and calls."""
    return [turn.top, *(act.span for act in turn.models), *(act.span for act in turn.tools)]


def end_of(span: Span) -> float:
    """When a span ended, as far as that is known."""
    return span.start if span.end is None else max(span.start, span.end)


def calls_of(turn: Turn) -> tuple[list[ToolAct], bool]:
    """The calls of a turn, with gaps filled from what models said and heard; and whether all are known.

    A call that only a model's reply mentions counts too, if a model heard its result or tools have no spans at
    all. Otherwise it is unknown whether it was made: then the calls are not all known.
    """
    results = {
        one.call_id: one
        for act in turn.models
        for one in act.heard or ()
        if one.role == "tool" and one.call_id
    }
    left = list(turn.tools)
    made: list[ToolAct] = []
    has_spans, is_known = bool(turn.tools), True
    for act in turn.models:
        for call in act.said.calls if act.said is not None else ():
            span = _span_of(call, left, act)
            if span is not None:
                left.remove(span)
                made.append(_filled(span, call, results))
            elif call.id in results or not has_spans:
                made.append(_unrecorded_call(act, call, results, turn))
            elif act is not turn.models[-1] or spoken_at_top(turn) is None:
                # After the last reply, the call may be how the agent gave its answer.
                is_known = False
    made += [_filled(tool, None, results) for tool in left]
    return sorted(made, key=lambda tool: tool.span.start), is_known


def _span_of(call: ToolCall, left: list[ToolAct], act: ModelAct) -> ToolAct | None:
    """The span of a call: by its id, else the next one of this name."""
    by_id = [tool for tool in left if call.id and tool.call_id == call.id]
    by_name = [
        tool for tool in left if tool.tool == call.tool and tool.span.start >= act.span.start
    ]
    return next(iter((*by_id, *by_name)), None)


def _filled(tool: ToolAct, call: ToolCall | None, results: dict[str, Message]) -> ToolAct:
    call_id = (call.id if call is not None else "") or tool.call_id
    heard = results.get(call_id)
    args = tool.args
    if args is None and call is not None:
        args = dict(call.args)
    if tool.has_result or heard is None:
        return structs.replace(tool, args=args, call_id=call_id)
    return structs.replace(
        tool, args=args, call_id=call_id, result=parsed(heard.text), has_result=True
    )


def _unrecorded_call(
    act: ModelAct, call: ToolCall, results: dict[str, Message], turn: Turn
) -> ToolAct:
    """A call that was only mentioned: it was made after the model had answered."""
    after = [other.span.start for other in turn.models if other.span.start >= end_of(act.span)]
    begun, over = end_of(act.span), min(after, default=end_of(turn.top))
    heard = results.get(call.id)
    span = Span(trace=act.span.trace, id="", name=call.tool, start=begun, end=max(begun, over))
    result = None if heard is None else parsed(heard.text)
    return ToolAct(
        span=span,
        tool=call.tool,
        call_id=call.id,
        args=dict(call.args),
        result=result,
        has_result=heard is not None,
    )


def spoken_at_top(turn: Turn) -> str | None:
    """What the agent said, from the span around its turn; None if that does not say."""
    had = turn.top.attributes
    for name in ("gen_ai.output.messages", "output.value", "traceloop.entity.output"):
        if (value := had.get(name)) is None:
            continue
        said = reply_of(messages_in(value))
        if said is not None:
            return said.text
        whole = parsed(value)
        if isinstance(whole, str) and whole:
            return whole
        if is_object(whole) and isinstance(output := whole.get("output"), str):
            return output
    return None
