"""A recorded trial continued with a change: another agent, another mock, another answer."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from msgspec import structs

from greenroom.backends.backend import Backend
from greenroom.cases.case import Case
from greenroom.cases.reader import case_from
from greenroom.errors import BadInput, BadLedger
from greenroom.ledger.events import (
    Answered,
    Event,
    Forked,
    InvocationEnded,
    InvocationStarted,
    ModelCalled,
    ModelReplied,
    NodeStarted,
    Remembered,
    RunStarted,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    UserSaid,
)
from greenroom.ledger.functions import Anything
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import ToolCall, Usage
from greenroom.ledger.plain import as_object
from greenroom.ledger.questions import started
from greenroom.simulation.conversation import simulate
from greenroom.simulation.trial_context import backend_of, preparing

if TYPE_CHECKING:
    from greenroom.world.middleware.stack import MiddlewareStack

_NOTHING: Any = object()
_AT_REST = (Remembered, InvocationStarted, InvocationEnded, UserSaid, Answered)
"""After these events an agent of another framework can continue: it holds no state that is not recorded."""


async def fork(
    ledger: Ledger,
    agent: Any,
    *,
    at: int,
    case: Case | None = None,
    mocks: Mapping[str, Anything] | None = None,
    answer: object = _NOTHING,
    n: int = 1,
    on_event: Callable[[Event], None] | None = None,
    allow_tools: Collection[object] = (),
    middleware: "Iterable[object] | MiddlewareStack" = (),
) -> list[Ledger]:
    """Continue a recorded trial before its event `at` with a change, `n` times; the ledgers of those trials.

    What came before stays as it was recorded. `agent` continues from there, `mocks` answer in place of
    those of the case, and `answer` replaces event `at`, if that is a reply of a model, the end of a call,
    or what the user said or answered. The case is read from the ledger unless it is given, as it must be
    if it contains code. Agents of other frameworks can continue at a pause and between turns; any other
    place is refused with the names of those that are possible.
    """
    first = _check(ledger, at, n)
    played = _with_mocks(case or case_of(ledger), mocks)
    with preparing(played):
        backend = backend_of(played, agent)
        check_place(ledger, at, backend)
        changed = [] if backend.digest == first.digest else ["agent"]
    changed += [f"mocks.{tool}" for tool in mocks or ()]
    given = list[Event]()
    if answer is not _NOTHING:
        given.append(_answered(ledger[at], answer))
        changed.append(f"answer of event {at} ({ledger[at].kind})")
    mark = Forked(from_run=first.run_id, from_seq=at, changed=tuple(changed), digest=backend.digest)
    found: list[Ledger] = []
    for _ in range(n):
        begun = Ledger(ledger[:at])
        for event in (mark, *given):
            begun.append(event, ledger[at - 1].at)
        # The mocks made with the agent were recorded before; the rest continues as after an interruption.
        begun.loaded_count = len(begun)
        found.append(
            await simulate(
                played,
                agent,
                ledger=begun,
                on_event=on_event,
                run_id=first.run_id,
                allow_tools=allow_tools,
                middleware=middleware,
            )
        )
    return found


def case_of(ledger: Ledger) -> Case:
    """The case of a trial as it was recorded; BadLedger if the ledger is not that of a case."""
    return case_from(as_object(_first(ledger).case))


def _first(ledger: Ledger) -> RunStarted:
    first = started(ledger)
    if first is None or not first.case:
        raise BadLedger("this ledger is not that of a case, so no trial can continue from it.")
    return first


def _check(ledger: Ledger, at: int, n: int) -> RunStarted:
    first = _first(ledger)
    if not 0 < at < len(ledger):
        raise BadInput(f"at={at} should be one of the events 1 to {len(ledger) - 1}.")
    if n < 1:
        raise BadInput(f"n={n} should be at least 1.")
    return first


def places(ledger: Ledger, backend: Backend) -> Sequence[int]:
    """The events before which this agent can continue."""
    if backend.resumes in ("exact", "by_replay"):
        return range(1, len(ledger))
    if backend.resumes == "no":
        raise BadInput(
            f"the {backend.name!r} backend cannot continue a trial, so it cannot be forked. Run the case "
            f"again with the change."
        )
    return [place for place in range(1, len(ledger)) if not _is_at_work(ledger, place)]


def check_place(ledger: Ledger, at: int, backend: Backend) -> None:
    """Refuse a place from which this agent cannot continue."""
    known = places(ledger, backend)
    if at not in known:
        near = ", ".join(map(str, sorted(known, key=lambda place: abs(place - at))[:4]))
        raise BadInput(
            f"at={at} is in the middle of a turn, where an agent of {backend.name} cannot continue: it "
            f"can at a pause and between turns. Fork at one of the events {near}."
        )


def _is_at_work(ledger: Ledger, at: int) -> bool:
    """Whether the agent was in the middle of a turn before this event."""
    for event in reversed(ledger[:at]):
        if event.voice == "agent":
            if isinstance(event, _AT_REST):
                return False
            if isinstance(event, ModelCalled | ToolCalled | NodeStarted):
                return True
    return False


def _with_mocks(case: Case, mocks: Mapping[str, Anything] | None) -> Case:
    return replace(case, mocks={**case.mocks, **mocks}) if mocks else case


def _answered(event: Event, answer: Any) -> Event:
    """The event with another answer, marked as given by the author."""
    event = structs.replace(event, seq=-1)
    match event:
        case ModelReplied():
            text, calls = (answer, ()) if isinstance(answer, str) else ("", _calls(answer, event))
            return structs.replace(
                event,
                text=text,
                calls=calls,
                usage=Usage(),
                cost=0.0,
                prices="",
                source="mock",
                attachments=(),
                partial=False,
            )
        case ToolReturned():
            return structs.replace(event, value=answer, source="mock")
        case ToolFailed():
            return ToolReturned(
                path=event.path,
                voice=event.voice,
                call_id=event.call_id,
                tool=event.tool,
                value=answer,
                source="mock",
            )
        case UserSaid() if isinstance(answer, str):
            return structs.replace(event, text=answer)
        case Answered(answers=(one,)):
            return structs.replace(event, answers=(structs.replace(one, value=answer),))
        case _:
            raise BadInput(
                f"event {event.kind} cannot have the answer {answer!r}. Fork at a model_replied, "
                f"tool_returned, tool_failed, user_said, or an answered with one answer."
            )


def _calls(answer: Any, event: ModelReplied) -> tuple[ToolCall, ...]:
    many = isinstance(answer, list | tuple)
    wanted = list(cast("Iterable[Any]", answer)) if many else [answer]
    if not wanted or not all(isinstance(one, ToolCall) for one in wanted):
        raise BadInput(f"a model answers with a string or with calls, not with {answer!r}.")
    return tuple(
        ToolCall(one.tool, one.args, one.id or f"fork-{event.path}-{event.n}-{position}")
        for position, one in enumerate(wanted)
    )
