"""Simulated users: scripted lines, a persona played by a model, or an agent for each wait."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from greenroom.agents.agent import Agent
from greenroom.agents.context import history, persona
from greenroom.agents.flow import Flow, as_flow
from greenroom.cases.users import Lines, SimulatedUser
from greenroom.errors import BadCase
from greenroom.ledger.records import record

Validation = Literal["strict", "coerce", "off"]


def played_by(user: SimulatedUser) -> Agent:
    """The agent that plays this person."""
    parts = [
        user.persona.strip(),
        "You are the user, not the assistant. Answer with the user's next message only.",
    ]
    if user.goal:
        parts.append(f"Your goal: {user.goal.strip()}")
    parts.append(f"When you are done, answer with {user.stop_signal} and nothing else.")
    return Agent(user.name, model=user.model, context=[persona("\n\n".join(parts)), history()])


Role = Lines | SimulatedUser | Flow | Any


@record(kw_only=True)
class UserAgents:
    """One user with an agent for each kind of wait; all share one memory of the conversation.

    `loop` gives the next message, `tools` answers yielding tools by name: an `Agent`, a `step`, a
    function, `Lines`, or a constant. `validate` says how strictly a tool's answer must fit what the
    tool declares; `conflicts="error"` refuses answers that set one piece of state differently.
    """

    loop: Role | None = None
    tools: Mapping[str, Role] = field(default_factory=dict[str, Role])
    validate: Validation = "strict"
    conflicts: Literal["last", "error"] = "last"

    def __post_init__(self) -> None:
        known: dict[str, Any] = {}
        for role in (self.loop, *self.tools.values()):
            if (
                isinstance(role, Agent | SimulatedUser)
                and known.setdefault(role.name, role) != role
            ):
                raise BadCase(
                    f"two user agents are named {role.name!r} and would take each other's place in "
                    f"the ledger; rename one."
                )


_NOBODY = UserAgents()


def user_of(given: Any, case_id: str) -> UserAgents:
    """What a case calls its user, as one agent for each wait."""
    match given:
        case None:
            return _NOBODY
        case UserAgents():
            return given
        case Lines() | SimulatedUser():
            return UserAgents(loop=given)
        case Flow():
            return UserAgents(loop=given)
        case _ if callable(given):
            return UserAgents(loop=as_flow(given))
        case _:
            raise BadCase(
                f"case {case_id!r} has the user {given!r}; use Lines(...), SimulatedUser(...), "
                f"UserAgents(...), an Agent, a step or a function."
            )
