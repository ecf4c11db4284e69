"""A race whose branches are of other speeds after every cut: one winner, and never a mix."""

import asyncio
import random
from typing import Any

from greenroom import Agent, Case, Ledger, Scripted, Stop, UserAgents, call, simulate, step, tool
from greenroom.agents import Flow, map_over, race, tap, timeout
from greenroom.ledger import Answered, Decided, InvocationEnded, ended, messages, state

BRANCHES, PARTS = 3, 3


@tool
def mark(key: str) -> str:
    """Mark something."""
    raise AssertionError("a tool body ran in a rehearsal")


def contested(chance: random.Random) -> Flow:
    """Branches of steps and agents that write keys of their own, after delays drawn again."""
    flows: list[Flow] = []
    for branch in range(BRANCHES):
        parts = [slow_step(f"s{branch}_{part}", chance) for part in range(PARTS)]
        line = (call("mark", key=f"k{branch}"), f"from {branch}")
        agent = Agent(f"a{branch}", model=Scripted(*line), tools=[mark])
        flows.append(parts[0] >> agent >> parts[1] >> parts[2])
    return slow_step("before", chance) >> race(*flows) >> slow_step("after", chance)


def slow_step(name: str, chance: random.Random) -> Flow:
    async def work(input: Any, state: Any) -> Any:
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        state.session[name] = True
        return f"{input} {name}"

    return step(work, name=name)


def played(chance: random.Random, ledger: Ledger | None = None) -> Ledger:
    async def marked(key: str, ctx: Any) -> str:
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        ctx.state.session[key] = True
        return key

    case = Case("contested", "go", mocks={"mark": marked}, stop=Stop(max_seconds=30))
    return asyncio.run(simulate(case, contested(chance), ledger=ledger))


def winner(ledger: Ledger) -> str:
    """The one winner, to which all that came of the run belongs."""
    (decided,) = ledger.of(Decided)
    key = decided.choice
    parts = {f"s{key}_{part}" for part in range(PARTS)}
    assert set(state(ledger)["session"]) == {"before", "after", f"k{key}", *parts}
    assert ledger.of(InvocationEnded)[-1].output == f"from {key} s{key}_1 s{key}_2 after"
    end = ended(ledger)
    assert end is not None
    assert end.reason == "completed"
    return key


def test_a_contested_race_has_one_winner_wherever_it_is_cut_and_never_a_mix() -> None:
    chance = random.Random(4)
    others = behind = 0
    for _ in range(6):
        whole = played(chance)
        won, decided = winner(whole), whole.of(Decided)[0].seq
        for k in range(1, len(whole)):
            again = played(chance, Ledger.loads(Ledger(whole[:k]).dumps()))
            if k > decided:
                behind += 1
                assert winner(again) == won  # what was decided is decided
            else:
                others += winner(again) != won
    # It was contested, and it was cut behind the decision too.
    assert others > 20
    assert behind > 20


def test_a_race_cut_again_and_again_has_one_winner() -> None:
    chance = random.Random(9)
    for _ in range(15):
        ledger = played(chance)
        for _ in range(5):
            ledger = played(
                chance, Ledger.loads(Ledger(ledger[: chance.randrange(1, len(ledger))]).dumps())
            )
        winner(ledger)


@tool(yields=True)
def ask(question: str) -> str:
    """Ask the user."""
    raise AssertionError("a yielding tool has no body to run")


def voice() -> Flow:
    """A user who falls back on a race against the clock, over a list."""

    @step
    def broken() -> None:
        raise OSError("no voice")

    @step
    def words(input: Any) -> list[str]:
        return [str(input), "again"]

    @step
    def joined(input: Any) -> str:
        return " and ".join(input)

    speaker = Agent("speaker", model=Scripted(then=lambda request: f"{request.n} {request.last}"))
    listed = words >> map_over(speaker) >> joined
    return broken // timeout(race(broken, listed), 30) >> tap(lambda: None, name="heard")


def test_a_user_whose_voice_is_a_flow_is_cut_and_resumed_like_the_agent() -> None:
    def again(ledger: Ledger | None = None) -> Ledger:
        asked = [call("ask", question=f"q{number}") for number in range(2)]
        agent = Agent("agent", model=Scripted(*asked, "Thanks."), tools=[ask])
        case = Case("voice", "go", user=UserAgents(tools={"ask": voice()}))
        return asyncio.run(simulate(case, agent, ledger=ledger))

    whole = again()
    decided = [e.choice for e in whole.of(Decided, voice="user")]
    assert decided == ["next", "1"] * 2
    answers = [answer.value for event in whole.of(Answered) for answer in event.answers]
    assert len(answers) == 2
    for k in range(1, len(whole)):
        cut = again(Ledger.loads(Ledger(whole[:k]).dumps()))
        assert [a.value for e in cut.of(Answered) for a in e.answers] == answers, k
        assert messages(cut) == messages(whole), k
        assert [e.choice for e in cut.of(Decided, voice="user")] == decided, k
