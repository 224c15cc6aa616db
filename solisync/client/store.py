"""A file that keeps what a device must not lose."""

import fcntl
import os
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T", bound=Struct)


class StoreInUse(Exception):
    """Another process has opened the store."""


class Store(Generic[T]):
    """One `value` in a file of a directory. `save` stores it, completely or not at all, also if the machine fails.

    A store belongs to one process at a time. `shape` must have a default for each field, which a new store begins with.
    """

    def __init__(self, directory: Path, shape: type[T]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._file = directory / "solisync.json"
        self._directory = os.open(directory, os.O_RDONLY)
        try:
            fcntl.flock(self._directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._directory)
            raise StoreInUse(f"another process uses {directory}") from None
        self.value = msgspec.json.decode(self._file.read_bytes(), type=shape) if self._file.exists() else shape()

    def save(self) -> None:
        """Store the value; the previous one stays if that fails. Blocks for as long as the disk needs."""
        new = self._file.with_suffix(".new")
        with open(new, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:  # it has tokens
            file.write(msgspec.json.encode(self.value))
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._file)
        os.fsync(self._directory)

    def close(self) -> None:
        """Let another process open the store."""
        os.close(self._directory)
