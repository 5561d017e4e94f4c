"""Options that sync a table with a catalog, read once. Names and defaults are Hudi's.

Sources: `HiveSyncConfigHolder`, `HiveSyncConfig`, `HoodieSyncConfig`, `GlueCatalogSyncClientConfig`
and `DataSourceOptions` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from pyhudi.config.option_parsing import parse_bool, parse_enum, parse_int
from pyhudi.errors import ConfigError, UnsupportedTableFeature

_HIVE = "hoodie.datasource.hive_sync."
_META = "hoodie.meta.sync."
_GLUE = "hoodie.datasource.meta.sync.glue."
ENABLE = "hoodie.datasource.meta.sync.enable"
HIVE_ENABLE = f"{_HIVE}enable"
TOOLS = "hoodie.meta.sync.client.tool.class"
URIS = f"{_HIVE}metastore.uris"
EXTRACTOR = f"{_HIVE}partition_extractor_class"
PARTITION_FIELDS = f"{_HIVE}partition_fields"

_READ = (
    ENABLE,
    HIVE_ENABLE,
    TOOLS,
    URIS,
    EXTRACTOR,
    PARTITION_FIELDS,
    f"{_HIVE}database",
    f"{_HIVE}table",
    f"{_HIVE}mode",
    f"{_HIVE}base_file_format",
    f"{_HIVE}auto_create_database",
    f"{_HIVE}skip_ro_suffix",
    f"{_HIVE}support_timestamp",
    f"{_HIVE}table_properties",
    f"{_HIVE}serde_properties",
    f"{_HIVE}sync_as_datasource",
    f"{_HIVE}schema_string_length_thresh",
    f"{_HIVE}omit_metadata_fields",
    f"{_HIVE}batch_num",
    f"{_HIVE}sync_comment",
    f"{_HIVE}table.strategy",
    f"{_META}sync_snapshot_with_table_name",
    "hoodie.datasource.meta_sync.condition.sync",
    "hoodie.meta_sync.spark.version",
    f"{_GLUE}metadata_file_listing",
    f"{_GLUE}skip_table_archive",
)
_WITHOUT_EFFECT = (
    f"{_HIVE}ignore_exceptions",
    f"{_HIVE}username",
    f"{_HIVE}password",
    f"{_HIVE}jdbcurl",
    f"{_HIVE}use_jdbc",
    f"{_HIVE}filter_pushdown_enabled",
    f"{_HIVE}filter_pushdown_max_size",
    f"{_META}incremental",
    f"{_META}metadata_file_listing",
    f"{_META}no_partition_metadata",
    f"{_META}decode_partition",
)
"""Options of Hudi pipelines that are accepted without an effect on what a catalog stores."""
_OFF = (
    f"{_HIVE}create_managed_table",
    f"{_HIVE}bucket_sync",
    f"{_HIVE}use_spark_catalog",
    f"{_HIVE}recreate_table_on_error",
    f"{_META}touch.partitions.enabled",
    f"{_GLUE}partition_index_fields.enable",
)
"""Switches that raise `UnsupportedTableFeature` if they are on."""

SYNC_OPTIONS = (*_READ, *_WITHOUT_EFFECT, *_OFF)
"""All options that `SyncOptions.of` accepts."""

_HIVE_TOOL = "HiveSyncTool"
_GLUE_TOOL = "AwsGlueCatalogSyncTool"
EXTRACTORS = (
    "NonPartitionedExtractor",
    "SinglePartPartitionValueExtractor",
    "HiveStylePartitionValueExtractor",
    "MultiPartKeysValueExtractor",
)
"""Simple names of supported classes that parse partition values from a path."""


@dataclass(frozen=True)
class SyncOptions:
    """The catalog that a table is synced with, and how it is registered there."""

    enabled: bool = False
    """Sync after each commit."""
    catalogs: tuple[Literal["hive", "glue"], ...] = ("hive",)
    uris: str = ""
    database: str = "default"
    table: str = ""
    """Name of the table in the catalog, "" for the table's own name."""
    partition_fields: tuple[str, ...] | None = None
    """Partition fields, None for the table's own."""
    extractor: str = ""
    """Extractor class, "" for the one that matches the table."""
    create_database: bool = True
    skip_ro_suffix: bool = False
    timestamps: bool = False
    table_properties: Mapping[str, str] = field(default_factory=dict)
    serde_properties: Mapping[str, str] = field(default_factory=dict)
    as_spark_table: bool = True
    part_length: int = 4000
    """Maximum number of characters of the schema in one property."""
    meta_columns: bool = True
    batch: int = 1000
    comments: bool = False
    strategy: str = "ALL"
    snapshot_by_name: bool = True
    """Register a merge-on-read table under its own name, in addition to those with suffixes."""
    conditional: bool = False
    """Record the last commit only if something else changed."""
    spark_version: str = ""
    metadata_listing: bool = False
    skip_archive: bool = True

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SyncOptions:
        """Read the options from `hoodie.…` names.

        Raises `ConfigError` for an invalid value, `UnsupportedTableFeature` for a value that pyhudi
        does not support.
        """
        for name in _OFF:
            if parse_bool(options, name, default=False):
                raise UnsupportedTableFeature(
                    f"{name} is true, which pyhudi does not support", hint="Leave it out."
                )
        _check_one_of(options, f"{_HIVE}mode", ("hms",), "Give hms.")
        _check_one_of(options, f"{_HIVE}base_file_format", ("parquet",), "Give PARQUET.")
        fields = options.get(PARTITION_FIELDS)
        flag = partial(_flag, options)
        return cls(
            enabled=flag(ENABLE, False) or flag(HIVE_ENABLE, False),
            catalogs=_catalogs(options),
            uris=options.get(URIS, ""),
            database=options.get(f"{_HIVE}database", cls.database),
            table=options.get(f"{_HIVE}table", ""),
            partition_fields=None if fields is None else _parse_list(fields),
            extractor=_extractor(options),
            create_database=flag(f"{_HIVE}auto_create_database", cls.create_database),
            skip_ro_suffix=flag(f"{_HIVE}skip_ro_suffix", cls.skip_ro_suffix),
            timestamps=flag(f"{_HIVE}support_timestamp", cls.timestamps),
            table_properties=_pairs(options, f"{_HIVE}table_properties"),
            serde_properties=_pairs(options, f"{_HIVE}serde_properties"),
            as_spark_table=flag(f"{_HIVE}sync_as_datasource", cls.as_spark_table),
            part_length=parse_int(
                options, f"{_HIVE}schema_string_length_thresh", default=cls.part_length
            ),
            meta_columns=not flag(f"{_HIVE}omit_metadata_fields", not cls.meta_columns),
            batch=parse_int(options, f"{_HIVE}batch_num", default=cls.batch),
            comments=flag(f"{_HIVE}sync_comment", cls.comments),
            strategy=parse_enum(
                options, f"{_HIVE}table.strategy", ("ALL", "RO", "RT"), cls.strategy
            ),
            snapshot_by_name=flag(f"{_META}sync_snapshot_with_table_name", cls.snapshot_by_name),
            conditional=flag("hoodie.datasource.meta_sync.condition.sync", cls.conditional),
            spark_version=options.get("hoodie.meta_sync.spark.version", ""),
            metadata_listing=flag(f"{_GLUE}metadata_file_listing", cls.metadata_listing),
            skip_archive=flag(f"{_GLUE}skip_table_archive", cls.skip_archive),
        )


def _flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    return parse_bool(options, name, default=default)


def _catalogs(options: Mapping[str, str]) -> tuple[Literal["hive", "glue"], ...]:
    catalogs: list[Literal["hive", "glue"]] = []
    for class_name in _parse_list(options.get(TOOLS, _HIVE_TOOL)):
        name = class_name.rsplit(".", 1)[-1]
        if name not in (_HIVE_TOOL, _GLUE_TOOL):
            raise UnsupportedTableFeature(
                f"{TOOLS} is {class_name!r}, which pyhudi does not support",
                hint=f"pyhudi has {_HIVE_TOOL} and {_GLUE_TOOL}.",
            )
        catalogs.append("hive" if name == _HIVE_TOOL else "glue")
    # Hudi's own switch adds Hive to the tools that are named.
    if parse_bool(options, HIVE_ENABLE, default=False) and "hive" not in catalogs:
        catalogs.append("hive")
    return tuple(dict.fromkeys(catalogs))


def _extractor(options: Mapping[str, str]) -> str:
    name = options.get(EXTRACTOR, "").strip().rsplit(".", 1)[-1]
    if name not in ("", *EXTRACTORS):
        raise UnsupportedTableFeature(
            f"{EXTRACTOR} is {options[EXTRACTOR]!r}, which pyhudi does not support",
            hint=f"pyhudi has {', '.join(EXTRACTORS)}.",
        )
    return name


def _check_one_of(
    options: Mapping[str, str], name: str, supported: tuple[str, ...], hint: str
) -> None:
    if name in options and options[name].strip().lower() not in supported:
        raise UnsupportedTableFeature(
            f"{name} is {options[name]!r}, which pyhudi does not support", hint=hint
        )


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _pairs(options: Mapping[str, str], name: str) -> dict[str, str]:
    """Return lines of `key=value` as a mapping (`ConfigUtils.toMap`)."""
    values = {}
    for line in options.get(name, "").splitlines():
        if not line.strip():
            continue
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"{name} has the line {line!r}", hint="Give key=value lines.")
        values[key.strip()] = value.strip()
    return values
