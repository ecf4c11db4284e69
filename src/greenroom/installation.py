"""How this Greenroom was installed, and so how to install it again: with an extra, or elsewhere."""

import json
import shlex
from functools import cache
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

_NAME = "greenroom"


def requirement(extra: str = "") -> str:
    """The line of a requirements file that installs Greenroom the way this one was installed."""
    origin = _origin()
    extras = f"[{extra}]" if extra else ""
    url = str(origin.get("url", ""))
    if not url:
        return f"{_NAME}{extras}=={_version()}"
    if (folder := local_path()) and origin.get("dir_info", {}).get("editable"):
        return f"-e {shlex.quote(folder + extras)}"
    part = f"#subdirectory={origin['subdirectory']}" if "subdirectory" in origin else ""
    if vcs := origin.get("vcs_info"):
        return f"{_NAME}{extras} @ {vcs['vcs']}+{_without_password(url)}@{vcs['commit_id']}{part}"
    return f"{_NAME}{extras} @ {_without_password(url)}{part}"


def how_to_install(extra: str) -> str:
    """The command that installs an extra of this Greenroom."""
    line = requirement(extra)
    return f"pip install {line}" if line.startswith("-e ") else f"pip install '{line}'"


def local_path() -> str:
    """The folder or file on this machine that Greenroom was installed from; empty if it came from elsewhere."""
    parts = urlsplit(str(_origin().get("url", "")))
    return unquote(parts.path) if parts.scheme == "file" else ""


@cache
def _origin() -> dict[str, Any]:
    """The installer's record of where it found Greenroom; empty for a package index."""
    from importlib.metadata import PackageNotFoundError, distribution  # slow, and rarely needed

    try:
        written = distribution(_NAME).read_text("direct_url.json")
        found = json.loads(written or "{}")
    except (PackageNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _version() -> str:
    from importlib.metadata import version

    return version(_NAME)


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    kept = f"{user}@{host}" if user and ":" not in user else host
    return urlunsplit(parts._replace(netloc=kept))
