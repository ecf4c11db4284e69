"""A library of eval sets: a mapping from names to sets, in memory or in a folder."""

from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from urllib.parse import quote, unquote

from greenroom.cases.evalset import EvalSet
from greenroom.cases.files.load import read_evalset
from greenroom.cases.files.save import write_evalset
from greenroom.cases.files.shapes import OWN
from greenroom.errors import BadInput, NotFound

_ENDINGS = (".evalset.yaml", ".evalset.yml", ".evalset.json")
_LONGEST = 200


class EvalSets(MutableMapping[str, EvalSet]):
    """Eval sets by name, in a folder of `<name>.evalset.yaml` files, or without one in memory.

    A set that already exists keeps its file and its shape, so a folder of another tool's files
    stays one. A set that cannot be written in that shape is refused, and the old one is kept.
    """

    def __init__(self, folder: str | Path | Mapping[str, EvalSet] | None = None) -> None:
        self.folder = Path(folder) if isinstance(folder, str | Path) else None
        self._sets = dict(folder) if isinstance(folder, Mapping) else {}

    def __getitem__(self, name: str) -> EvalSet:
        if self.folder is None:
            if name in self._sets:
                return self._sets[name]
        elif (file := self._file(name)) is not None:
            return read_evalset(file)
        raise _Missing(f"there is no eval set {name!r}; there are {sorted(self)}.")

    def __setitem__(self, name: str, evalset: EvalSet) -> None:
        if self.folder is None:
            self._sets[name] = evalset
            return
        file = self._file(name)
        if file is not None:
            write_evalset(evalset, file, shape=read_evalset(file).shape)
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        # A name that cannot lead out of the folder.
        text = quote(name, safe=" ").replace(".", "%2E")
        if not text.strip() or len(text) > _LONGEST:
            raise BadInput(f"{name!r} cannot name an eval set: give it 1 to {_LONGEST} characters.")
        write_evalset(evalset, self.folder / f"{text}{_ENDINGS[0]}", shape=OWN)

    def __delitem__(self, name: str) -> None:
        file = None if self.folder is None else self._file(name)
        if file is not None:
            file.unlink()
        elif name in self._sets:
            del self._sets[name]
        else:
            raise _Missing(f"there is no eval set {name!r} to remove; there are {sorted(self)}.")

    def __iter__(self) -> Iterator[str]:
        if self.folder is None:
            return iter(self._sets)
        return iter(sorted({_name(file) for file in self._files()}))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<EvalSets in {'memory' if self.folder is None else str(self.folder)}>"

    def _files(self) -> Iterator[Path]:
        assert self.folder is not None
        return (file for file in self.folder.glob("*.evalset.*") if file.name.endswith(_ENDINGS))

    def _file(self, name: str) -> Path | None:
        return next((file for file in sorted(self._files()) if _name(file) == name), None)


class _Missing(NotFound, KeyError):
    """A missing set: both a KeyError, as for any mapping, and Greenroom's NotFound."""

    def __str__(self) -> str:
        return Exception.__str__(self)


def _name(file: Path) -> str:
    return unquote(file.name.rpartition(".evalset.")[0])
