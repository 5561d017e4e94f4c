"""Bloom filters and key ranges: which base files may hold any of some keys.

They stand in the footers of base files, and filters also in the metadata table where that has the
partition `bloom_filters`. A file that nothing is known of may hold anything. Log files have no
filters: their keys are always read, since buckets and Flink put new records there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.index_options import MOVE_BLOOM
from pyhudi.config.metadata_names import BLOOM_FILTERS
from pyhudi.index.protocol import IndexedTable
from pyhudi.index.simple import SimpleIndex
from pyhudi.metadata.file_group import MetadataGroup, open_together
from pyhudi.metadata.reader import MetadataTable
from pyhudi.slices.file_slice import FileSlice
from pyhudi.storage.storage import Storage


@dataclass(frozen=True)
class Filters:
    """Where the filters of a table's base files are."""

    storage: Storage
    stored: tuple[MetadataGroup, ...] = ()
    """The file groups of `bloom_filters`; none to look into footers."""

    def may_hold(self, slice_: FileSlice, keys: pa.Array[Any]) -> bool:
        """Whether the slice's base file may hold one of the keys."""
        base = slice_.base
        if base is None:
            return False
        found = None
        if self.stored:
            found = _native.filter_candidates(
                open_together(self.stored), base.partition, base.name, keys
            )
        if found is None:
            found = _native.footer_candidates(self.storage.native, base.path, keys)
        return bool(pc.any(found, min_count=0).as_py())


def filters_of(table: IndexedTable) -> Filters:
    """The filters of a table: the metadata table's where it has them."""
    if BLOOM_FILTERS not in table.config.metadata_partitions:
        return Filters(table.storage)
    stored = MetadataTable(table.storage, table.config, table.timeline)
    return Filters(table.storage, tuple(stored.file_groups(BLOOM_FILTERS)))


class BloomIndex(SimpleIndex):
    """As the simple index, without reading base files that filters rule out."""

    kind = "BLOOM"
    without_stored_keys = False

    def filters(self, table: IndexedTable) -> Filters:
        return filters_of(table)


class GlobalBloomIndex(BloomIndex):
    """Over all partitions."""

    kind = "GLOBAL_BLOOM"
    is_global = True
    moves_option = MOVE_BLOOM
