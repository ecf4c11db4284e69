"""The bridge: what crosses between the agent's side of a case and its user's side."""

import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any

from greenroom.backends.backend import Yield
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.ledger.records import record
from greenroom.ledger.view import LedgerView

FormatPrompt = Callable[[LedgerView, Yield], "str | Awaitable[str]"]
FormatResponse = Callable[[Json, LedgerView, Yield], Any]


@record(kw_only=True)
class Bridge:
    """Own words for what a user agent is asked, and for what becomes of its answer.

    `format_prompt(main, wait)` sees the agent's side, `format_response(output, user, wait)` the
    user's side; both may be async, and what is left out keeps its default.
    """

    format_prompt: FormatPrompt | None = None
    format_response: FormatResponse | None = None

    async def prompt(self, ledger: Ledger, wait: Yield) -> str:
        """What the user agent hears."""
        if self.format_prompt is None:
            return default_prompt(LedgerView(ledger), wait)
        return str(await _settled(self.format_prompt(LedgerView(ledger), wait)))

    async def response(self, output: Json, ledger: Ledger, wait: Yield) -> Any:
        """What the agent gets for the user agent's output."""
        if self.format_response is None:
            return output
        return await _settled(self.format_response(output, LedgerView(ledger, "user"), wait))


def default_prompt(main: LedgerView, wait: Yield) -> str:
    """The agent's last words; for a tool's wait its name and arguments."""
    if wait.type == "message":
        return wait.prompt or main.last_said
    return f"Tool: {wait.tool}\nArgs: {json.dumps(wait.args, ensure_ascii=False)}"


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
