"""The author's files are imported inside the fence: loading an agent connects to nothing and changes nothing.

A file that must fetch something when it is imported needs permission: `--allow-import-network`, or a
program that imports it by itself and hands over the agent.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, nullcontext

from greenroom.errors import FenceBreach, ImportRefused, ToolRefused
from greenroom.simulation.fence import FencedScope, RunScope, put_up
from greenroom.world.presence import guarded

_allowed: list[bool] = []


def allow_import_network() -> None:
    """Let files that are imported from now on connect and start processes; tools stay closed."""
    _allowed.append(True)


def is_import_allowed() -> bool:
    """Whether imported files may connect and start processes."""
    return bool(_allowed)


@contextmanager
def fenced_import(what: str, *, runs_loop: bool = True) -> Generator[None]:
    """Import a file, or call a factory in it. What it tries to do is refused, and named.

    With `runs_loop` it may run event loops of its own, as `asyncio.run` does, though one is running.
    """
    scope, refused = FencedScope(f"import of {what}"), list[str]()

    def no_tools(_: object, tool: str) -> None:
        refused.append(f"called the tool {tool!r}")
        raise ToolRefused(f"tool {tool!r} was called while {what} was imported; it was not run.")

    scope.body_guard = no_tools
    put_up()
    try:
        apart = nullcontext() if is_import_allowed() else RunScope(scope)
        with apart, guarded(no_tools), _without_loop() if runs_loop else nullcontext():
            yield
    except (FenceBreach, ToolRefused) as error:
        raise _refusal(what, scope, refused) from error
    except Exception as error:
        # Whatever became of a refusal on its way up, it is what has to be mended.
        if scope.breach is not None or refused:
            raise _refusal(what, scope, refused) from error
        raise
    finally:
        # A thread that was started here lives on, and belongs to no case.
        scope.is_void = True
    if scope.breach is not None or refused:
        raise _refusal(what, scope, refused)


def _refusal(what: str, scope: FencedScope, refused: list[str]) -> ImportRefused:
    if scope.breach is None:
        tried = refused[0] if refused else "reached for the outside"
        return ImportRefused(
            f"importing {what} {tried}, which was not run. Call tools from the agent, not while its "
            f"file is loaded."
        )
    return ImportRefused(
        f"importing {what} tried {scope.breach}; it was refused, because files are imported "
        f"inside the fence. Do it in a function or tool instead, or allow it with "
        f"--allow-import-network (in Python: import the file yourself and hand over the agent)."
    )


@contextmanager
def _without_loop() -> Generator[None]:
    """As if no event loop were running here."""
    running = asyncio._get_running_loop()  # pyright: ignore[reportPrivateUsage]
    asyncio._set_running_loop(None)  # pyright: ignore[reportPrivateUsage]
    try:
        yield
    finally:
        asyncio._set_running_loop(running)  # pyright: ignore[reportPrivateUsage]
