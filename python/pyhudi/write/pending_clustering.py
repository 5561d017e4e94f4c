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
from pyhudi.services.clustering import pending
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.timeline import Timeline
from pyhudi.txn.planned_services import cancel_plan
from pyhudi.write.file_assignment import check_not_clustered
from pyhudi.write.write_context import WriteContext


def check_free(context: WriteContext, groups: Iterable[FileGroup]) -> None:
    """Raise `CommitConflict` if a file group has a pending clustering, unless options allow it.

    If the options ask for it, the plan is cancelled; a writer that executes it is a conflict.
    """
    conflicts = [group for group in groups if group.clustering is not None]
    if not conflicts:
        return
    options = ClusteringOptions.of(context.handle_options)
    if not (options.allows_updates or LockOptions.of(context.handle_options).prefers_writers):
        check_not_clustered(conflicts)
    if options.drops_overtaken:
        table = context.table
        times = {group.clustering for group in conflicts}
        for instant in pending(Timeline.load(table.storage, table.config)):
            if instant.requested in times:
                cancel_plan(table, instant.requested, instant.action)
