"""`greenroom agent check`: what is wrong with an agent, found without asking a model."""

import json
from typing import Any

from greenroom.agents.contracts import check
from greenroom.apps.cli.event_loop import loaded, to_the_end
from greenroom.apps.cli.exits import GATE_MISSED, PASSED, put_out, put_out_json, telling
from greenroom.errors import BadInput
from greenroom.suite.references import load_value


def check_agent(
    agent: str, schema: str, given: str, strict: bool, as_json: bool, verbose: bool
) -> int:
    """Print every issue; 1 if there are errors, or warnings where these count too."""
    with telling(verbose):
        found = to_the_end(lambda: loaded(agent, verbose))
        fields = load_value(schema) if schema else None
        contracts = check(found, schema=fields, given=_state(given))
        if as_json:
            put_out_json(json.dumps(contracts.data(), indent=2))
        else:
            put_out(str(contracts))
    failed = contracts.errors or (strict and contracts.warnings)
    return GATE_MISSED if failed else PASSED


def _state(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError as error:
        raise BadInput(f"--given is not JSON: {error}.") from error
