"""What becomes of a write that meets a pending clustering, by Hudi's strategies for updates.

To reject it is the default (`SparkRejectUpdateStrategy`). Where it is allowed
(`SparkAllowUpdateStrategy`), or clusterings give way to writers, the write goes on, and who carries
the plan out has to find that it was overtaken: pyhudi does, Hudi does not with every setting. So
the plan can go first (`BaseSparkUpdateStrategy`, `CommonClientUtils`, Hudi 1.2.0).
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
    """Raises `CommitConflict` where a file group waits for a clustering, unless options allow that.

    Where they want it, the plan is taken off the timeline; somebody at work on it is a conflict.
    """
    met = [group for group in groups if group.clustering is not None]
    if not met:
        return
    options = ClusteringOptions.of(context.handle_options)
    if not (options.allows_updates or LockOptions.of(context.handle_options).prefers_writers):
        check_not_clustered(met)
    if options.drops_overtaken:
        table = context.table
        times = {group.clustering for group in met}
        for instant in pending(Timeline.load(table.storage, table.config)):
            if instant.requested in times:
                cancel_plan(table, instant.requested, instant.action)
