"""Small eval sets for the tests of files: by hand, and by the thousand."""

from dataclasses import replace

from hypothesis import strategies as st

from greenroom import Case, EvalSet, Expect, Lines, SimulatedUser, Stop, Turn
from greenroom.cases import Criterion, by_args, fault, in_turn
from greenroom.cases.case import USUAL_STOP
from greenroom.cases.files.adk_expect import says_more
from greenroom.cases.files.own import evalset_data
from greenroom.cases.names import id_trouble
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import Json

LETTERS = st.characters(exclude_categories=("Cs",), exclude_characters="$")
TEXTS = st.text(LETTERS, min_size=1, max_size=8).filter(str.strip)
ODD = st.sampled_from(
    [
        "no",
        "1e3",
        "0777",
        "12:30",
        "2026-01-02",
        "~",
        "null",
        "- a",
        "a: b",
        "#",
        "<<",
        "a\nb\n",
        " ",
    ]
)
WORDS = TEXTS | ODD.filter(str.strip)
IDS = st.from_regex(r"[a-z][a-z0-9_-]{0,6}", fullmatch=True).filter(lambda t: not id_trouble(t))
NUMBERS = st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS | ODD,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
GIVEN = VALUES.filter(lambda value: value is not None)
ARGS = st.dictionaries(WORDS, VALUES, max_size=2)
CALLS = st.builds(ToolCall, WORDS, ARGS)
EXTRA = st.none() | st.dictionaries(
    st.sampled_from(["owner", "ticket_number", "zzz"]), GIVEN, min_size=1, max_size=2
)
MOCKS = st.one_of(
    VALUES,
    st.builds(fault, WORDS),
    st.lists(VALUES, min_size=1, max_size=2).map(lambda answers: in_turn(*answers)),
    st.builds(lambda args, one: by_args((args, one), otherwise=fault(timeout=3)), ARGS, VALUES),
)
CRITERIA = st.builds(
    Criterion,
    WORDS,
    threshold=st.none() | st.floats(0, 1),
    options=st.dictionaries(
        st.sampled_from(["mode", "rubrics", "judge_model"]), VALUES, max_size=2
    ),
)
PEOPLE = st.builds(
    SimulatedUser,
    WORDS,
    goal=st.just("") | WORDS,
    plan=st.just("") | WORDS,
    goals=st.lists(TEXTS, max_size=2, unique=True).map(tuple),
    model=st.none() | WORDS,
    max_turns=st.none() | st.integers(1, 9),
)
EXPECTS = st.builds(
    Expect,
    tools=st.none() | st.lists(CALLS | WORDS, max_size=2),
    response=st.none() | WORDS,
    contains=st.none() | WORDS | st.lists(WORDS, min_size=1, max_size=2),
    state=st.none() | st.just({"session": {"done": {"$exists": True}}}),
    reference=st.none() | WORDS,
    intermediate=st.none() | st.lists(WORDS, min_size=1, max_size=2),
    extra=EXTRA,
).filter(lambda expect: expect != Expect())
TURNS = st.lists(st.builds(Turn, WORDS, st.none() | EXPECTS, EXTRA), min_size=1, max_size=2)
STATES = st.dictionaries(
    st.sampled_from(["session", "user", "app", "patient"]),
    st.dictionaries(WORDS, VALUES, min_size=1, max_size=2),
    max_size=2,
)
CASES = st.builds(
    Case,
    IDS,
    turns=TURNS,
    user=st.none() | PEOPLE | st.builds(Lines, WORDS, then=st.none() | PEOPLE),
    mocks=st.dictionaries(WORDS, MOCKS, max_size=2),
    allow_tools=st.lists(WORDS, max_size=1),
    state=STATES,
    stop=st.just(USUAL_STOP) | st.builds(Stop, max_turns=st.integers(1, 9)),
    metrics=st.lists(CRITERIA, max_size=1),
    name=st.just("") | WORDS,
    description=st.just("") | WORDS,
    tags=st.lists(WORDS, max_size=2),
    metadata=ARGS,
    now=st.none() | st.floats(0, 9),
    target=st.just("") | WORDS,
    implied=st.booleans(),
    extra=EXTRA,
)


def sets(cases: st.SearchStrategy[Case], **more: st.SearchStrategy) -> st.SearchStrategy[EvalSet]:
    """Eval sets called `s` of such cases."""
    listed = st.lists(cases, max_size=2, unique_by=lambda case: case.id)
    return st.builds(EvalSet, st.just("s"), listed, **more)


FULL_SETS = sets(
    CASES,
    name=st.just("") | WORDS,
    description=st.just("") | WORDS,
    metadata=ARGS,
    metrics=st.lists(CRITERIA, max_size=2),
    trials=st.integers(1, 3),
    extra=EXTRA,
)


def left_to_metrics(evalset: EvalSet) -> EvalSet:
    """The set as it comes back from a file whose tool has criteria of its own."""
    return replace(evalset, cases=[replace(case, implied=says_more(case)) for case in evalset])


def said(evalset: EvalSet) -> Json:
    """All that a set says, whether in lists or in tuples."""
    return evalset_data(evalset)
