"""Options that sync a table with a catalog, read once. Names and defaults are Hudi's.

Sources: `HiveSyncConfigHolder`, `HiveSyncConfig`, `HoodieSyncConfig`, `GlueCatalogSyncClientConfig`
and `DataSourceOptions` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from pyhudi.config.option_parsing import (
    OptionGroup,
    check_only,
    choice,
    custom,
    flag,
    integer,
    option,
    option_names,
    parse_bool,
    parse_class,
    parse_names,
    refusal,
    text,
)
from pyhudi.errors import ConfigError, UnsupportedTableFeature

_HIVE = "hoodie.datasource.hive_sync."
_META = "hoodie.meta.sync."
_GLUE = "hoodie.datasource.meta.sync.glue."
ENABLE = "hoodie.datasource.meta.sync.enable"
HIVE_ENABLE = f"{_HIVE}enable"
DATABASE = f"{_HIVE}database"
TABLE = f"{_HIVE}table"
SNAPSHOT_BY_NAME = f"{_META}sync_snapshot_with_table_name"
CONFIGURED = "pyhudi.sync.catalog"
"""Option of a handle that was opened by name: the catalog's settings, and no option of users."""
TOOLS = "hoodie.meta.sync.client.tool.class"
URIS = f"{_HIVE}metastore.uris"
EXTRACTOR = f"{_HIVE}partition_extractor_class"
PARTITION_FIELDS = f"{_HIVE}partition_fields"
OMIT_META_COLUMNS = f"{_HIVE}omit_metadata_fields"

_WITHOUT_EFFECT = (
    *(
        f"{_HIVE}{name}"
        for name in (
            "ignore_exceptions",
            "username",
            "password",
            "jdbcurl",
            "use_jdbc",
            "filter_pushdown_enabled",
            "filter_pushdown_max_size",
        )
    ),
    *(
        f"{_META}{name}"
        for name in (
            "incremental",
            "metadata_file_listing",
            "no_partition_metadata",
            "decode_partition",
        )
    ),
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

_HIVE_TOOL = "HiveSyncTool"
_GLUE_TOOL = "AwsGlueCatalogSyncTool"
EXTRACTORS = (
    "NonPartitionedExtractor",
    "SinglePartPartitionValueExtractor",
    "HiveStylePartitionValueExtractor",
    "MultiPartKeysValueExtractor",
)
"""Simple names of supported classes that parse partition values from a path."""


def _catalogs(options: Mapping[str, str]) -> tuple[Literal["hive", "glue"], ...]:
    catalogs: list[Literal["hive", "glue"]] = []
    for class_name in parse_names({TOOLS: options.get(TOOLS, _HIVE_TOOL)}, TOOLS):
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


def _pairs(options: Mapping[str, str], name: str) -> dict[str, str]:
    """Return lines of `key=value` as a mapping (`ConfigUtils.toMap`)."""
    values = {}
    for line in options.get(name, "").splitlines():
        if not line.strip():
            continue
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            raise ConfigError(
                f"{name} has the line {line!r}", hint="Write one key=value pair per line."
            )
        values[key.strip()] = value.strip()
    return values


def _partition_fields(options: Mapping[str, str]) -> tuple[str, ...] | None:
    return parse_names(options, PARTITION_FIELDS) if PARTITION_FIELDS in options else None


def _check_off(options: Mapping[str, str]) -> None:
    for name in _OFF:
        if parse_bool(options, name, default=False):
            msg = f"{name} is true, which pyhudi does not support"
            raise UnsupportedTableFeature(msg, hint="Leave it out.")


def _only(name: str, value: str) -> Any:
    """Declare an option that has one supported value."""

    def check(options: Mapping[str, str]) -> None:
        if name in options and options[name].strip().lower() != value.lower():
            raise refusal(options, name, f"Pass {value}.")

    return check_only(check, option(name, "other values raise an error", default=value))


def _key_values(name: str, meaning: str) -> Any:
    return custom(partial(_pairs, name=name), option(name, meaning))


@dataclass(frozen=True)
class SyncOptions(OptionGroup):
    """The catalog that a table is synced with, and how it is registered there."""

    enabled: bool = custom(
        lambda options: any(
            parse_bool(options, name, default=False) for name in (ENABLE, HIVE_ENABLE)
        ),
        option((ENABLE, HIVE_ENABLE), "sync after each commit", default=False),
    )
    catalogs: tuple[Literal["hive", "glue"], ...] = custom(
        _catalogs,
        option(TOOLS, f"that, `{_GLUE_TOOL}`, or both separated by a comma", default=_HIVE_TOOL),
    )
    uris: str = text(URIS, "required for Hive: pyhudi does not read `hive-site.xml`")
    database: str = text(DATABASE, "the catalog's database", default="default")
    table: str = text(TABLE, "the name in the catalog", displayed="the table's name")
    create_database: bool = flag(
        f"{_HIVE}auto_create_database", "create the database if it does not exist", default=True
    )
    strategy: str = choice(
        f"{_HIVE}table.strategy",
        "merge-on-read: `RO` or `RT` for one view only, under the plain name",
        ("ALL", "RO", "RT"),
        default="ALL",
    )
    skip_ro_suffix: bool = flag(
        f"{_HIVE}skip_ro_suffix", "the plain name is the read-optimized view", default=False
    )
    snapshot_by_name: bool = flag(
        SNAPSHOT_BY_NAME,
        "merge-on-read: register the plain name, in addition to those with suffixes",
        default=True,
    )
    partition_fields: tuple[str, ...] | None = custom(
        _partition_fields,
        option(
            PARTITION_FIELDS,
            "other names for the partition columns, as text",
            default="the table's",
        ),
    )
    extractor: str = custom(
        partial(parse_class, name=EXTRACTOR, supported=EXTRACTORS),
        option(
            EXTRACTOR,
            ", ".join(f"`{name}`" for name in reversed(EXTRACTORS)),
            default="by the table",
        ),
    )
    timestamps: bool = flag(
        f"{_HIVE}support_timestamp", "timestamps are no `bigint` in Hive", default=False
    )
    meta_columns: bool = custom(
        lambda options: not parse_bool(options, OMIT_META_COLUMNS, default=False),
        option(OMIT_META_COLUMNS, "leave out the meta columns", default=False),
    )
    comments: bool = flag(f"{_HIVE}sync_comment", "sync the comments of columns", default=False)
    table_properties: Mapping[str, str] = _key_values(
        f"{_HIVE}table_properties", "lines of `key=value`"
    )
    serde_properties: Mapping[str, str] = _key_values(
        f"{_HIVE}serde_properties", "lines of `key=value`"
    )
    as_spark_table: bool = flag(
        f"{_HIVE}sync_as_datasource", "store the schema for Spark", default=True
    )
    part_length: int = integer(
        f"{_HIVE}schema_string_length_thresh",
        "maximum characters of that schema in one property",
        default=4000,
    )
    spark_version: str = text(
        "hoodie.meta_sync.spark.version", "the Spark version that is stored with it"
    )
    batch: int = integer(
        f"{_HIVE}batch_num", "partitions per request; Glue takes 100", default=1000
    )
    conditional: bool = flag(
        "hoodie.datasource.meta_sync.condition.sync",
        "record the commit only if something else changed",
        default=False,
    )
    metadata_listing: bool = flag(
        f"{_GLUE}metadata_file_listing", "Athena lists files with the metadata table", default=False
    )
    skip_archive: bool = flag(
        f"{_GLUE}skip_table_archive", "Glue keeps no earlier versions of the table", default=True
    )
    configured: str = custom(lambda options: options.get(CONFIGURED, ""))
    mode: None = _only(f"{_HIVE}mode", "hms")
    base_file_format: None = _only(f"{_HIVE}base_file_format", "PARQUET")
    off: None = check_only(_check_off, option(_OFF, "true raises an error", default=False))
    without_effect: None = check_only(lambda _: None, option(_WITHOUT_EFFECT, "no effect"))


SYNC_OPTIONS = option_names(SyncOptions)
