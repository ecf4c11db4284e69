"""Secrets that the program itself was given."""

import pytest

from greenroom.ledger.redaction import given_secrets, keep_secret, redactor


@pytest.mark.parametrize("value", ["pass", "secret", "4711", "no"])
def test_a_short_word_or_number_is_not_looked_for_by_its_value(value: str) -> None:
    keep_secret("url_password", value)
    assert value not in [kept for _, kept in given_secrets()]
    assert redactor().text(f"{value}ed {value}") == f"{value}ed {value}"


@pytest.mark.parametrize("value", ["k3-zzy", "correcthorsebattery", "qzqzqzqz-kept-by-value"])
def test_a_value_of_its_own_is_redacted_wherever_it_stands(value: str) -> None:
    keep_secret("x_key", value)
    assert value not in redactor().text(f"sent {value} today")
