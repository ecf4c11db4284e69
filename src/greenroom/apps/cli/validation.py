"""`greenroom eval-set validate`: report everything that is wrong, and make safe repairs."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from greenroom.apps.cli.event_loop import loaded, to_the_end
from greenroom.apps.cli.exits import (
    BAD_INPUT,
    Stopped,
    put_out,
    put_out_data,
)
from greenroom.backends.registry import backend_for
from greenroom.cases import Problem, fix
from greenroom.cases.files.changes import changing
from greenroom.cases.files.documents import parsed
from greenroom.cases.files.save import json_or_yaml, save_text
from greenroom.ledger.plain import Json, is_object
from greenroom.suite.checks.validation import problems_in


def validate(files: Sequence[str], mend: bool, agent: str, as_json: bool) -> None:
    """Check files, fix them first if asked; exit code 3 while one of them has a problem."""
    found: dict[str, list[Problem]] = {}
    repairs: dict[str, list[Problem]] = {}
    backend = backend_for(to_the_end(lambda: loaded(agent))) if agent else None
    for file in files:
        repairs[file] = _mended(Path(file)) if mend else []
        found[file] = problems_in(file, agent=backend)
    if as_json:
        put_out_data([_data(file, found[file], repairs[file]) for file in files])
    else:
        for file in files:
            _show(file, found[file], repairs[file])
    bad = [file for file in files if not all(problem.hint for problem in found[file])]
    if bad:
        raise Stopped(f"{', '.join(bad)} {'is' if len(bad) == 1 else 'are'} not valid", BAD_INPUT)


def _mended(file: Path) -> list[Problem]:
    """Repair a file in place, and say what was done."""
    if not file.exists():
        return []  # which is said when its problems are looked for
    with changing(file):
        data = parsed(file).data
        if not is_object(data):
            return []
        mended, repairs = fix(data)
        if repairs:
            save_text(json_or_yaml(mended, file), file)
    return repairs


def _show(file: str, found: Sequence[Problem], repairs: Sequence[Problem]) -> None:
    lines = [f"{file}: fixed {repair}" for repair in repairs]
    lines += [f"{file}: {'hint: ' if problem.hint else ''}{problem}" for problem in found]
    if all(problem.hint for problem in found):
        lines.append(f"{file}: fine")
    put_out("\n".join(lines))


def _data(file: str, found: Sequence[Problem], repairs: Sequence[Problem]) -> dict[str, Json]:
    return {
        "file": file,
        "valid": all(problem.hint for problem in found),
        "problems": [asdict(problem) for problem in found],
        "repairs": [asdict(repair) for repair in repairs],
    }
