"""Our client against the official SDK's server: a process of its own on this machine."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from elsewhere.processes import Served, sdk_agent
from greenroom import Case, Turn, evaluate, live, perform, step
from greenroom.agents import race, remote, timeout
from greenroom.backends.a2a import a2a_agent, discover
from greenroom.errors import AgentFailed, BadAgent, InDoubt
from greenroom.ledger import (
    Ledger,
    Noted,
    Remembered,
    ToolCalled,
    ended,
    responses,
    tool_calls,
)
from greenroom.metrics import contains
from greenroom.simulation import simulate
from greenroom.store import Store
from greenroom.store.conversations import Conversations
from greenroom.world import tool_approval

pytest.importorskip("a2a", reason="the official SDK is tested against")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("far") / "log"
    found.touch()
    return found


@pytest.fixture(scope="module")
def far(log: Path) -> Iterator[Served]:
    served = sdk_agent(log)
    yield served
    served.close()


@pytest.fixture(scope="module")
def polled(log: Path) -> Iterator[Served]:
    served = sdk_agent(log, "polled")
    yield served
    served.close()


def statuses(ledger: Ledger) -> list[str]:
    return [note.data["state"] for note in ledger.of(Noted) if note.name == "a2a:status"]


@step
def by_hand() -> str:
    return "by hand"


def text(log: Path) -> str:
    return log.read_text()


def times(log: Path, words: str) -> int:
    """How often the other agent acted on these words."""
    return log.read_text().count(words)


async def asked(url: str, words: str, **options: Any) -> Ledger:
    return await perform(remote("far", url, **options), words, store=False)


async def test_a_live_turn_asks_the_far_side_and_its_states_are_events(far: Served):
    ledger = await asked(far.url, "hello")
    assert responses(ledger) == ["done: hello"]
    assert statuses(ledger) == ["submitted", "working", "completed"]


async def test_one_that_does_not_stream_is_asked_again_and_again(polled: Served):
    ledger = await asked(polled.url, "slowly 0.3")
    assert responses(ledger) == ["done: slowly 0.3"]
    assert statuses(ledger)[-1] == "completed"


@pytest.mark.parametrize("kind", ["far", "polled"])
@pytest.mark.parametrize("words", ["answer plainly", "stream it"])
async def test_messages_and_pieces_are_answers_too(
    kind: str, words: str, request: pytest.FixtureRequest
):
    served: Served = request.getfixturevalue(kind)
    assert responses(await asked(served.url, words)) == [f"done: {words}"]


async def test_a_task_that_failed_is_a_failure_with_its_reason(far: Served):
    with pytest.raises(AgentFailed, match="no money"):
        await asked(far.url, "fail")
    ledger = await perform(remote("far", far.url) // by_hand, "fail", store=False)
    assert responses(ledger) == ["by hand"]


async def test_a_question_is_the_users_and_its_answer_goes_to_the_same_task(far: Served):
    agent = remote("far", far.url)
    ledger = await perform(agent, "ask me", store=False)
    assert [wait.prompt for wait in ledger.index_of().pending] == ["Which order?"]
    ledger = await perform(agent, "order 7", ledger=ledger, store=False)
    assert responses(ledger) == ["Which order?", "done: order 7"]
    tasks = {note.data["task"] for note in ledger.of(Remembered)} - {""}
    assert len(tasks) == 1
    ledger = await perform(agent, "and now?", ledger=ledger, store=False)
    contexts = {note.data["context"] for note in ledger.of(Remembered)}
    assert len(contexts) == 1
    assert len({note.data["task"] for note in ledger.of(Remembered)} - {""}) == 2


async def test_in_a_rehearsal_it_is_asked_only_if_it_is_named_with_its_host(far: Served, log: Path):
    agent = remote("far", far.url)
    before = text(log)
    case = Case("one", says="rehearsed", metrics=[contains("done")])
    refused = (await evaluate(agent, case)).results[0]
    assert refused.status == "error"
    assert text(log) == before
    named = Case(
        "one",
        says="rehearsed",
        mocks={"far": live(agent, hosts=[far.url.removeprefix("http://")])},
        metrics=[contains("done")],
    )
    result = (await evaluate(agent, named)).results[0]
    assert result.status == "passed", result.error
    assert text(log) != before


async def test_several_at_once_have_each_their_own_answer(far: Served):
    many = [asked(far.url, f"slowly {n / 10}") for n in range(6)]
    found = [responses(ledger) for ledger in await asyncio.gather(*many)]
    assert found == [[f"done: slowly {n / 10}"] for n in range(6)]


async def test_a_task_that_takes_too_long_is_a_failure_and_is_cancelled_there(
    far: Served, log: Path
):
    count = times(log, "cancelled")
    with pytest.raises(AgentFailed, match="within"):
        await asked(far.url, "slowly 30", timeout=2)
    assert times(log, "cancelled") == count + 1
    with pytest.raises(AgentFailed, match="worked for"):
        await perform(timeout(remote("far", far.url), 2), "slowly 30", store=False)
    assert times(log, "cancelled") == count + 2

    async def after_a_moment(input: str) -> str:
        await asyncio.sleep(0.5)
        return "quick"

    flow = race(remote("far", far.url), step(after_a_moment, name="later"))
    assert responses(await perform(flow, "slowly 30", store=False)) == ["quick"]
    assert times(log, "cancelled") == count + 3


def cut(ledger: Ledger, when: Any) -> Ledger:
    """The ledger as a crash leaves it: up to the first event of which that holds."""
    at = next(number for number, event in enumerate(ledger) if when(event))
    return Ledger.loads(Ledger(ledger[: at + 1]).dumps())


async def test_after_a_cut_the_far_side_is_asked_what_became_of_the_task(far: Served, log: Path):
    agent = remote("far", far.url)
    ledger = await perform(agent, "hear this once", store=False)
    torn = cut(ledger, lambda e: isinstance(e, Remembered) and e.data["task"])
    again = await perform(agent, ledger=torn, store=False)
    assert responses(again) == ["done: hear this once"]
    assert times(log, "hear this once") == 1


async def test_a_task_whose_id_did_not_arrive_is_found_by_its_conversation(far: Served, log: Path):
    agent = remote("far", far.url)
    ledger = await perform(agent, "found by context", store=False)
    torn = cut(ledger, lambda e: isinstance(e, Remembered))
    assert [note.data["task"] for note in torn.of(Remembered)] == [""]
    again = await perform(agent, ledger=torn, store=False)
    assert responses(again) == ["done: found by context"]
    assert times(log, "found by context") == 1


async def test_what_the_far_side_does_not_know_is_in_doubt_and_not_sent_again(
    far: Served, log: Path
):
    agent = remote("far", far.url)
    ledger = await perform(agent, "answer plainly, once", store=False)
    torn = cut(ledger, lambda e: isinstance(e, Remembered))
    with pytest.raises(InDoubt, match="does not know it"):
        await perform(agent, ledger=torn, store=False)
    assert times(log, "answer plainly, once") == 1
    ledger = await perform(agent // by_hand, "answer plainly, twice", store=False)
    torn = cut(ledger, lambda e: isinstance(e, Remembered))
    with pytest.raises(InDoubt):
        await perform(agent // by_hand, ledger=torn, store=False)


async def test_a_far_side_that_is_gone_when_a_run_is_resumed_leaves_it_in_doubt(tmp_path: Path):
    served = sdk_agent(tmp_path / "log")
    agent = remote("far", served.url, timeout=1)
    ledger = await perform(agent, "hear this once", store=False)
    served.close()
    torn = cut(ledger, lambda e: isinstance(e, Remembered))
    with pytest.raises(InDoubt, match="could not be reached"):
        await perform(agent, ledger=torn, store=False)


async def test_a_rehearsal_that_was_cut_asks_too_and_sends_nothing_twice(far: Served, log: Path):
    agent = remote("far", far.url)
    host = far.url.removeprefix("http://")
    case = Case("one", says="rehearsed once", mocks={"far": live(agent, hosts=[host])})
    whole = await simulate(case, agent)
    assert responses(whole) == ["done: rehearsed once"]
    torn = cut(whole, lambda e: isinstance(e, Remembered))
    assert responses(await simulate(case, agent, ledger=torn)) == ["done: rehearsed once"]
    assert times(log, "rehearsed once") == 1
    called = cut(whole, lambda e: isinstance(e, ToolCalled))
    assert "not known" in str(ended(await simulate(case, agent, ledger=called)))
    assert times(log, "rehearsed once") == 1


KILLED = """
import asyncio, sys
from greenroom import perform
from greenroom.agents import remote

async def main():
    await perform(remote("far", sys.argv[1]), "slowly 2", store="kept")


asyncio.run(main())
"""


async def test_a_killed_client_goes_on_in_another_process_and_sends_nothing_twice(
    far: Served, log: Path, tmp_path: Path
):
    before = times(log, "slowly 2'")
    command = [sys.executable, "-c", KILLED, far.url]
    client = await asyncio.create_subprocess_exec(*command, cwd=tmp_path)
    for _ in range(600):
        if times(log, "slowly 2'") > before:
            break
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.2)
    client.kill()
    await client.wait()
    store = Store(tmp_path / "kept")
    [facts] = Conversations(store.database).list()
    ledger = await perform(remote("far", far.url), conversation=facts.id, store=store)
    assert responses(ledger) == ["done: slowly 2"]
    assert times(log, "slowly 2'") == before + 1


async def test_what_needs_an_approval_is_sent_after_it(far: Served, log: Path):
    agent = remote("far", far.url)
    options: dict[str, Any] = {"middleware": [tool_approval("far")], "store": False}
    ledger = await perform(agent, "approve this first", **options)
    assert [wait.tool for wait in ledger.index_of().pending] == ["far"]
    assert times(log, "approve this first") == 0
    ledger = await perform(agent, answers={"far": True}, ledger=ledger, **options)
    assert responses(ledger) == ["done: approve this first"]
    ledger = await perform(agent, "never this", **options)
    with pytest.raises(AgentFailed, match="did not approve"):
        await perform(agent, answers={"far": False}, ledger=ledger, **options)
    assert times(log, "never this") == 0


async def test_a_token_goes_out_as_a_header_and_into_no_ledger(
    far: Served, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(BadAgent, match="FAR_TOKEN"):
        await asked(far.url, "hello", token="FAR_TOKEN")
    monkeypatch.setenv("FAR_TOKEN", "s3cr3t-t0k3n\nX-Other: 1")
    with pytest.raises(BadAgent) as caught:
        await asked(far.url, "hello", token="FAR_TOKEN")
    assert "s3cr3t" not in str(caught.value)
    monkeypatch.setenv("FAR_TOKEN", "s3cr3t-t0k3n")
    ledger = await asked(far.url, "hello", token="FAR_TOKEN", headers={"X-Key": "FAR_TOKEN"})
    assert "s3cr3t" not in ledger.dumps()


async def test_an_agent_that_is_only_reachable_by_a2a_is_rehearsed_when_it_may_be_opaque(
    far: Served,
):
    agent = a2a_agent(far.url)
    case = Case("one", says="hello", metrics=[contains("done: hello")])
    with pytest.raises(BadAgent, match="allow_opaque"):
        await evaluate(agent, case)
    result = (await evaluate(agent, case, allow_opaque=True)).results[0]
    assert result.status == "passed", result.error
    assert not tool_calls(result.ledger)


async def test_such_an_agent_may_ask_back(far: Served):
    case = Case("one", turns=[Turn("ask me"), Turn("order 7")], metrics=[contains("done: order 7")])
    result = (await evaluate(a2a_agent(far.url), case, allow_opaque=True)).results[0]
    assert result.status == "passed", result.error
    assert responses(result.ledger) == ["Which order?", "done: order 7"]


async def test_such_an_agent_is_asked_what_became_of_its_turn_after_a_cut(far: Served, log: Path):
    agent = a2a_agent(far.url)
    ledger = await perform(agent, "opaque, once", store=False)
    torn = cut(ledger, lambda e: isinstance(e, Remembered))
    again = await perform(agent, ledger=torn, store=False)
    assert responses(again) == ["done: opaque, once"]
    assert times(log, "opaque, once") == 1


async def test_cards_are_discovered_by_their_skills(far: Served):
    dead = "http://127.0.0.1:1"
    found = await discover([far.url, dead], skill="Money")
    assert [card.name for card in found.cards] == ["far"]
    assert "could not be reached" in found.failures[dead]
    assert (await discover(far.url, skill="weather")).cards == ()
    [card] = found.cards
    ledger = await perform(remote("far", card), "hello", store=False)
    assert responses(ledger) == ["done: hello"]
