"""Which metadata tables pyhudi keeps up to date, found out before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

import pyarrow as pa

from pyhudi.config.metadata_names import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.config.table_config import TableConfig, unsupported_merge
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.metadata import expression, secondary
from pyhudi.metadata.definitions import SECONDARY_INDEX, IndexDefinition, index_definitions
from pyhudi.schema.payloads import field_merge
from pyhudi.schema.record_keys import META_COLUMNS
from pyhudi.schema.table_schema import field_at, within_collection
from pyhudi.storage.storage import Storage

_PARTITIONS = "hoodie.table.metadata.partitions"
_INFLIGHT = "hoodie.table.metadata.partitions.inflight"
_HINT = (
    'Take the index away with table.drop_index, which for "files" takes all of the metadata table'
    " away."
)

MAINTAINED = frozenset({FILES, COLUMN_STATS, PARTITION_STATS, BLOOM_FILTERS, RECORD_INDEX})
"""Partitions that every write brings up to date."""


def check_partitions(config: TableConfig) -> None:
    """Raises `UnsupportedTableFeature` for a partition that pyhudi cannot maintain."""
    building = config.properties.get(_INFLIGHT, "").strip()
    if building:
        msg = f"{_INFLIGHT} is {building}: another writer is building an index"
        raise UnsupportedTableFeature(msg, hint="Complete the indexing with Apache Hudi first.")
    listed = config.metadata_partitions
    for name in listed:
        if name.startswith(secondary.PREFIX):
            if RECORD_INDEX not in listed:
                msg = f"{_PARTITIONS} has {name}, without {RECORD_INDEX}"
                raise UnsupportedTableFeature(msg, hint=_HINT)
        elif name not in MAINTAINED and not name.startswith(expression.PREFIX):
            msg = f"{_PARTITIONS} has {name}: pyhudi cannot keep this index up to date"
            raise UnsupportedTableFeature(msg, hint=_HINT)
    if listed and FILES not in listed:
        msg = f"{_PARTITIONS} is {','.join(listed)}, without {FILES}"
        raise UnsupportedTableFeature(msg, hint=_HINT)


def check_replaceable(config: TableConfig) -> None:
    """Raises `UnsupportedTableFeature` where file groups cannot be replaced.

    Hudi does not replace any beside a secondary index either
    (`HoodieBackedTableMetadataWriter.updateSecondaryIndexIfPresent`, 1.0.2 and 1.2.0).
    """
    for name in config.metadata_partitions:
        if name.startswith(SECONDARY_INDEX):
            msg = f"{_PARTITIONS} has {name}: file groups are not replaced under it"
            raise UnsupportedTableFeature(msg, hint="Drop the index first.")


def check_indexes(storage: Storage, config: TableConfig, schema: pa.Schema) -> None:
    """The part of `check_partitions` that index definitions decide.

    schema: the table's, with meta fields.
    """
    if not config.metadata_partitions:
        return
    definitions = index_definitions(storage, config)
    _check_row_indexes(config, definitions, schema)
    if COLUMN_STATS not in config.metadata_partitions:
        if PARTITION_STATS in config.metadata_partitions:
            msg = f"{_PARTITIONS} has {PARTITION_STATS}, without {COLUMN_STATS}"
            raise UnsupportedTableFeature(msg, hint=_HINT)
        return
    if COLUMN_STATS not in definitions and config.version.has_index_definitions:
        msg = f"{_PARTITIONS} has {COLUMN_STATS}, which the index definitions lack"
        raise UnsupportedTableFeature(msg, hint=_HINT)
    for field in statistics_columns(definitions, schema):
        if COLUMN_STATS in definitions and not _has_bounds(field.type):
            msg = f"{_PARTITIONS} has {COLUMN_STATS} of {field.name}, which is {field.type}"
            raise UnsupportedTableFeature(msg, hint=_HINT)


def _check_row_indexes(
    config: TableConfig, definitions: Mapping[str, IndexDefinition], schema: pa.Schema
) -> None:
    for name in config.metadata_partitions:
        if name.startswith((secondary.PREFIX, expression.PREFIX)):
            check_index(config, name, definitions.get(name), schema)


def check_index(
    config: TableConfig, name: str, definition: IndexDefinition | None, schema: pa.Schema
) -> None:
    """Raises `UnsupportedTableFeature` for a secondary or expression index that cannot be kept."""
    if name.startswith(secondary.PREFIX):
        reason = secondary.refusal(definition, schema)
    else:
        reason = expression.refusal(definition, schema)
        if config.is_merge_on_read and definition and definition.kind == BLOOM_FILTERS:
            # HoodieMetadataPayload.createBloomFilterMetadataRecord takes base files only.
            reason = reason or "Hudi's writers fail on a log file under such bloom filters"
    if config.is_merge_on_read and field_merge(config) is None:
        reason = reason or unsupported_merge(config)
    if reason:
        msg = f"{_PARTITIONS} has {name}: {reason}"
        raise UnsupportedTableFeature(msg, hint=_HINT)


def statistics_columns(definitions: Mapping[str, IndexDefinition], schema: pa.Schema) -> pa.Schema:
    """The columns of column statistics: those of the definition, else every one.

    A column that the table lost is left out. One that came after the definition was made is there
    where the definition has the table's first columns: Hudi's next writer lists it, and takes the
    bounds of a partition from the files that have statistics of it
    (`HoodieTableMetadataUtil.getColumnsToIndex`, 1.2.0). The field of a struct has its dotted path
    as name. Raises `UnsupportedTableFeature` for what a list or map holds.
    """
    definition = definitions.get(COLUMN_STATS)
    able = [field for field in schema if _has_bounds(field.type)]
    if definition is None:
        return pa.schema(able)
    for name in definition.columns:
        if within_collection(schema, name):
            msg = f"{_PARTITIONS} has {COLUMN_STATS} of {name}, which a list or map holds"
            raise UnsupportedTableFeature(msg, hint=_HINT)
    found = [(name, field_at(schema, name)) for name in definition.columns]
    named = [field.with_name(name) for name, field in found if field is not None]
    first = [field.name for field in named if field.name not in META_COLUMNS]
    own = [field for field in able if field.name not in META_COLUMNS]
    if first and first == [field.name for field in own[: len(first)]]:
        named += own[len(first) : MetadataOptions.most_stats_columns]
    return pa.schema(named)


def has_bounds(kind: pa.DataType) -> bool:
    """Whether a column of this type can have statistics."""
    return _has_bounds(kind)


def _has_bounds(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.unit in ("ms", "us")
    tests = (
        pa.types.is_boolean,
        pa.types.is_int32,
        pa.types.is_int64,
        pa.types.is_float32,
        pa.types.is_float64,
        pa.types.is_string,
        pa.types.is_binary,
        pa.types.is_date32,
        pa.types.is_decimal128,
    )
    return any(test(kind) for test in tests)


@cache
def record_schema(name: str) -> str:
    """The schema text of a metadata record, with meta fields, as a release of Hudi writes it."""
    folder = resources.files("pyhudi.metadata") / "schemas"
    return (folder / f"{name}.avsc").read_text(encoding="utf-8")
