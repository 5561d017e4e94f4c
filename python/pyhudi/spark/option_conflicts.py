"""Checks that Hudi's options match the table; a write with other options raises `ConfigError`."""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.config.merge_mode import MERGE_MODE
from pyhudi.config.options import WRITE_MERGE_MODE
from pyhudi.config.property_names import (
    CDC_ENABLED,
    HIVE_STYLE,
    KEY_GENERATOR_TYPE,
    META_FIELDS,
    SLASH_DATES,
    URL_ENCODE,
)
from pyhudi.config.table_config import TableConfig
from pyhudi.config.table_version import table_version
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.spark.hudi_options import RANGE_VERSION, ReadRequest, WriteRequest
from pyhudi.storage.properties import TABLE_NAME

_DEFAULTS = {
    HIVE_STYLE: "false",
    URL_ENCODE: "false",
    SLASH_DATES: "false",
    META_FIELDS: "true",
    CDC_ENABLED: "false",
}


def check_write_options(request: WriteRequest, config: TableConfig) -> None:
    """Raise `ConfigError` naming an option that differs from the table."""
    for name, option_value, table_value in _compare_options(request, config):
        if option_value.lower() != table_value.lower():
            raise ConfigError(
                f"{name} is {option_value!r} in the options and {table_value!r} in the table",
                hint="Leave it out, or write to another table.",
            )


def check_range_version(request: ReadRequest, config: TableConfig) -> None:
    """Raise `UnsupportedTableFeature` for a range in times that the table does not use."""
    if request.version is None:
        return
    by_completion = config.version.incremental_by_completion_time
    if table_version(request.version).incremental_by_completion_time != by_completion:
        time_type = "completion" if by_completion else "request"
        raise UnsupportedTableFeature(
            f"{RANGE_VERSION} is {request.version} and the table's version {config.version.code}",
            hint=f"Leave it out, and give the range as times of {time_type}.",
        )


def _compare_options(request: WriteRequest, config: TableConfig) -> Iterator[tuple[str, str, str]]:
    """Yield the settings of both sides: name, value in the options, value in the table."""
    columns = (
        ("the record key", request.key, config.record_key_fields),
        ("the partition path", _bare(request.partition_by), config.partition_fields),
        ("the ordering", request.order_by, config.ordering_fields),
    )
    for setting, values, table_columns in columns:
        if values is not None:
            yield setting, ",".join(values), ",".join(table_columns)
    if request.type is not None:
        yield "the table's type", request.type, "mor" if config.is_merge_on_read else "cow"
    if request.version is not None:
        yield "the table's version", str(request.version), str(config.version.code)
    for name, value in request.table_options.items():
        table_value = _table_setting(config, name)
        if table_value is not None:
            yield name, value, table_value


def _bare(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(name.partition(":")[0] for name in names)


def _table_setting(config: TableConfig, name: str) -> str | None:
    """Return a table's setting for an option; None if it has none."""
    if name == TABLE_NAME:
        return config.name
    if name == KEY_GENERATOR_TYPE:
        return config.key_generator.removesuffix("_AVRO")
    if name in (MERGE_MODE, WRITE_MERGE_MODE):
        return config.merge.mode
    return config.properties.get(name, _DEFAULTS.get(name))
