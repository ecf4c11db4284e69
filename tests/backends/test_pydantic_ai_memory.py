"""Messages are remembered in the framework's own form, and lose nothing by it."""

import gc
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from greenroom import Case, Ledger, simulate
from greenroom.backends.callers import HostCaller
from greenroom.backends.pydantic_ai import PydanticAIBackend
from greenroom.backends.pydantic_ai.run import FrameworkRun
from greenroom.backends.pydantic_ai.translation import recalled, remembered
from greenroom.ledger.plain import Json, plain

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
YEAR = timedelta(days=365)

texts = st.text(max_size=9)
maybe = st.none() | texts
leaves = st.none() | st.booleans() | st.integers() | texts
values = st.recursive(
    leaves | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)
zones = st.sampled_from([UTC, timezone(timedelta(hours=2))])
moments = st.builds(lambda s, zone: NOON.astimezone(zone) + s, st.timedeltas(-YEAR, YEAR), zones)
asked_parts = st.one_of(
    st.builds(SystemPromptPart, texts, timestamp=moments, dynamic_ref=maybe),
    st.builds(UserPromptPart, texts | st.lists(texts, max_size=2), timestamp=moments),
    st.builds(
        ToolReturnPart,
        texts,
        values,
        tool_call_id=texts,
        metadata=values,
        timestamp=moments,
        outcome=st.sampled_from(["success", "failed", "denied"]),
    ),
)
replied_parts = st.one_of(
    st.builds(TextPart, texts, id=maybe, provider_name=maybe, provider_details=objects),
    st.builds(ThinkingPart, texts),
    st.builds(ToolCallPart, texts, st.none() | objects, tool_call_id=texts, id=maybe),
    st.builds(ToolCallPart, texts, objects.map(json.dumps), tool_call_id=texts),
)
usages = st.builds(
    RequestUsage,
    input_tokens=st.integers(0, 9),
    output_tokens=st.integers(0, 9),
    details=st.dictionaries(texts, st.integers(0, 9), max_size=2),
    cost=st.none() | st.sampled_from([Decimal(0), Decimal("0.25")]),
)
messages = st.one_of(
    st.builds(
        ModelRequest,
        st.lists(asked_parts, min_size=1, max_size=3),
        timestamp=st.none() | moments,
        instructions=maybe,
        run_id=maybe,
        metadata=st.none() | objects,
    ),
    st.builds(
        ModelResponse,
        st.lists(replied_parts, max_size=3),
        usage=usages,
        timestamp=moments,
        model_name=maybe,
        provider_name=maybe,
        provider_details=st.none() | objects,
        finish_reason=st.sampled_from([None, "stop", "tool_call"]),
        metadata=st.none() | objects,
    ),
)


def through_a_ledger(said: list[ModelMessage]) -> list[Json]:
    return json.loads(json.dumps(plain(remembered(said))))


def as_the_framework_has_it(said: list[ModelMessage]) -> list[ModelMessage]:
    return ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(said))


@given(st.lists(messages, max_size=3))
def test_what_is_recalled_is_what_the_framework_itself_would_have_kept(said: list[ModelMessage]):
    assert recalled(through_a_ledger(said)) == as_the_framework_has_it(said)


@given(st.lists(messages, max_size=3))
def test_what_was_recalled_is_remembered_in_the_same_words(said: list[ModelMessage]):
    kept = through_a_ledger(said)
    assert through_a_ledger(recalled(kept)) == kept


@pytest.mark.parametrize(
    "said",
    [
        ModelRequest([UserPromptPart(["look", ImageUrl("https://example.org/a.png")])]),
        ModelRequest([UserPromptPart([BinaryContent(b"\x00\xff", media_type="image/png")])]),
        ModelRequest([ToolReturnPart("draw", BinaryContent(b"\x00", media_type="image/png"))]),
        ModelRequest([ToolReturnPart("draw", {"file": ImageUrl("https://example.org/a.png")})]),
        ModelRequest([ToolReturnPart("look", None)]),
        ModelRequest([ToolReturnPart("look", {"kind": "image-url", "url": "x"})]),
        ModelResponse([ToolCallPart("book", {"on": NOON, "data": b"\x00"})]),
        ModelResponse([], usage=RequestUsage(input_tokens=1, details={"reasoning": 2})),
        ModelRequest([ToolReturnPart("count", RequestUsage(input_tokens=1))]),
    ],
    ids=range(9),
)
def test_what_is_not_plain_is_recalled_too(said: ModelMessage):
    assert recalled(through_a_ledger([said])) == as_the_framework_has_it([said])


def test_counts_that_a_provider_added_are_not_lost():
    used = RequestUsage(input_tokens=1)
    vars(used)["searches"] = 3
    (again,) = recalled(through_a_ledger([ModelResponse([], usage=used)]))
    assert isinstance(again, ModelResponse)
    assert vars(again.usage)["searches"] == 3


@dataclass(eq=False)
class Table:
    """Like those of numbers: it cannot say whether it is the same as something."""

    rows: int

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth of a table is ambiguous")

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def test_what_stands_beside_a_tools_answer_is_never_compared():
    part = ToolReturnPart("query", "3 rows", metadata=Table(3))
    kept: Any = remembered([ModelRequest([part])])
    assert kept[0]["parts"][0]["metadata"] == {"rows": 3}


async def test_a_run_leaves_no_ring_behind_that_only_a_search_for_garbage_would_find():
    async def reply(*_: Any) -> ModelResponse:
        return ModelResponse([TextPart("done")])

    backend = PydanticAIBackend(Agent(FunctionModel(reply)))
    await simulate(Case("warm", says="hello"), backend)
    gc.collect()
    gc.disable()
    try:
        before = standing()
        await simulate(Case("one", says="hello"), backend)
        assert standing() == before
    finally:
        gc.enable()


def standing() -> int:
    return sum(type(thing) in (Ledger, FrameworkRun, HostCaller) for thing in gc.get_objects())
