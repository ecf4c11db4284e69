"""Eval-set files: found when the server starts, read, checked and saved."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from greenroom.cases import Case, EvalSet, Problem
from greenroom.cases.files.additions import add_cases
from greenroom.cases.files.changes import changing
from greenroom.cases.files.documents import Document, opened_text
from greenroom.cases.files.load import chosen_shape, read_as
from greenroom.cases.files.readable import ReadablePart
from greenroom.cases.files.save import save_text
from greenroom.cases.files.shapes import Shape
from greenroom.cases.suffixes import SUFFIXES
from greenroom.errors import BadFile, BadInput, NotFound
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.ledger.text_files import text_of
from greenroom.reports.page.shapes import Checked, Flaw, SetCase, SetLine, SetText
from greenroom.suite.checks.validation import problems_in
from greenroom.suite.inputs.references import split_reference
from greenroom.suite.inputs.sources import evalset_files

_EDITABLE = (".yaml", ".yml", ".json", ".jsonl", ".csv")


class Conflict(Exception):
    """A file to be saved has changed since it was read."""

    def __init__(self, theirs: SetText) -> None:
        super().__init__(f"{theirs.name} has changed since you opened it")
        self.theirs = theirs


class NamesCode(BadInput):
    """A set names Python code that a run would import, and no one has agreed to that yet.

    The page shows what it is and asks; agree there, or run the set in the terminal.
    """

    def __init__(self, file: Path, code: list[str]) -> None:
        super().__init__(
            f"{file} names Python code that a run would import: {', '.join(code)}. Look at it, and agree."
        )
        self.code = code


@dataclass(frozen=True, slots=True)
class SetFile:
    """An eval-set file that the server may show and save."""

    id: str
    path: Path
    """As it was given in the terminal, or found below a folder that was."""


class SetFiles:
    """The sets that the server was started with: files, and those in folders."""

    def __init__(self, given: Sequence[str]) -> None:
        self._given = given
        for one in given:
            place = Path(one)
            if not place.is_dir() and not (place.is_file() and place.suffix in SUFFIXES):
                raise NotFound(f"there is no eval set {one!r}. Name a file or a folder of them.")

    def all(self) -> dict[str, SetFile]:
        """Every file by its id; looked for again, since folders change."""
        found: dict[str, SetFile] = {}
        for path in self._paths():
            stem = path.name.partition(".")[0]
            if stem in found:
                stem = f"{stem}-{blake2b(str(path).encode(), digest_size=3).hexdigest()}"
            found[stem] = SetFile(stem, path)
        return found

    def _paths(self) -> Iterator[Path]:
        for given in self._given:
            place = Path(given)
            if place.is_dir():
                home = place.resolve()
                # A link that leads out of the folder is not part of it.
                yield from (p for p in evalset_files(place) if p.resolve().is_relative_to(home))
            elif place.suffix in SUFFIXES:  # a file that was deleted since is listed as such
                yield place

    def file(self, set_id: str) -> SetFile:
        """The file with this id."""
        found = self.all().get(set_id)
        if found is None:
            raise NotFound(f"there is no set {set_id!r} among those this server was started with.")
        return found

    def called(self, evalset_id: str) -> SetFile:
        """The file of the set with this id, which is what runs record."""
        for one in self.all().values():
            with suppress(BadFile):
                if evalset_id and evalset_in(one.path, text_of(one.path)) == evalset_id:
                    return one
        raise NotFound(f"there is no set {evalset_id!r} among those this server was started with.")

    def lines(self) -> list[SetLine]:
        """All sets, for the list."""
        return [self._line(one) for one in self.all().values()]

    def _line(self, one: SetFile) -> SetLine:
        try:
            text = text_of(one.path)
        except BadFile as error:
            return SetLine(id=one.id, name=str(one.path), cases=0, problems=1, why=str(error))
        flaws = [one for one in _problems(one.path, text) if not one.hint]
        return SetLine(
            id=one.id,
            name=str(one.path),
            cases=len(cases_in(one.path, text)),
            evalset=evalset_in(one.path, text),
            problems=len(flaws),
            writable=one.path.suffix in _EDITABLE,
        )

    def read(self, set_id: str) -> SetText:
        """A file with its cases and its problems."""
        one = self.file(set_id)
        text = text_of(one.path)
        checked = check_text(one.path, text)
        return SetText(
            id=one.id,
            name=str(one.path),
            text=text,
            digest=digest(text),
            shape=_shape(one.path, text),
            writable=one.path.suffix in _EDITABLE,
            cases=checked.cases,
            problems=checked.problems,
        )

    def save(self, set_id: str, text: str, expected: str) -> SetText:
        """Save text to the file, if the file is unchanged since it was read."""
        one = self.file(set_id)
        with changing(one.path):
            if not one.path.exists():
                raise BadFile(
                    f"{one.path} was deleted since you opened it. Your text is still here: copy it, or put the "
                    f"file back and save again."
                )
            if digest(text_of(one.path)) != expected:
                raise Conflict(self.read(set_id))
            save_text(text, one.path)
        return self.read(set_id)

    def check_code(self, set_id: str, allowed: Json) -> None:
        """Refuse a run of a set that names code which no one has looked at: any page could have saved it."""
        seen = allowed if is_array(allowed) else []
        if unseen := [one for one in self.code(set_id) if one not in seen]:
            raise NamesCode(self.file(set_id).path, unseen)

    def code(self, set_id: str) -> list[str]:
        """The Python code that a run of this set would import."""
        file = self.file(set_id).path
        return code_in(file, text_of(file))

    def add(self, set_id: str, case: Case) -> SetText:
        """Put one more case at the end of the file; everything else in it stays."""
        add_cases(self.file(set_id).path, case)
        return self.read(set_id)


def digest(text: str) -> str:
    """A hash of the text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def check_text(path: Path, text: str) -> Checked:
    """What is wrong with a text that is meant for a file, and the cases that can be read in it."""
    return Checked(problems=_problems(path, text), cases=cases_in(path, text))


def _problems(path: Path, text: str) -> list[Flaw]:
    """What is wrong with a text. The server runs no code, not even code that the text names."""
    return [
        Flaw(
            text=str(replace(problem, line=None, column=None, fix="", example=None)),
            line=problem.line,
            column=problem.column,
            path=problem.where,
            hint=problem.fix,
        )
        for problem in problems_in(str(path), text, imports=False)
    ]


def code_in(path: Path, text: str) -> list[str]:
    """The Python code that a run of this text would import: `judges.py:mine`, wherever it is written."""
    try:
        found = _references(opened_text(path, text).data)
    except BadFile:
        return []
    return list(dict.fromkeys(found))


def _references(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        where, attr = split_reference(value)
        if attr and Path(where).suffix == ".py" and len(value.split()) == 1:
            yield value
    elif is_object(value):
        for inner in value.values():
            yield from _references(inner)
    elif is_array(value):
        for inner in value:
            yield from _references(inner)


def _shape(path: Path, text: str) -> str:
    try:
        return chosen_shape(opened_text(path, text))[0].name
    except BadFile:
        return ""


def evalset_in(path: Path, text: str) -> str:
    """The id of a set; empty if that cannot be read."""
    found = _readable(path, text)
    return "" if found is None else found[2].id


def cases_in(path: Path, text: str) -> list[SetCase]:
    """The cases that can be read, each with the line it begins at."""
    if (found := _readable(path, text)) is None:
        return []
    document, shape, evalset, numbers = found
    places = [Problem(shape.place(f"cases[{number}]"), "") for number in numbers]
    lines = {place.where: place.line for place in document.located(places)}
    return [
        SetCase(
            id=case.id,
            line=lines.get(place.where),
            name=case.name,
            tags=[str(tag) for tag in case.tags],
        )
        for case, place in zip(evalset, places, strict=False)
    ]


def _readable(path: Path, text: str) -> tuple[Document, Shape, EvalSet, list[int]] | None:
    """What can be read of a set despite its problems, and the place of each case in the file."""
    try:
        document = opened_text(path, text)
        shape, _ = chosen_shape(document)
    except BadFile:
        return None
    read = read_as(document, shape)
    if isinstance(read, EvalSet):
        return document, shape, read, list(range(len(read)))
    part = ReadablePart(document, shape, read)
    return None if part.evalset is None else (document, shape, part.evalset, part.places)
