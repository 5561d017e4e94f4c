"""Where a table's schema comes from, and what a reader sees of it."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.config.meta_columns import META_COLUMNS
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable, SchemaMismatch
from pyhudi.schema import table_schema as schema
from pyhudi.schema.table_schema import (
    TableSchema,
    narrow_column,
    readable_schema,
    table_schema,
)
from pyhudi.timeline import Timeline
from tests.helpers.tables import GoldenTables, facts
from tests.unit.memory_storage import MemoryStorage


def avro(*names: str) -> str:
    fields = [{"name": name, "type": ["null", "string"], "default": None} for name in names]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def commit(schema_text: str | None, **extra: str) -> bytes:
    given = {} if schema_text is None else {"schema": schema_text}
    return json.dumps({"extraMetadata": {**given, **extra}}).encode()


def read(files: dict[str, bytes], **properties: Any) -> TableSchema:
    storage = MemoryStorage(files)
    lines = {"hoodie.table.name": "t", "hoodie.table.version": "6", **properties}
    config = TableConfig.parse("\n".join(f"{k}={v}" for k, v in lines.items()).encode())
    return table_schema(storage, config, Timeline.load(storage, config))


T1, T2, T3 = (f".hoodie/2024010100000000{n}.commit" for n in (1, 2, 3))


def test_schema_comes_from_newest_commit() -> None:
    files = {T1: commit(avro("a")), T2: commit(avro("a", "b")), T3: commit("")}
    found = read(files)
    assert found.arrow.names == [*META_COLUMNS, "a", "b"]
    assert [field["name"] for field in json.loads(found.avro)["fields"]] == ["a", "b"]


def of_service(operation: str, content: bytes) -> bytes:
    return json.dumps({**json.loads(content), "operationType": operation}).encode()


@pytest.mark.parametrize("operation", ["COMPACT", "CLUSTER", "LOG_COMPACT", "INDEX"])
def test_schema_ignores_services(operation: str) -> None:
    older = of_service(operation, commit(avro("a")))
    assert read({T1: commit(avro("a", "b")), T2: older}).data_columns == ["a", "b"]
    creation = {"hoodie.table.create.schema": avro("c").replace(":", r"\:")}
    # Its schema is later than the one of the table's creation all the same.
    assert read({T2: older}, **creation).data_columns == ["a"]


def test_schema_of_unwritten_table_is_creation_schema() -> None:
    found = read({}, **{"hoodie.table.create.schema": avro("a").replace(":", r"\:")})
    assert (found.data_columns, found.meta_columns) == (["a"], list(META_COLUMNS))


def test_missing_schema_error_has_hint() -> None:
    with pytest.raises(SchemaMismatch, match="create it with a schema"):
        read({})


def test_meta_fields_that_a_commit_lists_are_not_doubled() -> None:
    assert read({T1: commit(avro(*META_COLUMNS, "a"))}).arrow.names == [*META_COLUMNS, "a"]


def test_schema_without_meta_fields_has_no_meta_columns() -> None:
    found = read({T1: commit(avro("a"))}, **{"hoodie.populate.meta.fields": "false"})
    assert found.arrow.names == ["a"]


def test_dropped_partition_columns_are_appended_as_text() -> None:
    dropped = {
        "hoodie.datasource.write.drop.partition.columns": "true",
        "hoodie.table.partition.fields": "city",
    }
    found = read({T1: commit(avro("a"))}, **dropped)
    assert found.data_columns == ["a", "city"]
    assert found.arrow.field("city").type == pa.string()


def test_schema_names_of_older_files_come_from_newest_commit() -> None:
    def ids(name: str, version: int) -> str:
        fields = [{"id": 7, "name": name, "optional": True, "type": "string"}]
        return json.dumps({"version_id": version, "type": "record", "fields": fields})

    old = commit(avro("a"), latest_schema=ids("a", 20240101000000001))
    found = read({T1: old, T2: commit(avro("b"), latest_schema=ids("b", 20240101000000002))})
    assert found.evolution is not None
    (renamed,) = found.evolution.maps
    assert [one.stored for one in renamed if one.name == "b"] == ["a"]
    assert read({T1: old}).evolution is None
    service = of_service("COMPACT", old)
    later = commit(avro("b"), latest_schema=ids("b", 20240101000000002))
    found = read({T1: old, T2: later, T3: service})
    assert found.history is not None
    assert '"b"' in found.history.current


@pytest.mark.parametrize(
    "text",
    ["no json", '{"fields": 1}', '{"type": "record", "name": "r", "fields": [{"name": "a"}]}'],
)
def test_invalid_schema_names_commit(text: str) -> None:
    with pytest.raises(CorruptTable) as error:
        read({T1: commit(text)})
    assert error.value.file == T1
    assert str(error.value).startswith(T1)


@pytest.mark.parametrize("name", ["v9_mor_part_avro", "v9_mor_bucket", "v6_cow_simple"])
def test_files_tell_the_schema_where_commits_do_not(
    name: str, golden: GoldenTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyhudi.storage.storage import Storage

    storage = Storage(str(golden.unpack(name)))
    config = TableConfig.load(storage)
    timeline = Timeline.load(storage, config)
    told = table_schema(storage, config, timeline)
    monkeypatch.setattr(schema, "_schema_of_commits", lambda _: (None, None))
    monkeypatch.setattr(schema, "_schema_of_creation", lambda _: None)
    assert table_schema(storage, config, timeline).arrow.equals(told.arrow)
    assert told.arrow.names == [field["name"] for field in facts(name)["schema"]["fields"]]


def test_scan_schema_allows_nulls_in_nested_types() -> None:
    strict = pa.field("x", pa.int32(), nullable=False)
    point = pa.struct([strict])
    item = pa.field("item", point, nullable=False)
    value = pa.field("value", point, nullable=False)
    schema = pa.schema([strict, ("l", pa.list_(item)), ("m", pa.map_(pa.string(), value))])
    loose = pa.struct([("x", pa.int32())])
    fields = [{"name": "x", "type": "int"}, {"name": "l"}, {"name": "m"}]
    read_as = readable_schema(schema, json.dumps({"fields": fields}))
    assert read_as.field("x") == strict
    assert read_as.field("l").type == pa.list_(loose)
    assert read_as.field("m").type == pa.map_(pa.string(), loose)


def test_narrowest_column_is_of_fixed_width() -> None:
    columns = pa.schema([("a", pa.string()), ("b", pa.int64()), ("c", pa.int32())])
    assert narrow_column(columns) == "b"
    assert narrow_column(columns, excluded=["b", "c"]) == "a"
