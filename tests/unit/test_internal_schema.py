"""Schema on read: which history counts, which version a file is of, where columns are in it."""

from __future__ import annotations

import json
import pickle
from bisect import bisect_right
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable
from pyhudi.schema.internal_schema import Evolution, Map, Source, find_history, is_evolved
from pyhudi.timeline import Timeline
from tests.unit.memory_storage import MemoryStorage

TIMES = ("20240101000000001", "20240101000000002", "20240101000000003", "20240101000000004")
T1, T2, T3, T4 = TIMES


def record(*fields: tuple[int, str] | tuple[int, str, Any], version: str = "0") -> dict[str, Any]:
    found = [
        {"id": field[0], "name": field[1], "optional": True, "type": [*field, "int"][2]}
        for field in fields
    ]
    return {"version_id": int(version), "type": "record", "fields": found}


def commit(schema: dict[str, Any] | None = None) -> bytes:
    latest = {} if schema is None else {"latest_schema": json.dumps(schema)}
    return json.dumps({"extraMetadata": {"schema": "{}", **latest}}).encode()


def history(*schemas: dict[str, Any]) -> bytes:
    return json.dumps({"schemas": list(schemas)}).encode()


def columns(*names: str) -> pa.Schema:
    return pa.schema([pa.field(name, pa.int32()) for name in names])


def timeline(files: dict[str, bytes]) -> tuple[MemoryStorage, Timeline]:
    storage = MemoryStorage(files)
    config = TableConfig.parse(b"hoodie.table.name=t\nhoodie.table.version=6")
    return storage, Timeline.load(storage, config)


def evolution(
    files: dict[str, bytes], schema: pa.Schema, until: str | None = None
) -> Evolution | None:
    storage, loaded = timeline(files)
    if until is not None:
        loaded = loaded.until(until)
    found = find_history(storage, loaded, loaded.last_commit)
    return found.evolution(schema) if found else None


def map_at(evolution: Evolution, instant: str) -> Map | None:
    """The columns' sources in files of an instant, as the core finds them."""
    after = bisect_right(evolution.versions, instant, key=lambda version: version[0])
    index = evolution.versions[max(after - 1, 0)][1]
    return None if index is None else evolution.maps[index]


def plain(name: str) -> Source:
    return Source(name, name, ())


OLD, NEW = record((0, "id"), (1, "a")), record((0, "id"), (1, "b"), version=T2)
RENAMED = {
    f".hoodie/{T1}.commit": commit(),
    f".hoodie/{T2}.commit": commit(NEW),
    f".hoodie/{T3}.commit": commit(NEW),
    f".hoodie/.schema/{T2}.schemacommit": history(NEW, OLD),
}


def test_files_from_before_a_rename_are_read_by_the_old_name() -> None:
    found = evolution(RENAMED, columns("id", "b"))
    assert found is not None
    assert map_at(found, T1) == (plain("id"), Source("b", "a", ()))
    assert map_at(found, T2) is None
    assert map_at(found, T4) is None
    assert pickle.loads(pickle.dumps(found)) == found


def test_unevolved_table_has_no_schema_maps() -> None:
    assert evolution({f".hoodie/{T1}.commit": commit()}, columns("a")) is None


def test_versions_that_name_all_columns_alike_need_no_map() -> None:
    wider = {f".hoodie/{T1}.commit": commit(record((0, "a", "long"), version=T1))}
    assert evolution(wider, columns("a")) is None


def test_time_travel_uses_column_names_of_its_time() -> None:
    assert evolution(RENAMED, columns("id", "a"), until=T1) is None


def test_schema_history_ignores_uncommitted_instants() -> None:
    failed = record((0, "id"), (1, "zzz"), version=T4)
    files = {
        **RENAMED,
        f".hoodie/{T4}.inflight": b"",
        f".hoodie/.schema/{T4}.schemacommit": history(failed, NEW, OLD),
        f".hoodie/.schema/{T3}.schemacommit.inflight": b"",
    }
    assert evolution(files, columns("id", "b")) == evolution(RENAMED, columns("id", "b"))


def test_schema_history_reads_archived_commits() -> None:
    archived = (f".hoodie/{T1}.commit", f".hoodie/{T2}.commit")
    files = {name: data for name, data in RENAMED.items() if name not in archived}
    found = evolution(files, columns("id", "b"))
    assert found is not None
    assert map_at(found, T1) == (plain("id"), Source("b", "a", ()))


def test_commit_without_ids_uses_previous_version() -> None:
    files = {**RENAMED, f".hoodie/{T4}.commit": commit()}
    found = evolution(files, columns("id", "b", "c"))
    assert found is not None
    assert map_at(found, T1) == (plain("id"), Source("b", "a", ()), plain("c"))
    assert map_at(found, T4) is None


def test_schema_of_commit_beats_history() -> None:
    # A writer that began before the column was renamed and committed after.
    files = {**RENAMED, f".hoodie/{T3}.commit": commit(OLD), f".hoodie/{T4}.commit": commit(NEW)}
    found = evolution(files, columns("id", "b"))
    assert found is not None
    assert map_at(found, T3) == map_at(found, T1) != map_at(found, T4)


def test_commit_before_first_version_uses_its_columns() -> None:
    found = evolution({**RENAMED, f".hoodie/{T1}.commit": commit(NEW)}, columns("id", "b"))
    assert found is not None
    assert map_at(found, T1) is None
    assert map_at(found, "20231231000000000") == (plain("id"), Source("b", "a", ()))


def test_files_before_the_first_known_version_are_of_that_version() -> None:
    only = {
        f".hoodie/{T1}.commit": commit(),
        f".hoodie/{T2}.commit": commit(record((0, "a"), version=T2)),
        f".hoodie/{T3}.commit": commit(record((0, "b"), version=T3)),
    }
    found = evolution(only, columns("b"))
    assert found is not None
    assert map_at(found, T1) == map_at(found, T2) == (Source("b", "a", ()),)


def test_readded_name_does_not_read_old_values() -> None:
    files = {
        f".hoodie/{T1}.commit": commit(record((0, "a"), (1, "b"), version=T1)),
        f".hoodie/{T2}.commit": commit(record((0, "a"), (2, "b"), (3, "c"), version=T2)),
    }
    found = evolution(files, columns("a", "b", "c"))
    assert found is not None
    # Nobody else is called c in those files, so it is left to the file itself.
    assert map_at(found, T1) == (plain("a"), Source("b", None, ()), plain("c"))


def test_parts_of_structs_lists_and_maps_are_matched_by_id() -> None:
    def nested(name: str, version: str) -> dict[str, Any]:
        point = {"type": "record", "fields": [{"id": 9, "name": name, "type": "int"}]}
        array = {"type": "array", "element_id": 4, "element": point}
        value = {"type": "map", "key_id": 5, "key": "string", "value_id": 6, "value": point}
        return record((1, "s", point), (2, "l", array), (3, "m", value), version=version)

    files = {
        f".hoodie/{T1}.commit": commit(nested("x", T1)),
        f".hoodie/{T2}.commit": commit(nested("y", T2)),
    }
    point = pa.struct([pa.field("y", pa.int32())])
    schema = pa.schema({"s": point, "l": pa.list_(point), "m": pa.map_(pa.string(), point)})
    found = evolution(files, schema)
    assert found is not None
    inner = (Source("y", "x", ()),)
    assert map_at(found, T1) == (
        Source("s", "s", inner),
        Source("l", "l", (Source("element", "element", inner),)),
        Source("m", "m", (Source("value", "value", inner),)),
    )


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"type": "record", "fields": [{"id": 1}]}'])
def test_invalid_internal_schema_raises(text: str) -> None:
    files = {**RENAMED, f".hoodie/.schema/{T3}.schemacommit": text.encode()}
    with pytest.raises(CorruptTable, match="internal schema"):
        evolution(files, columns("id", "b"))
    if text:
        broken = json.dumps({"extraMetadata": {"schema": "{}", "latest_schema": text}})
        with pytest.raises(CorruptTable, match=T4):
            evolution({**RENAMED, f".hoodie/{T4}.commit": broken.encode()}, columns("id", "b"))


def test_evolved_tables_are_told_by_commit_or_history() -> None:
    assert is_evolved(*timeline(RENAMED))
    assert is_evolved(*timeline({f".hoodie/{T1}.commit": commit(OLD)}))
    assert is_evolved(*timeline({f".hoodie/.schema/{T1}.schemacommit": history(OLD)}))
    assert not is_evolved(*timeline({f".hoodie/{T1}.commit": commit()}))
