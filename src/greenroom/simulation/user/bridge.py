"""The bridge: what passes between the agent's side of a case and its user's side."""

import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from greenroom.backends.backend import Yield
from greenroom.errors import BadCase, UserAgentFailed
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import is_blank
from greenroom.ledger.plain import Json
from greenroom.ledger.view import LedgerView

FormatPrompt = Callable[[LedgerView, Yield], "str | Awaitable[str]"]
FormatResponse = Callable[[Json, LedgerView, Yield], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridge:
    """Your own wording of what a user agent is asked, and of its answer.

    `format_prompt(main, wait)` sees the agent's side, `format_response(output, user, wait)` the
    user's side; both may be async, and what is left out keeps its default.
    """

    format_prompt: FormatPrompt | None = None
    format_response: FormatResponse | None = None

    def __post_init__(self) -> None:
        for name, parameters in _PARAMETERS.items():
            given = getattr(self, name)
            if given is None:
                continue
            if not callable(given):
                raise BadCase(f"Bridge({name}={given!r}) must be a function, or left out.")
            if problem := _mismatch(given, parameters):
                raise BadCase(
                    f"Bridge({name}={_name_of(given)}) is called as {name}({', '.join(parameters)}), "
                    f"which it cannot be: {problem}. Give it these parameters."
                )

    async def prompt(self, ledger: Ledger, wait: Yield) -> str:
        """The prompt for the user agent."""
        if self.format_prompt is None:
            return default_prompt(LedgerView(ledger), wait)
        prompt = await _settled(self.format_prompt(LedgerView(ledger), wait))
        if not isinstance(prompt, str) or is_blank(prompt):
            raise UserAgentFailed(
                f"the bridge's format_prompt returned {prompt!r}; return the text that the user agent "
                f"should see."
            )
        return prompt

    async def response(self, output: Json, ledger: Ledger, wait: Yield) -> Any:
        """The answer that the agent receives for the user agent's output."""
        if self.format_response is None:
            return output
        answer = await _settled(self.format_response(output, LedgerView(ledger, "user"), wait))
        if answer is None and output is not None:
            raise UserAgentFailed(
                f"the bridge's format_response returned None for {output!r}; return what the agent "
                f"should receive."
            )
        return answer


def default_prompt(main: LedgerView, wait: Yield) -> str:
    """The agent's last words; for a tool's wait its name and arguments."""
    if wait.type == "message":
        return wait.prompt or main.last_said
    return f"Tool: {wait.tool}\nArgs: {json.dumps(wait.args, ensure_ascii=False)}"


_PARAMETERS = {
    "format_prompt": ("main", "wait"),
    "format_response": ("output", "user", "wait"),
}
"""The parameters of a bridge's functions, by position."""


def _mismatch(function: Callable[..., object], parameters: Sequence[str]) -> str:
    """Why a function cannot be called with these; empty if it can, or if that cannot be known."""
    try:
        inspect.signature(function).bind(*parameters)
    except TypeError as error:
        return str(error)
    except ValueError:  # some written in C do not say
        return ""
    return ""


def _name_of(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


async def _settled(value: object) -> object:
    return await value if inspect.isawaitable(value) else value
