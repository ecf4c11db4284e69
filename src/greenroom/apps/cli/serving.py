"""How `greenroom serve` finds its agent, its card and its port, and serves until it is stopped."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from greenroom.agents.cards import AgentCard
from greenroom.apps.cli.event_loop import loaded
from greenroom.apps.cli.exits import PASSED, aside, loading, put_out, telling
from greenroom.backends.a2a import card_of
from greenroom.backends.a2a.cards import CARD_PATH
from greenroom.backends.answered import with_model
from greenroom.backends.registry import backend_for
from greenroom.errors import BadInput, MissingExtra
from greenroom.installation import how_to_install
from greenroom.store.store import as_store
from greenroom.suite.references import load_value
from greenroom.suite.sources import as_middleware, as_model_given, as_resources

if TYPE_CHECKING:
    from socket import socket


def serve(
    agent: str,
    host: str,
    port: int,
    url: str,
    hosts: Sequence[str],
    token_env: str,
    card: str,
    model: str,
    store: str,
    resources: str,
    middleware: Sequence[str],
    max_model_calls: int,
    seconds: float | None,
    at_once: int,
    verbose: bool,
) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    with telling(verbose), asyncio.Runner() as runner:
        try:
            import uvicorn

            from greenroom.apps.serving.app import Server
            from greenroom.apps.serving.served import ServedAgent
        except ImportError as error:
            raise MissingExtra(
                f"serve needs the packages 'starlette' and 'uvicorn'. Install them with "
                f"{how_to_install('a2a')}."
            ) from error
        token = _token(token_env, host)
        kept = as_store(store)
        if kept is None:
            raise BadInput("serve keeps conversations in a store, but the store is off.")
        with loading(model, verbose):
            other = as_model_given(model)
        found = runner.run(loaded(agent, verbose))
        backend = backend_for(found) if other is None else with_model(backend_for(found), other)
        config = uvicorn.Config(
            lambda: None, host=host, port=port, log_level="warning", timeout_graceful_shutdown=2
        )
        listening = _listening(config, host, port)
        reached = url or _address(host, listening)
        shown = _card(card, found, reached, is_guarded=bool(token))
        options: dict[str, Any] = {
            "resources": as_resources(resources) if resources else None,
            "middleware": getattr(as_middleware(middleware), "members", ()),
            "max_model_calls": max_model_calls,
            "seconds": seconds,
        }
        served = ServedAgent(backend, kept, shown.name, options, at_once=at_once, report=aside)

        def started(resumed: int) -> None:
            put_out(
                f"{shown.name} listens at {_address(host, listening)}; card: {_card_url(shown)}"
            )
            if resumed:
                aside(f"going on with {resumed} tasks that were under way")

        server = Server(served, shown, token=token, hosts=tuple(hosts))
        config.app = server.app(started)
        with suppress(KeyboardInterrupt):
            runner.run(uvicorn.Server(config).serve(sockets=[listening]))
    return PASSED


def _token(variable: str, host: str) -> str:
    token = os.environ.get(variable, "").strip() if variable else ""
    if variable and not token:
        raise BadInput(f"the environment variable {variable} is not set; it holds the token.")
    if not token and not _is_loopback(host):
        raise BadInput(
            f"--host {host} lets others than this machine ask an agent that acts. Say by "
            f"--token-env NAME which environment variable holds the token that they must send."
        )
    return token


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listening(config: Any, host: str, port: int) -> "socket":
    try:
        return config.bind_socket()
    except (SystemExit, OSError) as error:
        raise BadInput(f"{host}:{port} cannot be listened at; is another server there?") from error


def _address(host: str, listening: "socket") -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}/"


def _card(reference: str, agent: Any, url: str, *, is_guarded: bool) -> AgentCard:
    card = load_value(reference) if reference else card_of(agent, url)
    if not isinstance(card, AgentCard):
        raise BadInput(f"--card {reference} is {card!r}; make one with card_of(agent, url).")
    return replace(card, url=url, needs_token=is_guarded)


def _card_url(card: AgentCard) -> str:
    parts = urlsplit(card.url)
    return f"{parts.scheme}://{parts.netloc}{CARD_PATH}"
