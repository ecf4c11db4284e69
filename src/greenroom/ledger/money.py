"""Amounts of money in messages."""

from decimal import Decimal


def money(usd: float, digits: int = 6) -> str:
    """An amount with the digits that matter, never as a power of ten: 0.00003, not 3e-05."""
    return f"{Decimal(f'{usd:.{digits}g}'):f}"
