"""A data table's files out of its metadata table, in the form in which storage lists them."""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.metadata.reader import MetadataTable
from pyhudi.slices.listing import PartitionFilter
from pyhudi.storage.storage import Entry


class MetadataListing:
    """The files that the metadata table names. It has no modification times: they are 0."""

    def __init__(self, table: MetadataTable) -> None:
        self._table = table

    def list_files(
        self, partitions: PartitionFilter | None = None
    ) -> Iterator[tuple[str, list[Entry]]]:
        """As `view.listing.FileSource.list_files`; of other partitions nothing is read."""
        if partitions is None or callable(partitions):
            paths = self._table.data_partitions()
            wanted = [path for path in paths if partitions is None or partitions(path)]
        else:
            wanted = sorted(set(partitions))
        found = self._table.data_files(wanted)
        return ((path, found[path]) for path in wanted)
