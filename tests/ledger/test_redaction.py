"""Secrets are replaced in every disguise, and nothing else is."""

import json
import logging
import re
from base64 import b64encode, urlsafe_b64encode
from html import escape
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.errors import BadFile
from greenroom.ledger import (
    Change,
    Ledger,
    RunStarted,
    StateChanged,
    StateConflicted,
    ToolCalled,
    ToolReturned,
    UserSaid,
)
from greenroom.ledger.redaction import (
    Redactor,
    is_redacted,
    redact_log,
    redactor,
    without_secrets,
)
from greenroom.ledger.redaction.kinds import well_known

# None of these ever opened anything.
KEY = "sk-ant-api03-0aZ9" + "bY8" * 8
WELL_KNOWN = {
    "api_key": [
        "sk-0123456789abcdef0123",
        KEY,
        "sk_" + "live_0123456789abcdef",
        "hf_" + "aB3" * 10,
    ],
    "google_key": ["AIza" + "SyD4" * 9],
    "github_token": ["ghp_" + "aB3d" * 9, "github_pat_" + "11AA" * 8],
    "gitlab_token": ["glpat-" + "aB3d" * 5],
    "slack_token": ["xoxb-" + "1234-5678-abcdef"],
    "aws_key": ["AKIA" + "ABCD1234EFGH5678"],
    "jwt": ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"],
}
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"


def clean(text: str) -> str:
    return Redactor().text(text)


@pytest.mark.parametrize("name, secret", [(n, s) for n, all_ in WELL_KNOWN.items() for s in all_])
def test_a_key_of_a_known_look_is_replaced(name, secret):
    assert clean(f"before {secret} after") == f"before [redacted:{name}] after"
    assert clean(f'{{"log": "line\\n{secret}"}}') == f'{{"log": "line\\n[redacted:{name}]"}}'
    hidden = b64encode(f"user:{secret}".encode()).decode()
    assert clean(f"Basic {hidden}!") == f"Basic [redacted:{name}]!"
    assert clean("".join(f"%{ord(c):02x}" for c in secret)) == f"[redacted:{name}]"


@pytest.mark.parametrize(
    "text, shown",
    [
        ("Authorization: Bearer abc123def456", "Authorization: [redacted:authorization]"),
        (
            '{"Authorization": "Basic dXNlcjpwYXNz"}',
            '{"Authorization": "[redacted:authorization]"}',
        ),
        ("sent bearer abc123def456 there", "sent bearer [redacted:bearer_token] there"),
        ("postgres://bob:hunter2@db/x", "postgres://bob:[redacted:url_password]@db/x"),
        ("redis://:p@ss:w0rd@cache", "redis://:[redacted:url_password]@cache"),
        ("login?password=hunter2&x=1", "login?password=[redacted:password]&x=1"),
        ('{\\"api_key\\": \\"abc-123-def\\"}', '{\\"api_key\\": \\"[redacted:api_key]\\"}'),
        (f"it is {PEM}, see", "it is [redacted:private_key], see"),
        (f"cut {PEM[:45]}", "cut [redacted:private_key]"),
    ],
)
def test_passwords_and_tokens_are_replaced_where_they_are_said_to_be_ones(text, shown):
    assert clean(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "the bearer certificates and the token limit",
        "a risk-management-and-control-framework of the task-force",
        "the password: between 8 and 20 letters",
        "Authorization: every customer signs",
        "https://example.org:8080/@someone?page_token=3",
        "d41d8cd98f00b204e9800998ecf8427e",
        "src/greenroom/ledger/redaction/and/other/places",
        "100 % of sk-learn-based-classification",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    ],
)
def test_what_is_no_secret_stays(text):
    assert clean(text) == text
    assert Redactor().value([text])[0] is text


BEGIN = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
WHERE_A_WORD_BEGINS = {
    "sk-": rf"(?:{BEGIN}sk-(?!learn)|sk-(?:ant|proj|or)-)[A-Za-z0-9_-]{{16,}}",
    "k_live_": rf"{BEGIN}[sr]k_(?:live|test)_[A-Za-z0-9]{{16,}}",
    "gsk_": rf"{BEGIN}(?:gsk_|xai-|hf_)[A-Za-z0-9]{{24,}}",
    "ya29.": rf"{BEGIN}(?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{{20,}}",
    "xox": rf"{BEGIN}(?:xox[a-z]-|xapp-)[A-Za-z0-9-]{{10,}}",
    "AKIA": rf"{BEGIN}(?:AKIA|ASIA)[A-Z0-9]{{16}}(?![A-Za-z0-9])",
    "npm_": rf"{BEGIN}(?:npm_[A-Za-z0-9]{{30,}}|pypi-[A-Za-z0-9_-]{{30,}})",
    "eyJ": (
        r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
        r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    ),
}
HEADS = "sk- sk-learn sk-ant- sk_live_ rk_test_ gsk_ xai- hf_ ya29. GOCSPX- xoxb- xapp- AKIA ASIA"
PARTS = [*HEADS.split(), "npm_", "pypi-", "eyJ", "x", "9", "-", "_", ".", " ", "\\", "\\n", "t"]
LONG = ["A1" * 8, "b2" * 6, "c3" * 16, "A1" * 8 + ".", "b2" * 6 + "."]


@given(st.lists(st.sampled_from(PARTS + LONG), max_size=8).map("".join))
def test_a_key_is_found_where_a_word_begins_and_nowhere_else(text):
    """The looks put the letters of a key first, for speed; these say plainly what they mean."""
    looks = {kind.hints[0]: kind.look for kind in well_known()}
    for hint, plainly in WHERE_A_WORD_BEGINS.items():
        meant = [found.span() for found in re.finditer(plainly, text)]
        assert [found.span() for found in looks[hint].finditer(text)] == meant


# The environment


VALUE = "pa&ss/wör+d <x>\"y'\\z"


def disguises(value: str) -> dict[str, str]:
    data = value.encode()
    coded = {f"base64 after {n}": b64encode(b"abc"[:n] + data + b"xy").decode() for n in range(3)}
    return coded | {
        "raw": value,
        "base64": b64encode(data).decode(),
        "url-safe base64": urlsafe_b64encode(b"?" + data).decode(),
        "quoted": quote(value, safe=""),
        "quoted as a path": quote(value),
        "quoted as a form": quote_plus(value),
        "quoted in small letters": quote(value, safe="").lower(),
        "json": json.dumps(value),
        "json as it is": json.dumps(value, ensure_ascii=False),
        "repr": repr(value),
        "html": escape(value),
    }


@pytest.mark.parametrize("value", [VALUE, "plain-and-long-enough-42", "8letters"])
def test_a_value_of_a_telling_variable_is_replaced_in_every_disguise(value):
    hand = Redactor.of_environment({"CRM_TOKEN": value, "HOME": "/home/me"})
    for disguise, said in disguises(value).items():
        shown = hand.text(f"<{said}>")
        assert "[redacted:CRM_TOKEN]" in shown, disguise
        assert value not in shown


def test_a_secret_that_was_cut_short_is_replaced_too():
    value = "0123456789abcdefghijklmnopqrstuvwxyz"
    hand = Redactor([("KEY", value)])
    assert hand.text(f"got {value[:30]}… instead") == "got [redacted:KEY] instead"
    assert hand.text(value[:10]) == value[:10]


def test_only_telling_and_named_variables_hold_secrets_and_short_ones_are_words():
    environment = {
        "EDITOR": "emacs-and-vim",
        "MY_KEY": "yes",
        "CRM_LOGIN": "bob7",
        "X_SECRET": "s" * 8,
    }
    assert Redactor.of_environment(environment).text("emacs-and-vim yes bob7") == (
        "emacs-and-vim yes bob7"
    )
    hand = Redactor.of_environment(environment, named=["CRM_LOGIN"])
    assert hand.text("yes bob7 ssssssss") == "yes [redacted:CRM_LOGIN] [redacted:X_SECRET]"


def test_the_password_of_a_url_in_any_variable_is_a_secret():
    hand = Redactor.of_environment({"DATABASE_URL": "postgres://bob:hunter22hunter@db/x"})
    assert hand.text("failed for hunter22hunter") == "failed for [redacted:DATABASE_URL]"


@given(st.text(min_size=8, max_size=40).filter(lambda text: len(text.strip()) >= 8), st.text())
def test_no_value_survives_in_whatever_it_stands(value, around):
    hand = Redactor([("X", value)])
    shown = hand.text(f"{around}{value}{around}")
    marks = shown.replace("[redacted:X]", "")
    assert value not in marks
    assert hand.text(shown) == shown or value in "[redacted:X]"


@given(st.text())
def test_twice_is_once(text):
    assert clean(clean(text)) == clean(text)


# Trees of values


def test_json_is_redacted_by_look_and_by_the_name_of_a_field():
    data = {
        "args": [f"use {KEY}", 7, None],
        "password": "abc",
        "clientSecret": "x",
        "token": "page-2",
        "nested": {"x-api-key": "1", "password": {"type": "string"}},
        KEY: 1,
    }
    assert Redactor().value(data) == {
        "args": ["use [redacted:api_key]", 7, None],
        "password": "[redacted:password]",
        "clientSecret": "[redacted:clientSecret]",
        "token": "page-2",
        "nested": {"x-api-key": "[redacted:x-api-key]", "password": {"type": "string"}},
        "[redacted:api_key]": 1,
    }


def test_lists_and_numbers_under_the_name_of_a_secret_are_replaced_one_by_one():
    data = {
        "password": ["abc", 7, ["", 1.5, None, True], {"type": "string"}, "[redacted:OLD]"],
        "api_key": 48151623,
        "passwords": ["abc", 7],
    }
    mark = "[redacted:password]"
    assert Redactor().value(data) == {
        "password": [mark, mark, ["", mark, None, True], {"type": "string"}, "[redacted:OLD]"],
        "api_key": "[redacted:api_key]",
        "passwords": ["abc", 7],
    }


def test_a_secret_that_only_begins_like_a_mark_is_replaced():
    assert Redactor().value({"password": "[redacted: no, hunter2"}) == {
        "password": "[redacted:password]"
    }


def test_what_is_under_the_name_of_a_secret_and_is_none_is_handed_back_itself():
    data = {"password": [None, "", True, {"type": "string"}, ("[redacted:password]",)]}
    assert Redactor().value(data) is data


def test_what_changed_or_was_fought_over_under_the_name_of_a_secret_is_replaced():
    ledger = Ledger()
    change = Change("session", ("auth", "password"), value=["hunter2", 7])
    ledger.append(StateChanged(changes=(change,)), at=0)
    ledger.append(StateConflicted(scope="user", key="a.password", values=["hunter2", 7]), at=1)
    shown = Redactor().ledger(ledger)
    changed, fought = shown
    assert isinstance(changed, StateChanged)
    assert isinstance(fought, StateConflicted)
    assert changed.changes[0].value == fought.values == ["[redacted:password]"] * 2


def test_only_our_own_marks_tell_that_a_secret_was_replaced():
    assert is_redacted({"says": ["your key is [redacted:api_key]"]})
    assert is_redacted(Redactor([("A name/of.its-own", KEY)]).value([KEY]))
    assert is_redacted({"[redacted:api_key] 2": 1})
    assert not is_redacted({"says": "your card is [redacted: card number], [redacted:] [redacted"})


PIECES = [KEY, "Bearer", "abc123def456", PEM[:40], PEM[40:], "a", "\n", " ", "://b:", "pw@h", "%3D"]


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=4).map("".join), max_size=5))
def test_a_tree_is_redacted_text_by_text(texts):
    assert Redactor().value(texts) == [clean(text) for text in texts]


def test_two_keys_that_are_secrets_stay_two_keys():
    assert Redactor().value({KEY: 1, f"{KEY}0": 2, "[redacted:api_key]": 3}) == {
        "[redacted:api_key]": 1,
        "[redacted:api_key] 2": 2,
        "[redacted:api_key] 3": 3,
    }


def test_what_holds_no_secret_is_handed_back_itself():
    data = {"a": ["b", {"c": 1.5}], "key": "value"}
    assert Redactor().value(data) is data
    ledger = Ledger([UserSaid(text="Hello, see https://example.org", at=1.0)])
    assert Redactor().ledger(ledger) is ledger


def talk() -> Ledger:
    ledger = Ledger()
    ledger.append(RunStarted(run_id="r", case={"says": KEY}, state={"session": {"k": KEY}}), at=0)
    ledger.append(UserSaid(text=f"I am {KEY}"), at=1)
    ledger.append(ToolCalled(call_id="1", tool="login", args={"password": "hunter2"}), at=2)
    changes = (Change("session", ("auth", "password"), value="hunter2"),)
    ledger.append(
        ToolReturned(call_id="1", tool="login", value=[KEY], source="mock", changes=changes), at=3
    )
    ledger.append(StateChanged(changes=(Change("user", ("x",), value=KEY),)), at=4)
    return ledger


def test_a_ledger_is_redacted_event_by_event_and_stays_a_ledger():
    ledger = talk()
    shown = Redactor().ledger(ledger)
    assert KEY not in shown.dumps()
    assert "hunter2" not in shown.dumps()
    assert [type(event) for event in shown] == [type(event) for event in ledger]
    assert [(event.seq, event.at) for event in shown] == [(e.seq, e.at) for e in ledger]
    assert KEY in ledger.dumps()


def test_a_ledger_is_saved_word_for_word_unless_told_otherwise(tmp_path):
    talk().save(tmp_path / "exact.jsonl")
    talk().save(tmp_path / "clean.jsonl", redact=True)
    assert Ledger.load(tmp_path / "exact.jsonl") == talk()
    assert KEY not in (tmp_path / "clean.jsonl").read_text()
    assert len(Ledger.load(tmp_path / "clean.jsonl")) == len(talk())


# This process


def test_this_process_knows_its_environment_and_what_its_project_names(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('[tool.greenroom]\nredact_env = ["CRM_LOGIN"]\n')
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    monkeypatch.setenv("CRM_LOGIN", "bob-the-clerk")
    monkeypatch.setenv("SOME_API_KEY", "not-a-known-look")
    assert redactor().text("bob-the-clerk, not-a-known-look") == (
        "[redacted:CRM_LOGIN], [redacted:SOME_API_KEY]"
    )
    monkeypatch.delenv("SOME_API_KEY")
    assert redactor().text("not-a-known-look") == "not-a-known-look"


@pytest.mark.parametrize("wrong", ['redact_env = "CRM"', "redact_env = [1]", "redact_env ="])
def test_a_project_that_names_nonsense_is_refused_but_messages_still_come_through(
    wrong, tmp_path, monkeypatch
):
    (tmp_path / "pyproject.toml").write_text(f"[tool.greenroom]\n{wrong}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadFile, match=r"pyproject\.toml"):
        redactor()
    assert without_secrets(f"no {KEY}") == "no [redacted:api_key]"


def test_a_folder_that_is_gone_names_nothing(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert redactor().text("x") == "x"


def test_log_records_lose_their_secrets(tmp_path: Path):
    log = tmp_path / "log.txt"
    handler = logging.FileHandler(log)
    handler.addFilter(redact_log)
    logger = logging.Logger("test")
    logger.addHandler(handler)
    logger.warning("key %s of %s", KEY, {"k": KEY})
    try:
        raise ValueError(f"refused {KEY}")
    except ValueError:
        logger.exception("it broke", stack_info=True)
    handler.close()
    said = log.read_text()
    assert KEY not in said
    assert said.startswith("key [redacted:api_key] of {'k': '[redacted:api_key]'}")
    assert "ValueError: refused [redacted:api_key]" in said


@pytest.mark.parametrize(
    "hostile",
    [
        "authorization:",
        "_eyJ",
        "://a:",
        "Bearer ",
        "password=",
        "sk-",
        "%41",
        "eyJ",
        "api_key ",
        "\\",
    ],
)
def test_hostile_text_is_read_in_time_that_grows_with_its_length(hostile):
    """A look that tried again at every place would never end on this."""
    hand = Redactor([("X", "abcdefgh12345678")])
    assert isinstance(hand.text(hostile * 100_000), str)
