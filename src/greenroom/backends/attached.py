"""Attachments in the values of frameworks: written in a framework's own form, and found there again.

A framework's history holds the bytes themselves, as base64. A ledger holds a reference instead, from
which the same base64 is made again.
"""

import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from typing import Any, cast

from greenroom.errors import BadAttachment
from greenroom.ledger.attachments import MARK, Attachment, attachment_in, attachments_in
from greenroom.ledger.blobs import data_of, given_blob, is_any_known, known_digest
from greenroom.ledger.plain import Json, is_array, is_object, plain

_DATA_URI = re.compile(
    r"data:(?P<kind>[\w.+-]+/[\w.+-]+)(?:;[\w=.+-]+)*;base64,(?P<data>.*)", re.DOTALL
)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{256,}={0,2}")
_WRITTEN = "written"
_TYPES = ("mime_type", "media_type", "mimeType")


def with_files(value: Json, make: Callable[[Attachment], Any]) -> Any:
    """The value with each attachment in it converted by `make`."""
    return _made(value, make) if attachments_in(value) else value


def _made(value: Json, make: Callable[[Attachment], Any]) -> Any:
    if is_array(value):
        return [_made(item, make) for item in value]
    if not is_object(value):
        return value
    found = attachment_in(value)
    if found is not None:
        return make(found)
    return {key: _made(item, make) for key, item in value.items()}


def with_references(value: Any, find: Callable[[Any], Attachment | None]) -> Any:
    """The value with a reference in place of everything that `find` recognises as an attachment."""
    found = find(value)
    if found is not None:
        return plain(found)
    if isinstance(value, Mapping):
        inside = cast("Mapping[Any, Any]", value)
        return {key: with_references(item, find) for key, item in inside.items()}
    if isinstance(value, list | tuple):
        return [with_references(item, find) for item in cast("list[Any]", value)]
    return value


# Blocks of a message's content, as most providers write them


def data_uri(attachment: Attachment) -> str:
    """The attachment as a data URI."""
    return f"data:{attachment.media_type};base64,{b64encode(attachment.data).decode()}"


def chat_content(text: str, attachments: tuple[Attachment, ...]) -> Json:
    """What a user says, in the form of chat endpoints."""
    if not attachments:
        return text
    said: list[Json] = [{"type": "text", "text": text}] if text else []
    return [*said, *map(_chat_block, attachments)]


def _chat_block(one: Attachment) -> Json:
    if one.modality == "image":
        return {"type": "image_url", "image_url": {"url": data_uri(one)}}
    if one.media_type in ("audio/wav", "audio/mpeg"):
        sound = "wav" if one.media_type == "audio/wav" else "mp3"
        coded = b64encode(one.data).decode()
        return {"type": "input_audio", "input_audio": {"data": coded, "format": sound}}
    return {"type": "file", "file": {"filename": one.name, "file_data": data_uri(one)}}


def block_attachment(block: Any) -> Attachment | None:
    """The attachment in a block, in any of the forms that providers and frameworks use."""
    if not isinstance(block, Mapping):
        return None
    data = cast("Mapping[str, Any]", block)
    name = str(data.get("filename") or data.get("name") or "")
    for key in ("image_url", "file_data", "url", "video_url", "audio_url"):
        given: Any = data.get(key)
        given = cast("Mapping[str, Any]", given).get("url") if isinstance(given, Mapping) else given
        if isinstance(given, str) and (uri := _DATA_URI.fullmatch(given)):
            return _decoded(uri["data"], uri["kind"], name)
    media_type = next((str(data[key]) for key in _TYPES if data.get(key)), "")
    coded = data.get("base64") or data.get("data")
    if not media_type and coded and data.get("format"):
        media_type = f"audio/{str(data['format']).replace('mp3', 'mpeg')}"
    if isinstance(coded, str) and media_type:
        return _decoded(coded, media_type, name)
    inside = (data.get(key) for key in ("source", "file", "input_audio"))
    return next((found for one in inside if (found := block_attachment(one)) is not None), None)


def content_attachments(content: Any) -> tuple[Attachment, ...]:
    """The attachments among the blocks of a message's content."""
    if not isinstance(content, list):
        return ()
    found = map(block_attachment, cast("list[Any]", content))
    return tuple(one for one in found if one is not None)


def _decoded(coded: str, media_type: str, name: str) -> Attachment | None:
    data = _bytes_in(coded)
    return None if not data else given_blob(data, media_type, name)


def _bytes_in(coded: str) -> bytes | None:
    letters = coded.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return b64decode(letters + "=" * (-len(letters) % 4), validate=True)
    except (NotBase64, ValueError):
        return None


# Histories


def slim(history: Json) -> Json:
    """A history with references in place of attachments' bytes; each says which bytes, and in which encoding.

    Other base64 stays, such as what a provider has encrypted.
    """
    return _slim(history) if is_any_known() else history


def _slim(value: Json) -> Json:
    if isinstance(value, str):
        return _referred(value) if len(value) >= 256 else value
    if is_array(value):
        return [_slim(item) for item in value]
    return {key: _slim(item) for key, item in value.items()} if is_object(value) else value


def _referred(text: str) -> Json:
    head, coded = "", text
    if (found := _DATA_URI.fullmatch(text)) is not None:
        head, coded = text[: found.start("data")], found["data"]
    elif not _BASE64.fullmatch(text):
        return text
    data = _bytes_in(coded)
    way = next((one for one in _ENCODINGS if data and _ENCODINGS[one](data) == coded), "")
    digest = known_digest(data) if data and way else ""
    return {MARK: digest, _WRITTEN: f"{way}:{head}"} if digest else text


_ENCODINGS: Mapping[str, Callable[[bytes], str]] = {
    "base64": lambda data: b64encode(data).decode(),
    "urlsafe": lambda data: urlsafe_b64encode(data).decode(),
    "bare": lambda data: b64encode(data).decode().rstrip("="),
}


def whole(history: Json) -> Json:
    """The history as the framework wrote it; BadAttachment if the bytes are gone."""
    if is_array(history):
        return [whole(item) for item in history]
    if not is_object(history):
        return history
    written = history.get(_WRITTEN)
    if len(history) == 2 and isinstance(history.get(MARK), str) and isinstance(written, str):
        way, _, head = written.partition(":")
        if way not in _ENCODINGS:
            raise BadAttachment(f"bytes that were written as {way!r} cannot be read.")
        found = Attachment("", str(history[MARK]), 0, "what the framework remembers")
        return head + _ENCODINGS[way](data_of(found))
    return {key: whole(item) for key, item in history.items()}
