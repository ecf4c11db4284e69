"""The suite for authors of file shapes: a shape that passes it works alongside all others.

    from greenroom.testing import ShapeContract

    class TestDialogues(ShapeContract):
        def shape(self):
            return SHAPE

        def samples(self):
            return [json.loads(text) for text in FILES_OF_THE_TOOL]

`samples` are the data of files as the tool behind them writes them.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, Final, cast

from greenroom.cases.evalset import EvalSet
from greenroom.cases.files.own import evalset_data
from greenroom.cases.files.shapes import TABLE, Shape, shape_named, shape_names
from greenroom.errors import BadInput
from greenroom.ledger.plain import Json, plain

_FOREIGN: Final[Sequence[Json]] = (None, True, 7, 0.5, "", "text", [], {}, [None], [[]], {"": None})
"""Data that no shape may recognise."""
_ODD: Final[Sequence[Json]] = (None, True, -1, "odd", [], {}, [None], {"odd": [1]})
"""Values that may be in a file where something else is expected."""
_MOST = 400


class ShapeContract:
    """Subclass it with a `shape` and `samples`, and pytest collects the suite for it."""

    def shape(self) -> Shape:
        """The shape to test."""
        raise NotImplementedError("give the shape to test")

    def samples(self) -> Sequence[Json]:
        """Data of such files, as other tools write them."""
        raise NotImplementedError("give the data of a file or two")

    def test_it_recognises_its_own_files_and_says_why(self) -> None:
        """And no other shape recognises them: exactly one must match."""
        shape = self.shape()
        others = [shape_named(name) for name in shape_names() if name not in (shape.name, TABLE)]
        assert self.samples(), "give at least one sample"
        for sample in self.samples():
            why = shape.recognises(sample)
            assert isinstance(why, str), "a file of it is not recognised"
            assert why.strip(), "it must say in words how it recognised the file"
            taken = [other.name for other in others if other.recognises(sample)]
            assert not taken, f"the file is also recognised as {', '.join(taken)}"
        assert shape.looks_for.strip(), "`looks_for` says in words what it looks for"

    def test_it_recognises_nothing_else(self) -> None:
        """Whatever a file holds, it answers None."""
        shape = self.shape()
        foreign = [*_FOREIGN, *(data for name, data in _OTHERS.items() if name != shape.name)]
        for data in foreign:
            assert not shape.recognises(deepcopy(data)), f"{data!r} is not one of its files"

    def test_reading_is_the_same_every_time_and_changes_nothing(self) -> None:
        """Data in, an eval set with cases out."""
        shape = self.shape()
        for sample in self.samples():
            given = deepcopy(sample)
            first = shape.read(given, "sample")
            assert isinstance(first, EvalSet), f"it read {first!r}"  # pyright: ignore[reportUnnecessaryIsInstance]
            assert len(first), "a sample has cases"
            assert given == sample, "the data was changed"
            assert evalset_data(shape.read(given, "sample")) == evalset_data(first)

    def test_what_it_writes_is_json_that_it_recognises_and_reads_again(self) -> None:
        """Nothing that came from its own files is lost on the way back."""
        shape = self.shape()
        for sample in self.samples():
            found = shape.read(deepcopy(sample), "sample")
            written = shape.write(found)
            assert plain(written, "what it writes") == written
            assert shape.recognises(written), "it does not recognise what it writes"
            again = shape.read(deepcopy(written), "sample")
            assert evalset_data(again) == evalset_data(found)

    def test_a_broken_file_is_read_or_refused_by_name(self) -> None:
        """With any value replaced by any other, it returns an eval set or raises BadInput."""
        shape = self.shape()
        for sample in self.samples():
            for broken in _broken(sample):
                if not _asked(shape, broken):
                    continue
                try:
                    shape.read(broken, "sample")
                except BadInput:
                    continue
                except Exception as error:
                    raise AssertionError(f"{error!r} for {broken!r}; raise BadFile") from error


def _asked(shape: Shape, data: Json) -> str | None:
    try:
        return shape.recognises(data)
    except Exception as error:
        raise AssertionError(f"`recognises` raised {error!r} for {data!r}") from error


def _broken(sample: Json) -> Iterator[Json]:
    """Copies of the sample, each with one value replaced."""
    places = list(_places(sample))
    step = max(1, len(places) * len(_ODD) // _MOST)
    for place in places[::step]:
        for odd in _ODD:
            broken = deepcopy(sample)
            holder: Any = broken
            for key in place[:-1]:
                holder = holder[key]
            holder[place[-1]] = odd
            yield broken


def _places(value: Json, place: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    if isinstance(value, dict):
        items = list(cast("dict[str, Json]", value).items())
    elif isinstance(value, list):
        items = list(enumerate(cast("list[Json]", value)))
    else:
        items = []
    for key, inner in items:
        yield (*place, key)
        yield from _places(inner, (*place, key))


_OTHERS: Final[dict[str, Json]] = {
    "greenroom": {"version": 1, "id": "s", "cases": [{"id": "c", "says": "Hi"}]},
    "adk": {
        "eval_set_id": "s",
        "eval_cases": [
            {
                "eval_id": "c",
                "conversation": [{"user_content": {"parts": [{"text": "Hi"}], "role": "user"}}],
            }
        ],
    },
    "adk-flat": [{"query": "Hi", "reference": "Hello"}],
}
"""Small files of other shapes."""
