"""Node paths: where in a trial something happened.

`@2/seq.1/par.0/loop#3/clerk~2` reads: second invocation, second part of a sequence, first branch of
a parallel, third round of a loop, the agent `clerk`, second attempt. User agents' runs begin with
their own name instead of a bare `@`: `ask@1f0c9a/…` answers the yield `1f0c9a`.
"""

from collections.abc import Callable

_BRANCH = "/par."


def branch_of(path: str) -> str:
    """The innermost parallel branch that contains a path, or "" if none does."""
    start = path.rfind(_BRANCH)
    if start < 0:
        return ""
    end = path.find("/", start + len(_BRANCH))
    return path if end < 0 else path[:end]


def parent_branch(branch: str) -> str:
    """The branch in which this branch was forked, or ""."""
    return branch_of(branch[: branch.rfind(_BRANCH)])


def fork_of(branch: str) -> str:
    """The path of the fork that this branch belongs to."""
    return branch[: branch.rfind(".")]


def branches_of(path: str) -> list[str]:
    """All branches that contain a path, innermost first."""
    found: list[str] = []
    branch = branch_of(path)
    while branch:
        found.append(branch)
        branch = parent_branch(branch)
    return found


def above_of(path: str) -> list[str]:
    """Every place above a path: `@1`, `@1/seq.0` and so on."""
    return [path[:end] for end, sign in enumerate(path) if sign == "/"]


def within(path: str, root: str) -> bool:
    """Whether `path` is `root` or below it."""
    return path == root or path.startswith(f"{root}/") or root == ""


def free_path(first: str, is_taken: Callable[[str], bool]) -> str:
    """The path of a node's next visit: `first`, or the first unused one of `first#2`, `first#3` …"""
    path, visit = first, 1
    while is_taken(path):
        visit += 1
        path = f"{first}#{visit}"
    return path


def root_of(path: str) -> str:
    """The invocation a path belongs to."""
    return path.split("/", 1)[0]
