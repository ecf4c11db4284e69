"""The readable part of a file with problems, so that further problems can be found at once."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, cast

from greenroom.cases.attachments import attachments_near
from greenroom.cases.evalset import EvalSet
from greenroom.cases.files.documents import Document
from greenroom.cases.files.load import judged_as
from greenroom.cases.files.shapes import Shape
from greenroom.cases.problems import Key, Problem, at, inside, keys_of
from greenroom.errors import BadInput
from greenroom.ledger.plain import Json, is_array, is_object

_IDS = ("id", "eval_id", "name", "scenario_id")
_SAID = ("says", "query", "input", "question", "user_content", "starting_prompt")
_TRIES = 3


class ReadablePart:
    """The cases of a file with wrong fields blanked out and misspelt ones renamed.

    `places` has the number of each case in the file.
    """

    def __init__(self, document: Document, shape: Shape, found: Sequence[Problem]) -> None:
        self.shape = shape
        self._document = document
        self._data: Any = deepcopy(document.data)
        self._renamed: dict[tuple[Key, ...], tuple[Key, ...]] = {}
        self._wrong = [tuple(keys_of(problem.where)) for problem in found]
        self._dropped: set[int] = set()
        # Deeper fields are renamed first, while the path to them is still that of the file.
        for problem in sorted(found, key=lambda p: -len(keys_of(p.where))):
            self._mend(problem)
        self.evalset = self._read()

    @property
    def places(self) -> list[int]:
        """The place in the file of each case."""
        return [i for i in range(len(self._cases(self._data))) if i not in self._dropped]

    @property
    def is_partial(self) -> bool:
        """Whether cases were left out."""
        return bool(self._dropped)

    def is_news(self, place: str) -> bool:
        """Whether no earlier problem, here or inside, may have caused one at this place."""
        keys = tuple(keys_of(place))
        return not any(wrong[: len(keys)] == keys for wrong in self._wrong)

    def spelt(self, place: str) -> str:
        """The place as the file spells it."""
        keys = tuple(keys_of(place))
        for length in range(1, len(keys) + 1):
            if keys[:length] in self._renamed:
                keys = (*self._renamed[keys[:length]], *keys[length:])
        return at("", *keys)

    def _read(self) -> EvalSet | None:
        for _ in range(_TRIES):
            try:
                rest = self._without_dropped()
                with attachments_near(self._document.source):
                    return judged_as(self.shape.read(rest, self._document.stem), self.shape)
            except BadInput as error:
                # A case that still cannot be read is left out.
                left = self.places
                way: list[Key] = []
                if is_object(self._data) and self.shape.lists[0]:
                    way = [self.shape.lists[0]]
                for problem in getattr(error, "problems", ()):
                    keys = keys_of(problem.where)
                    if keys[: len(way)] != way:
                        continue  # something of the set, not of a case
                    number = next(iter(keys[len(way) :]), None)
                    if isinstance(number, int):
                        self._dropped.add(left[number])
        return None

    def _cases(self, data: Any) -> list[Any]:
        listed = data.get(self.shape.lists[0]) if is_object(data) else data
        return listed if is_array(listed) else []

    def _without_dropped(self) -> Any:
        cases = self._cases(self._data)
        if not self._dropped:
            return self._data
        kept = [cases[i] for i in self.places]
        return {**self._data, self.shape.lists[0]: kept} if is_object(self._data) else kept

    def _mend(self, problem: Problem) -> None:
        """Rename the field that is wrong at a place, or blank it out."""
        keys = keys_of(problem.where)
        holders = self._holders(keys)
        # Above the first list are whole cases, which must not be removed.
        least = next((i for i, key in enumerate(keys) if isinstance(key, int)), -1)
        there = list(enumerate(keys[: len(holders)]))
        names = [i for i, key in there if isinstance(key, str) and i > least]
        if not names:
            if holders and keys[0] == "metrics":
                # Of the set. Without any, its cases might seem to have none.
                holders[0]["metrics"] = ["exact"]
            return
        last = names[-1]
        if "mocks" in keys[:last]:  # without its mock, an expected tool would be another problem
            last = keys.index("mocks") + 1
        holder, key = holders[last], str(keys[last])
        if problem.meant and last == len(keys) - 1:
            holder[problem.meant] = holder.pop(key)
            way = tuple(keys[:last])
            self._renamed[*way, problem.meant] = (*way, key)
        else:
            holder[key] = self._blank(keys[: last + 1])

    def _holders(self, keys: Sequence[Key]) -> list[Any]:
        """The mappings and lists on the way to a place, as far as they exist."""
        found: list[Any] = []
        value = cast(Json, self._data)
        for key in keys:
            if inside(value, key) is None:
                break
            found.append(value)
            value = inside(value, key)
        return found

    def _blank(self, keys: Sequence[Key]) -> Any:
        """The emptiest value for a required field."""
        key = keys[-1]
        if key == "version":
            return 1
        if "mocks" in keys:
            return {"value": None}
        if key in _IDS and len(keys) <= 3 and any(isinstance(k, int) for k in keys):
            return f"unnamed {keys}".replace("[", "").replace("]", "")
        is_said = key in _SAID or (key == "user" and self.shape.name == "sessions")
        return "?" if is_said else None
