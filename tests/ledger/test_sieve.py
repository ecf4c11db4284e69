"""The quick look: whatever the thorough one would change, it does not let through."""

import json
from base64 import b64encode, urlsafe_b64encode
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from greenroom.ledger.redaction import Redactor
from greenroom.ledger.sieve import Sieve

OWN = ("only-we-know", 'Zürich & "Söhne" 77', "two words\nand a line", "!?!?!?!?", "n0t-a-word")
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
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
)
REDACTOR = Redactor([(f"OWN_{number}", value) for number, value in enumerate(OWN)])


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
]
NAMES = ["text", "password", "X-Api-Key", "client_secret", "state.auth_token", "paſſword", "monkey"]

parts = st.one_of(st.sampled_from(SECRETS), st.sampled_from(WORDS), st.sampled_from(MARKS))
texts = st.lists(parts, max_size=6).map("".join)
trees = st.dictionaries(st.sampled_from(NAMES), st.one_of(texts, st.lists(texts, max_size=3)))


@given(st.lists(trees, min_size=1, max_size=5))
def test_what_it_lets_through_holds_no_secret(values: list[dict[str, Any]]) -> None:
    sieve = Sieve(REDACTOR)
    for value in values:
        holds_one = REDACTOR.value(value) is not value
        for written in (to_json(value), json.dumps(value).encode()):
            assert not (holds_one and sieve.is_clean(written))


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("before", ["", "n", "a ", "\n", "\t", '"', "\\", "é"])
def test_a_word_that_was_harmless_elsewhere_hides_nothing(secret: str, before: str) -> None:
    sieve = Sieve(REDACTOR)
    for word in WORDS:
        sieve.is_clean(to_json({"text": word}))
    sieve.is_clean(to_json({"text": f"n{secret}"}))
    value = {"text": f"{before}{secret}"}
    if REDACTOR.value(value) is not value:
        assert not sieve.is_clean(to_json(value))


@pytest.mark.parametrize(
    "text",
    [
        "It is 21 degrees in Paris.",
        "task-12 of risk-free desk-work uses 12 tokens and a monkey",
        "see https://example.com/a/b?c=d and mail bob@example.com",
        "two\nlines\tand 100 % of it",
        'she said "yes" and C:\\temp',
        "0db3d730fe7cb8cc0db3d730fe7cb8cc0db3d730fe7cb8cc",
        "a_function_with_a_rather_long_name",
        "Grüße",
    ],
)
def test_everyday_words_need_no_thorough_look(text: str) -> None:
    sieve = Sieve(Redactor([("CRM", "only-we-know"), ("PHRASE", "correct horse battery")]))
    for _ in range(2):
        assert sieve.is_clean(to_json({"kind": "agent_said", "text": text, "at": 1794743530.31}))


@pytest.mark.parametrize("secret", [*OWN, *KNOWN])
@pytest.mark.parametrize("beyond", [-12, -3, 2])
def test_long_texts_hide_nothing(secret: str, beyond: int) -> None:
    value = {"text": f"{'x' * (499_990 + beyond)} {secret} and more"}
    assert REDACTOR.value(value) is not value
    assert not Sieve(REDACTOR).is_clean(to_json(value))


def test_what_was_found_once_is_found_again() -> None:
    sieve = Sieve(REDACTOR)
    value = to_json({"text": "Here: only-we-know"})
    assert [sieve.is_clean(value) for _ in range(3)] == [False] * 3


def test_it_forgets_rather_than_grow_without_end() -> None:
    sieve = Sieve(Redactor())
    for number in range(0, 260_000, 1000):
        assert sieve.is_clean(to_json([f"word{n}" for n in range(number, number + 1000)]))
    assert len(sieve._words) < 150_000  # pyright: ignore[reportPrivateUsage]
