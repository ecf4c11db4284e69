"""Folders of what Greenroom keeps between runs: only their owner can read them, and git ignores them."""

from contextlib import suppress
from pathlib import Path

HOME = ".greenroom"
"""The folder, in the current one, that Greenroom keeps everything in unless another is named."""


def make_private(folder: Path, *inside: str) -> Path:
    """Make a folder that only its owner can read and that git ignores, and folders inside it; the innermost.

    Another folder than `.greenroom` that exists already is left as its owner has made it.
    """
    if not make_home(folder) and not folder.exists():
        _make(folder)
    for name in ("", *inside):
        folder /= name
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def make_home(folder: Path) -> bool:
    """Make `.greenroom` private if this is it, or a folder directly inside it; whether that is so.

    One that has no `.gitignore` is made private again: its owner, who wants another mode or another rule
    for git, leaves that file there.
    """
    home = folder.parent if folder.parent.name == HOME else folder
    if home.name != HOME:
        return False
    if not home.exists():
        _make(home)
    elif not home.is_symlink() and not (home / ".gitignore").exists():
        with suppress(OSError):  # a store on a read-only disk is still read
            home.chmod(0o700)
            _ignore(home)
    return True


def _make(folder: Path) -> None:
    # Another process may create it at the same moment.
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    _ignore(folder)


def _ignore(folder: Path) -> None:
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
