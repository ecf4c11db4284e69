"""A report in google-adk's own format, which `adk web` shows when it is in an agent's history folder.

The file is written without the framework, in the format its models read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import ClassVar

from greenroom.cases.scores import Outcome, Score
from greenroom.errors import BadInput
from greenroom.ledger import questions
from greenroom.ledger.plain import Json, as_object, is_object
from greenroom.results.files import json_text, write_whole
from greenroom.results.redaction import redacted
from greenroom.results.report import Report
from greenroom.results.result import CaseResult

_PASSED, _FAILED, _NOT_EVALUATED = 1, 2, 3
# A result without a verdict counts neither as passed nor as failed.
_STATUS = {
    "passed": _PASSED,
    "failed": _FAILED,
    "terminated": _FAILED,
    "error": _NOT_EVALUATED,
    "skipped": _NOT_EVALUATED,
}
_USER = "greenroom"
_ENDING = ".evalset_result.json"


@dataclass(frozen=True, slots=True)
class AdkReport:
    """Renders a report as google-adk's `EvalSetResult`; `app` is the name of the agent's folder."""

    name: ClassVar[str] = "adk"
    file: ClassVar[str] = f"greenroom{_ENDING}"

    app: str = "greenroom"

    def render(self, report: Report, *, baseline: Report | None = None) -> str:  # noqa: ARG002
        """All cases with their metrics and turns; there is no place for a baseline."""
        return json_text(evalset_result(redacted(report), self.app))


def write_eval_history(report: Report, agents_dir: str | Path, app: str) -> Path:
    """Write a report into the history of an agent, where `adk web AGENTS_DIR` finds it."""
    if not app or Path(app).name != app or app in (".", ".."):
        raise BadInput(f"{app!r} is not the name of an agent's folder in {str(agents_dir)!r}.")
    clean = redacted(report)
    name = evalset_result(clean, app)["eval_set_result_name"]
    folder = Path(agents_dir) / app / ".adk" / "eval_history"
    return write_whole(AdkReport(app).render(clean), folder / f"{name}{_ENDING}", "the results")


def evalset_result(report: Report, app: str) -> dict[str, Json]:
    """A report as the data of an `EvalSetResult`."""
    evalset = report.evalset_id or report.name or "greenroom"
    at = time() if report.at is None else report.at
    parts = f"{app}_{evalset}_{report.id or at}"
    name = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in parts)
    return {
        "eval_set_result_id": name,
        "eval_set_result_name": name,
        "eval_set_id": evalset,
        "eval_case_results": [_case(result, evalset, app, at) for result in report.results],
        "creation_timestamp": at,
    }


def _case(result: CaseResult, evalset: str, app: str, at: float) -> dict[str, Json]:
    metrics: list[Json] = [_metric(name, outcome) for name, outcome in result.scores.items()]
    turns = _turns(result)
    # A metric measures the whole case; that equals its turn only if there is a single one.
    alone: list[Json] = metrics if len(turns) == 1 else []
    return {
        "eval_set_id": evalset,
        "eval_id": result.label,
        "final_eval_status": _STATUS[result.status],
        "overall_eval_metric_results": metrics,
        "eval_metric_result_per_invocation": [
            {"actual_invocation": _invocation(turn, n), "eval_metric_results": alone}
            for n, turn in enumerate(turns, 1)
        ],
        "session_id": result.label,
        "session_details": _session(result, turns, app, at),
        "user_id": _USER,
    }


def _metric(name: str, outcome: Outcome) -> dict[str, Json]:
    score = outcome if isinstance(outcome, Score) else None
    why = score.reason if score else getattr(outcome, "why", "")
    data: dict[str, Json] = {"metric_name": name, "eval_status": _NOT_EVALUATED}
    if score is not None:
        data |= {
            "score": score.value,
            "threshold": score.threshold,
            "eval_status": _PASSED if score.passed else _FAILED,
        }
    if why:
        # Their format has no other place for a metric's reason.
        reason = {"rubric_id": name, "rationale": why, "score": data.get("score")}
        data["details"] = {"rubric_scores": [reason]}
    return data


@dataclass(slots=True)
class _Turn:
    """What was said and done in one turn of the user."""

    said: str
    calls: list[questions.CallRecord]
    answer: str = ""


def _turns(result: CaseResult) -> list[_Turn]:
    turns: list[_Turn] = []
    ledger = result.ledger_or_none
    known: dict[str, list[questions.CallRecord]] = {}
    for call in [] if ledger is None else questions.tool_calls(ledger):
        known.setdefault(call.id, []).append(call)
    for step in result.trajectory:
        if step.type == "message" and step.name == "user":
            turns.append(_Turn(str(step.args), []))
            continue
        if not turns:
            turns.append(_Turn("", []))
        if step.type == "message":
            turns[-1].answer = str(step.args)
        elif step.type == "tool":
            call_id = str(as_object(step.details or {"id": ""})["id"])
            unseen = questions.CallRecord(step.name, as_object(step.args or {}), call_id)
            recorded = known.get(call_id)
            # Calls may share an id: each is used once, in order.
            turns[-1].calls.append(recorded.pop(0) if recorded else unseen)
    return turns


def _invocation(turn: _Turn, n: int) -> dict[str, Json]:
    return {
        "invocation_id": f"turn-{n}",
        "user_content": _content("user", [{"text": turn.said}]),
        "final_response": _content("model", [{"text": turn.answer}]) if turn.answer else None,
        "intermediate_data": {
            "tool_uses": [_use(call) for call in turn.calls],
            "tool_responses": [_response(call) for call in turn.calls],
            "intermediate_responses": [],
        },
    }


def _session(result: CaseResult, turns: Sequence[_Turn], app: str, at: float) -> dict[str, Json]:
    """The conversation as an ADK session; an error is its last event, since ADK has no other place for it."""
    events: list[dict[str, Json]] = []
    for n, turn in enumerate(turns, 1):
        events += [_event(n, at, "user", [{"text": turn.said}])]
        for call in turn.calls:
            events.append(_event(n, at, "agent", [{"function_call": _use(call)}]))
            events.append(_event(n, at, "agent", [{"function_response": _response(call)}]))
        if turn.answer:
            events.append(_event(n, at, "agent", [{"text": turn.answer}]))
    if result.error is not None:
        error: dict[str, Json] = {
            "error_code": result.error.type or "error",
            "error_message": result.error.message,
        }
        events.append(_event(max(len(turns), 1), at, "agent", []) | error)
    for place, event in enumerate(events):
        event["id"] = f"event-{place}"
    ledger = result.ledger_or_none
    state = {} if ledger is None else questions.state(ledger).get("session", {})
    return {
        "id": result.label,
        "app_name": app,
        "user_id": _USER,
        "state": state,
        "events": [*events],
        "last_update_time": at,
    }


def _event(n: int, at: float, author: str, parts: Sequence[Json]) -> dict[str, Json]:
    role = "user" if author == "user" else "model"
    return {
        "invocation_id": f"turn-{n}",
        "author": author,
        "timestamp": at,
        "content": _content(role, parts) if parts else None,
    }


def _content(role: str, parts: Sequence[Json]) -> Json:
    return {"role": role, "parts": list(parts)}


def _use(call: questions.CallRecord) -> dict[str, Json]:
    return {"id": call.id or None, "name": call.tool, "args": call.args}


def _response(call: questions.CallRecord) -> dict[str, Json]:
    value: Json = {"error": call.error} if call.error else call.result
    response: Json = value if is_object(value) else {"result": value}
    return {"id": call.id or None, "name": call.tool, "response": response}
