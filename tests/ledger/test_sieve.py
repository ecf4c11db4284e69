"""The quick look: whatever the thorough one would change, it does not let through."""

import json
from base64 import b64encode, urlsafe_b64encode
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from greenroom.ledger import Change, Event, Ledger, StateChanged, StateConflicted
from greenroom.ledger.redaction import Redactor, Sieve

OWN = (
    "only-we-know",
    'Zürich & "Söhne" 77',
    "two words\nand a line",
    "!?!?!?!?",
    "n0t-a-word",
    "p@ss!w0#rd",
    '#\n"#"\\#',
    "bob77",
)
KNOWN = (
    "sk-ant-0123456789abcdefghij",
    "sk-0123456789abcdefghij",
    "ghp_0123456789abcdefghij0123",
    "AKIAABCDEFGHIJKLMNOP",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "npm_0123456789abcdefghij0123456789abcdef",
    "postgres://bob:pw12345@db",
    "Authorization: Basic dXNlcjpwYXNz",
    "Bearer abcdefghij0123456789",
    "password=hunter22",
    'api_key: "abcdef123456"',
    "passwd\r\n =\t'hunter22'",
    "client_secret\u2003= 'hunter22'",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
)
REDACTOR = Redactor([(f"OWN_{number}", value) for number, value in enumerate(OWN)])
# Secrets of our own make the quick look shy: without them it has to look closer at the rest.
REDACTORS = (REDACTOR, Redactor(), *(Redactor([("OWN", value)]) for value in OWN))


def coded(text: str) -> list[str]:
    data = text.encode()
    shifted = [b"\0" * before + data for before in range(3)]
    return [
        *(b64encode(one).decode() for one in shifted),
        urlsafe_b64encode(data).decode(),
        quote(text, safe=""),
        json.dumps(text),
        repr(text),
        text[: len(text) * 2 // 3],
    ]


SECRETS = [form for text in (*OWN, *KNOWN) for form in (text, *coded(text))]
WORDS = [
    "the",
    "task-12",
    "tokens",
    "key",
    "password",
    "client_secret_id",
    "my%20order",
    "%2D",
    "n",
    "r",
    "100%",
    "é",
    "x" * 30,
    "0f" * 20,
    "https://a.b/c",
]
MARKS = [
    " ",
    "\n",
    "\t",
    "\r",
    "\b",
    "\f",
    "\0",
    '"',
    "\\",
    "'",
    ":",
    "@",
    "/",
    "=",
    "",
    "–",
    "[",
    "%",
    "\\n",
    "\\b",
]
NAMES = [
    "text",
    "password",
    "my old password",
    "X-Api-Key",
    "client_secret",
    "client_secret_key",
    "state.auth_token",
    "paſſword",
    "prıvate-key",
    "AUTHORİZATION",
    "monkey",
]

parts = st.one_of(st.sampled_from(SECRETS), st.sampled_from(WORDS), st.sampled_from(MARKS))
texts = st.lists(parts, max_size=6).map("".join)
names = st.one_of(st.sampled_from(NAMES), texts)
values = st.one_of(texts, st.integers(), st.none(), st.lists(texts, max_size=3))
trees = st.dictionaries(names, values, max_size=4)
events = st.one_of(
    st.builds(
        lambda path, value: StateChanged(changes=(Change("session", tuple(path), value=value),)),
        st.lists(names, min_size=1, max_size=2),
        values,
    ),
    st.builds(
        lambda key, values: StateConflicted(scope="session", key=key, values=values),
        names,
        st.lists(values, max_size=2),
    ),
)


@given(st.sampled_from(REDACTORS), st.lists(trees, min_size=1, max_size=5))
def test_what_it_lets_through_holds_no_secret(
    redactor: Redactor, values: list[dict[str, Any]]
) -> None:
    sieve = Sieve(redactor)
    for value in values:
        holds_one = redactor.value(value) is not value
        for written in (to_json(value), json.dumps(value).encode()):
            assert not (holds_one and sieve.is_clean(written))


@given(st.sampled_from(REDACTORS), st.lists(events, min_size=1, max_size=5))
def test_a_ledger_that_it_lets_through_holds_no_secret(
    redactor: Redactor, given: list[Event]
) -> None:
    sieve = Sieve(redactor)
    for event in given:
        ledger = Ledger()
        ledger.append(event, at=1.0)
        holds_one = redactor.ledger(ledger) is not ledger
        assert not (holds_one and sieve.is_clean(ledger.dumps().encode()))


@pytest.mark.parametrize(
    "own, text",
    [
        # Where JSON writes a line break, a letter stands before the run that is not in the text.
        ("", "\nABh" + b64encode(b"AKIAABCDEFGHIJKLMNOP").decode()),
        ("", "\nsk%2D0123456789abcdefghij"),
        # The n behind a backslash that stands for itself is a part of the run, the ninth letter.
        ("bob77", "\\nbob%377x"),
        ("p@ss!w0#rd", 'it is "p@ss!w0#rd"'),
        ('#!"#?\n#', 'it is #!"#?\n#'),
    ],
)
def test_what_json_writes_differently_hides_nothing(own: str, text: str) -> None:
    redactor = Redactor([("OWN", own)] if own else [])
    value = {"text": text}
    assert redactor.value(value) is not value
    assert not Sieve(redactor).is_clean(to_json(value))


@pytest.mark.parametrize(
    "name",
    [
        *("password", "passwd", "passphrase", "authorization", "private_key", "privateKey"),
        *("api_key", "api-key", "apikey", "secret_key", "client-secret", "secret_access_key"),
        *("access_token", "refreshToken", "AUTH-TOKEN", "client_secret_key"),
        # Where case does not count, these letters are other ones.
        *("paſſword", "secret_\u212aey", "apı_key", "x-apİkey", "prıvate-key", "AUTHORİZATION"),
    ],
)
def test_every_name_of_a_secret_is_known(name: str) -> None:
    value = {name: "x"}
    assert Redactor().value(value) == {name: f"[redacted:{name}]"}
    assert not Sieve(Redactor()).is_clean(to_json(value))


def test_a_slash_that_is_escaped_needs_a_thorough_look() -> None:
    assert not Sieve(Redactor()).is_clean(rb'{"text": "postgres:\/\/bob:pw12345@db"}')


@pytest.mark.parametrize(
    "field, mention",
    [
        ("password", "Your password reset link was sent"),
        ("client_secret_key", "the client_secret_key and client_secret were lost"),
        ("authorization", "payment authorization failed"),
    ],
)
def test_a_name_that_announced_nothing_in_one_place_may_in_another(
    field: str, mention: str
) -> None:
    sieve = Sieve(Redactor())
    for _ in range(2):
        assert sieve.is_clean(to_json({"text": mention}))
    assert not sieve.is_clean(to_json({field: 12345678}))
    assert not sieve.is_clean(to_json({"text": f"{field} = 'abcdef123456'"}))
    assert not sieve.is_clean(to_json({"path": ["auth", field], "value": ["x"]}))


@pytest.mark.parametrize("text", [*OWN, *KNOWN])
def test_a_word_that_was_harmless_elsewhere_hides_nothing(text: str) -> None:
    found = 0
    for secret in (text, *coded(text)):
        for before in ("", "n", "a ", "\n", "\t", '"', "\\", "é"):
            sieve = Sieve(REDACTOR)
            for word in WORDS:
                sieve.is_clean(to_json({"text": word}))
            sieve.is_clean(to_json({"text": f"n{secret}"}))
            value = {"text": f"{before}{secret}"}
            # Not every form is a secret: two thirds of one rarely are.
            if REDACTOR.value(value) is not value:
                found += 1
                assert not sieve.is_clean(to_json(value)), value
    assert found >= 8


@pytest.mark.parametrize(
    "text",
    [
        "It is 21 degrees in Paris.",
        "task-12 of risk-free desk-work uses 12 tokens and a monkey",
        "see https://example.com/a/b?c=d and mail bob@example.com",
        "two\nlines\tand 100 % of it",
        'she said "yes" and C:\\temp',
        "C:\\bin, C:\\users and C:\\files, or \\bword\\b",
        "Your password reset link was sent; the author has no authorization yet",
        "https://shop.example/my%20order/Z%C3%BCrich?a=100%25, 20%ade",
        # Both what it says and what it looks like have the beginnings of keys.
        b64encode(b"risk- sk- hf_ key eyJ \xc7\x1a\x31" * 3).decode(),
        "0db3d730fe7cb8cc0db3d730fe7cb8cc0db3d730fe7cb8cc",
        "a_function_with_a_rather_long_name",
        "Grüße",
    ],
)
def test_everyday_words_need_no_thorough_look(text: str) -> None:
    own = ("only-we-know", "correct horse battery", "p@ss!w0#rd", "!?!?!?!?", "a b c d e f g h")
    sieve = Sieve(Redactor([("OWN", value) for value in own]))
    for _ in range(2):
        assert sieve.is_clean(to_json({"kind": "agent_said", "text": text, "at": 1794743530.31}))


# Every secret across the border between two parts of a long text; next to it, one of each kind.
ACROSS = -3
BORDERS = [
    pytest.param(
        *(secret, beyond),
        marks=[] if beyond == ACROSS or secret in (OWN[0], KNOWN[0]) else pytest.mark.heavy,
    )
    for secret in (*OWN, *KNOWN)
    for beyond in (-12, ACROSS, 2)
]


@pytest.mark.parametrize("secret, beyond", BORDERS)
def test_long_texts_hide_nothing(secret: str, beyond: int) -> None:
    long = {"text": f"{'x' * 20_000} {secret} and more"}
    assert REDACTOR.value(long) is not long
    in_two_parts = {"text": f"{'x' * (499_990 + beyond)} {secret} and more"}
    assert not Sieve(REDACTOR).is_clean(to_json(in_two_parts))


def test_what_was_found_once_is_found_again() -> None:
    sieve = Sieve(REDACTOR)
    value = to_json({"text": "Here: only-we-know"})
    assert [sieve.is_clean(value) for _ in range(3)] == [False] * 3


def test_it_forgets_rather_than_grow_without_end() -> None:
    sieve = Sieve(Redactor())
    for number in range(0, 260_000, 1000):
        assert sieve.is_clean(to_json([f"word{n}" for n in range(number, number + 1000)]))
    assert len(sieve._words) < 150_000  # pyright: ignore[reportPrivateUsage]


def test_what_a_tool_takes_is_no_secret_unless_it_looks_like_one():
    sieve = Sieve(Redactor())
    for fine in ("(order: int) -> str", "() -> dict"):
        assert sieve.is_clean(json.dumps({"signature": fine}, separators=(",", ":")).encode())
    for odd in ("(order_12345678)", "3f9a8b7c6d5e4f3a2b1c", "(x 3f9a8b7c6d5e4f3a2b1c"):
        data = {"signature": odd, "tools": [{"signature": "(order: int) -> str"}]}
        told = json.dumps(data, separators=(",", ":")).encode()
        assert not sieve.is_clean(told) or Redactor().value(data) is data
    assert not sieve.is_clean(b'{"signature":"3f9a8b7c6d5e4f3a2b1c"}')
    assert not sieve.is_clean(b'{"signature":"(order_12345678)"}')
