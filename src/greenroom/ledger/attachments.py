"""Attachments as the ledger mentions them: by the digest of their bytes, never the bytes themselves.

In an event or a message an attachment has its own field. Inside a JSON value (a tool's result,
the output of a node) it is an object with `$attachment`. The bytes are kept separately: see `blobs`.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from greenroom.ledger.plain import Json, as_text, is_array, is_object, plain
from greenroom.ledger.validation import PydanticStruct

MARK = "$attachment"
"""The key of an attachment's digest in a JSON value."""

Modality = Literal["text", "image", "audio", "video", "pdf", "structured", "code", "file"]
"""What an agent takes or gives: text, data, code, or an attachment of this kind; `file` is any other."""


class Attachment(PydanticStruct, frozen=True, rename={"digest": MARK}):
    """An image, a sound, a document or any other bytes, identified by their SHA-256."""

    media_type: str
    digest: str
    size: int
    name: str = ""

    @property
    def data(self) -> bytes:
        """The bytes; BadAttachment if they cannot be found."""
        from greenroom.ledger.blobs import data_of  # most runs have no attachments

        return data_of(self)

    @property
    def modality(self) -> Modality:
        """What kind of attachment it is to an agent: an image, a sound, ..."""
        kind, _, rest = self.media_type.partition("/")
        if kind in ("image", "audio", "video", "text"):
            return kind  # pyright: ignore[reportReturnType] - one of the four
        return "pdf" if rest == "pdf" else "structured" if rest == "json" else "file"

    def __str__(self) -> str:
        return f"{self.name} ({self.media_type}, {shown_size(self.size)})"


def shown_size(size: int) -> str:
    """A number of bytes as a person would say it: 312 bytes, 4.2 kB, 1.5 MB."""
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1000:.1f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


def attachment_in(value: Json) -> Attachment | None:
    """The attachment that a JSON value describes; None if it describes none."""
    if not is_object(value) or not isinstance(value.get(MARK), str):
        return None
    try:
        return msgspec.convert(value, Attachment)
    except msgspec.ValidationError:
        return None


def attachments_in(value: Json) -> tuple[Attachment, ...]:
    """All attachments in a JSON value, each once."""
    return text_and_attachments(value)[1]


def message_value(text: str, attachments: Iterable[Attachment]) -> Json:
    """A message as one JSON value: the text alone, or a list of the text and its attachments."""
    given: list[Json] = list(map(plain, attachments))
    if not given:
        return text
    return [text, *given] if text else given


def text_and_attachments(value: Json) -> tuple[str, tuple[Attachment, ...]]:
    """A value as a model sees it: its text, and the attachments that are in it.

    The inverse of `message_value`. In any other value the name of an attachment takes its place.
    """
    if isinstance(value, str):
        return value, ()
    text = as_text(value)
    if MARK not in text:
        return text, ()
    items = value if is_array(value) else []
    parts = [item if isinstance(item, str) else attachment_in(item) for item in items]
    if parts and None not in parts:
        said = [part for part in parts if isinstance(part, str)]
        return "\n".join(said), tuple(part for part in parts if isinstance(part, Attachment))
    found: dict[Attachment, None] = {}
    return as_text(_named(value, found)), tuple(found)


def named(value: Json) -> Json:
    """The value as readers see it, with each attachment replaced by its name."""
    return _named(value, {})


def _named(value: Json, found: dict[Attachment, None]) -> Json:
    """The value with names in place of attachments, which are added to `found`."""
    if is_array(value):
        return [_named(item, found) for item in value]
    if not is_object(value):
        return value
    one = attachment_in(value)
    if one is None:
        return {key: _named(item, found) for key, item in value.items()}
    found[one] = None
    return f"[attached: {one}]"
