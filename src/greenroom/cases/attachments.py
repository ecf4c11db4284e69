"""Attachments in files: by a path next to the file, as base64, or by the digest of what was kept."""

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from greenroom.cases.fields import Fields
from greenroom.cases.problems import at, shown, wrong
from greenroom.errors import BadAttachment
from greenroom.ledger.attachments import MARK, Attachment, attachment_in
from greenroom.ledger.blobs import blob, data_of, file_blob, look_beside
from greenroom.ledger.plain import Json, is_array, is_object, plain

_BESIDE: ContextVar[Path | None] = ContextVar("greenroom_beside", default=None)
_SOURCES = ("path", "base64")
_FORM = (*_SOURCES, "media_type", "name")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_WHAT = "a path, or a mapping with `path` or `base64`"


@contextmanager
def attachments_near(file: Path) -> Generator[None]:
    """While a file is read, look for attachments in its folder."""
    folder = file.absolute().parent
    token = _BESIDE.set(folder)
    look_beside(file)
    try:
        yield
    finally:
        _BESIDE.reset(token)


def attachment_from(data: Json, where: str) -> Attachment:
    """The attachment described in `data`."""
    if isinstance(data, str):
        return _file(data, "", "", where)
    if is_object(data) and MARK in data:
        return _marked(data, where)
    fields = Fields(data, where, _FORM, camel=False)
    path, coded = fields.maybe_text("path"), fields.maybe_text("base64")
    media_type, name = fields.text("media_type"), fields.text("name")
    fields.settle()
    if (path is None) == (coded is None):
        raise wrong(where, f"{shown(data)} should be {_WHAT}")
    if path is not None:
        return _file(path, media_type, name, where)
    return from_base64(coded or "", media_type, name, at(where, "base64"))


def with_attachments(data: Json, where: str) -> Json:
    """The data with every `$attachment` in it found, and written as ledgers have it."""
    if is_array(data):
        return [with_attachments(item, at(where, i)) for i, item in enumerate(data)]
    if not is_object(data):
        return data
    if MARK in data:
        return plain(_marked(data, where))
    return {key: with_attachments(item, at(where, key)) for key, item in data.items()}


def from_base64(coded: str, media_type: str, name: str, where: str) -> Attachment:
    """The attachment whose bytes are written as base64, of either alphabet."""
    letters = "".join(coded.split()).rstrip("=").translate(_USUAL_LETTERS)
    try:
        data = b64decode(letters + "=" * (-len(letters) % 4), validate=True)
    except NotBase64 as error:
        raise wrong(where, f"it is not base64: {error}") from error
    return _placed(where, lambda: blob(data, media_type, name))


_USUAL_LETTERS = str.maketrans("-_", "+/")


def as_base64(attachment: Attachment) -> str:
    """The bytes of an attachment as base64."""
    return b64encode(data_of(attachment)).decode()


def _marked(data: dict[str, Json], where: str) -> Attachment:
    """The attachment under `$attachment`: a digest with the facts about the bytes, or another form."""
    given = data[MARK]
    if not isinstance(given, str) or not _DIGEST.fullmatch(given):
        if len(data) > 1:
            raise wrong(where, f"{shown(data)} should have no other key next to `{MARK}`")
        return attachment_from(given, at(where, MARK))
    found = attachment_in(data)
    if found is None:
        raise wrong(
            where, f"{shown(data)} should have `media_type`, `size` and `name` next to the digest"
        )
    return found


def _file(path: str, media_type: str, name: str, where: str) -> Attachment:
    folder = (_BESIDE.get() or Path.cwd()).resolve()
    try:
        target = (folder / path).resolve()
    # Such as a null character or a loop of links.
    except (OSError, ValueError, RuntimeError) as error:
        raise wrong(where, f"{shown(path)} is not a path of a file: {error}") from error
    if not path.strip() or not target.is_relative_to(folder):
        message = f"{shown(path)} is outside the folder of this file"
        raise wrong(where, message, "Put the attachment next to it, or below")
    return _placed(where, lambda: file_blob(target, media_type, name))


def _placed(where: str, make: Callable[[], Attachment]) -> Attachment:
    try:
        return make()
    except BadAttachment as error:
        raise wrong(where, str(error).rstrip(".")) from error
