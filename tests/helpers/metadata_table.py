"""The metadata table of a table on disk, as pyhudi's writers open it."""

from __future__ import annotations

from pyhudi.clock import SystemClock
from pyhudi.config.table_config import TableConfig
from pyhudi.metadata.table_writer import open_metadata_table
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot


def metadata_table(storage: Storage) -> TableSnapshot:
    """That of the data table at a place."""
    return open_metadata_table(
        TableSnapshot.open(storage, TableConfig.load(storage), SystemClock())
    )
