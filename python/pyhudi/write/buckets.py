"""bulk_insert and the overwriting verbs under a bucket index: every row goes to its bucket.

bulk_insert makes base files for new buckets. To a bucket that is there it writes as an upsert does,
so that no bucket has two file groups: a log file on merge-on-read as Hudi does, a new base file on
copy-on-write, where Hudi makes a second file group, or refuses (1.0.2, 1.2.0). The overwriting
verbs make every bucket anew. Where rows go is the part of `index/`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.index import locate
from pyhudi.index.renewal import confirm_rings, in_place, renew_rings
from pyhudi.schema.conform import marked_deleted
from pyhudi.schema.record_keys import PARTITION_PATH
from pyhudi.slices.write_tasks import FileGroup, WriteTask
from pyhudi.txn.result import WriteResult
from pyhudi.txn.transaction import Transaction
from pyhudi.write import out_of_core, row_sizes
from pyhudi.write import plan_partitioned as parts
from pyhudi.write import plan_rows as plan
from pyhudi.write.bulk_insert import SortMode
from pyhudi.write.execute import BULK_INSERT, carry_out
from pyhudi.write.incoming import Intake
from pyhudi.write.out_of_core import LookUp
from pyhudi.write.plan_rows import Incoming
from pyhudi.write.write_context import Session


@dataclass(frozen=True)
class Placed:
    """Rows with the file groups that they go to."""

    groups: list[FileGroup]
    whole: Incoming | None
    """The rows where they are in memory, else they are in `parts`."""
    parts: out_of_core.Parts | None = None

    @property
    def partitions(self) -> list[str]:
        """Paths of the partitions that get rows."""
        if self.whole is not None:
            paths = self.whole.rows.column(PARTITION_PATH).combine_chunks()
            return sorted(paths.take(self.whole.tagged.rows).unique().to_pylist())
        return sorted({group.slice.partition for group in self.groups})


def bulk_insert(
    session: Session, taken: Intake, *, sort: SortMode, order: tuple[str, ...]
) -> WriteResult:
    """Adds rows to their buckets, those of each sorted; see `operations.bulk_insert`."""
    if taken.whole is None and sort == "global":
        msg = f"the data are too large to be sorted in {taken.memory_limit} bytes of memory"
        raise ConfigError(msg, hint='Give a greater memory_limit, or sort="partition".')
    with ExitStack() as stack:
        session, placed = _placed(stack, session, taken, locate.look_up, order)
        groups = [replace(group, starts_with_log=False) for group in placed.groups]
        plan.check_not_clustered(groups[number] for number in _hit(placed))
        with Transaction(session.table, BULK_INSERT) as txn:
            tasks = _tasks(session, txn.instant, replace(placed, groups=groups))
            return carry_out(session, txn, tasks, BULK_INSERT)


def placed_anew(stack: ExitStack, session: Session, taken: Intake) -> tuple[Session, Placed]:
    """The rows of an overwriting verb, by buckets that are all to be made; the table cleaned up."""
    return _placed(stack, session, taken, locate.look_up_anew, ())


def overwrite(
    session: Session, placed: Placed, operation: str, replaced: Mapping[str, tuple[str, ...]]
) -> WriteResult:
    """Puts rows in place of file groups. placed: by `placed_anew`."""
    with Transaction(session.table, operation) as txn:
        renewed = renew_rings(session, replaced, txn.instant)
        txn.on_completed(lambda: confirm_rings(session.storage, renewed, txn.instant))
        groups = in_place(placed.groups, renewed)
        tasks = _tasks(session, txn.instant, replace(placed, groups=groups))
        return carry_out(session, txn, tasks, operation, replaced=replaced)


def _placed(
    stack: ExitStack, session: Session, taken: Intake, find: LookUp, order: tuple[str, ...]
) -> tuple[Session, Placed]:
    combine = session.options.combine_inserts
    if taken.whole is None:
        shelved = out_of_core.by_key(stack, taken)
        session = session.recovered()
        limit = taken.memory_limit
        found = out_of_core.by_location(
            stack, session, shelved, limit, combine=combine, deletes=False, find=find, order=order
        )
        return session, Placed(found.groups, None, found)
    rows = locate.combined(session, taken.whole) if combine else taken.whole
    merge = session.config.merge
    deleted = marked_deleted(rows, merge.delete_field, merge.delete_marker)
    if pc.any(deleted).as_py():
        rows = rows.filter(pc.invert(deleted))
    if order:
        rows = rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in order]))
    session = session.recovered()
    none = pa.repeat(pa.scalar(value=False), rows.num_rows)
    located = find(session, rows, none)
    return session, Placed(located.groups, Incoming(rows, none, located.tagged))


def _hit(placed: Placed) -> Sequence[int]:
    if placed.whole is not None:
        numbers: list[int] = placed.whole.tagged.groups.unique().to_pylist()
        return numbers
    return list(placed.parts.updates) if placed.parts else []


def _tasks(session: Session, instant: str, placed: Placed) -> list[WriteTask]:
    target = session.target(instant)
    # A log file is merged by key whatever is said of it here, which is what rows count as.
    by_key = not target.merge_on_read
    row_bytes = row_sizes.row_size(session.timeline, session.options)
    if placed.whole is not None:
        incoming = replace(placed.whole, merge_by_key=by_key)
        return plan.plan_rows(
            target, incoming, placed.groups, row_bytes=row_bytes, new_file_id=session.new_file_id
        )
    found = placed.parts
    if found is None:
        raise AssertionError
    return parts.plan_parts(
        target,
        found.updates,
        found.inserts,
        placed.groups,
        leaving={},
        row_bytes=row_bytes,
        merge_by_key=by_key,
        new_file_id=session.new_file_id,
    )
