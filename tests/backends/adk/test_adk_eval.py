"""What we write for google-adk is run by google-adk's own command."""

import json
from pathlib import Path

import pytest

from backends.adk.eval_environment import environment, run
from greenroom import Case, EvalSet, Expect, Turn, call
from greenroom.cases.files import write_evalset

pytestmark = pytest.mark.heavy

AGENT = '''
from backends.adk.scripts import WEATHER, agent
from greenroom.metrics import called
from greenroom.suite.adk.metrics import register_metrics

register_metrics([called("weather")])


def weather(city: str) -> str:
    """The weather."""
    return "mild"


root_agent = agent("clerk", WEATHER, "It is mild in Oslo.", "You are welcome.", tools=[weather])
'''
OSLO = Turn(
    "weather?", Expect(tools=[call("weather", city="Oslo")], reference="It is mild in Oslo.")
)
THANKS = Turn("thanks", Expect(tools=[], reference="You are welcome."))
CASES = [
    Case("one turn", turns=[OSLO], mocks={"weather": "mild"}, tags=["weather"]),
    Case("two turns", turns=[OSLO, THANKS], state={"session": {"order": 7}}),
]
BERGEN = Case(
    "another town", turns=[Turn("weather?", Expect(tools=[call("weather", city="Bergen")]))]
)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "__init__.py").write_text("from . import agent\n")
    (folder / "agent.py").write_text(AGENT)
    return folder


def adk_eval(shop: Path, file: str, *options: str) -> str:
    command = environment().with_name("adk")
    told = run(
        str(command), "eval", "shop", f"shop/{file}", *options, folder=shop.parent, check=False
    )
    return told[told.index("Eval Run Summary") :] if "Eval Run Summary" in told else told


@pytest.mark.parametrize("file", ["shop.evalset.json", "shop.test.json"])
def test_a_set_that_we_write_passes_where_it_should(shop: Path, file: str):
    write_evalset(EvalSet("shop", CASES), shop / file, shape="adk")
    told = adk_eval(shop, file)
    assert "Tests passed: 2\n  Tests failed: 0" in told, told
    assert told.endswith("exit 0")


def test_a_set_that_we_write_fails_where_it_should(shop: Path):
    write_evalset(EvalSet("shop", [*CASES, BERGEN]), shop / "shop.evalset.json", shape="adk")
    told = adk_eval(shop, "shop.evalset.json")
    assert "Tests passed: 2\n  Tests failed: 1" in told, told
    assert told.endswith("exit 1")


@pytest.mark.parametrize("wanted,passes", [("called('weather')", True), ("unheard_of", False)])
def test_a_config_beside_the_set_names_their_metrics_and_ours(
    shop: Path, wanted: str, passes: bool
):
    write_evalset(EvalSet("shop", CASES[:1]), shop / "shop.evalset.json", shape="adk")
    config = shop / "test_config.json"
    config.write_text(json.dumps({"criteria": {wanted: 1.0}}))
    told = adk_eval(shop, "shop.evalset.json", "--config_file_path", str(config))
    assert ("Tests passed: 1" in told) is passes, told
