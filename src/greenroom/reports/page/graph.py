"""The agent's graph as a picture of nested parts, and the path that one trial took through it."""

from collections.abc import Iterator

from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.ledger.recorded_way import RecordedWay
from greenroom.ledger.snapshots import Facts, as_facts, members_in, parts_of, purpose_of, tools_of
from greenroom.reports.page.shapes import Part
from greenroom.results.words import shortened

_MOST_PARTS = 150
_DEEPEST = 20
_LONGEST = 120


def graph_of(snapshot: Json, trial: Ledger | None = None) -> Part | None:
    """The picture of what a backend's `snapshot` describes; None if there is nothing worth drawing."""
    facts = as_facts(snapshot)
    way = None if trial is None else RecordedWay(trial, set(members_in(facts)))
    root = _Picture(way).part(facts)
    if "id" not in facts and way is not None:
        # Some frameworks' snapshots do not list the nodes that a trial visits.
        known = set(_names(root))
        missing = [node for node in way.nodes if node not in known][:_MOST_PARTS]
        root.parts += [_figures(Part(kind="node", name=_short(n), id=n), way) for n in missing]
    return root if root.parts or root.tools or root.model else None


class _Picture:
    """Builds parts one after another, until there are too many to look at."""

    def __init__(self, way: RecordedWay | None) -> None:
        self._way = way
        self._left = _MOST_PARTS

    def part(self, facts: Facts, key: str = "", depth: int = 0) -> Part:
        kind, below = str(facts.get("kind") or "agent"), parts_of(facts)
        name = str(facts.get("name") or facts.get("framework") or "")
        node = str(facts.get("id") or facts.get("name") or "")
        model = facts.get("model")
        tools = list(dict.fromkeys(tools_of(facts.get("tools"))))[:50]
        self._left -= 1
        fits = self._left > len(below) and depth < _DEEPEST
        found = Part(
            kind=kind,
            name=_short(name),
            id=node,
            label=_short(purpose_of(facts)),
            key=_short(key),
            model=_short(model) if isinstance(model, str) else "",
            tools=[
                (_short(t), 0 if self._way is None else self._way.calls(node, t)) for t in tools
            ],
            parts=[self.part(p, word, depth + 1) for word, p in _reached(kind, facts, below)]
            if fits
            else [],
        )
        return found if self._way is None else _figures(found, self._way)


def _reached(kind: str, facts: Facts, below: dict[str, Facts]) -> Iterator[tuple[str, Facts]]:
    """Each part with the label of the edge that leads to it."""
    for number, (key, part) in enumerate(below.items()):
        match kind:
            case "route":
                yield key, part
            case "fallback":
                yield ("if that fails" if number else "first"), part
            case "approved":
                yes = "yes, or not asked" if facts.get("when") is not None else "yes"
                yield (yes if key == "body" else "no"), part
            case _:
                yield "", part


def _figures(part: Part, way: RecordedWay) -> Part:
    part.visits = len(way.runs(part.id))
    if part.visits:
        part.s = round(way.seconds(part.id), 4)
        spent = way.spending(part.id)
        part.cost = None if spent is None else spent.cost
        troubles = ((way.failures(part.id), "failed"), (way.unfinished(part.id), "not finished"))
        part.trouble = ", ".join(f"{number} {word}" for number, word in troubles if number)
    return part


def _names(part: Part) -> Iterator[str]:
    yield part.id
    for below in part.parts:
        yield from _names(below)


def _short(text: str) -> str:
    return shortened(text, _LONGEST)
