"""Whatever command comes first, the folder of what is kept is for its owner alone, and git does not see it."""

import json
import stat
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from greenroom.apps.cli.trace_watch import Receiver
from greenroom.ledger.private_folders import make_private
from greenroom.models.model import ModelReply
from greenroom.store import Store
from greenroom.store.conversations import Conversations
from greenroom.world.answers import AnswerCache

SHOP = (
    'from greenroom import Agent, Scripted\nagent = Agent("bot", model=Scripted(then="Noted."))\n'
)
CASES = '{"version": 1, "cases": [{"id": "a", "says": "Hi"}]}'


def mode(place: Path) -> int:
    return stat.S_IMODE(place.stat().st_mode)


def is_private(folder: Path) -> bool:
    return mode(folder) == 0o700 and (folder / ".gitignore").read_text() == "*\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("GREENROOM_STORE", "GREENROOM_JUDGES"):
        monkeypatch.delenv(name, raising=False)
    Path("shop.py").write_text(SHOP)
    Path("cases.json").write_text(CASES)
    return tmp_path


@pytest.mark.parametrize(
    "words, folder",
    [
        (["perform", "shop.py", "-m", "Hi"], ".greenroom"),
        (["perform", "shop.py", "-m", "Hi", "--store", "deep/kept"], "deep/kept"),
        (["eval", "run", "shop.py", "cases.json"], ".greenroom"),
        (["traces", "watch", "--folder", ".", "--once", "-m", "contains:x"], ".greenroom"),
        (
            ["traces", "watch", "--folder", ".", "--once", "-m", "contains:x", "--state", "seen"],
            "seen",
        ),
    ],
    ids=["perform", "perform elsewhere", "eval run", "watch", "watch elsewhere"],
)
def test_the_first_command_makes_a_folder_for_its_owner_alone(greenroom, here, words, folder):
    greenroom(*words)
    assert is_private(here / folder)


def test_a_lock_makes_the_folder_of_the_store_first(here):
    Conversations(Store("kept").database).delete("none")
    assert is_private(here / "kept")


def test_cached_answers_make_the_folder_private_and_their_own_is_left_to_its_owner(here):
    AnswerCache().put("a" * 64, ModelReply("Fine."))
    assert is_private(here / ".greenroom")
    AnswerCache("shared").put("a" * 64, ModelReply("Fine."))
    assert not (here / "shared" / ".gitignore").exists()


def test_a_later_command_makes_an_open_folder_private(greenroom, here):
    (here / ".greenroom").mkdir(mode=0o755)
    greenroom("eval", "run", "shop.py", "cases.json")
    assert is_private(here / ".greenroom")


def test_an_owner_who_set_the_folder_up_is_left_alone(here):
    (here / ".greenroom").mkdir()
    (here / ".greenroom" / ".gitignore").write_text("")
    (here / ".greenroom").chmod(0o750)
    (here / "team").mkdir()
    (here / "team").chmod(0o750)
    for name in (".greenroom", "team"):
        make_private(here / name, "web")
        assert (mode(here / name), mode(here / name / "web")) == (0o750, 0o700)
    assert (here / ".greenroom" / ".gitignore").read_text() == ""
    assert not (here / "team" / ".gitignore").exists()


def test_received_spans_are_for_their_owner_alone(here):
    inbox = make_private(here / ".greenroom" / "watch", "inbox")
    with Receiver.at("127.0.0.1:0", inbox) as receiver:
        body = json.dumps({"resourceSpans": []}).encode()
        headers = {"Content-Type": "application/json"}
        urlopen(Request(f"http://{receiver.place}/v1/traces", body, headers)).close()
    (kept,) = inbox.iterdir()
    assert mode(kept) == 0o600
    assert is_private(here / ".greenroom")
