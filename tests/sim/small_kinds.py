"""The small worlds that are explored."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.config.lock_options import FILE_EXPIRE, FILE_SYSTEM, PROVIDER
from tests.sim.small_runs import SmallKind
from tests.sim.table_kinds import Kind


@dataclass(frozen=True)
class FileLocked(Kind):
    """A table with Hudi's lock that is a file, which expires after a minute."""

    def __str__(self) -> str:
        """The name of the kind."""
        return f"{super().__str__()}-file-lock"

    @property
    def options(self) -> dict[str, str]:
        """The options of its writers."""
        return {**super().options, PROVIDER: FILE_SYSTEM, FILE_EXPIRE: "1"}


COW = Kind(9, "cow", "SIMPLE")
INDEXED = Kind(9, "cow", "RECORD_INDEX", metadata=True)
APPENDED = Kind(8, "mor", "BUCKET", gives_way=False)

AGED = Kind(9, "cow", "SIMPLE", forgets=True, commits=4)

WRITERS = [
    SmallKind(COW, ("increment", "increment")),
    SmallKind(COW, ("insert", "insert"), same_machine=False),
    SmallKind(COW, ("update", "update other"), retries=1),
    SmallKind(COW, ("update", "update far"), same_machine=False, is_far=True),
    SmallKind(COW, ("update", "delete"), is_far=True),
    SmallKind(COW, ("insert", "insert"), is_far=True),
    SmallKind(FileLocked(9, "cow", "SIMPLE"), ("increment", "increment")),
    SmallKind(Kind(6, "cow", "GLOBAL_SIMPLE"), ("insert", "insert")),
    SmallKind(Kind(6, "mor", "SIMPLE"), ("increment", "increment"), same_machine=False),
    SmallKind(Kind(9, "mor", "BUCKET"), ("insert", "insert")),
    SmallKind(APPENDED, ("update", "update")),
    SmallKind(APPENDED, ("insert", "insert"), same_machine=False),
    SmallKind(INDEXED, ("insert", "insert")),
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
SERVED = [
    SmallKind(Kind(9, "mor", "BUCKET"), ("update", "compact")),
    SmallKind(Kind(6, "mor", "SIMPLE"), ("update", "compact"), same_machine=False),
    SmallKind(COW, ("update", "cluster")),
]
CLEANED = [
    SmallKind(AGED, ("update", "clean")),
    SmallKind(AGED, ("read", "clean")),
    SmallKind(Kind(6, "cow", "GLOBAL_SIMPLE", forgets=True, commits=4), ("insert", "clean")),
    SmallKind(
        Kind(9, "cow", "RECORD_INDEX", metadata=True, forgets=True, commits=4), ("update", "clean")
    ),
    SmallKind(AGED, ("update", "archive"), same_machine=False),
    SmallKind(AGED, ("read", "archive")),
    SmallKind(Kind(6, "cow", "GLOBAL_SIMPLE", forgets=True, commits=4), ("update", "archive")),
]
TO_INDEX = Kind(9, "cow", "SIMPLE", metadata=True)
CHANGED = [
    SmallKind(TO_INDEX, ("insert", "create index")),
    SmallKind(Kind(6, "mor", "SIMPLE", metadata=True), ("insert", "create index")),
    SmallKind(TO_INDEX, ("insert", "create index blocking"), same_machine=False),
    SmallKind(INDEXED, ("insert", "drop index")),
    SmallKind(COW, ("insert", "widen column")),
    SmallKind(COW, ("insert", "restore")),
    SmallKind(COW, ("read", "restore")),
    SmallKind(Kind(9, "mor", "RECORD_INDEX", metadata=True), ("insert", "restore")),
    SmallKind(Kind(6, "mor", "SIMPLE"), ("update", "restore"), same_machine=False),
]
"""An index, a column or the commits of a table change."""
SMALL_KINDS = [*WRITERS, *READERS, *SERVED, *CLEANED, *CHANGED]
