"""The small worlds that the explorer runs."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.config.lock_options import FILE_EXPIRE, FILE_SYSTEM, PROVIDER
from tests.sim.small_runs import SmallKind
from tests.sim.table_kinds import Kind


@dataclass(frozen=True)
class FileLockKind(Kind):
    """A table with Hudi's file-based lock, which expires after a minute."""

    def __str__(self) -> str:
        """The name of the kind."""
        return f"{super().__str__()}-file-lock"

    @property
    def options(self) -> dict[str, str]:
        """The options of its writers."""
        return {**super().options, PROVIDER: FILE_SYSTEM, FILE_EXPIRE: "1"}


COW = Kind(9, "cow", "SIMPLE")
RECORD_INDEX = Kind(9, "cow", "RECORD_INDEX", metadata=True)
NON_BLOCKING = Kind(8, "mor", "BUCKET", non_blocking=True)

SPLIT = Kind(9, "cow", "SIMPLE", is_split=True)
OLD_COMMITS = Kind(9, "cow", "SIMPLE", is_cleaned=True, commits=4)

WRITERS = [
    SmallKind(COW, ("increment", "increment")),
    SmallKind(COW, ("insert", "insert"), same_machine=False),
    SmallKind(COW, ("update", "update other row"), retries=1),
    SmallKind(COW, ("update", "update other partition"), same_machine=False, on_object_store=True),
    SmallKind(COW, ("update", "delete"), on_object_store=True),
    SmallKind(COW, ("insert", "insert"), on_object_store=True),
    SmallKind(FileLockKind(9, "cow", "SIMPLE"), ("increment", "increment")),
    SmallKind(Kind(6, "cow", "GLOBAL_SIMPLE"), ("insert", "insert")),
    SmallKind(Kind(6, "mor", "SIMPLE"), ("increment", "increment"), same_machine=False),
    SmallKind(Kind(9, "mor", "BUCKET"), ("insert", "insert")),
    SmallKind(NON_BLOCKING, ("update", "update")),
    SmallKind(NON_BLOCKING, ("insert", "insert"), same_machine=False),
    SmallKind(RECORD_INDEX, ("insert", "insert")),
    SmallKind(Kind(9, "mor", "RECORD_INDEX", metadata=True), ("increment", "increment")),
    SmallKind(
        Kind(6, "mor", "BLOOM", metadata=True), ("increment", "increment"), same_machine=False
    ),
]
READERS = [
    SmallKind(COW, ("update", "read")),
    SmallKind(
        Kind(9, "cow", "SIMPLE", is_new=True), ("insert", "insert and read"), same_machine=False
    ),
    SmallKind(Kind(6, "mor", "SIMPLE"), ("update", "read")),
    SmallKind(Kind(9, "mor", "RECORD_INDEX", metadata=True), ("insert", "read")),
]
SERVICES = [
    SmallKind(Kind(9, "mor", "BUCKET"), ("update", "compact")),
    SmallKind(Kind(6, "mor", "SIMPLE"), ("update", "compact"), same_machine=False),
    SmallKind(SPLIT, ("update", "cluster")),
    SmallKind(SPLIT, ("insert", "cluster"), same_machine=False),
    SmallKind(SPLIT, ("read", "cluster")),
]
CLEANS_AND_ARCHIVES = [
    SmallKind(OLD_COMMITS, ("update", "clean")),
    SmallKind(OLD_COMMITS, ("read", "clean")),
    SmallKind(Kind(6, "cow", "GLOBAL_SIMPLE", is_cleaned=True, commits=4), ("insert", "clean")),
    SmallKind(
        Kind(9, "cow", "RECORD_INDEX", metadata=True, is_cleaned=True, commits=4),
        ("update", "clean"),
    ),
    SmallKind(OLD_COMMITS, ("update", "archive"), same_machine=False),
    SmallKind(OLD_COMMITS, ("read", "archive")),
    SmallKind(Kind(6, "cow", "GLOBAL_SIMPLE", is_cleaned=True, commits=4), ("update", "archive")),
]
WITHOUT_INDEX = Kind(9, "cow", "SIMPLE", metadata=True)
TABLE_CHANGES = [
    SmallKind(WITHOUT_INDEX, ("insert", "create index")),
    SmallKind(Kind(6, "mor", "SIMPLE", metadata=True), ("insert", "create index")),
    SmallKind(WITHOUT_INDEX, ("insert", "create index blocking"), same_machine=False),
    SmallKind(RECORD_INDEX, ("insert", "drop index")),
    SmallKind(COW, ("insert", "widen column")),
    SmallKind(COW, ("insert", "restore")),
    SmallKind(COW, ("read", "restore")),
    SmallKind(Kind(9, "mor", "RECORD_INDEX", metadata=True), ("insert", "restore")),
    SmallKind(Kind(6, "mor", "SIMPLE"), ("update", "restore"), same_machine=False),
]
"""One task changes an index, a column or the commits of the table."""
SMALL_KINDS = [*WRITERS, *READERS, *SERVICES, *CLEANS_AND_ARCHIVES, *TABLE_CHANGES]
