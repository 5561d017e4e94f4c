"""Checks that reject a write before anything is written.

Each error names the property or the instant. `TableConfig.check_readable` has the fewer
requirements of reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pyarrow as pa

from pyhudi.clock import is_bootstrap
from pyhudi.config.file_names import parse_base_name, parse_log_name
from pyhudi.config.formatting import names_text
from pyhudi.config.index_options import INDEX_TYPE
from pyhudi.config.metadata_names import ALL_PARTITIONS
from pyhudi.config.property_names import (
    BOOTSTRAP_PATH,
    DROP_PARTITION_COLUMNS,
    HIVE_STYLE,
    META_FIELDS,
    URL_ENCODE,
)
from pyhudi.config.table_config import TableConfig
from pyhudi.config.write_options import LOG_BLOCKS, WriteOptions
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.index.protocol import Index
from pyhudi.input.conform import data_schema
from pyhudi.metadata.index_definitions import Definitions, parse_definitions
from pyhudi.metadata.write_checks import check_partitions
from pyhudi.schema.internal_schema import is_evolved
from pyhudi.schema.key_generator import check_key_generator
from pyhudi.schema.table_schema import TableSchema
from pyhudi.schema.virtual_keys import VIRTUAL, check_virtual_keys, check_virtual_types
from pyhudi.slices.combine import check_mergeable
from pyhudi.slices.listing import walk_partitions
from pyhudi.storage.storage import Storage
from pyhudi.suggestions import case_hint
from pyhudi.timeline import Timeline

_META_MODE = "hoodie.meta.fields.mode"
_WITH_HUDI = "Write to this table with Apache Hudi."
_UNSUPPORTED_IF_TRUE = (
    DROP_PARTITION_COLUMNS,
    "hoodie.partition.metafile.use.base.format",
    "hoodie.allow.operation.metadata.field",
)
_ESCAPED = re.compile("%[0-9A-Fa-f]{2}")


def check_writable(storage: Storage, config: TableConfig, timeline: Timeline) -> None:
    """Raise `UnsupportedTableFeature` for a table that pyhudi must not write to."""
    check_config(config)
    timeline.check_whole()
    _check_bootstrap(storage, config, timeline)
    if config.cdc_enabled:
        check_schema_on_read(storage, timeline)


def _check_bootstrap(storage: Storage, config: TableConfig, timeline: Timeline) -> None:
    """Reject a table that is being bootstrapped, or whose directories do not match its keys."""
    if config.bootstrap_path is None:
        return
    for pending in timeline.pending():
        if is_bootstrap(pending.requested):
            msg = f"{BOOTSTRAP_PATH} is {config.bootstrap_path}: the bootstrap {pending} is pending"
            raise UnsupportedTableFeature(msg, hint="Bootstrap the table with Apache Hudi.")
    if config.partition_fields:
        _check_folders(storage, config)


def _check_folders(storage: Storage, config: TableConfig) -> None:
    """Reject a bootstrapped table whose partition directories do not match its keys.

    A bootstrap keeps the directories of the source. Apache Hudi then writes the row of an existing
    key to another partition, as a duplicate.
    """
    prefix = f"{config.partition_fields[0]}="
    differing = [
        folder
        for folder in storage.list_dir()[0]
        if not folder.startswith(".") and folder.startswith(prefix) != config.hive_style
    ]
    for path, _ in walk_partitions(storage) if differing else ():
        if path.split("/", 1)[0] in differing:
            msg = (
                f"{HIVE_STYLE} is {str(config.hive_style).lower()}: the table bootstrapped from "
                f"{config.bootstrap_path} has the partition {path!r}"
            )
            raise UnsupportedTableFeature(msg, hint="Set the property to match the directories.")


def check_no_files_outside_partitions(storage: Storage, config: TableConfig) -> None:
    """Raise `UnsupportedTableFeature` for a partitioned table with rows outside of partitions.

    Lookups would miss their keys. Hudi's procedure `run_clustering` moves all rows there if keys
    are virtual and it does not get the writers' options; its readers then find no rows (1.2.0). A
    restore must stay possible, so `check_writable` does not include this check.
    """
    if config.populate_meta_fields or not config.partition_fields:
        return
    for file in storage.list_dir()[1]:
        if parse_base_name(file.name, config.base_extension) or parse_log_name(file.name):
            msg = f"{VIRTUAL}, and {file.name} is outside the table's partitions"
            raise UnsupportedTableFeature(msg, hint="Undo the clustering with restore().")


def check_config(config: TableConfig) -> None:
    """Run the checks of `check_writable` that depend on the properties alone."""
    config.check_readable()
    if not config.version.writable:
        msg = f"hoodie.table.version is {config.version.code}: pyhudi only reads such tables"
        raise UnsupportedTableFeature(msg, hint="Call table.upgrade().")
    if config.base_extension is None:
        msg = f"{config.not_parquet}: pyhudi only reads such tables"
        raise UnsupportedTableFeature(msg, hint=_WITH_HUDI)
    if config.bootstrap_path is not None and config.not_parquet:
        msg = f"{config.not_parquet} in a table with {BOOTSTRAP_PATH}"
        raise UnsupportedTableFeature(msg, hint=_WITH_HUDI)
    check_partitions(config)
    for name in _UNSUPPORTED_IF_TRUE:
        if config.properties.get(name, "").strip().lower() == "true":
            msg = f"{name} is true: pyhudi does not write to tables with this setting"
            raise UnsupportedTableFeature(msg, hint=_WITH_HUDI)
    if config.bootstrap_path is not None and not config.populate_meta_fields:
        msg = f"{VIRTUAL} in a table with {BOOTSTRAP_PATH}: skeleton files do not store keys"
        raise UnsupportedTableFeature(msg, hint=_WITH_HUDI)
    _check_meta_fields(config)
    check_mergeable(config)
    check_key_generator(config)
    check_virtual_keys(config)


def _check_meta_fields(config: TableConfig) -> None:
    """Reject a mode of the meta columns that contradicts the older property.

    Hudi 1.3 uses the mode and earlier releases the older property (`MetaFieldsMode`, 1.3.0). A
    downgrade from table version 10 may leave both. Rows written by the older property have no
    commit times, which Hudi 1.3 relies on.
    """
    mode = config.properties.get(_META_MODE, "").strip()
    expected = "ALL" if config.populate_meta_fields else "NONE"
    if mode and mode.upper() != expected:
        populated = str(config.populate_meta_fields).lower()
        msg = f"{_META_MODE} is {mode}, and {META_FIELDS} is {populated}"
        hint = f"Write to it with Apache Hudi, or set the mode to {expected} if its files agree."
        raise UnsupportedTableFeature(msg, hint=hint)


def check_schema_on_read(storage: Storage, timeline: Timeline) -> None:
    """Reject a table whose columns have ids: its change logs would have the old column names.

    Raises `UnsupportedTableFeature`.
    """
    if is_evolved(storage, timeline):
        msg = "hoodie.schema.on.read.enable with hoodie.table.cdc.enabled: change logs have no ids"
        raise UnsupportedTableFeature(msg, hint=_WITH_HUDI)


def check_log_blocks(options: WriteOptions, config: TableConfig, schema: pa.Schema) -> None:
    """Raise `UnsupportedTableFeature` for HFile log blocks that Hudi would not read."""
    if not config.is_merge_on_read or options.log_blocks != "hfile":
        return
    hint = "Write Avro or Parquet blocks."
    if not config.version.hfile_blocks:
        msg = f"{LOG_BLOCKS}=hfile: Hudi fails on that in table version {config.version.code}"
        raise UnsupportedTableFeature(msg, hint=hint)
    if "key" in schema.names:
        msg = f"{LOG_BLOCKS}=hfile: Hudi takes the column named key for the HFile's key"
        raise UnsupportedTableFeature(msg, hint=hint)


def check_known_columns(names: Sequence[str], schema: pa.Schema) -> None:
    """Raise `SchemaMismatch` naming the columns that the table does not have."""
    existing = frozenset(schema.names)
    unknown = [name for name in names if name not in existing]
    if unknown:
        msg = f"the table has no column {', '.join(repr(name) for name in unknown)}"
        hint = case_hint(unknown, schema.names) or f"Its columns are {names_text(schema.names)}."
        raise SchemaMismatch(msg, hint=hint)


def check_indexed_columns(requested: Definitions, schema: TableSchema) -> None:
    """Raise `SchemaMismatch` for requested indexes over columns that do not exist."""
    columns = {
        name for definition in parse_definitions(requested).values() for name in definition.columns
    }
    check_known_columns(sorted(columns), data_schema(schema.arrow))


def check_virtual_writes(
    config: TableConfig, schema: pa.Schema, index: Index, options: WriteOptions
) -> None:
    """Reject write methods that need stored keys. Raises `UnsupportedTableFeature`."""
    if config.populate_meta_fields:
        return
    check_virtual_types(config, schema)
    if not index.supports_virtual_keys:
        msg = f"{VIRTUAL}: {INDEX_TYPE} {index.index_type} needs stored keys"
        raise UnsupportedTableFeature(msg, hint="Use SIMPLE, or BUCKET with the engine SIMPLE.")
    if config.is_merge_on_read and options.log_blocks == "hfile":
        msg = f"{VIRTUAL}: hoodie.logfile.data.block.format hfile needs stored keys"
        raise UnsupportedTableFeature(msg, hint="Write Avro or Parquet blocks.")


def check_partition_paths(paths: Iterable[str], config: TableConfig) -> None:
    """Raise `SchemaMismatch` for a path that Hudi does not support, to which rows would be added.

    A table with one of these paths stays readable, and its rows can be changed.
    """
    for path in paths:
        if path == ALL_PARTITIONS:
            msg = f"the partition {path!r} has the name of the metadata table's list of partitions"
            raise SchemaMismatch(msg, hint="Use another partition value.")
        misreading = _find_misreading(path, config)
        if misreading:
            msg = f"Apache Hudi cannot read the partition {path!r}, {misreading}"
            raise SchemaMismatch(msg, hint=f"Create the table with {URL_ENCODE}=true.")


def _find_misreading(path: str, config: TableConfig) -> str:
    """Return what Hudi misreads in the path; "" if it reads the path's values.

    `HoodieSparkUtils.parsePartitionPath` (1.2.0) splits a path with as many directories as the
    table has partition columns.
    """
    folders = path.split("/")
    # `StoragePath(StoragePath, String)` reads the part before the colon as a URI's scheme.
    if ":" in folders[0]:
        return "whose first directory has a colon"
    if config.url_encode:
        return ""
    fields = config.partition_fields
    is_split = len(folders) == len(fields)
    if is_split and not config.hive_style and "=" in path:
        return "in which it takes the part before the equals sign for a column name"
    if len(fields) == 1 and not config.hive_style and path.startswith(f"{fields[0]}="):
        return f"from which it strips {fields[0]}="
    if is_split and _ESCAPED.search(path):
        return "in which it takes a percent sign and two digits for another character"
    return ""
