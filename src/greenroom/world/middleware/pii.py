"""Personal data, hidden from models and removed from their replies."""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec.structs import replace

from greenroom.errors import BadInput
from greenroom.ledger.messages import Message
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.traces.personal import PATTERNS
from greenroom.world.middleware.attempts import Ask
from greenroom.world.middleware.protocol import Middleware

RULES: Final[Mapping[str, str]] = {
    "email": PATTERNS["email"],
    "iban": PATTERNS["iban"],
    # Cards of any issuer; telephone numbers with their country only, or order numbers would be hidden too.
    "card": r"\b(?:\d[ -]?){13,18}\d\b",
    "phone": r"(?<![\w.])\+\d{1,3}(?:[ ./-]?\(?\d{1,4}\)?){2,5}\b",
    "ssn": PATTERNS["ssn"],
}
"""The default rules: a pattern for each name that replaces what it finds."""


def pii_filter(rules: Mapping[str, str] = RULES, *, ledger: bool = False) -> "PiiFilter":
    """Hides what these patterns find, as `[email]`, in questions to models and in their replies.

    The model does not see it, and the ledger has no reply that contains it; what the user said and tools
    returned is in the ledger unchanged. With `ledger=True` it is not there either: messages, requests,
    calls, results, the case and the state are recorded without it, and the agent gets them as they are
    recorded. Pieces of a reply are held back until it is whole.
    """
    return PiiFilter(rules, ledger)


class PiiFilter(Middleware):
    """Patterns by the names that replace what they find."""

    name = "pii_filter"
    needs = ("around_attempt",)
    holds_pieces = True

    def __init__(self, rules: Mapping[str, str], ledger: bool) -> None:
        try:
            self._rules = {name: re.compile(pattern) for name, pattern in rules.items()}
        except (re.error, TypeError, AttributeError) as error:
            raise BadInput(
                f"pii_filter() has a rule that is not a pattern: {error}. Give {{name: pattern}}."
            ) from error
        if ledger:
            self.redact = self.hide

    async def around_attempt(self, request: ModelRequest, ask: Ask) -> ModelReply:
        """Ask without personal data, and remove it from the reply."""
        shown = replace(
            request,
            instructions=self.hide(request.instructions),
            messages=tuple([self._hidden(message) for message in request.messages]),
        )
        reply = await ask(request if shown == request else shown)
        text = self.hide(reply.text or "")
        return reply if text == reply.text else replace(reply, text=text)

    def hide(self, text: str) -> str:
        """The text with names in place of what the patterns find."""
        for name, pattern in self._rules.items():
            text = pattern.sub(f"[{name}]", text)
        return text

    def _hidden(self, message: Message) -> Message:
        calls = tuple([replace(call, args=self._hidden_in(call.args)) for call in message.calls])
        return replace(message, text=self.hide(message.text), calls=calls)

    def _hidden_in(self, value: object) -> object:
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, Mapping):
            return {key: self._hidden_in(one) for key, one in cast("Any", value).items()}
        if isinstance(value, list | tuple):
            return [self._hidden_in(one) for one in cast("Any", value)]
        return value
