"""VECTOR columns: made, written from lists, arrays and tensors, and kept by all that rewrites rows.

That pyhudi reads what Apache Hudi wrote is in `tests/compat/test_golden.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import ConfigError, HudiTable, SchemaMismatch, UnsupportedTableFeature
from pyhudi.cli import main
from pyhudi.input.exact_casts import cast_exactly
from tests.helpers.pairwise import pairwise
from tests.helpers.tables import unpack

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("f", pyhudi.vector(4)),
        ("g", pyhudi.vector(4)),
        ("d", pyhudi.vector(3, "double")),
        ("b", pyhudi.vector(5, "int8")),
        ("ts", pa.int64()),
    ]
)
ROWS: list[dict[str, Any]] = [
    {"id": "a", "f": [0.5, -1, 2, 3], "g": None, "d": [1e300, 0, -0.5], "b": [1, 2, 3, 4, -128]},
    {"id": "b", "f": None, "g": [1, 1, 1, 1], "d": None, "b": None},
    {"id": "c", "f": [4, 4, 4, 4], "g": [2, 2, 2, 2], "d": [0, 0, 0], "b": [0, 0, 0, 0, 127]},
]


def rows(ts: int = 1) -> list[dict[str, Any]]:
    return [row | {"ts": ts} for row in ROWS]


def made(base: Path, **arguments: Any) -> HudiTable:
    table = pyhudi.create_table(base, SCHEMA, key="id", order_by="ts", **arguments)
    table.insert(rows())
    return table


def read(base: Path) -> list[dict[str, Any]]:
    return sorted(pyhudi.open_table(base).scan().to_arrow().to_pylist(), key=lambda row: row["id"])


class Tensor:
    """What libraries of tensors have in common: a shape, and NumPy's protocol for arrays."""

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values)
        self.shape = self._values.shape

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._values if dtype is None else self._values.astype(dtype)


CASES = pairwise((6, 8, 9), ("cow", "mor"), ("avro", "parquet"))


@pytest.mark.parametrize(("version", "kind", "blocks"), CASES)
def test_vector_survives_every_rewrite(
    version: int, kind: Any, blocks: str, tmp_path: Path
) -> None:
    options = {"hoodie.logfile.data.block.format": blocks}
    table = made(tmp_path / "t", version=version, type=kind, options=options)
    table.upsert([ROWS[1] | {"f": [9, 9, 9, 9], "ts": 2}])
    table.upsert([{"id": "c", "ts": 3, "b": [7, 7, 7, 7, 7]}], partial=True)
    wanted = rows()
    wanted[1] |= {"f": [9, 9, 9, 9], "ts": 2}
    wanted[2] |= {"b": [7, 7, 7, 7, 7], "ts": 3}
    assert read(tmp_path / "t") == wanted
    if kind == "mor":
        table.compact()
        assert read(tmp_path / "t") == wanted
    table.cluster(sort_by="id")
    assert read(tmp_path / "t") == wanted
    table.upsert(table.scan().to_arrow(), schema_mode="merge")
    table.delete_keys(["a"])
    assert read(tmp_path / "t") == wanted[1:]
    assert not pyhudi.open_table(tmp_path / "t").check(deep=True).findings


def test_vector_is_fixed_bytes_with_hudis_footer(tmp_path: Path) -> None:
    made(tmp_path / "t")
    (file,) = (tmp_path / "t").glob("*.parquet")
    parquet = pq.ParquetFile(file)
    told = parquet.metadata.metadata[b"hoodie.vector.columns"]
    assert told == b"f:VECTOR(4),g:VECTOR(4),d:VECTOR(3, DOUBLE),b:VECTOR(5, INT8)"
    leaves = [parquet.schema.column(at) for at in range(6, 10)]
    assert [leaf.physical_type for leaf in leaves] == ["FIXED_LEN_BYTE_ARRAY"] * 4
    assert [leaf.length for leaf in leaves] == [16, 16, 24, 5]
    avro = json.loads(parquet.metadata.metadata[b"parquet.avro.schema"])
    kinds = {field["name"]: field["type"] for field in avro["fields"]}
    assert kinds["f"][1] == {
        "type": "fixed",
        "name": "vector_float_4",
        "namespace": "",
        "size": 16,
        "logicalType": "vector",
        "dimension": 4,
        "elementType": "FLOAT",
        "storageBacking": "FIXED_BYTES",
    }
    # A type is defined once.
    assert kinds["g"][1] == "vector_float_4"


def test_scan_gives_lists_of_a_fixed_size_that_a_new_table_takes(tmp_path: Path) -> None:
    read_rows = made(tmp_path / "t").scan().to_arrow()
    assert read_rows.schema.field("f").type == pa.list_(pa.float32(), 4)
    assert read_rows.schema.field("b").metadata == {b"hudi_type": b"VECTOR(5, INT8)"}
    copy = pyhudi.create_table(tmp_path / "copy", read_rows, key="id")
    assert copy.scan().to_arrow().schema.field("d").metadata == {b"hudi_type": b"VECTOR(3, DOUBLE)"}


def test_arrays_and_tensors_are_vectors(tmp_path: Path) -> None:
    table = pyhudi.create_table(tmp_path / "t", SCHEMA, key="id", order_by="ts")
    floats = np.arange(8, dtype=np.float32).reshape(2, 4)
    columns = {
        "id": ["a", "b"],
        "f": floats,
        "g": Tensor(floats),
        "d": [np.ones(3), None],
        "b": [Tensor(np.zeros(5, np.int8))] * 2,
        "ts": Tensor(np.array([1, 1])),
    }
    table.insert(columns)
    wanted = [
        {"id": "a", "f": [0, 1, 2, 3], "g": [0, 1, 2, 3], "d": [1, 1, 1], "b": [0] * 5, "ts": 1},
        {"id": "b", "f": [4, 5, 6, 7], "g": [4, 5, 6, 7], "d": None, "b": [0] * 5, "ts": 1},
    ]
    assert read(tmp_path / "t") == wanted
    # Numbers that a float of 32 bits has no form of are not rounded.
    with pytest.raises(SchemaMismatch, match="'f'"):
        table.insert(columns | {"f": np.full((2, 4), 0.1)})


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("f", [1, 2, 3]),
        ("f", [1, 2, 3, None]),
        ("f", "1,2,3,4"),
        ("f", [1e300, 0, 0, 0]),
        ("b", [1, 2, 3, 4, 200]),
    ],
)
def test_value_that_is_no_such_vector_is_refused(column: str, value: Any, tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    for options in ({}, {"parquet.avro.write-old-list-structure": "false"}):
        writer = pyhudi.open_table(tmp_path / "t", options=options)
        with pytest.raises(SchemaMismatch, match=f"'{column}'"):
            writer.upsert([ROWS[0] | {"ts": 2, column: value}])
    assert table.refresh().scan().count() == len(ROWS)


def without_elements() -> pa.Array[Any]:
    """A null list over a buffer that is not there, as Spark gives one: Arrow's own cast dies."""
    ends = pa.py_buffer(bytes(8))
    nothing = pa.Array.from_buffers(pa.float32(), 0, [None, None])
    kind = pa.list_(pa.float32())
    return pa.Array.from_buffers(kind, 1, [pa.py_buffer(bytes(1)), ends], children=[nothing])


def test_null_lists_without_elements_become_null_vectors() -> None:
    lists = pa.chunked_array([without_elements()])
    assert cast_exactly(lists, pa.field("f", pa.list_(pa.float32(), 4))).to_pylist() == [None]


def test_lists_with_nulls_become_vectors(tmp_path: Path) -> None:
    table = pyhudi.create_table(tmp_path / "t", SCHEMA, key="id", order_by="ts")
    some = pa.array([[9] * 4, None, [1, 2, 3, 4], None, [5, 6, 7, 8]], pa.list_(pa.float32()))
    lists = pa.chunked_array([pa.array([None], some.type), some[1:]])
    kinds = table.scan().to_arrow().schema
    columns = {"id": list("abcde"), "f": lists, "ts": [1] * 5}
    others = {name: pa.nulls(5, kinds.field(name).type) for name in ("g", "d", "b")}
    table.insert(pa.table(columns | others))
    wanted = [None, None, [1, 2, 3, 4], None, [5, 6, 7, 8]]
    assert [row["f"] for row in read(tmp_path / "t")] == wanted


@pytest.mark.parametrize("arguments", [(0,), (True,), (1 << 20,), (3, "int16")])
def test_vector_refuses_what_no_column_can_be(arguments: Any) -> None:
    with pytest.raises(ConfigError):
        pyhudi.vector(*arguments)


def test_vector_in_a_struct_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("s", pa.struct([("f", pyhudi.vector(4))]))])
    with pytest.raises(UnsupportedTableFeature, match=r"'s\.f'"):
        pyhudi.create_table(tmp_path / "t", schema, key="id")


def test_vector_in_orc_is_refused(tmp_path: Path) -> None:
    options = {"hoodie.table.base.file.format": "ORC"}
    with pytest.raises(UnsupportedTableFeature, match=r"base\.file\.format is ORC: column 'f'"):
        made(tmp_path / "t", options=options)


def test_update_sets_a_vector(tmp_path: Path) -> None:
    table = made(tmp_path / "t", type="mor")
    table.update("id = 'a'", {"f": [0.1, 2, 3, 4]})
    table.update("id = 'c'", {"f": None})
    found = [row["f"] for row in read(tmp_path / "t")]
    assert found == [pytest.approx([0.1, 2, 3, 4]), None, None]
    for value in ([1, 2], [1, 2, 3, None]):
        with pytest.raises(SchemaMismatch):
            table.update("id = 'a'", {"f": value})


def test_alter_adds_a_vector_and_keeps_the_others(tmp_path: Path) -> None:
    table = made(tmp_path / "t", type="mor")
    table.alter().add_column("h", pyhudi.vector(4), after="id").rename_column("f", "e").execute()
    (newest,) = sorted((tmp_path / "t" / ".hoodie" / ".schema").glob("*.schemacommit"))[-1:]
    versions = json.loads(newest.read_text())["schemas"]
    columns = max(versions, key=lambda version: version["version_id"])["fields"]
    kinds = {field["name"]: field["type"] for field in columns}
    assert kinds["h"] == kinds["e"] == kinds["g"] == "vector[4, FLOAT, FIXED_BYTES]"
    assert kinds["b"] == "vector[5, INT8, FIXED_BYTES]"
    table = pyhudi.open_table(tmp_path / "t")
    table.upsert([{"id": "a", "h": [1, 2, 3, 4], "ts": 2}], partial=True)
    found = read(tmp_path / "t")
    assert [row["h"] for row in found] == [[1, 2, 3, 4], None, None]
    assert [row["e"] for row in found] == [row["f"] for row in ROWS]
    with pytest.raises(SchemaMismatch, match="vector"):
        table.alter().change_type("e", pa.string()).execute()


def test_vector_of_hudi_is_upserted_and_compacted(tmp_path: Path) -> None:
    name = "v9_mor_vector_parquet_log"
    base = unpack(name, tmp_path)
    table = pyhudi.open_table(base)
    before = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    table.upsert([before["k001"] | {"f": [1.0, 1.0, 1.0, 1.0], "ts": 1000}])
    table.compact()
    after = {row["id"]: row for row in pyhudi.open_table(base).scan().to_arrow().to_pylist()}
    before["k001"] |= {"f": [1.0, 1.0, 1.0, 1.0], "ts": 1000}
    assert repr(after) == repr({key: before[key] for key in after})
    assert after.keys() == before.keys()


def test_cli_imports_what_it_exports_of_vectors(tmp_path: Path) -> None:
    made(tmp_path / "t")
    file = tmp_path / "rows.jsonl"
    assert main(["export", str(tmp_path / "t"), str(file)]) == 0
    pyhudi.create_table(tmp_path / "copy", SCHEMA, key="id", order_by="ts")
    assert main(["import", str(tmp_path / "copy"), str(file)]) == 0
    assert read(tmp_path / "copy") == rows()
