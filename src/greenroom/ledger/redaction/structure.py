"""What of a record or a document is Greenroom's own: the names of its fields, and the words of its lists.

A secret may be a common word, such as `user`. In what somebody said it is replaced; where the format itself
says `user`, it says nothing about the secret, and nothing could read the file if it were replaced.
"""

import re
from functools import lru_cache
from types import EllipsisType, NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from greenroom.ledger.changes import BUILT_IN_SCOPES
from greenroom.ledger.events import AnyEvent
from greenroom.ledger.records import given_names
from greenroom.ledger.redaction.own_names import OWN_NAMES

DOCUMENTS: Final = frozenset(("case", "agent", "asked"))
"""Fields of records with a whole document as JSON: a case, or the graph of an agent."""
_LISTED: Final = frozenset(
    (
        *("kind", "status", "verdict", "trend", "ended", "phase", "role", "source", "type"),
        *("voice", "op", "whom"),
    )
)
"""What a document has words of a list under."""
_LISTS: Final = """
agent user assistant system tool metric user_agent message text node conditional custom decision question answer model
live mock replayed cached simulated middleware refused observed set append delete replace note report
passed failed error terminated skipped running waiting finished completed state_matches max_turns max_seconds
interrupted working simulating measuring judging resting unfinished killed
better worse same flaky broken added removed unclear open passes misses regression quality pass_rate errors cost
object array string number integer boolean null
"""
"""Who speaks and what a message is, who gave an answer and what happened to a value, how a trial ended, how results
compare, and the types of a schema."""
_WORDS: Final = frozenset(_LISTS.split())
"""Those words, beside the kinds of events."""
NAMED_BY_AUTHORS: Final = frozenset(
    ("models", "judge_models", "user_models", "metrics", "scores", "criteria", "mocks", "tools")
)
"""Greenroom's fields whose keys are names chosen by users."""
KEYED_BY_AUTHORS: Final = NAMED_BY_AUTHORS | {"nodes", "parts", "tags", "sources", "measures"}
"""Those of documents, where what is under the names is Greenroom's again."""
FILLED_BY_AUTHORS: Final = frozenset(
    (
        *("state", "state_after", "state_matches", "extra", "metadata", "value", "args", "by_args"),
        *("changes", "input", "output", "data", "details", "measured", "evidence", "properties"),
        *("parameters", "schema", "input_schema", "output_schema", "enum", "default"),
        *("arguments", "response", "result", "always", "answers", "facts"),
    )
)
"""Fields with data of users, whose keys are free text as well."""
_REFERENCE: Final = re.compile(r"(kept|said|result):|reply\Z")


@lru_cache(maxsize=512)
def text_names(kind: type[Any]) -> tuple[str, ...]:
    """The fields of a record that may hold a secret: all but those whose type lists their words."""
    try:
        types = get_type_hints(kind)
    except Exception:  # noqa: BLE001 - an author's class, where `amount: "in EUR"` is no type at all
        types = {}
    return tuple([name for name in given_names(kind) if not _is_listed(types.get(name))])


def _is_listed(hint: Any) -> bool:
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Literal:
        return True
    if origin is Annotated:
        return _is_listed(inside[0])
    parts = [part for part in inside if part not in (NoneType, EllipsisType, ...)]
    return bool(parts) and origin in (Union, UnionType, tuple) and all(map(_is_listed, parts))


def is_own_word(name: str, value: str) -> bool:
    """Whether a document has a word of a list here; any other word may be somebody's password."""
    return name in _LISTED and (value in _WORDS or value in _kinds_of_events())


@lru_cache(maxsize=1)
def _kinds_of_events() -> frozenset[str]:
    return frozenset(str(kind.__struct_config__.tag) for kind in get_args(AnyEvent))


def is_own_key(key: object) -> bool:
    """Whether a key of a document, outside of what users fill, is the name of a field of Greenroom's."""
    return key in OWN_NAMES


def own_part(field: str, value: str) -> str:
    """How a text in this field of a record begins that belongs to the format: all of it, a part, or nothing."""
    if field == "messages" and (reference := _REFERENCE.match(value)):
        return reference[0]
    return value if field == "scope" and value in BUILT_IN_SCOPES else ""
