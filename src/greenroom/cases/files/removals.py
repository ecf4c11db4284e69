"""Removes cases from a file, and leaves everything else in it unchanged, comments too."""

from pathlib import Path

from greenroom.cases.evalset import EvalSet
from greenroom.cases.files.additions import is_read_as, set_in
from greenroom.cases.files.changes import changing
from greenroom.cases.files.load import lines_of_cases
from greenroom.cases.files.save import save_text, write_evalset
from greenroom.cases.files.yaml_text import has_comments, lines_of_blocks
from greenroom.cases.suffixes import YAML
from greenroom.errors import BadFile
from greenroom.ledger.text_files import text_of


def remove_cases(source: Path, *ids: str) -> EvalSet:
    """Remove cases from an eval-set file, and return what is left; an unknown id is an error.

    In a YAML file with comments their lines are cut out. Any other file is rewritten.
    """
    with changing(source):
        text = text_of(source)
        before = set_in(source, text)
        wanted = before.without(*ids)
        if source.suffix not in YAML or not has_comments(text):
            write_evalset(wanted, source, shape=wanted.shape or None)
            return wanted
        if not wanted.ids:
            raise BadFile(
                f"{source} would have no case if {', '.join(map(repr, ids))} were removed. "
                f"Leave one, or delete the file."
            )
        places = [before.ids.index(case_id) for case_id in ids]
        shorter = _cut(text, lines_of_cases(source, len(before)), places)
        if not is_read_as(shorter, source, wanted):
            raise BadFile(
                f"{source} has comments that would be lost if {', '.join(map(repr, ids))} were removed here. "
                f"Remove the cases yourself."
            )
        save_text(shorter, source)
        return wanted


def _cut(text: str, begins: list[int], places: list[int]) -> str:
    """The text without the lines of these cases; comments and blank lines around them stay."""
    lines = text.splitlines(keepends=True)
    inside = lines_of_blocks(text)
    gone: set[int] = set()
    for place in places:
        first = begins[place] - 1
        margin = _indent(lines[first])
        end = first + 1
        for number in range(first + 1, len(lines)):
            line = lines[number]
            if not line.strip():
                continue
            if number in inside:
                end = number + 1
            elif not line.lstrip().startswith("#"):
                if _indent(line) <= margin:
                    break
                end = number + 1
        gone |= set(range(first, end))
    return "".join(line for number, line in enumerate(lines) if number not in gone)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
