"""Hand-offs: agents that may hand the conversation over to each other form a team."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from greenroom.agents.flow import Flow, checked_name
from greenroom.agents.tools import Tool
from greenroom.errors import BadAgent

if TYPE_CHECKING:
    from greenroom.agents.agent import Agent

_PREFIX = "transfer_to_"


class Team(Flow, Struct, frozen=True, eq=False):
    """An agent with hand-offs in a graph: it and all agents it leads to, one at a time."""

    leader: "Agent"

    @property
    def segment(self) -> str:
        """The name of the agent that leads it."""
        return self.leader.name

    def children(self) -> "dict[str, Agent]":
        """The agents by their names."""
        return team_of(self.leader)

    def with_children(self, children: Mapping[str, Flow]) -> "Team":
        """A team of others, led by the one of the same name."""
        team: Any = children
        return Team(with_team(self.leader, team))

    def joint(self, key: str) -> str:  # noqa: ARG002 - all stand side by side
        """Empty: `clerk/billing`."""
        return ""

    def facts(self) -> dict[str, Any]:
        """Who leads it."""
        return {"name": self.leader.name}

    def __repr__(self) -> str:
        return repr(self.leader)


def checked_handoffs(agent: "Agent") -> "tuple[Agent | str, ...]":
    """The agents that an agent may hand over to: agents, or names of agents of its team."""
    what = f"agent {agent.name!r}"
    given: object = agent.handoffs
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise BadAgent(f"{what}: handoffs={given!r} should be a list of agents, or of names.")
    found: tuple[object, ...] = tuple(given)
    names: list[str] = []
    for one in found:
        if not isinstance(one, str | type(agent)):
            raise BadAgent(
                f"{what} hands over to {one!r}; it can hand over to an Agent, or by its name to one "
                f"of those that lead here."
            )
        name = checked_name(receiver_name(one), f"a receiver of {what}")
        if name == agent.name:
            raise BadAgent(f"{what} hands over to itself; name another agent.")
        if name in names:
            raise BadAgent(f"{what} hands over to two agents named {name!r}; rename one.")
        if agent.tool(_PREFIX + name) is not None:
            raise BadAgent(
                f"{what} has a tool {_PREFIX + name!r}, which is how its model hands over to "
                f"{name!r}; rename the tool."
            )
        names.append(name)
    return found


def receiver_name(given: "Agent | str") -> str:
    """The name of a receiver."""
    return given if isinstance(given, str) else given.name


def team_of(agent: "Agent") -> "dict[str, Agent]":
    """The agent and all agents that the conversation can reach from it, by name."""
    found = {agent.name: agent}
    waiting = [agent]
    while waiting:
        for one in waiting.pop().handoffs:
            if isinstance(one, str) or found.get(one.name) is one:
                continue
            if one.name in found:
                raise BadAgent(
                    f"two agents named {one.name!r} hand over to each other or to the same ones; "
                    f"rename one, or name it by its name: handoffs=[{one.name!r}]."
                )
            found[one.name] = one
            waiting.append(one)
    return found


def check_team(team: "Mapping[str, Agent]") -> None:
    """Refuse a name that is not an agent's of the team, whichever agent hands over to it."""
    for one in team.values():
        for name in map(receiver_name, one.handoffs):
            if name not in team:
                raise BadAgent(
                    f"agent {one.name!r} hands over to {name!r}, but its team is "
                    f"{', '.join(team)}. Give the agent itself, or one that leads here."
                )


def with_team(agent: "Agent", team: "Mapping[str, Agent]") -> "Agent":
    """The agent with its receivers, and their receivers in turn, replaced by those of `team`."""
    made: dict[str, Agent] = {}

    def remade(one: "Agent") -> "Agent":
        if one.name not in made:
            receivers = [
                given if isinstance(given, str) else remade(given) for given in one.handoffs
            ]
            made[one.name] = replace(team.get(one.name, one), handoffs=receivers)
        return made[one.name]

    return remade(agent)


def alone(agent: "Agent") -> "Agent":
    """The agent without the ways back to those that lead to it."""
    known, waiting = {agent.name}, [agent]
    while waiting:
        one = waiting.pop()
        inner = [given for given in one.handoffs if not isinstance(given, str)]
        known |= {given.name for given in inner}
        waiting += inner
    return _within(agent, known) if _leads_out(agent, known) else agent


def _leads_out(agent: "Agent", known: set[str]) -> bool:
    return any(
        one not in known if isinstance(one, str) else _leads_out(one, known)
        for one in agent.handoffs
    )


def _within(agent: "Agent", known: set[str]) -> "Agent":
    inside = [
        one if isinstance(one, str) else _within(one, known)
        for one in agent.handoffs
        if not isinstance(one, str) or one in known
    ]
    return replace(agent, handoffs=inside)


def transfers(agent: "Agent", team: "Mapping[str, Agent]") -> dict[str, str]:
    """The tools by which its model hands over, and the agent that each leads to."""
    return {_PREFIX + name: name for name in map(receiver_name, agent.handoffs) if name in team}


def transfer_tools(agent: "Agent", team: "Mapping[str, Agent]") -> tuple[Tool, ...]:
    """The hand-off tools as its model sees them. Calling one is control flow; there is no body."""
    return tuple(
        Tool(
            tool,
            _transfer,
            f"Hand the conversation over to {name}. {team[name].description}".strip(),
        )
        for tool, name in transfers(agent, team).items()
    )


def _transfer() -> None:
    raise AssertionError("handing over is not a tool call")
