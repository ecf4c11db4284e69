"""The redactor of this process, with every secret that the process knows of."""

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from greenroom.errors import BadFile
from greenroom.ledger.redaction.given import given_secrets
from greenroom.ledger.redaction.kinds import kept_secrets
from greenroom.ledger.redaction.replacement import Redactor
from greenroom.project import nearest_project

if TYPE_CHECKING:
    from logging import LogRecord


def redactor() -> Redactor:
    """The redactor for this process: its environment, `redact_env` of the nearest pyproject, and
    what it was given as a secret."""
    return _made((*kept_secrets(os.environ, _named_here()), *given_secrets()))


def without_secrets(text: str) -> str:
    """A message without secrets; a broken pyproject is not an error here."""
    try:
        return redactor().text(text)
    except BadFile:
        return _made((*kept_secrets(os.environ), *given_secrets())).text(text)


@lru_cache(maxsize=8)
def _made(known: tuple[tuple[str, str], ...]) -> Redactor:
    return Redactor(known)


def _named_here() -> tuple[str, ...]:
    """`redact_env` of the project: more variables whose values are secrets."""
    project = nearest_project()
    named = None if project is None else project.settings.get("redact_env")
    if project is None or named is None:
        return ()
    names = cast("list[Any]", named) if isinstance(named, list) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise BadFile(
            f"{project.place('redact_env')}: redact_env in [tool.greenroom] is {named!r}; list the names "
            f'of environment variables: redact_env = ["CRM_LOGIN"].'
        )
    return tuple(names)


def redact_log(record: "LogRecord") -> bool:
    """A filter for a log handler or logger: `handler.addFilter(redact_log)`."""
    trace = record.exc_text or ""
    if record.exc_info and record.exc_info[0] is not None:
        from traceback import format_exception

        trace = "".join(format_exception(*record.exc_info)).rstrip()
    record.msg = without_secrets(record.getMessage())
    record.args = ()
    record.exc_text = without_secrets(trace) or None
    record.exc_info = None
    record.stack_info = without_secrets(record.stack_info) if record.stack_info else None
    return True
