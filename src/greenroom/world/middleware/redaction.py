"""Strings that middleware changes on their way into the ledger, wherever they are in an event."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Struct, structs

from greenroom.ledger.attachments import Attachment, attachment_in
from greenroom.ledger.events import Event, Question, Remembered, RunStarted
from greenroom.ledger.plain import Json, is_object, plain
from greenroom.world.middleware.names import failed

if TYPE_CHECKING:
    from greenroom.world.middleware.run import RunMiddleware

NOT_RECORDED: Final = "[not recorded]"
"""Replaces a string for which `redact` failed."""
Redact = Callable[[str], str]

# These fields link the events of a run, or name tools, nodes and models.
_KEPT: Final = frozenset(
    (
        *("path", "voice", "run_id", "digest", "agent", "node", "model", "tool", "call_id"),
        *("yield_id", "id", "name", "scope", "key", "error_type", "ours", "from_run", "prices"),
        *(
            "source",
            "in_place_of",
            "reason",
            "phase",
            "type",
            "outcome",
            "role",
            "op",
            "tools",
            "takes",
        ),
    )
)


def redaction_by(hooks: "RunMiddleware") -> Callable[[Event], Event] | None:
    """A function that returns the event to record; None if no middleware changes strings."""
    listeners = hooks.listeners("redact")
    if not listeners:
        return None

    def redact(text: str) -> str:
        for member, method in listeners:
            try:
                given: object = method(text)
                if not isinstance(given, str):
                    raise TypeError(f"it returned {type(given).__name__}, not a string")
                text = given
            except Exception as error:  # noqa: BLE001 - the author's code
                hooks.broke = hooks.broke or failed(member, "redact", error)
                # A string that could not be checked is not recorded; the reason why the run ends is.
                return text if hooks.is_reason(text) else NOT_RECORDED
        return text

    def recorded(event: Event) -> Event:
        found = _redacted(event, redact, isinstance(event, Remembered))
        if isinstance(event, RunStarted) and is_object(event.case):
            # The case keeps its id.
            case: Json = {**found.case, "id": event.case.get("id")}
            found = structs.replace(found, case=case)
        return found

    return recorded


def _redacted(value: object, redact: Redact, keeps_ids: bool) -> Any:
    """The value with its strings changed; the value itself if none changes."""
    match value:
        case str():
            return redact(value)
        case bool() | float() | None:
            return value
        case int():
            # A model reads a number as text.
            text = str(value)
            return value if (hidden := redact(text)) == text else hidden
        case Attachment():
            # The digest must not change: the attachment's bytes are found by it.
            return structs.replace(value, name=redact(value.name))
        case Struct():
            return _record(value, redact, keeps_ids)
        case Mapping() if (attached := attachment_in(cast("Json", value))) is not None:
            return plain(_redacted(attached, redact, keeps_ids))
        case Mapping():
            return _mapping(cast("Mapping[Any, Any]", value), redact, keeps_ids)
        case list() | tuple():
            items = cast("list[Any] | tuple[Any, ...]", value)
            return type(items)([_redacted(item, redact, keeps_ids) for item in items])
        case _:
            return value


def _record(value: Struct, redact: Redact, keeps_ids: bool) -> Struct:
    changed: dict[str, Any] = {}
    for name in value.__struct_fields__:
        given = getattr(value, name)
        if name in _KEPT or type(given) in (int, float, bool):
            continue
        if isinstance(value, Question) and name == "messages":
            # A string among them is not text but a reference.
            messages = cast("tuple[Any, ...]", given)
            new = tuple(
                [m if isinstance(m, str) else _redacted(m, redact, keeps_ids) for m in messages]
            )
        else:
            new = _redacted(given, redact, keeps_ids)
        if new != given:
            changed[name] = new
    return structs.replace(value, **changed) if changed else value


def _mapping(value: Mapping[Any, object], redact: Redact, keeps_ids: bool) -> dict[object, object]:
    found: dict[Any, Any] = {}
    for key, inner in value.items():
        # The ids of a framework are kept; what a tool takes as an id may be personal data.
        if keeps_ids and str(key).lower().endswith("id"):
            found[key] = inner
            continue
        name = redact(key) if isinstance(key, str) else key
        while name in found:
            name = f"{name}'"
        found[name] = _redacted(inner, redact, keeps_ids)
    return found
