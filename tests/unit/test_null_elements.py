"""Lists with null elements, where the option says that lists have three levels in Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.testing import comparable_rows
from tests.helpers.tables import unpack

OPTION = "parquet.avro.write-old-list-structure"
OPTIONS = {OPTION: "false", "hoodie.metadata.enable": "false"}
DEEP = pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.list_(pa.int32()))))])
SCHEMA = pa.schema([("id", pa.string()), ("tags", pa.list_(pa.string())), ("deep", DEEP)])
Kind = Literal["cow", "mor"]


def row(key: str, tags: Any, deep: Any = None) -> pa.Table:
    return pa.table({"id": [key], "tags": [tags], "deep": [deep]}, schema=SCHEMA)


def made(base: Path, kind: Kind, first: Any, **options: str) -> pyhudi.HudiTable:
    given = {**OPTIONS, **options}
    return pyhudi.create_table(base, first, key="id", type=kind, index="simple", options=given)


def held(table: pyhudi.HudiTable) -> dict[str, tuple[Any, Any]]:
    rows = table.refresh().scan().to_arrow().to_pylist()
    return {row["id"]: (row["tags"], row["deep"]) for row in rows}


NULLS = [None, "x", None]
DEEP_NULLS = {"m": [("a", [[1, None], None, []]), ("b", None)]}


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_null_elements_survive_every_operation(tmp_path: Path, kind: Kind, blocks: str) -> None:
    first = row("a", NULLS, DEEP_NULLS)
    table = made(tmp_path / "t", kind, first, **{"hoodie.logfile.data.block.format": blocks})
    expected: dict[str, tuple[Any, Any]] = {"a": (NULLS, DEEP_NULLS)}
    assert held(table) == expected
    table.insert(row("b", [None]))
    table.upsert(row("a", [None, None], DEEP_NULLS))
    expected |= {"b": ([None], None), "a": ([None, None], DEEP_NULLS)}
    assert held(table) == expected
    table.upsert(row("a", NULLS).select(["id", "tags"]), partial=True)
    table.update("id = 'b'", {"tags": ["y", None]})
    expected |= {"a": (NULLS, DEEP_NULLS), "b": (["y", None], None)}
    assert held(table) == expected
    source = pa.concat_tables([row("b", [None, "z"]), row("c", [None])])
    table.merge(source).when_matched_update_all().when_not_matched_insert_all().execute()
    expected |= {"b": ([None, "z"], None), "c": ([None], None)}
    assert held(table) == expected
    if kind == "mor":
        table.compact()
        assert held(table) == expected


def test_deep_lists_are_written_with_the_option_alone(tmp_path: Path) -> None:
    deep = pa.list_(pa.list_(pa.list_(pa.int32())))
    rows = pa.table({"id": ["a"], "deep": pa.array([[[[1]], [[2, 3]]]], deep)})
    given = {**OPTIONS, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = pyhudi.create_table(tmp_path / "t", rows.schema, key="id", type="mor", options=given)
    for _ in range(2):
        table.upsert(rows)
    without = {name: text for name, text in given.items() if name != OPTION}
    other = pyhudi.open_table(tmp_path / "t", options=without)
    for change in (
        other.compact,
        other.cluster,
        other.log_compact,
        lambda: other.upsert(rows),
        lambda: other.delete("id = 'a'"),
        lambda: other.alter().rename_column("deep", "deeper").execute(),
    ):
        with pytest.raises(UnsupportedTableFeature, match="'deep'") as refused:
            change()
        assert OPTION in refused.value.hint
    assert not other.refresh().state.timeline.pending()
    table.refresh().compact()
    assert table.refresh().scan().to_arrow().to_pylist() == rows.to_pylist()


def test_files_have_the_lists_that_parquet_for_java_writes(tmp_path: Path) -> None:
    made(tmp_path / "t", "cow", row("a", NULLS, DEEP_NULLS))
    (file,) = (tmp_path / "t").glob("*.parquet")
    paths = [column.path for column in pq.ParquetFile(file).schema]
    assert "tags.list.element" in paths
    assert "deep.m.key_value.value.list.element.list.element" in paths


def test_tables_of_both_kinds_of_lists_are_read_and_rewritten(tmp_path: Path) -> None:
    base = tmp_path / "t"
    made(base, "cow", row("a", ["x"]), **{OPTION: "true"})
    table = pyhudi.open_table(base, options=OPTIONS)
    table.upsert(row("b", NULLS))
    assert held(table) == {"a": (["x"], None), "b": (NULLS, None)}
    # A writer without the option does not lose what is there: it fails.
    other = pyhudi.open_table(base, options={"hoodie.metadata.enable": "false"})
    with pytest.raises(SchemaMismatch, match="null element"):
        other.upsert(row("a", ["y"]))
    assert held(table) == {"a": (["x"], None), "b": (NULLS, None)}


@pytest.mark.parametrize("name", ["v6_cow_null_elements", "v9_mor_null_elements"])
def test_tables_that_hudi_wrote_are_rewritten(tmp_path: Path, name: str) -> None:
    table = pyhudi.open_table(unpack(name, tmp_path), options=OPTIONS)
    before = table.scan().to_arrow()
    table.upsert(before)
    if name == "v9_mor_null_elements":
        table.compact()
    assert comparable_rows(table.refresh().scan().to_arrow()) == comparable_rows(before)
