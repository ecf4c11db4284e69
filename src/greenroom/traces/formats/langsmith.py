"""Runs of LangSmith: a list of them, or one on each line, as its API and its bulk export give them."""

from collections.abc import Iterator, Mapping

from greenroom.errors import BadTrace
from greenroom.ledger.plain import Json, is_object
from greenroom.traces.files import TraceFile
from greenroom.traces.messages import named_arguments, parsed
from greenroom.traces.records import Flaw, Found, Span
from greenroom.traces.values import moment, obj, text

KINDS = {"llm": "LLM", "tool": "TOOL"}


class LangSmith:
    """Reads each run as a span."""

    name = "langsmith"

    def recognises(self, file: TraceFile) -> bool:
        """Whether its first entry is a run of a trace."""
        return "run_type" in file.first and (
            "trace_id" in file.first or "dotted_order" in file.first
        )

    def read(self, file: TraceFile) -> Iterator[Found]:
        """Each span."""
        for place, run in file.entries():
            trace = ""
            try:
                held = obj(run, "a run")
                trace = text(held.get("trace_id") or held.get("id"), "trace_id")
                yield _span(held, trace, place)
            except BadTrace as error:
                yield Flaw(place=place, why=str(error), trace=trace, source=file.source)


def _span(run: dict[str, Json], trace: str, place: str) -> Span:
    kind = KINDS.get(str(run.get("run_type")), "")
    parent = run.get("parent_run_id")
    extra = parsed(run.get("extra"))
    metadata = extra.get("metadata") if is_object(extra) else None
    ended, error = run.get("end_time"), run.get("error")
    inputs, outputs = parsed(run.get("inputs")), parsed(run.get("outputs"))
    attributes: dict[str, Json] = {"metadata": metadata, "output.value": _output(outputs, kind)}
    if kind == "TOOL":
        attributes["gen_ai.tool.name"] = run.get("name")
        attributes["gen_ai.tool.call.arguments"] = named_arguments(inputs)
    else:
        attributes["input.value"] = inputs
    if kind == "LLM":
        attributes |= _usage(run, outputs)
    return Span(
        trace=trace,
        id=text(run.get("id"), "id"),
        parent=str(parent) if parent else "",
        name=str(run.get("name") or ""),
        start=moment(run.get("start_time"), "start_time"),
        end=None if ended is None else moment(ended, "end_time"),
        attributes={
            "openinference.span.kind": kind or ("CHAIN" if parent else "AGENT"),
            **attributes,
        },
        failed=bool(error),
        error=str(error or ""),
        place=place,
    )


def _output(outputs: Json, kind: str) -> Json:
    if kind == "TOOL" and is_object(outputs) and outputs.keys() <= {"output"}:
        return outputs.get("output")
    return outputs


def _usage(run: Mapping[str, Json], outputs: Json) -> dict[str, Json]:
    found = {
        "gen_ai.usage.input_tokens": run.get("prompt_tokens"),
        "gen_ai.usage.output_tokens": run.get("completion_tokens"),
    }
    used = outputs.get("usage_metadata") if is_object(outputs) else None
    if is_object(used):
        found = {
            "gen_ai.usage.input_tokens": used.get("input_tokens"),
            "gen_ai.usage.output_tokens": used.get("output_tokens"),
        }
    return {**found, "gen_ai.usage.cost": run.get("total_cost")}
