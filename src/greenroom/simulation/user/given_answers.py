"""A caller's answers to an agent that waits: each is matched and checked, and none may be left over."""

from collections.abc import Iterable, Mapping

from greenroom.backends.backend import Yield
from greenroom.errors import BadInput, BadValue
from greenroom.ledger.attachments import Attachment, message_value
from greenroom.ledger.events import Answer, Answered
from greenroom.ledger.plain import Json


def answers_to(
    yields: Iterable[Yield],
    answers: Mapping[str, Json],
    message: str | None = None,
    attachments: tuple[Attachment, ...] = (),
) -> Answered:
    """The answers to all waits of an agent, by id or by tool; BadInput if one is missing or superfluous."""
    waits, left, found = list(yields), dict(answers), list[Answer]()
    for wait in waits:
        if wait.awaiting_input and message is not None:
            value, message = message_value(message, attachments), None
        elif wait.id in left or wait.tool in left:
            value = left.pop(wait.id) if wait.id in left else left[wait.tool]
        else:
            raise BadInput(f"the agent waits for {_describe(wait)} too; {_how_to_answer(wait)}.")
        found.append(Answer(yield_id=wait.id, value=_checked(wait, value), tool=wait.tool))
    unused = [name for name in left if name not in {wait.tool for wait in waits}]
    if unused:
        waited = ", ".join(map(_describe, waits))
        raise BadInput(f"the agent does not wait for {', '.join(unused)}, but for {waited}.")
    if message is not None:
        wanted = " and ".join(_how_to_answer(wait) for wait in waits)
        raise BadInput(f"the agent waits for an answer, not for a message: {wanted}.")
    return Answered(answers=tuple(found))


def _describe(wait: Yield) -> str:
    return "a message" if wait.awaiting_input else f"{wait.tool}({wait.args!r})"


def _how_to_answer(wait: Yield) -> str:
    if wait.awaiting_input:
        return "give a message"
    return f"give answers={{{wait.tool!r}: …}}"


def _checked(wait: Yield, value: Json) -> Json:
    if wait.check is None:
        return value
    try:
        return wait.check(value, False)
    except ValueError as error:
        raise BadValue(f"the answer {value!r} to {wait.tool!r} does not fit: {error}") from error
