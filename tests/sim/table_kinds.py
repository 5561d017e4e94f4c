"""Kinds of tables that the simulation of several writers runs on, and their first rows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.config.lock_options import MODE, STRATEGY, ConcurrencyMode
from pyhudi.config.metadata_options import COMPACT_AFTER
from tests.sim.world import START_MS, Odds, Task, World, WorldClock

Rows = dict[str, tuple[str, int]]
"""City and value of each row, by id."""

BASE_OPTIONS = {
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.index.bloom.num_entries": "16",
    "hoodie.write.lock.wait_time_ms": "60000",
}
CONSISTENT_HASHING = {
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.max.num.buckets": "4",
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.parquet.max.file.size": "1000000",
    "hoodie.bucket.index.split.threshold": "0.000001",
}
CITIES = ("rome", "oslo")
FIRST_ROWS: Rows = {f"k{n}": (CITIES[n % 2], 0) for n in range(4)}
"""The rows of each table before the simulation begins."""


@dataclass(frozen=True)
class Kind:
    """A kind of table: its format, its index and its concurrency settings."""

    version: int
    type: Literal["cow", "mor"]
    index: str
    metadata: bool = False
    """The table has a metadata table."""
    non_blocking: bool = False
    """Writers append to the same file groups without conflicts, and the later request wins."""
    is_cleaned: bool = False
    """Tasks clean and archive the table."""
    prefers_writers: bool = False
    """A clustering aborts on a conflict with a writer."""
    consistent_hashing: bool = False
    """Clusterings split and merge the buckets."""
    group_commits: bool = False
    """Most writes are group commits."""
    background_services: bool = False
    """A thread runs the services after the commits of a writer."""
    has_stream: bool = False
    """A stream reads the table."""
    cdc: bool = False
    """The table has change logs, and the stream reads them."""
    is_new: bool = False
    """The table has no commit at first."""
    commits: int = 1
    """The number of commits that a table has at first unless it is new, all of the same rows."""
    is_split: bool = False
    """Each partition has two file groups at first, which a clustering merges."""

    def __str__(self) -> str:
        suffixes = {
            "metadata": self.metadata,
            "non-blocking": self.non_blocking,
            "cleaned": self.is_cleaned,
            "prefer-writers": self.prefers_writers,
            "consistent-hashing": self.consistent_hashing,
            "group-commits": self.group_commits,
            "background-services": self.background_services,
            "stream": self.has_stream,
            "cdc": self.cdc,
            "new": self.is_new,
            f"{self.commits}-commits": self.commits > 1,
            "split": self.is_split,
        }
        parts = [suffix for suffix, is_set in suffixes.items() if is_set]
        return "-".join([f"v{self.version}", self.type, self.index, *parts]).lower()

    @property
    def first_rows(self) -> Rows:
        """The rows of the table before the simulation begins."""
        return {} if self.is_new else FIRST_ROWS

    @property
    def services(self) -> tuple[str, ...]:
        """The services that run concurrently with the writers; none for non-blocking writers."""
        builds_index = self.metadata and self.index == "SIMPLE"
        has_clustering = self.index != "BUCKET" or self.consistent_hashing
        services = (
            ("compact", self.type == "mor"),
            ("log_compact", self.type == "mor"),
            ("cluster", has_clustering and not builds_index),
            ("index", builds_index),
            ("clean", self.is_cleaned),
            ("archive", self.is_cleaned),
        )
        return tuple(name for name, can_run in services if can_run and not self.non_blocking)

    @property
    def options(self) -> dict[str, str]:
        """The options of the table's writers and readers."""
        options = {"hoodie.index.type": self.index}
        if self.index == "BUCKET":
            # A small number of keys leaves some buckets without a file group.
            options["hoodie.bucket.index.num.buckets"] = "5"
        if self.consistent_hashing:
            options |= CONSISTENT_HASHING
        if self.non_blocking:
            options[MODE] = ConcurrencyMode.NON_BLOCKING.value
        if self.index == "SIMPLE" and self.version == 9:
            # Inserts create file groups.
            options["hoodie.parquet.small.file.limit"] = "0"
        if self.prefers_writers:
            options[STRATEGY] = "PreferWriterConflictResolutionStrategy"
        if self.is_cleaned:
            options |= {COMPACT_AFTER: "2", "hoodie.clean.commits.retained": "1"}
        return {**BASE_OPTIONS, **options, "hoodie.metadata.enable": str(self.metadata).lower()}


KINDS = [
    Kind(9, "cow", "SIMPLE"),
    Kind(9, "mor", "BUCKET"),
    Kind(8, "mor", "BUCKET", non_blocking=True),
    Kind(8, "mor", "SIMPLE"),
    Kind(6, "mor", "SIMPLE"),
    Kind(6, "cow", "GLOBAL_SIMPLE"),
    Kind(9, "cow", "SIMPLE", is_cleaned=True),
    Kind(6, "mor", "SIMPLE", is_cleaned=True),
    Kind(8, "mor", "SIMPLE", prefers_writers=True),
    Kind(6, "cow", "SIMPLE", prefers_writers=True),
    Kind(9, "mor", "BUCKET", consistent_hashing=True),
    Kind(6, "mor", "BUCKET", consistent_hashing=True, is_cleaned=True),
]
METADATA_KINDS = [
    Kind(9, "cow", "RECORD_INDEX", metadata=True),
    Kind(9, "mor", "RECORD_INDEX", metadata=True),
    Kind(9, "mor", "SIMPLE", metadata=True),
    Kind(6, "mor", "BLOOM", metadata=True),
    Kind(6, "mor", "SIMPLE", metadata=True),
    Kind(9, "mor", "BUCKET", metadata=True, non_blocking=True),
    Kind(8, "mor", "RECORD_INDEX", metadata=True, is_cleaned=True),
]

GROUP_COMMIT_KINDS = [
    Kind(9, "cow", "SIMPLE", group_commits=True),
    Kind(9, "mor", "RECORD_INDEX", metadata=True, group_commits=True),
    Kind(8, "mor", "BUCKET", group_commits=True),
    Kind(6, "mor", "SIMPLE", group_commits=True, is_cleaned=True),
]

BACKGROUND_SERVICE_KINDS = [
    Kind(9, "cow", "SIMPLE", is_cleaned=True, background_services=True),
    Kind(8, "mor", "RECORD_INDEX", metadata=True, is_cleaned=True, background_services=True),
    Kind(6, "mor", "SIMPLE", is_cleaned=True, background_services=True),
]

STREAM_KINDS = [
    Kind(9, "cow", "SIMPLE", has_stream=True),
    Kind(9, "mor", "BUCKET", has_stream=True),
    Kind(8, "mor", "SIMPLE", has_stream=True),
    Kind(6, "mor", "SIMPLE", has_stream=True),
    Kind(6, "cow", "GLOBAL_SIMPLE", has_stream=True),
    Kind(9, "cow", "SIMPLE", is_cleaned=True, has_stream=True),
    Kind(8, "mor", "RECORD_INDEX", metadata=True, is_cleaned=True, has_stream=True),
    Kind(6, "mor", "SIMPLE", is_cleaned=True, has_stream=True),
    Kind(9, "mor", "SIMPLE", has_stream=True, cdc=True),
    Kind(8, "cow", "SIMPLE", has_stream=True, cdc=True),
    Kind(6, "mor", "BUCKET", has_stream=True, cdc=True),
]
"""Tables with a stream of rows or of changes."""


def to_arrow(rows: Rows) -> pa.Table:
    """Return the rows as an Arrow table."""
    ids = list(rows)
    return pa.table(
        {
            "id": ids,
            "city": [rows[i][0] for i in ids],
            "v": pa.array([rows[i][1] for i in ids], pa.int32()),
        }
    )


def create_table(base: Path, kind: Kind) -> None:
    """Create a table of a kind, with the same bytes in each run."""
    with pytest.MonkeyPatch.context() as patch:
        _fix_clock_and_ids(patch)
        created = pyhudi.create_table(
            str(base),
            to_arrow(FIRST_ROWS).schema,
            key="id",
            partition_by="city",
            type=kind.type,
            version=kind.version,
            options={**kind.options, "hoodie.table.cdc.enabled": kind.cdc},
        )
        rows = to_arrow(kind.first_rows)
        parts = [rows.slice(0, 2), rows.slice(2)] if kind.is_split else [rows]
        for part in parts * (kind.commits if kind.first_rows else 0):
            created.upsert(part)


def _fix_clock_and_ids(patch: pytest.MonkeyPatch) -> None:
    """Give the machine's clock the same times, and ids the same values, in each run."""
    world = World(0, Odds())
    clock = WorldClock(world, Task("start", lambda _: None, world))
    times = itertools.count(START_MS - 3_600_000)
    patch.setattr(SystemClock, "now_ms", lambda _: next(times))
    patch.setattr(SystemClock, "uuid", lambda _: clock.uuid())
