"""Two timelines next to each other: which rows belong together, and where they first differ.

Actions are paired only if they are the same on both sides: a call with its arguments, a decision, a pause,
a refusal, an error, the end. What is said is always paired, and its words are compared inside the pair. Each
branch of a graph is aligned separately, so that their order does not matter.
"""

import json
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from greenroom.reports.page.shapes import Beside, BesideRow

Line = Mapping[str, Any]
_DONE = frozenset(("tool", "decision", "pause", "refused", "error", "end"))
_SAID = frozenset(("user", "agent", "answer"))


def beside(a: Sequence[Line], b: Sequence[Line]) -> Beside:
    """The rows of two timelines in one order."""
    lanes: dict[tuple[object, object], tuple[list[int], list[int]]] = {}
    for side, rows in enumerate((a, b)):
        for place, row in enumerate(rows):
            lane = (row.get("theirs", False), row.get("path", ""))
            lanes.setdefault(lane, ([], []))[side].append(place)
    pairs: dict[int, int] = {}
    for left, right in lanes.values():
        pairs.update(_paired(a, b, left, right))
    rows = _in_order(a, b, pairs)
    words = next((n for n, row in enumerate(rows) if row.differs == "words"), None)
    act = next((n for n, row in enumerate(rows) if row.differs == "act"), None)
    return Beside(rows=rows, words=words, act=act)


def _paired(
    a: Sequence[Line], b: Sequence[Line], left: Sequence[int], right: Sequence[int]
) -> dict[int, int]:
    """Which rows of one branch belong together."""
    matcher = SequenceMatcher(
        None, [_key(a[n]) for n in left], [_key(b[n]) for n in right], autojunk=False
    )
    pairs: dict[int, int] = {}
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind == "equal":
            pairs.update(zip(left[i1:i2], right[j1:j2], strict=True))
        elif kind == "replace":
            # A call of the same tool with other arguments is placed next to it.
            free = list(right[j1:j2])
            for n in left[i1:i2]:
                like = [m for m in free if _name(b[m]) == _name(a[n])]
                if like:
                    pairs[n] = like[0]
                    free = [m for m in free if m > like[0]]
    return pairs


def _in_order(a: Sequence[Line], b: Sequence[Line], pairs: Mapping[int, int]) -> list[BesideRow]:
    """All rows in the left side's order; rows of the right side alone keep their predecessor there."""
    partner = {right: left for left, right in pairs.items()}
    after: dict[int, list[int]] = {}
    anchor = -1
    for place in range(len(b)):
        if place in partner:
            anchor = partner[place]
        else:
            after.setdefault(anchor, []).append(place)
    found = [BesideRow(b=n, differs=_alone(b[n])) for n in after.get(-1, ())]
    for place, row in enumerate(a):
        other = pairs.get(place)
        differs = _alone(row) if other is None else _difference(row, b[other])
        found.append(BesideRow(a=place, b=other, differs=differs))
        found += [BesideRow(b=n, differs=_alone(b[n])) for n in after.get(place, ())]
    return found


def _key(row: Line) -> str:
    kind = row["kind"]
    if kind not in _DONE:
        return str(kind)
    args = row.get("value", {}).get("args")
    text = row.get("text") if kind == "decision" else None
    return json.dumps([kind, row.get("who"), args, text], sort_keys=True, default=str)


def _name(row: Line) -> tuple[str, object]:
    return str(row["kind"]), row.get("who") if row["kind"] in ("tool", "refused") else None


def _alone(row: Line) -> Any:
    return "act" if row["kind"] in _DONE else "words" if row["kind"] in _SAID else ""


def _difference(one: Line, other: Line) -> Any:
    if _key(one) != _key(other):
        return _alone(one)
    shown = ("text", "value", "files")
    same = all(one.get(name) == other.get(name) for name in shown)
    return "" if same or one["kind"] in ("model", "node", "state", "note") else "words"
