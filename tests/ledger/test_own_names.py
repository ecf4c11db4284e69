"""Every field that Greenroom's documents have is in the list of its names, and no other word is taken for one."""

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import msgspec
import pytest

import greenroom
from greenroom import Agent, Case, Scripted, UserAgents, tool
from greenroom.agents.graph import compile_flow
from greenroom.cases.criteria import Criterion
from greenroom.cases.data import case_data
from greenroom.cases.mocks import by_args, in_turn
from greenroom.cases.users import Lines
from greenroom.ledger.redaction import Redactor
from greenroom.ledger.redaction.own_names import OWN_NAMES
from greenroom.ledger.redaction.structure import FILLED_BY_AUTHORS, KEYED_BY_AUTHORS

DECLARED = [
    *("results.wire", "results.comparisons.changes", "reports.page.shapes"),
    *("cases.case", "cases.criteria", "cases.users", "cases.mocks", "simulation.recorded.shrink"),
    *("ledger.events", "ledger.messages", "ledger.changes", "ledger.attachments"),
]
"""Modules whose records are written by the names of their fields."""
WRITTEN = [
    *("results/comparisons", "cases/data.py", "cases/users.py", "cases/criteria.py"),
    *("ledger/attachments.py", "ledger/query.py", "ledger/identity.py", "ledger/covered.py"),
    *("telemetry/calls.py", "agents", "reports/page", "suite/needs.py", "suite/forecasts.py"),
    *("suite/mutation/mutation_results.py", "apps/web/answers.py", "apps/web/plays.py"),
    *(f"apps/cli/{name}.py" for name in ("runs", "trials", "chat", "evalsets", "traces")),
    *(f"apps/cli/{name}.py" for name in ("labels", "agents", "validation", "dry_run")),
    *(f"backends/{name}" for name in ("foreign.py", "answered.py", "makers.py", "backend.py")),
]
"""Files that write the names of fields out."""
ROOT = Path(greenroom.__file__).parent


def declared(module: str) -> Iterator[str]:
    found = import_module(f"greenroom.{module}")
    for kind in vars(found).values():
        if isinstance(kind, type) and kind.__module__ == found.__name__:
            if issubclass(kind, msgspec.Struct):
                yield from kind.__struct_encode_fields__
            elif dataclasses.is_dataclass(kind):
                yield from [field.name for field in dataclasses.fields(kind)]


def keys_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Dict(keys=keys):
                found = keys
            case ast.Subscript(slice=key, ctx=ast.Store()):
                found = [key]
            case ast.Call(func=ast.Name(id="_named"), args=[_, *named]):
                found = named
            case _:
                continue
        for key in found:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value


def written(place: str) -> Iterator[str]:
    path = ROOT / place
    for file in path.rglob("*.py") if path.is_dir() else [path]:
        yield from keys_in(ast.parse(file.read_text(encoding="utf-8")))


def described(folder: Path) -> Iterator[str]:
    """What the backends say of the agents of their frameworks."""
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.FunctionDef(name=name) if re.match("_?(describe|snapshot)", name):
                    yield from keys_in(node)
                case _:
                    continue


def options() -> Iterator[str]:
    """The options of the metrics that Greenroom brings along: a criterion has them beside its name."""
    for point in entry_points(group="greenroom.metrics"):
        if point.value.startswith("greenroom."):
            yield from inspect.signature(point.load()).parameters


def missing(names: Iterator[str]) -> list[str]:
    return sorted({name for name in names if name.isidentifier() and name.islower()} - OWN_NAMES)


@pytest.mark.parametrize("module", DECLARED)
def test_the_fields_of_what_is_declared_are_listed(module: str) -> None:
    assert missing(declared(module)) == []


@pytest.mark.parametrize("place", WRITTEN)
def test_the_fields_that_are_written_out_are_listed(place: str) -> None:
    assert missing(written(place)) == []


def test_what_backends_say_and_the_options_of_metrics_are_listed() -> None:
    assert missing(described(ROOT / "backends")) == []
    assert missing(options()) == []


@tool(yields=True)
def approve(order: dict[str, int]) -> dict[str, int]:
    """Ask somebody."""
    raise AssertionError("mocked")


PASSWORD = "huntersword"
MARK = "[redacted:SHOP_PASSWORD]"
ORDER = {PASSWORD: {"status": PASSWORD, PASSWORD: 1}}


def fields_of(document: object, under: str = "") -> Iterator[str]:
    """The keys of a document that are not an author's."""
    if isinstance(document, list):
        for item in document:
            yield from fields_of(item)
    elif isinstance(document, Mapping) and under not in FILLED_BY_AUTHORS:
        for key, item in document.items():
            if under not in KEYED_BY_AUTHORS:
                yield key
            yield from fields_of(item, key)


def whole_case() -> Case:
    approving = UserAgents(tools={"approve": ORDER, "sign": Lines("yes", ORDER)})
    metrics = [Criterion("called", options={"tool": "approve", "arguments": ORDER})]
    mocks = {"pay": in_turn(ORDER, 2), "look": by_args((ORDER, 1), otherwise=ORDER)}
    return Case("a", "hi", user=approving, mocks=mocks, metrics=metrics, metadata=ORDER)


def test_a_case_and_an_agent_keep_their_fields_and_no_secret() -> None:
    hand = Redactor([("SHOP_PASSWORD", PASSWORD)])
    agent = compile_flow(Agent("clerk", model=Scripted("Hi."), tools=[approve])).snapshot
    for document in (case_data(whole_case()), agent):
        clean = hand.document(document)
        assert PASSWORD not in str(clean)
        assert set(fields_of(clean)) - {MARK} <= OWN_NAMES
        assert set(fields_of(clean)) - {MARK} == set(fields_of(document)) - {PASSWORD}


@pytest.mark.parametrize(
    "field",
    [
        *("arguments", "response", "result", "always", "answers", "facts", "enum", "says"),
        *("settings", "lines", "then", "user", "tools", "parts", "anything"),
    ],
)
def test_no_field_keeps_a_secret_as_a_key(field: str) -> None:
    hand = Redactor([("SHOP_PASSWORD", PASSWORD)])
    clean = {MARK: {"status": MARK, MARK: 1}}
    assert hand.document({field: ORDER}) == {field: clean}
    assert hand.document({"turns": [{field: [ORDER]}]}) == {"turns": [{field: [clean]}]}


@pytest.mark.parametrize("field", ["arguments", "response", "always", "answers", "facts", "enum"])
def test_words_of_ours_in_the_data_of_authors_are_text(field: str) -> None:
    hand = Redactor([("LOGIN", "user"), ("SORT", "status")])
    given = {field: {"order": {"status": "user"}}}
    assert hand.document(given) == {field: {"order": {"[redacted:SORT]": "[redacted:LOGIN]"}}}


def test_an_object_in_a_list_has_fields_even_where_a_mapping_has_names() -> None:
    hand = Redactor([("LOGIN", "type")])
    given = {"parts": [{"type": "text", "content": "type"}]}
    assert hand.document(given) == {"parts": [{"type": "text", "content": "[redacted:LOGIN]"}]}


def test_a_record_whose_types_cannot_be_read_is_text_throughout() -> None:
    paid = dataclasses.make_dataclass("Paid", [("amount", "in EUR"), ("by", "str")])
    hand = Redactor([("SHOP_PASSWORD", PASSWORD)])
    assert hand.value(paid(PASSWORD, PASSWORD)) == paid(MARK, MARK)
