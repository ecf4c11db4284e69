"""Reporters by name, and several reports written at once."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from greenroom import Report, Score, plugins
from greenroom.errors import BadFile, BadInput, BadPlugin, NotFound
from greenroom.reports.reporters import destinations, write_reports
from greenroom.results import CaseResult
from greenroom.results.reporters import load_reporter, render_report, reporter_names

REPORT = Report(
    [
        CaseResult(case_id="good", status="passed", scores={"m": Score(1.0)}),
        CaseResult(case_id="bad", status="failed", scores={"m": Score(0.0)}),
    ],
    id="r",
    evalset_id="shop",
)
USUAL = {
    "adk": "greenroom.evalset_result.json",
    "annotations": "annotations.txt",
    "console": "eval_report.txt",
    "html": "eval_report.html",
    "json": "eval_report.json",
    "junit": "junit.xml",
    "markdown": "eval_report.md",
    "notebook": "eval_report.fragment.html",
}


def test_our_own_reporters_come_in_by_the_visitors_door():
    assert {name: load_reporter(name).file for name in reporter_names()} == USUAL


@pytest.mark.parametrize("name", USUAL)
def test_every_reporter_renders_with_and_without_a_baseline(name):
    alone, compared = render_report(name, REPORT), render_report(name, REPORT, baseline=REPORT)
    assert "bad" in alone
    assert "bad" in compared


def test_an_unknown_format_names_the_near_ones():
    with pytest.raises(
        NotFound, match=r"no report format 'jnuit'\. Did you mean 'junit'\? Known: a"
    ):
        load_reporter("jnuit")


def test_several_formats_are_written_at_once(tmp_path):
    written = write_reports(
        REPORT, [f"json={tmp_path / 'a' / 'r.json'}", f"junit={tmp_path / 'b' / 'j.xml'}"]
    )
    assert written == [tmp_path / "a" / "r.json", tmp_path / "b" / "j.xml"]
    assert Report.load(written[0]).id == "r"
    assert Xml.parse(written[1]).getroot().tag == "testsuites"


def test_formats_that_share_an_output_share_a_folder(tmp_path):
    written = write_reports(REPORT, USUAL.keys(), tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(USUAL.values())
    assert len(written) == len(USUAL)


def test_a_single_format_may_name_its_file_or_a_folder(tmp_path):
    assert write_reports(REPORT, ["json"], tmp_path / "r.json") == [tmp_path / "r.json"]
    assert write_reports(REPORT, ["json"], tmp_path) == [tmp_path / "eval_report.json"]
    assert write_reports(REPORT, ["json"], f"{tmp_path}/new/") == [
        tmp_path / "new" / "eval_report.json"
    ]


def test_a_path_of_its_own_goes_before_the_shared_output(tmp_path):
    formats = {"json": tmp_path / "mine.json", "junit": None, "markdown": None}
    assert write_reports(REPORT, formats, tmp_path / "out") == [
        tmp_path / "mine.json",
        tmp_path / "out" / "junit.xml",
        tmp_path / "out" / "eval_report.md",
    ]


def test_without_an_output_they_go_to_this_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert write_reports(REPORT, "json") == [Path("eval_report.json")]


@pytest.mark.parametrize(
    "formats, why",
    [
        (["json="], "'json=' names no file; write json=PATH"),
        ([], "no report format was named; use one of: adk"),
        (["json=x", "junit=./x"], "the json and the junit report would both be written to"),
    ],
)
def test_nonsense_is_refused_before_anything_is_written(formats, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=why):
        write_reports(REPORT, formats)
    assert list(tmp_path.iterdir()) == []


def test_several_formats_do_not_fit_into_one_file(tmp_path):
    (tmp_path / "file").write_text("old")
    with pytest.raises(BadInput, match=r"is a file, but 2 reports should be written there"):
        destinations(["json", "junit"], tmp_path / "file")


def test_one_that_cannot_be_written_keeps_no_other_from_being_written(tmp_path):
    (tmp_path / "file").write_text("old")
    formats = {"json": tmp_path / "file" / "r.json", "junit": tmp_path / "j.xml"}
    with pytest.raises(
        BadFile, match=r"1 of 2 reports could not be written.*json report"
    ) as broken:
        write_reports(REPORT, formats)
    assert f"Written: {str(tmp_path / 'j.xml')!r}" in str(broken.value)
    assert len(broken.value.problems) == 1
    assert (tmp_path / "j.xml").exists()


def test_nobody_ever_reads_half_a_file(tmp_path):
    """A reader next to the writer sees the old report or the new one, whole."""
    path = tmp_path / "r.json"
    write_reports(REPORT, {"json": path})
    seen: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.append(json.loads(path.read_text())["id"])

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(30):
        write_reports(REPORT, {"json": path})
    done.set()
    reader.join()
    assert set(seen) <= {"r"}
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]


def test_a_link_stays_a_link_and_a_pipe_is_written_to(tmp_path):
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    write_reports(REPORT, {"json": tmp_path / "link.json"})
    assert (tmp_path / "link.json").is_symlink()
    assert Report.load(tmp_path / "real.json").id == "r"
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_reports(REPORT, {"json": tmp_path / "pipe"})
    reader.join()
    assert json.loads(read[0])["id"] == "r"


# A plug-in

CODE = """
class Count:
    name = "count"
    file = "../count.txt"

    def render(self, report, *, baseline=None):
        return f"{len(report)} results"

class Broken(Count):
    name = "broken"

    def render(self, report, *, baseline=None):
        raise RuntimeError("sk-ant-0123456789abcdefghij is no good")

def csv(report):
    return "\\n".join(f"{r.case_id},{r.status}" for r in report)

nothing = 7
"""
POINTS = """
[greenroom.reports]
count = house_reports:Count
broken = house_reports:Broken()
csv = house_reports:csv
nothing = house_reports:nothing
gone = house_reports:gone
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package as an installer would leave it."""
    site = tmp_path / "site"
    info = site / "house_reports-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "house_reports.py").write_text(CODE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: house-reports\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS.replace("Broken()", "Broken"))
    monkeypatch.syspath_prepend(site)
    plugins.forget()
    yield
    plugins.forget()
    sys.modules.pop("house_reports", None)


@pytest.mark.usefixtures("installed")
def test_a_plug_in_is_asked_for_by_its_name(tmp_path):
    written = write_reports(REPORT, ["count", "csv"], tmp_path / "out")
    # Nobody's usual file name leaves the folder.
    assert [str(path.relative_to(tmp_path)) for path in written] == [
        "out/count.txt",
        "out/eval_report.csv",
    ]
    assert written[0].read_text() == "2 results"
    assert render_report("csv", REPORT, baseline=REPORT) == "good,passed\nbad,failed"


@pytest.mark.usefixtures("installed")
def test_a_plug_in_that_breaks_is_named_and_tells_no_secret(tmp_path):
    with pytest.raises(BadFile) as broken:
        write_reports(REPORT, ["broken", "csv"], tmp_path / "out")
    assert "the broken report cannot be rendered: RuntimeError: [redacted:api_key]" in str(
        broken.value
    )
    assert (tmp_path / "out" / "eval_report.csv").exists()


@pytest.mark.usefixtures("installed")
def test_what_an_entry_point_promises_must_be_there():
    with pytest.raises(
        BadPlugin, match=r"'gone' of house-reports .*cannot be loaded: AttributeError"
    ):
        load_reporter("gone")
    with pytest.raises(
        BadPlugin, match=r"'nothing' of .*is 7, but should be an object with render"
    ):
        load_reporter("nothing")
