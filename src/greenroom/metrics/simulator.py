"""Did the simulated user stay in character? If not, the trial says nothing about the agent."""

from collections.abc import Sequence
from typing import Unpack

from msgspec import Struct

from greenroom.cases.case import Case
from greenroom.cases.data import expect_data
from greenroom.cases.goals import read_reply
from greenroom.cases.scores import NotApplicable, Outcome, Unmeasured
from greenroom.cases.users import SimulatedUser, person_of
from greenroom.ledger.events import InvocationEnded, InvocationStarted
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.metrics.judges.bench import Hearing, Question
from greenroom.metrics.judges.forms import Labels, Verdict
from greenroom.metrics.judges.judged import Judged, common, concluded
from greenroom.metrics.judges.options import (
    Options,
    bench_from,
    takes_options,
)
from greenroom.metrics.judges.poll import Item, Poll, Votes, reaches, share
from greenroom.metrics.response import quoted

_ALL = 1.0
FAULTS = {
    "in_character": 1.0,
    "left_persona": 0.0,
    "left_plan": 0.0,
    "left_goal": 0.0,
    "leaked_answer": 0.0,
    "invented_fact": 0.0,
    "gave_up_early": 0.0,
    "spoke_as_assistant": 0.0,
}
_TASK = """\
You judge a simulated user in a conversation with an AI agent: not the agent, only the user's reply \
in the field `reply`, to what the field `before` holds. `heard` is what the agent said to the user, \
`said` what the user answered. Choose the label that fits:
- in_character: a reply this person could give
- left_persona: another person speaks than the one described
- left_plan: it goes against the plan
- left_goal: it no longer pursues what the person wants
- leaked_answer: it tells the agent what the agent should find out or do by itself
- invented_fact: it states a fact about the user that is neither given below nor said before
- gave_up_early: it ends the conversation while what is wanted is neither reached nor refused
- spoke_as_assistant: it answers, offers or acts as the agent should
A reply with {signal} ends the conversation. A part <done 1>…</done> is a note that the agent does not \
see. The field `expected`, if there is one, holds what the agent should come to by itself.

The person, as the author described them:
{person}"""


class UserTurn(Struct, frozen=True):
    """One reply of the simulated user, and what was heard and said before it."""

    number: int
    before: Sequence[dict[str, Json]]
    reply: str

    @property
    def heard(self) -> str:
        """The words it answers."""
        return str(self.before[-1].get("heard") or "") if self.before else ""


class SimulatorQuality(Judged, frozen=True, kw_only=True):
    """Asks about each reply that a model gave as the user."""

    async def hear(self, case: Case, ledger: Ledger, hearing: Hearing) -> Outcome:
        """The share of replies in character; a user who broke character leaves the trial unmeasured."""
        person = person_of(case.user)
        turns = user_turns(ledger)
        if person is None or not turns:
            return NotApplicable("no SimulatedUser improvised in this run")
        for turn in turns:
            if _echoes(turn, person):
                return _broke(turn, "spoke_as_assistant", "it repeats the agent's own words")
        votes = await self._poll(turns, person, case).held(hearing)
        return self._outcome(turns, votes, hearing)

    def _poll(self, turns: Sequence[UserTurn], person: SimulatedUser, case: Case) -> Poll:
        words = _TASK.format(signal=person.stop_signal, person=_described(person))
        # What the user might leak, if the case expects anything.
        expects: list[Json] = [
            expect_data(turn.expect) for turn in case.script if turn.expect is not None
        ]
        expected: dict[str, Json] = {"expected": expects} if expects else {}

        def single(item: Item, _: int) -> Question[Verdict]:
            return Question(words, item.evidence, Labels(FAULTS))

        return Poll(
            items=[
                Item(
                    f"turn_{turn.number}",
                    evidence={"before": list(turn.before), "reply": turn.reply, **expected},
                )
                for turn in turns
            ],
            question=single,
            decide=lambda values: reaches(share(values), self.threshold),
        )

    def _outcome(self, turns: Sequence[UserTurn], votes: Votes, hearing: Hearing) -> Outcome:
        values = votes.values()
        if not reaches(share(values), self.threshold):
            worst = min(turns, key=lambda turn: values[f"turn_{turn.number}"])
            verdicts = votes.by_item[f"turn_{worst.number}"]
            fault = min(verdicts, key=lambda verdict: verdict.value)
            return _broke(worst, str(fault.given), fault.reasoning)
        replies = "its one reply" if len(turns) == 1 else f"all {len(turns)} replies"
        labels: dict[str, Json] = {
            key: [{"label": v.given, "reasoning": v.reasoning} for v in verdicts]
            for key, verdicts in votes.by_item.items()
        }
        return concluded(
            self,
            votes,
            hearing,
            share(values),
            reason=f"the user stayed in character in {replies}",
            details={"turns": labels},
            measured=len(turns),
        )


@takes_options
def simulator_quality(
    *, threshold: float | None = None, name: str | None = None, **options: Unpack[Options]
) -> SimulatorQuality:
    """Did the simulated user stay in character in each of its replies? One that did not is an error.

    It measures the user, never the agent: a trial whose user broke character has an error of phase
    `user_agent`, whatever else was measured.
    """
    bench = bench_from(options, "simulator_quality(...)", adk="replies")
    return SimulatorQuality(**common("simulator_quality", name, bench, threshold, _ALL))


def user_turns(ledger: Ledger) -> list[UserTurn]:
    """The improvised replies in order; an answer that had to be given again counts once."""
    heard: dict[str, Json] = {}
    said: dict[str, Json] = {}
    for event in ledger:
        if event.voice != "user" or not isinstance(event, InvocationStarted | InvocationEnded):
            continue
        wait = event.path.split("~")[0]
        if isinstance(event, InvocationStarted):
            heard.setdefault(wait, event.input)
        elif event.outcome != "failed":
            said[wait] = event.output
    before: list[dict[str, Json]] = []
    found: list[UserTurn] = []
    for wait, reply in said.items():
        if wait.startswith("loop@"):
            now: dict[str, Json] = {"heard": heard.get(wait)}
            found.append(UserTurn(len(found) + 1, [*before, now], str(reply)))
        before.append({"heard": heard.get(wait), "said": reply})
    return found


def _echoes(turn: UserTurn, person: SimulatedUser) -> bool:
    said = " ".join(read_reply(turn.reply, person.stop_signal).message.split())
    return bool(said) and said == " ".join(turn.heard.split())


def _broke(turn: UserTurn, fault: str, why: str) -> Unmeasured:
    return Unmeasured(
        f"the simulated user broke character in its reply {turn.number} ({fault}): {why}. "
        f"It said {quoted(turn.reply)}",
        phase="user_agent",
    )


def _described(person: SimulatedUser) -> str:
    plan = person.plan if isinstance(person.plan, str) else "\n".join(person.plan)
    named = {"Persona": person.persona, "Goal": person.goal, "Plan": plan}
    named["Goals"] = "\n".join(person.goals)
    parts = [f"{name}: {text}" for name, text in named.items() if text.strip()]
    return "\n".join(parts) or "Nothing is said about them."
