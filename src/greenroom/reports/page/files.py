"""Attachments as a page shows them: name, type and size, and small pictures themselves.

Only plain images are shown: an SVG, a page or a document is named, never opened.
"""

from base64 import b64encode
from typing import Any

from greenroom.errors import BadAttachment
from greenroom.ledger.attachments import Attachment, shown_size
from greenroom.ledger.blobs import described
from greenroom.reports.page.short_values import Trimmer

_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_LARGEST = 150_000


def shown_file(attachment: Attachment, trimmer: Trimmer) -> dict[str, Any]:
    """An attachment as a row of the timeline has it."""
    facts = {
        "name": trimmer.text(attachment.name),
        "type": attachment.media_type,
        "size": shown_size(attachment.size),
    }
    picture = _picture(attachment, trimmer)
    return {**facts, "src": picture} if picture else facts


def _picture(attachment: Attachment, trimmer: Trimmer) -> str:
    if attachment.media_type not in _PICTURES or attachment.size > _LARGEST:
        return ""
    try:
        data = attachment.data
        described(data, attachment.media_type, attachment.name, attachment.name)
    except BadAttachment:  # the bytes are gone, or it is not a picture
        return ""
    coded = b64encode(data).decode()
    return f"data:{attachment.media_type};base64,{coded}" if trimmer.takes(len(coded)) else ""
