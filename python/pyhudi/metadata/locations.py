"""What a commit changes of record locations: which files and slices have to be looked at. Pure.

Rows that were only updated stay where they are. Where a commit takes a record away from one place
and brings it to another, its new place counts (`slice/metadata/write` sees to that). Sources:
`HoodieBackedTableMetadataWriter.getRecordIndexAdditionalUpserts`, `RecordIndexMapper` (Hudi 0.15.0,
1.0.2, 1.2.0); unlike they do, what log files delete is found by merging, so that a delete that
loses by its ordering value leaves the record in the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from pyhudi.clock import parse_instant
from pyhudi.config.table_config import TableConfig
from pyhudi.metadata.changed_slices import SliceRows
from pyhudi.metadata.records import KeysTask, Recording, ReplacedTask
from pyhudi.schema.payloads import field_merge
from pyhudi.timeline.commit_metadata import NO_PREVIOUS_COMMIT, CommitMetadata, WriteStat
from pyhudi.txn.table import Table

_COMPACT = "COMPACT"
_DELETE = "DELETE"


def location_tasks(
    data: Table,
    recording: Recording,
    instant: str,
    metadata: CommitMetadata,
    schema: pa.Schema,
    rows: SliceRows,
    *,
    every_log: bool,
) -> Iterator[KeysTask | ReplacedTask]:
    """The tasks of one commit, which is still pending.

    schema: the table's, with meta fields. every_log: what was appended to a log as an update may
    be a key that the index lacks, new in its bucket or back in the file that it was deleted from.
    """
    if metadata.operation_type == _COMPACT:
        return
    ms = parse_instant(instant, data.config.timezone)
    for one in rows.replaced():
        yield ReplacedTask(recording, one.partition, one.file_id, ms, rows.keys(one))
    for stats in _by_group(metadata.write_stats):
        first = stats[0]
        changed = any(stat.num_inserts or stat.num_deletes for stat in stats)
        if changed or (every_log and is_log_path(first.path)):
            task = KeysTask(recording, schema, first.partition_path or "", first.file_id, ms)
            yield _looked_at(task, rows, data.config, metadata.operation_type, stats)


def is_log_path(path: str | None) -> bool:
    """Whether a file is a log file."""
    return (path or "").rsplit("/", 1)[-1].startswith(".")


def _by_group(stats: Iterable[WriteStat]) -> Iterator[list[WriteStat]]:
    """The stats of each file group: several where its log went on in another file."""
    groups: dict[tuple[str, str], list[WriteStat]] = {}
    for stat in stats:
        if stat.path:
            groups.setdefault((stat.partition_path or "", stat.file_id), []).append(stat)
    yield from groups.values()


def _looked_at(
    task: KeysTask,
    rows: SliceRows,
    config: TableConfig,
    operation: str | None,
    stats: list[WriteStat],
) -> KeysTask:
    """The task with the files that tell which keys came and left."""
    first = stats[0]
    if is_log_path(first.path):
        task = replace(task, logs=tuple(stat.path for stat in stats if stat.path))
        if not any(stat.num_deletes for stat in stats):
            return task
        after = rows.after(stats, alone=_always_wins(config, operation))
        return replace(task, after=rows.keys(after, with_own=True))
    task = replace(task, base=first.path)
    if first.prev_commit == NO_PREVIOUS_COMMIT:
        return task
    if config.is_merge_on_read:
        before = rows.before(first)
        return replace(task, before=None if before is None else rows.keys(before))
    return replace(task, previous_instant=first.prev_commit)


def _always_wins(config: TableConfig, operation: str | None) -> bool:
    """Whether a delete takes the record away whatever is stored: it has no ordering value then."""
    by_commit_time = field_merge(config) is None and config.merge.mode == "COMMIT_TIME_ORDERING"
    return operation == _DELETE or by_commit_time
