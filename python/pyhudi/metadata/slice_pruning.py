"""Prunes slices by indexes over their files. Filters are not parsed here.

Each function returns one boolean for each slice: false if it certainly has no matching row. The
cost of a lookup grows with the number of slices, so cheap indexes come first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.config.metadata_names import BLOOM_FILTERS, COLUMN_STATS, RECORD_INDEX
from pyhudi.metadata.min_max_pruning import exclude_by_stats
from pyhudi.schema.key_predicates import MAX_KEYS

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from pyhudi.metadata.index_definitions import IndexDefinition
    from pyhudi.metadata.reader import MetadataTable
    from pyhudi.schema.predicates import Conjunct
    from pyhudi.slices.file_slices import FileSlices
else:
    from pyhudi.schema import lazy_compute as pc


def slices_with_keys(
    table: MetadataTable, slices: FileSlices, keys: Collection[str]
) -> pa.BooleanArray:
    """Prune by the record index: the locations of these keys."""
    locations = record_locations_of(table, keys)
    if locations is None:
        return _slices_with_keys_by_partition(table, slices, sorted(keys))
    return slices.in_groups(locations)


def record_locations_of(table: MetadataTable, keys: Collection[str]) -> set[tuple[str, str]] | None:
    """Return partition and file id of each key's record; None for a partitioned record index."""
    definition = table.definitions.get(RECORD_INDEX)
    if definition is not None and definition.is_partitioned:
        return None
    locations: set[tuple[str, str]] = set()
    for batch in table.locations(sorted(keys)):
        paths, file_ids = (
            batch["partition"].to_pylist(),
            batch["file_id"].to_pylist(),
        )
        locations.update(zip(paths, file_ids, strict=True))
    return locations


def _slices_with_keys_by_partition(
    table: MetadataTable, slices: FileSlices, keys: list[str]
) -> pa.BooleanArray:
    groups: list[tuple[str, str]] = []
    unindexed: list[str] = []
    for path in slices.partitions:
        index = table.record_index_of_partition(path)
        if index is None:
            unindexed.append(path)
        else:
            groups += ((path, file_id) for file_id in index.locations(keys)["file_id"].to_pylist())
    return pc.or_(slices.in_groups(groups), slices.native.in_partitions(unindexed))


def slices_with_values(
    table: MetadataTable,
    slices: FileSlices,
    definition: IndexDefinition,
    values: Sequence[str],
) -> pa.BooleanArray | None:
    """Prune by a secondary index and the record index; None for values of too many records."""
    entries = table.partition(definition.name).secondary(
        list(values), hashed_by_value=definition.version > 1
    )
    keys = set(entries["record_key"].to_pylist())
    return slices_with_keys(table, slices, keys) if len(keys) <= MAX_KEYS else None


def slices_within_bounds(
    table: MetadataTable,
    slices: FileSlices,
    conjunct: Conjunct,
    partition: str = COLUMN_STATS,
    column: str | None = None,
) -> pa.BooleanArray:
    """Prune by minimum and maximum of a column, or of an index's expression, in each file."""
    files = slices.native.files()
    stats = table.partition(partition).stats(
        column or conjunct[0],
        conjunct[2].type,
        files["partition"],
        files["name"],
        of_values=partition != COLUMN_STATS,
    )
    return slices.native.any_file(pc.invert(exclude_by_stats(stats, conjunct)))


def slices_in_filters(
    table: MetadataTable,
    slices: FileSlices,
    keys: Sequence[str],
    partition: str = BLOOM_FILTERS,
) -> pa.BooleanArray:
    """Prune by bloom filters of base files. Log files may contain any key."""
    has_logs = slices.native.have_logs()
    base_files = slices.filter(pc.invert(has_logs)).native.files()
    may_contain = table.partition(partition).may_contain(
        base_files["partition"], base_files["name"], list(keys)
    )
    return pc.replace_with_mask(
        has_logs, pc.invert(has_logs), pc.fill_null(may_contain, fill_value=True)
    )
