"""`greenroom traces to-case`: conversations that were recorded elsewhere, as cases."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from greenroom.apps.cli.exits import BAD_INPUT, PASSED, Stopped, aside, telling
from greenroom.apps.cli.score import read_files
from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.cases.from_runs import harvest, harvest_scenario
from greenroom.errors import NotFound
from greenroom.ledger.text_files import text_of
from greenroom.results.text import number_of
from greenroom.traces.personal import StandIns
from greenroom.traces.readers import told
from greenroom.traces.records import Imported

_UNSAFE = re.compile(r"[^\w.-]+")


def write_cases(
    files: Sequence[str],
    into: str,
    chosen: Sequence[str],
    kind: str,
    no_expect: bool,
    names: str,
    keep_pii: bool,
    reader: str,
    verbose: bool,
) -> int:
    """Add a case for each conversation to an eval set."""
    with telling(verbose):
        found, flaws = read_files(files, reader)
        for name in chosen:
            if not any(one.conversation == name for one in found):
                known = ", ".join(one.conversation for one in found[:5])
                raise NotFound(f"there is no conversation {name!r} in the files; there is {known}.")
        wanted = [one for one in found if not chosen or one.conversation in chosen]
        if not wanted:
            raise Stopped(told(flaws), BAD_INPUT)
        stand_ins = None if keep_pii else StandIns(names_in(names))
        place = Path(into)
        evalset = EvalSet.load(place) if place.exists() else EvalSet(place.name.split(".")[0], [])
        for one in wanted:
            case = case_of(one, evalset.ids, stand_ins, kind=kind, expect=not no_expect)
            evalset = evalset.with_cases(case)
        evalset.save(place)
        aside(f"added {number_of(len(wanted), 'case')} to {place}")
        if stand_ins is not None:
            aside(f"replaced: {stand_ins}; names in free text only if --redact lists them")
        if flaws:
            raise Stopped(told(flaws), BAD_INPUT)
    return PASSED


def names_in(file: str) -> list[str]:
    """The names that a file lists, one on each line."""
    return text_of(Path(file)).splitlines() if file else []


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
    first = name = _UNSAFE.sub("-", named).strip("-.") or "conversation"
    count = 1
    while name in taken:
        count += 1
        name = f"{first}-{count}"
    if kind == "scenario":
        return harvest_scenario(ledger, name)
    return harvest(ledger, name, expect=expect)
