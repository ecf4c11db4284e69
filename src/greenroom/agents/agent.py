"""The agent: a model with instructions and tools, asked until it has an answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, get_args

from greenroom.agents.context import ContextRule, history
from greenroom.agents.flow import Flow, checked_name
from greenroom.agents.handoffs import checked_handoffs, receiver_name, team_of, with_team
from greenroom.agents.instructions import check_placeholders
from greenroom.agents.places import Places, declared_places, typed_fields, written_facts
from greenroom.agents.schema import StateSchema, fields_of, is_schema, schema_facts
from greenroom.agents.signature import output_schema
from greenroom.agents.tools import Tool, as_tool
from greenroom.errors import AgentFailed, BadAgent
from greenroom.ledger.attachments import Attachment, Modality
from greenroom.ledger.functions import ByName
from greenroom.ledger.identity import code_identity
from greenroom.models.chooser import Chooser
from greenroom.models.model import Model, model_name
from greenroom.models.named import as_model


@dataclass(frozen=True, eq=False)
class Agent(Flow):
    """A model that answers, calling its tools on the way.

    `model` may be the name of a provider's model, such as "openai:gpt-4o-mini".
    `output` is a type the answer must fit (after a wrong one the model gets the reason and is asked again). `writes`
    puts the answer into the state: whole at one place ("key", "scope.key" or a field of a schema), or each part of
    a structured answer at the place that ends in its name. `reads` are the places that the agent looks at: `{key}` in
    its instructions is replaced by the value there (other braces stay as they are). Both become strings
    ("session.key"); `schema` gives the types of the places. `max_steps` limits how often the model is asked in a row.
    `retries` is how often the whole agent is tried again after a failure: its tools may be called again, too.
    `handoffs` are agents that the model may hand the conversation over to, or names of agents that lead here; their
    `description` says what they are for. `accepts` and `gives` say what may be attached to its input and to its
    answer, such as ("text", "image"): anything else is refused; without them everything is passed on.
    """

    name: str
    _: KW_ONLY
    model: Model | str
    instructions: str = ""
    tools: Sequence[Tool | ByName] = ()
    output: Any = None
    context: Sequence[ContextRule] = field(default_factory=lambda: (history(),))
    max_steps: int = 20
    retries: int = 0
    writes: Places = ()
    reads: Places = ()
    schema: type[StateSchema] | None = None
    description: str = ""
    handoffs: "Sequence[Agent | str]" = ()
    accepts: Sequence[Modality] = ()
    gives: Sequence[Modality] = ()

    def __post_init__(self) -> None:
        checked_name(self.name, "an agent")
        if not hasattr(self.model, "respond"):
            model = as_model(self.model, f"agent {self.name!r}")
            object.__setattr__(self, "model", model)
        tools = tuple(as_tool(given) for given in self.tools)
        names = [tool.name for tool in tools]
        for name in names:
            if names.count(name) > 1:
                raise BadAgent(f"agent {self.name!r} has two tools named {name!r}; rename one.")
        object.__setattr__(self, "tools", tools)
        object.__setattr__(self, "context", tuple(self.context))
        for name in ("accepts", "gives"):
            object.__setattr__(self, name, self._modalities(name))
        if self.schema is not None and not is_schema(self.schema):
            raise BadAgent(f"agent {self.name!r} has schema={self.schema!r}; give a StateSchema.")
        if self.handoffs:
            object.__setattr__(self, "handoffs", checked_handoffs(self))
        for name in ("reads", "writes"):
            what = f"{name}= of agent {self.name!r}"
            places = declared_places(getattr(self, name), what, self.schema)
            object.__setattr__(self, name, places)
        check_placeholders(self.instructions, self.reads, f"agent {self.name!r}")
        if len(self.writes) > 1 and self.output is None:
            raise BadAgent(
                f"agent {self.name!r} writes to {', '.join(self.writes)}; give it an output= type "
                f"with a part for each."
            )

    def _modalities(self, name: str) -> tuple[Modality, ...]:
        given: Any = getattr(self, name)
        known = get_args(Modality)
        if isinstance(given, str) or any(one not in known for one in given):
            raise BadAgent(f"agent {self.name!r} has {name}={given!r}; give some of {known}.")
        return tuple(given)

    def check_modalities(self, attachments: Iterable[Attachment], name: str) -> None:
        """Refuse what it does not declare to accept, or to give."""
        declared: Sequence[Modality] = getattr(self, name)
        for one in attachments if declared else ():
            if one.modality not in declared:
                does = "was given" if name == "accepts" else "gave"
                raise AgentFailed(
                    f"agent {self.name!r} {does} {one}, but {name} only {', '.join(declared)}. Add "
                    f"{one.modality!r} to {name}=, or attach something else."
                )

    @property
    def toolbox(self) -> tuple[Tool, ...]:
        """Its tools; functions have become tools."""
        return self.tools  # pyright: ignore[reportReturnType] - `__post_init__` has seen to it

    @property
    def segment(self) -> str:
        """Its name."""
        return self.name

    def children(self) -> "dict[str, Agent]":
        """All agents that this agent, or one of them, may hand the conversation over to."""
        if not self.handoffs:
            return {}
        return {name: one for name, one in team_of(self).items() if one is not self}

    def with_children(self, children: Mapping[str, Flow]) -> "Agent":
        """A copy of this agent with these agents to hand over to."""
        team = {name: one for name, one in children.items() if isinstance(one, Agent)}
        return with_team(self, team)

    def facts(self) -> dict[str, Any]:
        """Everything that decides what it does, as data."""
        typed = typed_fields(*self.reads, *self.writes)
        return {
            "name": self.name,
            "model": model_name(self.model),
            **({"choice": self.model.facts()} if isinstance(self.model, Chooser) else {}),
            "instructions": self.instructions,
            "tools": [
                {
                    "name": tool.name,
                    "signature": tool.takes,
                    "about": tool.description,
                    "yields": tool.yields,
                    **({"reads": list(tool.reads)} if tool.reads else {}),
                    **({"writes": list(tool.writes)} if tool.writes else {}),
                }
                for tool in self.toolbox
            ],
            "context": [
                # Greenroom's own context rules are data, so the snapshot shows them as data.
                repr(rule)
                if type(rule).__module__.startswith("greenroom.")
                else code_identity(rule)
                for rule in self.context
            ],
            "output": output_schema(self.output),
            "limits": [self.max_steps, self.retries],
            "writes": written_facts(self.writes),
            **({"reads": list(self.reads)} if self.reads else {}),
            **({"accepts": list(self.accepts)} if self.accepts else {}),
            **({"gives": list(self.gives)} if self.gives else {}),
            **({"handoffs": [*map(receiver_name, self.handoffs)]} if self.handoffs else {}),
            **schema_facts(fields_of(self.schema).values() if self.schema else typed),
        }

    def tool(self, name: str) -> Tool | None:
        """The tool of that name, if the agent has it."""
        for tool in self.toolbox:
            if tool.name == name:
                return tool
        return None

    def __repr__(self) -> str:
        return f"Agent({self.name!r})"
