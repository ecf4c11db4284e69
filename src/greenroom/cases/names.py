"""What files call things: ids, expectations in every shape, and what an unknown field may mean."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence

from greenroom.cases.problems import at, shown, wrong
from greenroom.errors import BadFile
from greenroom.ledger.choices import near
from greenroom.ledger.plain import Json, is_object

_NEAR = 0.75

MEANINGS: Mapping[str, tuple[str, ...]] = {
    "says": ("says", "query", "input", "user", "user_content", "question", "prompt"),
    "tools": (
        "tools",
        "tool_calls",
        "tool_uses",
        "expected_tools",
        "expected_tool_calls",
        "expected_tool_use",
        "expected_tool_uses",
        "expected_tool_trajectory",
        "expected_trajectory",
        "expected_calls",
        "intermediate_data",
        "invocation_events",
        "trajectory",
    ),
    "args": ("expected_tool_args", "expected_args", "tool_input"),
    "reference": (
        "reference",
        "reference_answer",
        "reference_response",
        "final_response",
        "expected_final_response",
        "expected_reference",
        "expected",
        "expected_output",
        "expected_answer",
        "answer",
        "ground_truth",
    ),
    "response": ("response", "expected_response"),
    "contains": (
        "contains",
        "expected_response_contains",
        "response_contains",
        "expected_contains",
    ),
    "intermediate": (
        "intermediate",
        "intermediate_responses",
        "expected_intermediate_responses",
        "expected_intermediate_agent_responses",
    ),
    "state": (
        "state",
        "expected_state",
        "state_assertions",
        "final_session_state",
        "expected_session_state",
        "state_matches",
    ),
    "expect": ("expect", "expects", "expectation", "expectations"),
}
"""The names that fields have in one shape or another, by what they mean there."""

INSTRUCTIONS = frozenset(
    [
        "allow_tools",
        "criteria",
        "implied",
        "initial_state",
        "max_turns",
        "metrics",
        "mock_tool_outputs",
        "mocks",
        "num_runs",
        "num_samples",
        "simulation",
        "state_after",
        "stop",
        "stopped_by",
        "target",
        "target_node",
        "threshold",
        "thresholds",
        "trials",
        "turns",
    ]
)
"""Fields that say in some shape how a case is run or judged."""

_SETTINGS = frozenset(MEANINGS["says"]) | {"state", "user"}
_MEANING = {name: meaning for meaning, names in MEANINGS.items() for name in names}


def is_heeded(name: str) -> bool:
    """Whether a field of this name says, in some shape, what is expected or how a case is run or judged."""
    return name in INSTRUCTIONS or is_expectation(name)


def is_expectation(name: str) -> bool:
    """Whether a field of this name says, in some shape, what is expected."""
    return name not in _SETTINGS and (name in _MEANING or name.startswith("expected_"))


def unknown_field(
    place: str, field: str, known: Iterable[str], means: Mapping[str, str] | None = None
) -> BadFile:
    """The error for a field that is not one of those known at a place.

    `means` says how the likely meaning of the field is written there.
    """
    names = [name for name in known if name != "extra"]
    meant = meant_by(field, names, means or {})
    fix = f"Did you mean {meant!r}?" if meant else f"Use one of: {', '.join(names)}."
    if "metadata" in names:
        fix += " Your own fields belong under `metadata`"
    is_near = meant if meant in names else ""
    return wrong(at(place, field), f"the field {shown(field)} is unknown", fix, meant=is_near)


def near_name(field: str, known: Iterable[str]) -> str:
    """The known name that this field misspells; None if it resembles none."""
    return next(iter(near(field, known, alike=_NEAR)), "")


def name_and_details(data: Json, known: Sequence[str]) -> tuple[str, Json]:
    """A mapping's only key and its value, if the key is a name and the value its details; "" if the key is a field.

    People often write something with a name and details this way.
    """
    if not is_object(data) or len(data) != 1:
        return "", None
    [(key, details)] = data.items()
    return ("", None) if key in known or near_name(key, known) else (key, details)


def meant_by(field: str, known: Iterable[str], means: Mapping[str, str]) -> str:
    """How the likely meaning of an unknown field is written here; None if it is unknown."""
    meaning = _MEANING.get(field, field)
    if meaning in means:
        return means[meaning]
    return near_name(field, known) or means.get(_MEANING.get(near_name(field, _MEANING), ""), "")


MAX_ID = 200
_UNSAFE = re.compile(r"[/\\]|\.\.+")


def id_trouble(name: str) -> str | None:
    """Why a string cannot be an id, or None if it can."""
    if not name.strip():
        return "the id is blank"
    if name != name.strip():
        return f"the id {shown(name)} has blanks around it"
    if len(name) > MAX_ID:
        return f"the id {name[:40]!r}... has {len(name)} characters, more than {MAX_ID}"
    if not name.isprintable():
        return f"the id {shown(name)} holds invisible characters"
    if _UNSAFE.search(name) or name.startswith((".", "~")):
        return f"the id {shown(name)} reads like a path"
    return None


def free_id(wanted: str, taken: Container[str]) -> str:
    """`wanted`, or `wanted-2` and so on if that is taken."""
    number, found = 1, wanted
    while found in taken:
        number += 1
        found = f"{wanted}-{number}"
    return found


def checked_id(name: str, place: str) -> str:
    """The id, if it can be one."""
    if trouble := id_trouble(name):
        raise wrong(place, trouble, "Give it a plain name, such as 'refund-twice'")
    return name


def foreign_id(name: str, place: str, field: str = "eval_id") -> tuple[str, dict[str, str]]:
    """An id for a name that reads like a path in another tool's file, and the original field to keep."""
    if "/" not in name and "\\" not in name:
        return checked_id(name, place), {}
    flat = _UNSAFE.sub("_", name.strip("/\\~. "))
    return checked_id(flat, place), {field: name}
