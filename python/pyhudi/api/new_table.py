"""The choices of a new table, from the arguments and options of `create_table`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import pyarrow as pa

from pyhudi.clock import parse_zone
from pyhudi.config.column_rules import choose_rules
from pyhudi.config.constraints import format_expressions
from pyhudi.config.merge_mode import MERGE_MODE
from pyhudi.config.meta_columns import IS_DELETED
from pyhudi.config.new_table_properties import NewTable, new_table_config
from pyhudi.config.option_parsing import parse_enum
from pyhudi.config.options import CreateOptions
from pyhudi.config.property_names import (
    BASE_FILE_FORMAT,
    CDC_ENABLED,
    CDC_MODE,
    CONSTRAINTS,
    GENERATED_COLUMNS,
    HIVE_STYLE,
    KEY_GENERATOR_TYPE,
    META_FIELDS,
    SLASH_DATES,
    TIMEZONE,
)
from pyhudi.config.table_config import TableConfig, TableType
from pyhudi.config.timestamp_keygen_options import TIME_OPTIONS, ZONE
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.schema.column_rules import check_rules
from pyhudi.schema.column_transforms import ColumnTransform
from pyhudi.schema.constraints import build_constraint
from pyhudi.schema.key_generator import GENERATORS
from pyhudi.schema.row_rules import check_merge_mode
from pyhudi.schema.supported_types import avro_schema
from pyhudi.schema.table_schema import field_at
from pyhudi.slices.cdc_format import MODES
from pyhudi.storage.storage import Storage
from pyhudi.suggestions import case_hint
from pyhudi.write.checks import check_config

PartitionBy = str | ColumnTransform | Sequence[str | ColumnTransform] | None
Expressions = Mapping[str, str | ColumnTransform]


def with_generated(
    schema: pa.Schema, partition_by: PartitionBy, generated: Expressions
) -> tuple[pa.Schema, tuple[str, ...], dict[str, str]]:
    """Return the columns with generated ones, the partition columns, and all SQL expressions."""
    columns = (
        (partition_by,) if isinstance(partition_by, (str, ColumnTransform)) else partition_by or ()
    )
    expressions = dict(generated)
    for column in columns:
        if not isinstance(column, ColumnTransform):
            continue
        if expressions.setdefault(column.name, column) != column:
            msg = f"partition_by and generated have two expressions for {column.name!r}"
            raise ConfigError(msg, hint="Choose another name with as_.")
    names = tuple(c.name if isinstance(c, ColumnTransform) else c for c in columns)
    if not expressions:
        return schema, names, {}
    from pyhudi.schema.generated_columns import add_generated_fields  # noqa: PLC0415 - sqlglot takes a while to import

    schema, checked = add_generated_fields(schema, expressions)
    return schema, names, checked


def config_of(
    new: NewTable, schema: pa.Schema, constraints: Mapping[str, str], generated: Mapping[str, str]
) -> TableConfig:
    """Return the configuration of a new table with constraints and generated columns."""
    for name, condition in constraints.items():
        build_constraint(name, condition, schema)
    for name, expressions in ((CONSTRAINTS, constraints), (GENERATED_COLUMNS, generated)):
        if expressions:
            new = replace(new, extra={**new.extra, name: format_expressions(expressions)})
    config = new_table_config(new)
    check_config(config)
    if constraints or generated:
        check_merge_mode(config)
    return config


def names_of(columns: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of an argument that may be one name."""
    if columns is None:
        return ()
    return (columns,) if isinstance(columns, str) else tuple(columns)


def new_table(
    storage: Storage,
    schema: pa.Schema,
    *,
    key: tuple[str, ...],
    partition_by: tuple[str, ...],
    order_by: tuple[str, ...],
    table_type: TableType,
    version: int,
    options: Mapping[str, str],
) -> NewTable:
    """Return the choices of a caller. Raises `ConfigError` for those that do not match."""
    partition_by, types = _partition_types(partition_by)
    _check_columns(schema, key=key, partition_by=partition_by, order_by=order_by)
    requested = CreateOptions.of(options)
    rules = choose_rules(requested.merge_rules)
    deletes = () if requested.deletes is None else requested.deletes[:1]
    check_rules(schema, rules, (*key, *partition_by, *order_by, *deletes, IS_DELETED))
    name = requested.name or storage.native.uri.rstrip("/").rsplit("/", 1)[-1]
    record = _avro_name(name)
    zone = {} if requested.timezone is None else {TIMEZONE: parse_zone(requested.timezone)}
    file_format = requested.file_format
    return NewTable(
        name=name,
        table_type=table_type,
        version=version,
        record_key_fields=key,
        partition_fields=partition_by,
        ordering_fields=order_by,
        merge_mode=_merge_mode(requested.merge_mode),
        payload=requested.payload,
        partial_update_mode=requested.partial_update_mode.upper(),
        unavailable=requested.unavailable,
        column_rules=rules,
        deletes=requested.deletes,
        database=requested.database,
        create_schema=avro_schema(schema, f"{record}_record", f"hoodie.{record}"),
        hive_style=requested.hive_style,
        url_encode=requested.url_encode,
        partition_types=types,
        generator=_generator(requested),
        extra={
            **zone,
            **_key_properties(options, requested, types),
            **({} if requested.meta_fields else {META_FIELDS: "false"}),
            **_change_logs(requested),
            **({BASE_FILE_FORMAT: file_format.upper()} if file_format else {}),
        },
    )


def _generator(requested: CreateOptions) -> str:
    generator = requested.generator.upper()
    if generator not in ("", *GENERATORS):
        msg = f"{KEY_GENERATOR_TYPE} is {requested.generator!r}"
        raise ConfigError(msg, hint=f"One of {', '.join(GENERATORS)}, or leave it out.")
    return generator


def _partition_types(columns: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields and types of `field:type` entries; no types if no entry has one."""
    if not any(":" in part for part in columns):
        return columns, ()
    pairs = [part.partition(":") for part in columns]
    for name, _, field_type in pairs:
        if field_type.upper() not in ("SIMPLE", "TIMESTAMP"):
            msg = f"partition_by has {name}:{field_type}"
            raise ConfigError(msg, hint="Give each column as name:simple or name:timestamp.")
    # Hudi stores the types as the writer spells them, too (1.2.0).
    return tuple(name for name, _, _ in pairs), tuple(field_type for _, _, field_type in pairs)


def _key_properties(
    options: Mapping[str, str], requested: CreateOptions, types: tuple[str, ...]
) -> dict[str, str]:
    """Return the properties of a timestamp key generator and of dates with slashes."""
    properties = {name: options[name] for name in TIME_OPTIONS if name in options}
    timed = "TIMESTAMP" in (_generator(requested), *map(str.upper, types))
    if timed and not any(name.endswith("timezone") for name in properties):
        properties[ZONE] = "UTC"
    if requested.slash_dates is not None:
        properties[SLASH_DATES] = "true" if requested.slash_dates else "false"
        if requested.slash_dates and requested.hive_style:
            # Hudi's writers differ here, and its readers do not parse the paths.
            msg = f"{SLASH_DATES} and {HIVE_STYLE} are both true"
            raise UnsupportedTableFeature(msg, hint="Set one.")
    return properties


def _change_logs(requested: CreateOptions) -> dict[str, str]:
    """Return the properties of change data capture; Hudi stores the mode only if it is enabled."""
    chosen = {} if requested.change_log_mode is None else {CDC_MODE: requested.change_log_mode}
    mode = parse_enum(chosen, CDC_MODE, MODES, MODES[0])
    if requested.change_logs:
        return {CDC_ENABLED: "true", CDC_MODE: mode}
    if chosen:
        msg = f"{CDC_MODE} is {chosen[CDC_MODE]!r}, but {CDC_ENABLED} is not true"
        raise ConfigError(msg, hint=f"Pass {CDC_ENABLED} too, or leave the mode out.")
    return {}


def _merge_mode(
    mode: str | None,
) -> Literal["COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"] | None:
    if mode is None:
        return None
    if mode.upper() == "COMMIT_TIME_ORDERING":
        return "COMMIT_TIME_ORDERING"
    if mode.upper() == "EVENT_TIME_ORDERING":
        return "EVENT_TIME_ORDERING"
    msg = f"{MERGE_MODE} is {mode!r}"
    raise ConfigError(msg, hint="Pass COMMIT_TIME_ORDERING or EVENT_TIME_ORDERING.")


def _check_columns(schema: pa.Schema, **roles: tuple[str, ...]) -> None:
    for role, names in roles.items():
        for name in names:
            if not (
                field_at(schema, name) is not None if role != "order_by" else name in schema.names
            ):
                msg = f"{role} names {name!r}, which is not a column of the table"
                hint = (
                    case_hint([name], schema.names) or f"The columns are {', '.join(schema.names)}."
                )
                raise ConfigError(msg, hint=hint)
        if len(set(names)) < len(names):
            raise ConfigError(f"{role} names a column twice")


def _avro_name(table_name: str) -> str:
    """Return the table name with `__` for characters that Avro forbids (`sanitizeName`, 1.2.0)."""
    name = re.sub(r"[^A-Za-z0-9_]", "__", table_name)
    return re.sub(r"^[^A-Za-z_]", "__", name)
