"""What a resumed run finds in its store, and where an interrupted trial continues."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from greenroom.cases.case import Case
from greenroom.cases.mocks import Live
from greenroom.errors import BadInput, BadLedger, NotFound
from greenroom.ledger.events import InvocationStarted, ModelCalled, Noted, Remembered, ToolCalled
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Voice
from greenroom.ledger.plain import is_object
from greenroom.simulation.gate import CALLED_DIRECTLY
from greenroom.store.runs import Key, Plan, Run

if TYPE_CHECKING:
    from greenroom.store.cut_trials import CutTrial
    from greenroom.store.entry import RunJournal
    from greenroom.store.store import Store

_ABSENT = object()

# The run


def check_plan(
    run: Run,
    plan: Plan,
    done: Mapping[Key, str],
    digests: Mapping[str, str],
    *,
    accept_changes: bool,
) -> None:
    """Refuse to resume a run as something else than it began as."""
    has_confirmed = run.plan.confirm and any(key.trial > run.plan.trials for key in done)
    if has_confirmed and run.plan.trials != plan.trials:
        raise BadInput(
            f"run {run.id!r} has run cases again after {run.plan.trials} trials of each, and cannot "
            f"be resumed with {plan.trials}. Resume it with as many, or start a new run."
        )
    if accept_changes:
        return
    changes = run.plan.changes(plan)
    if done and digests.keys().isdisjoint(key.case_id for key in done):
        changes.append("none of its finished cases is among these")
    if changes:
        raise BadInput(
            f"run {run.id!r} cannot simply be resumed: {'; '.join(changes)} since it began. Its report "
            f"would mix the two. Start a new run, or accept the changes (accept_changes=True, "
            f"--accept-changes): what is finished stays as it is."
        )


def changed_cases(done: Iterable[tuple[Key, str]], digests: Mapping[str, str]) -> list[str]:
    """A note for each finished case that has changed, or is gone."""
    known = {key.case_id: digest for key, digest in done}
    return [
        f"case {case_id!r} has changed since the run began, and is run again"
        if case_id in digests
        else f"case {case_id!r} is no longer among the cases, and its results are left out"
        for case_id, digest in known.items()
        if digests.get(case_id) != digest
    ]


def positions(done: Mapping[Key, str], plan: Plan, digests: Mapping[str, str]) -> dict[Key, int]:
    """The current positions of finished trials, without those of cases that are gone or have changed."""
    numbers = {case_id: number for number, case_id in enumerate(digests)}

    def position(key: Key) -> int:
        number, again = numbers[key.case_id], key.trial - plan.trials
        if again <= 0:
            return number * plan.trials + key.trial - 1
        return len(digests) * plan.trials + number * plan.confirm + again - 1

    return {
        key: position(key)
        for key, digest in done.items()
        if digests.get(key.case_id) == digest and key.trial <= plan.trials + plan.confirm
    }


def cut_trials(
    journal: "RunJournal[Any]", done: Mapping[Key, str], runs_again: Callable[["CutTrial"], bool]
) -> dict[Key, "CutTrial"]:
    """The journal's part for each interrupted trial; one that was being resumed may be there twice.

    A file also keeps a trial that was finished in it, if the process ended before it was emptied.
    """
    found: dict[Key, CutTrial] = {}
    for cut in journal.left_over():
        if done.get(cut.key) == cut.digest and not runs_again(cut):
            cut.discard()
            continue
        other = found.setdefault(cut.key, cut)
        if other is not cut:
            # The shorter one would later be mistaken for newer than what runs from here on.
            found[cut.key], shorter = sorted(
                (cut, other),
                key=lambda one: (bool(one.damage), len(one.ledger), len(one.judging)),
                reverse=True,
            )
            shorter.discard()
    return found


def is_retry(cut: "CutTrial", store: "Store", run: Run) -> bool:
    """Whether this is another attempt at a trial than the one that is in the store, or measures it again."""
    now = cut.ledger.first
    try:
        kept = store.ledger(run.id, cut.key).first
        asked = len(store.ledger(run.id, cut.key, "judging"))
    except (BadLedger, NotFound):
        kept, asked = None, 0
    return now is not None and (kept is None or kept.at != now.at or len(cut.judging) > asked)


# One trial


def before_calls(ledger: Ledger, calls: Collection[str]) -> Ledger:
    """The ledger up to the first of these calls."""
    first = min((event.seq for event in _open_calls(ledger, calls)), default=None)
    return ledger if first is None else Ledger(ledger.events[:first])


def up_to_last_pause(ledger: Ledger) -> Ledger:
    """The ledger up to where the agent last paused: in the middle of its work its state is not recorded."""
    resting = 0
    is_at_work = False
    for event in ledger:
        if event.voice != "agent":
            continue
        if isinstance(event, ModelCalled | ToolCalled) and not is_at_work:
            is_at_work, resting = True, event.seq
        elif isinstance(event, InvocationStarted | Remembered):
            is_at_work = False
    return Ledger(ledger.events[:resting]) if is_at_work else ledger


def reason_for_doubt(case: Case, ledger: Ledger, kept: int, not_begun: Collection[str] = ()) -> str:
    """Which real tool acted, or may have, in the events after the first `kept`, which would run again."""
    for note in ledger.of(Noted, voice=None):
        if note.name == CALLED_DIRECTLY and is_object(note.data):
            return (
                f"code of the case called the tool {note.data.get('tool')!r} itself before the interruption, "
                f"bypassing the gate, so it is unknown whether it would do so again. Look at the real "
                f"system, then start a new run."
            )
    harmless = {event.seq for event in _open_calls(ledger, not_begun)}
    for index, event in _calls(ledger):
        # The tools of user agents belong to the simulation: they may run again.
        if event.seq < kept or event.seq in harmless or event.voice == "user":
            continue
        end = index.end_of(event)
        if end.is_live if end is not None else not _is_mocked(case, event.tool):
            return (
                f"tool {event.tool!r} was called for real before the interruption with {event.args!r}, in a "
                f"part of the trial that would have to run again, so it would act twice. Look "
                f"at the real system, then start a new run."
            )
    return ""


def may_act(case: Case, allowed: Collection[object]) -> bool:
    """Whether any tool of the agent may run for real."""
    is_mocked = all(_is_mocked(case, tool) for tool in case.mocks)
    return bool(allowed or case.allow_tools) or not is_mocked


def _is_mocked(case: Case, tool: str) -> bool:
    """Whether something other than the tool itself answers."""
    mock = case.mocks.get(tool, _ABSENT)
    named = getattr(mock, "fn", mock)
    is_itself = callable(named) and getattr(named, "__name__", "") == tool
    return mock is not _ABSENT and not isinstance(mock, Live) and not is_itself


def _open_calls(ledger: Ledger, ids: Collection[str]) -> list[ToolCalled]:
    """The calls with these ids that have not ended, where an id belongs to one call only."""
    found = [e for index, e in _calls(ledger) if e.call_id in ids and index.end_of(e) is None]
    counts = Counter(event.call_id for event in found)
    return [event for event in found if counts[event.call_id] == 1]


def _calls(ledger: Ledger) -> list[tuple[VoiceIndex, ToolCalled]]:
    """Every call of either side."""
    voices: tuple[Voice, ...] = ("agent", "user")
    return [(index, event) for index in map(ledger.index_of, voices) for event in index.issued]
