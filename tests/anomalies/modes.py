"""Modes in which two clients use a table: how they exclude each other, and what the table is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

import pyhudi
from pyhudi.config import lock_options
from pyhudi.config.lock_options import MODE, PROVIDER, ConcurrencyMode
from tests.anomalies.holding_storage import (
    BEGIN_LOCK,
    CLEAN_UP,
    COMPLETE,
    DATA,
    READ_METADATA,
    READ_TIMELINE,
)

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("v", pa.string())])
CITIES = {"x": "rome", "y": "oslo", "z": "rome"}
"""The partition of each key. Rows of several partitions are in several file groups."""
START = {"x": "0", "y": "0"}
"""First rows of each table."""


@dataclass(frozen=True)
class Mode:
    """A mode of the table of anomalies."""

    concurrency: ConcurrencyMode
    lock: str
    version: Literal[6, 8, 9]
    kind: Literal["cow", "mor"]
    in_bucket: bool = False
    has_metadata: bool = True
    """Whether the table has a metadata table, so that readers do not list files."""

    def __str__(self) -> str:
        concurrency = self.concurrency.name.lower().replace("_", "-")
        lock = "" if self.concurrency is ConcurrencyMode.SINGLE_WRITER else f"-{LOCKS[self.lock]}"
        bucket = "-bucket" * self.in_bucket
        return f"{concurrency}{lock}-v{self.version}-{self.kind}{bucket}"

    @property
    def options(self) -> dict[str, str]:
        """The options of all clients."""
        options = {
            MODE: self.concurrency.value,
            # New keys go to file groups of their own.
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.bloom.index.filter.type": "SIMPLE",
            "hoodie.index.bloom.num_entries": "16",
            "hoodie.index.type": "SIMPLE",
            "hoodie.metadata.enable": str(self.has_metadata).lower(),
        }
        if self.lock != lock_options.STORAGE:
            options[PROVIDER] = self.lock
            options[lock_options.SKEW_MS] = "0"
        if self.in_bucket:
            options[lock_options.SKEW_MS] = "0"
        if self.concurrency is ConcurrencyMode.NON_BLOCKING:
            options |= {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
        return options


LOCKS = {
    lock_options.STORAGE: "storage-lock",
    lock_options.FILE_SYSTEM: "file-lock",
    lock_options.IN_PROCESS: "process-lock",
}
_OPTIMISTIC, _SINGLE = ConcurrencyMode.OPTIMISTIC, ConcurrencyMode.SINGLE_WRITER
_STORAGE = lock_options.STORAGE

DEFAULT = [Mode(_OPTIMISTIC, _STORAGE, 9, kind) for kind in ("cow", "mor")] + [
    Mode(_OPTIMISTIC, _STORAGE, version, kind) for version in (8, 6) for kind in ("cow", "mor")
]
OTHER_LOCKS = [
    Mode(_OPTIMISTIC, lock_options.FILE_SYSTEM, 9, "cow"),
    Mode(_OPTIMISTIC, lock_options.FILE_SYSTEM, 6, "mor"),
    Mode(_OPTIMISTIC, lock_options.IN_PROCESS, 9, "mor"),
]
BUCKETS = [
    Mode(_OPTIMISTIC, _STORAGE, 9, "mor", in_bucket=True),
]
NON_BLOCKING = [
    Mode(ConcurrencyMode.NON_BLOCKING, _STORAGE, 9, "mor"),
    Mode(ConcurrencyMode.NON_BLOCKING, _STORAGE, 8, "mor"),
]
UNLOCKED = [
    Mode(_SINGLE, _STORAGE, 9, "mor"),
    Mode(_SINGLE, _STORAGE, 6, "mor"),
]
LOCAL_MODES = [*DEFAULT, *OTHER_LOCKS, *NON_BLOCKING, *UNLOCKED]

_FEW_STEPS = (BEGIN_LOCK, DATA, COMPLETE, CLEAN_UP, READ_TIMELINE, READ_METADATA)


def steps_in(mode: Mode) -> tuple[str, ...] | None:
    """The steps at which clients are held in a mode; None for all of them."""
    return None if mode in DEFAULT[:2] else _FEW_STEPS


def rows_of(values: dict[str, str]) -> pa.Table:
    """The rows with these values by key."""
    return pa.table(
        {
            "id": [*values],
            "city": [CITIES[key] for key in values],
            "v": [*values.values()],
        },
        SCHEMA,
    )


def create(mode: Mode, uri: str, storage_options: dict[str, str] | None = None) -> None:
    """Create the table of a mode with its first rows."""
    table = pyhudi.create_table(
        uri,
        SCHEMA,
        key="id",
        partition_by="city",
        type=mode.kind,
        version=mode.version,
        options=mode.options,
        storage_options=storage_options,
    )
    table.upsert(rows_of(START))
