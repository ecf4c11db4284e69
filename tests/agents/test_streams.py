"""A step that asks for `chunks` hears the part before it while that is still speaking."""

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import (
    Agent,
    Case,
    Ledger,
    Scripted,
    Stop,
    UserAgents,
    call,
    evaluate,
    loop,
    perform,
    rehearse,
    route,
    simulate,
    step,
    tool,
)
from greenroom.agents import Flow, Graph, by, compile_flow, fallback, race, tap, timeout
from greenroom.agents.graph import recast
from greenroom.agents.mermaid import mermaid
from greenroom.errors import AgentFailed, BadAgent
from greenroom.ledger import (
    ModelReplied,
    NodeEnded,
    NodeFailed,
    NodeStarted,
    Noted,
    ToolBlocked,
    diff,
    state,
)
from greenroom.metrics import state_is
from greenroom.models import ModelReply, ModelRequest, OnDelta, send_piece
from greenroom.simulation import replay
from greenroom.world import Middleware
from rehearsals import end_of


class Speaking:
    """A model that says these pieces, each when the one before is taken."""

    name = "speaking"

    def __init__(self, *pieces: str, whole: str | None = None) -> None:
        self.pieces = pieces
        self.whole = "".join(pieces) if whole is None else whole
        self.sent: list[str] = []

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        for piece in self.pieces:
            self.sent.append(piece)
            await send_piece(on_delta, piece)
            await asyncio.sleep(0)
        return ModelReply(self.whole)


@step
async def listen(chunks: AsyncIterator[str], state: Any) -> str:
    """Keep what was heard, and how it was cut."""
    pieces = [piece async for piece in chunks]
    state.session["pieces"] = pieces
    return "".join(pieces)


@step
async def listen_to_all(chunks: AsyncIterator[tuple[str, str]], state: Any) -> Any:
    heard: dict[str, Any] = {}
    async for branch, text in chunks:
        heard[branch] = heard.get(branch, "") + text
    state.session["heard"] = heard
    return heard


@step
async def loud(chunks: AsyncIterator[str]) -> AsyncIterator[str]:
    async for piece in chunks:
        yield piece.upper()


@tool
def look(key: str) -> str:
    """Look something up."""
    raise AssertionError("a tool body ran in a rehearsal")


@tool(yields=True)
def ask(question: str) -> str:
    """Ask the user."""
    raise AssertionError("a yielding tool has no body to run")


def whole_input(input: Any) -> Any:
    return input


def writer(*answers: Any, **options: Any) -> Agent:
    return Agent("writer", model=Scripted(*answers), **options)


def speaking(*pieces: str, **options: Any) -> Agent:
    return Agent("writer", model=Speaking(*pieces, **options))


def played(
    flow: Flow, ledger: Ledger | None = None, trial: int = 1, stream: bool = False, **options: Any
) -> Ledger:
    case = Case("stream", "begin", stop=Stop(max_seconds=20), **options)
    return asyncio.run(simulate(case, flow, ledger=ledger, trial=trial, stream=stream))


def cuts_of(graph: Graph) -> Any:
    snapshot: Any = graph.snapshot
    return snapshot["cuts"]


def heard(ledger: Ledger) -> Any:
    assert end_of(ledger).reason == "completed", end_of(ledger)
    return state(ledger)["session"]["pieces"]


def cut_at(whole: Ledger, k: int) -> Ledger:
    return Ledger.loads("".join(whole.dumps().splitlines(keepends=True)[:k]))


def cut_everywhere(flow: Flow, whole: Ledger, **options: Any) -> None:
    """A run that is cut at any event comes to the same state and the same answers."""
    for k in range(1, len(whole)):
        again = played(flow, cut_at(whole, k), **options)
        assert state(again) == state(whole), k
        outputs = {e.path: e.output for e in again.of(NodeEnded)}
        assert outputs == {e.path: e.output for e in whole.of(NodeEnded)}, k


# When it begins


def test_the_first_piece_is_heard_before_the_model_has_ended() -> None:
    order: list[str] = []

    class Waiting(Speaking):
        async def respond(
            self, request: ModelRequest, on_delta: OnDelta | None = None
        ) -> ModelReply:
            await send_piece(on_delta, "Once. ")
            await asyncio.wait_for(was_heard.wait(), 5)
            await send_piece(on_delta, "More.")
            order.append("the model ends")
            return ModelReply("Once. More.")

    was_heard = asyncio.Event()

    @step
    async def speak(chunks: AsyncIterator[str]) -> str:
        async for text in chunks:
            order.append(text)
            was_heard.set()
        return "spoken"

    flow = Agent("writer", model=Waiting()) >> by(6) >> speak
    ledger = played(flow)
    assert order == ["Once. ", "the model ends", "More."]
    assert ledger.of(NodeEnded)[-1].output == "spoken"


def test_in_the_ledger_a_stream_is_the_sequence_that_it_stands_for() -> None:
    streamed = played(writer("One. Two.") >> by("sentence") >> listen)
    kinds = [(event.kind, event.path) for event in streamed]
    whole = played(writer("One. Two.") >> step(whole_input, name="listen"))
    assert kinds == [(event.kind, event.path) for event in whole]
    (begun,) = [e for e in streamed.of(NodeStarted) if e.path.endswith("listen")]
    assert begun.input == "One. Two."


def test_a_graph_without_streams_has_the_snapshot_it_always_had() -> None:
    plain = compile_flow(writer("Hi.") >> step(whole_input, name="same"))
    assert "cuts" not in str(plain.snapshot)
    marked = compile_flow(writer("Hi.") >> by("word", hold=2) >> listen)
    assert cuts_of(marked) == {"1": {"by": "word", "hold": 2}}
    assert {node.id for node in marked.nodes()} == {"seq", "seq.0/writer", "seq.1/listen"}
    assert repr(marked.root.flow).endswith(">> by('word', hold=2) >> listen")
    assert marked.digest != compile_flow(writer("Hi.") >> by("line") >> listen).digest


# What it hears

CUTS = st.lists(st.integers(0, 40), max_size=10).map(sorted)
STORY = "Once there was Dr. Who. He left! Why? Nobody\nknows."


@given(CUTS, st.sampled_from(["sentence", "word", "line", "paragraph", 5]))
def test_any_cut_of_the_same_text_gives_the_same_state(places: list[int], unit: str | int) -> None:
    came = [STORY[a:b] for a, b in itertools.pairwise([0, *places, len(STORY)])]
    flow = speaking(*came) >> by(unit) >> listen
    straight = played(speaking(STORY) >> by(unit) >> listen)
    assert state(played(flow)) == state(straight)
    assert "".join(heard(straight)) == STORY


def test_each_trial_cuts_what_comes_in_its_own_way_and_always_the_same() -> None:
    flow = writer(STORY) >> listen
    cuts = [heard(played(flow, trial=trial)) for trial in range(1, 9)]
    assert len({tuple(cut) for cut in cuts}) == 8
    assert {"".join(cut) for cut in cuts} == {STORY}
    assert cuts == [heard(played(flow, trial=trial)) for trial in range(1, 9)]
    others = Case("another", "begin")
    elsewhere = asyncio.run(simulate(others, flow))
    assert heard(elsewhere) != cuts[0]


@step
async def count_questions(chunks: AsyncIterator[str], state: Any) -> int:
    """Finds a mark only if no piece ends in the middle of it."""
    state.session["found"] = sum(["[end]" in piece async for piece in chunks])
    return state.session["found"]


def test_a_step_that_depends_on_the_borders_of_pieces_is_found() -> None:
    case = Case("borders", "begin", metrics=[state_is("session", "found", 1)])
    text = "Here it is. [end] There it was, and nothing more came of it."
    report = rehearse(writer(text) >> count_questions, case, trials=12, store=False)
    passed = [result.passed for result in report.results]
    assert True in passed
    assert False in passed
    by_line = rehearse(writer(text) >> by("line") >> count_questions, case, trials=4, store=False)
    assert all(result.passed for result in by_line.results)


def test_a_trial_goes_on_with_the_pieces_it_began_with() -> None:
    flow = writer(STORY) >> listen
    whole = played(flow, trial=7)
    cut_everywhere(flow, whole)


def test_what_gives_no_pieces_is_cut_when_it_is_whole() -> None:
    @step
    def plain() -> str:
        return "One. Two."

    assert heard(played(plain >> by("sentence") >> listen)) == ["One. ", "Two."]
    assert heard(played(by("word") >> listen)) == ["begin"]
    ended = loop(writer("One. Two.", "Three. Four."), max_rounds=2) >> by("sentence") >> listen
    assert heard(played(ended)) == ["Three. ", "Four."]
    chosen = route(lambda: "a", a=writer("One. Two.")) >> by("sentence") >> listen
    assert heard(played(chosen)) == ["One. ", "Two."]


def test_a_step_alone_hears_what_its_user_says() -> None:
    assert "".join(heard(played(listen))) == "begin"


def test_what_a_model_says_before_it_calls_a_tool_is_heard_but_does_not_count() -> None:
    calls: list[list[str]] = []

    @step
    async def speak(chunks: AsyncIterator[str], state: Any) -> str:
        mine: list[str] = []
        calls.append(mine)
        async for text in chunks:
            mine.append(text)
        state.session["pieces"] = mine
        return "spoken"

    said = ["One moment. I look.", call("look", key="a")]
    flow = writer(said, "It is red. Yes.", tools=[look]) >> by("sentence") >> speak
    ledger = played(flow, mocks={"look": "red"})
    assert calls == [["One moment. ", "I look."], ["It is red. ", "Yes."]]
    assert heard(ledger) == ["It is red. ", "Yes."]
    assert len([e for e in ledger.of(NodeStarted) if e.path.endswith("speak")]) == 1
    cut_everywhere(flow, ledger, mocks={"look": "red"})


def test_an_agent_that_waits_for_its_user_is_heard_to_the_end() -> None:
    said = ["A question.", call("ask", question="Which?")]
    flow = writer(said, "Red it is.", tools=[ask]) >> by("sentence") >> listen
    user = UserAgents(tools={"ask": "red"})
    ledger = played(flow, user=user)
    assert heard(ledger) == ["Red it is."]
    cut_everywhere(flow, ledger, user=user)


def test_pieces_of_an_attempt_that_failed_do_not_count() -> None:
    class Breaking(Speaking):
        async def respond(
            self, request: ModelRequest, on_delta: OnDelta | None = None
        ) -> ModelReply:
            await send_piece(on_delta, f"Try {request.n}. ")
            await asyncio.sleep(0.01)
            if not before:
                before.append(1)
                raise ConnectionError("the line is down")
            await send_piece(on_delta, "Done.")
            return ModelReply(f"Try {request.n}. Done.")

    before: list[int] = []
    again = Agent("writer", model=Breaking(), retries=1)
    assert heard(played(again >> by("sentence") >> listen)) == ["Try 1. ", "Done."]
    before.clear()
    instead = fallback(Agent("writer", model=Breaking()), writer("Instead. Yes."))
    assert heard(played(instead >> by("sentence") >> listen)) == ["Instead. ", "Yes."]


def test_a_model_whose_pieces_are_not_its_reply_is_heard_by_its_reply() -> None:
    assert "".join(heard(played(speaking("Half", whole="Half of it") >> listen))) == "Half of it"
    assert heard(played(speaking("Other", whole="This. That.") >> by("word") >> listen)) == [
        "This. ",
        "That.",
    ]


def test_a_model_that_waits_for_nobody_is_heard_too() -> None:
    class Hasty(Speaking):
        async def respond(
            self, request: ModelRequest, on_delta: OnDelta | None = None
        ) -> ModelReply:
            for piece in self.pieces:
                if on_delta is not None:
                    on_delta(piece)
            return ModelReply("".join(self.pieces))

    flow = Agent("writer", model=Hasty("One. ", "Two. ", "Three.")) >> by("word", hold=1) >> listen
    assert heard(played(flow)) == ["One. ", "Two. ", "Three."]


def test_an_answer_by_a_schema_comes_when_it_is_whole() -> None:
    flow = writer({"kind": "refund"}, output=dict[str, str]) >> by("line") >> listen
    assert heard(played(flow)) == ['{"kind": "refund"}']


# Several at once


def test_branches_are_heard_side_by_side_each_in_its_order() -> None:
    a = Agent("a", model=Speaking("a1 ", "a2 ", "a3"))
    b = Agent("b", model=Speaking("b1 ", "b2 ", "b3"))
    order: list[tuple[str, str]] = []

    @step
    async def mix(chunks: AsyncIterator[tuple[str, str]]) -> None:
        async for piece in chunks:
            order.append(piece)

    played((a | b) >> by("word") >> mix)
    assert [text for name, text in order if name == "a"] == ["a1 ", "a2 ", "a3"]
    assert [text for name, text in order if name == "b"] == ["b1 ", "b2 ", "b3"]
    assert order.index(("b", "b1 ")) < order.index(("a", "a3"))


def test_a_branch_that_speaks_anew_takes_nothing_from_the_others() -> None:
    first = ["Wait. ", call("look", key="a")]
    a = Agent("a", model=Scripted(first, "Red."), tools=[look])
    b = Agent("b", model=Speaking("One. ", "Two."))
    flow = (a | b | step(lambda: "Three.", name="c")) >> listen_to_all
    ledger = played(flow, mocks={"look": "red"})
    assert state(ledger)["session"]["heard"] == {"a": "Red.", "b": "One. Two.", "c": "Three."}
    cut_everywhere(flow, ledger, mocks={"look": "red"})


def test_of_a_race_only_the_winner_is_heard() -> None:
    slow = Agent("slow", model=Scripted("Never. Heard.", latency=5))
    flow = race(slow, writer("First. Here.")) >> by("sentence") >> listen
    assert heard(played(flow)) == ["First. ", "Here."]


def test_several_may_listen_and_one_that_needs_all_gets_all() -> None:
    @step
    async def words(chunks: AsyncIterator[str]) -> int:
        return len([piece async for piece in chunks])

    @step
    def length(input: str) -> int:
        return len(input)

    @step
    def tens(input: int) -> int:
        return input * 10

    counted = words >> tens
    flow = writer("One two three.") >> by("word") >> (counted | length | timeout(loud, 5))
    ledger = played(flow)
    assert ledger.of(NodeEnded)[-1].output == {
        "seq": 30,
        "length": 14,
        "within": "ONE TWO THREE.",
    }
    cut_everywhere(flow, ledger)


def test_a_step_that_yields_hands_its_pieces_on() -> None:
    flow = speaking("one. Tw", "o. Three.") >> by("sentence") >> loud >> by("word") >> listen
    ledger = played(flow)
    assert heard(ledger) == ["ONE. ", "TWO. ", "THREE."]
    assert [e.output for e in ledger.of(NodeEnded) if e.path.endswith("loud")] == [
        "ONE. TWO. THREE."
    ]
    cut_everywhere(flow, ledger)


def test_what_a_step_yields_must_be_texts() -> None:
    @step
    async def numbers() -> AsyncIterator[Any]:
        yield 1

    end = end_of(played(numbers))
    assert end.error
    assert "step 'numbers' yielded 1" in end.error


def test_a_tap_listens_and_changes_nothing() -> None:
    seen: list[str] = []

    async def look_on(chunks: AsyncIterator[str]) -> str:
        async for piece in chunks:
            seen.append(piece)
            if piece == "Two.":
                raise RuntimeError("cannot look any more")
        return "not this"

    ledger = played(writer("One. Two.") >> by("sentence") >> tap(look_on) >> listen)
    assert seen == ["One. ", "Two."]
    assert "".join(heard(ledger)) == "One. Two."
    assert [note.name for note in ledger.of(Noted)] == ["tap_failed"]


# How fast it hears


def test_a_slow_listener_holds_the_model_up() -> None:
    model = Speaking(*[f"{n} " for n in range(100)])
    seen: list[tuple[int, int]] = []

    @step
    async def slow(chunks: AsyncIterator[str]) -> int:
        count = 0
        async for _ in chunks:
            for _ in range(20):
                await asyncio.sleep(0)
            count += 1
            seen.append((len(model.sent), count))
        return count

    def furthest(flow: Flow) -> int:
        model.sent.clear()
        seen.clear()
        assert played(flow).of(NodeEnded)[-1].output == 100
        return max(sent - taken for sent, taken in seen)

    writing = Agent("writer", model=model)
    # Beside those that wait there is one on its way, and one word that may not be over yet.
    assert furthest(writing >> by("word", hold=4) >> slow) <= 4 + 2
    assert furthest(writing >> by("word") >> slow) > 50


def test_a_listener_that_has_heard_enough_does_not_stop_the_model() -> None:
    model = Speaking("One. ", "Two. ", "Three. ", "Four.")

    @step
    async def first(chunks: AsyncIterator[str]) -> str:
        async for piece in chunks:
            return piece
        return ""

    flow = Agent("writer", model=model) >> by("sentence", hold=1) >> first
    ledger = played(flow)
    assert ledger.of(NodeEnded)[-1].output == "One. "
    assert [reply.text for reply in ledger.of(ModelReplied)] == ["One. Two. Three. Four."]
    cut_everywhere(flow, ledger)


# When it fails


def test_a_listener_that_fails_is_called_again_with_the_recorded_words() -> None:
    times: list[int] = []

    @step(retries=1)
    async def shaky(chunks: AsyncIterator[str], state: Any) -> str:
        times.append(1)
        pieces = [piece async for piece in chunks]
        if len(times) == 1:
            raise RuntimeError("the line broke")
        state.session["pieces"] = pieces
        return "".join(pieces)

    model = Speaking("One. ", "Two.")
    ledger = played(Agent("writer", model=model) >> by("sentence") >> shaky)
    assert heard(ledger) == ["One. ", "Two."]
    assert model.sent == ["One. ", "Two."]
    (failed,) = ledger.of(NodeFailed)
    (ended,) = [e for e in ledger.of(NodeEnded) if e.path.endswith("writer")]
    assert failed.path.endswith("/shaky")
    assert ended.seq < failed.seq
    assert sum(times) == 2


def test_a_listener_that_always_fails_fails_the_run() -> None:
    @step
    async def broken(chunks: AsyncIterator[str]) -> str:
        async for _ in chunks:
            raise RuntimeError("no voice")
        return ""

    end = end_of(played(speaking("One. ", "Two.") >> broken))
    assert end.reason == "error"
    assert end.error
    assert "no voice" in end.error


def test_an_agent_that_fails_ends_who_listens() -> None:
    ended: list[str] = []

    @step
    async def waits(chunks: AsyncIterator[str]) -> None:
        try:
            async for _ in chunks:
                await asyncio.sleep(30)
        finally:
            ended.append("ended")

    class Broken(Speaking):
        async def respond(
            self, request: ModelRequest, on_delta: OnDelta | None = None
        ) -> ModelReply:
            await send_piece(on_delta, "One")
            await asyncio.sleep(0.01)
            raise ConnectionError("the line is down")

    assert end_of(played(Agent("writer", model=Broken()) >> waits)).reason == "error"
    assert ended == ["ended"]


# What it may do


def reach_out(port: int) -> Flow:
    @step
    async def speak(chunks: AsyncIterator[str]) -> str:
        async for _ in chunks:
            socket.create_connection(("127.0.0.1", port), timeout=2).close()
        return "reached"

    return speaking("One. ", "Two.") >> speak


def test_a_listener_cannot_reach_out_while_the_model_is_asked() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        flow = reach_out(listener.getsockname()[1])
        live = asyncio.run(_performed(flow))
        assert live.of(NodeEnded)[-1].output == "reached"
        end = end_of(played(flow))
    assert end.reason == "error"
    assert end.phase == "safety" or "reach" in (end.error or "") or "connect" in (end.error or "")


async def _performed(flow: Flow, **options: Any) -> Ledger:
    return await perform(flow, "begin", store=False, **options)


def test_a_listener_cannot_call_tools_past_the_gate() -> None:
    @step
    async def speak(chunks: AsyncIterator[str]) -> str:
        async for _ in chunks:
            look(key="a")
        return "called"

    ledger = played(speaking("One. ", "Two.") >> speak)
    assert end_of(ledger).reason == "error"
    assert ledger.of(ToolBlocked) or "look" in (end_of(ledger).error or "")


def test_a_listener_sees_the_state_as_it_was_when_the_first_word_was_asked_for() -> None:
    @step
    async def speak(chunks: AsyncIterator[str], state: Any) -> Any:
        pieces = [piece async for piece in chunks]
        for _ in range(20):
            await asyncio.sleep(0)
        state.session["seen"] = sorted(state.session)
        state.session["pieces"] = pieces
        return "spoken"

    def noted(key: str, ctx: Any) -> str:
        ctx.state.session["noted"] = key
        return "noted"

    wrote = writer(call("look", key="k"), "One. Two.", tools=[look], writes="session.draft")
    flow = wrote >> by("sentence") >> speak
    options: dict[str, Any] = {"mocks": {"look": noted}, "state": {"session": {"begun": True}}}
    ledger = played(flow, **options)
    session = state(ledger)["session"]
    assert session["seen"] == ["begun"]
    assert session["draft"] == "One. Two."
    assert session["noted"] == "k"
    cut_everywhere(flow, ledger, **options)


# Other doors


def test_a_live_conversation_is_heard_by_its_user_and_by_its_steps() -> None:
    flow = speaking("One. Tw", "o.") >> by("sentence") >> listen

    async def follow() -> tuple[list[str], Ledger]:
        performance = perform(flow, "begin", store=False)
        return [piece async for piece in performance.deltas()], performance.ledger

    pieces, ledger = asyncio.run(follow())
    assert pieces == ["One. Tw", "o."]
    assert state(ledger)["session"]["pieces"] == ["One. ", "Two."]
    raw = asyncio.run(_performed(speaking("One. Tw", "o.") >> listen))
    assert state(raw)["session"]["pieces"] == ["One. Tw", "o."]


@step
async def spoken(chunks: AsyncIterator[Any]) -> str:
    return f"spoken {len([piece async for piece in chunks])}"


@step
def exclaim(input: str) -> str:
    return f"{input}!"


FOR_THE_USER: dict[str, tuple[Flow, list[str]]] = {
    "the last of several": (writer("aside") >> speaking("One. ", "Two."), ["One. ", "Two."]),
    "one that is listened to": (speaking("One. ", "Two.") >> spoken, ["One. ", "Two."]),
    "what a step yields": (speaking("one. ", "two.") >> by("word") >> loud, ["ONE. ", "TWO."]),
    "what a listener heard": (
        speaking("one. ", "two.") >> by("word") >> loud >> spoken,
        ["ONE. ", "TWO."],
    ),
    "a round of a loop": (loop(speaking("One."), awaits_input=True), ["One."]),
    "the branch of a route": (
        writer("aside") >> route(lambda: "b", b=speaking("One.")),
        ["One."],
    ),
    "branches when they are whole": (
        Agent("a", model=Speaking("One. ", "Two.")) | Agent("b", model=Speaking("Three.")),
        ['{"a": "One. Two.", "b": "Three."}'],
    ),
    "a step's answer when it is there": (speaking("One. ", "Two.") >> exclaim, ["One. Two.!"]),
    "the winner of a race": (race(speaking("One. ", "Two.")), ["One. Two."]),
}


@pytest.mark.parametrize("flow, pieces", FOR_THE_USER.values(), ids=FOR_THE_USER)
def test_a_user_hears_what_a_flow_answers(flow: Flow, pieces: list[str]) -> None:
    async def follow() -> list[str]:
        return [piece async for piece in perform(flow, "begin", store=False).deltas(hold=1)]

    assert asyncio.run(follow()) == pieces


def test_a_live_conversation_that_goes_on_gets_the_recorded_words() -> None:
    flow = speaking("One. Tw", "o.") >> listen
    whole = asyncio.run(_performed(flow))
    (replied,) = [e.seq for e in whole.of(ModelReplied)]
    cut = cut_at(whole, replied + 1)

    async def go_on() -> Ledger:
        return await perform(flow, ledger=cut, store=False)

    assert state(asyncio.run(go_on()))["session"]["pieces"] == ["One. ", "Two."]


def test_who_reads_a_live_answer_slowly_holds_the_model_up() -> None:
    model = Speaking(*[f"{n} " for n in range(50)])
    agent = Agent("writer", model=model)

    async def furthest(hold: int | None) -> int:
        model.sent.clear()
        taken, far = 0, 0
        async for _ in perform(agent, "begin", store=False).deltas(hold=hold):
            taken += 1
            for _ in range(10):
                await asyncio.sleep(0)
            far = max(far, len(model.sent) - taken)
        return far

    assert asyncio.run(furthest(3)) <= 3
    assert asyncio.run(furthest(None)) > 20


def test_a_user_may_take_pieces_asynchronously() -> None:
    told: list[str] = []

    async def show(piece: str) -> None:
        await asyncio.sleep(0)
        told.append(piece)

    asyncio.run(_performed(speaking("One. ", "Two."), on_delta=show))
    assert told == ["One. ", "Two."]


def test_what_a_listener_raises_is_not_lost_on_a_hasty_model() -> None:
    class Hasty(Speaking):
        async def respond(
            self, request: ModelRequest, on_delta: OnDelta | None = None
        ) -> ModelReply:
            assert on_delta is not None
            on_delta("One.")
            await asyncio.sleep(0.01)
            on_delta("Two.")
            return ModelReply("One.Two.")

    async def deaf(_: str) -> None:
        raise ValueError("I am deaf")

    with pytest.raises(AgentFailed, match="I am deaf"):
        asyncio.run(_performed(Agent("writer", model=Hasty()), on_delta=deaf))


def test_many_trials_at_once_hear_their_own_words() -> None:
    def answer(request: ModelRequest) -> str:
        return f"{request.last}. And so on."

    flow = Agent("writer", model=Scripted(then=answer)) >> by("sentence", hold=1) >> listen
    cases = [
        Case(
            f"c{n}",
            f"story {n}",
            metrics=[state_is("session", "pieces", [f"story {n}. ", "And so on."])],
        )
        for n in range(16)
    ]
    report = asyncio.run(evaluate(flow, cases, concurrency=16, store=False))
    assert all(result.passed for result in report.results)


class Louder(Middleware):
    """Puts other words in the place of the model's."""

    async def after_model(self, request: ModelRequest, reply: ModelReply) -> str:
        return reply.text.upper()


class Held(Louder):
    holds_pieces = True


@pytest.mark.parametrize("middleware", [Louder(), Held()], ids=["behind", "before"])
def test_who_listens_gets_what_middleware_made_of_it(middleware: Middleware) -> None:
    flow = speaking("One. ", "two.") >> by("word") >> listen
    case = Case("stream", "begin")
    ledger = asyncio.run(simulate(case, flow, middleware=[middleware]))
    assert heard(ledger) == ["ONE. ", "TWO."]


def test_a_replay_hears_the_same_pieces() -> None:
    flow = writer(STORY) >> listen
    ledger = played(flow, trial=5)
    again = asyncio.run(replay(ledger, flow))
    assert heard(again) == heard(ledger)
    assert not diff(ledger, again)


def test_another_model_leaves_the_marks_where_they_are() -> None:
    flow = writer("One.") >> by("sentence", hold=3) >> listen
    other = compile_flow(recast(flow, Scripted("Two.")))
    assert cuts_of(other) == cuts_of(compile_flow(flow))
    assert heard(played(other.root.flow)) == ["Two."]
    assert '-->|"by sentence"|' in mermaid(other.snapshot)


# What is refused


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: writer("x") >> by("word"),
        lambda: writer("x") >> by("word") >> by("line") >> listen,
        lambda: by("word") | listen,
        lambda: race(by("word"), listen),
    ],
)
def test_a_mark_that_stands_nowhere_is_refused(wrong: Any) -> None:
    with pytest.raises(BadAgent, match="by\\('word'\\)"):
        compile_flow(wrong())


def test_a_step_asks_for_its_input_whole_or_in_pieces() -> None:
    async def both(chunks: Any, input: Any) -> None: ...

    with pytest.raises(BadAgent, match="ask for one of them"):
        step(both)


def test_pieces_are_taken_by_async_for() -> None:
    @step
    def impatient(chunks: Sequence[str]) -> str:
        return "".join(chunks)

    end = end_of(played(writer("One.") >> impatient))
    assert end.error
    assert "async for" in end.error
