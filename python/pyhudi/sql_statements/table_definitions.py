"""Definitions of tables in SQL for any engine: TBLPROPERTIES, partition columns, indexes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from pyhudi.api.table import HudiTable
from pyhudi.config.log import warn
from pyhudi.config.property_names import HIVE_STYLE
from pyhudi.errors import ConfigError, MaintenanceWarning
from pyhudi.metadata.index_definitions import index_definitions
from pyhudi.sql_statements.procedures import table_properties
from pyhudi.sql_statements.statements import CreateIndex, CreateTable, Show
from pyhudi.sql_statements.tokens import quote_name, quote_text
from pyhudi.storage.properties import TABLE_NAME

KEY = "hoodie.datasource.write.recordkey.field"
ORDERING = "hoodie.table.ordering.fields"
TABLE_TYPE = "hoodie.datasource.write.table.type"
PAYLOAD = "hoodie.datasource.write.payload.class"
_SQL_NAMES = {
    "primarykey": KEY,
    "precombinefield": ORDERING,
    "orderingfields": ORDERING,
    "type": TABLE_TYPE,
    "payloadclass": PAYLOAD,
    "recordmergemode": "hoodie.write.record.merge.mode",
}
"""Hudi's options by the names that its SQL has for them (`HoodieOptionConfig`, 1.2.0)."""
_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}


def options_of_properties(statement: CreateTable) -> dict[str, str]:
    """Return Hudi's options of TBLPROPERTIES."""
    options: dict[str, str] = {HIVE_STYLE: "true"}
    for name, value in statement.properties.items():
        option = _SQL_NAMES.get(name.lower(), name)
        if name.lower() == "comment":
            warn(f"{statement.table}: the comment is not stored", MaintenanceWarning)
            continue
        if not option.startswith("hoodie."):
            raise ConfigError(
                f"TBLPROPERTIES has {name!r}",
                hint="Use primaryKey, orderingFields, type, or an option hoodie.…",
            )
        options[option] = _TYPES.get(value.lower(), value) if name.lower() == "type" else value
    return options


def name_option(statement: CreateTable) -> dict[str, str]:
    """Return the option that names a new table as its statement does, as Hudi's SQL does.

    A table that is named by its location has no other name (`HoodieCatalogTable`, 1.2.0).
    """
    return {} if statement.table.path is not None else {TABLE_NAME: statement.table.parts[-1]}


def order_partitions_last(schema: pa.Schema, partition_by: Sequence[str]) -> pa.Schema:
    """Return the columns with those of the partition last, as Hudi's SQL stores them."""
    unknown = [name for name in partition_by if name not in schema.names]
    if unknown:
        raise ConfigError(
            f"PARTITIONED BY names {unknown[0]!r}, which is not a column",
            hint=f"The columns are {', '.join(schema.names)}.",
        )
    first = [field for field in schema if field.name not in partition_by]
    return pa.schema([*first, *(schema.field(name) for name in partition_by)])


def check_partition_spec(names: Iterable[str], table: HudiTable, values: Iterable[object]) -> None:
    """Raise `ConfigError` if a PARTITION clause does not give each partition column a value.

    names: the table's names of the columns of the clause.
    """
    fields, names = table.config.partition_fields, list(names)
    if set(names) != set(fields) or None in values:
        raise ConfigError(
            f"PARTITION names {', '.join(names)}",
            hint=f"Give each of {', '.join(fields) or 'no columns'} a value.",
        )


def create_index(table: HudiTable, statement: CreateIndex, columns: Sequence[str]) -> None:
    """Create an index. Without USING it is a secondary index, as in Hudi 1.1 and later.

    columns: the table's names of the statement's columns.
    """
    if statement.if_not_exists and statement.name in index_names(table):
        return
    options = {name.lower(): value for name, value in statement.options.items()}
    function = options.pop("expr", None)
    kind = statement.index_type.lower() or "secondary_index"
    if statement.name == "record_index":
        kind = "record_index"
    if kind == "record_index":
        table.create_index(kind)
    elif kind == "secondary_index" or function is not None:
        table.create_index(
            kind,
            columns,
            name=statement.name,
            function=function,
            options=options or None,
        )
    else:
        table.create_index(kind, columns)


def index_names(table: HudiTable) -> set[str]:
    """Return the partitions of the metadata table, and the names of indexes in SQL."""
    partitions = set(table.config.metadata_partitions)
    prefixes = ("secondary_index_", "expr_index_")
    return partitions | {name.removeprefix(prefix) for name in partitions for prefix in prefixes}


def describe(statement: Show, table: HudiTable, columns: Sequence[tuple[str, str]]) -> pa.Table:
    """Return the rows of a statement that describes a table, except for history and detail.

    columns: names and types in SQL.
    """
    match statement.what:
        case "columns":
            types = dict(columns)
            generated = table.generated_columns
            comments = {name: f"GENERATED ALWAYS AS ({sql})" for name, sql in generated.items()}
            rows: list[tuple[str | None, ...]] = [
                (name, data_type, comments.get(name)) for name, data_type in columns
            ]
            rows += _details(statement, table, types) if statement.extended else []
            return _text_rows(("col_name", "data_type", "comment"), rows)
        case "partitions":
            return table.inspect.partitions().select(["partition"])
        case "properties":
            return table_properties(table)
        case "indexes":
            return _text_rows(("index_name", "index_type", "columns"), _indexes(table))
        case _:
            text = _create_statement(statement, table, columns)
            return _text_rows(("createtab_stmt",), [(text,)])


def _details(
    statement: Show, table: HudiTable, types: dict[str, str]
) -> list[tuple[str | None, ...]]:
    """Return the rows of DESCRIBE EXTENDED after the columns, by Spark's names."""
    name = statement.table
    rows = []
    if table.config.partition_fields:
        rows = [("# Partition Information", ""), ("# col_name", "data_type")]
        rows += [(field, types[field]) for field in table.config.partition_fields]
    properties = ",".join(f"{key}={value}" for key, value in _sql_properties(table).items())
    rows += [
        ("", ""),
        ("# Detailed Table Information", ""),
        ("Database", name.parts[-2] if len(name.parts) > 1 else ""),
        ("Table", name.parts[-1]),
        ("Type", "EXTERNAL"),
        ("Provider", "hudi"),
        ("Location", table.uri),
        ("Table Properties", f"[{properties}]"),
    ]
    return [(key, value, "comment" if key == "# col_name" else "") for key, value in rows]


def _create_statement(statement: Show, table: HudiTable, columns: Sequence[tuple[str, str]]) -> str:
    config = table.config
    listed = ",\n  ".join(f"{_quote(name)} {data_type.upper()}" for name, data_type in columns)
    lines = [f"CREATE TABLE {statement.table} (\n  {listed})", "USING hudi"]
    if config.partition_fields:
        lines.append(f"PARTITIONED BY ({', '.join(map(_quote, config.partition_fields))})")
    lines.append(f"LOCATION {quote_text(table.uri)}")
    properties = sorted(_sql_properties(table).items())
    pairs = ",\n  ".join(f"{quote_text(name)} = {quote_text(value)}" for name, value in properties)
    return "\n".join([*lines, f"TBLPROPERTIES (\n  {pairs})"])


def _quote(name: str) -> str:
    return name if name.isidentifier() else quote_name(name, "spark")


def _sql_properties(table: HudiTable) -> dict[str, str]:
    """Return the TBLPROPERTIES that describe a table."""
    config = table.config
    properties = {"type": "mor" if config.is_merge_on_read else "cow"}
    if config.record_key_fields:
        properties["primaryKey"] = ",".join(config.record_key_fields)
    if config.ordering_fields:
        properties["orderingFields"] = ",".join(config.ordering_fields)
    return properties


def _indexes(table: HudiTable) -> list[tuple[str, str, str]]:
    definitions = index_definitions(table.storage, table.config)
    result = []
    for partition in sorted(table.config.metadata_partitions):
        definition = definitions.get(partition)
        kind = partition if definition is None else definition.index_type
        columns = () if definition is None else definition.columns
        result.append((partition, kind, ",".join(columns)))
    return result


def _text_rows(names: tuple[str, ...], rows: Iterable[tuple[str | None, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table(
        {name: pa.array(values, pa.string()) for name, values in zip(names, columns, strict=True)}
    )
