"""What files call things: the names of expectations in every shape, and what a strange field may mean."""

from collections.abc import Iterable, Mapping

from greenroom.cases.places import at, shown, wrong
from greenroom.errors import BadFile

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

_SETTINGS = frozenset(MEANINGS["says"]) | {"state", "user"}
_MEANING = {name: meaning for meaning, names in MEANINGS.items() for name in names}


def is_expectation(name: str) -> bool:
    """Whether a field of this name says in some shape what is expected."""
    return name not in _SETTINGS and (name in _MEANING or name.startswith("expected_"))


def unknown_field(
    place: str, field: str, known: Iterable[str], means: Mapping[str, str] | None = None
) -> BadFile:
    """The error for a field that is none of those known at a place.

    `means` tells how what the field may mean is written there.
    """
    names = [name for name in known if name != "extra"]
    meant = _meant(field, names, means or {})
    fix = f"Did you mean {meant!r}?" if meant else f"Known are {', '.join(names)}."
    if "metadata" in names:
        fix += " A field of your own belongs under `metadata`"
    return wrong(at(place, field), f"the field {shown(field)} is unknown", fix)


def near_name(field: str, known: Iterable[str]) -> str:
    """The known name that a field looks like misspelt; none if it is like no other."""
    from difflib import get_close_matches  # slow to load, and only a mistake needs it

    near = get_close_matches(field, list(known), 1, _NEAR)
    return near[0] if near else ""


def _meant(field: str, known: Iterable[str], means: Mapping[str, str]) -> str:
    meaning = _MEANING.get(field, "")
    if meaning in means:
        return means[meaning]
    return near_name(field, known) or means.get(_MEANING.get(near_name(field, _MEANING), ""), "")
