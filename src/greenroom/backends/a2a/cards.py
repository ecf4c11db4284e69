"""Agent cards: read those of remote agents, and write our own."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from greenroom.agents.cards import PROTOCOL, AgentCard, Skill
from greenroom.agents.remote import checked_url, far_address
from greenroom.backends.a2a.connection import Connection
from greenroom.backends.a2a.wire import REPEATS
from greenroom.backends.registry import backend_for
from greenroom.errors import AgentFailed, BadAgent, BadInput
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.ledger.snapshots import called_in

CARD_PATH = "/.well-known/agent-card.json"
_LONGEST_TEXT = 2_000
_MOST_SKILLS = 200
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Discovery:
    """The cards that were found, and why others were not, by address."""

    cards: tuple[AgentCard, ...]
    failures: Mapping[str, str]


async def discover(
    urls: str | Iterable[str],
    *,
    skill: str = "",
    token: str = "",
    headers: Mapping[str, str] | None = None,
    seconds: float = 30.0,
) -> Discovery:
    """Read the cards that agents publish at these addresses; with `skill`, only of agents that have it.

    A2A has no directory: each address is asked for its own card. A card that cannot be read, or that
    sends messages to another host, is among the failures. A card that was found can be used at once:
    `remote("payments", found.cards[0])`.
    """
    asked = [urls] if isinstance(urls, str) else list(urls)
    for url in asked:
        checked_url(url)

    async def read(url: str) -> AgentCard | AgentFailed:
        try:
            async with asyncio.timeout(seconds):
                connection = Connection(far_address(url, token, headers, seconds))
                card = await fetched_card(connection)
        except AgentFailed as error:
            return error
        except TimeoutError:
            return AgentFailed(f"{url} gave no card within {seconds:g} s.")
        return card

    found = dict(zip(asked, await asyncio.gather(*map(read, asked)), strict=True))
    cards = [card for card in found.values() if isinstance(card, AgentCard)]
    return Discovery(
        tuple(card for card in cards if not skill or card.has_skill(skill)),
        {url: str(error) for url, error in found.items() if isinstance(error, AgentFailed)},
    )


async def fetched_card(connection: Connection) -> AgentCard:
    """The card published at a connection's address; the connection then uses the path that the card names."""
    base = connection.base
    card = read_card(await connection.get(f"{urlsplit(base).path.rstrip('/')}{CARD_PATH}"), base)
    connection.path = urlsplit(card.url).path or "/"
    return card


def read_card(data: Json, base: str) -> AgentCard:
    """A stranger's card, published below `base`; AgentFailed says what is wrong with it.

    Messages may only go to the host and port where the card was found: a card that names another host
    could redirect its readers there.
    """
    if not is_object(data):
        raise AgentFailed(f"the card at {base} is not an object.")
    address = _endpoint(data, base)
    target = _same_place(address, base)
    if target is None:
        raise AgentFailed(
            f"the card at {base} sends its messages to {address[:200]!r}, which is not where it "
            f"was found. If that is right, use that address."
        )
    here = urlsplit(base)
    able = data.get("capabilities")
    able = able if is_object(able) else {}
    extensions = [one.get("uri") for one in _objects(able.get("extensions"))]
    return AgentCard(
        name=_text(data, "name", base),
        url=f"{here.scheme}://{here.netloc}{target.path or '/'}",
        description=_text(data, "description", base),
        version=_text(data, "version", base),
        skills=tuple(_skill(one, base) for one in _objects(data.get("skills"))[:_MOST_SKILLS]),
        streaming=able.get("streaming") is True,
        extensions=tuple(uri for uri in extensions if isinstance(uri, str)),
        needs_token=bool(data.get("securityRequirements")),
    )


def _endpoint(card: dict[str, Json], base: str) -> str:
    """The address at which the card offers JSON-RPC of our version."""
    offered = _objects(card.get("supportedInterfaces"))
    for one in offered:
        version, url = one.get("protocolVersion") or PROTOCOL, one.get("url")
        is_ours = one.get("protocolBinding") == "JSONRPC" and str(version).split(".")[0] == "1"
        if is_ours and isinstance(url, str):
            return url
    known = [f"{one.get('protocolBinding')} {one.get('protocolVersion')}" for one in offered]
    if not known and isinstance(card.get("protocolVersion"), str):
        known = [f"A2A {card['protocolVersion']}"]
    raise AgentFailed(
        f"the agent at {base} does not speak A2A {PROTOCOL} by JSON-RPC; it offers "
        f"{', '.join(known)[:200] or 'nothing'}."
    )


def _same_place(address: str, base: str) -> SplitResult | None:
    """The parsed address, if it has the host and port of `base`."""
    try:
        target = urlsplit(urljoin(f"{base.rstrip('/')}/", address))
        is_same = _origin(target) == _origin(urlsplit(base))
    except ValueError:
        return None
    return target if is_same and not (target.query or target.username or target.password) else None


def _origin(parts: SplitResult) -> tuple[str, str, int]:
    host = (parts.hostname or "").lower()
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return parts.scheme, "localhost" if host in _LOOPBACK else host, port


def _skill(data: dict[str, Json], base: str) -> Skill:
    tags = data.get("tags")
    return Skill(
        _text(data, "id", base),
        _text(data, "name", base),
        _text(data, "description", base),
        tuple(t[:_LONGEST_TEXT] for t in tags if isinstance(t, str)) if is_array(tags) else (),
    )


def _objects(given: Json) -> list[dict[str, Json]]:
    return [one for one in given if is_object(one)] if is_array(given) else []


def _text(data: Mapping[str, Json], name: str, base: str) -> str:
    value = data.get(name)
    if value is not None and not isinstance(value, str):
        raise AgentFailed(f"the card at {base} has {name}={repr(value)[:100]}, which is not text.")
    return (value or "")[:_LONGEST_TEXT]


def card_of(
    agent: Any,
    url: str,
    *,
    name: str = "",
    description: str = "",
    version: str = "1",
    skills: Iterable[Skill] = (),
) -> AgentCard:
    """The card that an agent shows to others: `card_of(desk, "https://support.example.com/")`.

    It contains the agent's name, but not its instructions or tools: what others should know about it
    goes into the description and the skills.
    """
    checked_url(url)
    snapshot = backend_for(agent).snapshot
    if not is_object(snapshot):
        raise BadAgent("the agent has no name; give one: card_of(agent, url, name='desk').")
    known = name or called_in(snapshot) or str(snapshot.get("framework") or "agent")
    about = description or str(getattr(agent, "description", "") or "")
    given = tuple(skills)
    if not all(isinstance(one, Skill) and one.id for one in given):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(
            f"card_of(skills={given!r}) must be a list of skills: [Skill('refund', tags=('money',))]."
        )
    return AgentCard(
        name=known,
        url=url,
        description=about or known,
        version=version,
        skills=given or (Skill(known, description=about),),
        streaming=True,
        extensions=(REPEATS,),
    )
