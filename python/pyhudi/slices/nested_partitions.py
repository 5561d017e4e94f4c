"""Nested partitions, which are rejected before they are created.

No listing finds the inner one: neither that of `listing.py` nor Hudi's searches below the first
directory with a partition's metadata file (`FileSystemBackedTableMetadata`, 1.2.0). So its rows are
lost with the metadata table that lists it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from pyhudi.config.property_names import SLASH_DATES
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import SchemaMismatch
from pyhudi.input.type_tests import is_text
from pyhudi.schema.table_schema import field_at
from pyhudi.slices.listing import is_marked, walk_partitions
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot


def find_nested(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each path that is inside another one, with the outermost path that contains it."""
    outer: list[str] | None = None
    # Directory by directory, because some characters sort before a slash.
    for parts in sorted(path.split("/") if path else [] for path in set(paths)):
        if outer is not None and parts[: len(outer)] == outer:
            yield "/".join(outer), "/".join(parts)
        else:
            outer = parts


def check_apart(paths: Iterable[str]) -> None:
    """Raise `SchemaMismatch` if one of the partitions of a write is inside another."""
    for outer, inner in find_nested(paths):
        raise _nesting_error(inner, outer)


def min_levels(table: TableSnapshot) -> int:
    """Return the minimum number of directories of a table's partition paths.

    0 if none can be inside another: only strings make paths of one table differ in depth.
    """
    fields = table.config.partition_fields
    if _escapes_slashes(table.config, table.options):
        return 0
    return len(fields) if any(_may_be_text(table.columns, name) for name in fields) else 0


def _escapes_slashes(config: TableConfig, options: Iterable[str]) -> bool:
    return config.url_encode and not config.slash_separated_dates and SLASH_DATES not in options


def _may_be_text(columns: pa.Schema, name: str) -> bool:
    field = field_at(columns, name)
    return field is None or is_text(field.type)


def check_not_nested(storage: Storage, partition: str, levels: int) -> None:
    """Raise `SchemaMismatch` if a directory is inside a partition, or contains one.

    levels: as in `min_levels`.
    """
    parts = partition.split("/")
    around = ["/".join(parts[:count]) for count in range(levels, len(parts))]
    *outer, (folders, _) = storage.list_dirs([*around, partition])
    for path, (_, files) in zip(around, outer, strict=True):
        if is_marked(files):
            raise _nesting_error(partition, path)
    for inner, _ in walk_partitions(storage, within=folders):
        raise _nesting_error(inner, partition)


def _nesting_error(inner: str, outer: str) -> SchemaMismatch:
    msg = f"the partition {inner!r} would be inside the partition {outer!r}"
    return SchemaMismatch(
        msg,
        hint=(
            "Listings would not find it: use no slashes in partition values, or the same "
            "number in each."
        ),
    )
