"""The same expression played by another model."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from greenroom.agents.agent import Agent
from greenroom.agents.flow import Flow, Loop, Parallel, Route, Sequence
from greenroom.models.model import Model


def recast(flow: Flow, model: Model | str) -> Flow:
    """The expression with `model` for every agent in it; the original stays as it is."""
    match flow:
        case Agent():
            return replace(flow, model=model)
        case Sequence(parts) | Parallel(parts):
            return type(flow)(tuple(recast(part, model) for part in parts))
        case Loop(body):
            return replace(flow, body=recast(body, model))
        case Route():
            return replace(flow, branches=MappingProxyType(_branches(flow.branches, model)))
        case _:
            return flow


def _branches(branches: Mapping[str, Flow], model: Model | str) -> dict[str, Flow]:
    return {key: recast(part, model) for key, part in branches.items()}
