"""Logs of Inspect: `.eval` archives and its JSON logs."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator

from greenroom.cases.files.bounds import Unreadable
from greenroom.cases.files.json_text import parsed_json
from greenroom.errors import BadTrace, MissingExtra
from greenroom.installation import how_to_install
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.ledger.text_files import MAX_KEPT
from greenroom.traces.files import TraceFile
from greenroom.traces.formats.openai import conversation
from greenroom.traces.records import Flaw, Found, Imported
from greenroom.traces.values import array, obj
from greenroom.traces.writer import whole_number

_ZSTD = 93
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_ATTACHMENT = "attachment://"


class InspectLog:
    """Reads each sample of a log. Archives compressed with zstd need the extra `inspect`."""

    name = "inspect"

    def recognises(self, file: TraceFile) -> bool:
        """Whether it is an archive with a header, or JSON with an eval and samples."""
        if file.raw.startswith(b"PK\x03\x04"):
            return b"header.json" in file.raw[-65536:] or b"_journal/" in file.raw[-65536:]
        held = file.first
        return is_object(held.get("eval")) and is_array(held.get("samples"))

    def read(self, file: TraceFile) -> Iterator[Found]:
        """Each sample; its scores are kept as Inspect's verdicts."""
        if file.raw.startswith(b"PK\x03\x04"):
            yield from self._archive(file)
            return
        for document in file.documents:
            samples = array(obj(document.data, "a log").get("samples"), "samples")
            for number, sample in enumerate(samples):
                yield from _found(sample, file, f"samples[{number}]")

    def _archive(self, file: TraceFile) -> Iterator[Found]:
        try:
            archive = zipfile.ZipFile(io.BytesIO(file.raw))
        except zipfile.BadZipFile as error:
            raise BadTrace(f"the archive is incomplete or broken: {error}.") from error
        for info in archive.infolist():
            if not info.filename.startswith("samples/") or not info.filename.endswith(".json"):
                continue
            try:
                sample = parsed_json(_member(archive, info, file.raw).decode())
            except (Unreadable, UnicodeDecodeError, BadTrace, zipfile.BadZipFile) as error:
                yield Flaw(place=info.filename, why=str(error), source=file.source)
                continue
            yield from _found(sample, file, info.filename)


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, raw: bytes) -> bytes:
    """A file of an archive; Python before 3.14 cannot unpack zstd itself."""
    if info.file_size > MAX_KEPT:
        raise BadTrace(f"it is larger than {MAX_KEPT >> 20} MB once unpacked.")
    if info.compress_type != _ZSTD:
        try:
            return archive.read(info)
        except (zlib.error, RuntimeError, EOFError) as error:  # encrypted, or compressed otherwise
            raise BadTrace(f"it cannot be unpacked: {error}.") from error
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtra(
            f"the log is packed by zstd, which cannot be read without a package: {error}. Install it with "
            f"{how_to_install('inspect')}, or write the log as JSON: inspect log dump."
        ) from error
    name, extra = struct.unpack_from("<HH", raw, info.header_offset + 26)
    begin = info.header_offset + 30 + name + extra
    packed = raw[begin : begin + info.compress_size]
    unpacking: object = zstandard.ZstdDecompressor().decompressobj()
    try:
        return unpacking.decompress(packed)
    except zstandard.ZstdError as error:
        raise BadTrace(f"it cannot be unpacked: {error}.") from error


def _found(sample: Json, file: TraceFile, place: str) -> Iterator[Imported | Flaw]:
    try:
        yield _sample(obj(sample, "a sample"), file.source)
    except BadTrace as error:
        yield Flaw(place=place, why=str(error), source=file.source)


def _sample(sample: dict[str, Json], source: str) -> Imported:
    attachments = sample.get("attachments")
    held = attachments if is_object(attachments) else {}
    messages = [_resolved(message, held) for message in array(sample.get("messages"), "messages")]
    epoch = whole_number(sample.get("epoch", 1)) or 1
    scores = sample.get("scores")
    verdicts: dict[str, Json] = {}
    for name, score in (scores if is_object(scores) else {}).items():
        value = score.get("value") if is_object(score) else None
        verdicts[name] = _LETTERS.get(value, value) if isinstance(value, str) else value
    case_id = str(sample.get("id", "sample"))
    error = sample.get("error")
    return conversation(
        f"{case_id}-epoch-{epoch}",
        messages,
        "inspect",
        source,
        case_id=case_id,
        trial=epoch,
        verdicts=verdicts,
        is_over=sample.get("limit") is None,
        broke=str(error.get("message") or "the sample failed") if is_object(error) else "",
    )


def _resolved(value: Json, attachments: dict[str, Json]) -> Json:
    """A message with the long strings that Inspect stores separately."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attachments.get(value.removeprefix(_ATTACHMENT), value)
    if is_object(value):
        return {key: _resolved(inner, attachments) for key, inner in value.items()}
    return [_resolved(inner, attachments) for inner in value] if is_array(value) else value
