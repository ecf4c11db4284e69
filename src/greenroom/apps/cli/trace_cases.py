"""`greenroom traces to-case`: conversations that were recorded elsewhere, as cases."""

from collections.abc import Sequence
from pathlib import Path

from greenroom.apps.cli.exits import BAD_INPUT, PASSED, Stopped, aside, telling
from greenroom.apps.cli.score import read_files
from greenroom.cases.case import Case
from greenroom.cases.files.added import add_cases
from greenroom.errors import NotFound
from greenroom.ledger.text_files import text_of
from greenroom.results.text import number_of
from greenroom.suite.trace_cases import case_of, evalset_at
from greenroom.traces.personal import StandIns
from greenroom.traces.readers import describe_flaws


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
            raise Stopped(describe_flaws(flaws), BAD_INPUT)
        stand_ins = None if keep_pii else StandIns(names_in(names))
        place = Path(into)
        taken, made = list(evalset_at(place).ids), list[Case]()
        for one in wanted:
            made.append(case_of(one, taken, stand_ins, kind=kind, expect=not no_expect))
            taken.append(made[-1].id)
        add_cases(place, *made)
        aside(f"added {number_of(len(wanted), 'case')} to {place}")
        if stand_ins is not None:
            aside(f"replaced: {stand_ins}; names in free text only if --redact lists them")
        if flaws:
            raise Stopped(describe_flaws(flaws), BAD_INPUT)
    return PASSED


def names_in(file: str) -> list[str]:
    """The names that a file lists, one on each line."""
    return text_of(Path(file)).splitlines() if file else []
