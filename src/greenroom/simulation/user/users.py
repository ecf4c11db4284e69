"""Simulated users: scripted lines, a persona played by a model, or an agent for each wait."""

from collections.abc import Sequence
from dataclasses import replace

from greenroom.agents.agent import Agent
from greenroom.agents.context import history, persona
from greenroom.agents.flow import Flow, as_flow
from greenroom.cases.case import MAX_TURNS, Case
from greenroom.cases.users import Lines, SimulatedUser, UserAgents, person_of
from greenroom.errors import BadCase
from greenroom.models.chooser import Chooser
from greenroom.models.named import as_model
from greenroom.models.placeholders import NamingModel
from greenroom.models.scripted import Scripted

_PART = """\
You are the user in a conversation with an assistant; you are never the assistant. Answer with the \
user's next message only, in the user's own words. You know what is written here and what was said; \
asked for more, say that you do not know."""
_MARKS = """\
As soon as the assistant has met one of these goals, put a mark into your answer, with the number of \
the goal and the assistant's exact words that show it: <done 1>the assistant's words</done>. The \
assistant does not see marks. Mark nothing that was only promised or asked."""


def played_by(user: SimulatedUser) -> Agent:
    """The agent that plays this person."""
    if user.model is None:
        raise BadCase(
            f"the simulated user {user.name!r} has no model to play it; give one: "
            f"SimulatedUser(..., model='openai:gpt-4o-mini'), or user_model=... for all of a batch."
        )
    parts = [user.persona.strip(), _PART]
    if user.goal:
        parts.append(f"Your goal: {user.goal.strip()}")
    if isinstance(user.plan, str) and user.plan:
        parts.append(f"Your plan: {user.plan.strip()}")
    elif user.plan:
        parts.append(f"Your plan, one step after the other:\n{_numbered(user.plan)}")
    if user.goals:
        parts += [f"Your goals:\n{_numbered(user.goals)}", _MARKS]
    parts.append(
        f"When you have what you want, or see that you will not get it, answer with "
        f"{user.stop_signal} and nothing else."
    )
    role = "\n\n".join(part for part in parts if part)
    model = as_model(user.model, f"the simulated user {user.name!r}")
    if not isinstance(model, Scripted | Chooser):
        model = NamingModel(model)
    return Agent(user.name, model=model, context=[persona(role), history()])


def _numbered(texts: Sequence[str]) -> str:
    return "\n".join(f"{n}. {text.strip()}" for n, text in enumerate(texts, 1))


_NO_USER = UserAgents()


def user_of(given: object, case_id: str) -> UserAgents:
    """A case's user as one agent for each wait; a simulated user without a model is refused."""
    match given:
        case None:
            return _NO_USER
        case UserAgents():
            user = given
        case Lines() | SimulatedUser() | Flow():
            user = UserAgents(loop=given)
        case _ if callable(given):
            user = UserAgents(loop=as_flow(given))
        case _:
            raise BadCase(
                f"case {case_id!r} has the user {given!r}; use Lines(...), SimulatedUser(...), "
                f"UserAgents(...), an Agent, a step or a function."
            )
    for role in user.roles:
        if (person := person_of(role)) is not None:
            played_by(person)
    return user


def turn_limit(case: Case, user: UserAgents) -> int:
    """How many turns a conversation may take: the lower limit of the case's and its user's.

    A case without a limit leaves it to the user.
    """
    own, theirs = case.stop.max_turns, user.max_turns
    if theirs is None:
        return own
    return theirs if own == MAX_TURNS else min(own, theirs)


def with_user_model(case: Case, model: object, max_turns: int | None = None) -> Case:
    """The case with `model` for a simulated user who has none.

    `max_turns` limits how often such a user speaks, unless their own limit is lower.
    """
    user = _modelled(case.user, model, max_turns)
    return case if user is case.user else replace(case, user=user)


def _modelled(user: object, model: object, max_turns: int | None) -> object:
    match user:
        case SimulatedUser():
            limit = min((n for n in (user.max_turns, max_turns) if n is not None), default=None)
            plays = user.model if user.model is not None else model
            kept = plays is user.model and limit == user.max_turns
            return user if kept else replace(user, model=plays, max_turns=limit)
        case Lines():
            then = _modelled(user.then, model, max_turns)
            return user if then is user.then else Lines(*user.lines, then=then)
        case UserAgents():
            loop = _modelled(user.loop, model, max_turns)
            tools = {name: _modelled(role, model, None) for name, role in user.tools.items()}
            kept = loop is user.loop and all(tools[k] is v for k, v in user.tools.items())
            return user if kept else replace(user, loop=loop, tools=tools)
        case _:
            return user
