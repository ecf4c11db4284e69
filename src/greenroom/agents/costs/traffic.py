"""Traffic: the basis of an estimate, as its author assumes it or as trials have shown it."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from math import isfinite
from typing import Any, Self, cast

from greenroom.agents.costs.seen import Seen, learn
from greenroom.agents.graph import Graph, Node
from greenroom.agents.handoffs import Team
from greenroom.errors import BadInput
from greenroom.ledger.ledger import Ledger

Numbers = float | Mapping[str, float]
"""One number for all nodes, or one for each: by static id or by a name that only one node has, "*" for the rest."""
Shares = Mapping[str, Mapping[str, float]]
"""How often each branch is taken, from 0 to 1, by node and by the name of the branch."""

_NUMBERS = ("tokens_in", "tokens_out", "tokens_tool", "calls", "rounds", "items")
_PARTS_OF_ONE = ("fallbacks", "approvals")
_SHARES = ("routes", "handoffs", "models")
_HAIR = 1e-9
ALL = "*"


@dataclass(frozen=True, slots=True)
class Traffic:
    """How an agent will be used. What is given for a node by name counts first, then what trials have
    shown (`Traffic.seen`), then what is given for all nodes.

    `turns` is how often the agent is started in a conversation. `tokens_in` is what the first question of a
    conversation reads, `tokens_out` what a reply writes, `tokens_tool` what the answers of tools add before the
    next question; each further question reads all that again. `calls` is how often an agent asks its
    model in a visit, `rounds` how many rounds a loop runs, `items` how long the list of a map is.
    `routes` and `handoffs` say how often each branch is taken, `models` how often each model of a choice
    answers, `fallbacks` how often a part fails, `approvals` how often the user approves.
    """

    _: KW_ONLY
    conversations_per_day: float | None = None
    turns: float | None = None
    tokens_in: Numbers | None = None
    tokens_out: Numbers | None = None
    tokens_tool: Numbers | None = None
    calls: Numbers | None = None
    rounds: Numbers | None = None
    items: Numbers | None = None
    fallbacks: Numbers | None = None
    approvals: Numbers | None = None
    routes: Shares = field(default_factory=dict[str, Mapping[str, float]])
    handoffs: Shares = field(default_factory=dict[str, Mapping[str, float]])
    models: Shares = field(default_factory=dict[str, Mapping[str, float]])
    learnt: Seen | None = field(default=None, repr=False)
    """The traffic that earlier trials have shown."""

    def __post_init__(self) -> None:
        for name in ("conversations_per_day", "turns", *_NUMBERS, *_PARTS_OF_ONE):
            most = 1.0 if name in _PARTS_OF_ONE else float("inf")
            given = getattr(self, name)
            by_node = _mapping(given) if isinstance(given, Mapping) else {"": given}
            for node, number in by_node.items():
                where = f"{name}[{node!r}]" if node else name
                if number is not None:
                    _check(number, where, most)
        for name in _SHARES:
            self._check_shares(name)

    def _check_shares(self, name: str) -> None:
        for node, ways in cast("Mapping[str, Any]", getattr(self, name)).items():
            if not isinstance(ways, Mapping):
                raise BadInput(
                    f"Traffic({name}=...) has {ways!r} for {node!r}; give a share for each way: "
                    f"{{{node!r}: {{'billing': 0.6}}}}."
                )
            shares = cast("Mapping[str, Any]", ways)
            for way, share in shares.items():
                _check(share, f"{name}[{node!r}][{way!r}]", 1.0)
            if (whole := sum(shares.values())) > 1 + _HAIR:
                raise BadInput(
                    f"Traffic({name}=...) has shares for {node!r} that add up to {whole:g}; "
                    f"together they are at most 1."
                )

    @classmethod
    def seen(cls, ledgers: Iterable[Ledger], **given: Any) -> Self:
        """The traffic that these trials have shown; `given` are further fields, such as `conversations_per_day`."""
        unknown = given.keys() - {one.name for one in fields(cls)}
        if unknown:
            known = ", ".join(one.name for one in fields(cls) if one.name != "learnt")
            raise BadInput(f"traffic has no {sorted(unknown)[0]!r}; it has {known}.")
        return cls(**given, learnt=learn(ledgers))


def _check(number: Any, where: str, most: float) -> None:
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    if not is_number or not isfinite(number) or not 0 <= number <= most:
        kind = "a share from 0 to 1" if most == 1.0 else "a number from 0"
        raise BadInput(f"Traffic has {where}={number!r}; give {kind}.")


def _mapping(given: Any) -> Mapping[str, object]:
    return given


class Assumed:
    """The traffic of one graph, by the ids of its nodes."""

    def __init__(self, traffic: Traffic, graph: Graph) -> None:
        self.traffic = traffic
        self._by_name: dict[str, list[str]] = {}
        self._teams = {node.id for node in graph.nodes() if isinstance(node.flow, Team)}
        for node in graph.nodes():
            for name in {node.id, node.segment}:
                self._by_name.setdefault(name, []).append(node.id)
        self._numbers: dict[str, dict[str, float]] = {}
        for name in (*_NUMBERS, *_PARTS_OF_ONE):
            given: Numbers | None = getattr(traffic, name)
            if given is None:
                given = {}
            elif not isinstance(given, Mapping):
                given = {ALL: given}
            self._numbers[name] = {self._id(name, key): n for key, n in given.items()}
        self._shares: dict[str, dict[str, Mapping[str, float]]] = {
            name: {self._id(name, key): ways for key, ways in getattr(traffic, name).items()}
            for name in _SHARES
        }

    def _id(self, field: str, name: str) -> str:
        """The static id of the node that a name refers to."""
        if name == ALL:
            return ALL
        found = self._by_name.get(name, [])
        # An agent with hand-offs is in the graph twice: as the team it leads, and as the agent itself.
        found = [one for one in found if (one in self._teams) == (field == "handoffs")] or found
        if name in found or len(found) == 1:
            return name if name in found else found[0]
        if found:
            places = ", ".join(found)
            raise BadInput(
                f"Traffic({field}=...) names {name!r}, but there are several: {places}. "
                f"Name one by its place."
            )
        places = ", ".join(sorted({one for ids in self._by_name.values() for one in ids}))
        raise BadInput(
            f"Traffic({field}=...) names {name!r}, which is not in the agent; its nodes are {places}."
        )

    def named(self, field: str, node: Node) -> float | None:
        """The number that is given for this very node."""
        return self._numbers[field].get(node.id)

    def usual(self, field: str) -> float | None:
        """The number that is given for all nodes."""
        return self._numbers[field].get(ALL)

    def ways(
        self, field: str, node: Node, known: Collection[str], *, all_gone: bool = True
    ) -> Mapping[str, float] | None:
        """The shares that are given for this very node; what is not named has an equal part of the rest.

        Without `all_gone` the rest takes no branch. BadInput for unknown names, or shares that do not add up.
        """
        given = self._shares[field].get(node.id)
        if given is None:
            return None
        for way in given:
            if way not in known:
                raise BadInput(
                    f"Traffic({field}=...) names {way!r} at {node.id!r}; there are "
                    f"{', '.join(known) or 'none'}."
                )
        others = [way for way in known if way not in given]
        left = max(0.0, 1.0 - sum(given.values())) if all_gone else 0.0
        if left > _HAIR and not others:
            raise BadInput(
                f"Traffic({field}=...) names all there is at {node.id!r}, but the shares add up to "
                f"{1 - left:g}; together they are 1."
            )
        return {**given, **{way: left / len(others) for way in others}}
