"""The public result of a write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyhudi.config.formatting import HtmlRepr, count_text, duration_text, size_text
from pyhudi.errors import ConfigError
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.operation_metrics import StageMetrics


@dataclass(frozen=True)
class WriteResult(HtmlRepr):
    """The result of a write. `committed` is false if there was nothing to change."""

    instant: str
    """The requested time, which the rows have as `_hoodie_commit_time`; "" without a commit.
    As a bound of a range it means this commit, and so does its completion time."""
    completion: str
    """The completion time; "" without a commit. Up to table version 6 it is the modification time
    of the file on the timeline, which a copy of the table changes."""
    operation: str
    """Hudi's name of the operation: UPSERT, INSERT, BULK_INSERT, DELETE, INSERT_OVERWRITE,
    INSERT_OVERWRITE_TABLE, DELETE_PARTITION or ALTER_SCHEMA."""
    rows_inserted: int
    rows_updated: int
    """Rows replaced; in merge-on-read tables the updates appended to logs, including those that a
    greater stored ordering value overrides on read."""
    rows_deleted: int
    """Rows removed; in merge-on-read tables the deletes appended to logs."""
    files_written: int
    bytes_written: int
    partitions: tuple[str, ...]
    """Partition paths with written files, sorted."""
    rows_ignored: int | None = None
    """Input rows that changed nothing, because a row of their key with a greater ordering value is
    stored; a null counts as 0, or as the smallest string. None in merge-on-read tables: there rows
    are appended to logs, and are dropped on read."""
    bytes_read: int = 0
    """Full sizes of the base and log files that were read to be rewritten, although only the keys
    of some may be read. Files that were only searched for keys do not count."""
    duration_ms: int = 0
    """From opening the table to the commit."""
    file_groups_replaced: int = 0
    """File groups that readers no longer see, because an overwrite replaced them."""
    rows_kept_in_partition: int = 0
    """Updated rows whose partition columns name another partition than the one that has their key,
    and that stay in it, because the index does not move rows."""

    rows_moved: int = 0
    """Upserted rows that moved to another partition, if the index supports that: each counts as
    deleted in the partition that had its key and as inserted in its own."""

    rows_in: int | None = None
    """Input rows, including deletes and keys to delete. None if they were not counted: for a Spark
    DataFrame, and for methods without input rows."""
    duplicates_dropped: int | None = None
    """Input rows that were dropped before anything was written: another input row has the same key
    and wins, or, for an `insert` that drops existing keys, the table has their key. None if
    `rows_in` is None."""

    rows_rejected: int = 0
    """Input rows that break a rule of the table, and are in the table that `rejected` names."""

    was_written_before: bool = False
    """Nothing was written now: a write with the same `commit_id` is on the timeline, and this is
    its result."""

    metrics: tuple[StageMetrics, ...] = field(default=(), compare=False)
    """The work by stage, in the order of the first task: looking up keys, writing files, writing
    the metadata table. Last the stages of services that ran after the commit, such as
    "table services: compact files"; services that run in the background are not in it."""

    @property
    def committed(self) -> bool:
        """Whether there is a commit: a write that changes nothing makes none."""
        return self.instant != ""

    @property
    def position(self) -> str:
        """The position after this commit, in the history of the table.

        `incremental`, `changes` and `stream` take it as `start` to begin after the commit, and as
        `end` to end with it; with `as_of` and `diff` it means the snapshot of the commit.

        Raises `ConfigError` if there is no commit.
        """
        if not self.committed:
            msg = "the write changed nothing, so it has no commit and no position"
            raise ConfigError(msg, hint="`table.scan().position` is that of the last commit.")
        return self.instant

    def __repr__(self) -> str:
        if not self.committed:
            return f"<WriteResult {self.operation}: nothing to change, no commit>"
        rows = f"{self.rows_inserted:,} inserted, {self.rows_updated:,} updated"
        rows += f", {self.rows_deleted:,} deleted"
        if self.rows_ignored:
            rows += f", {self.rows_ignored:,} ignored"
        if self.duplicates_dropped:
            rows += f", {count_text(self.duplicates_dropped, 'duplicate')} dropped"
        if self.rows_kept_in_partition:
            rows += f", {self.rows_kept_in_partition:,} kept in their partition"
        if self.rows_moved:
            rows += f", {self.rows_moved:,} of them moved to another partition"
        if self.rows_rejected:
            rows += f", {self.rows_rejected:,} rejected"
        files = f"{count_text(self.files_written, 'file')} of {size_text(self.bytes_written)}"
        in_partitions = f"in {count_text(len(self.partitions), 'partition')}"
        parts = [rows, f"{files} {in_partitions}"]
        if self.file_groups_replaced:
            parts.append(f"{count_text(self.file_groups_replaced, 'file group')} replaced")
        parts.append(
            "written before" if self.was_written_before else duration_text(self.duration_ms)
        )
        return f"<WriteResult {self.operation} {self.instant}: {'; '.join(parts)}>"


def result_of(
    instant: str,
    completion: str,
    operation: str,
    stats: Sequence[WriteStat],
    *,
    rows_ignored: int | None = None,
    bytes_read: int = 0,
    duration_ms: int = 0,
    file_groups_replaced: int = 0,
) -> WriteResult:
    """Sum up the statistics of files, and add the values that they do not contain."""
    return WriteResult(
        instant=instant,
        completion=completion,
        operation=operation,
        rows_inserted=sum(stat.num_inserts for stat in stats),
        rows_updated=sum(stat.num_update_writes for stat in stats),
        rows_deleted=sum(stat.num_deletes for stat in stats),
        files_written=len(stats),
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        partitions=tuple(sorted({stat.partition_path or "" for stat in stats})),
        rows_ignored=rows_ignored,
        bytes_read=bytes_read,
        duration_ms=duration_ms,
        file_groups_replaced=file_groups_replaced,
    )
