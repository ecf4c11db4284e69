"""A new kind of event is known everywhere, or it is said here that a place leaves it out on purpose."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import pytest

import greenroom.ledger
from greenroom.ledger import events
from greenroom.ledger.events import (
    AnyEvent,
    ArtifactSaved,
    Escalated,
    Event,
    Forked,
    InvocationEnded,
    InvocationStarted,
    ModelCalled,
    NodeEnded,
    Noted,
    Remembered,
    RunEnded,
    RunStarted,
    ToolFailed,
    ToolReturned,
)
from greenroom.ledger.indexers import INDEXERS
from greenroom.reports.page import timeline

KINDS: list[Any] = [
    kind
    for kind in vars(events).values()
    if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event
]

NO_ROW_OF_THEIR_OWN = {
    RunStarted: "the page's header shows it",
    InvocationStarted: "what the user said begins it",
    InvocationEnded: "what the agent said ends it",
    NodeEnded: "the row of its start shows it",
    ModelCalled: "the row of its reply shows it",
    ToolReturned: "the row of its call shows it",
    ToolFailed: "the row of its call shows it",
    Remembered: "only the framework reads it",
}
NOT_INDEXED = {
    RunEnded: "the last event is at hand",
    Forked: "asked for once, when the trial goes on",
    ArtifactSaved: "asked for once, by who looks at the files of a run",
    Escalated: "no question asks for one",
    Remembered: "read from the end of the ledger",
}


def missing(known: Iterable[Any], left_out: Iterable[Any] = ()) -> set[str]:
    return {kind.__name__ for kind in {*KINDS} - {*known} - {*left_out}}


def test_every_kind_is_read_from_files() -> None:
    assert missing(get_args(AnyEvent)) == set()


def test_every_kind_is_indexed_or_needs_no_index() -> None:
    assert missing(INDEXERS, NOT_INDEXED) == set()
    assert not INDEXERS.keys() & NOT_INDEXED.keys()


def test_every_kind_has_a_row_in_the_timeline_or_belongs_to_another() -> None:
    assert missing(timeline.ROWS, NO_ROW_OF_THEIR_OWN) == set()
    assert not timeline.ROWS.keys() & NO_ROW_OF_THEIR_OWN.keys()


def test_every_kind_is_a_public_name() -> None:
    assert missing(getattr(greenroom.ledger, name) for name in greenroom.ledger.__all__) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_described(kind: Any) -> None:
    page = Path(__file__).parent.parent.joinpath("docs/reference/events.md").read_text()
    tag = str(kind.__struct_config__.tag)
    assert re.search(rf"^\|[^|]*`{tag}`[^|]*\| \w", page, re.MULTILINE), f"{tag} has no row"
    assert kind.__doc__


def test_a_forgotten_kind_is_named() -> None:
    assert missing(set(KINDS) - {Noted}) == {"Noted"}
