"""An agent's traffic as trials show it: how often each node was visited, what it asked, and for how much."""

from collections.abc import Iterable

from msgspec import Struct, field

from greenroom.errors import BadInput
from greenroom.ledger.events import InvocationStarted, ModelCalled, ModelReplied, NodeStarted
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Voice


class SeenModel(Struct):
    """The replies that one node got from one model, by the name that was asked for."""

    calls: int = 0
    unpriced: int = 0
    """How many of the replies had no price."""
    usd: float = 0.0

    @property
    def usd_per_call(self) -> float | None:
        """What a call cost on average; None if one of them had no price."""
        return None if self.unpriced or not self.calls else self.usd / self.calls


class SeenNode(Struct):
    """The model calls of one node in all trials together."""

    agent: str = ""
    models: dict[str, SeenModel] = field(default_factory=dict[str, SeenModel])
    calls: int = 0
    counted: int = 0
    """How many replies reported their tokens; the figures below are for those."""
    tokens_in: int = 0
    tokens_out: int = 0
    places: int = 0
    """The sum of the replies' places within their visits, from 0; then of their squares, and times tokens."""
    places_squared: int = 0
    places_by_tokens: int = 0

    @property
    def tokens_per_call(self) -> tuple[float, float] | None:
        """Tokens read and written on average; None if no reply reported them."""
        if not self.counted:
            return None
        return self.tokens_in / self.counted, self.tokens_out / self.counted

    @property
    def growth(self) -> float | None:
        """How many tokens more each further question of a visit reads; None if none had several."""
        spread = self.counted * self.places_squared - self.places**2
        if spread <= 0:
            return None
        slope = (self.counted * self.places_by_tokens - self.places * self.tokens_in) / spread
        return max(0.0, slope)

    def add(self, reply: ModelReplied, asked: str, place: int) -> None:
        """Count a reply, the `place`-th of its visit."""
        self.agent = self.agent or reply.agent
        self.calls += 1
        model = self.models.setdefault(asked, SeenModel())
        model.calls += 1
        model.usd += reply.cost or 0.0
        model.unpriced += reply.cost is None
        if reply.usage is not None:
            self.counted += 1
            self.tokens_in += reply.usage.input
            self.tokens_out += reply.usage.output
            self.places += place
            self.places_squared += place * place
            self.places_by_tokens += place * reply.usage.input


class Seen(Struct):
    """Runs added up, by the static ids of nodes."""

    trials: int = 0
    turns: int = 0
    """How often the agent was started."""
    visits: dict[str, int] = field(default_factory=dict[str, int])
    nodes: dict[str, SeenNode] = field(default_factory=dict[str, SeenNode])

    def share(self, parent: str, child: str) -> float | None:
        """How often a part was visited for each visit of its parent; None if the parent never was."""
        begun = self.visits.get(parent, 0)
        return self.visits.get(child, 0) / begun if begun else None


def learn(ledgers: Iterable[Ledger], voice: Voice = "agent") -> Seen:
    """The traffic that these trials show for one side of the conversation."""
    seen = Seen()
    for ledger in ledgers:
        seen.trials += 1
        _add_trial(seen, checked_ledger(ledger), voice)
    if not seen.trials:
        raise BadInput("no trial was given to learn from; give the ledgers of one or more.")
    return seen


def checked_ledger(given: object) -> Ledger:
    """The ledger of a trial; BadInput for one that kept none."""
    if not isinstance(given, Ledger):
        raise BadInput(
            f"{given!r} is not a ledger; give those of runs that have kept theirs (keep_ledgers=True)."
        )
    return given


def _add_trial(seen: Seen, ledger: Ledger, voice: Voice) -> None:
    asked: dict[tuple[str, str, int], str] = {}
    places: dict[str, int] = {}
    for event in ledger:
        if event.voice != voice:
            continue
        match event:
            case InvocationStarted():
                seen.turns += 1
            case NodeStarted(node=node):
                seen.visits[node] = seen.visits.get(node, 0) + 1
            case ModelCalled():
                asked[event.path, event.node, event.n] = event.model
            case ModelReplied():
                # A provider may call the model that answered by a longer name.
                model = asked.pop((event.path, event.node, event.n), "") or event.model
                place = places.get(event.path, 0)
                places[event.path] = place + 1
                seen.nodes.setdefault(event.node, SeenNode()).add(event, model, place)
            case _:
                pass
