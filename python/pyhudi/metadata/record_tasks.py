"""Changes of the metadata table as tasks: each reads files and returns record rows.

The driver holds no keys and no rows: record rows stream from the tasks to the writers of the file
groups that they hash to. The partition types decide which tasks a commit needs
(`partition_types/`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import pyarrow as pa

from pyhudi import _native
from pyhudi.config.table_config import TableConfig
from pyhudi.storage.storage import Storage

RECORD_ROWS = pa.schema(
    [
        pa.field("route", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("value", pa.binary()),
        pa.field("keys", pa.binary()),
    ]
)
"""Partition and number of the file group (`files/0`), key of the record, and the record in Avro;
null deletes the record. If `keys` is not null, it packs many keys with the same value
(`rust/metadata/src/write/packed_keys.rs`), and `key` is empty."""


@cache
def record_schema(name: str) -> str:
    """Return the schema of a metadata record, with meta fields, as a release of Hudi writes it."""
    folder = resources.files("pyhudi.metadata") / "schemas"
    return (folder / f"{name}.avsc").read_text(encoding="utf-8")


@dataclass(frozen=True)
class RecordTaskContext:
    """The arguments that all tasks of one commit share."""

    storage: Storage
    """The data table's storage."""
    avro_schema: str
    """The schema of the records, with meta fields."""
    groups: Mapping[str, int]
    """Number of file groups of each partition of the metadata table."""

    @classmethod
    def of(
        cls, storage: Storage, metadata: TableConfig, groups: Mapping[str, Sequence[object]]
    ) -> RecordTaskContext:
        """Return the context for a table.

        metadata: the configuration of the metadata table, which can have a newer version than the
        data table: `run_clustering` of Hudi 1.2.0 upgrades the metadata table of version 8 alone.
        groups: the file groups of each metadata partition.
        """
        counts = {name: len(group) for name, group in groups.items()}
        return cls(storage, record_schema(metadata.version.metadata_schema), counts)

    def record_builder(self) -> _native.MetadataRecorder:
        """Return the builder of records."""
        return _native.MetadataRecorder(self.avro_schema, self.groups)


@dataclass(frozen=True)
class RecordTask(ABC):
    """A part of the changes of the metadata table. It is pickled for workers."""

    task_context: RecordTaskContext

    @abstractmethod
    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield its record rows."""


def derive_rows(task: RecordTask) -> Iterator[pa.RecordBatch]:
    """Yield the record rows of a task, on the worker that runs it."""
    return task.rows()
