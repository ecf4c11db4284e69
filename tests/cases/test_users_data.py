"""Simulated users as data: what can be said of one, written down and read again."""

from typing import Any

import pytest

from greenroom import Agent, Case, EvalSet, Lines, Scripted, SimulatedUser, UserAgents
from greenroom.cases import case_data, case_from
from greenroom.cases.files import read_evalset, write_evalset
from greenroom.cases.users import person_of, user_data, user_from
from greenroom.errors import BadCase, BadFile

ADA = SimulatedUser(
    "You are Ada.",
    goal="Money back.",
    plan=["Ask for it.", "Insist."],
    goals=["a refund", "an apology"],
    model="openai:gpt-4o-mini",
    stop_signal="STOP",
    max_turns=4,
    name="ada",
)


@pytest.mark.parametrize(
    "user",
    [
        ADA,
        SimulatedUser(),
        SimulatedUser(plan="Ask for a refund."),
        Lines("a", "b"),
        Lines("a", then="b"),
        Lines("a", then=ADA),
        Lines("a", then=Lines("b", then=ADA)),
        Lines(then={"granted": True}),
    ],
)
def test_a_user_who_is_data_comes_back_the_same(user: Any) -> None:
    assert user_from(user_data(user), "user") == user
    assert case_from(case_data(Case("c", user=user))).user == user


def test_what_is_usual_about_a_person_is_left_out() -> None:
    assert user_data(SimulatedUser("Ada.", model="openai:x")) == {
        "persona": "Ada.",
        "model": "openai:x",
    }


@pytest.mark.parametrize(
    "user",
    [
        SimulatedUser("Ada.", goals=["a refund"], model=Scripted("Hi")),
        Lines("a", then=SimulatedUser("Ada.", goals=["a refund"], model=Scripted("Hi"))),
        UserAgents(loop=SimulatedUser("Ada.", goals=["a refund"], model=Scripted("Hi"))),
    ],
)
def test_a_person_with_a_live_model_is_code_but_their_goals_are_recorded(user: Any) -> None:
    assert user_data(user) is None
    data = case_data(Case("c", user=user))
    with pytest.raises(BadFile, match="which is code"):
        case_from(data)
    assert case_from(data, live=True).user == SimulatedUser("Ada.", goals=["a refund"])


@pytest.mark.parametrize("user", [Agent("ada", model=Scripted("Hi")), Lines("a", then=len)])
def test_a_user_who_is_code_says_nothing_about_a_person(user: Any) -> None:
    assert case_from(case_data(Case("c", user=user)), live=True).user is None


@pytest.mark.parametrize("data", [{}, [], "Ada", {"person": "Ada"}, {"lines": "a"}, None, 5])
def test_what_is_no_user_is_refused(data: Any) -> None:
    with pytest.raises(BadCase, match=r"c\.user is .*; give \{lines"):
        user_from(data, "c.user")


@pytest.mark.parametrize(
    "given, place",
    [
        ({"persona": 5}, "persona"),
        ({"goal": None}, "goal"),
        ({"stop_signal": "  "}, "stop_signal"),
        ({"stop_signal": ""}, "stop_signal"),
        ({"plan": [""]}, "plan"),
        ({"plan": 5}, "plan"),
        ({"goals": "a refund"}, "goals"),
        ({"goals": [1]}, "goals"),
        ({"goals": ["a", "a"]}, "goals"),
        ({"max_turns": 0}, "max_turns"),
        ({"max_turns": True}, "max_turns"),
        ({"name": 7}, "name"),
    ],
)
def test_a_person_that_cannot_be_is_refused(given: Any, place: str) -> None:
    with pytest.raises(BadCase, match=rf"SimulatedUser\(\.\.\.\): `{place}` is"):
        SimulatedUser(**given)


def test_one_line_follows_the_other_and_then_somebody_else_goes_on() -> None:
    user = Lines("a", "b", then=Lines("c", then=ADA))
    assert [user.line(n) for n in range(5)] == ["a", "b", "c", ADA, ADA]
    assert (user.last, person_of(user), person_of(Lines("a"))) == (ADA, ADA, None)


@pytest.mark.parametrize(
    "user",
    [
        UserAgents(tools={"approve": Lines(True, {"approved": False})}),
        UserAgents(tools={"approve": {"name": "Ann"}}, loop=Lines("Yes", then="Go on")),
        UserAgents(tools={"approve": SimulatedUser("in a hurry")}, validate="coerce"),
        UserAgents(tools={"approve": None, "ask": [1]}, conflicts="error"),
    ],
)
def test_a_user_who_answers_tools_is_written_to_a_file_and_read_again(tmp_path, user):
    path = tmp_path / "set.yaml"
    write_evalset(EvalSet("s", [Case("a", says="Hi", user=user)]), path)
    [case] = read_evalset(path)
    assert case.user == user


def test_a_user_who_answers_tools_by_code_is_refused_in_a_file(tmp_path):
    user = UserAgents(tools={"approve": len})
    with pytest.raises(BadFile, match=r"what is code: a\.user"):
        write_evalset(EvalSet("s", [Case("a", says="Hi", user=user)]), tmp_path / "set.yaml")


def test_what_is_shown_of_code_is_the_same_in_every_process() -> None:
    def approve(case: Case) -> bool:
        return case.id == "c"

    user = UserAgents(tools={"pay": approve})  # pyright: ignore[reportArgumentType]
    assert " at 0x" in repr(user)
    data = case_data(Case("c", user=user))
    assert " at 0x" not in repr(data)
    assert "approve" in repr(data)
