"""The agents that the suite needs, described independently of any framework.

A harness turns a `Blueprint` into an agent of its framework, with a model that answers from the
blueprint's lines. Such a model keeps no position: the n-th line answers a request whose history already
has n replies, so that one agent object serves many trials at once.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from greenroom.ledger.messages import ToolCall, Usage
from greenroom.ledger.plain import Json

USAGE = Usage(7, 3)
"""The usage that every scripted reply reports."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """A reply that hands the conversation to a helper, in the framework's own way."""

    to: str


@dataclass(frozen=True, slots=True)
class Structured:
    """A reply in the blueprint's output type, in the way the framework's models return one."""

    value: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Hang:
    """A reply that never comes: the model awaits forever."""


Line = str | ToolCall | Sequence[ToolCall] | HandOver | Structured | Hang | Exception
"""One reply: a string, one or several calls, or one of the above; an exception is raised.

A call's `id` must be kept: providers give ids, and the suite looks for them in the ledger.
"""

ToolKind = Literal["plain", "approval", "question"]


@dataclass(frozen=True, slots=True)
class ToolPlan:
    """A tool around a plain function, sync or async.

    An `approval` tool asks the user before it runs. The result of a `question` tool is the user's answer, and
    its function never runs.
    """

    fn: Callable[..., Any]
    kind: ToolKind = "plain"

    @property
    def name(self) -> str:
        """The name its model knows it by."""
        return self.fn.__name__


@dataclass
class Verdict:
    """The output type of agents that answer with data."""

    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """An agent to build."""

    lines: Sequence[Line]
    tools: Sequence[ToolPlan] = ()
    name: str = "clerk"
    instructions: str = "Be kind."
    helpers: Sequence["Blueprint"] = ()
    """Agents that this one can hand over to (`handoffs`)."""
    output: type | None = None
    """The type of its answer: `Verdict` (`structured_output`)."""
    streams: bool = False
    """Whether its model streams text in pieces, see `pieces` (`streaming`)."""
    swallows: bool = False
    """Whether the author's own handler turns every tool's failure into "all fine"
    (`error_handlers`)."""
    writes: str = ""
    """The key of the session's state under which its answer is stored (`state`)."""
    awaits_input: bool = False
    """Whether it waits for the next message inside its run, after its first answer
    (`message_waits`)."""


@dataclass(frozen=True, slots=True)
class Bypass:
    """A way around the tool gate that a framework offers.

    `build` makes an agent that would run a body of the desk when it gets its first message. The other fields
    belong to its case, so that only the tool gate prevents the call.
    """

    build: Callable[["Desk"], Any]
    mocks: Mapping[str, Any] = field(default_factory=dict[str, Any])
    allow_tools: Collection[str] = ()


class Harness(Protocol):
    """What the suite needs to know about a framework.

    If the framework's innermost calls have a seam, also set `seam`, a tuple of its places, each as
    `module:Class.method`.
    """

    @property
    def backend(self) -> Any:
        """The class of the backend under test; what it declares decides what is tested. May be a plain attribute."""
        ...

    def build(self, plan: Blueprint) -> Any:
        """A new agent of the framework, or a backend around one."""
        ...

    async def run_bare(self, agent: Any, says: str) -> None:
        """Let the framework itself run the agent on one message, without a World."""
        ...

    def bypasses(self) -> Mapping[str, Bypass]:
        """Every way around the tool gate that you can think of, by name."""
        ...


class Desk:
    """Tools whose bodies leave a mark in a file when they run."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "canary"

    @property
    def marks(self) -> list[str]:
        """The marks of bodies that ran, in order."""
        return self._file.read_text(encoding="utf-8").splitlines() if self._file.exists() else []

    def mark(self, text: str) -> str:
        """Leave a mark, as a side effect would."""
        with self._file.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
        return f"really {text}"

    @property
    def weather(self) -> Callable[..., Any]:
        """A tool with an argument that has a default."""

        def weather(city: str, days: int = 1) -> str:
            """The weather."""
            return self.mark(f"weather {city} {days}")

        return weather

    @property
    def later(self) -> Callable[..., Any]:
        """An async tool."""

        async def later(minutes: int) -> str:
            """Do it later."""
            return self.mark(f"later {minutes}")

        return later

    @property
    def pay(self) -> Callable[..., Any]:
        """A tool that should need an approval."""

        def pay(amount: int) -> str:
            """Pay."""
            return self.mark(f"pay {amount}")

        return pay

    @property
    def ask_boss(self) -> Callable[..., Any]:
        """A tool that the user answers."""

        def ask_boss(question: str) -> str:
            """Ask the boss."""
            return self.mark(f"asked {question}")

        return ask_boss

    @property
    def ask_bank(self) -> Callable[..., Any]:
        """Another such tool."""

        def ask_bank(account: int) -> str:
            """Ask the bank."""
            return self.mark(f"asked the bank about {account}")

        return ask_bank


def pieces(text: str) -> list[str]:
    """Text as a streaming model returns it: word by word."""
    words = text.split(" ")
    return [*(f"{word} " for word in words[:-1]), words[-1]]
