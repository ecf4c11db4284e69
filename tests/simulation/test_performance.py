"""perform(): a live conversation that is kept, continued elsewhere, and never acts twice."""

import asyncio
import sys
from pathlib import Path

import pytest

import warm_python
from greenroom import Agent, Case, Ledger, Scripted, call, loop, perform, simulate, step, tool
from greenroom.errors import (
    AgentFailed,
    BadInput,
    BadLedger,
    BadValue,
    InDoubt,
    LoopLimit,
    NotFound,
    StoreFailed,
    TimeUp,
)
from greenroom.ledger import ToolCalled, responses, started, state
from greenroom.models import ModelReply, ModelRequest
from greenroom.store import Store
from greenroom.store.conversations import Conversations

BOOKED: list[str] = []


@tool
def book(day: str) -> str:
    """Book a day."""
    BOOKED.append(day)
    return f"booked {day}"


@tool(yields=True)
def approve(amount: int) -> bool:
    """Ask whether to pay."""
    raise AssertionError("the user answers")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    BOOKED.clear()
    return Store(tmp_path / "kept")


def desk(*lines: object, tools: tuple[object, ...] = (book, approve)) -> Agent:
    return Agent("desk", model=Scripted(*lines), tools=tools)  # pyright: ignore[reportArgumentType]


async def test_tools_act_and_the_conversation_goes_on_from_its_ledger(store):
    agent = desk(call("book", day="Monday"), "Booked.", "You are welcome.")
    ledger = await perform(agent, "Monday, please", store=store)
    assert (BOOKED, responses(ledger)) == (["Monday"], ["Booked."])
    again = await perform(agent, "Thanks", ledger=ledger, store=store)
    assert again is ledger
    assert responses(ledger) == ["Booked.", "You are welcome."]
    assert Conversations(store.database).ledger(run_id(ledger)) == ledger
    assert BOOKED == ["Monday"]


async def test_an_answer_to_a_pause_is_given_later_by_the_name_of_its_tool(store):
    agent = desk(call("approve", amount=900), "Paid.")
    ledger = await perform(agent, "Pay 900", store=store)
    assert responses(ledger) == []
    with pytest.raises(BadInput, match=r"waits for approve\(.*answers=\{'approve'"):
        await perform(agent, "What now?", conversation=run_id(ledger), store=store)
    both, vague = {"approve": True, "pay": True}, {"approve": "perhaps"}
    with pytest.raises(BadInput, match="does not wait for pay"):
        await perform(agent, answers=both, conversation=run_id(ledger), store=store)
    with pytest.raises(BadValue, match="'approve' does not fit"):
        await perform(agent, answers=vague, conversation=run_id(ledger), store=store)
    ledger = await perform(
        agent, answers={"approve": True}, conversation=run_id(ledger), store=store
    )
    assert responses(ledger) == ["Paid."]
    with pytest.raises(BadInput, match="does not wait for an answer"):
        await perform(agent, answers={"approve": True}, ledger=ledger, store=store)


async def test_a_loop_that_awaits_input_is_answered_by_messages_until_it_ends(store):
    @step
    def echo(input: str) -> str:
        return f"You said {input}"

    agent = loop(echo, awaits_input=True, until=lambda output: output.endswith("bye"))
    ledger = await perform(agent, "hi", store=store)
    ledger = await perform(agent, "bye", ledger=ledger, store=store)
    assert responses(ledger) == ["You said hi", "You said bye"]
    with pytest.raises(BadInput, match="has ended this conversation"):
        await perform(agent, "again", ledger=ledger, store=store)


async def test_state_of_user_and_app_outlives_a_conversation_and_temp_a_turn_not(store):
    @step
    def count(state) -> str:
        for scope in ("session", "user", "app", "temp"):
            held = state[scope]
            held["n"] = held.get("n", 0) + 1
        return "counted"

    first = await perform(count, "a", user="u7", app="desk", store=store)
    first = await perform(count, "b", ledger=first, store=store)
    assert {scope: held.get("n") for scope, held in state(first).items()}["user"] == 2
    second = await perform(count, "c", user="u7", app="desk", store=store)
    assert counts(second) == {"session": 1, "user": 3, "app": 3}
    stranger = await perform(count, "d", user="u8", app="desk", store=store)
    assert counts(stranger) == {"session": 1, "user": 1, "app": 4}
    # What others changed meanwhile is seen when the first conversation goes on.
    first = await perform(count, "e", ledger=first, store=store)
    assert counts(first) == {"session": 3, "user": 4, "app": 5}
    with pytest.raises(BadInput, match="belongs to user 'u7'"):
        await perform(count, "f", ledger=first, user="u8", store=store)


def counts(ledger: Ledger) -> dict[str, object]:
    return {s: held["n"] for s, held in state(ledger).items() if s != "temp" and "n" in held}


async def test_pieces_of_the_reply_come_as_they_are_made(store):
    class Streaming(Scripted):
        async def respond(self, request, on_delta=None):
            assert on_delta is not None
            for piece in ("Good ", "morning"):
                on_delta(piece)
                await asyncio.sleep(0)
            return await super().respond(request, None)

    performance = perform(Agent("a", model=Streaming("Good morning")), "Hi", store=store)
    assert [piece async for piece in performance.deltas()] == ["Good ", "morning"]
    assert responses(performance.ledger) == ["Good morning"]


async def test_a_turn_is_bounded_in_questions_and_in_seconds(store):
    circles = desk(*[call("book", day=str(n)) for n in range(9)])
    with pytest.raises(LoopLimit, match="max_model_calls"):
        await perform(circles, "Hi", max_model_calls=3, store=store)
    assert len(BOOKED) == 3

    @step
    async def slow() -> str:
        await asyncio.sleep(60)
        return ""

    with pytest.raises(TimeUp, match=r"within 0\.05 s"):
        await perform(slow, "Hi", seconds=0.05, store=store)
    with pytest.raises(BadInput, match="seconds is 0"):
        perform(slow, "Hi", seconds=0)
    with pytest.raises(BadInput, match="message is empty"):
        perform(slow, " ")


async def test_inside_a_rehearsal_it_is_refused_and_nothing_acts(store):
    agent = desk(call("book", day="Friday"), "ok")

    async def outer(message: str) -> str:
        await perform(agent, message, store=store)
        return "done"

    ledger = await simulate(Case("a", says="Hi"), outer)
    assert BOOKED == []
    assert "perform() was called inside case 'a'" in str(ledger.last)
    await perform(agent, "Hi", store=store)
    assert BOOKED == ["Friday"]


async def test_another_agent_an_older_ledger_and_an_unknown_id_are_refused(store):
    ledger = await perform(desk("one", "two"), "Hi", store=store)
    older = ledger.copy()
    with pytest.raises(BadLedger, match="agent has changed"):
        await perform(desk("other"), "Hi", ledger=ledger.copy(), store=store)
    ledger = await perform(desk("one", "two"), "Go on", ledger=ledger, store=store)
    with pytest.raises(BadLedger, match="was continued elsewhere"):
        await perform(desk("one", "two"), "Go on", ledger=older, store=store)
    with pytest.raises(NotFound, match="no conversation 'x'"):
        await perform(desk("one"), "Hi", conversation="x", store=store)


async def test_two_processes_do_not_go_on_with_one_conversation_at_once(store):
    agent = desk("one", "two")
    ledger = await perform(agent, "Hi", store=store)
    held = Conversations(store.database).open(ledger, {})
    try:
        with pytest.raises(StoreFailed, match="in use by another process"):
            await perform(agent, "Go on", ledger=ledger, store=store)
    finally:
        held.close()
    assert responses(await perform(agent, "Go on", ledger=ledger, store=store))[-1] == "two"


async def test_without_a_store_the_ledger_alone_goes_on():
    agent = desk("one", "two")
    ledger = await perform(agent, "Hi", store=False)
    ledger = await perform(agent, "Go on", ledger=Ledger.loads(ledger.dumps()), store=False)
    assert responses(ledger) == ["one", "two"]


async def test_a_path_is_no_attachment():
    with pytest.raises(BadInput, match=r"write attach\('cup.png'\)"):
        await perform(desk("Hi."), "See", attachments=["cup.png"], store=False)  # pyright: ignore[reportArgumentType]


async def test_a_turn_is_taken_once_however_it_is_followed(store):
    agent = desk(call("book", day="Monday"), "Booked.", "Again?")
    performance = perform(agent, "Monday", store=store)
    pieces = [piece async for piece in performance.deltas()]
    assert pieces == ["Booked."]
    assert responses(await performance) == responses(await performance) == ["Booked."]
    with pytest.raises(BadInput, match="not taken twice"):
        async for _ in performance.deltas():
            pass
    assert BOOKED == ["Monday"]


async def test_two_turns_of_one_ledger_do_not_go_on_at_once():
    class Slow:
        name = "slow"

        async def respond(self, request: ModelRequest, on_delta: object = None) -> ModelReply:
            await asyncio.sleep(0)
            return ModelReply(f"to {request.last}")

    agent = Agent("desk", model=Slow())
    ledger = await perform(agent, "Hi", store=False)
    taken = [perform(agent, said, ledger=ledger, store=False) for said in ("A", "B")]
    done, refused = await asyncio.gather(*taken, return_exceptions=True)
    assert done is ledger
    assert isinstance(refused, BadInput)
    ledger = await perform(agent, "B", ledger=ledger, store=False)
    assert responses(ledger) == ["to Hi", "to A", "to B"]


async def test_a_ledger_that_went_another_way_is_not_mixed_with_the_kept_one(store):
    agent = desk(*"abcdefgh")
    ledger = await perform(agent, "Hi", store=store)
    other = ledger.copy()
    await perform(agent, "this way", ledger=ledger, store=store)
    for said in ("that way", "and on"):
        await perform(agent, said, ledger=other, store=False)
    with pytest.raises(BadLedger, match="was continued elsewhere"):
        await perform(agent, "and home", ledger=other, store=store)
    [facts] = Conversations(store.database).list()
    assert Conversations(store.database).ledger(facts.id).dumps() == ledger.dumps()


async def test_who_goes_on_after_a_cut_tool_is_told_first_and_so_is_the_model(store):
    @tool
    async def pay() -> str:
        """Pay."""
        BOOKED.append("paid")
        return await asyncio.Event().wait()  # type: ignore[return-value]

    agent = desk(call("pay"), "What was that?", tools=(pay,))
    cut = perform(agent, "Pay, please", store=store, seconds=1)
    with pytest.raises(TimeUp):
        await cut
    with pytest.raises(InDoubt, match="continue the conversation with a message"):
        await perform(agent, "Well?", ledger=cut.ledger, store=store)

    seen: list[str] = []

    class Look:
        def before_model(self, request: ModelRequest) -> str:
            seen.extend(message.text for message in request.messages)
            return "I do not know."

    ledger = await perform(agent, "Well?", ledger=cut.ledger, store=store, middleware=[Look()])
    assert responses(ledger) == ["I do not know."]
    assert seen[0] == "Pay, please"
    assert "not known whether it acted" in seen[2]
    assert seen[-1] == "Well?"
    assert BOOKED == ["paid"]


async def test_a_turn_that_broke_is_remembered_with_what_its_tools_did(store):
    def unreachable(request: ModelRequest) -> str:
        raise RuntimeError("no network")

    seen: list[str] = []

    def look(request: ModelRequest) -> str:
        seen.extend(message.text for message in request.messages)
        return "It is booked."

    agent = desk(call("book", day="Monday"), unreachable, look)
    broken = perform(agent, "Book Monday", store=store)
    with pytest.raises(AgentFailed):
        await broken
    ledger = await perform(agent, "Did it work?", ledger=broken.ledger, store=store)
    assert responses(ledger) == ["It is booked."]
    assert seen == ["Book Monday", "", "booked Monday", "Did it work?"]


AGENT = """
import os, sys
from pathlib import Path
from greenroom import Agent, Scripted, call, tool

@tool
def book(day: str) -> str:
    "Book a day."
    with Path(sys.argv[1], "acted").open("a") as acted:
        acted.write(day + "\\n")
    return "booked"

desk = Agent("desk", model=Scripted(call("book", day="Monday"), "Booked.", call("book", day="Friday"), "Done."), tools=[book])
"""
TURN = """
import asyncio, os, sys
from greenroom import perform
from greenroom.ledger import responses
from live_agent import desk

folder, conversation, message, kill_at = sys.argv[1:5]
seen = 0

def on_event(event):
    global seen
    seen += 1
    if str(seen) == kill_at:
        os.kill(os.getpid(), 9)

async def turn():
    where = {"conversation": conversation} if conversation else {}
    said = message or None
    return await perform(desk, said, store=folder + "/kept", on_event=on_event, **where)

try:
    ledger = asyncio.run(turn())
except Exception as error:
    print(type(error).__name__)
else:
    print(ledger.first.run_id, *responses(ledger), sep="|")
"""


def turn(folder: Path, conversation: str = "", message: str = "", kill_at: int = 0) -> str:
    (folder / "live_agent.py").write_text(AGENT)
    (folder / "turn.py").write_text(TURN)
    found = warm_python.run(
        [sys.executable, "turn.py", str(folder), conversation, message, str(kill_at)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode in (0, -9), found.stderr
    return found.stdout.strip()


def test_two_turns_in_two_processes(tmp_path):
    conversation, said = turn(tmp_path, message="Monday").split("|")
    assert said == "Booked."
    assert turn(tmp_path, conversation, "Friday too").split("|")[1:] == ["Booked.", "Done."]
    assert (tmp_path / "acted").read_text() == "Monday\nFriday\n"


@pytest.mark.slow
def test_a_conversation_killed_at_any_event_goes_on_and_never_acts_twice(tmp_path):
    ends = set[str]()
    for kill_at in range(1, 30):
        folder = tmp_path / str(kill_at)
        folder.mkdir()
        if turn(folder, message="Monday", kill_at=kill_at):
            break  # the turn has fewer events than that
        [facts] = Conversations(Store(folder / "kept").database).list() or [None]
        if facts is None:
            continue  # it died before anything was said
        said = turn(folder, facts.id)
        acted = (folder / "acted").read_text() if (folder / "acted").exists() else ""
        assert acted.count("Monday") <= 1
        ledger = Conversations(Store(folder / "kept").database).ledger(facts.id)
        assert len(ledger.of(ToolCalled)) <= 1
        ends.add(said.partition("|")[2] or said)
    else:
        raise AssertionError("the turn never came to its end")
    assert "Booked." in ends
    assert ends <= {"Booked.", InDoubt.__name__, BadInput.__name__}
    assert InDoubt.__name__ in ends


def run_id(ledger: Ledger) -> str:
    first = started(ledger)
    assert first is not None
    return first.run_id
