"""The metadata table's own services: what is done for it once a commit of the table is complete.

Order and conditions are those of `HoodieBackedTableMetadataWriter.performTableServices` (Hudi
0.15.0, 1.2.0): pending services first, then cleaning, then compaction, then archiving.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from pyhudi.errors import MetadataTableWarning
from pyhudi.metadata import archiving, cleaning, compaction
from pyhudi.metadata.own import OwnTable
from pyhudi.metadata.table import FILES
from pyhudi.timeline import Timeline
from pyhudi.timeline.instants import DELTA_COMMIT
from pyhudi.txn.left_files import remove_staged

if TYPE_CHECKING:
    from pyhudi.engine.protocol import Engine
    from pyhudi.metadata.service_options import ServiceOptions
    from pyhudi.txn.rollback import RollbackContext


def run_services(context: RollbackContext, engine: Engine, options: ServiceOptions) -> None:
    """Does what is due. The commit before it stands: what goes wrong here is a warning.

    What was left undone is done after a later commit, by pyhudi or by Apache Hudi.
    """
    if FILES not in context.config.metadata_partitions:
        return
    try:
        _run(context, engine, options)
    except Exception as error:  # noqa: BLE001  an error would say that the commit failed
        cause = str(error).split("\nHint:", 1)[0]
        warnings.warn(
            f"{context.storage.uri}: the metadata table's services wait: {cause}",
            MetadataTableWarning,
            stacklevel=2,
        )


def _run(context: RollbackContext, engine: Engine, options: ServiceOptions) -> None:
    own = OwnTable.open(context.storage)
    partitions = context.config.metadata_partitions
    own.observe(context.generator)
    remove_staged(own.storage, own.timeline.beside[1], context.clock)
    if compaction.complete_pending(own, context, engine):
        own = own.reloaded()
    if cleaning.complete_pending(own, context):
        own = own.reloaded()
    if cleaning.clean(own, context, partitions) is not None:
        own = own.reloaded()
    if compaction.is_due(own, options.compact_after) and not _waits(context, own):
        compaction.compact(own, context, engine, partitions)
        own = own.reloaded()
    archiving.archive(own, context, options)


def _waits(context: RollbackContext, own: OwnTable) -> bool:
    """Whether an instant of the table that is not complete may have records already.

    They would go into base files, and could not be told apart any more. From table version 8 on
    Hudi compacts up to such an instant; pyhudi waits for it.
    """
    deltas = own.timeline.completed(DELTA_COMMIT)
    last = deltas[-1].requested if deltas else ""
    pending = Timeline.load(context.storage, context.config).pending()
    return any(one.requested <= last for one in pending)
