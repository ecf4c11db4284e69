"""The first refusal of a case, after which nothing may be called, and what refusals of tools say."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from greenroom.agents.remote import Remote
from greenroom.backends.backend import ToolFacts
from greenroom.cases.problems import as_yaml_line
from greenroom.errors import Refusal, ToolRefused
from greenroom.simulation.remedies import run_by_name, run_with_hosts
from greenroom.world.world import ToolRequest


class Refusals(Struct, eq=False):
    """The first refusal of a case. Once set, everything after it is refused."""

    is_set: bool = False
    refusal: Refusal | None = None
    on_set: Callable[[], None] | None = None
    _over: str = ""

    def set(self, refusal: Refusal) -> Refusal:
        """Remember the first refusal, call `on_set`, and return it to be raised."""
        if not self.is_set:
            self.refusal = refusal
            self.is_set = True
            if self.on_set is not None:
                self.on_set()
        return refusal

    def reset(self) -> None:
        """Begin again: the refusal is reported, and does not affect the next work."""
        self.is_set, self.refusal = False, None

    def close(self, case_id: str) -> None:
        """Refuse all further calls: the trial is over, and work left behind must not act after the verdict."""
        self._over = case_id
        self.is_set = True

    @property
    def left_behind(self) -> bool:
        """Whether what calls now was left behind by a trial that was refused nothing."""
        return bool(self._over) and self.refusal is None

    def check(self) -> None:
        """Refuse everything after the first refusal, and after the trial."""
        if self.is_set:
            raise self.refusal or ToolRefused(
                f"the trial of case {self._over!r} is over; no further call is allowed."
            )


def why_refused(request: ToolRequest, case_id: str, lacking: Sequence[ToolFacts]) -> str:
    """Why a call without a mock was refused, with the mocks to paste for all tools that lack one."""
    mocks = "\n".join(
        f"        {facts.name!r}: ...,  # {facts.name}({', '.join(facts.parameters)})"
        f"{' (read only)' if facts.read_only else ''}"
        for facts in lacking
    )
    safe = next((facts.name for facts in lacking if facts.read_only), request.tool)
    instead = f", {run_by_name(safe)}"
    if isinstance(request.origin, Remote):
        named = run_with_hosts(request.tool, request.origin.address.place)
        instead = f" ask the remote agent for real, so that its own tools act: {named}"
    return (
        f"tool {request.tool!r} was called in case {case_id!r}, but has no mock, so it was not run.\n"
        f"  called with: {dict(request.args)!r}\n  add a mock for each tool:\n"
        f"    mocks={{\n{mocks}\n    }}\n"
        f"  in an eval-set file: {as_yaml_line({'mocks': {request.tool: {'value': '...'}}})}\n"
        f"  or{instead}."
    )


def why_refused_directly(tool: str, case_id: str) -> str:
    """Why a tool that code of the case called by itself was refused."""
    return (
        f"code in case {case_id!r} called the tool {tool!r} itself, bypassing the gate, so it was not "
        f"run.\n  Let the agent's model call it, where a mock can answer; or, {run_by_name(tool)}."
    )
