"""A turn of Google ADK's eval sets, an invocation: what the user says, and what the agent should do and answer."""

from collections.abc import Sequence
from typing import Any

from greenroom.cases.case import Expect, Turn
from greenroom.cases.fields import Fields, without_nulls
from greenroom.cases.files.message_blobs import attached_in, with_blobs, with_blobs_kept
from greenroom.cases.files.originals import (
    Calls,
    put_back,
    reference_in,
    said_in,
    steps_in,
    with_extra,
)
from greenroom.cases.literals import unquoted
from greenroom.ledger.attachments import Attachment
from greenroom.ledger.plain import Json, is_object, plain

TURN = (
    "invocation_id",
    "user_content",
    "final_response",
    "intermediate_data",
    "creation_timestamp",
    "duration",
    "model_duration",
    "tool_duration",
    "rubrics",
    "app_details",
)
TURN_MEANS = {
    "says": "user_content",
    "tools": "intermediate_data.tool_uses",
    "args": "intermediate_data.tool_uses",
    "reference": "final_response",
    "response": "final_response",
    "intermediate": "intermediate_data.intermediate_responses",
    "state": "final_session_state",
}


def turn_from(data: Json, place: str) -> Turn:
    """A turn from ADK's invocation."""
    fields = Fields(data, place, TURN, TURN_MEANS)
    given, where = without_nulls(fields.take("user_content")), fields.at("user_content")
    content = fields.part(lambda: with_blobs_kept(given, where), None)
    says = (
        fields.part(lambda: said_in(content, where), "") if content is not None or not given else ""
    )
    attached = attached_in(content)
    expect = fields.part(lambda: _expect(fields), None)
    usual = (_content(says, "user", attached), _content(says, "", attached))
    extra = with_extra(fields.rest(), user_content=None if content in usual else content)
    fields.settle()
    return Turn(says, expect, extra, attached)


def _expect(fields: Fields) -> Expect | None:
    response, steps = (_without_bytes(fields, name) for name in _SAID)
    if response is None and steps is None:
        return None
    problems = fields.problems
    reference: str | None = None
    tools: Calls | None = None
    said: list[str] = []
    if response is not None:
        where = fields.at("final_response")
        reference = problems.part(where, lambda: reference_in(response, where), None)
    if steps is not None:
        place = fields.at("intermediate_data")
        tools, said = problems.part(place, lambda: steps_in(steps, place), (None, said))
    said = [text for text in said if text.strip()]
    usual = (_content(reference or "", "model"), _content(reference or ""))
    return Expect(
        tools=tools,
        reference=reference,
        intermediate=said or None,
        extra=with_extra(
            {},
            final_response=None if response in usual and reference else response,
            intermediate_data=None if _lean(steps) == _steps(tools, said) else steps,
        ),
    )


_SAID = ("final_response", "intermediate_data")


def _without_bytes(fields: Fields, name: str) -> Json:
    given = without_nulls(fields.take(name))
    return fields.part(lambda: with_blobs_kept(given, fields.at(name)), None)


def _lean(steps: Json) -> Json:
    """The steps on the way to a response, without empty lists."""
    if not is_object(steps):
        return steps
    return {"tool_uses": [], **{key: value for key, value in steps.items() if value != []}}


def turn_data(turn: Turn) -> dict[str, Json]:
    """A turn as ADK's invocation."""
    extra = dict(turn.extra or {})
    data: dict[str, Json] = {}
    if "invocation_id" in extra:
        data["invocation_id"] = extra.pop("invocation_id")
    kept = extra.pop("user_content", None)
    is_ours = is_object(kept) and "parts" in kept
    usual = _content(turn.says, "user", tuple(turn.attachments))
    data["user_content"] = with_blobs(kept if is_ours else usual)
    if turn.expect is not None:
        data |= _expect_data(turn.expect)
    put_back(data, extra, TURN)
    return data


def _expect_data(expect: Expect) -> dict[str, Json]:
    extra = dict(expect.extra or {})
    data: dict[str, Json] = {}
    if "final_response" in extra:
        data["final_response"] = with_blobs(extra.pop("final_response"))
    elif expect.reference is not None:
        data["final_response"] = _content(expect.reference, "model")
    if "intermediate_data" in extra:
        data["intermediate_data"] = with_blobs(extra.pop("intermediate_data"))
    elif expect.tools is not None:
        data["intermediate_data"] = _steps(expect.tools, expect.intermediate or ())
    return data


def _content(text: str, role: str = "", attached: Sequence[Attachment] = ()) -> dict[str, Json]:
    said: list[Json] = [{"text": text}] if text or not attached else []
    content: dict[str, Json] = {
        "parts": [*said, *({"inline_data": plain(one)} for one in attached)]
    }
    return {**content, "role": role} if role else content


def _steps(tools: Calls | None, said: Any) -> dict[str, Json]:
    uses: list[Json] = [
        {"name": use} if isinstance(use, str) else {"name": use.tool, "args": unquoted(use.args)}
        for use in tools or ()
    ]
    steps: dict[str, Json] = {"tool_uses": uses}
    if said:
        steps["intermediate_responses"] = [["agent", [{"text": text}]] for text in said]
    return steps
