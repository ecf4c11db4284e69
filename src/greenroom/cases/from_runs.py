"""Makes cases from recorded sessions: what the user said, what tools answered, and the result."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from msgspec import Struct

from greenroom.cases.case import Case, Expect, Turn
from greenroom.cases.data import case_data
from greenroom.cases.literals import literal
from greenroom.cases.mocks import by_args, fault, in_turn
from greenroom.cases.reader import case_from
from greenroom.cases.users import Lines, SimulatedUser, UserAgents
from greenroom.errors import BadCase
from greenroom.ledger.attachments import Attachment, text_and_attachments
from greenroom.ledger.changes import WithStateChange, state_in
from greenroom.ledger.codec import event_data
from greenroom.ledger.events import (
    CUT_SHORT,
    AgentSaid,
    Answered,
    Event,
    ModelCalled,
    RunStarted,
    ToolFailed,
    ToolReturned,
    UserSaid,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import ToolCall, is_blank
from greenroom.ledger.plain import Json, as_object, is_array, plain, same
from greenroom.ledger.questions import ended, started, unseen
from greenroom.ledger.redaction import is_redacted


def harvest(
    ledger: Ledger,
    id: str,
    *,
    name: str = "",
    tags: Sequence[str] = ("harvested",),
    expect: bool = True,
) -> Case:
    """The case that runs a recorded session again.

    The user's messages become turns, the recorded answers of tools their mocks. Each turn expects
    the calls that were made in it, with the agent's last words as its reference; `expect=False`
    leaves that to you, and accepts broken sessions too. What no case can express is refused, and so is
    a record from which secrets were removed: the case would not be what happened.
    """
    _check(ledger, id, expect)
    first = started(ledger)
    recorded = Case(id)
    if first is not None and first.case:
        recorded = case_from(as_object(first.case), live=True)
    found = Case(
        id,
        turns=list(_turns(ledger, expect)),
        user=_user(ledger, id),
        mocks=recorded_mocks(ledger, id),
        state={} if first is None else state_in(first.state),
        stop=replace(
            recorded.stop, max_turns=max(recorded.stop.max_turns, len(ledger.index_of().rounds))
        ),
        name=name,
        tags=tuple(tags),
        metadata={
            "harvested_from": first.run_id if first is not None else "",
            "original_case_id": recorded.id if first is not None and first.case else "",
            "agent_digest": first.digest if first is not None else "",
        },
        now=recorded.now,
        target=recorded.target,
    )
    check_secrets(found)
    return found


def harvest_scenario(
    ledger: Ledger, id: str, *, tags: Sequence[str] = ("harvested", "needs_review")
) -> Case:
    """A case whose simulated user wants what the user of a recorded session wanted.

    The first message is said as it was; the others become the plan of a simulated person. Read it
    before you trust it: what a user wanted is more than what they said.
    """
    _check(ledger, id, expect=False)
    said = [text for _, messages in _spoken(ledger) for text, _ in messages if not is_blank(text)]
    if not said:
        raise BadCase(f"case {id!r} cannot be harvested: the user says nothing in {ledger!r}.")
    person = SimulatedUser(
        "A user of the real service.", goal=said[0], plan=said[1:] or "Say what you want once."
    )
    found = Case(
        id,
        says=said[0],
        user=person,
        mocks=recorded_mocks(ledger, id),
        tags=tuple(tags),
        stop=replace(Case(id).stop, max_turns=max(2 * len(said), 4)),
    )
    check_secrets(found)
    return found


def with_recorded_user(case: Case, ledger: Ledger) -> Case:
    """The case with what its user said in a trial as scripted turns, instead of a user."""
    said = list(_turns(ledger, expect=False))
    turns = [*case.script, *said[len(case.script) :]]
    user = _user(ledger, case.id)
    return replace(case, says="", attachments=(), expect=None, turns=turns, user=user)


def next_turn(
    ledger: Ledger, turn: int, id: str, expect: Expect | None, metrics: Sequence[object]
) -> Case:
    """A case that continues a recorded session after this many turns; see `Case.from_ledger`."""
    first, said = started(ledger), _spoken(ledger)
    if first is None:
        raise BadCase("this ledger has no beginning, so no case can continue it.")
    if type(turn) is not int or not 0 <= turn < len(said):
        raise BadCase(
            f"turn={turn!r} should be a number from 0 to {len(said) - 1}: the user speaks {len(said)} "
            f"times in this session, and the turn after that one is run again."
        )
    begin, texts = said[turn]
    end = said[turn + 1][0] if turn + 1 < len(said) else len(ledger)
    recorded = case_from(as_object(first.case), live=True) if first.case else Case(id or "session")
    earlier = [message for _, spoken in said[:turn] for message in spoken]
    before, [now, *more] = [_turn(*message) for message in earlier], texts
    wanted = _happened(ledger, begin, end) if expect is None else expect
    found = Case(
        id or f"{recorded.id}-turn-{turn + 1}",
        turns=[*before, _turn(*now, wanted), *(_turn(*message) for message in more)],
        user=_user(ledger, recorded.id),
        mocks=recorded_mocks(ledger, recorded.id),
        state=state_in(first.state),
        stop=recorded.stop,
        metrics=metrics,
        now=recorded.now,
        seed=recorded.seed,
        target=recorded.target,
        history=[event_data(event) for event in ledger[: begin or 1]],
    )
    check_secrets(replace(found, history=()), ledger[: begin or 1])
    return found


def check_secrets(made: Case, events: Sequence[Event] = ()) -> None:
    """Refuse a case that was made from a record, and continues or repeats its events, if these lack secrets."""
    data = {name: part for name, part in case_data(made).items() if name not in ("id", "metadata")}
    # How the agent was set up and what it asks models is given by the agent as it is now.
    acts = [event for event in events if not isinstance(event, RunStarted | ModelCalled)]
    if is_redacted((data, acts)):
        raise BadCase(
            f"case {made.id!r} cannot be made from this record: secrets were removed when it was saved, so the "
            f"case would not say, expect or answer what happened. Write the case yourself, or make it from a "
            f"ledger in memory: harvest(ledger, {made.id!r})."
        )


def _check(ledger: Ledger, id: str, expect: bool) -> None:
    end, index = ended(ledger), ledger.index_of()
    if not index.rounds and not index.invocations:
        raise BadCase(
            f"case {id!r} cannot be harvested: neither user nor agent says anything in {ledger!r}."
        )
    lost = [name for name in ("user", "args", "results") if name in unseen(ledger)]
    if lost:
        raise BadCase(
            f"case {id!r} cannot be harvested: the record does not hold {', '.join(lost)}, so the session "
            f"could not be run again. Record the content of messages and calls as well."
        )
    cut = end.reason in CUT_SHORT if end is not None else index.open_invocation is not None
    if expect and cut:
        why = end.reason if end is not None else "no end"
        raise BadCase(
            f"case {id!r} cannot be harvested from a session that did not end by itself ({why}), so its "
            f"result is not something to expect. expect=False or --no-expect takes the rest."
        )
    if end is not None and end.reason == "completed" and index.pending:
        raise BadCase(
            f"case {id!r} cannot be harvested: the user left while the agent waited for them, which "
            f"scripted turns cannot do. Write this user yourself, as code."
        )
    if any(event.changes for event in index.rounds):
        raise BadCase(
            f"case {id!r} cannot be harvested: the user's answers changed the agent's state, which "
            f"scripted turns cannot do. Write this user yourself, with with_state_change(...)."
        )

    for called in index.issued:
        is_open = index.end_of(called) is None and not index.is_waiting(called)
        if is_open and index.is_closed(called.path):
            raise BadCase(
                f"case {id!r} cannot be harvested: tool {called.tool!r} was called in a part that was "
                f"stopped before it answered, so its answer is not known. Mock it yourself."
            )


# What the user said


def _turns(ledger: Ledger, expect: bool) -> Iterator[Turn]:
    """A turn for each message of the user, and one for an agent that spoke before any of them."""
    said = _spoken(ledger)
    ends = [*(seq for seq, _ in said[1:]), len(ledger)]
    for (begin, messages), end in zip(said, ends, strict=True):
        for index, (text, attached) in enumerate(messages):
            # Of several messages given at once, only the first begins a turn.
            wanted = _happened(ledger, begin, end) if expect and not index else None
            yield Turn(text, wanted, attachments=attached)


Spoken = list[tuple[str, tuple[Attachment, ...]]]
"""Messages of the user, each with its attachments."""


def _turn(text: str, attached: tuple[Attachment, ...], wanted: Expect | None = None) -> Turn:
    return Turn(text, wanted, attachments=attached)


def _spoken(ledger: Ledger) -> list[tuple[int, Spoken]]:
    """What the user said and with which event; an empty message first, if the agent spoke first."""
    rounds = ledger.index_of().rounds
    said = [(event.seq, found) for event in rounds if (found := _messages(event))]
    begun = [event.seq for event in ledger.index_of().invocations.values()]
    if begun and (not said or begun[0] < said[0][0]):
        said.insert(0, (0, [("", ())]))
    return said


def _messages(event: UserSaid | Answered) -> Spoken:
    if isinstance(event, UserSaid):
        return [(event.text, event.attachments)]
    values = [answer.value for answer in event.answers if not answer.tool]
    return [
        text_and_attachments(value) if is_array(value) else (str(value), ()) for value in values
    ]


def _happened(ledger: Ledger, begin: int, end: int) -> Expect:
    """What the agent did between two messages, as an expectation."""
    index = ledger.index_of()
    calls = [call for call in index.issued if begin <= call.seq < end]
    # How far a stopped part got, such as one that lost a race, is an accident of timing.
    is_sure = not any(index.is_closed(call.path) for call in calls)
    words = [e.text for e in ledger.of(AgentSaid) if begin <= e.seq < end and not is_blank(e.text)]
    return Expect(
        tools=[ToolCall(call.tool, literal(call.args)) for call in calls] if is_sure else None,
        reference=words[-1] if words else None,
    )


def _user(ledger: Ledger, id: str) -> UserAgents | None:
    """The user who answers the tools that waited for one, or None."""
    answers: dict[str, list[Json]] = {}
    for event in ledger.of(Answered):
        for answer in event.answers:
            if answer.tool:
                answers.setdefault(answer.tool, []).append(plain(answer.value))
    if not answers:
        return None
    return UserAgents(tools={tool: _role(tool, given, id) for tool, given in answers.items()})


def _role(tool: str, given: list[Json], id: str) -> object:
    if all(value is None for value in given):
        return None
    if any(value is None for value in given):
        raise BadCase(
            f"case {id!r} cannot be harvested: the user answered tool {tool!r} with {given!r}, and "
            f"a line that is None says nothing. Write this user yourself, as code."
        )
    return Lines(*given)


# What the tools answered


class _Answer(Struct, frozen=True):
    """What a tool answered, to which arguments, and after how many calls with the same ones."""

    args: dict[str, Json]
    n: int
    end: ToolReturned | ToolFailed

    @property
    def fact(self) -> Json:
        """The key by which two answers are the same."""
        if isinstance(self.end, ToolFailed):
            return {"error": self.end.error}
        return {"value": self.end.value, "changes": plain(self.end.changes)}

    @property
    def mock(self) -> object:
        """The mock that gives this answer."""
        if isinstance(self.end, ToolFailed):
            return fault(self.end.error or "the tool failed")
        value = plain(self.end.value)
        return WithStateChange(value, self.end.changes) if self.end.changes else value


def recorded_mocks(ledger: Ledger, id: str) -> dict[str, Any]:
    """A mock for each tool that was called, which answers as the tool did."""
    index = ledger.index_of()
    by_tool: dict[str, list[_Answer]] = {}
    for call in index.issued:
        end = index.end_of(call)
        # Not mocked: what the user answered, and refused calls, which reached no tool.
        if end is not None and end.source not in ("user", "refused"):
            args = as_object(plain(call.args))
            before = index.calls_before(call.tool, call.path, call.seq)
            n = sum(same(as_object(plain(earlier.args)), args) for earlier in before)
            answer = _Answer(args, n, end)
            by_tool.setdefault(call.tool, []).append(answer)
    return {tool: _mock(tool, answers, id) for tool, answers in by_tool.items()}


def _mock(tool: str, answers: list[_Answer], id: str) -> object:
    """Answers chosen by arguments; several for the same arguments are given in turn."""
    groups: list[list[_Answer]] = []
    for answer in answers:
        group = next((g for g in groups if same(g[0].args, answer.args)), None)
        if group is None:
            groups.append([answer])
        else:
            group.append(answer)
    # Fewer arguments match more calls, so they come last.
    groups.sort(key=lambda group: -len(group[0].args))
    pairs = [(literal(group[0].args), _one_mock(tool, group, id)) for group in groups]
    return pairs[0][1] if len(pairs) == 1 and not pairs[0][0] else by_args(*pairs)


def _one_mock(tool: str, group: list[_Answer], id: str) -> object:
    first = group[0]
    if all(same(answer.fact, first.fact) for answer in group):
        return first.mock
    by_number: dict[int, _Answer] = {}
    for answer in group:
        held = by_number.setdefault(answer.n, answer)
        if not same(held.fact, answer.fact):
            raise BadCase(
                f"case {id!r} cannot be harvested: tool {tool!r} was called with "
                f"{dict(answer.args)!r} in two branches at once and answered differently. Mock it "
                f"yourself."
            )
    # A call that the user answered counts too; its place gets a filler that is never used.
    return in_turn(*(by_number.get(n, first).mock for n in range(max(by_number) + 1)))
