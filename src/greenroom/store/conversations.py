"""Conversations of agents that act for real, kept event by event, and the state of users and apps."""

import json
from collections.abc import Mapping
from os import urandom
from time import strftime, time

from msgspec import Struct

from greenroom.errors import BadInput, BadLedger, NotFound
from greenroom.ledger.changes import State
from greenroom.ledger.codec import encoded
from greenroom.ledger.events import Event, InvocationEnded, ModelCalled, NodeStarted, Noted
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.questions import started
from greenroom.store.columns import from_column, to_column
from greenroom.store.database import Database, Hold, Holdable, transaction
from greenroom.store.rows import next_position

_CONVERSATIONS: Holdable = "conversations"
_CAN_WAIT = (ModelCalled, NodeStarted, Noted)
"""Events that need not be saved at once: if the process dies, they are recreated without cost or effect."""
_TURN_OVER = InvocationEnded.__struct_config__.tag
KEPT_SCOPES = ("user", "app")
"""Scopes of the state that outlive a conversation."""


class ConversationFacts(Struct, frozen=True):
    """A conversation as lists show it."""

    id: str
    app: str
    user: str
    begun: float
    updated: float
    is_open: bool
    """Whether a process is working on it."""


class Conversations:
    """The conversations of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> list[ConversationFacts]:
        """All conversations, the latest first."""
        if not self._database.exists():
            return []
        query = "select id, app, user_id, begun, updated from conversations order by begun desc, id desc"
        with self._database.connected() as connection:
            rows = connection.execute(query).fetchall()
        held = self._database.held(_CONVERSATIONS, [row[0] for row in rows])
        return [
            ConversationFacts(key, from_column(app), from_column(user), begun, updated, key in held)
            for key, app, user, begun, updated in rows
        ]

    def ledger(self, conversation_id: str) -> Ledger:
        """The ledger of a conversation so far."""
        query = "select line from conversation_events where conversation_id = ? order by seq"
        lines: list[bytes] = []
        if self._database.exists():
            with self._database.connected() as connection:
                rows = connection.execute(query, (to_column(conversation_id),))
                lines = [bytes(line) for [line] in rows]
        if not lines:
            raise NotFound(
                f"there is no conversation {conversation_id!r} in {self._database.address}. "
                f"`greenroom perform --list` shows what is there."
            )
        text = b"".join(lines).decode(errors="replace")
        return Ledger.loads(text, f"conversation {conversation_id!r}")

    def unfinished(self, prefix: str) -> tuple[str, ...]:
        """The ids, with this prefix, of the conversations whose last turn has not ended."""
        if not self._database.exists():
            return ()
        query = (
            "select conversation_id, line from conversation_events as one where "
            "substr(conversation_id, 1, ?) = ? and seq = (select max(seq) from conversation_events where conversation_id = "
            "one.conversation_id) order by conversation_id"
        )
        with self._database.connected() as connection:
            rows = connection.execute(query, (len(prefix), prefix)).fetchall()
        return tuple(key for key, line in rows if not _ends_turn(bytes(line)))

    def delete(self, conversation_id: str) -> None:
        """Delete a conversation and the attachments only it has. The state of its user and app stays."""
        held = self._database.hold(_CONVERSATIONS, conversation_id)
        try:
            with self._database.connected(to_write=True) as connection, transaction(connection):
                connection.execute(
                    "delete from conversation_events where conversation_id = ?", (conversation_id,)
                )
                connection.execute("delete from conversations where id = ?", (conversation_id,))
                self._database.cleared(conversation_id, connection)
        finally:
            held.release()
        self._database.tidy()

    def kept_state(self, owners: Mapping[str, str]) -> State:
        """The state of these owners, such as {"user": "u7", "app": "desk"}."""
        found: State = {}
        if not self._database.exists():
            return found
        with self._database.connected() as connection:
            for scope, owner in owners.items():
                rows = connection.execute(
                    "select key, value from state where scope = ? and owner = ? order by key",
                    (scope, to_column(owner)),
                )
                found[scope] = {from_column(key): json.loads(value) for key, value in rows}
        return found

    def open(self, ledger: Ledger, owners: Mapping[str, str]) -> "OpenConversation":
        """Lock a conversation so that no other process continues it; StoreFailed if one does.

        An existing conversation keeps its owners: give none, or the same.
        """
        first = started(ledger)
        conversation_id = first.run_id if first is not None else new_conversation_id()
        held = self._database.hold(_CONVERSATIONS, conversation_id)
        try:
            count = self._count(conversation_id, ledger)
            owners = self._checked_owners(conversation_id, owners)
            kept = self.kept_state(owners)
            return OpenConversation(
                self._database, conversation_id, ledger, owners, kept, count, held
            )
        except BaseException:
            held.release()
            raise

    def _checked_owners(self, conversation_id: str, given: Mapping[str, str]) -> Mapping[str, str]:
        query = "select app, user_id from conversations where id = ?"
        with self._database.connected(to_write=True) as connection:
            row = connection.execute(query, (conversation_id,)).fetchone()
        if row is None:
            return given
        known = {"app": from_column(row[0]), "user": from_column(row[1])}
        for scope, owner in given.items():
            if owner and owner != known[scope]:
                raise BadInput(
                    f"conversation {conversation_id!r} belongs to {scope} {known[scope]!r}, not to "
                    f"{owner!r}. Start another one for {owner!r}."
                )
        return known

    def _count(self, conversation_id: str, ledger: Ledger) -> int:
        """How many events are stored; StoreFailed if the ledger lacks any, as they would be lost."""
        query = (
            "select seq, line from conversation_events where conversation_id = ? "
            "order by seq desc limit 1"
        )
        with self._database.connected(to_write=True) as connection:
            last = connection.execute(query, (conversation_id,)).fetchone()
        if last is None:
            return 0
        count: int = last[0] + 1
        # An event is identified by the time when it was recorded.
        if count > len(ledger) or json.loads(last[1])["at"] != ledger[count - 1].at:
            raise BadLedger(
                f"conversation {conversation_id!r} was continued elsewhere: {count} events are stored, and they are "
                f"not the first of the {len(ledger)} in the given ledger. Continue it by its "
                f"id: perform(agent, …, conversation={conversation_id!r})."
            )
        return count


class OpenConversation:
    """A conversation that this process has locked to continue."""

    def __init__(
        self,
        database: Database,
        id: str,
        ledger: Ledger,
        owners: Mapping[str, str],
        kept: State,
        written: int,
        held: Hold,
    ) -> None:
        self.id = id
        self.kept = kept
        """The state of the user and the app as the store has it."""
        self._database = database
        self._ledger = ledger
        self._owners = owners
        self._written = written
        self._held = held
        self._before = self._owned_state()

    def record(self, event: Event) -> None:
        """Save an event. What was paid for, and what is about to act, is on disk when this returns."""
        if not isinstance(event, _CAN_WAIT):
            self.flush()

    def flush(self) -> None:
        """Write what is not on disk yet, and the changes to the state of the user and the app."""
        self._held.check()
        events = self._ledger[self._written :]
        for event in events:
            self._database.keep_attachments(encoded(event), self.id)
        changed = self._changed_state()
        with self._database.connected(to_write=True) as connection, transaction(connection):
            position, now = next_position(connection), time()
            first = started(self._ledger)
            connection.execute(
                "insert into conversations values (?, ?, ?, ?, ?, ?, ?) on conflict (id) "
                "do update set position = excluded.position, updated = excluded.updated",
                (
                    self.id,
                    position,
                    to_column(self._owners["app"]),
                    to_column(self._owners["user"]),
                    first.digest if first is not None else "",
                    now,
                    now,
                ),
            )
            connection.executemany(
                "insert into conversation_events values (?, ?, ?) on conflict do nothing",
                [(self.id, event.seq, encoded(event)) for event in events],
            )
            for scope, key, value in changed:
                where = (scope, to_column(self._owners[scope]), to_column(key))
                connection.execute(
                    "delete from state where scope = ? and owner = ? and key = ?", where
                )
                if value is not None:
                    connection.execute(
                        "insert into state values (?, ?, ?, ?, ?)", (*where, value, position)
                    )
        self._written += len(events)
        if changed:
            self._before = self._owned_state()

    def _owned_state(self) -> State:
        state = self._ledger.fold()
        return {scope: dict(state.get(scope, {})) for scope in KEPT_SCOPES}

    def _changed_state(self) -> list[tuple[str, str, str | None]]:
        """The keys of user and app that this conversation has changed; None if one was removed."""
        found: list[tuple[str, str, str | None]] = []
        state = self._ledger.fold()
        for scope in KEPT_SCOPES:
            now, before = state.get(scope, {}), self._before[scope]
            for key in now.keys() | before.keys():
                if key not in now:
                    found.append((scope, key, None))
                elif key not in before or now[key] != before[key]:
                    found.append((scope, key, json.dumps(now[key])))
        return found

    def close(self) -> None:
        """Write the rest, and let others continue it."""
        try:
            if self._written < len(self._ledger):
                self.flush()
        finally:
            self._held.release()


def new_conversation_id() -> str:
    """A new id: it sorts by the time of creation, and no other one can be guessed from it."""
    return f"{strftime('%Y%m%d-%H%M%S')}-{urandom(4).hex()}"


def _ends_turn(line: bytes) -> bool:
    """Whether an event ends a turn; one that cannot be read does not, and is named when it is to be continued."""
    try:
        return json.loads(line)["kind"] == _TURN_OVER
    except (ValueError, TypeError, KeyError):
        return False
