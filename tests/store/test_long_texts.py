"""What it takes to look through a long answer before it is kept."""

import random
from base64 import b64encode
from time import process_time
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from greenroom import Ledger
from greenroom.ledger.events import AgentSaid, UserSaid
from greenroom.ledger.redaction import Redactor
from greenroom.ledger.redaction.kinds import unquoted
from greenroom.store.redaction import Cleaner
from greenroom.store.runs import Key, Row

KNOWN = Redactor([("CRM_TOKEN", "hunter2-hunter2")])
CHANCE = random.Random(11)
REPEATED = (
    *(
        "a",
        "a.",
        "=",
        '"',
        "'",
        "\\",
        "\n",
        " ",
        "%",
        "%41",
        "%41%",
        "_-",
        ".",
        "@",
        "\x00",
        "\x1b[",
    ),
    *("://", "://a:", "://:@", "http://x:", "https://a.b/c?sig=", "&a=b", "?code=", "[redacted:"),
    *("token=", "password", "password: ", "Bearer ", "Authorization: ", "X-Api-Key: ", "api_key"),
    *("Cookie: a=b; ", '{"token": 1} ', "sk-", "eyJ", "eyJabcdefgh.", "ghp_", "oken", "AKIA"),
    *("-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "ваш возврат ", "漢字", "😀"),
)


def coded(size: int) -> str:
    return b64encode(CHANCE.randbytes(size * 3 // 4)).decode()


def coded_lines(size: int) -> str:
    return "\n".join(coded(64) for _ in range(size // 65))


def words(size: int) -> str:
    return " ".join(CHANCE.randbytes(4).hex() for _ in range(size // 9))


def urls(size: int) -> str:
    made = (f"https://a.example/{CHANCE.randrange(10**9)}?q=%20{n}" for n in range(size // 38))
    return " ".join(made)


MADE = {
    **{repr(part): lambda size, part=part: part * (size // len(part)) for part in REPEATED},
    **{make.__name__: make for make in (coded, coded_lines, words, urls)},
}


def row(text: str) -> Row:
    ledger = Ledger()
    ledger.append(UserSaid(text="Hi"), at=0.0)
    ledger.append(AgentSaid(text=text), at=1.0)
    lines = ledger.dumps().encode()
    verdict = '{"case_id":"a"}'
    return Row(
        key=Key("a", 1),
        place=0,
        digest="d",
        status="passed",
        verdict=verdict,
        ledger=lines,
        judging=b"",
    )


def cost(text: str) -> float:
    """CPU seconds of one look; the least of some, since others work on this machine too."""
    one, tried = row(text), list[float]()
    for _ in range(3):
        begun = process_time()
        Cleaner(lambda: KNOWN).rows([one])
        tried.append(process_time() - begun)
    return min(tried)


@pytest.mark.heavy
@pytest.mark.parametrize("name", MADE)
def test_a_text_four_times_as_long_takes_about_four_times_as_much(name):
    # Both are long enough to be looked through in the same way: short rows take a shorter one.
    make = MADE[name]
    assert cost(make(4_194_304)) <= 6 * max(cost(make(1_048_576)), 0.05)


@pytest.mark.parametrize("name", MADE)
def test_a_secret_at_the_end_of_a_long_text_is_found(name):
    text = f"{MADE[name](4_000)} hunter2-hunter2 "
    [kept] = Cleaner(lambda: KNOWN).rows([row(text)])
    assert b"hunter2-hunter2" not in kept.ledger
    assert b"hunter2-hunter2" in row(text).ledger


@given(st.text(st.sampled_from("%0aF4C3 é😀+/=.") | st.characters(), max_size=60))
def test_numbers_in_urls_are_read_as_urllib_reads_them(text):
    told = text.encode(errors="replace").decode()
    assert unquoted(told) == unquote(told)


@given(
    st.lists(
        st.sampled_from(["Bearer ", "abc123def456ghi789jkl0 ", "%41", "x", " ", '"k": ']),
        max_size=8,
    )
)
def test_a_value_is_handed_back_itself_where_its_texts_hold_no_secret(parts):
    text = "".join(parts)
    value = {"said": text}
    clean = KNOWN.value(value)
    assert (clean is value) == (KNOWN.text(text) == text)


PARTS = (
    *("hunter2-hunter2", "password: ", "token=", "hunter22abc1", "Bearer ", "://a:", "b@c", "sk-"),
    *("-----BEGIN PRIVATE KEY-----", b64encode(b"password=hunter22").decode(), "%70assword=abc1"),
    *("turn 1: ", "\n", " ", "x", "eyJ", "Authorization: Basic"),
)
pieces = st.lists(st.sampled_from(PARTS), max_size=6).map("".join)


@given(before=pieces, begins=pieces, ends=pieces, is_long=st.booleans())
@example(before="password: password: ", begins="", ends="", is_long=True)
@example(before="password: ", begins="token=-----BEGIN PRIVATE KEY-----", ends="", is_long=True)
def test_a_long_text_that_is_quoted_is_cleaned_as_it_would_be_alone(before, begins, ends, is_long):
    said = f"{begins}{' word' * (4_000 if is_long else 1)} {ends}"
    quoted = f"{before}{said}"
    clean = KNOWN.value({"evidence": [quoted], "said": [said, said]})
    assert clean == {"evidence": [KNOWN.text(quoted)], "said": [KNOWN.text(said)] * 2}


@given(st.lists(st.tuples(pieces, st.sampled_from(["", "A", "AB", "-", "%"])), max_size=4))
def test_runs_of_base64_that_are_read_together_say_what_each_of_them_says(parts):
    runs = [f"{shift}{b64encode(part.encode()).decode()}" for part, shift in parts]
    clean = KNOWN.text(" ".join(runs))
    assert clean == " ".join(KNOWN.text(run) for run in runs)
