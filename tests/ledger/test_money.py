"""Amounts of money are written with the digits that matter."""

import pytest

from greenroom.ledger.money import money


@pytest.mark.parametrize(
    "usd, shown",
    [
        (0, "0"),
        (0.00003, "0.00003"),
        (1e-9, "0.000000001"),
        (0.5, "0.5"),
        (6, "6"),
        (0.0200000001, "0.02"),
        (2_500_000, "2500000"),
        (1234567.8, "1234570"),
    ],
)
def test_an_amount_is_never_shown_as_a_power_of_ten(usd: float, shown: str) -> None:
    assert money(usd) == shown


def test_fewer_digits_may_matter() -> None:
    assert money(0.000123456, 4) == "0.0001235"
