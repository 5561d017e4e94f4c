"""Checks that Hudi's options match the table; a write with other options raises `ConfigError`."""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.config.merge_mode import MERGE_MODE
from pyhudi.config.options import WRITE_MERGE_MODE
from pyhudi.config.properties import TABLE_NAME
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

_BY_DEFAULT = {
    HIVE_STYLE: "false",
    URL_ENCODE: "false",
    SLASH_DATES: "false",
    META_FIELDS: "true",
    CDC_ENABLED: "false",
}


def check_fits(asked: WriteRequest, config: TableConfig) -> None:
    """Raise `ConfigError` naming an option that differs from the table."""
    for name, option_value, has in _compare_options(asked, config):
        if option_value.lower() != has.lower():
            raise ConfigError(
                f"{name} is {option_value!r} in the options and {has!r} in the table",
                hint="Leave it out, or write to another table.",
            )


def check_range(asked: ReadRequest, config: TableConfig) -> None:
    """Raise `UnsupportedTableFeature` for a range in times that the table does not use."""
    if asked.version is None:
        return
    by_completion = config.version.incremental_by_completion_time
    if table_version(asked.version).incremental_by_completion_time != by_completion:
        time_type = "completion" if by_completion else "request"
        raise UnsupportedTableFeature(
            f"{RANGE_VERSION} is {asked.version} and the table's version {config.version.code}",
            hint=f"Leave it out, and give the range as times of {time_type}.",
        )


def _compare_options(asked: WriteRequest, config: TableConfig) -> Iterator[tuple[str, str, str]]:
    """Yield what both sides set: its name, and each side's value."""
    columns = (
        ("the record key", asked.key, config.record_key_fields),
        ("the partition path", _bare(asked.partition_by), config.partition_fields),
        ("the ordering", asked.order_by, config.ordering_fields),
    )
    for setting, values, has in columns:
        if values is not None:
            yield setting, ",".join(values), ",".join(has)
    if asked.type is not None:
        yield "the table's type", asked.type, "mor" if config.is_merge_on_read else "cow"
    if asked.version is not None:
        yield "the table's version", str(asked.version), str(config.version.code)
    for name, said_text in asked.making.items():
        has_text = _said_by(config, name)
        if has_text is not None:
            yield name, said_text, has_text


def _bare(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(name.partition(":")[0] for name in names)


def _said_by(config: TableConfig, name: str) -> str | None:
    """Return a table's setting for an option; None if it has none."""
    if name == TABLE_NAME:
        return config.name
    if name == KEY_GENERATOR_TYPE:
        return config.key_generator.removesuffix("_AVRO")
    if name in (MERGE_MODE, WRITE_MERGE_MODE):
        return config.merge.mode
    return config.properties.get(name, _BY_DEFAULT.get(name))
