"""Compacting the metadata table: the log files of all its file groups go into new base files.

The plan is that of any table; the records are merged by the payload's rules in the Rust core. A
compaction that a dying writer left is carried out again by its plan, by pyhudi or by Apache Hudi.
When it is due: `HoodieBackedTableMetadataWriter.compactIfNecessary` (Hudi 0.15.0, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyhudi import _native
from pyhudi.config.actions import COMMIT, COMPACTION, DELTA_COMMIT, State
from pyhudi.config.file_names import parse_base_name
from pyhudi.metadata.checks_before_write import record_schema
from pyhudi.metadata.compact_group import EXTENSION, CompactGroupTask, compact_group
from pyhudi.metadata.group import groups_of
from pyhudi.slices.compaction_plan import compaction_plan
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.planned import planned_slices
from pyhudi.timeline import Instant, Timeline, content
from pyhudi.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata, by_partition
from pyhudi.txn.table import Table

SUFFIX = "001"
"""What a compaction's instant adds to that of the last delta commit, up to table version 6."""


def is_due(own: Table, deltas: int) -> bool:
    """Whether so many delta commits were completed since the last compaction.

    None is due while one is pending, also of the log compactions that Hudi can be told to do.
    """
    timeline = own.timeline
    if any(not i.is_completed and i.action.endswith(COMPACTION) for i in timeline.instants):
        return False
    return len(since_compaction(timeline)) >= deltas


def since_compaction(timeline: Timeline) -> list[Instant]:
    """Delta commits completed since the last compaction, all where there was none."""
    last = next((i.requested for i in reversed(timeline.completed(COMMIT))), "")
    named = timeline.completes_in_names
    deltas = timeline.completed(DELTA_COMMIT)
    return [one for one in deltas if ((one.completed if named else one.requested) or "") > last]


def compact(own: Table, partitions: Collection[str]) -> str | None:
    """Compacts the slices with log files; the compaction's instant, None when there is none.

    The caller has seen to it that every delta commit is one of a completed instant.
    """
    slices = _with_logs(own, partitions)
    instant = service_instant(own, SUFFIX)
    known = {one.requested for one in own.timeline.instants}
    if not slices or instant is None or instant in known:
        return None
    plan = content.encode_container("HoodieCompactionPlan", compaction_plan(slices), own.clock)
    own.config.layout.request(own.storage, instant, COMPACTION, plan)
    _carry_out(own, instant, slices)
    return instant


def service_instant(own: Table, suffix: str) -> str | None:
    """The instant of a service that is about to begin; None where the timeline allows none."""
    if not own.config.version.metadata_services_have_suffixes:
        return own.generator.next()
    deltas = own.timeline.completed(DELTA_COMMIT)
    return f"{deltas[-1].requested}{suffix}" if deltas else None


def complete_pending(own: Table) -> bool:
    """Carries out the compactions that are pending, by their plans. Whether there were any.

    Raises `CorruptTable` for a plan whose files are gone.
    """
    pending = own.timeline.pending_compactions
    for instant in pending:
        plan = own.timeline.plan(instant) or {}
        slices = planned_slices(own.storage, plan.get("operations") or (), EXTENSION)
        own.config.layout.remove(own.storage, instant.requested, COMPACTION, State.INFLIGHT)
        _carry_out(own, instant.requested, slices)
    return bool(pending)


def _with_logs(own: Table, partitions: Collection[str]) -> list[FileSlice]:
    view = FileSystemView(own.storage, own.config, own.timeline, set(partitions))
    return [one for one in view.slices() if one.logs]


def _carry_out(
    own: Table,
    instant: str,
    slices: Sequence[FileSlice],
) -> None:
    layout, version = own.config.layout, own.config.version
    _remove_written(own, instant, {one.partition for one in slices}, kept=())
    layout.inflight(own.storage, instant, COMPACTION)
    schema = record_schema(version.metadata_schema)
    groups = groups_of(own.storage, own.config, own.timeline, slices)
    names_previous = not version.commit_metadata_as_json
    tasks = [
        CompactGroupTask(group, one, instant, schema, names_previous)
        for group, one in zip(groups, slices, strict=True)
    ]
    stats = own.engine.run(compact_group, tasks, label="compact the metadata table")
    metadata = CommitMetadata(
        by_partition(stats),
        compacted=True,
        extra_metadata={SCHEMA_KEY: _native.without_meta_fields(schema)},
        operation_type="COMPACT",
    )
    paths = [stat.path for stat in stats if stat.path]
    _remove_written(own, instant, {one.partition for one in slices}, kept=paths)
    data = metadata.encode(version, COMPACTION, own.clock)
    layout.complete(own.storage, instant, COMPACTION, own.generator.next(), data)


def _remove_written(
    own: Table, instant: str, partitions: Collection[str], kept: Collection[str]
) -> None:
    """Removes base files that other attempts of the compaction wrote."""
    for partition in sorted(partitions):
        for file in own.storage.list_dir(partition)[1]:
            base = parse_base_name(file.name, EXTENSION)
            if base is not None and base.instant == instant and file.path not in kept:
                own.storage.delete(file.path)
