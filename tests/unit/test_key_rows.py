"""Rows by record key: `HudiTable.get`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import ConfigError, HudiError, SchemaMismatch, UnsupportedTableFeature
from tests.helpers.pairwise import pairwise
from tests.helpers.table_builder import TableBuilder, numbered
from tests.helpers.tables import FOLDER, GoldenTables

GOLDEN = sorted(path.stem for path in FOLDER.glob("*.zip"))


def rows_by_key(rows: pa.Table, fields: Sequence[str]) -> dict[tuple[Any, ...], list[Any]]:
    """The rows of each key, as they are compared."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows.to_pylist():
        found.setdefault(tuple(row[name] for name in fields), []).append(repr(row))
    return found


@pytest.mark.in_parts
@pytest.mark.filterwarnings("ignore::pyhudi.errors.MetadataTableWarning")
@pytest.mark.parametrize("name", GOLDEN)
def test_get_equals_scan_on_golden_tables(name: str, golden: GoldenTables) -> None:
    """Each key alone, and all of them in another order than the table's."""
    table = pyhudi.open_table(golden.unpack(name))
    fields = table.config.record_key_fields
    try:
        rows = table.to_arrow()
    except HudiError as error:
        with pytest.raises(type(error)):
            table.get(["k"] if len(fields) == 1 else [("k",) * len(fields)])
        return
    if not fields:
        with pytest.raises(UnsupportedTableFeature, match="recordkey"):
            table.get(["k"])
        return
    expected = rows_by_key(rows, fields)
    keys = sorted(expected, key=repr, reverse=True)
    asked = [key[0] for key in keys] if len(fields) == 1 else keys
    found = table.get(asked)
    assert found.schema == rows.schema
    assert rows_by_key(found, fields) == expected
    assert list(rows_by_key(found, fields)) == keys
    for key in keys[:3]:
        alone = table.get([key[0]] if len(fields) == 1 else [key])
        assert rows_by_key(alone, fields) == {key: expected[key]}


TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered(2)),
        "part": (pa.string(), lambda number: f"p{number % 3}"),
        "v": (pa.int64(), lambda number: number),
        "ts": (pa.int64(), 1),
    },
    partition_by="part",
    order_by="ts",
)
INDEXES = ("record_index", "record_level_index", "bloom", "global_bloom", "simple", "bucket")


def is_possible(version: int, _kind: str, index: str, metadata: str) -> bool:
    """An index by partition is in version 9 only, and record indexes are in metadata tables."""
    if index == "record_level_index" and version < 9:
        return False
    return metadata == "true" or not index.startswith("record")


@pytest.mark.parametrize(
    ("version", "kind", "index", "metadata"),
    pairwise([6, 8, 9], ["cow", "mor"], INDEXES, ["true", "false"], allowed=is_possible),
)
def test_get_returns_rows_in_order_of_keys(
    tmp_path: Path, version: int, kind: Any, index: str, metadata: str
) -> None:
    """With each index, after updates, deletes and inserts."""
    options = {"hoodie.metadata.enable": metadata, "hoodie.bucket.index.num.buckets": "2"}
    options = options if index == "bucket" else {"hoodie.metadata.enable": metadata}
    TABLE.make(tmp_path, version=version, kind=kind, index=index, options=options)
    table = pyhudi.open_table(tmp_path, options=options)
    table.upsert(TABLE.rows(range(40)))
    table.upsert(TABLE.rows(range(10, 20), v=-1, ts=2))
    table.delete_keys(TABLE.rows([5, 15]).select(["id", "part"]))
    table.upsert(TABLE.rows(range(40, 45)))
    for handle in (table, pyhudi.open_table(tmp_path)):
        keys = [f"k{number:02d}" for number in (41, 3, 15, 99, 12, 3, 5, 39)]
        found = handle.get(keys, columns=["v", "id"])
        assert found.to_pydict() == {"v": [41, 3, -1, 39], "id": ["k41", "k03", "k12", "k39"]}
        everything = [f"k{number:02d}" for number in range(50)]
        assert handle.get(everything).sort_by("id") == table.to_arrow().sort_by("id")
        assert handle.get(["k77"]).equals(handle.get([]))


KEYED = {
    "a": (pa.string(), lambda number: f"a{number}"),
    "n": (pa.int32(), lambda number: number),
    "v": (pa.int64(), lambda number: number),
}


@pytest.mark.parametrize("version", [6, 9])
def test_get_takes_keys_of_several_columns(tmp_path: Path, version: int) -> None:
    table = TableBuilder(KEYED, key=["a", "n"], version=version).make(tmp_path)
    rows = {"a": ["x", "x", "y", None], "n": [1, 2, 1, 3], "v": [10, 20, 30, 40]}
    table.upsert(pa.table(rows, schema=table.schema))
    dicts = [{"a": "y", "n": 1}, {"n": 2, "a": "x"}, {"a": "y", "n": 2}]
    for keys in (
        [("y", 1), ("x", 2), ("y", 2)],
        dicts,
        pa.Table.from_pylist(dicts),
        {"n": [1, 2], "a": ["y", "x"]},
    ):
        assert table.get(keys)["v"].to_pylist() == [30, 20]
    assert table.get([(None, 3)])["v"].to_pylist() == [40]
    with pytest.raises(ConfigError, match="2 columns"):
        table.get([("y",)])
    with pytest.raises(SchemaMismatch, match="key column 'n'"):
        table.get([{"a": "y"}])
    with pytest.raises(SchemaMismatch, match="'v' is neither"):
        table.get([{"a": "y", "n": 1, "v": 3}])


def test_get_searches_partitions_of_keys(tmp_path: Path) -> None:
    """Keys are unique by partition only."""
    table = TABLE.make(tmp_path, index="simple")
    table.upsert(TABLE.rows([1, 2, 3], part="a"))
    table.upsert(TABLE.rows([1, 2], part="b", v=9))
    assert table.get(["k02", "k01"])["v"].to_pylist() == [2, 9, 1, 9]
    keys = [{"id": "k02", "part": "b"}, {"id": "k01", "part": "a"}, {"id": "k03", "part": "b"}]
    assert table.get(keys)["v"].to_pylist() == [9, 1]


@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        (pa.int64(), [3, 1, 2]),
        (pa.date32(), [date(2026, 3, 1), date(1969, 1, 2)]),
        (
            pa.timestamp("us", tz="UTC"),
            [datetime(year, 3, 1, 4, tzinfo=timezone.utc) for year in (2026, 1960)],
        ),
        (pa.float64(), [0.0, 1.5, 2.0]),
        (pa.decimal128(5, 2), [Decimal("1.50"), Decimal(-3)]),
        (pa.bool_(), [True, False]),
    ],
    ids=str,
)
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "virtual"])
def test_get_takes_keys_of_each_type(
    tmp_path: Path, data_type: pa.DataType, values: list[Any], stored: bool
) -> None:
    schema = pa.schema([("id", data_type), ("v", pa.int64())])
    options = {"hoodie.populate.meta.fields": str(stored).lower()}
    table = pyhudi.create_table(tmp_path, schema, key="id", options=options)
    table.upsert(pa.table({"id": values, "v": range(len(values))}, schema=schema))
    assert table.get(pa.array(values, data_type))["v"].to_pylist() == list(range(len(values)))
    assert table.get(values[1:2])["v"].to_pylist() == [1]


def test_get_rejects_invalid_keys(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path, first=range(3))
    with pytest.raises(ConfigError, match="is one value"):
        table.get("k01")
    with pytest.raises(SchemaMismatch, match="'id'"):
        table.get([1])
    with pytest.raises(SchemaMismatch, match="null"):
        table.get(["k01", None])
    with pytest.raises(SchemaMismatch, match="no column 'w'"):
        table.get(["k01"], columns=["w"])
    keyless = TABLE.make(tmp_path / "keyless", key=None, first=range(3))
    with pytest.raises(UnsupportedTableFeature, match="generated keys"):
        keyless.get(["k01"])


def test_get_reads_snapshot_of_handle(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path, kind="mor", first=range(10))
    other = pyhudi.open_table(tmp_path)
    assert other.get(["k03"])["v"].to_pylist() == [3]
    table.upsert(TABLE.rows([3], v=7, ts=2))
    assert table.get(["k03"])["v"].to_pylist() == [7]
    assert other.get(["k03"])["v"].to_pylist() == [3]
    assert other.refresh().get(["k03"])["v"].to_pylist() == [7]
    first = table.history()["instant"].to_pylist()[-1]
    assert pyhudi.open_table(tmp_path, as_of=first).get(["k03"])["v"].to_pylist() == [3]
