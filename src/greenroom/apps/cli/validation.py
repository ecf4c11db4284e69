"""`greenroom eval-set validate`: report everything that is wrong, and make safe repairs."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from greenroom.apps.cli.event_loop import loaded, to_the_end
from greenroom.apps.cli.exits import BAD_INPUT, Stopped, put_out, put_out_data
from greenroom.backends.registry import backend_for
from greenroom.cases import Problem, fix
from greenroom.cases.files.changes import changing
from greenroom.cases.files.documents import parsed
from greenroom.cases.files.save import json_or_yaml, save_text
from greenroom.ledger.plain import Json, is_object
from greenroom.suite.checks.validation import problems_in


def validate(files: Sequence[str], mend: bool, agent: str, as_json: bool) -> None:
    """Check files, fix them first if asked; exit code 3 while one of them has a problem."""
    backend = backend_for(to_the_end(lambda: loaded(agent))) if agent else None
    lines, rows, bad = list[str](), list[Json](), list[str]()
    for file in files:
        repairs = _mended(Path(file)) if mend else []
        found = problems_in(file, agent=backend)
        is_valid = all(problem.hint for problem in found)
        lines += [f"{file}: fixed {repair}" for repair in repairs]
        lines += [f"{file}: {'hint: ' if problem.hint else ''}{problem}" for problem in found]
        lines += [f"{file}: fine"] if is_valid else []
        bad += [] if is_valid else [file]
        rows.append(
            {
                "file": file,
                "valid": is_valid,
                "problems": [asdict(problem) for problem in found],
                "repairs": [asdict(repair) for repair in repairs],
            }
        )
    put_out_data(rows) if as_json else put_out("\n".join(lines))
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
