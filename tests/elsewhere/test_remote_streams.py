"""Words of an agent elsewhere, heard while it still speaks; the other agent is the official SDK's."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from elsewhere.processes import Served, sdk_agent
from greenroom import Case, perform, simulate, step
from greenroom.agents import by, remote
from greenroom.backends.a2a import a2a_agent
from greenroom.ledger import responses
from greenroom.simulation import Restarted
from greenroom.world import pii_filter

pytest.importorskip("a2a", reason="the official SDK is tested against")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    served: Served = sdk_agent(tmp_path_factory.mktemp("far") / "log")
    yield served.url
    served.close()


async def heard(agent: Any, words: str, **options: Any) -> list[str]:
    return [piece async for piece in perform(agent, words, store=False, **options).deltas()]


async def test_the_user_hears_the_words_of_the_far_side_as_they_come(url: str):
    pieces = ["do", "ne: ", "stream this"]
    assert await heard(remote("far", url), "stream this") == pieces
    assert await heard(a2a_agent(url), "stream this") == pieces
    assert await heard(remote("far", url), "hello") == ["done: hello"]


async def test_a_step_behind_it_takes_the_words_in_pieces(url: str):
    @step
    async def count(chunks: AsyncIterator[str]) -> str:
        return " | ".join([piece async for piece in chunks])

    flow = remote("far", url) >> by("word") >> count
    ledger = await perform(flow, "stream this", store=False)
    assert responses(ledger) == ["done:  | stream  | this"]


async def test_an_answer_in_the_place_of_another_is_heard_alone(url: str):
    first, again, last = await heard(remote("far", url), "think again")
    assert (first, last) == ("No.", "done: think again")
    assert isinstance(again, Restarted)


async def test_several_artifacts_are_heard_as_the_answer_has_them(url: str):
    assert "".join(await heard(remote("far", url), "twice")) == "one\ntwo"


async def test_middleware_that_has_to_see_it_first_holds_it_back(url: str):
    pieces = await heard(remote("far", url), "stream to ann@example.org", middleware=[pii_filter()])
    assert len([piece for piece in pieces if piece]) == 1
    assert "ne: " not in pieces


async def test_one_that_is_mocked_is_heard_at_once_and_nothing_is_connected():
    @step
    async def hear(chunks: AsyncIterator[str]) -> str:
        return "".join([piece async for piece in chunks])

    case = Case("mocked", says="hello", mocks={"far": "Order 7 is refunded."})
    ledger = await simulate(case, remote("far", "http://127.0.0.1:9") >> hear)
    assert responses(ledger) == ["Order 7 is refunded."]
