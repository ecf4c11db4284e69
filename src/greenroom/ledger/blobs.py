"""The bytes of attachments, by digest: made known once, found again in memory or in a folder.

What is known in this process is held here; a store keeps it in a folder of its own, so that another process
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
"""No attachment is larger: providers take no more in a question."""
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
"""How files of these types begin, whatever wrote them."""

_known: dict[str, bytes | Path] = {}
"""What was made known in this process, in that order: bytes, or the file that holds them."""
_passing: set[str] = set()
"""What a run has made: it need not be held any longer once a folder keeps it."""
_folders: dict[Path, None] = {}
"""Where else bytes may lie."""
_sources: dict[str, Callable[[str], bytes | None]] = {}
"""Who else may have bytes, by a name of its own: each is asked for a digest."""


def attach(source: str | Path | bytes, media_type: str = "", *, name: str = "") -> Attachment:
    """A file, or bytes, to be sent along with a message or given back by a mock.

    A relative path is looked for next to the Python file that says it. The media type is that of the file's
    suffix or of its first bytes unless it is given.
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
    """The attachment that a file is."""
    try:
        data = read_regular(path, MOST_BYTES, "attach something smaller")
    except BadFile as error:
        raise BadAttachment(f"it cannot be attached: {error}") from error
    found = described(data, media_type, name or path.name, str(path))
    if not isinstance(_known.get(found.digest), bytes):
        _known[found.digest] = path.absolute()
    return found


def blob(data: bytes, media_type: str = "", name: str = "") -> Attachment:
    """The attachment that these bytes are, held in memory."""
    found = described(data, media_type, name, name or "the attachment")
    _known[found.digest] = data
    _passing.discard(found.digest)
    return found


def given_blob(data: bytes, media_type: str, name: str = "") -> Attachment:
    """The attachment that a model, a tool or a framework gave, whatever it is."""
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
    """What is known of these bytes; BadAttachment if they are not what they are said to be."""
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
    """The bytes of an attachment, wherever they lie."""
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
        f"the bytes of {attachment} are not here. They lie in the folder {FOLDER!r} of the store that "
        f"the run was recorded in, or next to the ledger: copy that too."
    )


def is_any_known() -> bool:
    """Whether this process knows of any attachment at all."""
    return bool(_known)


def known_digest(data: bytes) -> str:
    """The digest of bytes that this process knows as an attachment; "" if it does not."""
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
    """A folder that keeps bytes by their digests, each whole or not at all, for any number of processes."""

    __slots__ = ("_count", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._count = 0
        look_in(path)

    def keep_known(self) -> None:
        """Keep whatever was made known in this process since the last time."""
        known = len(_known)
        if self._count < known:
            self.keep(list(_known)[self._count : known])
            self._count = known

    def keep_mentioned(self, written: bytes | str) -> None:
        """Keep what is about to be written down mentions, and nothing else that this process knows."""
        if isinstance(written, bytes):
            written = written.decode() if _MARK_BYTES in written else ""
        self.keep(digests_in(written))

    def keep(self, digests: Iterable[str]) -> None:
        """Keep the bytes of these digests, as far as they are at hand."""
        for digest in digests:
            target = _place(self.path, digest)
            try:
                os.utime(target)  # so that they are not taken for left over
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
    """Ask this source for bytes too; one that had this name before is asked no more."""
    _sources[name] = source


def at_hand(digest: str) -> bytes | None:
    """The bytes of this digest, if this process can get at them without asking any source."""
    place = _known.get(digest)
    return _read(place) if isinstance(place, Path) else place


def digests_in(text: str) -> list[str]:
    """The digests of all attachments that the lines of a ledger mention."""
    return list(dict.fromkeys(_MENTIONED.findall(text))) if MARK in text else []


_MARK_BYTES = MARK.encode()
_MENTIONED = re.compile(rf"""{re.escape(MARK)}["']?:\s*["']?([0-9a-f]{{64}})""")


def keep_beside(file: Path, text: str) -> None:
    """Keep the bytes that a file is to mention, in a folder next to it."""
    if digests := digests_in(text):
        BlobFolder(file.absolute().parent / FOLDER).keep(digests)


def look_beside(file: Path) -> None:
    """Look for bytes in the folder next to a file, if there is one."""
    folder = file.absolute().parent / FOLDER
    if folder.is_dir():
        look_in(folder)


def known_at(digest: str, folder: BlobFolder) -> None:
    """Know that these bytes lie in a folder."""
    _known.setdefault(digest, _place(folder.path, digest))


def _write(target: Path, data: bytes) -> None:
    """Write a file at once: readers see all of it or nothing."""
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
