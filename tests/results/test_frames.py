"""A report in a notebook: a table to look at, and data frames to calculate with."""

import json
import sys

import pytest

from greenroom import Agent, Case, Report, Score, Scripted, metric, rehearse
from greenroom.errors import BadInput, MissingExtra
from greenroom.metrics import contains


@metric
def length(response):
    return Score(len(response) / 10)


def report_of(**options) -> Report:
    cases = [
        Case("a", says="Hi", tags=["smoke"], metrics=[contains("Hello"), length]),
        Case("b", says="Hi <b>there</b>", metrics=[contains("<script>alert(1)</script>")]),
        Case("c", says="Hi", user=object(), metrics=[contains("Hello")]),
    ]
    return rehearse(Agent("a", model=Scripted(then="Hello.")), cases, store=False, **options)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_has_a_row_for_each_trial_and_a_column_for_each_metric(library):
    frame = report_of(trials=2).to_frame(library)
    assert type(frame).__module__.startswith(library)
    assert frame.shape[0] == 6
    assert list(frame["case"]) == ["a", "a", "b", "b", "c", "c"]
    assert list(frame["trial"]) == [1, 2, 1, 2, 1, 2]
    assert next(iter(frame["status"])) == "passed"
    assert list(frame["length"])[:2] == [0.6, 0.6]
    hello = list(frame["contains('Hello')"])
    assert hello[0] == 1.0
    # What was not measured is not a number.
    assert all(value is None or value != value for value in hello[4:])
    assert "BadCase" in list(frame["error"])[4]


def test_without_a_library_the_next_step_is_named(monkeypatch):
    report = report_of()
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("greenroom.results.frame.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="pip install pandas"):
        report.to_frame()
    with pytest.raises(BadInput, match="numpy"):
        report.to_frame("numpy")  # pyright: ignore[reportArgumentType]


def test_a_notebook_shows_a_table_in_which_no_text_acts():
    shown = report_of()._repr_html_()
    assert shown.count("<tr>") == 4
    assert "1 passed" in shown
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_of_many_cases_those_that_failed_come_first():
    cases = [
        Case(f"c{n}", says="Hi", metrics=[contains("Hello" if n else "Bye")]) for n in range(205)
    ]
    cases.append(cases.pop(0))
    report = rehearse(Agent("a", model=Scripted(then="Hello.")), cases, store=False)
    shown = report._repr_html_()
    assert "5 more rows" in shown
    assert shown.index(">c0</td>") < shown.index(">c1</td>")


def test_json_and_markdown_are_texts_without_secrets(monkeypatch):
    monkeypatch.setenv("SHOP_API_KEY", "sk-live-0123456789abcdef")
    case = Case("a", says="My key is sk-live-0123456789abcdef", metrics=[contains("Bye")])
    report = rehearse(Agent("a", model=Scripted(then="Hello.")), [case], store=False)
    assert json.loads(report.to_json())["results"][0]["case_id"] == "a"
    for text in (report.to_json(), report.to_markdown(), report._repr_html_()):
        assert "0123456789abcdef" not in text
    assert "failed" in report.to_markdown(baseline=report_of())
