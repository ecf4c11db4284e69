"""The receiver of `traces watch --otlp`: what it acknowledges is kept, whoever sends what to it."""

import json
import os
import signal
import socket
import subprocess
import sys
from time import monotonic, sleep
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import warm_python
from greenroom.apps.cli.trace_watch import Receiver
from greenroom.errors import BadInput
from warm_python import WarmPython


@pytest.mark.parametrize(
    "body, headers",
    [
        (b"no gzip", {"Content-Encoding": "gzip", "Content-Type": "application/json"}),
        (b'{"resourceSpans": NaN}', {"Content-Type": "application/json"}),
        (b"\xff", {"Content-Type": "application/json"}),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_and_not_kept(body, headers, tmp_path):
    with Receiver.at("127.0.0.1:0", tmp_path) as receiver:
        asked = Request(f"http://{receiver.place}/v1/traces", body, headers)
        with pytest.raises(HTTPError) as refused:
            urlopen(asked, timeout=10)
        refused.value.close()
    assert refused.value.code == 400
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_broke_off_is_not_acknowledged_whatever_it_looks_like(tmp_path, capfd):
    """In protobuf no byte at all is an export without spans."""
    head = b"POST /v1/traces HTTP/1.1\r\nContent-Type: application/x-protobuf\r\n"
    with Receiver.at("127.0.0.1:0", tmp_path) as receiver:
        host, _, port = receiver.place.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(head + b"Content-Length: 9\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            assert b" 400 " in connection.makefile("rb").readline()
    assert "0 of 9 bytes have come" in capfd.readouterr().err


@pytest.mark.parametrize("kind", ["application/json", "application/x-protobuf"])
def test_an_exporter_is_answered_in_its_own_encoding_with_the_reason(kind, tmp_path, capfd):
    with Receiver.at("127.0.0.1:0", tmp_path) as receiver:
        asked = Request(f"http://{receiver.place}/v1/traces", b"\xff", {"Content-Type": kind})
        with pytest.raises(HTTPError) as refused:
            urlopen(asked, timeout=10)
        with refused.value as answer:
            assert answer.headers["Content-Type"] == kind
            said = answer.read()
    # In protobuf the message is field 2 of a `Status`, after its tag and its length.
    why = json.loads(said)["message"] if "json" in kind else said[2 : 2 + said[1]].decode()
    assert why
    assert why in capfd.readouterr().err


def test_an_export_without_spans_is_acknowledged_and_leaves_nothing(tmp_path):
    with Receiver.at("127.0.0.1:0", tmp_path) as receiver:
        protobuf = {"Content-Type": "application/x-protobuf"}
        with urlopen(Request(f"http://{receiver.place}/v1/traces", b"", protobuf)) as answer:
            assert answer.status == 200
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("packing", ["deflate", "zstd", "br"])
def test_a_packing_that_is_not_known_is_named_as_the_reason(tmp_path, packing):
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": packing}
    with Receiver.at("127.0.0.1:0", tmp_path) as receiver:
        with pytest.raises(HTTPError) as refused:
            urlopen(Request(f"http://{receiver.place}/v1/traces", b"packed", headers), timeout=10)
        refused.value.close()
    assert refused.value.code == 415
    assert list(tmp_path.iterdir()) == []


def test_a_page_in_a_browser_cannot_say_what_happened_in_production(tmp_path):
    body, json_type = b'{"resourceSpans": []}', {"Content-Type": "application/json"}
    with Receiver.at("127.0.0.1:0", tmp_path) as receiver:
        url = f"http://{receiver.place}/v1/traces"
        for origin in ("https://evil.example", "null", url):
            with pytest.raises(HTTPError) as refused:
                urlopen(Request(url, body, {**json_type, "Origin": origin}), timeout=10)
            refused.value.close()
            assert refused.value.code == 403
        assert list(tmp_path.iterdir()) == []
        urlopen(Request(url, body, json_type), timeout=10).close()
    assert len(list(tmp_path.iterdir())) == 1


def test_a_port_that_there_cannot_be_is_refused(tmp_path):
    with pytest.raises(BadInput, match="cannot be used"):
        Receiver.at("127.0.0.1:99999", tmp_path)
    with pytest.raises(BadInput, match="write an address of this machine"):
        Receiver.at(f"127.0.0.1:{'9' * 5000}", tmp_path)


@pytest.mark.slow
def test_a_receiver_that_is_killed_counts_nothing_twice_and_loses_nothing(tmp_path):
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    from traces.test_readers import recorded

    spans, _ = recorded()
    command = [sys.executable, "-m", "greenroom", "traces", "watch", "--otlp", "127.0.0.1:0"]
    command += ["-m", "turns_within:2", "--state", str(tmp_path), "--settle", "0.1"]
    for _ in range(2):
        process = WarmPython(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
        assert process.stdout is not None
        line = process.stdout.readline()
        place = line.split("receiving OTLP at ")[1].strip()
        assert OTLPSpanExporter(place).export(spans) is SpanExportResult.SUCCESS
        journal = tmp_path / "conversations.jsonl"
        until = monotonic() + 600
        while not journal.exists() and monotonic() < until:
            sleep(0.1)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    done = warm_python.run(
        [*command, "--once"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert "passing 100.0 % of 1" in done.stdout, done.stderr


BODY, JSON = b'{"resourceSpans": []}', {"Content-Type": "application/json"}


def sent(place: str, request: bytes) -> bytes:
    """The first line that is answered to these bytes."""
    host, _, port = place.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(request)
        return connection.makefile("rb").readline()


@pytest.mark.parametrize("length", [b"abc", b"-1", b"", b"9" * 5000])
def test_a_request_of_no_length_is_refused_and_the_next_one_taken(length, tmp_path, capfd):
    with Receiver.at("127.0.0.1:0", tmp_path) as receiver:
        head = b"POST /v1/traces HTTP/1.1\r\nHost: here\r\nContent-Length: " + length
        assert b" 411 " in sent(receiver.place, head + b"\r\n\r\n")
        urlopen(Request(f"http://{receiver.place}/v1/traces", BODY, JSON), timeout=60).close()
    assert len(list(tmp_path.iterdir())) == 1
    assert capfd.readouterr().err == ""


def test_an_exporter_is_asked_to_try_again_while_nothing_can_be_kept(tmp_path, capfd):
    inbox = tmp_path / "inbox"
    with Receiver.at("127.0.0.1:0", inbox) as receiver:
        asked = Request(f"http://{receiver.place}/v1/traces", BODY, JSON)
        with pytest.raises(HTTPError) as refused:
            urlopen(asked, timeout=60)
        refused.value.close()
        assert refused.value.code == 503
        inbox.mkdir()
        urlopen(asked, timeout=60).close()
    assert len(list(inbox.iterdir())) == 1
    assert "spans cannot be kept" in capfd.readouterr().err
