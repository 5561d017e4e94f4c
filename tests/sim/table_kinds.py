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
"""City and value by id."""

SMALL = {
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.index.bloom.num_entries": "16",
    "hoodie.write.lock.wait_time_ms": "60000",
}
RINGS = {
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.max.num.buckets": "4",
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.parquet.max.file.size": "1000000",
    "hoodie.bucket.index.split.threshold": "0.000001",
}
CITIES = ("rome", "oslo")
START: Rows = {f"k{n}": (CITIES[n % 2], 0) for n in range(4)}
"""In each table at first."""


@dataclass(frozen=True)
class Kind:
    """A kind of table."""

    version: int
    type: Literal["cow", "mor"]
    index: str
    metadata: bool = False
    gives_way: bool = True
    """Else writers append to the same buckets, and the later request wins."""
    forgets: bool = False
    """What may be cleaned and archived is."""
    writers_first: bool = False
    """Clusterings give way to writers."""
    rings: bool = False
    """Buckets are split and merged."""
    groups: bool = False
    """Most writes are group commits."""
    background: bool = False
    """A thread runs the services after the commits of a writer."""
    streams: bool = False
    """A stream follows the table."""
    changes: bool = False
    """It has change logs, which the stream reads."""
    is_new: bool = False
    """It has no commit at first."""
    commits: int = 1
    """The number of commits that it has at first otherwise, all of the same rows."""

    def __str__(self) -> str:
        more = "-metadata" * self.metadata + "-appends" * (not self.gives_way)
        more += "-forgets" * self.forgets + "-writers-first" * self.writers_first
        more += "-rings" * self.rings + "-groups" * self.groups
        more += "-background" * self.background + "-streams" * self.streams
        more += "-changes" * self.changes + "-new" * self.is_new
        more += f"-{self.commits}-commits" * (self.commits > 1)
        return f"v{self.version}-{self.type}-{self.index}{more}".lower()

    @property
    def first_rows(self) -> Rows:
        """The rows that the table has at first."""
        return {} if self.is_new else START

    @property
    def services(self) -> tuple[str, ...]:
        """Those that run beside its writers. Where none gives way, who comes later wins."""
        makes_index = self.metadata and self.index == "SIMPLE"
        found = (
            ("compact", self.type == "mor"),
            ("log_compact", self.type == "mor"),
            ("cluster", (self.index != "BUCKET" or self.rings) and not makes_index),
            ("index", makes_index),
            ("clean", self.forgets),
            ("archive", self.forgets),
        )
        return tuple(name for name, has in found if has and self.gives_way)

    @property
    def options(self) -> dict[str, str]:
        chosen = {"hoodie.index.type": self.index}
        if self.index == "BUCKET":
            # Of few keys some have a bucket that nobody has made yet.
            chosen["hoodie.bucket.index.num.buckets"] = "5"
        if self.rings:
            chosen |= RINGS
        if not self.gives_way:
            chosen[MODE] = ConcurrencyMode.NON_BLOCKING.value
        if self.index == "SIMPLE" and self.version == 9:
            # New keys go to file groups of their own.
            chosen["hoodie.parquet.small.file.limit"] = "0"
        if self.writers_first:
            chosen[STRATEGY] = "PreferWriterConflictResolutionStrategy"
        if self.forgets:
            chosen |= {COMPACT_AFTER: "2", "hoodie.clean.commits.retained": "1"}
        return {**SMALL, **chosen, "hoodie.metadata.enable": str(self.metadata).lower()}


KINDS = [
    Kind(9, "cow", "SIMPLE"),
    Kind(9, "mor", "BUCKET"),
    Kind(8, "mor", "BUCKET", gives_way=False),
    Kind(8, "mor", "SIMPLE"),
    Kind(6, "mor", "SIMPLE"),
    Kind(6, "cow", "GLOBAL_SIMPLE"),
    Kind(9, "cow", "SIMPLE", forgets=True),
    Kind(6, "mor", "SIMPLE", forgets=True),
    Kind(8, "mor", "SIMPLE", writers_first=True),
    Kind(6, "cow", "SIMPLE", writers_first=True),
    Kind(9, "mor", "BUCKET", rings=True),
    Kind(6, "mor", "BUCKET", rings=True, forgets=True),
]
KEPT = [
    Kind(9, "cow", "RECORD_INDEX", metadata=True),
    Kind(9, "mor", "RECORD_INDEX", metadata=True),
    Kind(9, "mor", "SIMPLE", metadata=True),
    Kind(6, "mor", "BLOOM", metadata=True),
    Kind(6, "mor", "SIMPLE", metadata=True),
    Kind(9, "mor", "BUCKET", metadata=True, gives_way=False),
    Kind(8, "mor", "RECORD_INDEX", metadata=True, forgets=True),
]

GROUPED = [
    Kind(9, "cow", "SIMPLE", groups=True),
    Kind(9, "mor", "RECORD_INDEX", metadata=True, groups=True),
    Kind(8, "mor", "BUCKET", groups=True),
    Kind(6, "mor", "SIMPLE", groups=True, forgets=True),
]

BACKGROUND = [
    Kind(9, "cow", "SIMPLE", forgets=True, background=True),
    Kind(8, "mor", "RECORD_INDEX", metadata=True, forgets=True, background=True),
    Kind(6, "mor", "SIMPLE", forgets=True, background=True),
]

FOLLOWED = [
    Kind(9, "cow", "SIMPLE", streams=True),
    Kind(9, "mor", "BUCKET", streams=True),
    Kind(8, "mor", "SIMPLE", streams=True),
    Kind(6, "mor", "SIMPLE", streams=True),
    Kind(6, "cow", "GLOBAL_SIMPLE", streams=True),
    Kind(9, "cow", "SIMPLE", forgets=True, streams=True),
    Kind(8, "mor", "RECORD_INDEX", metadata=True, forgets=True, streams=True),
    Kind(6, "mor", "SIMPLE", forgets=True, streams=True),
    Kind(9, "mor", "SIMPLE", streams=True, changes=True),
    Kind(8, "cow", "SIMPLE", streams=True, changes=True),
    Kind(6, "mor", "BUCKET", streams=True, changes=True),
]
"""Tables with a stream, of one kind or of the changes."""


def rows_of(given: dict[str, tuple[str, int]]) -> pa.Table:
    ids = list(given)
    return pa.table(
        {
            "id": ids,
            "city": [given[i][0] for i in ids],
            "v": pa.array([given[i][1] for i in ids], pa.int32()),
        }
    )


def make(base: Path, kind: Kind) -> None:
    """A table of a kind, which is the same in each run."""
    with pytest.MonkeyPatch.context() as patch:
        _steady(patch)
        _made(base, kind)


def _steady(patch: pytest.MonkeyPatch) -> None:
    """The machine's clock and ids are the same in each run."""
    world = World(0, Odds())
    clock = WorldClock(world, Task("start", lambda _: None, world))
    moments = itertools.count(START_MS - 3_600_000)
    patch.setattr(SystemClock, "now_ms", lambda _: next(moments))
    patch.setattr(SystemClock, "uuid", lambda _: clock.uuid())


def _made(base: Path, kind: Kind) -> None:
    created = pyhudi.create_table(
        str(base),
        rows_of(START).schema,
        key="id",
        partition_by="city",
        type=kind.type,
        version=kind.version,
        options={**kind.options, "hoodie.table.cdc.enabled": kind.changes},
    )
    for _ in range(kind.commits if kind.first_rows else 0):
        created.upsert(rows_of(kind.first_rows))
