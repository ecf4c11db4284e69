"""Conversations that were recorded elsewhere, as cases."""

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from greenroom.cases.case import Case
from greenroom.cases.files.additions import add_cases, evalset_at
from greenroom.cases.files.changes import changing
from greenroom.cases.from_runs import harvest, harvest_scenario
from greenroom.cases.names import free_id
from greenroom.traces.personal import StandIns
from greenroom.traces.records import Imported

_UNSAFE = re.compile(r"[^\w.-]+")


def case_of(
    found: Imported,
    taken: Collection[str],
    stand_ins: StandIns | None,
    *,
    kind: str = "regression",
    expect: bool = True,
) -> Case:
    """The case of a conversation, under an id that is not taken."""
    ledger = found.ledger if stand_ins is None else stand_ins.ledger(found.ledger)
    named = found.conversation if stand_ins is None else stand_ins.text(found.conversation)
    name = free_id(_UNSAFE.sub("-", named).strip("-.") or "conversation", taken)
    if kind == "scenario":
        return harvest_scenario(ledger, name)
    return harvest(ledger, name, expect=expect)


def add_failure(found: Imported, place: Path, names: Iterable[str]) -> str:
    """Add a failed conversation to an eval set, without expecting what went wrong; the case's id.

    The id is empty if the case is there already: a watch may have been killed after writing it. Each case
    has its own stand-ins for personal data, so the same conversation always becomes the same case.
    """
    with changing(place):
        evalset = evalset_at(place)
        case = case_of(found, evalset.ids, StandIns(names), expect=False)
        # Ids alone do not decide: two that are personal data may have the same stand-in.
        if _content(case) in map(_content, evalset):
            return ""
        add_cases(place, case)
    return case.id


def _content(case: Case) -> tuple[str, list[str]]:
    return str(case.metadata.get("harvested_from")), [turn.says for turn in case.script]
