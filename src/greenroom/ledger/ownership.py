"""What is kept between runs must belong to the user: a link may lead anywhere, and another owner could
read and change it. The folder's parents may be links, and may belong to anyone.
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from greenroom.errors import StoreFailed, StoreRefused


def check_ownership(
    folder: Path, *, files: Iterable[Path] = (), folders: Iterable[Path] = ()
) -> None:
    """Refuse a folder or file of ours that is a link or belongs to another user; it may be missing."""
    for place, is_file in (
        *((one, False) for one in (folder, *folders)),
        *((one, True) for one in files),
    ):
        with suppress(OSError):  # writing there will say what is wrong
            about = os.lstat(place)
            if stat.S_ISLNK(about.st_mode):
                raise StoreRefused(
                    f"{folder} cannot be used: {place} is a symbolic link, which may lead anywhere. "
                    f"Name the folder it leads to ({os.path.realpath(place)}), or remove the link."
                )
            if is_file and not stat.S_ISREG(about.st_mode):
                raise StoreFailed(f"{folder} cannot be used: {place} is not a regular file.")
            if about.st_uid != _user(folder):
                raise StoreRefused(
                    f"{folder} cannot be used: {place} belongs to user {about.st_uid}, and you are "
                    f"{_user(folder)}. Its owner can read and change what is recorded. Keep runs elsewhere "
                    f"(--store DIR, GREENROOM_STORE), or take ownership of it: chown -R."
                )


def _user(folder: Path) -> int:
    """The owner of files that this process writes there; some shared disks give all files one owner."""
    me = os.geteuid()
    if os.lstat(folder).st_uid != me:
        from tempfile import TemporaryFile

        with suppress(OSError), TemporaryFile(dir=folder) as made:
            return os.fstat(made.fileno()).st_uid
    return me
