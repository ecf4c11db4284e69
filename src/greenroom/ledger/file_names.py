"""What the file of a ledger is called: two trials never share a file."""

import re
from hashlib import sha256

from greenroom.ledger.redaction import without_secrets

_PLAIN = re.compile(r"[a-z0-9_-]{1,80}")


def file_name(id: str, trial: int | None = None) -> str:
    """A name, without a suffix, for the trial of a case, or for a conversation that has no trials."""
    name = without_secrets(id)
    if not _PLAIN.fullmatch(id):  # names that a file system treats as equal must stay distinct
        digest = sha256(id.encode(errors="surrogatepass")).hexdigest()[:8]
        name = f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)[:60]}-{digest}"
    return name if trial is None else f"{name}.{trial}"
