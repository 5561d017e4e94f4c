"""Prunes slices by indexes over their files. Filters are not parsed here.

Each function returns one boolean for each slice: false if it certainly has no matching row. The
cost of a lookup grows with the number of slices, so cheap indexes come first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
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
    from pyhudi.slices.file_slice import BaseFile, FileSlice, LogFile
else:
    from pyhudi.schema import lazy_compute as pc


def with_keys(
    table: MetadataTable, slices: Sequence[FileSlice], keys: Collection[str]
) -> list[bool]:
    """Prune by the record index: the locations of these keys."""
    locations = places_of(table, keys)
    if locations is None:
        return _with_keys_by_partition(table, slices, sorted(keys))
    return [slice_.key in locations for slice_ in slices]


def places_of(table: MetadataTable, keys: Collection[str]) -> set[tuple[str, str]] | None:
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


def _with_keys_by_partition(
    table: MetadataTable, slices: Sequence[FileSlice], keys: list[str]
) -> list[bool]:
    ids_by_partition: dict[str, set[str] | None] = {}
    for path in {slice_.partition for slice_ in slices}:
        index = table.record_index_of_partition(path)
        ids_by_partition[path] = (
            None if index is None else set(index.locations(keys)["file_id"].to_pylist())
        )
    candidates = ((ids_by_partition[slice_.partition], slice_.file_id) for slice_ in slices)
    return [ids is None or file_id in ids for ids, file_id in candidates]


def with_values(
    table: MetadataTable,
    slices: Sequence[FileSlice],
    definition: IndexDefinition,
    values: Sequence[str],
) -> list[bool] | None:
    """Prune by a secondary index and the record index; None for values of too many records."""
    entries = table.partition(definition.name).secondary(
        list(values), hashed_by_value=definition.version > 1
    )
    keys = set(entries["record_key"].to_pylist())
    return with_keys(table, slices, keys) if len(keys) <= MAX_KEYS else None


def within_bounds(
    table: MetadataTable,
    slices: Sequence[FileSlice],
    conjunct: Conjunct,
    partition: str = COLUMN_STATS,
    column: str | None = None,
) -> list[bool]:
    """Prune by minimum and maximum of a column, or of an index's expression, in each file."""
    files = [_files(slice_) for slice_ in slices]
    every = list(chain.from_iterable(files))
    stats = table.partition(partition).stats(
        column or conjunct[0],
        conjunct[2].type,
        pa.array([file.partition for file in every], pa.string()),
        pa.array([file.name for file in every], pa.string()),
        of_values=partition != COLUMN_STATS,
    )
    out = iter(exclude_by_stats(stats, conjunct).to_pylist())
    by_slice = [[next(out) for _ in of_slice] for of_slice in files]
    return [not all(of_slice) for of_slice in by_slice]


def _files(slice_: FileSlice) -> list[BaseFile | LogFile]:
    return [*slice_.logs] if slice_.base is None else [slice_.base, *slice_.logs]


def in_filters(
    table: MetadataTable,
    slices: Sequence[FileSlice],
    keys: Sequence[str],
    partition: str = BLOOM_FILTERS,
) -> list[bool]:
    """Prune by bloom filters of base files. Log files may contain any key."""
    base_files = [slice_.base for slice_ in slices if slice_.base is not None and not slice_.logs]
    answers = table.partition(partition).may_contain(
        pa.array([base.partition for base in base_files], pa.string()),
        pa.array([base.name for base in base_files], pa.string()),
        list(keys),
    )
    may = iter(pc.fill_null(answers, fill_value=True).to_pylist())
    return [next(may) if slice_.base is not None and not slice_.logs else True for slice_ in slices]
