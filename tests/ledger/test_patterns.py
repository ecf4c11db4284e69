"""Which texts hold a secret, which only speak of one, and that a quick look misses none of them."""

import json
from typing import Any

import pytest

from greenroom.ledger.redaction import Redactor, Sieve
from greenroom.ledger.redaction.kinds import telling

SECRETS = {
    "X-Api-Key: {}": "v4lue-abc",
    "x-api-key: {}\n": "abcdefgh",
    "X-Auth-Token: {}": "abcdef12",
    "PRIVATE-TOKEN: {}": "glabc-12345",
    "Authorization: Bearer {}": "abcdef123456",
    "Authorization: {}": "abcdefghij",
    "authorization: ApiKey {}": "abcd1234efgh",
    "Proxy-Authorization: Basic {}": "dXNlcjpwYXNz",
    'Authorization: Digest username="u", response="{}"': "6629fae49393a053",
    "Authorization: AWS4-HMAC-SHA256 Credential=AK/x, SignedHeaders=host, Signature={}": "fe5f80",
    "Cookie: theme=dark; sid={}": "8sj2",
    "Set-Cookie: session={}; Path=/; HttpOnly": "8sj2kd",
    "password: {}": "hunter2",
    "user: x\npassword: {}\nport: 5": "swordfish",
    "password={}&x=1": "abcd",
    "passcode: {}": "884411",
    "db_pass: {}": "s3cret9",
    "export DB_PASS={}": "hunter22",
    "GH_PAT={}": "abcdefgh",
    "MY_PWD={}": "letmein1",
    "SENTRY_DSN={}": "https://abc@o1.example/4",
    '{{"token": "{}"}}': "tok-9f8e7d6c",
    "token={}": "abc123def",
    "token: {}": "abc123def",
    '"client_secret": "{}"': "zzzzzzzz",
    "aws_secret_access_key = '{}'": "abcdefgh12",
    "https://b.example/k?X-Amz-Signature={}&x=1": "0123456789abcdef",
    "https://b.example/k?X-Amz-Credential={}&x=1": "AKIDEXAMPLE%2F2020",
    "https://b.example/k?a=1&X-Goog-Signature={}": "abcdef0123456789",
    "https://b.example/c?sv=2020&sig={}&se=1": "abc%2Bdef%3D123",
    "https://b.example/a?Policy=eyJTdGF0ZW1lbnQi0&Signature={}": "abc123~def",
    "Server=db;User Id=sa;Password={};": "hunter2",
    "AccountName=a;AccountKey={};EndpointSuffix=x": "abc123def456==",
    "postgres://u:{}@h/db": "pw123",
    "https://{}@o1.example/2": "0123456789abcdef0123",
}
PROSE = [
    "the password: field is required",
    "Your password: must be at least 8 characters",
    "password: required",
    "tokens: 12",
    '{"input_tokens": 12, "max_tokens": 4000, "token_count": 7}',
    "token: the first token of a text",
    "the token count: 1234567",
    "api_key: 0.50",
    "api_key: the name of a tool",
    "the secret: never give up",
    "PWD=/home/user",
    "?key=orders&page=2",
    "cookie: chocolate chip",
    "sort_key=price, primary_key=order_id",
    "authorization: required",
    "Authorization: please contact support",
    "pass: 0.95, Pass: 12 of 13",
    "ssh://git@example.com/x",
]
HAND = Redactor()


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_is_known_by_what_stands_before_it(text: str) -> None:
    secret = SECRETS[text]
    clean = HAND.text(text.format(secret))
    assert secret not in clean
    assert "[redacted:" in clean
    assert HAND.text(clean) == clean


@pytest.mark.parametrize("text", PROSE)
def test_a_text_that_only_speaks_of_secrets_stays(text: str) -> None:
    assert HAND.text(text) == text


FIELDS = (
    *(
        "token",
        "jwt",
        "sig",
        "credentials",
        "pwd",
        "dsn",
        "db_pass",
        "user-pwd",
        "gh_pat",
        "Cookie",
    ),
    *(
        "set-cookie",
        "accessToken",
        "api-key",
        "apiKey",
        "X-Api-Key",
        "secretAccessKey",
        "passphrase",
    ),
    *(
        "SharedAccessKey",
        "sharedAccessSignature",
        "connectionString",
        "private-key",
        "Authorization",
    ),
    *("client_secret", "PASSWORD", "accountKey", "x-vault-token", "csrfToken", "DB_PASS", "A_JWT"),
)


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_with_a_telling_name_is_redacted_and_no_quick_look_misses_it(name: str) -> None:
    for value in ("abcd1234efgh", "a b", "swordfish", 12345678):
        shapes: list[Any] = [
            {name: value},
            {"a": [{name: [value]}]},
            {"name": name, "value": value},
            *(
                f"{name}: {value}",
                f"{name}={value}",
                f'"{name}": "{value}"',
                f"?{name}={value}&a=1",
            ),
        ]
        for shape in shapes:
            if HAND.value(shape) != shape:
                assert not Sieve(HAND).is_clean(json.dumps(shape).encode()), shape
    assert HAND.value({name: "abcd1234efgh"}) != {name: "abcd1234efgh"}


@pytest.mark.parametrize(
    "data",
    [
        {"tokens": 12, "token": 5, "max_token": 8},
        {"token": " refund"},
        {"token": "page-2"},
        {"models": {"api_key": 3, "password": 2}},
        {"name": "password", "value": 0.5},
        {"metrics": {"api_key": 0.5}, "scores": {"token": {"value": 1.0, "passed": True}}},
    ],
)
def test_counts_scores_and_words_of_a_model_stay(data: Any) -> None:
    assert HAND.value(data) == data


def test_usual_names_of_variables_are_telling_and_the_working_folder_is_none() -> None:
    names = ["DB_PASS", "DB_PWD", "GH_PAT", "SENTRY_DSN", "APP_JWT", "AZURE_CONNECTION_STRING"]
    assert all(map(telling, names))
    assert not any(map(telling, ["PWD", "OLDPWD", "PATH", "COMPAT", "BYPASS", "HOME", "LANG"]))


@pytest.mark.parametrize(
    "piece",
    [
        "password: ",
        "cookie: ",
        "&sig=&token=&key=a",
        "://",
        "authorization: x ",
        "token=",
        "_KEY=a ",
    ],
)
def test_a_text_of_a_million_letters_is_read_to_its_end(piece: str) -> None:
    text = (piece * (1_000_000 // len(piece))) + "\npassword=hunter2"
    assert HAND.text(text).endswith("password=[redacted:password]")
