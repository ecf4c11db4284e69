"""One more case in a file, with everything else in it as it was, comments too."""

from pathlib import Path

from greenroom.cases.case import Case
from greenroom.cases.data import written_data
from greenroom.cases.evalset import EvalSet
from greenroom.cases.files.documents import parsed_text
from greenroom.cases.files.load import chosen_shape, read_as
from greenroom.cases.files.save import evalset_text
from greenroom.cases.files.shapes import OWN
from greenroom.cases.files.yaml_text import yaml_text
from greenroom.errors import BadFile

_YAML = (".yaml", ".yml")


def with_case(source: Path, text: str, case: Case) -> str:
    """The text of an eval-set file with one more case at its end.

    In our own shape as YAML the case is put behind what stands there. Any other file is written anew,
    unless it has comments: those would be lost.
    """
    before = _read(source, text)
    if case.id in before:
        raise BadFile(f"{source} has a case {case.id!r} already. Choose another id.")
    wanted = before.with_cases(case)
    if source.suffix in _YAML and before.shape in ("", OWN):
        longer = _appended(text, case)
        if _is(longer, source, wanted):
            return longer
    if source.suffix in _YAML and _has_comments(text):
        raise BadFile(
            f"{source} has comments that would be lost if the case were added here. Put this at the end "
            f"of its cases:\n{yaml_text([written_data(case)])}"
        )
    return evalset_text(wanted, source, shape=before.shape or None)


def _read(source: Path, text: str) -> EvalSet:
    document = parsed_text(source, text)
    shape, _ = chosen_shape(document)
    found = read_as(document, shape)
    if isinstance(found, EvalSet):
        return found
    raise BadFile(f"{source} has a problem, so nothing is added to it: {found[0]}", found)


def _appended(text: str, case: Case) -> str:
    """The case as one more entry of a list that ends the text, as far in as its other entries are."""
    entries = [line for line in text.splitlines() if line.lstrip().startswith("- ")]
    indents = [len(line) - len(line.lstrip()) for line in entries]
    margin = " " * min(indents, default=0)
    entry = yaml_text([written_data(case)])
    lines = [f"{margin}{line}" if line else line for line in entry.splitlines()]
    return "\n".join([text.rstrip("\n"), *lines, ""])


def _is(text: str, source: Path, wanted: EvalSet) -> bool:
    """Whether the text reads as the set that is wanted."""
    try:
        found = _read(source, text)
        same = evalset_text(found, source, shape=None) == evalset_text(wanted, source, shape=None)
    except BadFile:
        return False
    return same


def _has_comments(text: str) -> bool:
    return any(line.lstrip().startswith("#") or " #" in line for line in text.splitlines())
