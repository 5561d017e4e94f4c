"""The metadata table's own services: what is done for it once a commit of the table is complete.

Order and conditions are those of `HoodieBackedTableMetadataWriter.performTableServices` (Hudi
0.15.0, 1.2.0): pending services first, then cleaning, then compaction, then archiving.
"""

from __future__ import annotations

import warnings

from pyhudi.config.actions import DELTA_COMMIT
from pyhudi.config.metadata_names import FILES
from pyhudi.config.service_options import ServiceOptions
from pyhudi.errors import MetadataTableWarning
from pyhudi.metadata import archiving, cleaning, compaction
from pyhudi.metadata.table_writer import observe, open_metadata_table
from pyhudi.timeline import Timeline
from pyhudi.txn.left_files import remove_staged
from pyhudi.txn.table import Table


def run_services(data: Table) -> None:
    """Does what is due. The commit before it stands: what goes wrong here is a warning.

    What was left undone is done after a later commit, by pyhudi or by Apache Hudi.
    """
    if FILES not in data.config.metadata_partitions:
        return
    try:
        _run(data, ServiceOptions.of(data.options))
    except Exception as error:  # noqa: BLE001  an error would say that the commit failed
        cause = str(error).split("\nHint:", 1)[0]
        warnings.warn(
            f"{data.storage.uri}: the metadata table's services wait: {cause}",
            MetadataTableWarning,
            stacklevel=2,
        )


def _run(data: Table, options: ServiceOptions) -> None:
    own = open_metadata_table(data)
    partitions = data.config.metadata_partitions
    observe(own)
    remove_staged(own.storage, own.timeline.beside[1], own.clock)
    if compaction.complete_pending(own):
        own = own.reloaded()
    if cleaning.complete_pending(own):
        own = own.reloaded()
    if cleaning.clean(own, partitions) is not None:
        own = own.reloaded()
    if compaction.is_due(own, options.compact_after) and not _waits(data, own):
        compaction.compact(own, partitions)
        own = own.reloaded()
    archiving.archive(own, data, options)


def _waits(data: Table, own: Table) -> bool:
    """Whether an instant of the table that is not complete may have records already.

    They would go into base files, and could not be told apart any more. From table version 8 on
    Hudi compacts up to such an instant; pyhudi waits for it.
    """
    deltas = own.timeline.completed(DELTA_COMMIT)
    last = deltas[-1].requested if deltas else ""
    pending = Timeline.load(data.storage, data.config).pending()
    return any(one.requested <= last for one in pending)
