"""What a run that goes on finds in its store: trials that are done, and what was left of others."""

from collections.abc import Callable, Iterable, Mapping

from greenroom.errors import BadInput, BadLedger, NotFound
from greenroom.store.cut_trials import CutTrial
from greenroom.store.journal import Journal
from greenroom.store.runs import Key, Plan, Run
from greenroom.store.store import Store


def refuse_other_trials(run: Run, plan: Plan, done: Iterable[Key]) -> None:
    """Refuse to count trials that were played again because they fail among all others."""
    is_again = run.plan.confirm and any(key.trial > run.plan.trials for key in done)
    if is_again and run.plan.trials != plan.trials:
        raise BadInput(
            f"run {run.id!r} has played cases again after {run.plan.trials} trials of each, and cannot "
            f"go on with {plan.trials}. Resume it with as many, or start a new run."
        )


def refuse_changes(
    run: Run, plan: Plan, done: Mapping[Key, str], digests: Mapping[str, str]
) -> None:
    """Refuse to go on with what is another undertaking by now."""
    changes = run.plan.changes(plan)
    if done and digests.keys().isdisjoint(key.case_id for key in done):
        changes.append("none of its finished cases is among these")
    if changes:
        raise BadInput(
            f"run {run.id!r} cannot simply go on: {'; '.join(changes)} since it began. Its report "
            f"would mix the two. Start a new run, or accept the changes (accept_changes=True, "
            f"--accept-changes): what is finished stays as it is."
        )


def out_of_date(done: Mapping[Key, str], digests: Mapping[str, str]) -> list[str]:
    """Which finished cases are others by now, or are no more, in words."""
    known = {key.case_id: digest for key, digest in done.items()}
    return [
        f"case {case_id!r} has changed since the run began, and is played anew"
        if case_id in digests
        else f"case {case_id!r} is not among the cases any more, and its results are left out"
        for case_id, digest in known.items()
        if digests.get(case_id) != digest
    ]


def places_of(done: Mapping[Key, str], plan: Plan, digests: Mapping[str, str]) -> dict[Key, int]:
    """Where finished trials belong now, without those of cases that are no more, or are others."""
    first = {case_id: number * plan.trials for number, case_id in enumerate(digests)}
    behind, numbers = len(digests) * plan.trials, {c: n for n, c in enumerate(digests)}

    def place(key: Key) -> int:
        again = key.trial - plan.trials
        if again <= 0:
            return first[key.case_id] + key.trial - 1
        return behind + numbers[key.case_id] * plan.confirm + again - 1

    return {
        key: place(key)
        for key, digest in done.items()
        if digests.get(key.case_id) == digest and key.trial <= plan.trials + plan.confirm
    }


def names_of(done: Mapping[Key, str], left: Mapping[Key, CutTrial]) -> dict[str, str]:
    """Under which id the store has each case, by its digest."""
    found = {digest: key.case_id for key, digest in done.items()}
    return {one.digest: key.case_id for key, one in left.items()} | found


def under_way(
    journal: Journal, done: Mapping[Key, str], is_played_again: Callable[[CutTrial], bool]
) -> dict[Key, CutTrial]:
    """What was left of each trial; one that was being taken up again may lie there twice.

    A file also keeps a trial that was finished in it, if the process ended before it was emptied.
    """
    found: dict[Key, CutTrial] = {}
    for one in journal.left_over():
        if done.get(one.key) == one.digest and not is_played_again(one):
            one.discard()
            continue
        other = found.setdefault(one.key, one)
        if other is not one:
            # The other one would be taken for newer than what is played from here on.
            found[one.key], shorter = sorted((one, other), key=_length, reverse=True)
            shorter.discard()
    return found


def is_new(left: CutTrial, store: Store, run: Run) -> bool:
    """Whether this is another try at a trial than the one that is in the store."""
    now = left.ledger.first
    try:
        kept = store.ledger(run.id, left.key).first
    except (BadLedger, NotFound):
        kept = None
    return now is not None and (kept is None or kept.at != now.at)


def without_retries(done: Mapping[Key, str], left: Mapping[Key, CutTrial]) -> dict[Key, str]:
    """The finished trials without those that were being played again, and so are not finished."""
    return {
        key: digest for key, digest in done.items() if key not in left or left[key].digest != digest
    }


def _length(left: CutTrial) -> tuple[bool, int, int]:
    return bool(left.damage), len(left.ledger), len(left.judging)
