"""An agent's card: how it describes itself to other agents in the A2A protocol."""

from dataclasses import dataclass, field

from greenroom.ledger.plain import Json

PROTOCOL = "1.0"
"""The version of the A2A protocol in use."""


@dataclass(frozen=True, slots=True)
class Skill:
    """One thing that an agent can do; others find the agent by it."""

    id: str
    name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()

    def data(self) -> dict[str, Json]:
        """The skill in the format of a card."""
        return {
            "id": self.id,
            "name": self.name or self.id,
            "description": self.description or self.name or self.id,
            "tags": [*self.tags],
        }


@dataclass(frozen=True, slots=True)
class AgentCard:
    """An agent that can be reached by the A2A protocol: where it is and what it is good for."""

    name: str
    url: str
    """Where its messages go."""
    description: str = ""
    version: str = "1"
    skills: tuple[Skill, ...] = ()
    streaming: bool = False
    extensions: tuple[str, ...] = field(default=())
    """The addresses of the extensions that it supports."""
    needs_token: bool = False
    """Whether it requires a bearer token."""

    def has_skill(self, word: str) -> bool:
        """Whether a skill has this id, name or tag, ignoring case."""
        wanted = word.casefold()
        return any(
            wanted in (name.casefold() for name in (skill.id, skill.name, *skill.tags))
            for skill in self.skills
        )

    def data(self) -> dict[str, Json]:
        """The card as it is published."""
        bearer: dict[str, Json] = {
            "securitySchemes": {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
            "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
        }
        return {
            "name": self.name,
            "description": self.description or self.name,
            "version": self.version,
            "supportedInterfaces": [
                {"url": self.url, "protocolBinding": "JSONRPC", "protocolVersion": PROTOCOL}
            ],
            "capabilities": {
                "streaming": self.streaming,
                "pushNotifications": False,
                "extensions": [{"uri": uri} for uri in self.extensions],
            },
            "defaultInputModes": ["text/plain", "application/json"],
            "defaultOutputModes": ["text/plain", "application/json"],
            "skills": [skill.data() for skill in self.skills],
            **(bearer if self.needs_token else {}),
        }
