"""Redaction: what is shown, stored or sent to a log goes through here first, and loses its secrets.

This module is the entry point. Everything that leaves asks `redactor()`, or `without_secrets` for a message;
everything that learns of a secret keeps it with a `keep_…` function. Inside: `looks` and `kinds` say what
counts as a secret, `given` holds the values this process was given, `replacement` replaces them, `structure`
says which words are the formats' own and stay, `process` knows the secrets of this process, and `sieve` finds
out quickly that there are none.
"""

from typing import TYPE_CHECKING

from greenroom.lazy import lazy
from greenroom.ledger.redaction.given import (
    given_secrets,
    keep_fields,
    keep_headers,
    keep_keys,
    keep_secret,
    keep_sent,
)
from greenroom.ledger.redaction.process import redact_log, redactor, without_secrets
from greenroom.ledger.redaction.replacement import (
    MARK,
    Redactor,
    clean_id,
    clean_ids,
    is_redacted,
)

if TYPE_CHECKING:
    from greenroom.ledger.redaction.sieve import Sieve

__all__ = [
    "MARK",
    "Redactor",
    "Sieve",
    "clean_id",
    "clean_ids",
    "given_secrets",
    "is_redacted",
    "keep_fields",
    "keep_headers",
    "keep_keys",
    "keep_secret",
    "keep_sent",
    "redact_log",
    "redactor",
    "without_secrets",
]

# Only what is stored goes through the sieve.
__getattr__, __dir__ = lazy(__name__, {"sieve": "Sieve"})
