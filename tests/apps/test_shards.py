"""A set run in parts: each case in one of them, and their reports put together by one command."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from greenroom.results import Report

AGENT = """\
from greenroom import Agent, Scripted

agent = Agent("clerk", model=Scripted(then="Hello: 5 %, yes"))
"""
SETS = {
    "evals/one.evalset.yaml": "version: 1\nid: first\ncases:\n"
    "- {id: a, says: Hi, expect: {contains: Hello}}\n"
    "- id: b\n  says: Hi\n  expect: {contains: 'Bye\n    now'}\n",
    "evals/two.evalset.yaml": "version: 1\nid: second\ncases:\n"
    "- {id: c, says: Hi, expect: {contains: Hello}}\n",
}


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("agent.py").write_text(AGENT)
    Path("evals").mkdir()
    for name, text in SETS.items():
        Path(name).write_text(text)
    return tmp_path


def test_each_case_is_in_one_shard_and_merging_them_gives_the_whole(shop, greenroom):
    words = ["eval", "run", "agent.py", "evals", "-q", "--no-store", "-f", "json"]
    for n in (1, 2):
        greenroom(*words, "--shard", f"{n}/2", "-o", f"shard-{n}.json")
    merged = greenroom("eval", "merge", "shard-1.json", "shard-2.json", "-o", "all.json")
    assert merged.exit_code == 1
    assert "pass rate" in merged.stderr
    whole = Report.load("all.json")
    assert sorted(result.case_id for result in whole) == ["a", "b", "c"]
    assert whole.summary.passed == 2
    places = {
        case: (place.evalset, place.file, place.line) for case, place in whole.sources.items()
    }
    assert places["b"] == ("first", "evals/one.evalset.yaml", 5)
    loose = greenroom("eval", "merge", "shard-1.json", "shard-2.json", "--min-pass-rate", "0.5")
    assert loose.exit_code == 0


def test_a_set_of_which_a_part_is_missing_is_not_judged(shop, greenroom):
    words = ["eval", "run", "agent.py", "evals", "-q", "--no-store", "-f", "json"]
    for n in (1, 3):
        done = greenroom(*words, "--shard", f"{n}/3", "-o", f"shard-{n}.json")
        assert done.exit_code == 0, done.output
    merged = greenroom("eval", "merge", "shard-1.json", "shard-3.json")
    assert merged.exit_code == 3
    assert "the report of part 2 is missing" in merged.stderr
    greenroom(*words, "--shard", "2/3", "-o", "shard-2.json")
    merged = greenroom("eval", "merge", *(f"shard-{n}.json" for n in (1, 2, 3)), "-o", "all.json")
    assert merged.exit_code == 1
    assert Report.load("all.json").notes == Report.load("shard-1.json").notes[:-1]


def test_a_part_is_missing_from_its_own_set_whatever_others_are_whole(shop, greenroom):
    words = ["eval", "run", "agent.py", "-q", "--no-store", "--shard"]
    for ids in ("cd", "ef"):
        two = "".join(f"- {{id: {i}, says: Hi, expect: {{contains: Hello}}}}\n" for i in ids)
        Path(ids).mkdir()
        Path(ids, "evals.yaml").write_text(f"version: 1\nid: {ids}\ncases:\n{two}")
        for n in (1, 2):
            run = (*words, f"{n}/2", f"{ids}/evals.yaml", "-o", f"{ids}-{n}.json")
            assert greenroom(*run).exit_code == 0
    merged = greenroom("eval", "merge", "cd-1.json", "cd-2.json", "ef-1.json")
    assert merged.exit_code == 3
    assert "the set 'ef' was run in 2 parts, and the report of part 2 is missing" in merged.stderr
    for n in (1, 2):  # even if both sets have the same name
        data = json.loads(Path(f"ef-{n}.json").read_text())
        Path(f"ef-{n}.json").write_text(json.dumps({**data, "evalset_id": "cd"}))
    assert greenroom("eval", "merge", "cd-1.json", "cd-2.json", "ef-1.json").exit_code == 3
    every = ("cd-1.json", "cd-2.json", "ef-1.json", "ef-2.json")
    assert greenroom("eval", "merge", *every).exit_code == 0


def test_parts_of_different_selections_are_no_whole(shop, greenroom):
    words = ["eval", "run", "agent.py", "-q", "--no-store", "--shard"]
    cases = "".join(f"- {{id: {i}, says: Hi, expect: {{contains: Hello}}}}\n" for i in "abcde")
    Path("five.yaml").write_text(f"version: 1\nid: five\ncases:\n{cases}")
    assert greenroom(*words, "1/2", "five.yaml", "--limit", "4", "-o", "1.json").exit_code == 0
    assert greenroom(*words, "2/2", "five.yaml", "-o", "2.json").exit_code == 0
    merged = greenroom("eval", "merge", "1.json", "2.json")
    assert merged.exit_code == 3
    assert "is missing (of 4 cases, " in merged.stderr
    assert greenroom(*words, "1/2", "five.yaml", "-o", "1.json").exit_code == 0
    assert greenroom("eval", "merge", "1.json", "2.json").exit_code == 0


def test_a_run_in_the_store_knows_that_it_is_a_part(shop, greenroom):
    run = ["eval", "run", "agent.py", "evals", "-q", "--store", "kept", "--shard"]
    for n in (1, 2):
        greenroom(*run, f"{n}/2")
    ids = [one["id"] for one in json.loads(greenroom(*LIST).stdout)]
    alone = greenroom("eval", "merge", "--store", "kept", ids[0])
    assert alone.exit_code == 3
    assert "the report of part 1 is missing" in alone.stderr
    merged = greenroom("eval", "merge", "--store", "kept", *ids, "--min-pass-rate", "0.5")
    assert merged.exit_code == 0, merged.output


LIST = ("runs", "list", "--json", "--store", "kept")


@pytest.mark.parametrize("kind", ["file", "id"])
def test_a_part_that_was_not_finished_is_not_judged(shop, greenroom, kind):
    Path("agent.py").write_text(
        "from greenroom import Agent, Scripted\n"
        "from greenroom.models import ModelReply\n"
        "said = ModelReply('Hello', cost=0.5, prices='test')\n"
        "agent = Agent('clerk', model=Scripted(then=said))\n"
    )
    budget = ("--budget", "1", "--max-concurrency", "1", "--store", "kept", "-o", "cut.json")
    greenroom("eval", "run", "agent.py", "evals", "-q", *budget)
    [run] = json.loads(greenroom(*LIST).stdout)
    given = "cut.json" if kind == "file" else run["id"]
    merged = greenroom("eval", "merge", given, "--store", "kept", "--min-pass-rate", "0")
    assert merged.exit_code == 3
    assert f"{given!r} is not the report of a whole part" in merged.stderr
    counts = "1 of 3 trials did not run: c" if kind == "file" else "2 of 3 trials are done"
    assert counts in merged.stderr


def test_a_trial_that_is_in_two_reports_is_refused(shop, greenroom):
    greenroom("eval", "run", "agent.py", "evals", "-q", "--no-store", "-o", "one.json")
    greenroom("eval", "run", "agent.py", "evals", "-q", "--no-store", "-o", "two.json")
    twice = greenroom("eval", "merge", "one.json", "two.json")
    assert twice.exit_code == 3
    assert "case 'a', trial 1, is in 'one.json' and in 'two.json'" in " ".join(twice.stderr.split())


@pytest.mark.parametrize("shard", ["3/2", "0/2", "x", "1/0", "1"])
def test_a_shard_that_is_none_is_refused(shop, greenroom, shard):
    assert greenroom("eval", "run", "agent.py", "evals", "--shard", shard).exit_code == 3


def test_a_shard_without_a_case_is_refused(shop, greenroom):
    result = greenroom("eval", "run", "agent.py", "evals", "--shard", "4/4")
    assert result.exit_code == 3
    assert "has no case: there are 3" in result.stderr


def test_junit_names_each_case_by_its_eval_set(shop, greenroom):
    greenroom("eval", "run", "agent.py", "evals", "-q", "--no-store", "-o", "junit.xml")
    found = ElementTree.parse("junit.xml").iter("testcase")
    assert {case.get("name"): case.get("classname") for case in found} == {
        "a": "first",
        "b": "first",
        "c": "second",
    }


def test_annotations_point_at_the_file_and_line_of_the_case_and_stay_on_their_line(shop, greenroom):
    words = ["-f", "annotations=notes.txt", "--no-store", "-q"]
    greenroom("eval", "run", "agent.py", "evals", *words)
    first, gate = Path("notes.txt").read_text().splitlines()
    assert first.startswith("::error file=evals/one.evalset.yaml,line=5,title=b%3A failed::")
    assert "missing" in first
    assert gate.startswith("::error title=gate::")


def test_a_report_without_known_places_says_nothing_of_them(shop):
    from greenroom import Agent, Case, Scripted, rehearse

    report = rehearse(Agent("a", model=Scripted("Hi")), [Case("a", "Hi")], store=False)
    report.save("plain.json")
    assert "sources" not in json.loads(Path("plain.json").read_text())


@pytest.mark.parametrize("option", ["--gate-tag=smoke", "--threshold=0.3"])
def test_what_only_a_baseline_can_show_is_refused_without_one(shop, greenroom, option):
    greenroom("eval", "run", "agent.py", "evals", "-q", "--no-store", "-o", "whole.json")
    result = greenroom("eval", "merge", "whole.json", option)
    assert result.exit_code == 3
    assert "needs a --baseline" in result.stderr


def test_adaptive_shards_pass_if_each_shows_the_minimum_and_not_if_one_leaves_it_open(
    tmp_path, monkeypatch, greenroom
):
    monkeypatch.chdir(tmp_path)
    Path("agent.py").write_text(AGENT)
    cases = "".join(f"- {{id: c{n}, says: Hi, expect: {{contains: Hello}}}}\n" for n in range(12))
    Path("cases.yaml").write_text(f"version: 1\ncases:\n{cases}")
    words = ["eval", "run", "agent.py", "cases.yaml", "-q", "--no-store", "--trials", "auto"]
    for n in (1, 2):
        out = ("--min-pass-rate", "0.7", "--shard", f"{n}/2", "-o", f"{n}.json")
        assert greenroom(*words, *out).exit_code == 0
    merge = ["eval", "merge", "1.json", "2.json", "-o", "all.json", "--min-pass-rate"]
    assert greenroom(*merge, "0.7").exit_code == 0
    without = greenroom(*merge[:-1])
    assert without.exit_code == 3
    assert "Give min_pass_rate (--min-pass-rate) below 1" in " ".join(without.stderr.split())
    strict = greenroom(*merge, "0.99")
    assert strict.exit_code == 1
    assert "leaves open whether it reaches the minimum of 99 %" in strict.stderr
    assert [len(part) for part in Report.load("all.json").parts] == [6, 6]
