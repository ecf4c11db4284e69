"""The page's scripts: modules that read well one by one, and as one file."""

import re
from importlib.resources import files

import pytest

from greenroom.reports.page.shell import asset, flattened, modules

_ASSETS = files("greenroom.reports.page") / "assets"
SCRIPTS = sorted(one.name for one in _ASSETS.iterdir() if one.name.endswith(".js"))
_DECLARED = re.compile(r"^(?:export )?(?:async )?(?:const|let|function|class) (\w+)", re.MULTILINE)
_IMPORTED = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+\.js)";', re.MULTILINE)


def test_no_two_modules_declare_the_same_name():
    found: dict[str, str] = {}
    for script in SCRIPTS:
        for name in _DECLARED.findall(asset(script)):
            assert name not in found, f"{name}: {found[name]} and {script}"
            found[name] = script


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_module_imports_what_is_exported_and_uses_it(script):
    text = asset(script)
    for names, source in _IMPORTED.findall(text):
        for name in filter(None, (part.strip() for part in names.split(","))):
            assert re.search(rf"^export .*\b{name}\b", asset(source), re.MULTILINE), (source, name)
            assert len(re.findall(rf"\b{name}\b", text)) > 1, f"{name} is not used"


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_module_parses_html_or_code(script):
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "Function(",
        "DOMParser",
    ):
        assert word not in asset(script)


def test_all_scripts_and_the_style_are_less_than_a_quarter_of_a_megabyte():
    assert sum(len(asset(script).encode()) for script in SCRIPTS) + len(asset("page.css")) < 250_000


def test_one_file_has_each_module_after_those_it_needs_and_imports_nothing():
    order = modules("report.js")
    for place, script in enumerate(order):
        for _, source in _IMPORTED.findall(asset(script)):
            assert order.index(source) < place
    whole = flattened("report.js")
    assert not re.search(r"^(import|export)\b", whole, re.MULTILINE)
