"""Ray itself. Only this file imports it."""

from importlib import import_module
from typing import Any

from greenroom.errors import MissingExtra
from greenroom.installation import how_to_install

try:
    # Imported by name: Ray is only half typed, and types are also checked where it is not installed.
    ray: Any = import_module("ray")
    errors: Any = import_module("ray.exceptions")
except ImportError as error:
    raise MissingExtra(
        f"trials cannot run on Ray, which is not installed here: {how_to_install('ray')}"
    ) from error
