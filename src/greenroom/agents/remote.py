"""An agent that runs elsewhere, as a part of a flow: reached by the A2A protocol."""

import re
from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Struct

from greenroom.agents.flow import Flow, checked_name
from greenroom.agents.places import Places, declared_places, typed_fields, written_facts
from greenroom.agents.schema import schema_facts
from greenroom.errors import BadAgent

if TYPE_CHECKING:
    from greenroom.agents.cards import AgentCard

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_HEADER = re.compile(r"[A-Za-z0-9-]+\Z")


class FarAddress(Struct, frozen=True):
    """Where an agent is, and the credentials for it: names of variables, never their values."""

    url: str
    is_endpoint: bool = False
    """Whether messages go to this very address; else the card that is published there says where."""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """For each header the environment variable that holds its value."""
    seconds: float = 30.0

    def __post_init__(self) -> None:
        checked_url(self.url)
        if not (type(self.seconds) in (int, float) and isfinite(self.seconds) and self.seconds > 0):
            raise BadAgent(f"timeout={self.seconds!r} must be a number of seconds above 0.")
        for name, variable in self.headers.items():
            # A value that is not a name may be the secret itself, so it is not shown.
            if not _HEADER.match(name) or not _VARIABLE.match(variable):
                raise BadAgent(
                    f"the header {name!r} of {self.url} needs the name of the environment variable "
                    f"that holds its value, such as 'PAYMENTS_KEY', not the value itself."
                )

    @property
    def place(self) -> str:
        """Host and port."""
        url = urlsplit(self.url)
        host, port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def facts(self) -> dict[str, Any]:
        """The address in a snapshot."""
        return {
            "url": self.url,
            "timeout": self.seconds,
            **({"headers": dict(self.headers)} if self.headers else {}),
            **({"endpoint": True} if self.is_endpoint else {}),
        }


def far_address(
    url: "str | AgentCard", token: str, headers: Mapping[str, str] | None, seconds: float
) -> FarAddress:
    """The address of an agent, by its url or its card."""
    if not isinstance(token, str) or (token and not _VARIABLE.match(token)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadAgent(
            "token= needs the name of the environment variable that holds the token, such as "
            "'PAYMENTS_TOKEN', not the token itself."
        )
    from greenroom.agents.cards import AgentCard  # loaded where it is used

    bearer = {"Authorization": token} if token else {}
    sent = MappingProxyType({**(headers or {}), **bearer})
    if isinstance(url, AgentCard):
        return FarAddress(url.url, True, sent, seconds)
    return FarAddress(url, False, sent, seconds)


def checked_url(url: object) -> SplitResult:
    """The parts of an address of an agent, which holds no secrets."""
    parts, is_port = urlsplit(url if isinstance(url, str) else ""), False
    with suppress(ValueError):
        is_port = parts.port is None or parts.port > 0
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_port:
        raise BadAgent(
            f"{url!r} is not an address of an agent; write it like 'https://host/agent'."
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadAgent(
            f"the address of the agent at {parts.hostname!r} has more than a host and a path. "
            f"Give secrets by the name of an environment variable: token='PAYMENTS_TOKEN'."
        )
    if any(sign.isspace() or not sign.isprintable() for sign in str(url)):
        raise BadAgent(
            f"{url!r} is not an address of an agent; it contains spaces or invalid characters."
        )
    return parts


class Remote(Flow, Struct, frozen=True, eq=False):
    """A remote agent. Asking it is a tool call by its name: mocked, named, or refused."""

    name: str
    address: FarAddress
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    @property
    def segment(self) -> str:
        """Its name."""
        return self.name

    def facts(self) -> dict[str, Any]:
        """Where it is, what is sent to it and where its answer goes."""
        return {
            "name": self.name,
            **self.address.facts(),
            "writes": written_facts(self.writes),
            **({"reads": list(self.reads)} if self.reads else {}),
            **schema_facts(typed_fields(*self.reads, *self.writes)),
        }

    def __repr__(self) -> str:
        return f"remote({self.name!r}, {self.address.url!r})"


def remote(
    name: str,
    url: "str | AgentCard",
    *,
    sends: Places = (),
    receives: Places = (),
    token: str = "",
    headers: Mapping[str, str] | None = None,
    timeout: float = 30.0,
) -> Remote:
    """A remote agent as a part of a flow: `remote("payments", "https://payments.internal")`.

    It receives the input and the values at the places `sends` of the state. Its answer is the output, and is
    written to the places `receives`, like `writes=` of a step. A question that it asks is passed to the user.
    In a rehearsal a mock of its name answers for it, and without one the call is refused. `url` is where its
    card is published, or a card. `token` is the name of the environment variable that holds a bearer token,
    `headers` such names for other headers. After `timeout` seconds it has failed: `remote(...) // other`.
    """
    what = f"remote {name!r}"
    return Remote(
        checked_name(name, "a remote agent"),
        far_address(url, token, headers, timeout),
        declared_places(sends, f"sends= of {what}"),
        declared_places(receives, f"receives= of {what}"),
    )
