"""Who started a run, and on which commit: a team needs to know this about each other's runs."""

import os
import re
from getpass import getuser
from pathlib import Path

_PEOPLE = ("GREENROOM_USER", "GITHUB_ACTOR", "GITLAB_USER_LOGIN")
_COMMITS = ("GITHUB_SHA", "CI_COMMIT_SHA")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def who() -> str:
    """The person or program that runs this: as a variable names them, else the user of this machine."""
    named = next((os.environ[name] for name in _PEOPLE if os.environ.get(name)), "")
    if named:
        return named
    try:
        return getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return ""


def commit() -> str:
    """The commit that is checked out here, shortened; empty where that cannot be known."""
    named = next((os.environ[name] for name in _COMMITS if os.environ.get(name)), "")
    try:
        found = named or _checked_out(Path.cwd())
    except (OSError, ValueError):
        return ""
    return found[:12] if _COMMIT.fullmatch(found) else ""


def _checked_out(start: Path) -> str:
    """The commit as Git's files have it, without starting Git."""
    git = next((one / ".git" for one in (start, *start.parents) if (one / ".git").exists()), None)
    if git is None:
        return ""
    if git.is_file():  # of a worktree or a submodule
        git = (
            git.parent / git.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
        ).resolve()
    head = (git / "HEAD").read_text(encoding="utf-8").strip()
    name = head.removeprefix("ref: ")
    if name == head:
        return head
    shared = git
    if (git / "commondir").is_file():
        shared = (git / (git / "commondir").read_text(encoding="utf-8").strip()).resolve()
    for place in (git, shared):
        if (place / name).is_file():
            return (place / name).read_text(encoding="utf-8").strip()
    packed = (shared / "packed-refs").read_text(encoding="utf-8").splitlines()
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")
