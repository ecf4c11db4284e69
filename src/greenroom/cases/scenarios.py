"""Scenarios: conversations to be improvised, in the format of other tools."""

from collections.abc import Mapping
from typing import Any, cast

from greenroom.cases.case import Case, Stop
from greenroom.cases.fields import ProblemList
from greenroom.cases.problems import at, shown, wrong
from greenroom.cases.users import SimulatedUser
from greenroom.errors import BadCase, BadFile, BadValue
from greenroom.ledger.plain import plain

SCENARIO_TURNS = 10
"""The maximum length of an improvised conversation whose scenario sets none."""

# The names of each field in other tools; camel case is accepted too.
_NAMES = {
    "scenario_id": "id",
    "id": "id",
    "name": "name",
    "description": "description",
    "starting_prompt": "says",
    "conversation_plan": "plan",
    "plan": "plan",
    "goals": "goals",
    "goal": "goal",
    "success_criteria": "goal",
    "persona": "persona",
    "user_persona": "persona",
    "model": "model",
    "stop_signal": "stop_signal",
    "max_turns": "max_turns",
    "max_allowed_invocations": "max_turns",
    "tags": "tags",
    "metadata": "metadata",
}
SCENARIO_FIELDS = tuple(_NAMES)
"""The fields of a scenario, by all their names."""
_PERSON = ("plan", "goals", "goal", "persona", "model", "stop_signal")


def scenario_cases(data: Any, where: str = "scenarios", *, model: Any = None) -> list[Case]:
    """The cases of a list of scenarios, or of {"scenarios": [...]}; `model` simulates every user."""
    match data:
        case [*scenarios] | {"scenarios": [*scenarios]}:
            return [
                scenario_case(item, f"{where}[{i}]", id=f"scenario-{i + 1}", model=model)
                for i, item in enumerate(scenarios)
            ]
        case _:
            raise BadFile(f"{where} holds no list of scenarios, but {data!r}.")


def scenario_case(
    data: object, where: str = "scenario", *, id: str = "scenario", model: object = None
) -> Case:
    """The case of one scenario: its starting prompt, then a user who improvises.

    `id` is used where the scenario has none, `model` where it names none.
    """
    given = _named(data, where)
    person = {key: given.pop(key) for key in _PERSON if key in given}
    person["persona"] = _persona(person.get("persona"), where)
    person.setdefault("model", model)
    turns = given.pop("max_turns", SCENARIO_TURNS)
    try:
        stop = Stop(max_turns=turns)
        return Case(given.pop("id", id), user=SimulatedUser(**person), stop=stop, **given)
    except (BadCase, BadValue) as error:
        raise BadFile(f"{where}: {error}") from error


def _named(data: object, where: str) -> dict[str, Any]:
    """The scenario's fields by our names; one given under two names is refused."""
    if not isinstance(data, Mapping):
        raise BadFile(f"{where} is {data!r}, but a scenario is a mapping with {sorted(_NAMES)}.")
    found: dict[str, Any] = {}
    problems = ProblemList()
    for key, value in cast("Mapping[Any, Any]", data).items():
        name = _NAMES.get(_snake(str(key)))
        if name is None:
            raise BadFile(
                f"{where} has the unknown field {key!r}; use fields from {sorted(_NAMES)}."
            )
        if name in found:
            raise BadFile(f"{where} gives {name!r} twice, the second time as {key!r}; keep one.")
        if value is not None:
            kind, words = _KINDS.get(name, (object, ""))
            if not isinstance(value, kind) or isinstance(value, bool):
                problems.add(wrong(at(where, str(key)), f"{shown(value)} should be {words}"), where)
            found[name] = plain(value, f"{where}.{key}")
    problems.settle()
    return found


_KINDS: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(
        ("id", "name", "description", "says", "goal", "stop_signal"), (str, "a string")
    ),
    "plan": ((str, list, tuple), "a string, or a list of steps"),
    "goals": ((list, tuple), "a list of strings"),
    "tags": ((list, tuple), "a list of strings"),
    "max_turns": (int, "a whole number"),
    "metadata": (Mapping, "a mapping"),
}


def _snake(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)


def _persona(given: Any, where: str) -> str:
    """A persona as one string; some files describe it with behaviours and their instructions."""
    match given:
        case None:
            return ""
        case str():
            return given
        case {"description": str(description), **rest}:
            lines = [description, *_instructions(rest.get("behaviors"))]
            return "\n".join(lines)
        case _:
            raise BadFile(f"{where}.persona is {given!r}; write it as a string.")


def _instructions(behaviors: object) -> list[str]:
    found: list[str] = []
    for behavior in cast("list[Any]", behaviors) if isinstance(behaviors, list) else []:
        match behavior:
            case {"behavior_instructions": [*lines]} | {"behaviorInstructions": [*lines]}:
                found += [f"- {line}" for line in lines]
            case _:
                pass
    return found
