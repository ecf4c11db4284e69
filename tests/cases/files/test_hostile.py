"""Whatever a file holds, it is read or refused with a reason: soon, cheaply, and running nothing."""

import json
import os
import sys
import zlib
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import warm_python
from cases.files.fuzz_files import fuzz
from cases.files.sets import VALUES
from greenroom import Case, EvalSet
from greenroom.cases import read_config, read_evalset, write_evalset
from greenroom.cases.files.yaml_text import yaml_text, yaml_with_flaws
from greenroom.errors import BadFile
from marks import heavy

MB = 1024 * 1024


def refused(path: Path) -> str:
    with pytest.raises(BadFile) as told:
        read_evalset(path)
    assert len(str(told.value)) < 6000
    return str(told.value)


def refusal(folder: Path, content: str | bytes, name: str = "set.json") -> str:
    raw = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(raw)
    return refused(folder / name)


def of_case(**fields: object) -> str:
    return json.dumps({"version": 1, "cases": [{"id": "a", **fields}]})


@pytest.mark.parametrize(
    "content, told",
    [
        (b"", "is empty"),
        (b"\xff\xfe{\x00}\x00", "UTF-16; save it as UTF-8"),
        (b"\xfe\xff\x00{\x00}", "UTF-16"),
        (b"\xff\xfe\x00\x00{\x00\x00\x00", "UTF-32"),
        (b"{\x00}", "binary"),
        (b"\x1f\x8b\x08\x00 zipped", "binary"),
        (zlib.compress(b"0" * MB), "no UTF-8|binary"),
        (b'{"version": 1,\n "id": "\xe9"}', "line 2 is not UTF-8"),
        ('{"version": 1, "cases": [{"id": "a", "says": "\\ud800"}]}', "half a character"),
        ('{"version": 1, "cases": [], "\\udfff": 1}', "half a character"),
        ('{"version": 1, "cases": [], "x": NaN}', "NaN is not a number that JSON can hold"),
        (
            '{"version": 1, "cases": [], "x": -Infinity}',
            "-Infinity is not a number that JSON can hold",
        ),
        (
            '{"version": 1, "cases": [], "x": 1e999}',
            "1e999 is not a number that JSON can hold|1e999 is too large",
        ),
        ('{"version": 1, "cases": [], "x": ' + "9" * 5000 + "}", "Invalid JSON"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('{"a":' * 900 + "1" + "}" * 900, "nested deeper than 60|nested too deeply"),
        ("[" * 61 + "]" * 61, "nested deeper than 60"),
        ('"' + "x" * (5 * MB) + '"', "5242880 characters is too long"),
        (of_case(says="x" * (5 * MB)), "cases[0].says: a string of 5242880 characters is too long"),
        (json.dumps({"k" * 2000: 1}), "a key of 2000 characters is too long"),
        ("[" + "{}," * 3_000_000 + "{}]", "it holds too many values"),
        ("{" + '"a":1,' * 300_000 + '"b":1}', "given twice"),
        ('{"version": 1, "cases": [' + '{"id": "a"},' * 1000 + "5]}", "1000 problems"),
    ],
)
def test_a_hostile_text_is_refused(tmp_path: Path, content: str | bytes, told: str) -> None:
    message = refusal(tmp_path, content)
    assert any(part in message for part in told.split("|")) or pytest.fail(message)


@pytest.mark.parametrize(
    "id",
    ["../../etc/passwd", "/etc/passwd", "a/b", "a\\b", "..", ".hidden", "~root", "a\nb", "a\x1b[31m",
     "x" * 300, " a", "", "\u202eevil", "a\u0000b"],
)  # fmt: skip
def test_an_id_that_is_no_name_for_a_file_is_refused(tmp_path: Path, id: str) -> None:
    message = refusal(tmp_path, json.dumps({"version": 1, "cases": [{"id": id, "says": "Hi"}]}))
    assert "id" in message
    assert message.isprintable()


@pytest.mark.parametrize(
    "text, told",
    [
        ("says: no", r"cases[0].says: no is a string to some readers"),
        ("says: On", r"cases[0].says: On is a string to some readers"),
        ("tags: [yes]", r"cases[0].tags[0]: yes is a string to some readers"),
        ("metadata: {zip: 01234}", "metadata.zip: '01234' is a string to some"),
        ("metadata: {n: 0o17}", "'0o17'"),
        ("metadata: {n: 1_000}", "'1_000'"),
        ("metadata: {t: 12:30:45}", "'12:30:45'"),
        ("metadata: {x: .inf}", "'.inf'"),
        ("metadata: {x: 1e999}", "1e999 is not a number that JSON can hold|1e999 is too large"),
        ("says: 5", "cases[0].says: 5 should be a string"),
        ("says: true", "cases[0].says: true should be a string"),
        ("says: !!python/object/apply:os.system ['touch ran']", "tags are refused"),
        ("says: !!python/name:os.system ''", "tags are refused"),
        ("says: !!binary aGk=", "tags are refused"),
        ("metadata: !!python/object:os.system {}", "tags are refused"),
        ("metadata: {!!str 5: 1}", "tags are refused"),
        ("metadata: {<<: {a: 1}}", "merge keys"),
        ("metadata: {? [a] : 1}", "a key should be a string"),
        ("metadata: {a: &x 1, b: *x}", "aliases"),
        ("says: \"\\ud800\"", "half a character|Invalid YAML"),
        ("says: |\n    a\n\tb", "Invalid YAML"),
        ("says: %", "Invalid YAML"),
    ],
)  # fmt: skip
def test_yaml_is_never_read_in_a_way_that_surprises(tmp_path: Path, text: str, told: str) -> None:
    content = f"version: 1\ncases:\n  - id: a\n    {text}\n"
    message = refusal(tmp_path, content, "set.yaml")
    assert any(part in message for part in told.split("|")) or pytest.fail(message)
    assert "line 4" in message or "Invalid YAML" in message
    assert not Path("ran").exists()


def test_a_billion_laughs_are_not_heard(tmp_path: Path) -> None:
    lines = ["a0: &a0 [lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert "aliases" in refusal(tmp_path, "\n".join(lines), "set.yaml")


@pytest.mark.parametrize("text", ["a: " * 10_000, "- " * 10_000, "[" * 10_000, "{a: " * 10_000])
def test_deep_yaml_is_refused(tmp_path: Path, text: str) -> None:
    assert "YAML" in refusal(tmp_path, text, "set.yaml")


@pytest.mark.parametrize("date", ["2026-01-02", "2026-01-02T10:00:00Z", "2026-99-99"])
def test_a_date_in_yaml_is_the_text_it_looks_like(date: str) -> None:
    assert yaml_with_flaws(f"day: {date}")[0] == {"day": date}


@given(VALUES)
def test_what_is_written_as_yaml_is_read_as_the_same(value: Any) -> None:
    assert yaml_with_flaws(yaml_text({"a": value}))[0] == {"a": value}


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=20))
def test_every_text_survives_yaml(text: str) -> None:
    assert yaml_with_flaws(yaml_text([text, {text: text}]))[0] == [text, {text: text}]


def test_a_folder_a_pipe_a_device_and_a_loop_of_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    assert "it is a folder" in refused(tmp_path / "folder.json")
    os.mkfifo(tmp_path / "pipe.json")
    assert "it is a pipe" in refused(tmp_path / "pipe.json")
    (tmp_path / "zeros.json").symlink_to("/dev/zero")
    assert "it is a device" in refused(tmp_path / "zeros.json")
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    assert "cannot read" in refused(tmp_path / "loop.json")
    (tmp_path / "dangling.json").symlink_to(tmp_path / "nowhere")
    assert "there is no file" in refused(tmp_path / "dangling.json")
    assert "cannot read" in refused(Path("nul\0.json"))
    assert "cannot read" in refused(tmp_path / ("x" * 5000 + ".json"))


def test_a_file_in_a_folder_that_is_closed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file.json").write_text("{}")
    assert "cannot read" in refused(tmp_path / "file.json" / "inside.json")


def test_a_config_is_doubted_like_an_eval_set(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("criteria: {x: !!python/name:os.system ''}")
    with pytest.raises(BadFile, match="tags are refused"):
        read_config(tmp_path / "c.yaml")


MEASURE = dedent(
    """
    import resource, sys
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    from greenroom.cases import read_evalset
    from greenroom.errors import BadFile
    try:
        read_evalset(sys.argv[1])
    except BadFile:
        if sys.platform == "linux":  # getrusage would tell the peak of the parent process
            lines = open("/proc/self/status").read().splitlines()
            print(next(int(line.split()[1]) for line in lines if "VmHWM" in line) // 1024)
        else:
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024**2)
    """
)

HUGE = {
    "one text": lambda: b'["' + b"x" * (63 * MB) + b'"]',
    "a file beyond the limit": lambda: b'["' + b"x" * (100 * MB) + b'"]',
    "emoji": lambda: b'["' + "😀".encode() * (4 * MB) + b'"]',
    "empty lists": lambda: b"[" + b"[]," * (20 * MB) + b"[]]",
    "lists": lambda: b"[" + b"[]," * 900_000 + b"[]]",
    "mappings": lambda: b"[" + b'{"a":1},' * 500_000 + b"{}]",
    "one mapping": lambda: b"{" + b",".join(b'"%d":1' % i for i in range(600_000)) + b"}",
    "deep": lambda: b"[" * (60 * MB),
    "numbers": lambda: b"[" + b"1," * (30 * MB) + b"1]",
    "cases": lambda: b'{"version":1,"cases":[' + b'{"id":"a"},' * 450_000 + b"5]}",
    "bad cases": lambda: b'{"version":1,"cases":[' + b'{"id":"a"},' * 49_000 + b"5]}",
    "turns": lambda: (
        b'{"version":1,"cases":[5,{"id":"a","turns":['
        + b'{"says":"a","expect":{"contains":"b"}},' * 200_000
        + b'{"says":"a"}]}]}'
    ),
    "keys given twice": lambda: b'{"a":[' * 90 + b'{"b":1,"b":1}' + b"]}" * 90,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [k if k == "lists" else heavy(k) for k in HUGE])
def test_a_huge_file_is_refused_within_200_mb(tmp_path: Path, kind: str) -> None:
    (tmp_path / "set.json").write_bytes(HUGE[kind]())
    assert measured(tmp_path / "set.json") < 200


HUGE_YAML = {
    "items": lambda: b"- a\n" * (15 * MB),
    "pairs": lambda: b"".join(b"k%d: 1\n" % i for i in range(1_000_000)),
    "deep": lambda: b"- " * (20 * MB),
    "flow": lambda: b"[" + b"{a: 1}, " * MB,
    "one text": lambda: b"a: '" + b"x" * (60 * MB) + b"'",
    "comments": lambda: b"# x\n" * (15 * MB),
    "one line": lambda: b"a: " + b"x: " * (10 * MB),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [k if k == "items" else heavy(k) for k in HUGE_YAML])
def test_a_huge_yaml_file_is_refused_within_200_mb(tmp_path: Path, kind: str) -> None:
    (tmp_path / "set.yaml").write_bytes(HUGE_YAML[kind]())
    assert measured(tmp_path / "set.yaml") < 200


@pytest.mark.slow
@pytest.mark.parametrize("kind", [heavy(".csv"), ".jsonl"])
def test_a_huge_table_is_refused_within_200_mb(tmp_path: Path, kind: str) -> None:
    row = b"Hi,b\n" if kind == ".csv" else b'{"says":"Hi"}\n'
    head = b"says,zzz\n" if kind == ".csv" else b""
    (tmp_path / f"set{kind}").write_bytes(head + row * (60 * MB // len(row)))
    assert measured(tmp_path / f"set{kind}") < 200


def measured(path: Path) -> int:
    """The most memory, in MB, that a process of its own held until it refused the file."""
    ran = warm_python.run(
        [sys.executable, "-c", MEASURE, str(path)],
        modules=("greenroom.cases",),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-500:]
    assert ran.stdout, "the file was read, or the process was stopped"
    return int(ran.stdout)


def test_mutated_files_are_read_or_refused_and_nothing_else() -> None:
    assert fuzz(rounds=600, seed=1) > 0


@pytest.mark.parametrize("name", ["a.yaml", "a.json", "a.csv"])
@pytest.mark.parametrize("lossy", [True, False])
def test_half_a_character_is_not_written_to_any_file(
    tmp_path: Path, name: str, lossy: bool
) -> None:
    broken = EvalSet("a", [Case("c", says="\ud83d")])
    with pytest.raises(BadFile, match=r"half a character|surrogates not allowed"):
        write_evalset(broken, tmp_path / name, lossy=lossy)
    assert not (tmp_path / name).exists()
