"""The bytes of attachments between this process and its workers: in a folder that all of them read."""

import atexit
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from greenroom.errors import BadAttachment
from greenroom.ledger.attachments import Attachment
from greenroom.ledger.blobs import BlobFolder, data_of, digests_in, known_at


@cache
def shared_folder() -> BlobFolder:
    """The folder of this process; gone when it ends."""
    path = Path(mkdtemp(prefix="greenroom-"))
    atexit.register(rmtree, path, ignore_errors=True)
    return BlobFolder(path)


def hand_over(text: str) -> None:
    """Let workers find what these lines of a ledger mention, and all that is known here."""
    shared_folder().keep_known()
    shared_folder().keep(digests_in(text))


def take_over(line: str) -> None:
    """Load the bytes of attachments that a worker's line mentions, so that the store keeps them."""
    for digest in digests_in(line):
        known_at(digest, shared_folder())


def known_blobs(digests: Iterable[str]) -> dict[str, bytes]:
    """The bytes of these digests, as far as they are available: for a process that cannot read this folder."""
    found: dict[str, bytes] = {}
    for digest in digests:
        with suppress(BadAttachment):
            found[digest] = data_of(Attachment("", digest, 0, digest[:8]))
    return found
