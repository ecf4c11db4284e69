"""`greenroom web`: look at runs, sets and agents in a browser."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from greenroom.store import Store


@click.command("web")
@click.argument("given", nargs=-1, metavar="[AGENT | SETS]...")
@click.option("--store", default="", metavar="DIR", help="Where runs are kept.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    metavar="N",
    help="The port to listen on; 0 picks a free one.",
)
@click.option("--read-only", is_flag=True, help="Nothing can be started or saved from the page.")
@click.option(
    "--budget",
    default=1.0,
    show_default=True,
    metavar="USD",
    help="The most that one action may spend.",
)
@click.option(
    "--trace-url",
    default="",
    metavar="TEMPLATE",
    help="The URL of a trace in your tracing tool, with {trace_id} in it.",
)
@click.option(
    "--labels",
    default="labels",
    show_default=True,
    metavar="DIR",
    help="The folder with label sets, drawn by `greenroom labels draw`.",
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="The host name by which a proxy reaches this server.",
)
@click.option(
    "--auth-header", default="", metavar="NAME", help="The header in which a proxy names the user."
)
@click.option("--proxy", multiple=True, metavar="ADDRESS", help="A proxy whose header is trusted.")
@click.option(
    "--token-file", default="", metavar="FILE", help="A file with a token that the team shares."
)
@click.option("--no-browser", is_flag=True, help="Print the address instead of opening a browser.")
def web_command(
    given: Sequence[str],
    store: str,
    host: str,
    port: int,
    read_only: bool,
    budget: float,
    trace_url: str,
    labels: str,
    allow_host: Sequence[str],
    auth_header: str,
    proxy: Sequence[str],
    token_file: str,
    no_browser: bool,
) -> None:
    """Look at runs, cases and comparisons in a browser, and follow runs live.

    AGENT (file.py:name) and SETS (files or folders) say what may be rehearsed and edited from the page;
    the page can reach nothing else.
    """
    from greenroom.apps.web.server import Address, serve
    from greenroom.apps.web.site import Settings

    agents = [one for one in given if is_agent(one)]
    serve(
        opened(store),
        Settings(
            agents=agents,
            sets=[one for one in given if one not in agents],
            read_only=read_only,
            budget=budget,
            trace_url=trace_url,
            labels=labels,
        ),
        Address(
            host=host,
            port=port,
            allow_hosts=allow_host,
            auth_header=auth_header,
            proxies=proxy,
            token_file=token_file,
        ),
        browser=not no_browser,
    )


def is_agent(given: str) -> bool:
    """Whether an argument names an agent: a Python file, something in one, or a folder with an agent."""
    from greenroom.suite.inputs.references import FOLDER_FILES, split_reference

    where, attr = split_reference(given)
    path = Path(where)
    has_agent = path.is_dir() and any((path / name).is_file() for name in FOLDER_FILES)
    return path.suffix == ".py" or bool(attr) or has_agent


def opened(place: str) -> "Store":
    """The store in this folder, or the usual one."""
    from greenroom.errors import BadInput
    from greenroom.store.store import as_store

    store = as_store(place)
    if store is None:
        raise BadInput("there is no store: it is switched off. Name one: --store DIR.")
    return store
