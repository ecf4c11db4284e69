"""The official SDK's client against `greenroom serve`, a process of its own that may be killed."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from elsewhere.processes import Served, our_agent
from greenroom import Ledger, perform
from greenroom.agents import remote
from greenroom.backends.a2a import discover
from greenroom.errors import AgentFailed
from greenroom.ledger import Event, Remembered, responses

pytest.importorskip("a2a", reason="the official SDK is tested against")

from a2a.client import ClientConfig, create_client
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import A2AError

DONE = TaskState.TASK_STATE_COMPLETED
FAILED = TaskState.TASK_STATE_FAILED
ASKS = TaskState.TASK_STATE_INPUT_REQUIRED


OPEN: list[httpx.AsyncClient] = []


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    yield
    while OPEN:
        await OPEN.pop().aclose()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("desk")


@pytest.fixture(scope="module")
def desk(folder: Path) -> Iterator[Served]:
    card = str(Path(__file__).with_name("served_agent.py"))
    served = our_agent(folder, "--card", f"{card}:card")
    yield served
    served.close()


def logged(folder: Path) -> list[str]:
    log = folder / "log"
    return log.read_text().splitlines() if log.exists() else []


def message(text: str, *, task: str = "", context: str = "", id: str = "") -> Message:
    return Message(
        role=Role.ROLE_USER,
        message_id=id or str(uuid4()),
        parts=[Part(text=text)],
        task_id=task,
        context_id=context,
    )


class Client:
    """The official client, with what a test asks of it in one line each."""

    def __init__(self, client: Any) -> None:
        self.client = client

    @staticmethod
    async def at(url: str, *, streaming: bool = True) -> "Client":
        # The server may be busy on a small machine.
        http = httpx.AsyncClient(timeout=30)
        OPEN.append(http)
        return Client(
            await create_client(url, ClientConfig(streaming=streaming, httpx_client=http))
        )

    async def events(self, said: Message, **options: Any) -> list[Any]:
        asked = SendMessageRequest(message=said, configuration=SendMessageConfiguration(**options))
        return [event async for event in self.client.send_message(asked)]

    async def say(self, text: str, **where: str) -> Task:
        """What became of a message, as the server tells it afterwards."""
        events = await self.events(message(text, **where))
        name = events[0].task.id
        return await self.task(name)

    async def rested(self, name: str) -> Task:
        """A task as soon as it is at work no more."""
        for _ in range(600):
            task = await self.task(name)
            if task.status.state != TaskState.TASK_STATE_WORKING:
                return task
            await asyncio.sleep(0.05)
        raise AssertionError(f"{name} is at work still")

    async def task(self, name: str) -> Task:
        return await self.client.get_task(GetTaskRequest(id=name))


def answer(task: Task) -> str:
    return "".join(part.text for artifact in task.artifacts for part in artifact.parts)


async def until(holds: Any) -> None:
    end = time.monotonic() + 600
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.05)


async def test_the_card_is_read_by_the_official_client_and_by_ours(desk: Served):
    from a2a.client import A2ACardResolver

    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, desk.url).get_agent_card()
    assert (card.name, card.description) == ("desk", "Refunds.")
    assert card.capabilities.streaming
    found = await discover(desk.url, skill="money")
    assert [one.name for one in found.cards] == ["desk"]
    assert "Pay back" not in json.dumps(found.cards[0].data())


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_conversation_goes_on_in_its_context(desk: Served, streaming: bool):
    client = await Client.at(desk.url, streaming=streaming)
    first = await client.say("hello")
    assert first.status.state == DONE
    assert answer(first) == "1: hello"
    second = await client.say("again", context=first.context_id)
    assert answer(second) == "2: again"
    assert second.id != first.id
    other = await client.say("someone else")
    assert answer(other) == "1: someone else"


async def test_pieces_come_as_they_are_written(desk: Served):
    client = await Client.at(desk.url)
    events = await client.events(message("stream these words"))
    pieces = [e.artifact_update for e in events if e.HasField("artifact_update")]
    assert [piece.artifact.parts[0].text for piece in pieces] == [
        "1: ",
        "stream ",
        "these ",
        "words ",
    ]
    assert [piece.append for piece in pieces] == [False, True, True, True]
    assert events[-1].status_update.status.state == DONE


@pytest.mark.parametrize("streaming", [True, False])
async def test_an_approval_is_asked_for_and_answered_in_the_same_task(
    desk: Served, folder: Path, streaming: bool
):
    client = await Client.at(desk.url, streaming=streaming)
    asked = await client.say("refund me")
    assert asked.status.state == ASKS
    before = logged(folder).count("refund 7")
    with pytest.raises(A2AError, match="does not fit"):
        await client.events(message("perhaps", task=asked.id, context=asked.context_id))
    assert (await client.task(asked.id)).status.state == ASKS
    done = await client.say("yes", task=asked.id, context=asked.context_id)
    assert (done.id, done.status.state) == (asked.id, DONE)
    count = len(done.history)
    assert count > 1
    longer = GetTaskRequest(id=asked.id, history_length=count + 1)
    assert len((await client.client.get_task(longer)).history) == count
    assert logged(folder).count("refund 7") == before + 1


async def test_a_message_that_comes_again_is_not_acted_on_again(desk: Served):
    client = await Client.at(desk.url, streaming=False)
    context = str(uuid4())
    once = message("hello", context=context)
    [first] = await client.events(once)
    [again] = await client.events(once)
    assert first.task.id == again.task.id
    listed = await client.client.list_tasks(ListTasksRequest(context_id=context))
    assert [task.id for task in listed.tasks] == [first.task.id]


async def test_what_broke_inside_is_a_failed_task_that_tells_no_secrets(desk: Served):
    client = await Client.at(desk.url)
    task = await client.say("break")
    assert task.status.state == TaskState.TASK_STATE_FAILED
    assert "secret" not in str(task)
    told = await client.say("hello", context=task.context_id)
    assert answer(told) == "2: hello", "what broke off is remembered"


async def test_a_task_is_cancelled_and_the_conversation_goes_on(desk: Served, folder: Path):
    client = await Client.at(desk.url, streaming=False)
    [begun] = await client.events(message("slowly"), return_immediately=True)
    assert begun.task.status.state == TaskState.TASK_STATE_WORKING
    with pytest.raises(A2AError, match="still running"):
        await client.say("hello", context=begun.task.context_id)
    cancelled = await client.client.cancel_task(CancelTaskRequest(id=begun.task.id))
    assert cancelled.status.state == TaskState.TASK_STATE_CANCELED
    with pytest.raises(A2AError, match="over"):
        await client.client.cancel_task(CancelTaskRequest(id=begun.task.id))
    told = await client.say("hello", context=begun.task.context_id)
    assert answer(told) == "2: hello", "what broke off is remembered"


async def test_a_task_can_be_followed_by_another_who_joins_later(desk: Served):
    client = await Client.at(desk.url, streaming=False)
    [begun] = await client.events(message("slowly"), return_immediately=True)
    other = await Client.at(desk.url)
    states: list[Any] = []

    async def follow() -> None:
        asked = SubscribeToTaskRequest(id=begun.task.id)
        async for event in other.client.subscribe(asked):
            update = event.task if event.HasField("task") else event.status_update
            states.append(update.status.state)

    following = asyncio.ensure_future(follow())
    await until(lambda: states)
    await client.client.cancel_task(CancelTaskRequest(id=begun.task.id))
    await following
    assert states[0] == TaskState.TASK_STATE_WORKING
    assert states[-1] == TaskState.TASK_STATE_CANCELED


async def test_several_conversations_at_once_do_not_mix(desk: Served):
    client = await Client.at(desk.url)
    many = [client.say(f"stream {n}") for n in range(8)]
    assert [answer(task) for task in await asyncio.gather(*many)] == [
        f"1: stream {n} " for n in range(8)
    ]


async def test_our_client_and_our_server_understand_each_other(desk: Served, folder: Path):
    agent = remote("desk", desk.url)
    before = logged(folder).count("refund 7")
    ledger = await perform(agent, "refund me", store=False)
    assert ledger.index_of().pending
    ledger = await perform(agent, "true", ledger=ledger, store=False)
    assert responses(ledger)[-1].startswith("1: refund")
    assert logged(folder).count("refund 7") == before + 1
    ledger = await perform(agent, "thanks", ledger=ledger, store=False)
    assert responses(ledger)[-1] == "2: thanks"


async def test_a_message_that_may_not_have_arrived_is_sent_again_to_one_that_knows_repeats(
    desk: Served,
):
    agent = remote("desk", desk.url)
    ledger = await perform(agent, "hello", store=False)
    at = next(n for n, event in enumerate(ledger) if isinstance(event, Remembered))
    torn = Ledger.loads(Ledger(ledger[: at + 1]).dumps())
    assert responses(await perform(agent, ledger=torn, store=False)) == ["1: hello"]
    text = Ledger(ledger[: at + 1]).dumps()
    context = ledger.of(Remembered)[0].data["context"]
    lost = Ledger.loads(text.replace(context, str(uuid4())))
    assert responses(await perform(agent, ledger=lost, store=False)) == ["1: hello"]


async def test_a_reply_that_was_cut_before_it_went_out_is_sent(desk: Served, folder: Path):
    agent = remote("desk", desk.url, timeout=10)
    ledger = await perform(agent, "refund me", store=False)
    before = logged(folder).count("refund 7")

    def cut(event: Event) -> None:
        if isinstance(event, Remembered):
            raise OSError("cut")

    with pytest.raises(AgentFailed):
        await perform(agent, "true", ledger=ledger, store=False, on_event=cut)
    at = max(n for n, event in enumerate(ledger) if isinstance(event, Remembered))
    torn = Ledger.loads(Ledger(ledger[: at + 1]).dumps())
    assert logged(folder).count("refund 7") == before
    done = await perform(agent, ledger=torn, store=False)
    assert responses(done)[-1].startswith("1: refund")
    assert logged(folder).count("refund 7") == before + 1


@pytest.mark.heavy
async def test_a_killed_server_goes_on_when_it_starts_again(tmp_path: Path):
    served = our_agent(tmp_path)
    try:
        client = await Client.at(served.url, streaming=False)
        done = await client.say("hello")
        asked = await client.say("refund me")
        [begun] = await client.events(message("slowly"), return_immediately=True)
        [acting] = await client.events(message("act"), return_immediately=True)
        await until(lambda: "asked" in logged(tmp_path) and "acted" in logged(tmp_path))
        served.kill()
        (tmp_path / "hurry").touch()
        served.start()
        client = await Client.at(served.url, streaming=False)
        assert answer(await client.task(done.id)) == "1: hello"
        assert answer(await client.say("more", context=done.context_id)) == "2: more"
        assert (await client.task(asked.id)).status.state == ASKS
        refunded = await client.say("yes", task=asked.id, context=asked.context_id)
        assert refunded.status.state == DONE
        assert answer(await client.rested(begun.task.id)) == "1: slowly"
        assert (await client.rested(acting.task.id)).status.state == FAILED
        assert logged(tmp_path).count("acted") == 1
        assert logged(tmp_path).count("refund 7") == 1
    finally:
        served.close()


@pytest.mark.heavy
async def test_what_waits_for_its_place_is_not_lost_when_the_server_is_killed(tmp_path: Path):
    served = our_agent(tmp_path, "--at-once", "1")
    try:
        client = await Client.at(served.url, streaming=False)
        asked = await client.say("refund me")
        await client.events(message("slowly"), return_immediately=True)
        await until(lambda: "asked" in logged(tmp_path))
        [queued] = await client.events(message("hello"), return_immediately=True)
        yes = message("yes", task=asked.id, context=asked.context_id)
        await client.events(yes, return_immediately=True)
        served.kill()
        (tmp_path / "hurry").touch()
        served.start()
        client = await Client.at(served.url, streaming=False)
        assert answer(await client.rested(queued.task.id)) == "1: hello"
        assert (await client.rested(asked.id)).status.state == DONE
        assert logged(tmp_path).count("refund 7") == 1
    finally:
        served.close()


@pytest.mark.heavy
async def test_our_client_waits_for_a_far_side_that_is_killed_and_started_again(tmp_path: Path):
    served = our_agent(tmp_path)
    try:
        asking = asyncio.ensure_future(_performed(served.url))
        await until(lambda: "asked" in logged(tmp_path))
        served.kill()
        (tmp_path / "hurry").touch()
        served.start()
        assert responses(await asking) == ["1: slowly"]
        assert logged(tmp_path) == ["asked"]
    finally:
        served.close()


async def _performed(url: str) -> Any:
    return await perform(remote("desk", url, timeout=60), "slowly", store=False)
