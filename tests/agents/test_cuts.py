"""How a text is cut into pieces depends on the text alone, never on how it came."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.agents import by
from greenroom.agents.cuts import Cutter, at_random, cutter
from greenroom.errors import BadAgent

UNITS = ["word", "sentence", "line", "paragraph", 1, 7]
SIGNS = 'aB7 .!?…。！？"”’)」\n\t\r  é☃'
TEXTS = st.lists(
    st.one_of(
        st.text(SIGNS, max_size=6),
        st.sampled_from(["Dr. ", "e.g. ", "J. Smith", "1. One\n", "Wait... ", "\n\n", "3.14 "]),
        st.text(max_size=5),
    ),
    max_size=12,
).map("".join)


def pieces(one: Cutter, came: list[str]) -> list[str]:
    found = [piece for text in came for piece in one.take(text)]
    return [*found, *one.rest()]


@st.composite
def texts_that_came(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A text, and the pieces it came in."""
    text = draw(TEXTS)
    places = draw(st.lists(st.integers(0, len(text)), max_size=8).map(sorted))
    came = [text[a:b] for a, b in itertools.pairwise([0, *places, len(text)])]
    return text, came


@pytest.mark.parametrize("unit", UNITS)
@given(texts_that_came())
def test_a_text_is_cut_alike_however_it_came(unit: str | int, came: tuple[str, list[str]]) -> None:
    text, parts = came
    found = pieces(cutter(unit), parts)
    assert found == pieces(cutter(unit), [text]) == pieces(cutter(unit), list(text))
    assert "".join(found) == text
    assert all(found)


@given(texts_that_came(), st.text(max_size=5))
def test_a_seed_cuts_a_text_alike_however_it_came(came: tuple[str, list[str]], seed: str) -> None:
    text, parts = came
    found = pieces(at_random(seed), parts)
    assert found == pieces(at_random(seed), [text])
    assert "".join(found) == text


@pytest.mark.parametrize(
    "unit, text, found",
    [
        ("sentence", "One. Two! Three?", ["One. ", "Two! ", "Three?"]),
        ("sentence", "Ask Dr. Who. He knows.", ["Ask Dr. Who. ", "He knows."]),
        ("sentence", 'He said "Stop!" and left. Why?', ['He said "Stop!" and left. ', "Why?"]),
        ("sentence", 'She said "Go." Then he went.', ['She said "Go." ', "Then he went."]),
        ("sentence", "It costs 3.50 euros, e.g. here. Ok.", None),
        ("sentence", "1. Rise\n2. Shine", ["1. Rise\n", "2. Shine"]),
        ("sentence", "好。「走吧。」他说。", ["好。", "「走吧。」", "他说。"]),
        ("sentence", "So do I. You too.", ["So do I. ", "You too."]),
        ("sentence", "J. R. Smith came. He saw.", ["J. R. Smith came. ", "He saw."]),
        ("sentence", "Well... Perhaps.", ["Well... ", "Perhaps."]),
        ("sentence", "See fig. 3. No. I am No. 7.", ["See fig. 3. ", "No. ", "I am No. 7."]),
        ("sentence", "नमस्ते। ठीक।", ["नमस्ते। ", "ठीक।"]),
        ("sentence", "نعم۔ لا؟ لا", ["نعم۔ ", "لا؟ ", "لا"]),
        ("sentence", "ﾊｲ｡次", ["ﾊｲ｡", "次"]),
        ("word", "  a  b\nc", ["  a  ", "b\n", "c"]),
        ("line", "a\r\n\nb", ["a\r\n", "\n", "b"]),
        ("paragraph", "a\nb\n \nc\n\n\nd", ["a\nb\n \n", "c\n\n\n", "d"]),
        (3, "abcdefgh", ["abc", "def", "gh"]),
        ("word", "", []),
    ],
)
def test_texts_are_cut_as_a_reader_would(
    unit: str | int, text: str, found: list[str] | None
) -> None:
    expected = found or ["It costs 3.50 euros, e.g. here. ", "Ok."] if text else []
    assert pieces(cutter(unit), [text]) == expected


def test_a_long_text_that_comes_letter_by_letter_takes_no_long_time() -> None:
    text = "word " * 20_000
    for unit in ("sentence", "paragraph", 50_000):
        assert "".join(pieces(cutter(unit), list(text))) == text


@pytest.mark.parametrize("signs", ["  ", "\n", "..", "!」", ". "])
def test_a_model_that_does_nothing_but_repeat_a_sign_takes_no_long_time(signs: str) -> None:
    for unit in ("word", "sentence", "line", "paragraph"):
        text = ["a", *[signs] * 20_000, "b"]
        assert "".join(pieces(cutter(unit), text)) == "".join(text)


@pytest.mark.parametrize("unit", ["page", "", 0, -1, 1.5, True, None, ["word"]])
def test_a_unit_that_there_is_not_is_refused(unit: object) -> None:
    with pytest.raises(BadAgent, match=r"by\(.*\) is not a unit; give 'token', 'word'"):
        by(unit)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("hold", [0, -3, True, 2.0, "all"])
def test_a_hold_that_holds_nothing_is_refused(hold: object) -> None:
    with pytest.raises(BadAgent, match="a number from 1"):
        by("word", hold=hold)  # pyright: ignore[reportArgumentType]
