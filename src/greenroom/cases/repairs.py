"""Safe repairs of an eval-set file, each of them listed."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from greenroom.cases.files.shapes import shape_named
from greenroom.cases.names import free_id
from greenroom.cases.problems import Problem
from greenroom.ledger.plain import Json, is_array, is_object

# What the shapes of files call their list of cases, and a case's id.
_NAMES = (("cases", "id"), ("eval_cases", "eval_id"))


def fix(data: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """A copy of a file's content with safe repairs, and a list of them.

    Missing ids are made up, equal ones get a number, blank last turns are removed, tags are trimmed.
    What might change the meaning of a case is left to you.
    """
    mended = deepcopy(dict(data))
    repairs: list[Problem] = []
    for cases, id_name in _NAMES:
        listed = mended.get(cases)
        if not is_array(listed):
            continue
        places = [(f"{cases}[{i}]", case) for i, case in enumerate(listed) if is_object(case)]
        repairs += _mend_ids(_named_in(places, mended), id_name)
        for where, case in places:
            repairs += _drop_blank_turns(case, where)
            repairs += _trim_tags(case, where)
    return mended, repairs


Places = list[tuple[str, dict[str, Json]]]


def _named_in(places: Places, data: dict[str, Json]) -> Places:
    """The mappings that hold the ids: the cases, or in fluent files their `metadata`."""
    if not shape_named("fluent").recognises(data):
        return places
    inner = [(f"{where}.metadata", case.get("metadata")) for where, case in places]
    return [(where, held) for where, held in inner if is_object(held) and "id" in held]


def _mend_ids(places: Places, id_name: str) -> Iterator[Problem]:
    given = {found for _, case in places if (found := _id(case.get(id_name)))}
    seen: set[str] = set()
    for number, (where, case) in enumerate(places, start=1):
        old, wanted = case.get(id_name), _id(case.get(id_name))
        if old is not None and wanted is None:
            continue  # an id that is not a string: only the user knows what it should be
        name = wanted or f"case-{number}"
        new = free_id(name, given | seen) if name in (seen if wanted else given) else name
        seen.add(new)
        if new != old:
            case[id_name] = new
            yield Problem(f"{where}.{id_name}", _describe_change(old, wanted), f"It is now {new!r}")


def _id(given: Json) -> str | None:
    """The id without blanks around it; "" if it is blank, None if it is not a string."""
    if given is None:
        return ""
    return given.strip() if isinstance(given, str) else None


def _describe_change(old: Json, wanted: str | None) -> str:
    if not wanted:
        return "the case had no id"
    return f"the id {old!r} had blanks around it" if old != wanted else f"the id {old!r} was taken"


def _drop_blank_turns(case: dict[str, Json], where: str) -> Iterator[Problem]:
    turns = case.get("turns")
    while is_array(turns) and len(turns) > 1 and _is_blank(turns[-1]):
        turns.pop()
        place = f"{where}.turns[{len(turns)}]"
        yield Problem(place, "the user said nothing in the last turn", "The turn is dropped")


def _is_blank(turn: Json) -> bool:
    # A turn that expects something was meant to be filled in.
    if not is_object(turn) or turn.keys() - {"says"}:
        return False
    says = turn.get("says", "")
    return isinstance(says, str) and not says.strip()


def _trim_tags(case: dict[str, Json], where: str) -> Iterator[Problem]:
    tags = case.get("tags")
    if not is_array(tags):
        return
    trimmed = [tag.strip() if isinstance(tag, str) else tag for tag in tags]
    kept: list[Json] = []
    for tag in trimmed:
        if tag != "" and tag not in kept:
            kept.append(tag)
    if kept != tags:
        case["tags"] = kept
        yield Problem(f"{where}.tags", f"the tags were {tags!r}", f"They are now {kept!r}")
