"""Rows on their way from Spark's tasks to a driver that has no session: Arrow files.

    .hoodie/.temp/staged-<id>/owner          the process that started the write
    .hoodie/.temp/staged-<id>/<id>.arrow     rows of a task, as a compressed Arrow stream

Instants have other names, so Hudi and the recovery of failed writes ignore them. The writer
removes its directory before it commits, or when Spark aborts the job. The next write of this
format removes what a killed driver left, and what a task wrote after the end of its job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from pyhudi.clock import Clock
from pyhudi.engine.spill import local_files
from pyhudi.slices.markers import MARKER_FOLDER
from pyhudi.storage.storage import Storage
from pyhudi.txn import process_liveness

_PREFIX = "staged-"
_OWNER = "owner"
_STALE_MS = 86_400_000
"""Age of the newest file of a stage whose driver cannot be checked, on another machine, at which
the driver counts as failed. It must exceed the time between two tasks of a job."""
_FILE_BYTES = 64 * 1024 * 1024
"""Bytes of rows in a file."""


@dataclass(frozen=True)
class Stage:
    """A directory with the rows of one write. Picklable."""

    storage: Storage
    path: str

    @classmethod
    def create(cls, storage: Storage, clock: Clock) -> Stage:
        """Create an empty stage, and remove those of failed drivers."""
        remove_stale(storage, clock)
        stage = cls(storage, f"{MARKER_FOLDER}/{_PREFIX}{clock.uuid()}")
        storage.put(f"{stage.path}/{_OWNER}", process_liveness.owner_of_parent(stage.path))
        return stage

    def write(self, batches: Iterable[pa.RecordBatch], clock: Clock) -> tuple[str, ...]:
        """On an executor: write the rows of a task to files, and return their names."""
        return tuple(self._write_file(chunk, clock) for chunk in _chunks(batches))

    def _write_file(self, chunk: list[pa.RecordBatch], clock: Clock) -> str:
        name = f"{clock.uuid()}.arrow"
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_stream(sink, chunk[0].schema, options=options) as stream:
            for batch in chunk:
                stream.write_batch(batch)
        self.storage.put(f"{self.path}/{name}", sink.getvalue().to_pybytes())
        return name

    @contextmanager
    def load(self, names: Iterable[str], columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows of files, in a local file that is mapped into memory.

        columns: those of the rows, which the result has even without rows.
        """
        with ExitStack() as stack:
            with local_files():
                directory = stack.enter_context(TemporaryDirectory(prefix="pyhudi-"))
                path = Path(directory) / "rows.arrow"
                rows = columns.empty_table()
                if self._copy(names, path):
                    source = stack.enter_context(pa.memory_map(str(path)))
                    rows = _describe(pa.ipc.open_file(source).read_all(), columns)
            yield rows

    def _copy(self, names: Iterable[str], path: Path) -> bool:
        """Copy the rows of the stage's files into a local file; return False without rows."""
        writer = None
        with pa.OSFile(str(path), "wb") as sink:
            for name in names:
                with pa.ipc.open_stream(self.storage.read(f"{self.path}/{name}")) as stream:
                    writer = writer or pa.ipc.new_file(sink, stream.schema)
                    for batch in stream:
                        writer.write_batch(batch)
            if writer is not None:
                writer.close()
        return writer is not None

    def remove(self) -> None:
        """Remove the stage."""
        self.storage.delete_dir(self.path)


def remove_stale(storage: Storage, clock: Clock) -> None:
    """Remove the stages whose writes have ended or failed."""
    for path in storage.list_dir(MARKER_FOLDER)[0]:
        stage = path.rstrip("/")
        if stage.rsplit("/", 1)[-1].startswith(_PREFIX) and _is_stale(storage, stage, clock):
            storage.delete_dir(stage)


def _is_stale(storage: Storage, stage: str, clock: Clock) -> bool:
    owner = storage.read_or_none(f"{stage}/{_OWNER}")
    if owner is None or process_liveness.is_from_dead_process(owner):
        return True
    newest = max((file.modified_ms for file in storage.list(stage)), default=0)
    return clock.now_ms() - newest > _STALE_MS


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    chunk: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            chunk.append(batch)
            size += batch.nbytes
        if size >= _FILE_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _describe(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """Return rows that Spark sent with the metadata of their fields, such as VARIANT."""
    fields = [
        pa.field(field.name, column.type, metadata=field.metadata)
        for field, column in zip(columns, rows.columns, strict=True)
    ]
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(fields))
