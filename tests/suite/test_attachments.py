"""Attachments through a whole run: workers, a killed process, the store, live conversations and reports."""

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner

import warm_python
from attached_files import BIG_PNG, MP4, PNG, holds
from greenroom import Agent, Case, Expect, Scripted, attach, evaluate, perform, rehearse
from greenroom.apps.cli import main
from greenroom.errors import BadAttachment
from greenroom.ledger import Attachment, Ledger, ModelReplied, attachments, started
from greenroom.reports.html import render_html
from greenroom.reports.markdown import MarkdownReport
from greenroom.reports.page.short_values import Trimmer
from greenroom.reports.page.timeline import timeline
from greenroom.reports.transcript import transcript
from greenroom.store import Store
from greenroom.store.conversations import Conversations
from greenroom.store.lock import locked

AGENT = """
import os
from hashlib import sha256
from pathlib import Path

from greenroom import Agent, Scripted, attach

HERE = Path(__file__).parent


def tell(request):
    seen = [one for message in request.messages for one in message.attachments]
    told = " ".join(sha256(one.data).hexdigest() for one in seen)
    (HERE / f"seen-{os.getpid()}").write_text(told)
    return [told, attach(b"%PDF-" + os.urandom(40))]


def last(request):
    if (HERE / "kill").exists():
        (HERE / "kill").unlink()
        os._exit(9)
    return tell(request)


looker = Agent("looker", model=Scripted(tell))
painter = Agent("painter", model=Scripted(lambda _: ["Drawn.", attach(b"%PDF-" + os.urandom(5000))]))
pair = painter >> Agent("curious", model=Scripted(last))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "cup.png").write_bytes(BIG_PNG)
    expect = {"contains": sha256(BIG_PNG).hexdigest()}
    case = {"id": "cup", "says": "What?", "attachments": ["cup.png"], "expect": expect}
    (tmp_path / "cups.json").write_text(json.dumps({"version": 1, "cases": [case]}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kept_in(store: Path) -> list[bytes]:
    return [path.read_bytes() for path in (store / "attachments").rglob("*") if path.is_file()]


def greenroom(folder: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "greenroom.apps.cli", *args]
    return warm_python.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_workers_get_it_and_what_they_make_is_kept(folder):
    report = rehearse("desk.py:looker", "cups.json", workers=2, store="runs")
    [result] = report.results
    assert result.passed, result.error
    assert result.ledger is not None
    [given, made] = attachments(result.ledger)
    assert (given.data, made.data[:5]) == (BIG_PNG, b"%PDF-")
    assert sorted(kept_in(folder / "runs")) == sorted([given.data, made.data])
    assert not (folder / f"seen-{os.getpid()}").exists()


def test_what_only_a_recording_knows_is_kept_in_the_store_of_its_replay(folder):
    cases = {"version": 1, "cases": [{"id": "a", "says": "Draw.", "expect": {"contains": "Drawn"}}]}
    (folder / "drawn.json").write_text(json.dumps(cases))
    run = ("eval", "run", "desk.py:painter", "drawn.json")
    greenroom(folder, *run, "--record", "recorded", "--store", "first")
    again = greenroom(folder, *run, "--replay", "recorded", "--store", "second")
    assert again.returncode == 0, again.stdout + again.stderr
    assert kept_in(folder / "second") == kept_in(folder / "first") != []


def test_cases_given_as_objects_reach_workers_too(folder):
    case = Case(
        "cup",
        "What?",
        attachments=[attach(PNG, name="small.png")],
        expect=Expect(contains=sha256(PNG).hexdigest()),
    )
    [result] = rehearse("desk.py:looker", [case], workers=1, store=False).results
    assert result.passed, result.error


def test_a_killed_run_goes_on_in_another_process_with_what_a_model_had_made(folder):
    (folder / "kill").touch()
    drawn = {"version": 1, "cases": [{"id": "a", "says": "Draw.", "expect": {"tools": []}}]}
    (folder / "drawn.json").write_text(json.dumps(drawn))
    run = ("eval", "run", "desk.py:pair", "drawn.json", "--store", "runs")
    first = greenroom(folder, *run)
    assert first.returncode == 2, first.stderr
    made = next(data for data in kept_in(folder / "runs") if len(data) > 5000)
    again = greenroom(folder, *run, "--resume")
    assert again.returncode == 0, again.stdout + again.stderr
    [seen] = [path.read_text() for path in folder.glob("seen-*")]
    assert seen == sha256(made).hexdigest()


def test_the_store_keeps_bytes_once_for_all_trials_and_readers_find_them(folder):
    rehearse("desk.py:looker", "cups.json", trials=3, store="runs")
    assert kept_in(folder / "runs").count(BIG_PNG) == 1
    code = (
        "from greenroom.store import Store\n"
        "from greenroom.ledger import attachments\n"
        "store = Store('runs')\n"
        "[run] = store.runs()\n"
        "ledgers = [r.ledger for r in store.report(run.id).results]\n"
        "print({len(attachments(ledger)[0].data) for ledger in ledgers})\n"
    )
    ran = warm_python.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == str({len(BIG_PNG)}), ran.stderr


async def test_bytes_go_with_the_last_run_that_mentions_them(tmp_path):
    def asked(text: str) -> Case:
        attached = attach(text.encode(), "text/plain", name="a.txt")
        return Case("cup", says="Look.", attachments=[attached])

    store, agent = Store(tmp_path / "kept"), Agent("looker", model=Scripted(then="Seen."))
    for text in ("both", "first", "both"):
        await evaluate(agent, [asked(text)], store=store)
    ledger = await perform(agent, attachments=[attach(b"talk", "text/plain")], store=store)
    runs = store.runs()[::-1]
    assert sorted(kept_in(store.place)) == [b"both", b"first", b"talk"]
    store.delete(runs[0].id, runs[1].id)
    assert sorted(kept_in(store.place)) == [b"both", b"talk"]
    store.delete(runs[2].id)
    assert kept_in(store.place) == [b"talk"]
    first = started(ledger)
    assert first is not None
    Conversations(store.database).delete(first.run_id)
    assert kept_in(store.place) == []


async def test_bytes_that_a_run_under_way_may_be_about_to_mention_stay(tmp_path):
    store, agent = Store(tmp_path / "kept"), Agent("looker", model=Scripted(then="Seen."))
    case = Case("cup", says="Look.", attachments=[attach(b"mine", "text/plain")])
    await evaluate(agent, [case], store=store)
    await evaluate(agent, [Case("cup", says="Look.")], store=store)
    [other, mine] = store.runs()
    held = locked(store.place / "journals" / "20000101-000000-aaaa")
    store.delete(mine.id)
    assert kept_in(store.place) == [b"mine"]
    os.close(held)
    store.delete(other.id)
    assert kept_in(store.place) == []


def test_a_ledger_without_its_bytes_says_where_they_are():
    lost = Attachment("image/png", "0" * 64, 7, "lost.png")
    with pytest.raises(BadAttachment, match=r"lost\.png .*attachments"):
        _ = lost.data


def test_a_digest_that_is_a_path_is_never_opened(tmp_path):
    (tmp_path / "secret").write_bytes(PNG)
    with pytest.raises(BadAttachment, match="not a digest"):
        _ = Attachment("image/png", str(tmp_path / "secret"), 7, "a.png").data


def test_a_file_that_changed_after_it_was_attached_is_not_sent(tmp_path):
    path = tmp_path / "cup.png"
    path.write_bytes(PNG + b"first")
    one = attach(path)
    path.write_bytes(PNG + b"other")
    with pytest.raises(BadAttachment, match="changed"):
        _ = one.data


async def test_a_live_conversation_keeps_it_from_turn_to_turn(tmp_path):
    def told(request):
        return str(sum(len(message.attachments) for message in request.messages))

    agent = Agent("looker", model=Scripted(told, told))
    sent = attach(PNG, name="cup.png")
    ledger = await perform(agent, "What?", attachments=[sent], store=tmp_path / "live")
    first = ledger[0]
    again = await perform(
        agent, "Sure?", conversation=getattr(first, "run_id", ""), store=tmp_path / "live"
    )
    assert [reply.text for reply in again.of(ModelReplied)] == ["1", "1"]
    assert kept_in(tmp_path / "live").count(PNG) == 1


def test_a_text_agent_is_never_asked_about_a_video():
    asked: list[object] = []
    model = Scripted(lambda request: asked.append(request) or "Fine.")
    agent = Agent("reader", model=model, accepts=("text",))
    case = Case("film", "Watch.", attachments=[attach(MP4, name="film.mp4")])
    [result] = rehearse(agent, [case], store=False).results
    assert result.error is not None
    assert "film.mp4" in result.error.message
    assert asked == []
    with pytest.raises(Exception, match="gives video"):
        rehearse(agent, [case], store=False, check="error")


def test_an_agent_that_gives_what_it_does_not_declare_fails():
    agent = Agent("painter", model=Scripted([attach(PNG)]), gives=("text",))
    [result] = rehearse(agent, [Case("draw", "Draw.")], store=False).results
    assert result.error is not None
    assert "gave" in result.error.message


SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


def shown_report(*sent: Attachment):
    agent = Agent("looker", model=Scripted("A cup."))
    case = Case("cup", "What?", attachments=sent, expect=Expect(contains="cup"))
    return rehearse(agent, [case], store=False)


def test_console_and_markdown_name_it_with_type_and_size():
    report = shown_report(attach(PNG, name="cup.png"))
    [result] = report.results
    assert result.ledger is not None
    assert "[cup.png (image/png, 70 bytes)]" in transcript(result.ledger)[0].text
    assert "cup.png" in json.dumps(result.ledger.dumps())
    assert not holds(MarkdownReport().render(report), PNG)


def test_a_page_allows_pictures_that_it_holds_itself_and_nothing_else():
    page = render_html(shown_report(attach(PNG, name="cup.png")))
    assert "img-src data:;" in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page


def test_a_page_shows_small_pictures_and_only_names_what_could_act():
    sent = [attach(PNG, name="cup.png"), attach(SVG, name="cup.svg"), attach(MP4, name="a.mp4")]
    [result] = shown_report(*sent, attach(PNG + bytes(200_000), name="large.png")).results
    assert result.ledger is not None
    files = timeline(result.ledger, Trimmer())[0]["files"]
    assert [file["name"] for file in files] == ["cup.png", "cup.svg", "a.mp4", "large.png"]
    assert [file["name"] for file in files if "src" in file] == ["cup.png"]
    assert holds(files[0]["src"], PNG)


def test_a_redacted_copy_keeps_the_reference(tmp_path):
    [result] = shown_report(attach(PNG, name="cup.png")).results
    assert result.ledger is not None
    result.ledger.save(tmp_path / "copy.jsonl", redact=True)
    assert [one.data for one in attachments(Ledger.load(tmp_path / "copy.jsonl"))] == [PNG]


def test_a_store_whose_attachments_are_a_link_is_refused(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "runs" / "attachments").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="symbolic link"):
        rehearse(Agent("a", model=Scripted("b")), [Case("c", "d")], store=Store(tmp_path / "runs"))


def test_a_chat_sends_a_file_and_saves_a_case_that_passes_with_it(folder):
    (folder / "talk.py").write_text(
        "from greenroom import Agent, Scripted\n"
        "agent = Agent('looker', model=Scripted(then=lambda request: "
        "f'I see {sum(len(m.attachments) for m in request.messages)} of them.'))\n"
    )
    lines = "/attach cup.png\nWhat is it?\n/attach missing.png\n"
    said = CliRunner().invoke(main, ["perform", "talk.py"], input=lines)
    assert "I see 1 of them." in said.output
    lines = "/attach cup.png\nWhat is it?\n/save saved.yaml one\n"
    said = CliRunner().invoke(main, ["perform", "talk.py"], input=lines)
    assert said.exit_code == 0, said.output
    assert CliRunner().invoke(main, ["eval", "run", "talk.py", "saved.yaml"]).exit_code == 0
