"""Traces of Langfuse, as its page and its API give them: each with its observations."""

from collections.abc import Iterator, Mapping

from greenroom.errors import BadTrace
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.traces.files import TraceFile
from greenroom.traces.messages import named_arguments
from greenroom.traces.records import Flaw, Found, Span
from greenroom.traces.values import array, first, moment, obj, text

_KINDS = {"GENERATION": "LLM", "TOOL": "TOOL", "AGENT": "AGENT"}


class Langfuse:
    """Reads each observation as a span."""

    name = "langfuse"

    def recognises(self, file: TraceFile) -> bool:
        """Whether its first entry has observations."""
        return is_array(file.first.get("observations"))

    def read(self, file: TraceFile) -> Iterator[Found]:
        """Each span, the trace itself among them."""
        for place, entry in file.entries():
            try:
                held = obj(entry, "a trace")
                whole = held["trace"] if is_object(held.get("trace")) else held
                yield from _spans(obj(whole, "trace"), held, place, file.source)
            except BadTrace as error:
                yield Flaw(place=place, why=str(error), source=file.source)


def _spans(
    trace: Mapping[str, Json], held: Mapping[str, Json], place: str, source: str
) -> Iterator[Found]:
    name = text(trace.get("id"), "id")
    observations = array(held.get("observations"), "observations")
    spans: list[Span] = []
    for number, one in enumerate(observations):
        where = f"{place}.observations[{number}]"
        try:
            spans.append(_span(obj(one, "an observation"), name, where))
        except BadTrace as error:
            yield Flaw(place=where, why=str(error), trace=name, source=source)
    start = trace.get("timestamp")
    begun = (
        min((span.start for span in spans), default=0.0)
        if start is None
        else moment(start, "timestamp")
    )
    yield Span(
        trace=name,
        id=name,
        name=str(trace.get("name") or ""),
        start=begun,
        end=max((span.end or span.start for span in spans), default=begun),
        attributes={
            "openinference.span.kind": "AGENT",
            "session.id": trace.get("sessionId"),
            "input.value": trace.get("input"),
            "output.value": trace.get("output"),
        },
        place=place,
    )
    yield from spans


def _span(one: dict[str, Json], trace: str, place: str) -> Span:
    kind = _KINDS.get(str(one.get("type")), "CHAIN")
    ended = one.get("endTime")
    used = first(one, ("usageDetails", "usage"))
    tokens = used if is_object(used) else {}
    attributes: dict[str, Json] = {
        "openinference.span.kind": kind,
        "gen_ai.response.model": one.get("model"),
        "gen_ai.usage.input_tokens": tokens.get("input"),
        "gen_ai.usage.output_tokens": tokens.get("output"),
        "gen_ai.usage.cost": first(one, ("totalCost", "calculatedTotalCost")),
        "output.value": one.get("output"),
    }
    if kind == "TOOL":
        attributes["gen_ai.tool.name"] = one.get("name")
        attributes["gen_ai.tool.call.arguments"] = named_arguments(one.get("input"))
    else:
        attributes["input.value"] = one.get("input")
    return Span(
        trace=trace,
        id=text(one.get("id"), "id"),
        parent=str(one.get("parentObservationId") or trace),
        name=str(one.get("name") or ""),
        start=moment(one.get("startTime"), "startTime"),
        end=None if ended is None else moment(ended, "endTime"),
        attributes=attributes,
        failed=one.get("level") == "ERROR",
        error=str(one.get("statusMessage") or ""),
        place=place,
    )
