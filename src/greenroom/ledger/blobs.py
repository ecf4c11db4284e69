"""The bytes of attachments, by digest: registered once, found again in memory or in a folder.

What this process knows is held here; a store keeps it in its own folder, so that another process
that reads the same ledgers finds it. Bytes have no owner: equal ones are the same blob.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from inspect import currentframe
from pathlib import Path
from threading import get_ident

from greenroom.errors import BadAttachment, BadFile
from greenroom.ledger.attachments import MARK, Attachment, shown_size
from greenroom.ledger.text_files import read_regular

MOST_BYTES = 20_000_000
"""The largest attachment allowed: providers take no more in one request."""
FOLDER = "attachments"

_DIGEST = re.compile(r"[0-9a-f]{64}")
_MEDIA_TYPE = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]*")
_BY_SUFFIX = {
    "bmp": "image/bmp",
    "csv": "text/csv",
    "flac": "audio/flac",
    "gif": "image/gif",
    "htm": "text/html",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "m4a": "audio/mp4",
    "md": "text/markdown",
    "mov": "video/quicktime",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "ogg": "audio/ogg",
    "pdf": "application/pdf",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain",
    "wav": "audio/wav",
    "webm": "video/webm",
    "webp": "image/webp",
    "xml": "text/xml",
}
_SAME = {"image/jpg": "image/jpeg", "audio/x-wav": "audio/wav", "audio/mp3": "audio/mpeg"}
_SIGNED = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
    "audio/wav": re.compile(rb"RIFF....WAVE", re.DOTALL),
    "audio/flac": re.compile(rb"fLaC"),
    "application/pdf": re.compile(rb"%PDF-"),
}
"""The first bytes of files of these types."""

_known: dict[str, bytes | Path] = {}
"""What was registered in this process, in order: the bytes, or the file that holds them."""
_passing: set[str] = set()
"""The digests that a run produced: they need no longer be held once a folder keeps them."""
_folders: dict[Path, None] = {}
"""Folders that may hold more bytes."""
_sources: dict[str, Callable[[str], bytes | None]] = {}
"""Other sources of bytes, by name: each is asked for a digest."""


def attach(source: str | Path | bytes, media_type: str = "", *, name: str = "") -> Attachment:
    """A file, or bytes, to send with a message or to return from a mock.

    A relative path is resolved from the calling Python file. Unless given, the media type is taken from the
    file's suffix or its first bytes.
    """
    if isinstance(source, bytes):
        return blob(source, media_type, name)
    if not isinstance(source, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        kind = type(source).__name__
        raise BadAttachment(f"a {kind} cannot be attached; give a path, or bytes: bytes(data).")
    caller = currentframe()
    caller = caller and caller.f_back
    beside: str = caller.f_globals.get("__file__", "") if caller is not None else ""
    return file_blob(Path(beside).parent / source, media_type, name)


def file_blob(path: Path, media_type: str = "", name: str = "") -> Attachment:
    """An attachment made from a file."""
    try:
        data = read_regular(path, MOST_BYTES, "attach something smaller")
    except BadFile as error:
        raise BadAttachment(f"it cannot be attached: {error}") from error
    found = described(data, media_type, name or path.name, str(path))
    if not isinstance(_known.get(found.digest), bytes):
        _known[found.digest] = path.absolute()
    return found


def blob(data: bytes, media_type: str = "", name: str = "") -> Attachment:
    """An attachment made from these bytes, held in memory."""
    found = described(data, media_type, name, name or "the attachment")
    _known[found.digest] = data
    _passing.discard(found.digest)
    return found


def given_blob(data: bytes, media_type: str, name: str = "") -> Attachment:
    """An attachment from a model, a tool or a framework, of any media type."""
    kind = media_type or "application/octet-stream"
    digest = sha256(data).hexdigest()
    held = _known.get(digest)
    if held is None or (isinstance(held, Path) and not held.exists()):
        _known[digest] = data
        _passing.add(digest)
    return Attachment(kind, digest, len(data), name or _usual_name(digest, kind))


def _usual_name(digest: str, media_type: str) -> str:
    suffix = next((end for end, one in _BY_SUFFIX.items() if one == media_type), "bin")
    return f"{digest[:8]}.{suffix}"


def described(data: bytes, media_type: str, name: str, where: str) -> Attachment:
    """The attachment for these bytes; BadAttachment if they are not of the declared type."""
    if not data:
        raise BadAttachment(f"{where} is empty; there is nothing to attach.")
    if len(data) > MOST_BYTES:
        raise BadAttachment(
            f"{where} has {shown_size(len(data))}; attach {shown_size(MOST_BYTES)} at most."
        )
    begins = next((kind for kind, look in _SIGNED.items() if look.match(data)), "")
    claimed = media_type.partition(";")[0].strip().lower()
    claimed = _SAME.get(claimed, claimed) or _BY_SUFFIX.get(Path(name).suffix[1:].lower(), "")
    kind = claimed or begins
    if not kind:
        raise BadAttachment(f"the media type of {where} is unknown; give it: 'image/png'.")
    if not _MEDIA_TYPE.fullmatch(kind):
        raise BadAttachment(f"{where} has the media type {media_type!r}; write it as 'image/png'.")
    if kind != begins and (kind in _SIGNED or (begins and _family(kind) != _family(begins))):
        is_it = f"are {begins}" if begins else f"do not begin as such a file does: {data[:8]!r}"
        raise BadAttachment(f"{where} should be {kind}, but its bytes {is_it}.")
    digest = sha256(data).hexdigest()
    return Attachment(kind, digest, len(data), name or _usual_name(digest, kind))


def _family(media_type: str) -> str:
    return media_type.partition("/")[0]


def data_of(attachment: Attachment) -> bytes:
    """The bytes of an attachment, wherever they are."""
    digest = attachment.digest
    if not _DIGEST.fullmatch(digest):
        raise BadAttachment(f"{digest[:80]!r} is not a digest of an attachment.")
    places = [_known.get(digest), *(_place(folder, digest) for folder in _folders)]
    for place in places:
        data = _read(place) if isinstance(place, Path) else place
        if data is not None and sha256(data).hexdigest() == digest:
            _known.setdefault(digest, place)  # pyright: ignore[reportArgumentType] - it is not None
            return data
    for source in tuple(_sources.values()):
        data = source(digest)
        if data is not None and sha256(data).hexdigest() == digest:
            _known.setdefault(digest, data)
            return data
    held = _known.get(digest)
    if isinstance(held, Path):
        raise BadAttachment(f"{held} was changed or removed after it was attached.")
    raise BadAttachment(
        f"the bytes of {attachment} are not here. They are in the folder {FOLDER!r} of the store that "
        f"the run was recorded in, or next to the ledger; copy that folder too."
    )


def is_any_known() -> bool:
    """Whether this process knows any attachment."""
    return bool(_known)


def known_digest(data: bytes) -> str:
    """The digest of these bytes if this process knows them as an attachment, else ""."""
    digest = sha256(data).hexdigest()
    return digest if digest in _known else ""


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _place(folder: Path, digest: str) -> Path:
    return folder / digest[:2] / digest


class BlobFolder:
    """A folder that keeps bytes by their digests, safe for any number of processes: each file is written whole or not at all."""

    __slots__ = ("_count", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._count = 0
        look_in(path)

    def keep_known(self) -> None:
        """Keep everything registered in this process since the last call."""
        known = len(_known)
        if self._count < known:
            self.keep(list(_known)[self._count : known])
            self._count = known

    def keep_mentioned(self, written: bytes | str) -> None:
        """Keep only the attachments mentioned in what is about to be written."""
        if isinstance(written, bytes):
            written = written.decode() if _MARK_BYTES in written else ""
        self.keep(digests_in(written))

    def keep(self, digests: Iterable[str]) -> None:
        """Keep the bytes of these digests, where they are available."""
        for digest in digests:
            target = _place(self.path, digest)
            try:
                os.utime(target)  # so that a clean-up does not take them for leftovers
            except FileNotFoundError:
                try:
                    data = data_of(Attachment("", digest, 0, digest[:8]))
                except BadAttachment:
                    continue
                _write(target, data)
            if digest in _passing:
                _known[digest] = target
                _passing.discard(digest)

    def files(self) -> Iterator[Path]:
        """The files that hold bytes, each named by its digest."""
        for path in self.path.glob("??/*"):
            if _DIGEST.fullmatch(path.name) and path.parent.name == path.name[:2]:
                yield path


def look_in(folder: Path) -> None:
    """Look for bytes in this folder too."""
    _folders[folder] = None


def ask_also(name: str, source: Callable[[str], bytes | None]) -> None:
    """Ask this source for bytes too; it replaces an earlier one of this name."""
    _sources[name] = source


def at_hand(digest: str) -> bytes | None:
    """The bytes of this digest, if this process has them without asking a source."""
    place = _known.get(digest)
    return _read(place) if isinstance(place, Path) else place


def digests_in(text: str) -> list[str]:
    """The digests of all attachments that the lines of a ledger mention."""
    return list(dict.fromkeys(_MENTIONED.findall(text))) if MARK in text else []


_MARK_BYTES = MARK.encode()
_MENTIONED = re.compile(rf"""{re.escape(MARK)}["']?:\s*["']?([0-9a-f]{{64}})""")


def keep_beside(file: Path, text: str) -> None:
    """Keep the bytes that a file mentions in a folder next to it."""
    if digests := digests_in(text):
        BlobFolder(file.absolute().parent / FOLDER).keep(digests)


def look_beside(file: Path) -> None:
    """Look for bytes in the folder next to a file, if there is one."""
    folder = file.absolute().parent / FOLDER
    if folder.is_dir():
        look_in(folder)


def known_at(digest: str, folder: BlobFolder) -> None:
    """Remember that these bytes are in a folder."""
    _known.setdefault(digest, _place(folder.path, digest))


def _write(target: Path, data: bytes) -> None:
    """Write a file atomically: readers see all of it or nothing."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = target.with_name(f"{target.name}.{os.getpid()}.{get_ident()}.tmp")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
