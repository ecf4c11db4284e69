"""What is kept between runs is the user's own: a link may lead anywhere, and what others own they can
read and change. Parents of the folder may be links, and belong to whom they like.
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from greenroom.errors import StoreFailed, StoreRefused


def check_ownership(
    folder: Path, *, files: Iterable[Path] = (), folders: Iterable[Path] = ()
) -> None:
    """Refuse a folder of ours that is a link or somebody else's; what is not there yet is nobody's."""
    for place, is_file in (
        *((one, False) for one in (folder, *folders)),
        *((one, True) for one in files),
    ):
        with suppress(OSError):  # who writes there will say what is wrong with it
            _check(place, folder, is_file=is_file)


def _check(place: Path, folder: Path, *, is_file: bool) -> None:
    about = os.lstat(place)
    if stat.S_ISLNK(about.st_mode):
        raise StoreRefused(
            f"{folder} cannot be used: {place} is a symbolic link, which may lead anywhere. "
            f"Name the folder it leads to ({os.path.realpath(place)}), or take the link away."
        )
    if is_file and not stat.S_ISREG(about.st_mode):
        raise StoreFailed(f"{folder} cannot be used: {place} is no plain file.")
    if about.st_uid != _user(folder):
        raise StoreRefused(
            f"{folder} cannot be used: {place} belongs to user {about.st_uid}, and you are "
            f"{_user(folder)}. Who owns it can read and change what is recorded. Keep runs elsewhere "
            f"(--store DIR, GREENROOM_STORE), or make it yours: chown -R."
        )


def _user(folder: Path) -> int:
    """As whom this process leaves files there; some shared disks give every file one owner."""
    me = os.geteuid()
    if os.lstat(folder).st_uid != me:
        with suppress(OSError), TemporaryFile(dir=folder) as made:
            return os.fstat(made.fileno()).st_uid
    return me
