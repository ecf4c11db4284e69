"""The base of backends for foreign frameworks, and the small parts that their gates share.

A backend says how it describes its agent, which tools it knows, and how it runs one invocation;
`Invocation` does what comes before and after that.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from msgspec import Struct
from pydantic_core import to_jsonable_python

from greenroom.backends.attached import block_attachment, with_references
from greenroom.backends.backend import Advance, Feature, Interception, Resumption, ToolFacts
from greenroom.backends.invocation import Check, Invocation, Progress
from greenroom.ledger.identity import digest_of
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, as_text
from greenroom.ledger.records import json_fallback
from greenroom.world.world import World

T = TypeVar("T")


class ForeignBackend(ABC):
    """Runs agents of a framework that keeps its own history.

    `memory` names that history in ledgers. A framework declares its name and features, and defines
    `describe`, `run` and, where its tools are known before a run, `list_tools`.
    """

    name: ClassVar[str]
    models: ClassVar[Interception] = "routed"
    tool_calls: ClassVar[Interception] = "routed"
    # Exact at pauses and between turns; a run interrupted while the framework works must start again.
    resumes: ClassVar[Resumption] = "checkpoint"
    supports: ClassVar[frozenset[Feature]]
    memory: ClassVar[str]
    check_approval: ClassVar[Check | None] = None
    """Checks the user's answer to an approval, if a framework accepts more than yes and no."""

    @abstractmethod
    def describe(self) -> dict[str, Json]:
        """The agent as JSON, with everything that affects what it does."""

    @abstractmethod
    async def run(self, invocation: Invocation) -> Progress:
        """Run the agent to its answer or its next pause."""

    def list_tools(self) -> Mapping[str, ToolFacts] | None:
        """The tools the agent may call; None if they are not known before it runs."""
        return None

    def install_seam(self) -> None:  # noqa: B027 - a framework without a seam has none to put in
        """Install the framework's seam, if the gates of its agents need it."""

    @cached_property
    def snapshot(self) -> dict[str, Json]:
        """The agent as JSON, for the first event of a ledger."""
        return {"framework": self.name, **self.describe()}

    @cached_property
    def digest(self) -> str:
        """Changes whenever the agent does."""
        return digest_of(self.snapshot)

    @cached_property
    def tools(self) -> Mapping[str, ToolFacts] | None:
        """The tools the agent may call; None if they are not known before it runs."""
        return self.list_tools()

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        """Continue the open invocation, or begin the next one with what the user said last."""
        self.install_seam()
        check, replays = type(self).check_approval, self.resumes == "by_replay"
        invocation = Invocation(ledger, world, self.memory, check, replays=replays)
        return await invocation.advance(lambda: self.run(invocation))


class Origin(Struct, frozen=True):
    """The author's function behind a framework's tool, recognised when it is passed as its mock."""

    fn: Any
    tool: Any = None
    """The tool object around the function, where the author made one."""


class Spec(Struct, frozen=True):
    """A tool as the framework described it to its model."""

    name: str
    description: str
    parameters: dict[str, Json]


def message_data(role: str, said: Json) -> dict[str, Json]:
    """A message as a dict."""
    return {"role": role, "content": as_text(said)}


def jsonable(value: Any) -> Json:
    """A framework's value as plain JSON; a value without a JSON form becomes its `str`."""
    return to_jsonable_python(value, fallback=json_fallback, by_alias=True)


def result_as_json(value: Any) -> Json:
    """A tool's result as JSON; attachments in it become references."""
    return with_references(jsonable(value), block_attachment)
