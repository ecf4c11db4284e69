"""Cases, from a value, a module, a file, a folder, a glob or an agent's surroundings, and where each is from."""

import glob
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import isfunction
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, structs

from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.cases.merged import merge
from greenroom.cases.problems import invalid
from greenroom.cases.suffixes import SUFFIXES, TABLES, TEXTS
from greenroom.errors import BadFile, BadInput, NotFound
from greenroom.ledger.plain import is_object
from greenroom.models.model import Model
from greenroom.models.named import as_model
from greenroom.suite.inputs.criteria import as_config, check_evalset, equipped
from greenroom.suite.inputs.judge_models import with_named_judges
from greenroom.suite.inputs.module_sets import named_in, sets_in
from greenroom.suite.inputs.references import (
    FOLDER_FILES,
    agent_beside,
    fenced_import,
    load_module,
    load_value,
    split_reference,
)
from greenroom.suite.option_types import is_resources
from greenroom.suite.options import OPTIONS
from greenroom.world.resources import Factories

if TYPE_CHECKING:
    from greenroom.world.middleware.stack import MiddlewareStack

_ENDINGS = (".evalset", ".test", ".eval", ".scenarios")
_CONFIG = "test_config.json"
_NEAR = ("", "evals", "tests")


class Source(Struct, frozen=True):
    """Where some cases are from: a reference that can be typed again, and the set it holds."""

    reference: str
    evalset: EvalSet
    config: str = ""
    """The config next to the file, which judges its cases."""

    @property
    def is_data(self) -> bool:
        """Whether the cases are from a file of data, not from code."""
        return _is_data(split_reference(self.reference)[0])


class CaseSource(Struct, frozen=True):
    """Cases of one or several sources as one set. Equal ids get their set's id as a prefix.

    `origins` has for each case the reference of its source, and the case's id there.
    """

    evalset: EvalSet
    sources: Sequence[Source]
    origins: Mapping[str, tuple[str, str]]
    passed_by: Sequence[str] = ()
    """Files of a folder that hold no eval set."""


def gather(reference: str, *, configs: bool = True) -> CaseSource:
    """The cases of a data file, a folder of them, a glob, or `path[:attr]` of Python code.

    `cases.json:first,second` takes the cases with these ids, `*.json:first,second` those of all
    files that match. With `configs`, cases are also judged by a `test_config.json` next to their
    file.
    """
    where, ids = split_reference(reference)
    if glob.has_magic(where) and not Path(where).exists():
        sources = [one for name in _matching(where) for one in _sources(name, configs)]
        return together(_with_ids(sources, listed_ids(ids), where) if ids else sources)
    if Path(where).is_dir() and where == reference:
        return _of_folder(Path(where), configs)
    return together(_sources(reference, configs), id=_stem(where))


def check_not_empty(evalset: EvalSet, reference: str) -> None:
    """Refuse a set without cases, of which nothing can be evaluated."""
    if not len(evalset):
        raise BadFile(
            f"{reference} has no cases, so nothing can be evaluated. Write one, or add one with "
            f"`greenroom eval-set add`."
        )


def gather_beside(agent: str, *, configs: bool = True) -> CaseSource:
    """All cases of an agent: those in its module, and those in the eval-set files next to it."""
    where, _ = split_reference(agent)
    sources = _module_sources(where)
    home = getattr(load_module(where), "__file__", None)
    files = [] if home is None else [str(file) for file in _files_beside(Path(home))]
    sources += [_file_source(file, configs) for file in files]
    if not sources:
        raise NotFound(
            f"no cases found in {where}: it defines no Case, list of cases or EvalSet at module "
            f"level, and there is no eval-set file next to it. Add one, or name a file with cases."
        )
    return together(sources, id="cases" if files else _stem(where))


def together(
    sources: Sequence[Source], passed_by: Sequence[str] = (), *, id: str = "cases"
) -> CaseSource:
    """Several sources as one set, with this id; one alone keeps its own."""
    # The sets, with a prefix before every id that several of them have.
    counts = Counter(case_id for source in sources for case_id in source.evalset.ids)
    homes = Counter(source.evalset.id for source in sources)
    named: list[EvalSet] = []
    for source in sources:
        home = source.evalset.id
        if homes[home] > 1:
            # An id may not read like a path.
            home = re.sub(r"[/\\]|\.\.+", "_", source.reference).lstrip("_.~")
        cases = [
            replace(case, id=f"{home}:{case.id}") if counts[case.id] > 1 else case
            for case in source.evalset
        ]
        named.append(replace(source.evalset, cases=cases))
    origins = {
        new.id: (source.reference, old.id)
        for source, apart in zip(sources, named, strict=True)
        for old, new in zip(source.evalset, apart, strict=True)
    }
    if len(named) == 1:
        return CaseSource(named[0], sources, origins, passed_by)
    merged = replace(merge(*named, id=id), description="")
    return CaseSource(merged, sources, origins, passed_by)


# One source


def load_cases(reference: str) -> EvalSet:
    """The cases of `path[:attr]`: a data file, or every Case and EvalSet of a module, listed or not.

    `cases.json:first,second` takes the cases with these ids. The only set of a module is returned as it
    is; of several, each keeps its metrics, and equal ids get their set's id as a prefix.
    """
    where, attr = split_reference(reference)
    if _is_data(where):
        from greenroom.cases.files import read_evalset  # loaded only for data files

        read = read_evalset(where)
        try:
            found = with_named_judges(read, Path(where).parent)
        except BadInput:
            check_evalset(where, read)  # raises, with the line
            raise
        return chosen(found, listed_ids(attr)) if attr else found
    if attr:
        found = load_value(reference)
        with fenced_import(reference):  # it may be a generator
            return as_evalset(found, _stem(where))
    sources = _module_sources(where)
    if not sources:
        raise NotFound(
            f"no cases found in {where}: it defines no Case, list of cases or EvalSet at module "
            f"level. Add one, or name a file with cases."
        )
    return together(sources, id=_stem(where)).evalset


def _module_sources(where: str) -> list[Source]:
    """Every eval set of a module, and its other cases as one more."""
    found = sets_in(named_in(load_module(where)), _stem(where))
    return [Source(f"{where}:{name}" if name else where, one) for name, one in found.items()]


def as_evalset(given: object, name: str = "cases") -> EvalSet:
    """An eval set from one, from several, from cases, from a single case, or from a path."""
    if isinstance(given, EvalSet):
        return given
    if isinstance(given, Case):
        return EvalSet(given.id, [given])
    if isinstance(given, str | Path):
        return load_cases(str(given))
    if isinstance(given, Iterable):
        items = list(cast("Iterable[Case | EvalSet]", given))
        if not any(isinstance(item, EvalSet) for item in items):
            return EvalSet(name, cast("list[Case]", items))
        found = sets_in([(str(number), item) for number, item in enumerate(items)], name)
        sources = [Source(f"{name}:{number}", one) for number, one in found.items()]
        return together(sources, id=name).evalset
    raise BadFile(f"{given!r} is neither a case, a list of cases, an EvalSet nor a path to them.")


def chosen(evalset: EvalSet, ids: Iterable[str]) -> EvalSet:
    """The set with the cases of these ids only, in their order."""
    return replace(evalset, cases=[evalset[case_id] for case_id in ids])


def listed_ids(attr: str) -> list[str]:
    """The ids in `first,second`; at least one."""
    ids = [case_id.strip() for case_id in attr.split(",") if case_id.strip()]
    if not ids:
        raise NotFound(f"{attr!r} names no case; give their ids: cases.json:first,second.")
    return ids


def _stem(where: str) -> str:
    """What the cases of a module are called together."""
    return Path(where).stem or where


def _is_data(where: str) -> bool:
    return Path(where).suffix in SUFFIXES


def _sources(reference: str, configs: bool) -> list[Source]:
    """The sources that a file or `path[:attr]` of Python code holds."""
    where, attr = split_reference(reference)
    if _is_data(where):
        return [_file_source(reference, configs)]
    # Without a set, the error is that of `load_cases`.
    found = [] if attr else _module_sources(where)
    return found or [Source(reference, load_cases(reference))]


def _file_source(reference: str, configs: bool) -> Source:
    where, _ = split_reference(reference)
    try:
        found = load_cases(reference)
    except BadFile as error:
        if configs:
            check_evalset(where, None, error)
        raise
    if not configs:
        return Source(where, found)
    config = Path(where).with_name(_CONFIG)
    judged = equipped(found, {}, as_config(config)) if config.is_file() else found
    check_evalset(where, judged)
    return Source(where, judged, str(config) if config.is_file() else "")


def _matching(pattern: str) -> list[str]:
    """The files that match a pattern; a config next to them is not one of them."""
    # `Path.glob` takes no absolute patterns.
    names = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
    files = [name for name in names if Path(name).is_file() and Path(name).name != _CONFIG]
    if not files:
        raise NotFound(
            f"no file matches {pattern!r}; check the folder you are in, and the spelling."
        )
    return files


def _with_ids(sources: Sequence[Source], ids: Sequence[str], pattern: str) -> list[Source]:
    """The sources that have one of these cases, without their others."""
    known = {case_id for source in sources for case_id in source.evalset.ids}
    for case_id in ids:
        if case_id not in known:
            raise NotFound(f"no file that matches {pattern!r} has a case {case_id!r}.")
    held = [[case_id for case_id in ids if case_id in source.evalset.ids] for source in sources]
    return [
        structs.replace(source, evalset=chosen(source.evalset, own))
        for source, own in zip(sources, held, strict=True)
        if own
    ]


def _of_folder(folder: Path, configs: bool) -> CaseSource:
    sources: list[Source] = []
    passed_by: list[str] = []
    for file in _data_files(folder):
        if _is_evalset(file):
            sources.append(_file_source(str(file), configs))
        elif file.name != _CONFIG:
            passed_by.append(str(file))
    if sources:
        return together(sources, passed_by)
    if any((folder / name).is_file() for name in FOLDER_FILES):
        return together(_sources(str(folder), configs), id=_stem(str(folder)))
    raise NotFound(
        f"no eval sets found in {folder}: none of its files is one. Looked at "
        f"{', '.join(SUFFIXES)}; tables count if they are called like cases.evalset.csv."
    )


def evalset_files(folder: Path) -> Iterator[Path]:
    """The files in a folder and below that are meant as eval sets; those that cannot be parsed, too."""
    for file in _data_files(folder):
        try:
            is_meant = file.name != _CONFIG and _is_evalset(file)
        except BadFile:
            is_meant = True
        if is_meant:
            yield file


def _data_files(folder: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f[0] not in "._" and f != "node_modules")
        for name in sorted(names):
            file = Path(here) / name
            if file.suffix in TEXTS or (file.suffix in TABLES and is_usual(file)):
                yield file


def is_usual(file: Path) -> bool:
    """Whether a file is named as eval sets are: `weather.evalset.json`, `refund.eval.yaml`."""
    return file.suffix in SUFFIXES and Path(file.stem).suffix in _ENDINGS


def _is_evalset(file: Path) -> bool:
    """Whether a file is meant as an eval set; one with such a name is, whatever it holds."""
    if is_usual(file):
        return True
    from greenroom.cases.files.documents import parsed
    from greenroom.cases.files.shapes import recognised

    # A file that cannot even be parsed may be a broken eval set: it is reported, not ignored.
    document = parsed(file)
    try:
        recognised(document.data, file)
    except BadFile:
        return False
    return True


def _files_beside(home: Path) -> Iterator[Path]:
    """The eval-set files that belong to the agent in a Python file."""
    for near in _NEAR:
        folder = home.parent / near
        for file in sorted(folder.iterdir()) if folder.is_dir() else ():
            if is_usual(file) and agent_beside(file, home.parent) == str(home):
                yield Path(os.path.relpath(file))


# Other things that a command line names


def load_mocks(reference: str) -> Mapping[str, Any]:
    """Mocks by tool: a mapping of Python code, or a data file in the form of a case's `mocks`."""
    where, _ = split_reference(reference)
    if Path(where).suffix not in TEXTS:
        found = load_value(reference)
        if isinstance(found, Mapping):
            return found  # pyright: ignore[reportUnknownVariableType]
        raise BadFile(f"{reference} is {found!r}, but mocks are a mapping by tool.")
    from greenroom.cases.files.documents import parsed
    from greenroom.cases.reader import case_from

    document = parsed(Path(where))
    data = document.data
    given = data if is_object(data) and [*data] == ["mocks"] else {"mocks": data}
    try:
        return case_from({"id": "mocks", **given}, "").mocks
    except BadFile as error:
        found = document.located(
            one
            if given is data
            else replace(one, where=one.where.removeprefix("mocks").lstrip("."))
            for one in error.problems
        )
        raise BadFile(invalid(where, found, "mocks by tool"), found) from error


def as_resources(given: Factories | str) -> Factories:
    """The mapping of functions that open resources, as given or loaded from `resources.py:name`."""
    if not isinstance(given, str):
        return given
    found: object = load_value(given) if given else {}
    if isinstance(found, Mapping) and is_resources(found):
        return cast("Factories", found)
    raise BadFile(f"{given} is {found!r}, but resources are {OPTIONS['resources'].wanted}.")


def as_middleware(given: "Iterable[object] | MiddlewareStack") -> "MiddlewareStack | None":
    """Middleware in its order, with each reference such as `audit.py:name` replaced by what it names."""
    if not given:
        return None
    from greenroom.world.middleware.stack import MiddlewareStack, is_middleware

    if isinstance(given, MiddlewareStack):
        return given
    found: list[Any] = []
    for one in given:
        value = load_value(one) if isinstance(one, str) else one
        if isinstance(one, str) and isfunction(value):
            with fenced_import(f"{one}()"):
                value = value()
        listed = list(cast("Iterable[Any]", value)) if isinstance(value, list | tuple) else [value]
        if isinstance(one, str) and not all(map(is_middleware, listed)):
            raise BadFile(f"{one} is {value!r}, but middleware are objects with hooks.")
        found += listed
    return MiddlewareStack(found)


def load_model(name: str) -> Any:
    """A model by its provider's name, or one of the author's own: `shop.py:patient`."""
    where, attr = split_reference(name)
    return load_value(name) if attr and Path(where).suffix == ".py" else name


def as_model_given(given: Any) -> Model | None:
    """The model that should answer for an agent, given as an object, a name or a reference."""
    if given is None or given == "":
        return None
    return as_model(load_model(given) if isinstance(given, str) else given, "`model`")
