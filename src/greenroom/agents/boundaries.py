"""A boundary: a part whose code runs in its own process, and where that process finds the code."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from types import ModuleType
from typing import Any, Literal, cast

from msgspec import Struct

from greenroom.agents.flow import Flow, OnePart, as_flow
from greenroom.agents.guards import timeout
from greenroom.agents.signature import function_name
from greenroom.errors import BadAgent
from greenroom.ledger.functions import Anything
from greenroom.world.modules import MAIN, load_as, named_in, source_of, values_in_modules

_OURS = "greenroom."
Isolation = Literal["process", "none"]


class Apart(OnePart, frozen=True, eq=False):
    """A part whose code runs in another process; this process asks models and calls tools."""

    isolation: Isolation = "process"
    command: tuple[str, ...] = ()
    """The command that starts the process, if it is not this Python."""

    @property
    def segment(self) -> str:
        """`apart/clerk` is the agent `clerk` behind a boundary."""
        return "apart"

    @property
    def is_elsewhere(self) -> bool:
        """Whether there is another process."""
        return self.isolation != "none"

    def facts(self) -> dict[str, Any]:
        """Where its code runs."""
        return {
            "isolation": self.isolation,
            **({"command": list(self.command)} if self.command else {}),
        }

    def __repr__(self) -> str:
        if self.command:
            return f"apart({self.body!r}, command={list(self.command)!r})"
        return f"apart({self.body!r})" if self.is_elsewhere else f"apart({self.body!r}, 'none')"


def apart(
    part: Anything,
    isolation: Isolation = "process",
    *,
    command: Sequence[str] = (),
    seconds: float | None = None,
) -> Apart:
    """Run the code of `part` in its own process: `apart(heavy, seconds=60)`.

    Its steps, taps and decisions are called there, inside the fence; their functions are found by module and
    name. This process asks models and calls tools, through the same gate, and everything is recorded in the
    same ledger. Values cross the boundary as JSON. If the process dies, the step that ran there has failed.

    `command` starts the process in another way, for example in a container: it must end in `greenroom node`,
    which communicates on standard input and output. `seconds` is how long the part may work, as with
    `timeout`; a blocked part is ended then, and the start of the process does not count. `isolation="none"`
    runs it here, to compare.
    """
    if isolation not in ("process", "none"):
        raise BadAgent(f"apart(..., isolation={isolation!r}) should be 'process' or 'none'.")
    words = _words(command)
    if words and isolation == "none":
        raise BadAgent("apart(...) has a command and isolation='none'; give one of them.")
    body = as_flow(part)
    return Apart(body if seconds is None else timeout(body, seconds), isolation, words)


def _words(command: object) -> tuple[str, ...]:
    if isinstance(command, str) or not isinstance(command, Sequence):
        raise BadAgent(
            f"apart(..., command={command!r}) should be a list of words: "
            f'["docker", "run", "-i", "image", "greenroom", "node"].'
        )
    words = tuple(cast("Sequence[Any]", command))
    for word in words:
        if not isinstance(word, str) or not word or "\0" in word:
            raise BadAgent(
                f"apart(..., command=...) has {word!r}; give strings that are not empty."
            )
    return words


# Where the code of a part is found by another process


class CodePlace(Struct, frozen=True):
    """A function's module and file, and the name there of the function or of a flow that calls it."""

    module: str
    file: str
    name: str
    node: str = ""
    """The node of that flow."""
    role: str = ""
    """The role of the function in the node."""

    def find(self) -> Callable[..., object]:
        """The function in this process; its module is imported if it is not yet."""
        found: Any = load_as(self.module, self.file)
        for part in self.name.split("."):
            found = getattr(found, part)
        return dict(_code_in(found))[self.node, self.role] if self.role else found


@lru_cache(maxsize=1024)
def code_place(fn: Callable[..., object]) -> CodePlace:
    """Where another process finds a function or a tool; LookupError if it cannot."""
    named = named_in(fn)
    if named is not None:
        return _placed(*named)
    for module, attr, value in values_in_modules():
        if value is fn:
            return _placed(module, attr)
        if isinstance(value, Flow) and value.is_part and not module.__name__.startswith(_OURS):
            for (node, role), code in _code_in(value):
                if code is fn:
                    return _placed(module, attr, node, role)
    where = (
        "a script that is run, or a notebook"
        if getattr(fn, "__module__", "") == MAIN
        else "no module"
    )
    raise LookupError(f"{function_name(fn)!r} is in {where}, where another process cannot find it")


def _placed(module: ModuleType, name: str, node: str = "", role: str = "") -> CodePlace:
    return CodePlace(module.__name__, source_of(module), name, node, role)


def _code_in(flow: Flow) -> Iterator[tuple[tuple[str, str], Callable[..., object]]]:
    """The functions of a flow, by node and by their role in it."""
    from greenroom.agents.graph import compile_flow  # few functions are looked for inside flows

    with suppress(BadAgent):  # a flow that cannot be run is not the one that is running
        for node in compile_flow(flow).nodes():
            for role, fn in node.flow.code().items():
                yield (node.id, role), fn
