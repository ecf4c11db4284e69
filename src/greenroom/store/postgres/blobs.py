"""The place of a server's store for data too large for its tables: a folder, or a bucket through fsspec."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from greenroom.errors import BadInput, MissingExtra, StoreFailed
from greenroom.installation import how_to_install

LARGE = 1_000_000
"""Packed ledgers of at least this many bytes are kept outside the tables, if the store has a place for them."""


class BlobPlace(Protocol):
    """Keeps bytes by their digests."""

    def put(self, digest: str, data: bytes) -> None:
        """Keep these bytes; they are safe when this returns."""
        ...

    def get(self, digest: str) -> bytes:
        """The bytes of this digest; StoreFailed if they are not there."""
        ...

    def remove(self, digest: str) -> None:
        """Delete these bytes."""
        ...


def blob_place(address: str) -> BlobPlace | None:
    """The place at this address, such as a folder or `s3://bucket/evals`; None for the tables themselves."""
    if not address:
        return None
    if "://" in address:
        return _Bucket(address)
    if not Path(address).is_absolute():
        raise BadInput(
            f"--blobs {address}: give an absolute path of a folder that all machines see."
        )
    return _Folder(Path(address))


class _Folder:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def put(self, digest: str, data: bytes) -> None:
        """Write a file atomically: readers see all of it or nothing."""
        target = self._file(digest)
        if target.exists():
            return
        draft = target.with_name(f"{digest}.{os.getpid()}.tmp")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        except OSError as error:
            raise StoreFailed(f"cannot keep a large ledger in {self._path}: {error}.") from error

    def get(self, digest: str) -> bytes:
        """The bytes of a file."""
        try:
            return self._file(digest).read_bytes()
        except OSError as error:
            raise StoreFailed(f"a large ledger cannot be read: {error}.") from error

    def remove(self, digest: str) -> None:
        """Remove a file."""
        with suppress(OSError):
            self._file(digest).unlink()

    def _file(self, digest: str) -> Path:
        return self._path / digest[:2] / digest


class _Bucket:
    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")
        try:
            import fsspec  # pyright: ignore[reportMissingTypeStubs]

            self._files, self._path = _opened(fsspec, self._address)
        except ImportError as error:
            raise MissingExtra(
                f"blobs in {address} need a package: {error}. Install it with "
                f"{how_to_install('postgres')}, and the one for that kind of bucket, such as s3fs."
            ) from error
        except ValueError as error:
            raise BadInput(f"--blobs {address}: {error}.") from error

    def __str__(self) -> str:
        return self._address

    def put(self, digest: str, data: bytes) -> None:
        """Put an object; buckets show it whole or not at all."""
        try:
            if not self._files.exists(self._name(digest)):
                self._files.makedirs(f"{self._path}/{digest[:2]}", exist_ok=True)
                self._files.pipe_file(self._name(digest), data)
        except Exception as error:
            raise StoreFailed(f"cannot keep a large ledger in {self._address}: {error}.") from error

    def get(self, digest: str) -> bytes:
        """The bytes of an object."""
        try:
            return bytes(self._files.cat_file(self._name(digest)))
        except Exception as error:
            raise StoreFailed(
                f"a large ledger in {self._address} cannot be read: {error!r}."
            ) from error

    def remove(self, digest: str) -> None:
        """Remove an object."""
        with suppress(Exception):
            self._files.rm_file(self._name(digest))

    def _name(self, digest: str) -> str:
        return f"{self._path}/{digest[:2]}/{digest}"


def _opened(fsspec: Any, address: str) -> tuple[Any, str]:
    files, path = fsspec.core.url_to_fs(address)
    return files, path.rstrip("/")
