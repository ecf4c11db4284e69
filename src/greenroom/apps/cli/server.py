"""How `greenroom serve` finds its agent, its card and its port, and serves until it is stopped."""

import asyncio
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from greenroom.agents.cards import AgentCard
from greenroom.apps.cli.exits import aside, put_out
from greenroom.apps.cli.live_agent import LiveAgent
from greenroom.backends.a2a import card_of
from greenroom.backends.a2a.cards import CARD_PATH
from greenroom.backends.registry import backend_for
from greenroom.errors import BadInput, GreenroomError, MissingExtra
from greenroom.installation import how_to_install
from greenroom.store.store import as_store
from greenroom.suite.inputs.references import load_value

if TYPE_CHECKING:
    from socket import socket


def serve(
    *,
    host: str,
    port: int,
    url: str,
    hosts: Sequence[str],
    token_env: Sequence[str],
    card: str,
    at_once: int,
    **given: Any,
) -> None:
    """Serve until Ctrl-C or SIGTERM; `given` are the options of `LiveAgent`."""
    live = LiveAgent(**given)
    with asyncio.Runner() as runner:
        with _web_packages():
            import uvicorn

            from greenroom.apps.serving.app import Server
            from greenroom.apps.serving.served import ServedAgent
        users = _users(token_env, host)
        kept = as_store(live.store)
        if kept is None:
            raise BadInput("serve keeps conversations in a store, but the store is off.")
        with kept.database.connected(to_write=True):
            pass  # a store that cannot be used is named here; the server would print a traceback
        found, runs = live.load(runner)
        config = uvicorn.Config(
            lambda: None, host=host, port=port, log_level="warning", timeout_graceful_shutdown=2
        )
        listening = _listening(config, host, port)
        here = _address(host, listening)
        shown = _card(card, found, url or here, is_guarded="" not in users)
        served = partial(
            ServedAgent,
            backend_for(runs),
            kept,
            shown.name,
            live.turn_options(),
            places=asyncio.Semaphore(at_once),
            report=aside,
        )
        agents = {token: served(user=user) for token, user in users.items()}

        def started(resumed: int) -> None:
            put_out(f"{shown.name} listens at {here}; card: {_card_url(shown)}")
            if resumed:
                aside(f"continuing {resumed} tasks that were in progress")

        server, failures = uvicorn.Server(config), list[GreenroomError]()

        def failed(error: GreenroomError) -> None:
            failures.append(error)
            server.should_exit = True

        config.app = Server(agents, shown, hosts=tuple(hosts)).app(started, failed)
        with suppress(KeyboardInterrupt):
            runner.run(server.serve(sockets=[listening]))
        if failures:
            raise failures[0]


@contextmanager
def _web_packages() -> Generator[None]:
    """Say how to install the packages of a server, if one cannot be imported inside."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra(
            f"serve needs the packages 'starlette' and 'uvicorn'. Install them with "
            f"{how_to_install('a2a')}."
        ) from error


def _users(variables: Sequence[str], host: str) -> dict[str, str]:
    """The users by token; with one token or none, every caller is the same user."""
    if not variables and not _is_loopback(host):
        raise BadInput(
            f"--host {host} lets other machines ask an agent that acts. Name the "
            f"environment variable that holds the token they must send: --token-env NAME."
        )
    users: dict[str, str] = {}
    for variable in variables:
        token = os.environ.get(variable, "").strip()
        if not token:
            raise BadInput(f"the environment variable {variable} is not set; it holds the token.")
        if token in users:
            raise BadInput(f"{users[token]} and {variable} hold the same token; give each its own.")
        users[token] = variable
    return users if len(users) > 1 else dict.fromkeys(users or ("",), "")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listening(config: Any, host: str, port: int) -> "socket":
    try:
        listening = config.bind_socket()
        listening.listen()  # whoever reads the address may ask at once
    except (SystemExit, OSError) as error:
        raise BadInput(f"{host}:{port} cannot be used; is another server there?") from error
    return listening


def _address(host: str, listening: "socket") -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}/"


def _card(reference: str, agent: object, url: str, *, is_guarded: bool) -> AgentCard:
    card = load_value(reference) if reference else card_of(agent, url)
    if not isinstance(card, AgentCard):
        raise BadInput(f"--card {reference} is {card!r}; make one with card_of(agent, url).")
    return replace(card, url=url, needs_token=is_guarded)


def _card_url(card: AgentCard) -> str:
    parts = urlsplit(card.url)
    return f"{parts.scheme}://{parts.netloc}{CARD_PATH}"
