"""VARIANT columns that a file shreds: what pyhudi reads from them, and keeps when it rewrites them.

The golden tables have base files as Spark 4 shreds them, for columns that Hudi's own client wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import CorruptTable, HudiTable
from tests.helpers.tables import facts, unpack

COPY_ON_WRITE = "v9_cow_variant_shredded"
MERGE_ON_READ = "v9_mor_variant_shredded"
TEXT = {"metadata": bytes.fromhex("010000"), "value": b"\x0dnew"}
"""The VARIANT of the text "new"."""


def stored(name: str) -> dict[str, dict[str, str] | None]:
    """The column `v` as Hudi reads it, in hex."""
    return {row["id"]: row["v"] for row in facts(name)["expected"]["snapshot"]["rows"]}


def read(table: HudiTable) -> dict[str, dict[str, str] | None]:
    def in_hex(value: dict[str, bytes] | None) -> dict[str, str] | None:
        return None if value is None else {name: part.hex() for name, part in value.items()}

    rows = table.scan(columns=["id", "v"]).to_arrow().to_pylist()
    return {row["id"]: in_hex(row["v"]) for row in rows}


def changed(table: HudiTable, key: str) -> dict[str, dict[str, str] | None]:
    """Writes another value for a key, and gives all values as they are to be."""
    schema = table.scan().to_arrow().schema
    row = {"id": key, "v": TEXT, "name": "new", "ts": 20_000_000_000}
    table.upsert(pa.Table.from_pylist([row], schema))
    return {key: {name: part.hex() for name, part in TEXT.items()}}


def newest_leaves(base: Path) -> set[str]:
    """The Parquet columns of `v` in the newest base file."""
    newest = max(base.glob("*.parquet"), key=lambda path: path.name.split("_")[-1])
    schema = pq.ParquetFile(newest).schema
    paths = {schema.column(at).path for at in range(len(schema))}
    return {path for path in paths if path.startswith("v.")}


REWRITES: dict[str, tuple[str, Callable[[HudiTable], Any]]] = {
    "upsert": (COPY_ON_WRITE, lambda _: None),
    "clustering": (COPY_ON_WRITE, lambda table: table.cluster(sort_by="id")),
    "compaction": (MERGE_ON_READ, lambda table: table.compact()),
}


@pytest.mark.parametrize("rewrite", sorted(REWRITES))
def test_rewrite_keeps_all_values_of_a_shredded_variant(rewrite: str, tmp_path: Path) -> None:
    """A reader of `metadata` and `value` alone has nulls for what the file keeps elsewhere."""
    name, service = REWRITES[rewrite]
    base = unpack(name, tmp_path)
    table = pyhudi.open_table(base)
    assert read(table) == stored(name)
    wanted = stored(name) | changed(table, "k013")
    service(table)
    assert read(pyhudi.open_table(base)) == wanted
    assert newest_leaves(base) == {"v.metadata", "v.value"}


def test_delete_keeps_all_values_of_a_shredded_variant(tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack(COPY_ON_WRITE, tmp_path))
    table.delete("id = 'k003'")
    wanted = stored(COPY_ON_WRITE)
    del wanted["k003"]
    assert read(table) == wanted


def test_damaged_shredded_variant_names_its_file(tmp_path: Path) -> None:
    """The first field has a typed value and another one, which no writer may leave."""
    base = unpack(COPY_ON_WRITE, tmp_path)
    newest = max(base.glob("*.parquet"), key=lambda path: path.name.split("_")[-1])
    rows = pq.read_table(newest)
    column = rows["v"].combine_chunks()
    metadata, value, typed = column.flatten()
    fields = dict(zip((field.name for field in typed.type), typed.flatten(), strict=True))
    age = fields["age"].flatten()[1]
    both = pa.StructArray.from_arrays(
        [pa.array([b"\x00"] * len(age), pa.binary()), age], ["value", "typed_value"]
    )
    broken = pa.StructArray.from_arrays(
        [metadata, value, pa.StructArray.from_arrays([both], ["age"], mask=typed.is_null())],
        ["metadata", "value", "typed_value"],
        mask=column.is_null(),
    )
    at = rows.column_names.index("v")
    pq.write_table(rows.set_column(at, "v", broken), newest)
    with pytest.raises(CorruptTable, match="beside another") as caught:
        read(pyhudi.open_table(base))
    assert newest.name in str(caught.value)
