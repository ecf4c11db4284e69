"""Attachments in cases and eval-set files: by path, as base64 or by digest, and what is wrong with them."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as some

from attached_files import BIG_PNG, MP4, PDF, PNG, WAV, holds
from greenroom import Agent, Case, Lines, Scripted, Turn, attach, rehearse
from greenroom.apps.cli import main
from greenroom.cases import (
    EvalSet,
    case_data,
    case_from,
    evalset_schema,
    harvest,
    merge,
    read_evalset,
    write_evalset,
)
from greenroom.errors import BadAttachment, BadCase, BadFile
from greenroom.ledger import diff, plain
from greenroom.ledger.attachments import attachments_in, message_value, text_and_attachments

CODED = base64.b64encode(PNG).decode()


def file_with(folder: Path, **case: Any) -> Path:
    path = folder / "cups.json"
    path.write_text(json.dumps({"version": 1, "cases": [{"id": "cup", "says": "What?", **case}]}))
    return path


@pytest.mark.parametrize("source", [bytearray(PNG), memoryview(PNG), None, 7])
def test_what_is_neither_a_path_nor_bytes_is_no_attachment(source):
    with pytest.raises(BadAttachment, match="give a path, or bytes"):
        attach(source)


@pytest.mark.parametrize(
    "data, name, kind",
    [
        (PNG, "a.png", "image/png"),
        (PDF, "a.pdf", "application/pdf"),
        (WAV, "a.wav", "audio/wav"),
        (MP4, "a.mp4", "video/mp4"),
        (b"a,b\n1,2\n", "a.csv", "text/csv"),
        (PNG, "", "image/png"),
    ],
)
def test_the_media_type_is_known_by_the_name_or_by_the_first_bytes(data, name, kind):
    assert attach(data, name=name).media_type == kind


def test_a_path_is_looked_for_beside_the_python_file_that_says_it():
    assert attach("attached.txt").data == b"beside the test\n"


def test_equal_bytes_are_one_blob_whatever_they_are_called():
    one, other = attach(PNG, name="a.png"), attach(PNG, name="b.png")
    assert one.digest == other.digest
    assert one.data == other.data == PNG


@pytest.mark.parametrize(
    "data, kind, words",
    [
        (b"", "image/png", "empty"),
        (b"no picture", "image/png", "image/png"),
        (PNG, "image/jpeg", "image/jpeg"),
        (PNG, "audio/mpeg", "audio/mpeg"),
        (b"whatever", "", "media type"),
        (b"whatever", "a picture", "a picture"),
        (bytes(20_000_001), "application/octet-stream", "20.0 MB"),
    ],
)
def test_bytes_that_are_not_what_they_are_said_to_be_are_refused(data, kind, words):
    with pytest.raises(BadAttachment, match=words):
        attach(data, kind)


def test_a_case_refuses_what_is_no_attachment():
    with pytest.raises(BadCase, match="attach"):
        Case("cup", "What?", attachments=["cup.png"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadCase, match="turns"):
        Case("cup", turns=[Turn("What?")], attachments=[attach(PNG)])


def test_a_file_names_attachments_by_a_path_beside_it_or_holds_them_as_base64(tmp_path):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures/cup.png").write_bytes(BIG_PNG)
    given = [
        "pictures/cup.png",
        {"path": "pictures/cup.png", "name": "mine.png"},
        {"base64": CODED, "media_type": "image/png", "name": "small.png"},
    ]
    [case] = read_evalset(file_with(tmp_path, attachments=given))
    assert [one.name for one in case.attachments] == ["cup.png", "mine.png", "small.png"]
    assert [one.data for one in case.attachments] == [BIG_PNG, BIG_PNG, PNG]


def test_mocks_and_lines_of_a_file_may_give_attachments(tmp_path):
    (tmp_path / "cup.png").write_bytes(BIG_PNG)
    mocks = {"photo": {"value": {"front": {"$attachment": "cup.png"}}}}
    user = {"lines": [["Here.", {"$attachment": {"base64": CODED}}]]}
    [case] = read_evalset(file_with(tmp_path, mocks=mocks, user=user))
    assert [one.data for one in attachments_in(plain(case.mocks["photo"]))] == [BIG_PNG]
    assert isinstance(case.user, Lines)
    text, attached = text_and_attachments(case.user.lines[0])
    assert (text, [one.data for one in attached]) == ("Here.", [PNG])


def _link_out(folder: Path) -> str:
    outside = folder.parent / "outside.png"
    outside.write_bytes(PNG)
    (folder / "link.png").symlink_to(outside)
    return "link.png"


def _pipe(folder: Path) -> str:
    os.mkfifo(folder / "pipe.png")
    return "pipe.png"


def _huge(folder: Path) -> str:
    with (folder / "huge.png").open("wb") as file:
        file.truncate(21_000_000)
    return "huge.png"


def _wrong_type(folder: Path) -> str:
    (folder / "text.png").write_text("no picture")
    return "text.png"


def _empty(folder: Path) -> str:
    (folder / "empty.png").touch()
    return "empty.png"


HOSTILE = {
    "missing": (lambda _: "missing.png", "there is no file"),
    "above the folder": (lambda _: "../outside.png", "outside the folder"),
    "absolute": (lambda _: "/etc/passwd", "outside the folder"),
    "a link that leads out": (_link_out, "outside the folder"),
    "a folder": (lambda _: ".", "a folder"),
    "a pipe": (_pipe, "a pipe"),
    "huge": (_huge, "larger than"),
    "of another type": (_wrong_type, "image/png"),
    "empty": (_empty, "empty"),
    "a zero character": (lambda _: "a\0.png", "not a path"),
    "blank": (lambda _: " ", "outside the folder"),
    "no base64": (lambda _: {"base64": "???", "media_type": "image/png"}, "base64"),
    "two sources": (lambda _: {"base64": CODED, "path": "a.png"}, "path"),
    "no source": (lambda _: {"media_type": "image/png"}, "path"),
    "a number": (lambda _: 7, "mapping"),
    "an unknown field": (lambda _: {"path": "a.png", "mime": "x"}, "mime"),
    "half a digest": (lambda _: {"$attachment": "a" * 64}, "media_type"),
}


@pytest.mark.parametrize("place", ["attachments", "mocks"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_attachment_is_named_with_its_place_and_exit_code_3(tmp_path, kind, place):
    folder = tmp_path / "cases"
    folder.mkdir()
    (tmp_path / "outside.png").write_bytes(PNG)
    make, words = HOSTILE[kind]
    given = make(folder)
    case: dict[str, Any] = {"attachments": [given]}
    if place == "mocks":
        inside = given if kind == "half a digest" else {"$attachment": given}
        case = {"mocks": {"photo": {"value": inside}}}
    path = file_with(folder, **case)
    with pytest.raises(BadFile, match=words) as caught:
        read_evalset(path)
    assert "cases[0]" in str(caught.value)
    result = CliRunner().invoke(main, ["eval-set", "validate", str(path)])
    assert result.exit_code == 3, result.output


def test_a_set_written_to_another_folder_is_read_there_with_its_bytes(tmp_path):
    case = Case(
        "cup", "What?", attachments=[attach(BIG_PNG, name="cup.png")], mocks={"photo": attach(PDF)}
    )
    for suffix in ("json", "yaml"):
        target = tmp_path / suffix / f"cups.{suffix}"
        write_evalset(EvalSet("cups", [case]), target)
        assert not holds(target.read_text(), BIG_PNG)
        [again] = read_evalset(target)
        assert [one.data for one in again.attachments] == [BIG_PNG]
        kept = sorted(
            p.read_bytes() for p in (target.parent / "attachments").rglob("*") if p.is_file()
        )
        assert kept == sorted([BIG_PNG, PDF])


def test_a_case_without_attachments_is_written_as_before():
    assert case_data(Case("cup", "What?")) == {"id": "cup", "says": "What?"}
    assert case_data(Case("cup", turns=[Turn("What?")]))["turns"] == [{"says": "What?"}]


def test_a_case_with_attachments_comes_back_from_its_data():
    case = Case(
        "cup", turns=[Turn("What?", attachments=[attach(PNG)]), Turn("", None, None, [attach(PDF)])]
    )
    again = case_from(case_data(case))
    assert [list(turn.attachments) for turn in again.turns] == [[attach(PNG)], [attach(PDF)]]


def test_the_schema_knows_the_field():
    schema = evalset_schema()
    assert schema["$defs"]["case"]["properties"]["attachments"]["items"] == {
        "$ref": "#/$defs/attachment"
    }


def adk_set(folder: Path, *parts: Any) -> Path:
    path = folder / "cups.evalset.json"
    turn = {"user_content": {"role": "user", "parts": list(parts)}}
    data = {"eval_set_id": "cups", "eval_cases": [{"eval_id": "cup", "conversation": [turn]}]}
    path.write_text(json.dumps(data))
    return path


def test_a_set_of_google_adk_and_its_conversion_hold_the_same_cases(tmp_path):
    blob = {"inline_data": {"mime_type": "image/png", "data": CODED}}
    adk = read_evalset(adk_set(tmp_path, {"text": "What?"}, blob))
    write_evalset(adk, tmp_path / "own.yaml")
    own = read_evalset(tmp_path / "own.yaml")
    assert merge(adk, own, deduplicate=True).ids == adk.ids


@pytest.mark.parametrize(
    "blob",
    [
        {"inline_data": {"mime_type": "image/png", "data": CODED, "display_name": "cup.png"}},
        {
            "inlineData": {
                "mimeType": "image/png",
                "data": CODED.replace("+", "-").replace("/", "_"),
            }
        },
    ],
)
def test_inline_data_of_google_adk_is_attached_and_written_back(tmp_path, blob):
    path = adk_set(tmp_path, {"text": "What?"}, blob)
    [case] = read_evalset(path)
    [turn] = case.script
    assert (turn.says, [one.data for one in turn.attachments]) == ("What?", [PNG])
    assert not holds(case_data(case), PNG)
    write_evalset(read_evalset(path), tmp_path / "again.evalset.json", shape="adk")
    written = json.loads((tmp_path / "again.evalset.json").read_text())
    found = written["eval_cases"][0]["conversation"][0]["user_content"]["parts"]
    [part] = [part for part in found if "text" not in part]
    inline = part.get("inline_data") or part["inlineData"]
    assert base64.b64decode(inline["data"]) == PNG
    [again] = read_evalset(tmp_path / "again.evalset.json")
    assert [one.data for one in again.script[0].attachments] == [PNG]


def test_a_message_of_google_adk_may_be_nothing_but_an_image(tmp_path):
    blob = {"inline_data": {"mime_type": "image/png", "data": CODED}}
    [case] = read_evalset(adk_set(tmp_path, blob))
    assert (case.script[0].says, len(case.script[0].attachments)) == ("", 1)


@pytest.mark.parametrize(
    "data, words",
    [
        ({"mime_type": "image/jpeg", "data": CODED}, "image/jpeg"),
        ({"mime_type": "image/png", "data": "no base64 at all!"}, "base64"),
        ({"mime_type": "image/png", "data": ""}, "empty"),
    ],
)
def test_bytes_of_google_adk_that_cannot_be_used_are_named(tmp_path, data, words):
    with pytest.raises(BadFile, match=words):
        read_evalset(adk_set(tmp_path, {"text": "What?"}, {"inline_data": data}))


# Behind a zero no bytes begin as a file of a known type does.
BLOBS = some.binary(max_size=40).map(lambda data: b"\0" + data)


@given(some.text(max_size=20), some.lists(BLOBS, max_size=3))
def test_a_message_comes_apart_as_it_was_put_together(text, blobs):
    attached = tuple(attach(data, "application/octet-stream") for data in blobs)
    assert text_and_attachments(message_value(text, attached)) == (text, attached)


@given(some.recursive(some.none() | some.booleans() | some.text(), some.lists))
def test_a_value_without_attachments_is_heard_as_its_text(value):
    assert text_and_attachments(value) == (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False),
        (),
    )


def test_a_session_with_attachments_is_harvested_with_them():
    agent = Agent("looker", model=Scripted("A cup."))
    [result] = rehearse(
        agent, [Case("cup", "What?", attachments=[attach(PNG)])], store=False
    ).results
    assert result.ledger is not None
    [turn] = harvest(result.ledger, "again").script
    assert [one.data for one in turn.attachments] == [PNG]


def test_a_difference_in_what_was_attached_is_said_in_words():
    def ledger_of(*sent: Any) -> Any:
        agent = Agent("looker", model=Scripted("A cup."))
        case = Case("cup", "What?", attachments=sent)
        return rehearse(agent, [case], store=False).results[0].ledger

    one, same = ledger_of(attach(PNG, name="a.png")), ledger_of(attach(PNG, name="a.png"))
    other = ledger_of(attach(BIG_PNG, name="b.png"))
    assert diff(one, same) == []
    assert any("b.png" in str(found) for found in diff(one, other))
