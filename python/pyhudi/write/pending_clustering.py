"""A write to a file group with a pending clustering, by Hudi's update strategies.

By default the write is rejected (`SparkRejectUpdateStrategy`). If it is allowed
(`SparkAllowUpdateStrategy`), or clusterings yield to writers, the write goes on, and the executor
of the plan has to detect the conflict: pyhudi does, Hudi not with every setting. So the plan can
be cancelled first (`BaseSparkUpdateStrategy`, `CommonClientUtils`, Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable

from pyhudi.config.clustering_options import ClusteringOptions
from pyhudi.config.lock_options import LockOptions
from pyhudi.errors import CommitConflict
from pyhudi.services.clustering import pending
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.timeline import Timeline
from pyhudi.txn.planned_services import cancel_plan
from pyhudi.write.write_context import WriteContext


def check_update_allowed(context: WriteContext, groups: Iterable[FileGroup]) -> None:
    """Raise `CommitConflict` if a file group has a pending clustering, unless options allow it.

    If the options ask for it, the plan is cancelled; a writer that executes it is a conflict.
    """
    conflicts = [group for group in groups if group.clustering is not None]
    if not conflicts:
        return
    options = ClusteringOptions.of(context.handle_options)
    if not (options.allows_updates or LockOptions.of(context.handle_options).prefers_writers):
        check_no_pending_clustering(conflicts)
    if options.drops_overtaken:
        table = context.table
        times = {group.clustering for group in conflicts}
        for instant in pending(Timeline.load(table.storage, table.config)):
            if instant.requested in times:
                cancel_plan(table, instant.requested, instant.action)


def check_no_pending_clustering(groups: Iterable[FileGroup]) -> None:
    """Raise `CommitConflict` naming the first pending clustering of the groups."""
    for group in groups:
        if group.clustering is not None:
            msg = (
                f"the clustering {group.clustering} is pending and replaces the file group "
                f"{group.slice.file_id} in partition {group.slice.partition!r}, which this write "
                f"would change"
            )
            raise CommitConflict(
                msg,
                hint=f"cluster(schedule=False) completes it, rollback({group.clustering!r}) "
                "cancels it; then retry the write.",
            )
