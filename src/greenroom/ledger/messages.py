"""What is said between a user, a model and its tools."""

from collections.abc import Mapping
from typing import Any, Literal
from unicodedata import category

from msgspec import field

from greenroom.ledger.attachments import Attachment
from greenroom.ledger.plain import Json
from greenroom.ledger.validation import PydanticStruct

Role = Literal["system", "user", "assistant", "tool"]
"""Who speaks in a conversation with a model."""
Voice = Literal["agent", "user"]
"""Whose side an event is on: the agent under test, or its user."""


_UNSEEN = frozenset(("Cc", "Cf", "Zs", "Zl", "Zp"))
"""The categories of characters that nobody sees: controls, formats such as U+200B, and blanks."""


_UNSEEN_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\ufe0e\ufe0f\uffa0")
"""Joiners, fillers, an empty cell of Braille and selectors, which are letters, signs or marks to Unicode."""


def is_blank(text: str) -> bool:
    """Whether a text says nothing: it is empty, or nothing in it can be seen."""
    return all(char in _UNSEEN_LETTERS or category(char) in _UNSEEN for char in text)


class ToolCall(PydanticStruct, frozen=True):
    """A tool call that a model requests, or that a case expects."""

    tool: str
    args: Mapping[str, Json] = field(default_factory=dict[str, Json])
    id: str = ""

    def __repr__(self) -> str:
        keywords = [f"{name}={value!r}" for name, value in self.args.items()]
        return f"call({', '.join([repr(self.tool), *keywords])})"


def call(tool: str, /, **args: Any) -> ToolCall:
    """A call of `tool`: in a script, one the model makes; in an expectation, one it should make."""
    return ToolCall(tool, args)


def call_text(tool: str, args: Mapping[str, Json]) -> str:
    """A call as it would be typed."""
    return f"{tool}({', '.join([f'{name}={value!r}' for name, value in args.items()])})"


class Message(PydanticStruct, frozen=True):
    """One entry of a model's conversation."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    tool: str = ""
    attachments: tuple[Attachment, ...] = ()


class Usage(PydanticStruct, frozen=True):
    """Tokens a model read and wrote."""

    input: int = 0
    output: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.input + other.input, self.output + other.output)

    @property
    def total(self) -> int:
        """Tokens in both directions."""
        return self.input + self.output
