"""Live things (functions, classes, objects) named so that a change to them is noticed."""

import inspect
import json
import re
from functools import lru_cache
from hashlib import blake2b
from typing import Any, cast

_IDENTITY = re.compile(r"(?P<name>.+):([0-9a-f]{12}|unknown)")


def code_identity(live: object) -> str:
    """Module, qualified name and a hash of the source; "unknown" where no source can be read.

    For Greenroom's own code the name is enough: a new version of Greenroom does not change the case.
    """
    # A tool is identified by its function.
    live = getattr(live, "fn", live)
    named: Any = live if hasattr(live, "__qualname__") else cast(Any, type(live))
    # Methods of built-in types, such as `str.isupper`, do not say where they are from.
    module = str(getattr(named, "__module__", "builtins"))
    if module.startswith("greenroom."):
        return str(named.__qualname__)
    source = _source_hash(getattr(live, "__code__", named))
    return f"{module}.{named.__qualname__}:{source}"


def code_name(text: str) -> str:
    """The name of the code that an identity stands for; "" if the string is not one."""
    named = _IDENTITY.fullmatch(text)
    return named["name"].rpartition(".")[2] if named else ""


def digest_of(data: object) -> str:
    """A digest that changes whenever this JSON does."""
    return blake2b(json.dumps(data, sort_keys=True).encode(), digest_size=8).hexdigest()


@lru_cache(maxsize=4096)
def _source_hash(code: Any) -> str:
    try:
        source = inspect.getsource(code)
    except (OSError, TypeError):
        return "unknown"
    return blake2b(source.encode(), digest_size=6).hexdigest()
