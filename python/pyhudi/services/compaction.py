"""Compaction: every slice with log files becomes a base file, in one commit. Rows do not change.

What fails is taken back whole, plan included; a writer that dies leaves a pending compaction, which
any writer can complete.
Sources: `ScheduleCompactionActionExecutor`, `RunCompactionActionExecutor` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyhudi.metadata.unfinished import UNFINISHED
from pyhudi.plan.compact import CompactTask, compact_tasks, compaction_plan
from pyhudi.timeline import Timeline, content
from pyhudi.timeline.instants import COMPACTION, State
from pyhudi.timeline.metadata import CommitMetadata, WriteStat, by_partition
from pyhudi.txn import markers
from pyhudi.txn.transaction import remove_unlisted
from pyhudi.view.planned import planned_slices
from pyhudi.view.sizes import check_sizes, checks_sizes
from pyhudi.work.compact import compact_file

if TYPE_CHECKING:
    from pyhudi.txn.session import Session
    from pyhudi.view.slices import FileSlice

_STAGE = 1


def compact_all(session: Session, by: str = "") -> str | None:
    """Compacts every slice with log files; the commit's instant, None when there is none.

    by: name of the unfinished work that it is part of, which the plan then says.
    The session must be recovered, and no compaction or clustering pending. Raises
    `UnsupportedTableFeature` for a merge rule that pyhudi lacks, `CorruptTable` for a log file that
    was cut.
    """
    _, slices = session.groups(None)
    with_logs = [one for one in slices if one.logs]
    if not with_logs:
        return None
    _check_sizes(session, with_logs)
    writer = session.writer
    instant = writer.generator.next()
    tasks = compact_tasks(session.state(), session.target(instant), with_logs)
    record = compaction_plan(with_logs, {UNFINISHED: by} if by else None)
    plan = content.encode_container("HoodieCompactionPlan", record, writer.clock)
    writer.config.layout.request(writer.storage, instant, COMPACTION, plan)
    try:
        _carry_out(session, instant, tasks)
    except BaseException:
        _take_back(session, instant)
        raise
    return instant


def complete_compactions(session: Session, by: str = "") -> list[str]:
    """Carries out the compactions that are pending, by their plans; their instants.

    by: only those that are part of this unfinished work.
    What another writer began of them is removed first, so none must be at work. Raises
    `CorruptTable` for a plan whose files are gone.
    """
    completed = []
    for instant in session.timeline.pending_compactions:
        plan = session.timeline.plan(instant) or {}
        if by and (plan.get("extraMetadata") or {}).get(UNFINISHED) != by:
            continue
        _remove_begun(session, instant.requested)
        slices = planned_slices(session.storage, plan.get("operations") or ())
        _check_sizes(session, slices)
        target = session.target(instant.requested)
        _carry_out(session, instant.requested, compact_tasks(session.state(), target, slices))
        completed.append(instant.requested)
    return completed


def _check_sizes(session: Session, slices: Sequence[FileSlice]) -> None:
    """Refuses log files that lost records: a compaction would make the loss final."""
    if checks_sizes(session.given_options):
        check_sizes(session.timeline, slices)


def _carry_out(session: Session, instant: str, tasks: Sequence[CompactTask]) -> None:
    writer = session.writer
    storage, layout = writer.storage, writer.config.layout
    layout.inflight(storage, instant, COMPACTION)
    stats = session.engine.run(
        compact_file, tasks, stage=_STAGE, label=f"compact files of {instant}"
    )
    metadata = _metadata(stats, session.schema_words.extra_metadata(instant))
    remove_unlisted(storage, instant, metadata)
    data = metadata.encode(writer.config.version, COMPACTION, writer.clock)
    layout.complete(storage, instant, COMPACTION, writer.generator.next(), data)
    markers.delete_all(storage, instant)


def _metadata(stats: Sequence[WriteStat], schema: Mapping[str, str]) -> CommitMetadata:
    return CommitMetadata(
        by_partition(stats),
        compacted=True,
        extra_metadata=schema,
        operation_type="COMPACT",
    )


def _take_back(session: Session, instant: str) -> None:
    """Leaves the table as if the compaction had not been planned, unless it is complete."""
    found = Timeline.load(session.storage, session.config).find(instant, COMPACTION)
    if found is None or found.is_completed:
        return
    _remove_begun(session, instant)
    session.config.layout.remove(session.storage, instant, COMPACTION, State.REQUESTED)


def _remove_begun(session: Session, instant: str) -> None:
    """Removes what was written, which no reader sees; the plan stays."""
    storage = session.storage
    remove_unlisted(storage, instant, CommitMetadata())
    session.config.layout.remove(storage, instant, COMPACTION, State.INFLIGHT)
    markers.delete_all(storage, instant)
