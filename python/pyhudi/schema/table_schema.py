"""The table's schema: its sources, and the columns that a reader gets.

No rows are read here, and the Rust core translates types. Order of the sources as in
`TableSchemaResolver` (Hudi 1.2.0).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi.config.actions import COMMIT_ACTIONS, Instant
from pyhudi.config.bounded_json import MAX_SCHEMA, parse_json
from pyhudi.config.file_names import file_name_of, parse_base_name
from pyhudi.config.meta_columns import META_COLUMNS
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable, SchemaMismatch, UnsupportedTableFeature
from pyhudi.input.semi_structured import is_variant
from pyhudi.schema.internal_schema import Evolution, SchemaHistory, find_history
from pyhudi.storage.properties_file import FILE
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.timeline.time_travel import schema_before_start

OPERATION_FIELD = "_hoodie_operation"
"""A sixth meta column, of tables with a change log."""


@dataclass(frozen=True)
class TableSchema:
    """A table's schema at one instant."""

    avro: str
    """Avro JSON without meta fields."""
    arrow: pa.Schema
    """The columns of reads: meta fields in front if the table has them, then the data columns."""
    evolution: Evolution | None = None
    """The column names of older files, if schema on read allows other names."""
    history: SchemaHistory | None = None
    """The columns' ids, of a table that was evolved by id."""

    @property
    def meta_columns(self) -> list[str]:
        """Names of the meta columns that the table has."""
        return [name for name in self.arrow.names if is_meta(name)]

    @property
    def data_columns(self) -> list[str]:
        """Names of the columns that are not meta columns, in table order."""
        return [name for name in self.arrow.names if not is_meta(name)]


def is_meta(name: str) -> bool:
    """Return whether a column of this name is a meta column."""
    return name in META_COLUMNS or name == OPERATION_FIELD


def field_at(schema: pa.Schema, path: str) -> pa.Field | None:
    """Return the column of a name or the struct field of a dotted path, or None."""
    if path in schema.names:
        return schema.field(path)
    root, *names = path.split(".")
    if root not in schema.names:
        return None
    field = schema.field(root)
    for name in names:
        at = field.type.get_field_index(name) if pa.types.is_struct(field.type) else -1
        if at < 0:
            return None
        field = field.type.field(at)
    return field


def root_columns(schema: pa.Schema, paths: Iterable[str]) -> list[str]:
    """Return the columns that have the values of names or dotted paths."""
    return [path if path in schema.names else path.split(".", 1)[0] for path in paths]


def within_collection(schema: pa.Schema, path: str) -> bool:
    """Return whether a dotted path, as in Parquet, leads into a list or a map."""
    steps = path.split(".")
    starts = [field_at(schema, ".".join(steps[:depth])) for depth in range(1, len(steps))]
    return any(
        pa.types.is_list(field.type) or pa.types.is_map(field.type)
        for field in starts
        if field is not None
    )


def narrow_column(schema: pa.Schema, excluded: Collection[str] = ()) -> str:
    """Return a column that is cheap to read if only the number of rows matters."""
    names = [field.name for field in schema if field.name not in excluded]
    fixed = (name for name in names if pa.types.is_primitive(schema.field(name).type))
    narrow: str = next(fixed, names[0])
    return narrow


def readable_schema(schema: pa.Schema, avro: str) -> pa.Schema:
    """Return the schema with nullable parts of structs, lists and maps, and nullable defaults.

    Files may have nulls that the table's schema does not allow: from writers that ignored it, and
    in fields that older files do not have. Hudi's Spark readers return them too. A required column
    that was added later has a default, which no reader fills in.

    avro: the same schema.
    """
    required = any(not field.nullable for field in schema)
    fields = _parse(avro)["fields"] if required else ()
    later = {field["name"] for field in fields if "default" in field}
    return pa.schema(
        [
            # Arrow's VARIANT is one of required fields.
            field.with_type(
                field.type if is_variant(field) else _readable(field.type)
            ).with_nullable(field.nullable or field.name in later)
            for field in schema
        ]
    )


def _readable(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(data_type):
        return pa.struct(
            [_nullable(data_type.field(index)) for index in range(data_type.num_fields)]
        )
    if pa.types.is_list(data_type):
        return pa.list_(_nullable(data_type.value_field))
    if pa.types.is_map(data_type):
        return pa.map_(data_type.key_field, _nullable(data_type.item_field))
    return data_type


def _nullable(field: pa.Field) -> pa.Field:
    return field.with_type(_readable(field.type)).with_nullable(nullable=True)


def table_schema(storage: Storage, config: TableConfig, timeline: Timeline) -> TableSchema:
    """Return the schema of the newest commit that has one, of the creation, or of a newest file.

    Commits of services do not count. For a timeline up to an instant (`Timeline.until`) it is the
    schema at that instant.

    Raises `SchemaMismatch` for a table that was never written and has no schema, `CorruptTable` for
    a schema that cannot be parsed.
    """
    newest, avro = _schema_of_commits(timeline)
    where = timeline.path(newest) if newest else timeline.archive.folder
    if not avro:
        where, avro = FILE, _schema_of_creation(config)
    if not avro:
        where, avro = _schema_of_newest_file(storage, timeline)
    try:
        bare, arrow = _bare_and_arrow(avro, config)
    except (CorruptTable, SchemaMismatch) as error:
        raise CorruptTable(f"{where}: {error}", file=where) from error
    history = find_history(storage, timeline, newest)
    return TableSchema(bare, arrow, history.evolution(arrow) if history else None, history)


def schema_from_avro(
    avro: str, config: TableConfig, history: SchemaHistory | None = None
) -> TableSchema:
    """Return the schema that a write gives the table, from Avro JSON without meta fields.

    history: the ids of its columns, if they have ids.
    """
    bare, arrow = _bare_and_arrow(avro, config)
    return TableSchema(bare, arrow, history.evolution(arrow) if history else None, history)


def earlier_schemas(config: TableConfig, timeline: Timeline) -> list[pa.Schema]:
    """Return the schemas of the table's creation, first commit and newest commit that are known."""
    from pyhudi import _native  # noqa: PLC0415 - the rules above need no core

    first = [timeline.commit_metadata(commit).schema for commit in timeline.commits[:1]]
    schemas = {_schema_of_creation(config), *first, _schema_of_commits(timeline)[1]}
    return [_native.arrow_schema(avro) for avro in schemas if avro]


def first_schema(config: TableConfig, timeline: Timeline) -> pa.Schema | None:
    """Return the schema of the table's creation, else of its first commit; None if unknown."""
    from pyhudi import _native  # noqa: PLC0415 - the rules above need no core

    avro = _schema_of_creation(config)
    if avro is None and timeline.commits and timeline.archive.is_empty:
        avro = timeline.commit_metadata(timeline.commits[0]).schema
    return _native.arrow_schema(avro) if avro else None


def _bare_and_arrow(avro: str, config: TableConfig) -> tuple[str, pa.Schema]:
    from pyhudi import _native  # noqa: PLC0415 - the rules above need no core

    record = _parse(avro)
    if config.drop_partition_columns:
        avro = _with_partition_columns(avro, record, config.partition_fields)
    bare = _native.without_meta_fields(avro)
    whole = _native.with_meta_fields(avro) if config.populate_meta_fields else bare
    meta_first = sorted(_native.arrow_schema(whole), key=lambda field: not is_meta(field.name))
    return bare, pa.schema(meta_first)


def _schema_of_commits(timeline: Timeline) -> tuple[Instant | None, str | None]:
    of_service: tuple[Instant | None, str | None] = None, None
    for instant in reversed(timeline.filter_completed(*COMMIT_ACTIONS)):
        metadata = timeline.commit_metadata(instant)
        if metadata.table_schema:
            return instant, metadata.table_schema
        if metadata.schema and not of_service[0]:
            of_service = instant, metadata.schema
    before = schema_before_start(timeline)
    # That of the table's creation, which Hudi takes here, is older than a service's.
    return (None, before) if before else of_service


def _schema_of_creation(config: TableConfig) -> str | None:
    return config.create_schema or None


def _schema_of_newest_file(storage: Storage, timeline: Timeline) -> tuple[str, str]:
    """Return the schema that the newest file of a commit records."""
    for instant in reversed(timeline.filter_completed(*COMMIT_ACTIONS)):
        paths = [stat.path for stat in timeline.commit_metadata(instant).write_stats]
        for path in filter(None, paths):
            schema = _schema_of_file(storage, path)
            if schema:
                return path, schema
    raise SchemaMismatch(
        "the table has no schema yet: no commit, no hoodie.table.create.schema",
        hint="Write to it once, or create it with a schema.",
    )


def _schema_of_file(storage: Storage, path: str) -> str | None:
    from pyhudi import _native  # noqa: PLC0415 - the rules above need no core

    if not storage.exists(path):
        return None
    if parse_base_name(file_name_of(path)) is not None:
        return _native.base_file_schema(storage.native, path)[0]
    headers = (block["header"] for block in _native.log_blocks(storage.native, path))
    schemas = [header["SCHEMA"] for header in headers if header.get("SCHEMA")]
    return str(schemas[-1]) if schemas else None


def _with_partition_columns(avro: str, record: Mapping[str, Any], fields: Sequence[str]) -> str:
    """Append dropped partition columns that the schema does not have, as nullable strings."""
    present = {field["name"] for field in record["fields"]}
    added = [
        {"name": name, "type": ["null", "string"], "default": None}
        for name in fields
        if name not in present
    ]
    return json.dumps({**record, "fields": [*record["fields"], *added]}) if added else avro


def _parse(avro: str) -> Mapping[str, Any]:
    record = parse_json(avro, "the table's Avro schema", max_bytes=MAX_SCHEMA, is_file=False)
    if not isinstance(record, dict) or "fields" not in record:
        raise CorruptTable("the table's Avro schema is not a record")
    return record


def schema_defaults(avro: str, schema: pa.Schema) -> pa.RecordBatch | None:
    """Return the defaults of an Avro schema as one row, to compare values with; or None.

    Null defaults are left out. Defaults of bytes and of decimals are nulls, which equal nothing: in
    Hudi the bytes of a value never equal those of a default (`Objects.equals` of a buffer or a
    fixed and an array in `OverwriteWithLatestAvroPayload.overwriteField`, 0.15.0 and 1.2.0), and
    neither does a null.

    Raises `UnsupportedTableFeature` for a default of a nested type, `CorruptTable` for a default
    that is not a value of its type.
    """
    defaults = {}
    for field in _parse(avro)["fields"]:
        name, default = field["name"], field.get("default")
        if default is None or name not in schema.names:
            continue
        data_type = schema.field(name).type
        if pa.types.is_nested(data_type) or isinstance(default, dict | list):
            raise UnsupportedTableFeature(
                f"{name} has a default of type {data_type}, with which a partial update "
                "cannot compare values",
            )
        defaults[name] = (
            pa.nulls(1, data_type) if _has_bytes(data_type) else _default(default, data_type, name)
        )
    return pa.RecordBatch.from_pydict(defaults) if defaults else None


def _has_bytes(data_type: pa.DataType) -> bool:
    tests = (pa.types.is_binary, pa.types.is_fixed_size_binary, pa.types.is_decimal)
    return any(test(data_type) for test in tests)


def _default(default: Any, data_type: pa.DataType, name: str) -> pa.Array[Any]:
    """Return a default as an array. For dates and times it is the stored number."""
    stored = data_type
    if pa.types.is_temporal(data_type):
        stored = pa.int32() if data_type.bit_width == pa.int32().bit_width else pa.int64()
    try:
        if type(default) not in _json_types(stored):
            raise pa.ArrowTypeError(type(default))
        return pa.array([default], stored).cast(data_type)
    except (pa.ArrowException, OverflowError) as error:
        msg = f"the table's Avro schema: {name} is {data_type}, and its default {default!r} is not"
        raise CorruptTable(msg) from error


def _json_types(data_type: pa.DataType) -> tuple[type, ...]:
    if pa.types.is_boolean(data_type):
        return (bool,)
    if pa.types.is_string(data_type):
        return (str,)
    return (int, float) if pa.types.is_floating(data_type) else (int,)
