"""What a shape can hold comes back as it was; what it cannot hold is never lost in silence."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.files.sets import (
    ARGS,
    CALLS,
    CRITERIA,
    EXTRA,
    FULL_SETS,
    GIVEN,
    IDS,
    NUMBERS,
    PEOPLE,
    STATES,
    WORDS,
    left_to_metrics,
    said,
    sets,
)
from greenroom import Case, EvalSet, Expect, SimulatedUser, Stop, Turn
from greenroom.cases import Criterion, read_evalset, write_evalset
from greenroom.errors import BadFile


def through(evalset: EvalSet, name: str, shape: str | None = None) -> EvalSet:
    """The set, written to a file and read from it."""
    with TemporaryDirectory() as folder:
        write_evalset(evalset, Path(folder) / name, shape=shape)
        return read_evalset(Path(folder) / name)


@given(FULL_SETS, st.sampled_from(["s.json", "s.yaml"]))
def test_our_own_shape_holds_everything_that_is_data(evalset: EvalSet, name: str) -> None:
    found = through(evalset, name)
    assert said(found) == said(evalset)
    assert found.shape == "greenroom"


RESEMBLING = st.builds(
    Expect,
    tools=st.lists(CALLS | WORDS, max_size=2),
    reference=st.none() | WORDS,
    intermediate=st.none() | st.lists(WORDS, min_size=1, max_size=2),
)
ADK_TURNS = st.lists(
    st.builds(
        Turn,
        WORDS,
        st.none() | RESEMBLING | st.builds(Expect, reference=WORDS),
        st.none() | st.fixed_dictionaries({"invocation_id": WORDS, "app_details": GIVEN}),
    ),
    min_size=1,
    max_size=2,
)
ADK_CASES = st.builds(
    Case,
    IDS,
    turns=ADK_TURNS,
    state=STATES,
    user=st.none() | PEOPLE,
    mocks=st.dictionaries(WORDS, GIVEN, max_size=2),
    metrics=st.lists(CRITERIA, max_size=1),
    name=st.just("") | WORDS,
    tags=st.lists(WORDS, max_size=2),
    metadata=ARGS,
    target=st.just("") | WORDS,
    implied=st.booleans(),
    extra=EXTRA,
)
ADK_SCENARIOS = st.builds(Case, IDS, says=WORDS, user=PEOPLE, tags=st.lists(WORDS, max_size=1))


@given(
    sets(
        ADK_CASES | ADK_SCENARIOS,
        name=st.just("") | WORDS,
        description=st.just("") | WORDS,
        metadata=ARGS,
        metrics=st.lists(CRITERIA, max_size=2),
        trials=st.integers(1, 3),
        extra=st.none() | st.fixed_dictionaries({"creation_timestamp": NUMBERS}),
    )
)
def test_adk_holds_cases_with_references_calls_and_scenarios(evalset: EvalSet) -> None:
    found = through(evalset, "s.evalset.json", "adk")
    assert said(found) == said(left_to_metrics(evalset))
    assert found.shape == "adk"


FLAT_TURNS = st.lists(
    st.builds(
        Turn,
        WORDS,
        st.none()
        | st.builds(Expect, tools=st.lists(CALLS, max_size=2), reference=st.none() | WORDS)
        | st.builds(Expect, reference=WORDS, intermediate=st.lists(WORDS, min_size=1, max_size=2)),
    ),
    min_size=1,
    max_size=3,
)


@given(FLAT_TURNS)
def test_an_older_adk_list_holds_one_conversation(turns: list[Turn]) -> None:
    evalset = EvalSet("s", [Case("s", turns=turns)])
    found = through(evalset, "s.test.json", "adk-flat")
    assert said(found) == said(left_to_metrics(evalset))
    assert found.shape == "adk-flat"


NAMED = st.builds(
    Case,
    IDS,
    turns=FLAT_TURNS,
    state=st.dictionaries(
        st.sampled_from(["session", "user", "app", "temp"]),
        st.dictionaries(WORDS, GIVEN, min_size=1, max_size=2),
        max_size=2,
    ),
)


@given(sets(NAMED).filter(len))
def test_an_older_adk_list_of_names_holds_several(evalset: EvalSet) -> None:
    found = through(evalset, "s.json", "adk-named")
    assert said(found) == said(left_to_metrics(evalset))
    assert found.shape == "adk-named"


FLOW_CASES = st.builds(
    Case,
    IDS,
    turns=st.lists(
        st.builds(
            Turn,
            WORDS,
            st.none()
            | st.builds(
                Expect,
                tools=st.none() | st.lists(CALLS | WORDS, min_size=1, max_size=2),
                reference=WORDS,
                intermediate=st.none() | st.lists(WORDS, min_size=1, max_size=2),
            ),
            st.none() | st.fixed_dictionaries({"metadata": ARGS}),
        ),
        min_size=1,
        max_size=2,
    ),
    state=st.just({})
    | st.fixed_dictionaries({"session": st.dictionaries(WORDS, GIVEN, min_size=1)}),
    name=st.just("") | WORDS,
    description=st.just("") | WORDS,
    tags=st.lists(WORDS, max_size=2),
    metadata=ARGS,
    extra=st.none() | st.fixed_dictionaries({"session_input.config": ARGS}),
)


@given(sets(FLOW_CASES, name=WORDS, metadata=ARGS).filter(len))
def test_agentflow_holds_trajectories_and_references(evalset: EvalSet) -> None:
    found = through(evalset, "s.json", "agentflow")
    assert found.shape == "agentflow"
    assert [(c.id, list(c.turns), c.state, c.metadata, c.extra) for c in found] == [
        (c.id, list(c.turns), c.state, c.metadata, c.extra) for c in evalset
    ]


ASKED = st.builds(Criterion, WORDS, threshold=st.none() | st.floats(0, 1))
RECALL = Criterion("response_match_score", options={"mode": "recall"})
QUERIES = st.builds(
    Case,
    IDS,
    says=WORDS,
    expect=st.none() | st.builds(Expect, tools=st.lists(CALLS | WORDS, max_size=3)),
    metadata=ARGS,
)


@given(
    sets(
        QUERIES,
        name=st.just("") | WORDS,
        description=st.just("") | WORDS,
        metrics=st.lists(ASKED, max_size=2, unique_by=lambda c: c.name),
        metadata=ARGS,
    )
)
def test_queries_hold_one_question_and_its_calls(evalset: EvalSet) -> None:
    found = through(evalset, "s.test.json", "queries")
    assert said(found) == said(evalset)
    assert found.shape == "queries"


@given(IDS, WORDS, WORDS)
def test_queries_hold_reference_answers_measured_by_recall(id: str, says: str, answer: str) -> None:
    case = Case(id, says, expect=Expect(reference=answer))
    evalset = EvalSet("s", [case], metrics=[RECALL])
    assert through(evalset, "s.test.json", "queries") == evalset


SESSIONS = st.builds(
    Case,
    IDS,
    turns=st.lists(
        st.builds(
            Turn,
            WORDS,
            st.none()
            | st.builds(Expect, tools=st.lists(WORDS, max_size=2), contains=st.none() | WORDS)
            | st.builds(Expect, contains=WORDS | st.lists(WORDS, min_size=1, max_size=2)),
        ),
        min_size=1,
        max_size=2,
    ),
    metadata=ARGS,
)


@given(sets(SESSIONS, description=st.just("") | WORDS, metadata=ARGS))
def test_sessions_hold_several_turns(evalset: EvalSet) -> None:
    found = through(evalset, "s.json", "sessions")
    assert said(found) == said(evalset)
    assert found.shape == "sessions"


SCOPES = st.sampled_from(["session", "user", "app", "temp"])
SCOPED = st.dictionaries(SCOPES, st.dictionaries(WORDS, GIVEN, min_size=1, max_size=2), max_size=2)
LAST = st.none() | st.builds(
    Expect,
    tools=st.lists(WORDS, max_size=2),
    contains=st.none() | WORDS,
    reference=st.none() | WORDS,
    state=st.none()
    | st.dictionaries(
        SCOPES, st.dictionaries(WORDS, GIVEN, min_size=1, max_size=2), min_size=1, max_size=2
    ),
)
COMMON: dict[str, Any] = {
    "mocks": st.dictionaries(WORDS, GIVEN, max_size=2),
    "tags": st.lists(WORDS, max_size=2),
    "target": st.just("") | WORDS,
    "metadata": st.dictionaries(IDS.filter(lambda key: key != "id"), GIVEN, max_size=2),
    "state": SCOPED,
}
FLUENT = st.builds(Case, IDS, says=WORDS, expect=LAST, **COMMON) | st.builds(
    lambda name, before, says, expect, **more: Case(
        name, turns=[*map(Turn, before), Turn(says, expect)], **more
    ),
    IDS,
    st.lists(WORDS, max_size=2),
    WORDS,
    LAST,
    **COMMON,
)


@given(
    sets(
        FLUENT,
        metrics=st.lists(ASKED, max_size=2, unique_by=lambda c: c.name),
        trials=st.integers(1, 3),
        metadata=ARGS,
    ).filter(len),
    st.sampled_from(["s.yaml", "s.json"]),
)
def test_fluent_suites_hold_what_is_expected_of_the_last_turn(evalset: EvalSet, name: str) -> None:
    found = through(evalset, name, "fluent")
    assert said(found) == said(evalset)
    assert found.shape == "fluent"


SCENARIOS = st.builds(
    Case,
    IDS,
    says=WORDS,
    user=st.builds(
        SimulatedUser,
        st.just("") | WORDS,
        plan=WORDS,
        goals=st.lists(WORDS, max_size=2, unique=True).map(tuple),
    ),
    stop=st.builds(Stop, max_turns=st.integers(1, 9)),
    description=st.just("") | WORDS,
    metadata=ARGS,
)


@given(sets(SCENARIOS).filter(len))
def test_scenarios_hold_prompts_plans_and_goals(evalset: EvalSet) -> None:
    found = through(evalset, "s.json", "scenarios")
    assert said(found) == said(evalset)
    assert found.shape == "scenarios"


@given(sets(FULL_SETS.filter(len).map(lambda evalset: evalset.cases[0])).filter(len))
def test_lines_of_json_hold_whole_cases(evalset: EvalSet) -> None:
    found = through(evalset, "s.jsonl")
    assert said(found) == said(evalset)
    assert found.shape == "table"


ROWS = st.builds(
    Case,
    IDS,
    says=st.text("abé,;\"'\n ", min_size=1).filter(str.strip),
    expect=st.none()
    | st.builds(
        Expect,
        reference=st.text("ab,;\"' ", min_size=1).filter(str.strip),
        tools=st.none() | st.lists(CALLS | WORDS, max_size=2),
    ),
    tags=st.lists(WORDS, max_size=2),
    metadata=ARGS,
    implied=st.booleans(),
)


@given(sets(ROWS).filter(len), st.sampled_from(["s.csv", "s.tsv"]))
def test_a_table_holds_questions_answers_and_more(evalset: EvalSet, name: str) -> None:
    assert said(through(evalset, name)) == said(evalset)


SHAPES = ["adk", "adk-flat", "adk-named", "agentflow", "queries", "sessions", "fluent", "scenarios"]


@given(FULL_SETS, st.sampled_from(SHAPES))
def test_no_shape_loses_anything_without_a_word(evalset: EvalSet, shape: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.json"
        try:
            write_evalset(evalset, path, shape=shape)
        except BadFile:
            assert not path.exists()
        else:
            found = read_evalset(path, shape=shape)
            assert [case.script for case in found] == [case.script for case in evalset]
            kept = evalset if found.usual is None else left_to_metrics(evalset)
            assert [case.implied for case in found] == [case.implied for case in kept]
            assert (found.id, found.name, found.trials) == (
                evalset.id,
                evalset.name,
                evalset.trials,
            )


def test_what_would_be_lost_is_listed_and_may_be_left_out(tmp_path: Path) -> None:
    case = Case("a", "Hi", expect=Expect(contains="x", reference="y"), tags=["t"], target="node")
    with pytest.raises(
        BadFile, match=r"no place in the shape queries: .*a.turns\[0\].expect.contains"
    ) as told:
        write_evalset(EvalSet("s", [case]), tmp_path / "s.json", shape="queries")
    assert "a.tags" in str(told.value)
    assert "a.target" in str(told.value)
    write_evalset(EvalSet("s", [case]), tmp_path / "s.json", shape="queries", lossy=True)
    (left,) = read_evalset(tmp_path / "s.json")
    assert left == Case("a", "Hi", expect=Expect(reference="y"))


def test_adk_files_cannot_leave_to_metrics_what_adk_does_not_measure(tmp_path: Path) -> None:
    case = Case("a", "Hi", expect=Expect(contains="Hello"), implied=False)
    file = tmp_path / "s.evalset.json"
    with pytest.raises(BadFile, match=r"a\.implied"):
        write_evalset(EvalSet("s", [case]), file, shape="adk")
    assert not file.exists()
    write_evalset(EvalSet("s", [replace(case, implied=True)]), file, shape="adk")
    assert [one.implied for one in read_evalset(file)] == [True]
