"""Removal of expired partitions in one replace commit.

The last modification is that of any write; in Hudi log files count only after compaction. Hudi
1.0.2 and 1.2.0 truncate the days to 32 bits of milliseconds, so 50 days are seven hours; pyhudi
does not. Source: `KeepByTimeStrategy`, `KeepByCreationTimeStrategy`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyhudi.clock import (
    Clock,
    SystemClock,
    early_now_ms,
    format_instant,
    is_bootstrap,
    parse_instant,
)
from pyhudi.config.property_names import BOOTSTRAP_PATH
from pyhudi.config.retention_options import TTL_DAYS, TTL_STRATEGY, TtlOptions
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.services.result import ServiceResult
from pyhudi.slices.file_groups import pending_clusterings, pending_compactions
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.meta_columns import PARTITION_METADATA
from pyhudi.storage.properties import parse_properties
from pyhudi.txn.conflicts import collect_written_file_groups
from pyhudi.write import input_rows
from pyhudi.write.non_blocking import check_appends
from pyhudi.write.overwrite import remove_partitions
from pyhudi.write.table_opening import WritableTable
from pyhudi.write.upsert import open_write
from pyhudi.write.write_context import WriteContext

_SERVICE = "expire_partitions"
_DAY_MS = 86_400_000


def expire_partitions(
    table: WritableTable, options: TtlOptions, *, dry_run: bool = False, clock: Clock | None = None
) -> ServiceResult:
    """See `HudiTable.expire_partitions`."""
    clock = clock or SystemClock()
    if options.days < 1:
        msg = "the number of days after which partitions expire is missing or less than 1"
        raise ConfigError(msg, hint=f"Give days, or {TTL_DAYS}.")
    context = open_write(table, clock, input_rows.memory_limit(None))
    check_appends(context, _SERVICE, appends=False)
    if not context.config.partition_fields:
        raise ConfigError(
            "the table has no partitions", hint="Use delete(where=...) to delete rows."
        )
    context = context if dry_run else context.recover()
    slices = list(context.view().slices())
    expired, reasons = _split_expired(context, slices, options, clock)
    dropped = [slice_ for slice_ in slices if slice_.partition in expired]
    result = ServiceResult(
        _SERVICE,
        file_groups=len(dropped),
        files_removed=sum(len(slice_.files) for slice_ in dropped),
        bytes_removed=sum(slice_.size for slice_ in dropped),
        left=tuple(reasons),
        dry_run=dry_run,
    )
    if not dry_run and expired:
        result = replace(result, instants=(remove_partitions(context, expired).instant,))
    return replace(result, duration_ms=clock.ticks_ms() - context.started_ms)


def _split_expired(
    context: WriteContext, slices: list[FileSlice], options: TtlOptions, clock: Clock
) -> tuple[list[str], list[str]]:
    """Return the expired partitions to drop, oldest first, and the reasons why others are kept."""
    zone, before_ms = context.config.timezone, early_now_ms(clock) - options.days * _DAY_MS
    find_times = _creation_times if options.by_creation else _modification_times
    times = find_times(context, slices)
    for path, instant in sorted(times.items()):
        if is_bootstrap(instant) and (not options.selected or path in options.selected):
            msg = f"{BOOTSTRAP_PATH}: the bootstrap time of partition {path!r} is unknown"
            raise UnsupportedTableFeature(msg, hint="Use delete(where=...) to delete rows.")
    expired = [
        path
        for path, instant in sorted(times.items(), key=lambda item: item[1])
        if parse_instant(instant, zone) < before_ms
        and (not options.selected or path in options.selected)
    ]
    timeline = context.timeline
    planned = {**pending_compactions(timeline), **pending_clusterings(timeline)}
    waiting = {partition for partition, _ in planned}
    reasons = [f"a service of partition {path!r} is pending" for path in expired if path in waiting]
    free = [path for path in expired if path not in waiting]
    reasons += [
        f"partition {path!r}: limit of {options.max_partitions} per run"
        for path in free[options.max_partitions :]
    ]
    return free[: options.max_partitions], reasons


def _modification_times(context: WriteContext, slices: list[FileSlice]) -> dict[str, str]:
    """Return the time of the newest write by partition path."""
    newest: dict[str, str] = {}
    for slice_ in slices:
        times = [slice_.base_instant, *(log.instant for log in slice_.logs)]
        newest[slice_.partition] = max(newest.get(slice_.partition, ""), *times)
    # Up to version 6 a log file's name does not contain the instants of its appends.
    if context.config.version.logs_named_by_base_instant:
        for commit in context.timeline.commits:
            metadata = context.timeline.commit_metadata(commit)
            for partition, _ in collect_written_file_groups(metadata):
                if partition in newest:
                    newest[partition] = max(newest[partition], commit.requested)
        for partition, appended in _append_times_in_archive(context, slices):
            newest[partition] = max(newest[partition], appended)
    return newest


def _append_times_in_archive(
    context: WriteContext, slices: list[FileSlice]
) -> Iterator[tuple[str, str]]:
    """Yield partition paths with an upper bound for log appends of archived commits.

    The bound is a file's modification time, which may be later in a copy of the table.
    """
    start = context.timeline.first_active or ""
    names = {(slice_.partition, log.name) for slice_ in slices for log in slice_.logs}
    for partition in sorted({partition for partition, _ in names}):
        for file in context.storage.list_dir(partition)[1]:
            if (partition, file.name) in names:
                changed = format_instant(file.modified_ms, context.config.timezone)
                yield partition, min(changed, start)


def _creation_times(context: WriteContext, slices: list[FileSlice]) -> dict[str, str]:
    """Return the time of the write that created each partition, by its path."""
    times = {}
    for partition in sorted({slice_.partition for slice_ in slices}):
        file = f"{partition}/{PARTITION_METADATA}"
        data = context.storage.read_or_none(file)
        created = None if data is None else parse_properties(data, file).get("commitTime")
        if created is None:
            msg = (
                f"{TTL_STRATEGY} is KEEP_BY_CREATION_TIME: {file} does not contain the partition's "
                "creation time"
            )
            raise UnsupportedTableFeature(msg, hint="Use KEEP_BY_TIME, which uses the last write.")
        times[partition] = created
    return times
