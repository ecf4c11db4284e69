"""Assembles spans into conversations, whichever tool wrote them and in whichever order they came."""

from collections.abc import Iterable, Iterator
from typing import Final, cast, get_args

from msgspec import Struct, structs

from greenroom.errors import BadTrace
from greenroom.ledger.events import Question, Source, ToolCalled
from greenroom.ledger.messages import Message
from greenroom.ledger.questions import TRACE
from greenroom.traces.acts import (
    Kind,
    ModelAct,
    ToolAct,
    as_shown,
    conversation_of,
    kind_of,
    left_out,
    model_act,
    tool_act,
)
from greenroom.traces.messages import messages_in, parsed
from greenroom.traces.records import Flaw, Imported, Span
from greenroom.traces.turns import Turn, calls_of, end_of, spans_of, spoken_at_top
from greenroom.traces.writer import LedgerWriter

SOURCE: Final = "greenroom.source"
SILENT = ""
"""The last words of an agent that ends its turn without saying anything."""


def assembled(
    spans: Iterable[Span], format: str, source: str, refused: Iterable[str] = ()
) -> Iterator[Imported | Flaw]:
    """The conversations in these spans; those of `refused` traces are left out.

    Traces without an agent, a model or a tool are not conversations, and are ignored.
    """
    out = set(refused)
    traces: dict[str, list[Span]] = {}
    for span in spans:
        traces.setdefault(span.trace, []).append(as_shown(span))
    turns: dict[str, list[Turn]] = {}
    for trace, members in traces.items():
        if trace in out:
            continue
        try:
            for turn in _turns(_unique(members)):
                turns.setdefault(turn.conversation, []).append(turn)
        except BadTrace as error:
            yield Flaw(place=f"trace {trace}", why=str(error), trace=trace, source=source)
            out.add(trace)
    for name, found in turns.items():
        try:
            yield _conversation(
                name, sorted(found, key=lambda turn: turn.top.start), format, source
            )
        except BadTrace as error:
            yield Flaw(place=f"conversation {name}", why=str(error), source=source)


def _unique(spans: list[Span]) -> dict[str, Span]:
    """The spans of a trace by id; one that was sent twice counts once."""
    found: dict[str, Span] = {}
    for span in spans:
        known = found.get(span.id)
        if known is None:
            found[span.id] = span
        elif structs.replace(known, place="") != structs.replace(span, place=""):
            raise BadTrace(
                f"two different spans have the id {span.id!r}: {known.name!r} ({known.place}) and "
                f"{span.name!r} ({span.place})."
            )
    return found


def _ancestors(span: Span, spans: dict[str, Span]) -> list[Span]:
    """The spans around one, the nearest first."""
    found: list[Span] = []
    seen = {span.id}
    while span.parent and span.parent in spans:
        span = spans[span.parent]
        if span.id in seen:
            raise BadTrace(f"span {span.id!r} ({span.place}) is its own ancestor.")
        seen.add(span.id)
        found.append(span)
    return found


def _turns(spans: dict[str, Span]) -> list[Turn]:
    """The turns of one trace: its outermost agents, else its roots."""
    kinds: dict[str, Kind] = {span.id: kind_of(span) for span in spans.values()}
    above = {span.id: _ancestors(span, spans) for span in spans.values()}
    usual = next((c for span in spans.values() if (c := conversation_of(span))), "")
    turns: dict[str, Turn] = {}
    acts = sorted((one for one in spans.values() if kinds[one.id]), key=lambda one: one.start)
    tops = _tops(acts, above, kinds)
    for span in acts:
        around, top = above[span.id], tops[span.id]
        if top.id not in turns:
            named = conversation_of(top) or conversation_of(span) or usual or span.trace
            is_agent = kinds.get(top.id) == "agent"
            turns[top.id] = Turn(top=top, is_agent=is_agent, conversation=named)
        turn = turns[top.id]
        if kinds[span.id] == "model":
            _add_model(turn, span, around, kinds)
        elif kinds[span.id] == "tool":
            act = tool_act(span)
            if not any(kinds[one.id] == "tool" and _is_same(act, one) for one in around):
                turn.tools.append(act)
    return list(turns.values())


def _tops(
    acts: list[Span], above: dict[str, list[Span]], kinds: dict[str, Kind]
) -> dict[str, Span]:
    """The span of the turn that each act belongs to.

    If the spans around acts were not recorded, all of them belong to the one turn of the trace.
    """
    tops: dict[str, Span] = {}
    agents: dict[str, Span] = {}
    lost: dict[str, Span] = {}
    for span in acts:
        ways = [span, *above[span.id]]
        outer = next((one for one in reversed(ways) if kinds[one.id] == "agent"), None)
        tops[span.id] = top = outer or ways[-1]
        if outer is not None:
            agents[outer.id] = outer
        elif top.parent:
            lost[top.id] = top
    if not lost:
        return tops
    if len(agents) > 1:
        names = ", ".join(f"{one.name!r} ({one.place})" for one in lost.values())
        raise BadTrace(
            f"the spans around {names} are missing, so it is unknown which of {len(agents)} agents "
            f"they belong to."
        )
    common = next(iter((*agents.values(), *lost.values())))
    if not agents and len(lost) > 1:
        ends = [one.end for one in lost.values() if one.end is not None]
        end = max(ends) if len(ends) == len(lost) else None
        start = min(one.start for one in lost.values())
        common = Span(trace=common.trace, id=common.parent, name="", start=start, end=end)
    return {one: common if top.id in lost else top for one, top in tops.items()}


def _is_same(act: ToolAct, outer: Span) -> bool:
    """Whether a span around a call describes the same call, written by another instrumentation."""
    return tool_act(outer).tool == act.tool


def _add_model(turn: Turn, span: Span, above: list[Span], kinds: dict[str, Kind]) -> None:
    """Add a model request; if two instrumentations describe it, the inner one counts and the outer fills gaps."""
    act = model_act(span)
    agents = (one.attributes.get("gen_ai.agent.name") for one in (span, *above))
    act.agent = next((name for name in agents if isinstance(name, str) and name), "")
    around = next((one.id for one in above if kinds[one.id] == "model"), None)
    outer = next((known for known in turn.models if known.span.id == around), None)
    if outer is None:
        turn.models.append(act)
        return
    turn.models.remove(outer)
    filled = ("model", "agent", "heard", "said", "instructions", "usage", "cost")
    for name in filled:
        if getattr(act, name) in (None, ""):
            setattr(act, name, getattr(outer, name))
    turn.models.append(act)


class _Moment(Struct, frozen=True):
    """Something that happened in a turn, in the order in which it is reported."""

    at: float
    began: float
    number: int
    rank: int


def _conversation(name: str, turns: list[Turn], format: str, source: str) -> Imported:
    agent = next(
        (str(a) for turn in turns if (a := turn.top.attributes.get("gen_ai.agent.name"))), ""
    )
    agent = agent or next((act.agent for turn in turns for act in turn.models if act.agent), "")
    writer = LedgerWriter(name, agent=agent)
    for trace in dict.fromkeys((turn.top.trace, turn.top.id) for turn in turns):
        writer.note(TRACE, {"trace_id": trace[0], "span_id": trace[1]}, turns[0].top.start)
    if not any(turn.models for turn in turns):
        writer.miss("models")
    for turn in turns:
        _write(writer, turn)
    ends = [end_of(span) for turn in turns for span in spans_of(turn)]
    case_id = str(turns[0].top.attributes.get("greenroom.case.id", "") or "")
    is_over = turns[-1].top.end is not None
    return writer.imported(
        format,
        source,
        at=max(ends),
        reason="completed" if is_over else None,
        case_id=case_id,
    )


def _write(writer: LedgerWriter, turn: Turn) -> None:
    """Write one turn: what the user said, requests and calls in order of time, the last words."""
    turn.models.sort(key=lambda act: act.span.start)
    turn.tools.sort(key=lambda act: act.span.start)
    writer.user(_user(turn), turn.top.start)
    if turn.top.failed:
        kind = turn.top.attributes.get("error.type")
        writer.broke(turn.top.error, kind if isinstance(kind, str) else "")
    tools, is_known = calls_of(turn)
    if not is_known:
        writer.miss("tools")
    for span in spans_of(turn):
        writer.miss(*left_out(span))
    if not turn.tools and (not turn.models or _tells_no_calls(turn)):
        writer.miss("tools")
    if any(span.end is None or span.end < span.start for span in spans_of(turn)):
        writer.miss("times")
    if any(act.said is None and not act.span.failed for act in turn.models):
        writer.miss("words")
    moments: list[tuple[_Moment, ModelAct | ToolAct]] = []
    for number, act in enumerate((*turn.models, *tools)):
        start = act.span.start
        end = _reply_time(act, tools) if isinstance(act, ModelAct) else end_of(act.span)
        moments.append((_Moment(start, start, number, 0), act))
        moments.append((_Moment(max(start, end), start, number, 1), act))
    moments.sort(key=lambda one: structs.astuple(one[0]))
    open_calls: dict[int, ToolCalled] = {}
    open_questions: dict[int, int] = {}
    for moment, act in moments:
        if isinstance(act, ModelAct):
            _write_model(writer, act, moment, open_questions)
        else:
            _write_tool(writer, act, moment, open_calls)
    words = _last_words(turn)
    if words != SILENT and not (turn.top.failed and words is None):
        writer.said(words, end_of(turn.top))


def _tells_no_calls(turn: Turn) -> bool:
    """Whether tool calls would appear only in what models said, and that was not recorded."""
    return not turn.is_agent and any(act.said is None for act in turn.models)


def _write_model(
    writer: LedgerWriter, act: ModelAct, moment: _Moment, asked: dict[int, int]
) -> None:
    if moment.rank == 0:
        heard = tuple(one for one in act.heard or () if one.role != "system")
        question = Question(messages=heard, instructions=act.instructions) if heard else None
        asked[moment.number] = writer.asked(
            moment.at, model=act.model, agent=act.agent, question=question
        )
    elif act.span.failed:
        kind = act.span.attributes.get("error.type")
        error = act.span.error or (kind if isinstance(kind, str) else "") or "the model failed"
        writer.model_failed(
            asked[moment.number], error, kind if isinstance(kind, str) else "", moment.at
        )
    else:
        said = act.said or Message("assistant")
        writer.replied(
            asked[moment.number],
            said.text,
            said.calls,
            moment.at,
            usage=act.usage,
            cost=act.cost,
            seconds=max(end_of(act.span) - act.span.start, 0.0),
            source=_source(act.span),
        )


def _write_tool(
    writer: LedgerWriter, act: ToolAct, moment: _Moment, calls: dict[int, ToolCalled]
) -> None:
    if moment.rank == 0:
        calls[moment.number] = writer.called(act.tool, act.args, act.call_id, moment.at)
    elif act.span.failed:
        kind = act.span.attributes.get("error.type")
        named = kind if isinstance(kind, str) else ""
        error = act.span.error or named or "failed"
        writer.failed(calls[moment.number], error, named, moment.at, source=_source(act.span))
    elif act.span.end is not None:
        writer.returned(
            calls[moment.number],
            act.result,
            moment.at,
            known=act.has_result,
            source=_source(act.span),
        )


def _source(span: Span) -> Source:
    """Who answered: spans of a rehearsal say so; for other spans it was the real tool."""
    said = span.attributes.get(SOURCE)
    return cast("Source", said) if said in get_args(Source) else "live"


def _reply_time(act: ModelAct, tools: list[ToolAct]) -> float:
    """When a reply was complete: before the first call that it asked for, whatever its span's end says."""
    end = end_of(act.span)
    wanted = {call.id for call in act.said.calls} - {""} if act.said is not None else set[str]()
    for tool in tools:
        is_asked = tool.call_id in wanted or (
            not wanted and tool.span.parent in (act.span.id, act.span.parent)
        )
        if is_asked and act.span.start <= tool.span.start < end:
            end = tool.span.start
    return end


def _user(turn: Turn) -> str | None:
    """What the user said in this turn; None if that was not recorded."""
    for act in turn.models:
        if act.heard is not None:
            said = [one.text for one in act.heard if one.role == "user"]
            return said[-1] if said else None
    had = turn.top.attributes
    for name in ("gen_ai.input.messages", "input.value", "traceloop.entity.input"):
        if (value := had.get(name)) is None:
            continue
        messages = messages_in(value)
        said = [one.text for one in messages or () if one.role == "user"]
        if said:
            return said[-1]
        whole = parsed(value)
        if isinstance(whole, str) and whole:
            return whole
    return None


def _last_words(turn: Turn) -> str | None:
    """What the agent said at the end of its turn; None if that was not recorded."""
    last = max(turn.models, key=lambda act: end_of(act.span), default=None)
    has_failed = last is not None and last.span.failed  # then its words are only half an answer
    if last is not None and last.said is not None and last.said.text and not has_failed:
        return last.said.text
    if (said := spoken_at_top(turn)) is not None:
        return said
    # A reply that asks for a tool is rarely the last one: what came after it was not recorded.
    is_silent = (
        last is not None and last.said is not None and not last.said.calls and not has_failed
    )
    return SILENT if is_silent and all(act.said is not None for act in turn.models) else None
