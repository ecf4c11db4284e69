"""Random flows do the same natively and compiled to google-adk."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from backends.adk.both_ways import check
from greenroom import tool
from greenroom.backends.adk import to_adk
from greenroom.errors import CannotCompile
from resume.test_cuts import DEEP, FAILING_SPECS, GUARDED, SPECS, Spec, graphs

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
FEW = settings(max_examples=settings().max_examples // 5, suppress_health_check=SLOW)


@tool
async def look(key: str) -> str:
    """Look something up."""
    return await graphs.slow_look(key)


@tool
def note(key: str, ctx: Any) -> int:
    """Write something down."""
    return graphs.noted(key, ctx)


@tool
def shaky(key: str) -> str:
    """Fail for some keys."""
    if key == "bad":
        raise RuntimeError("it broke")
    return "fine"


TOOLS = [look, note, shaky, graphs.ask]


def answer(name: str, args: dict[str, Any]) -> Any:
    if name == "approve_it":
        return graphs.judge(str(args["input"]))
    return f"{name} {args.get('question')}"


def is_contested(spec: Any) -> bool:
    """Whether a race in it may be won by one or another, as time will have it."""
    if isinstance(spec, list):
        return any(map(is_contested, spec))
    if not isinstance(spec, dict):
        return False
    parts = spec.get("race", ())
    running = [part for part in parts if part.get("seq", [None])[-1] != {"step": 3}]
    return len(running) > 1 or is_contested(list(spec.values()))


def has_form(spec: Spec) -> bool:
    if '"remote"' in json.dumps(spec):
        return False  # both forms would ask an agent elsewhere for real
    try:
        to_adk(graphs.build(spec))
    except CannotCompile:
        return False
    return True


async def plays_alike(spec: Spec) -> None:
    state = {"session": {"begun": 1}, "shelf": {"notes": []}}
    # In which order the items of a map are remembered is an accident of time.
    says = ["begin"] if '"map"' in json.dumps(spec) else ["begin", "go on"]
    await check(lambda: graphs.build(spec), says, answer, state=state, tools=TOOLS)


@given(spec=SPECS)
@FEW
@pytest.mark.asyncio
async def test_a_random_flow_asks_calls_answers_and_leaves_the_same(spec: Spec) -> None:
    assume(not is_contested(spec) and has_form(spec))
    await plays_alike(spec)


@given(spec=FAILING_SPECS)
@FEW
@pytest.mark.asyncio
async def test_a_random_flow_whose_models_fail_ends_the_same(spec: Spec) -> None:
    assume(has_form(spec))
    await plays_alike(spec)


@pytest.mark.parametrize("spec", [DEEP, GUARDED], ids=["deep", "guarded"])
async def test_a_nested_flow_does_the_same(spec: Spec) -> None:
    await plays_alike(spec)
