"""VARIANT columns: made, checked when they are written, in Arrow, of JSON and as JSON.

That pyhudi reads what Apache Hudi wrote is in `tests/compat/test_golden.py`, shredded values are in
`test_shredded_variants.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import CorruptTable, HudiTable, SchemaMismatch, UnsupportedTableFeature
from pyhudi.input.semi_structured import PLAIN_VARIANT
from tests.helpers.pairwise import pairwise
from tests.helpers.tables import facts, unpack

SCHEMA = pa.schema([("id", pa.string()), ("v", pyhudi.variant()), ("ts", pa.int64())])
TEXTS = ['{"a":[1,"x",null],"b":1.5}', None, "true", '"ü"']
EXTENSION = {
    b"hudi_type": b"VARIANT",
    b"ARROW:extension:name": b"arrow.parquet.variant",
    b"ARROW:extension:metadata": b"",
}


def rows(*texts: str | None, ts: int = 1) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{number}" for number in range(len(texts))],
            "v": pyhudi.variant_from_json(list(texts)),
            "ts": pa.repeat(pa.scalar(ts), len(texts)),
        }
    )


def written(base: Path, **arguments: Any) -> HudiTable:
    table = pyhudi.create_table(base, SCHEMA, key="id", order_by="ts", **arguments)
    table.insert(rows(*TEXTS))
    return table


def read(base: Path) -> list[str | None]:
    found = pyhudi.open_table(base).scan().to_arrow().sort_by("id")
    return list(pyhudi.variant_to_json(found["v"]).to_pylist())


@pytest.mark.parametrize(
    ("version", "kind", "blocks"), pairwise((6, 8, 9), ("cow", "mor"), ("avro", "parquet"))
)
def test_variant_survives_every_rewrite(
    version: int, kind: Any, blocks: str, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    options = {"hoodie.logfile.data.block.format": blocks}
    table = written(base, version=version, type=kind, options=options)
    table.upsert(rows("[]", ts=2))
    table.upsert([{"id": "k2", "ts": 3}], partial=True)
    wanted = ["[]", *TEXTS[1:]]
    assert read(base) == wanted
    if kind == "mor":
        table.compact()
    table.cluster(sort_by="id")
    table.upsert(table.scan().to_arrow(), schema_mode="merge")
    table.alter().add_column("more", pa.string()).execute()
    table = pyhudi.open_table(base)
    table.upsert([{"id": "k3", "more": "x", "ts": 4}], partial=True)
    assert read(base) == wanted
    assert table.schema.field("v").metadata == EXTENSION
    assert not table.check(deep=True).findings


def test_scan_gives_arrows_variant(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    scan = table.scan()
    for schema in (table.schema, scan.schema, scan.to_arrow().schema, scan.to_reader().schema):
        field = schema.field("v")
        assert field.metadata == EXTENSION
        # As Arrow's extension wants it.
        assert field.type == PLAIN_VARIANT
        assert [each.nullable for each in field.type] == [False, False]
    batches = [next(iter(scan.to_reader())), scan.splits()[0].to_arrow(), scan.to_dataset().head(1)]
    assert [each.schema.field("v").metadata for each in batches] == [EXTENSION] * 3
    lazy = scan.to_polars_lazy().filter(pl.col("id") == "k2").collect()
    assert lazy["v"].ext.storage().struct.field("value").to_list() == [b"\x04"]
    connection = scan.to_duckdb(duckdb.connect(), "t")
    found = connection.sql("select typeof(v), v.b::double from t where id = 'k0'").fetchall()
    assert found == [("VARIANT", 1.5)]
    frame = scan.to_polars()
    assert "arrow.parquet.variant" in str(frame.schema["v"])
    copy = pyhudi.create_table(tmp_path / "copy", frame, key="id")
    assert copy.schema.field("v").metadata == EXTENSION
    assert read(tmp_path / "copy") == TEXTS


def test_variant_has_the_schema_that_hudi_writes(tmp_path: Path) -> None:
    written(tmp_path / "t")
    (file,) = (tmp_path / "t").glob("*.parquet")
    parquet = pq.ParquetFile(file)
    avro = json.loads(parquet.metadata.metadata[b"parquet.avro.schema"])
    (kind,) = (each["type"] for each in avro["fields"] if each["name"] == "v")
    golden = next(unpack("v9_cow_variant", tmp_path).glob("*.parquet"))
    theirs = json.loads(pq.ParquetFile(golden).metadata.metadata[b"parquet.avro.schema"])
    (wanted,) = (each["type"] for each in theirs["fields"] if each["name"] == "v")
    wanted[1]["namespace"] = ""
    assert kind == wanted


@pytest.mark.parametrize("name", ["v9_cow_variant", "v9_mor_variant", "v9_cow_variant_shredded"])
def test_variants_of_hudi_have_their_json(name: str, tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack(name, tmp_path))
    found = table.scan().to_arrow()
    assert found.schema.field("v").metadata == EXTENSION
    texts = dict(zip(found["id"].to_pylist(), pyhudi.variant_to_json(found["v"]), strict=True))
    values = {
        (each["value"], each["metadata"]): each["json"] for each in facts(name)["variant_values"]
    }
    for row in facts(name)["expected"]["snapshot"]["rows"]:
        text = texts[row["id"]].as_py()
        if row["v"] is None:
            assert text is None
        else:
            wanted = values[row["v"]["value"], row["v"]["metadata"]]
            assert json.loads(text) == json.loads(wanted)


def test_json_becomes_what_spark_makes_of_it() -> None:
    known = facts("v9_cow_variant")["variant_values"]
    made = pyhudi.variant_from_json([each["json"] for each in known])
    assert made.type == PLAIN_VARIANT
    wanted = [{name: bytes.fromhex(each[name]) for name in ("metadata", "value")} for each in known]
    assert made.to_pylist() == wanted


@pytest.mark.parametrize(
    "values",
    [
        pa.array(['{"a":1}', None], pa.large_string()),
        pa.chunked_array([['{"a":1}'], [None]]),
        pa.array(['{"a":1}', None]).dictionary_encode(),
        pl.Series(['{"a":1}', None]),
        ['{"a":1}', None],
    ],
)
def test_json_of_any_column_of_text(values: Any) -> None:
    made = pyhudi.variant_from_json(values)
    assert pyhudi.variant_to_json(made).to_pylist() == ['{"a":1}', None]
    assert isinstance(made, pa.ChunkedArray) == isinstance(values, pa.ChunkedArray | pl.Series)


def test_json_of_nothing() -> None:
    assert pyhudi.variant_from_json([None]).null_count == 1
    assert len(pyhudi.variant_from_json([])) == 0
    assert pyhudi.variant_to_json(pa.chunked_array([], PLAIN_VARIANT)).type == pa.string()


def test_json_refuses_what_it_cannot_read() -> None:
    with pytest.raises(SchemaMismatch, match=r"row 1 is no JSON.*byte 1"):
        pyhudi.variant_from_json(["1", "{"])
    with pytest.raises(SchemaMismatch, match="int64"):
        pyhudi.variant_from_json(pa.array([1]))
    with pytest.raises(SchemaMismatch, match="metadata and value"):
        pyhudi.variant_to_json(pa.array(["x"]))
    with pytest.raises(CorruptTable, match="row 0"):
        pyhudi.variant_to_json([{"metadata": b"\1\0\0", "value": b"\xff"}])


DAMAGED = [
    {"metadata": b"\1\0\0", "value": b""},
    {"metadata": b"", "value": b"\0"},
    {"metadata": b"\1\0\0", "value": b"\0\0"},
    {"metadata": b"\1\0\0", "value": bytes.fromhex("0302000000")},
    {"metadata": b"\1\0\0", "value": bytes.fromhex("0201000001000c01")},
    {"metadata": b"\1\0\0", "value": None},
]


@pytest.mark.parametrize("value", [*DAMAGED, "text"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_write_refuses_damaged_variants(value: Any, kind: Any, tmp_path: Path) -> None:
    table = written(tmp_path / "t", type=kind)
    with pytest.raises(SchemaMismatch, match="v"):
        table.upsert([{"id": "k0", "v": value, "ts": 2}])
    assert read(tmp_path / "t") == TEXTS


def test_write_refuses_damaged_variants_in_lists(tmp_path: Path) -> None:
    """Avro alone tells that the elements are VARIANTs."""
    base = unpack("v9_cow_variant", tmp_path)
    table = pyhudi.open_table(base)
    row = table.scan(where="id = 'k003'").to_arrow()
    for odd in DAMAGED[:1]:
        with pytest.raises(SchemaMismatch, match="'v', row 0"):
            table.upsert(row.set_column(1, row.schema.field("v"), pa.array([odd], PLAIN_VARIANT)))


def test_shredded_input_is_refused(tmp_path: Path) -> None:
    shredded = pa.struct([*PLAIN_VARIANT, ("typed_value", pa.int64())])
    named = {"ARROW:extension:name": "arrow.parquet.variant"}
    schema = pa.schema([pa.field("id", pa.string()), pa.field("v", shredded, metadata=named)])
    with pytest.raises(UnsupportedTableFeature, match="'v'"):
        pyhudi.create_table(tmp_path / "t", schema, key="id")


@pytest.mark.parametrize("data_type", [pyhudi.variant(), pyhudi.blob()], ids=["VARIANT", "BLOB"])
def test_nested_column_is_refused(
    data_type: pa.DataType, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """It would be stored as a plain struct, which readers do not take for a VARIANT."""
    name = request.node.callspec.id
    for nested in (pa.struct([("part", data_type)]), pa.list_(data_type)):
        schema = pa.schema([("id", pa.string()), ("c", nested)])
        match = rf"column 'c\.\w+' is a {name} inside another type"
        with pytest.raises(UnsupportedTableFeature, match=match):
            pyhudi.create_table(tmp_path / "t", schema, key="id")
        assert not (tmp_path / "t").exists()
    marked = pa.field("part", PLAIN_VARIANT, metadata=EXTENSION)
    with pytest.raises(UnsupportedTableFeature, match="inside another type"):
        pyhudi.create_table(
            tmp_path / "t", pa.schema([("id", pa.string()), ("c", pa.struct([marked]))]), key="id"
        )
