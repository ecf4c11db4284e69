"""Adds cases to a file, and leaves everything else in it unchanged, comments too."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from greenroom.cases.case import Case
from greenroom.cases.data import written_data
from greenroom.cases.evalset import EvalSet
from greenroom.cases.files.changes import changing
from greenroom.cases.files.documents import parsed_text
from greenroom.cases.files.load import chosen_shape, judged_as, read_as, read_evalset
from greenroom.cases.files.save import evalset_text, save_text, write_evalset
from greenroom.cases.files.shapes import OWN
from greenroom.cases.files.yaml_text import has_comments, yaml_text
from greenroom.cases.suffixes import YAML
from greenroom.errors import BadFile
from greenroom.ledger.blobs import keep_beside
from greenroom.ledger.text_files import text_of


def evalset_at(source: Path) -> EvalSet:
    """The eval set in a file; an empty one if there is none yet."""
    return read_evalset(source) if source.exists() else EvalSet(source.name.partition(".")[0])


def add_cases(source: Path, *cases: Case) -> None:
    """Add cases at the end of an eval-set file, in the file's shape, or to a new file.

    In a YAML file of our own shape they are appended. Any other file is rewritten,
    unless it has comments: those would be lost.
    """
    with changing(source):
        if not source.exists():
            write_evalset(evalset_at(source).with_cases(*cases), source)
            return
        text = _with_cases(source, text_of(source), cases)
        keep_beside(source, text)
        save_text(text, source)


def _with_cases(source: Path, text: str, cases: Sequence[Case]) -> str:
    before = set_in(source, text)
    wanted = before.with_cases(*cases)
    is_own_yaml = source.suffix in YAML and before.shape == OWN
    entries = yaml_text([written_data(case) for case in cases])
    if is_own_yaml:
        longer = _appended(text, entries)
        if is_read_as(longer, source, wanted):
            return longer
    if source.suffix in YAML and has_comments(text):
        by_hand = f"Put this at the end of its cases:\n{entries}"
        raise BadFile(
            f"{source} has comments that would be lost if cases were added here. "
            f"{by_hand if is_own_yaml else 'Add the cases yourself.'}"
        )
    return evalset_text(wanted, source, shape=before.shape)


def set_in(source: Path, text: str) -> EvalSet:
    """The eval set that a file with this text would hold."""
    document = parsed_text(source, text)
    shape, _ = chosen_shape(document)
    found = read_as(document, shape)
    if isinstance(found, EvalSet):
        return replace(judged_as(found, shape), shape=shape.name)
    raise BadFile(f"{source} has a problem, so it is left as it is: {found[0]}", found)


def _appended(text: str, more: str) -> str:
    """The new entries, indented like the other entries of the list that ends the text."""
    entries = [line for line in text.splitlines() if line.lstrip().startswith("- ")]
    indents = [len(line) - len(line.lstrip()) for line in entries]
    margin = " " * min(indents, default=0)
    lines = [f"{margin}{line}" if line else line for line in more.splitlines()]
    return "\n".join([text.rstrip("\n"), *lines, ""])


def is_read_as(text: str, source: Path, wanted: EvalSet) -> bool:
    """Whether the text is read as the wanted set."""
    try:
        found = set_in(source, text)
        same = evalset_text(found, source, shape=None) == evalset_text(wanted, source, shape=None)
    except BadFile:
        return False
    return same
