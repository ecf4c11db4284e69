"""`greenroom traces watch`: production conversations scored as they come in."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import sleep, time_ns
from typing import Self

import click

from greenroom.apps.cli.exits import BAD_INPUT, GATE_MISSED, Stopped, harmless, put_out
from greenroom.apps.cli.metric_names import metrics_named
from greenroom.apps.cli.report_output import read_report
from greenroom.apps.cli.traces import names_in
from greenroom.cases.files.json_text import parsed_json
from greenroom.errors import BadCase, BadFile, BadInput, BadLedger
from greenroom.ledger.plain import number_in
from greenroom.ledger.private_folders import make_private
from greenroom.ledger.text_files import similar_file
from greenroom.results.result import CaseResult
from greenroom.suite.recorded.trace_cases import add_failure
from greenroom.suite.recorded.trace_watch import RATES, TraceWatch, is_failure
from greenroom.traces.files import unpacked
from greenroom.traces.formats.otlp import from_protobuf, spans_in
from greenroom.traces.records import Flaw, Imported

_LARGEST = 64 * 1024 * 1024
_PROTOBUF = "application/x-protobuf"
_MESSAGE, _SHORT = 0x12, 127
"""The field of a protobuf `Status` that says what is wrong, and how long it may be in one byte."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """What to watch, and what to measure."""

    metrics: Sequence[str]
    folder: str
    otlp: str
    state: str
    sample: str
    budget: float | None
    baseline: str
    patience: int
    failures: str
    names: str
    settle: float
    once: bool
    reader: str


def watch_traces(asked: WatchRequest) -> None:
    """Score what comes in until Ctrl-C; with `once`, only what is already there."""
    state = Path(asked.state)
    folder = _folder(asked, state)
    names = names_in(asked.names)
    watch = TraceWatch(
        folder=folder,
        state=state,
        metrics=metrics_named(asked.metrics),
        baseline=read_report(asked.baseline, "") if asked.baseline else None,
        share=share_of(asked.sample),
        budget=asked.budget,
        patience=asked.patience,
        settle=0.0 if asked.once else asked.settle,
        reader=asked.reader,
        before_counting=partial(_tell, failures=asked.failures, names=names),
    )
    if not watch.metrics:
        raise BadInput("there is nothing to measure with; give --metrics.")
    server = Receiver.at(asked.otlp, folder) if asked.otlp else None
    with server or nullcontext():
        if server is not None:
            put_out(f"receiving OTLP at http://{server.place}/v1/traces")
        _loop(watch, asked)


def _folder(asked: WatchRequest, state: Path) -> Path:
    """Where traces come in. A missing folder is refused: a misspelt one would never raise an alarm."""
    if asked.folder and not Path(asked.folder).is_dir():
        raise BadFile(
            f"there is no folder {asked.folder!r}.{similar_file(Path(asked.folder))} Name the one that traces "
            f"are written to, or create it."
        )
    if asked.folder:
        return Path(asked.folder)
    return make_private(state, "inbox")


def _loop(watch: TraceWatch, asked: WatchRequest) -> None:
    said: set[str] = set()
    while True:
        scored = asyncio.run(watch.look())
        unread = watch.unread
        late = {
            f"{name} continued after it was counted; what came later is not scored. A longer --settle waits for it."
            for name in watch.late
        }
        for why in sorted((unread | late) - said):
            click.echo(f"greenroom: {why}", err=True)
        said |= unread | late
        if scored or asked.once:
            put_out("; ".join(f"{name} {watch.describe_rate(name)}" for name in RATES))
        alarms = [*watch.alarms]
        watch.alarms.clear()
        for alarm in alarms:
            put_out(alarm)
        if asked.once:
            if unread:
                raise Stopped("not everything could be read", BAD_INPUT)
            if alarms:
                raise Stopped("\n".join(alarms), GATE_MISSED)
            return
        sleep(min(asked.settle, 1.0) or 0.2)


def _tell(one: Imported, result: CaseResult, failures: str, names: Sequence[str]) -> None:
    """Report the result of a conversation; one that failed is written as a case."""
    put_out(f"{one.conversation}: {result.status}")
    if not failures or not is_failure(result):
        return
    try:
        if added := add_failure(one, Path(failures), names):
            put_out(f"{one.conversation}: written to {failures} as {added}")
    except (BadCase, BadLedger) as error:
        click.echo(f"greenroom: {one.conversation} is not a case: {error}", err=True)


def share_of(typed: str) -> float:
    """A share, typed as 5% or 0.05."""
    try:
        found = float(typed.rstrip("%")) / (100 if typed.endswith("%") else 1)
    except ValueError:
        found = -1.0
    if not 0 < found <= 1:
        raise BadInput(
            f"--sample {typed}: write a share above 0 and at most 1, such as 5% or 0.05."
        )
    return found


class Receiver:
    """Receives OTLP over HTTP on loopback; what it acknowledges is on disk."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self._thread = Thread(target=server.serve_forever, daemon=True)

    @classmethod
    def at(cls, given: str, folder: Path) -> "Receiver":
        """A receiver that listens at HOST:PORT and writes what it receives to a folder."""
        host, _, typed = given.rpartition(":")
        if host not in _LOOPBACK or (port := number_in(typed)) is None:
            raise BadInput(
                f"--otlp {given}: write an address of this machine, such as 127.0.0.1:4318; nothing else "
                f"may reach it."
            )

        class Handler(_Handler):
            place = folder

        try:
            return cls(_Server((host, port), Handler))
        except (OSError, OverflowError) as error:  # the number is too large for a port
            why = getattr(error, "strerror", "") or error
            raise BadInput(f"--otlp {given} cannot be used: {why}.") from error

    @property
    def place(self) -> str:
        """Where it listens."""
        host, port = self._server.server_address[:2]
        return f"{host if isinstance(host, str) else host.decode()}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - as inherited
        """Print in one line what went wrong, unless an exporter just hung up."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            click.echo(f"greenroom: a request to --otlp failed: {error!r}", err=True)


class _Handler(BaseHTTPRequestHandler):
    """One request of an exporter."""

    place: Path
    timeout = 30.0
    """Seconds without a byte after which a connection is given up."""

    def do_POST(self) -> None:
        """Write the spans to disk, then acknowledge them."""
        if self.headers.get("Origin") is not None:
            self._answer(403)  # sent by a page in a browser, not by an exporter
            return
        length = number_in(self.headers.get("Content-Length") or "")
        if self.path != "/v1/traces" or length is None:
            self._answer(404 if self.path != "/v1/traces" else 411)
            return
        if length > _LARGEST:
            self._answer(413)
            return
        if self.headers.get("Content-Encoding", "identity") not in ("gzip", "identity"):
            self._answer(415)  # in protobuf, packed bytes would look damaged
            return
        raw = self.rfile.read(length)
        try:
            if len(raw) < length:  # in protobuf, the first half of an export may look whole
                raise ValueError(f"a request: {len(raw)} of {length} bytes have come.")
            data = self._read(raw)
        except (BadInput, ValueError) as error:
            click.echo(harmless(f"greenroom: an export is refused: {error}"), err=True)
            self._answer(400, str(error))
            return
        try:
            if data:  # in protobuf, an export without spans has no bytes
                self._keep(data, f"{time_ns()}-{id(raw)}.json")
        except OSError as error:
            click.echo(f"greenroom: spans cannot be kept in {self.place}: {error}", err=True)
            self._answer(503)  # so exporters try again
            return
        self._answer(200)

    def _keep(self, data: object, name: str) -> None:
        part = self.place / f".{name}.part"
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(data, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.place / name)

    def _read(self, raw: bytes) -> object:
        if self.headers.get("Content-Encoding") == "gzip":
            raw = unpacked(raw, _LARGEST)
        data = parsed_json(raw.decode()) if self._is_json else from_protobuf(raw, "a request")
        flaws = [str(one) for one in spans_in(data, "a request", "") if isinstance(one, Flaw)]
        if flaws:
            raise ValueError(flaws[0])
        return data

    @property
    def _is_json(self) -> bool:
        return "json" in (self.headers.get("Content-Type") or "")

    def _answer(self, status: int, why: str = "") -> None:
        """Answer as the request is written, JSON or protobuf: exporters read no other answer."""
        said = json.dumps({"message": why} if why else {}).encode()
        kind = "application/json"
        if not self._is_json:
            short = why.encode(errors="backslashreplace")[:_SHORT]
            said, kind = bytes((_MESSAGE, len(short))) + short if short else b"", _PROTOBUF
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing for each request."""
