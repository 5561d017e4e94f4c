"""The bloom indexes: filters and key ranges show which base files may contain some of the keys.

The footers of base files have both. The metadata table has the filters too if it has the partition
`bloom_filters`. A file without either may contain any key. Log files have no filters:
their keys are always read, because bucket indexes and Flink put new records there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.index_options import UPDATE_PATH_BLOOM
from pyhudi.config.metadata_names import BLOOM_FILTERS
from pyhudi.index.protocol import IndexedTable
from pyhudi.index.simple import SimpleIndex
from pyhudi.metadata.file_group_handle import FileGroupHandle, open_groups
from pyhudi.metadata.reader import MetadataTable
from pyhudi.slices.file_slice import FileSlice
from pyhudi.storage.storage import Storage


@dataclass(frozen=True)
class TableFilters:
    """The bloom filters of a table's base files, and where to read them."""

    storage: Storage
    metadata_groups: tuple[FileGroupHandle, ...] = ()
    """The file groups of `bloom_filters`; empty to read file footers."""

    def may_contain(self, slice_: FileSlice, keys: pa.Array[Any]) -> bool:
        """Return whether the slice's base file may contain one of the keys."""
        base = slice_.base
        if base is None:
            return False
        candidates = None
        if self.metadata_groups:
            candidates = _native.filter_candidates(
                open_groups(self.metadata_groups), base.partition, base.name, keys
            )
        if candidates is None:
            candidates = _native.footer_candidates(self.storage.native, base.path, keys)
        return bool(pc.any(candidates, min_count=0).as_py())


def bloom_filters_of(table: IndexedTable) -> TableFilters:
    """Return the filters of a table, from the metadata table if it has them."""
    if BLOOM_FILTERS not in table.config.metadata_partitions:
        return TableFilters(table.storage)
    metadata_table = MetadataTable(table.storage, table.config, table.timeline)
    return TableFilters(table.storage, tuple(metadata_table.file_groups(BLOOM_FILTERS)))


class BloomIndex(SimpleIndex):
    """The simple index, but base files that their filters exclude are not read."""

    index_type = "BLOOM"
    supports_virtual_keys = False

    def filters(self, table: IndexedTable) -> TableFilters:
        return bloom_filters_of(table)


class GlobalBloomIndex(BloomIndex):
    """The bloom index over all partitions."""

    index_type = "GLOBAL_BLOOM"
    is_global = True
    update_path_option = UPDATE_PATH_BLOOM
