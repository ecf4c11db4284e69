"""Ids: they become names of files and words on a command line, so not every text will do."""

import re

from greenroom.cases.places import shown, wrong

MAX_ID = 200
_UNSAFE = re.compile(r"[/\\]|\.\.+")


def id_trouble(name: str) -> str | None:
    """Why a text cannot be an id, or None if it can."""
    if not name.strip():
        return "the id is blank"
    if name != name.strip():
        return f"the id {shown(name)} has blanks around it"
    if len(name) > MAX_ID:
        return f"the id {name[:40]!r}... has {len(name)} letters, more than {MAX_ID}"
    if not name.isprintable():
        return f"the id {shown(name)} holds invisible characters"
    if _UNSAFE.search(name) or name.startswith((".", "~")):
        return f"the id {shown(name)} reads like a path"
    return None


def checked_id(name: str, place: str) -> str:
    """The id, if it can be one."""
    if trouble := id_trouble(name):
        raise wrong(place, trouble, "Give it a plain name, such as 'refund-twice'")
    return name


def foreign_id(name: str, place: str, field: str = "eval_id") -> tuple[str, dict[str, str]]:
    """An id for what a foreign file calls by a path, and the field as it was, to be kept."""
    if "/" not in name and "\\" not in name:
        return checked_id(name, place), {}
    flat = _UNSAFE.sub("_", name.strip("/\\~. "))
    return checked_id(flat, place), {field: name}
