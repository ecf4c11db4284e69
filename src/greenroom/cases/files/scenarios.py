"""Scenario files: a list of conversations to be improvised by a simulated user."""

from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.cases.fields import Fields, ProblemList
from greenroom.cases.files.shapes import Shape
from greenroom.cases.names import checked_id
from greenroom.cases.problems import at
from greenroom.cases.scenarios import SCENARIO_FIELDS, scenario_case
from greenroom.cases.users import SimulatedUser, user_data
from greenroom.ledger.plain import Json, as_object, is_array, is_object, plain

_SIGNS = ("starting_prompt", "startingPrompt", "conversation_plan", "conversationPlan")
_PERSON = {"plan": "conversation_plan"}


def _listed(data: Json) -> Json:
    return data.get("scenarios") if is_object(data) and len(data) == 1 else data


def _recognises(data: Json) -> str | None:
    listed = _listed(data)
    if is_array(listed) and any(is_object(i) and any(s in i for s in _SIGNS) for i in listed):
        return "it is a list of mappings with `starting_prompt` or `conversation_plan`"
    return None


def _read(data: Json, stem: str) -> EvalSet:
    problems = ProblemList()
    place = "" if is_array(data) else "scenarios"
    cases = problems.cases(_listed(data), place, _case, "scenario_id")
    problems.settle()
    return EvalSet(stem, cases)


def _case(data: Json, place: str) -> Case:
    fields = Fields(data, place, SCENARIO_FIELDS, {"says": "starting_prompt"})
    given = fields.rest()
    number = int(place.rpartition("[")[2].rstrip("]")) + 1
    case = fields.part(lambda: scenario_case(given, place, id=f"scenario-{number}"), None)
    if case is not None:
        where = at(place, "id" if "id" in given else "scenario_id")
        fields.part(lambda: checked_id(case.id, where), "")
    fields.settle()
    assert case is not None  # otherwise a problem would have been raised
    return case


def _case_data(case: Case) -> dict[str, Json]:
    data: dict[str, Json] = {"scenario_id": case.id}
    parts: dict[str, Json] = {
        "name": case.name,
        "description": case.description,
        "starting_prompt": case.script[0].says if case.script else "",
        "tags": list(case.tags),
        "metadata": plain(case.metadata),
    }
    data |= {name: value for name, value in parts.items() if value}
    if isinstance(case.user, SimulatedUser):
        person = as_object(user_data(case.user) or {})
        data |= {_PERSON.get(name, name): value for name, value in person.items() if value != ""}
        data["max_turns"] = case.stop.max_turns
    data.setdefault("starting_prompt", "")
    return data


SHAPE = Shape(
    "scenarios",
    "a list of mappings with `starting_prompt` and `conversation_plan`",
    _recognises,
    _read,
    lambda evalset: [_case_data(case) for case in evalset.cases],
    lists=("", ""),
    names=SCENARIO_FIELDS,
    called_by_file="set",
)
