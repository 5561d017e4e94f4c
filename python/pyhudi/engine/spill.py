"""Spilled batches: in memory up to a limit, then in a local file. Not a table's file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pyarrow as pa

from pyhudi.errors import HudiError, StorageError


@contextmanager
def local_files() -> Iterator[None]:
    """Turn a failure of local files, such as a full disk, into a `StorageError`."""
    try:
        yield
    except OSError as error:
        if isinstance(error, HudiError):
            raise
        msg = f"local files failed: {error}"
        raise StorageError(msg, hint="Set TMPDIR to another directory.") from error


IN_MEMORY = 64 * 1024 * 1024
"""Bytes that a spill buffers before it writes to disk."""


class Spill:
    """Batches of one schema, to be read repeatedly once all were added.

    The file, if there is one, has no name and is deleted with the spill.
    """

    def __init__(self, schema: pa.Schema, in_memory: int = IN_MEMORY) -> None:
        self.schema = schema
        self.size = 0
        """Bytes of all batches in memory."""
        self._limit = in_memory
        self._buffered: list[pa.RecordBatch] = []
        self._buffered_bytes = 0
        self._file: IO[bytes] | None = None
        self._writer: pa.RecordBatchStreamWriter | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        self._buffered.append(batch)
        self._buffered_bytes += batch.nbytes
        self.size += batch.nbytes
        if self._buffered_bytes > self._limit:
            with local_files():
                self._write()

    def read(self) -> Iterator[pa.RecordBatch]:
        """All batches, in their order; one reader at a time, and after the last `add`."""
        if self._file is not None:
            with local_files():
                if self._writer is not None:
                    self._writer.close()
                    self._writer = None
                self._file.seek(0)
                stored = pa.ipc.open_stream(self._file)
            yield from stored
        yield from self._buffered

    def close(self) -> None:
        """Release the buffer and the file."""
        self._buffered = []
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self) -> None:
        if self._writer is None:
            self._file = tempfile.TemporaryFile(prefix="pyhudi-")  # noqa: SIM115 - closed by close
            self._writer = pa.ipc.new_stream(self._file, self.schema)
        for batch in self._buffered:
            self._writer.write_batch(batch)
        self._buffered = []
        self._buffered_bytes = 0
