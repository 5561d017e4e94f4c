"""Compaction: every slice with log files becomes a base file, in one commit. Rows do not change.

What fails is taken back whole, plan included; a writer that dies leaves a pending compaction, which
any writer can complete.
Sources: `ScheduleCompactionActionExecutor`, `RunCompactionActionExecutor` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyhudi.config.actions import COMPACTION, State
from pyhudi.config.property_names import UNFINISHED
from pyhudi.config.write_options import WriteOptions
from pyhudi.schema import schema_history
from pyhudi.schema.table_schema import TableSchema
from pyhudi.slices import markers
from pyhudi.slices.compact import compact_file
from pyhudi.slices.compaction_plan import CompactTask, compact_tasks, compaction_plan
from pyhudi.slices.file_sizes import check_sizes, checks_sizes
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.planned import planned_slices
from pyhudi.timeline import Timeline, content
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat, by_partition
from pyhudi.txn.table import Table
from pyhudi.txn.task_inputs import table_state, write_target
from pyhudi.txn.transaction import remove_unlisted

_STAGE = 1


def compact_all(table: Table, schema: TableSchema, by: str = "") -> str | None:
    """Compacts every slice with log files; the commit's instant, None when there is none.

    schema: the table's. by: name of the unfinished work that it is part of, which the plan then
    says. The table must be recovered, and no compaction or clustering pending. Raises
    `UnsupportedTableFeature` for a merge rule that pyhudi lacks, `CorruptTable` for a log file that
    was cut.
    """
    view = FileSystemView(table.storage, table.config, table.timeline)
    with_logs = [one for one in view.slices() if one.logs]
    if not with_logs:
        return None
    _check_sizes(table, with_logs)
    instant = table.generator.next()
    tasks = _tasks(table, schema, instant, with_logs)
    record = compaction_plan(with_logs, {UNFINISHED: by} if by else None)
    plan = content.encode_container("HoodieCompactionPlan", record, table.clock)
    table.config.layout.request(table.storage, instant, COMPACTION, plan)
    try:
        _carry_out(table, schema, instant, tasks)
    except BaseException:
        _take_back(table, instant)
        raise
    return instant


def complete_compactions(table: Table, schema: TableSchema, by: str = "") -> list[str]:
    """Carries out the compactions that are pending, by their plans; their instants.

    schema: the table's. by: only those that are part of this unfinished work.
    What another writer began of them is removed first, so none must be at work. Raises
    `CorruptTable` for a plan whose files are gone.
    """
    completed = []
    for instant in table.timeline.pending_compactions:
        plan = table.timeline.plan(instant) or {}
        if by and (plan.get("extraMetadata") or {}).get(UNFINISHED) != by:
            continue
        _remove_begun(table, instant.requested)
        slices = planned_slices(table.storage, plan.get("operations") or ())
        _check_sizes(table, slices)
        tasks = _tasks(table, schema, instant.requested, slices)
        _carry_out(table, schema, instant.requested, tasks)
        completed.append(instant.requested)
    return completed


def _check_sizes(table: Table, slices: Sequence[FileSlice]) -> None:
    """Refuses log files that lost records: a compaction would make the loss final."""
    if checks_sizes(table.options):
        check_sizes(table.timeline, slices)


def _tasks(
    table: Table, schema: TableSchema, instant: str, slices: Sequence[FileSlice]
) -> list[CompactTask]:
    target = write_target(table, schema, WriteOptions.of(table.options), instant)
    return compact_tasks(table_state(table, schema), target, slices)


def _carry_out(
    table: Table, schema: TableSchema, instant: str, tasks: Sequence[CompactTask]
) -> None:
    storage, layout = table.storage, table.config.layout
    layout.inflight(storage, instant, COMPACTION)
    stats = table.engine.run(compact_file, tasks, stage=_STAGE, label=f"compact files of {instant}")
    metadata = _metadata(stats, schema_history.words(schema, table.config).extra_metadata(instant))
    remove_unlisted(storage, instant, metadata)
    data = metadata.encode(table.config.version, COMPACTION, table.clock)
    layout.complete(storage, instant, COMPACTION, table.generator.next(), data)
    markers.delete_all(storage, instant)


def _metadata(stats: Sequence[WriteStat], schema: Mapping[str, str]) -> CommitMetadata:
    return CommitMetadata(
        by_partition(stats),
        compacted=True,
        extra_metadata=schema,
        operation_type="COMPACT",
    )


def _take_back(table: Table, instant: str) -> None:
    """Leaves the table as if the compaction had not been planned, unless it is complete."""
    found = Timeline.load(table.storage, table.config).find(instant, COMPACTION)
    if found is None or found.is_completed:
        return
    _remove_begun(table, instant)
    table.config.layout.remove(table.storage, instant, COMPACTION, State.REQUESTED)


def _remove_begun(table: Table, instant: str) -> None:
    """Removes what was written, which no reader sees; the plan stays."""
    storage = table.storage
    remove_unlisted(storage, instant, CommitMetadata())
    table.config.layout.remove(storage, instant, COMPACTION, State.INFLIGHT)
    markers.delete_all(storage, instant)
