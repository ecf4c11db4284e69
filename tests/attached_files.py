"""Small real files for the tests of attachments, and a look for their bytes in anything that was sent."""

import base64
import json
from typing import Any

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
BIG_PNG = PNG + bytes(range(256)) * 40
PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF\n"
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00" + bytes(20)
MP4 = b"\x00\x00\x00\x18ftypmp42" + bytes(16)


def holds(sent: Any, data: bytes) -> bool:
    """Whether these very bytes stand somewhere in what was sent, as any base64."""
    text = json.dumps(sent, default=str)
    plain, urlsafe = base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()
    return any(coded.rstrip("=") in text for coded in (plain, urlsafe))
