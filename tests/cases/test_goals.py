"""Goals: how a user marks them inside a reply, and which words show one."""

from hypothesis import given
from hypothesis import strategies as st

from greenroom.cases.goals import quoted, read_reply

SIGNAL = "</finished>"
TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60)


def test_a_reply_without_marks_is_what_was_said() -> None:
    said = read_reply(" Order 7, please. ", SIGNAL)
    assert (said.message, said.marked, said.is_last) == (" Order 7, please. ", (), False)


def test_marks_are_taken_out_of_what_is_said() -> None:
    said = read_reply("<done 1>It is refunded.</done> Thanks! <done 2>Bye.</done>", SIGNAL)
    assert said.message == "Thanks!"
    assert said.marked == ((1, "It is refunded."), (2, "Bye."))


def test_models_may_write_marks_in_their_own_way() -> None:
    for written in ("<done 1>Yes.</done>", '<DONE "1">"Yes."</Done >', "<done #1> Yes.\n</done>"):
        assert read_reply(written, SIGNAL).marked == ((1, "Yes."),)


def test_a_mark_that_is_not_closed_stays_a_part_of_the_words() -> None:
    said = read_reply("<done 1>It is refunded. Thanks!", SIGNAL)
    assert (said.message, said.marked) == ("<done 1>It is refunded. Thanks!", ())


def test_the_stop_signal_counts_beside_other_words_but_not_inside_a_quote() -> None:
    assert read_reply("Bye! </finished>", SIGNAL).is_last
    assert not read_reply("<done 1>Say </finished> to end.</done> More?", SIGNAL).is_last


def test_a_flood_of_open_marks_is_read_at_once() -> None:
    text = "<done 1>" * 50_000
    assert read_reply(text, SIGNAL).message == text


@given(TEXTS, TEXTS, TEXTS, st.integers(0, 9999))
def test_a_mark_can_stand_anywhere(before: str, quote: str, after: str, number: int) -> None:
    outside = before.replace("<", "") + after.replace("<", "")
    text = (
        f"{before.replace('<', '')}<done {number}>{quote.replace('<', '')}</done>"
        f"{after.replace('<', '')}"
    )
    said = read_reply(text, SIGNAL)
    assert said.message == outside.strip()
    assert [n for n, _ in said.marked] == [number]


@given(TEXTS)
def test_any_text_can_be_read(text: str) -> None:
    said = read_reply(text, SIGNAL)
    assert said.marked or said.message == text


def test_a_quote_must_be_whole_words_that_were_said() -> None:
    texts = ["Order 7 is\n refunded.", "Anything else?"]
    assert quoted("Order 7 is refunded.", texts)
    assert quoted("is  refunded", texts)
    assert quoted("Anything else?", texts)
    assert not quoted("fund", texts)
    assert not quoted("order 7 is refunded", texts)
    assert not quoted("refunded. Anything", texts)


def test_nothing_and_a_single_letter_show_nothing() -> None:
    for quote in ("", "  ", "7", "."):
        assert not quoted(quote, ["Order 7."])


@given(TEXTS, TEXTS, TEXTS)
def test_what_was_said_between_other_words_is_found(before: str, quote: str, after: str) -> None:
    said = f"{before} {quote} {after}"
    assert quoted(quote, [said]) == (len(" ".join(quote.split())) >= 2)
