"""Approvals: a part of a flow that begins only when the user has said yes."""

import inspect
from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any

from msgspec import Struct, structs

from greenroom.agents.deciders import (
    DECIDER_NAMES,
    Decider,
    checked_decider,
    decider_facts,
    named_arguments,
)
from greenroom.agents.flow import RESERVED, Flow, as_flow, checked_name
from greenroom.agents.signature import function_name, wanted_names
from greenroom.errors import BadAgent
from greenroom.ledger.functions import Anything, ByName
from greenroom.ledger.identity import code_identity
from greenroom.ledger.plain import Json

Question = str | Callable[..., object]

_IN_QUESTIONS = ("input", "state")


class Approved(Flow, Struct, frozen=True, eq=False):
    """A part that waits for an approval; the only way to the part leads through it."""

    body: Flow
    question: Question
    tool: str
    """The name of the wait, by which a user or a mock answers it."""
    when: Decider | None = None
    otherwise: Flow | None = None
    wants: tuple[str, ...] = ()

    @property
    def segment(self) -> str:
        """`approval.body` leads to what is guarded, `approval.otherwise` to what happens instead."""
        return "approval"

    def children(self) -> dict[str, Flow]:
        """The guarded part, and the part that runs instead if there is one."""
        instead = {} if self.otherwise is None else {"otherwise": self.otherwise}
        return {"body": self.body, **instead}

    def with_children(self, children: Mapping[str, Flow]) -> "Approved":
        """This approval around another part."""
        return structs.replace(self, body=children["body"], otherwise=children.get("otherwise"))

    def facts(self) -> dict[str, Any]:
        """The question, and when it is asked."""
        asked = self.question
        found: dict[str, Json] = {
            "name": self.tool,
            "question": asked if isinstance(asked, str) else code_identity(asked),
        }
        return found if self.when is None else {**found, "when": decider_facts(self.when)}

    def code(self) -> dict[str, Callable[..., Any]]:
        """The functions that decide whether to ask and that make the question, if they are functions."""
        found = {"when": self.when, "question": self.question}
        return {name: fn for name, fn in found.items() if callable(fn)}

    def asks(self, context: Any) -> str:
        """The question, with the values that it mentions from the input and the state."""
        if isinstance(self.question, str):
            return self.question.format(input=context.input, state=context.state)
        wants = wanted_names(self.question, DECIDER_NAMES, "question")
        return str(self.question(**named_arguments(wants, context, self.question)))

    def __repr__(self) -> str:
        return f"approved({self.body!r})"


def approved(
    body: Anything,
    question: str | ByName,
    *,
    when: Anything = None,
    otherwise: Anything = None,
    name: str = "",
) -> Approved:
    """Run `body` only if the user says yes: `approved(payment, "Pay {input[amount]}?")`.

    The user is asked the question (a string that may mention `input` and `state`, or a function of
    them) by a wait called `approve_payment`, and answers with a bool or with
    `{"approved": False, "reason": "too much"}`. After a no, `otherwise` runs on
    `{"input": ..., "reason": ...}`; without one the agent has failed. With `when`, a function, a query
    or a place in the state, it is asked only if that holds (a place that holds nothing asks). `name`
    is for parts without a name: `name="payment"`.
    """
    guarded = as_flow(body)
    instead = None if otherwise is None else as_flow(otherwise)
    known = name or guarded.segment
    if known in RESERVED:
        raise BadAgent(
            f"approved({guarded!r}, ...) has no name to ask by; give one: name='payment' asks by "
            f"approve_payment."
        )
    tool = checked_name(f"approve_{known}", "an approval", reserved=())
    _check_question(question)
    decider, wants = checked_decider(when, "when")
    return Approved(guarded, question, tool, decider, instead, wants)


def _check_question(given: object) -> None:
    if isinstance(given, str):
        try:
            mentioned = [field for _, field, _, _ in Formatter().parse(given) if field is not None]
        except ValueError as error:
            raise BadAgent(f"the question {given!r} cannot be read: {error}.") from None
        for field in mentioned:
            if field.split(".")[0].split("[")[0] not in _IN_QUESTIONS:
                raise BadAgent(
                    f"the question {given!r} mentions {{{field}}}; it can mention {{input}} and "
                    f"{{state[session][...]}}. Write {{{{ and }}}} for braces."
                )
        if not given.strip():
            raise BadAgent("approved(...) has an empty question; say what should be approved.")
        return
    if not callable(given) or inspect.iscoroutinefunction(given):
        raise BadAgent(f"approved(..., {given!r}) needs a question: a string, or a plain function.")
    wanted_names(given, DECIDER_NAMES, f"question {function_name(given)!r}")
