"""Tables without stored keys: what their files hold, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.schema.virtual_keys import check_virtual_keys
from tests.helpers.rows import by_id
from tests.helpers.table_builder import TableBuilder
from tests.helpers.tables import GoldenTables

VIRTUAL = {"hoodie.populate.meta.fields": "false"}
ROWS = pa.table({"id": ["a", "b"], "city": ["x", "x"], "n": [1, 2], "ts": [1, 1]})
PLAIN = {
    "hoodie.table.name": "t",
    "hoodie.table.version": "9",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.partition.fields": "city",
    **VIRTUAL,
}


SEVERAL = {
    "hoodie.table.recordkey.fields": "id,n",
    "hoodie.table.keygenerator.type": "COMPLEX",
}


TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "city": (pa.string(), "x"),
        "n": (pa.int64(), " ab".index),
        "ts": (pa.int64(), 1),
    },
    partition_by="city",
    order_by="ts",
    kind="mor",
    options=VIRTUAL,
    first="ab",
)


def test_files_have_null_meta_columns_and_no_bloom_filter(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    (file,) = (tmp_path / "t" / "x").glob("*.parquet")
    stored = pq.read_table(file)
    assert stored.column_names[:5] == [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
    ]
    assert all(stored.column(at).null_count == 2 for at in range(5))
    footer = pq.read_metadata(file).metadata
    assert not any(b"bloom" in key or b"record_key" in key for key in footer)
    table.upsert(pa.table({"id": ["a"], "city": ["x"], "n": [3], "ts": [2]}))
    (log,) = (tmp_path / "t" / "x").glob(".*.log.*")
    (block,) = _native.log_blocks(table.storage.native, f"x/{log.name}")
    assert "_hoodie_record_key" in block["header"]["SCHEMA"]
    assert [row["n"] for row in by_id(table.scan().to_arrow())] == [3, 2]


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("keys", [["id"], ["id", "n"]])
def test_verbs_find_rows_by_their_key_columns(
    tmp_path: Path, kind: Literal["cow", "mor"], keys: list[str]
) -> None:
    table = TABLE.make(tmp_path / "t", kind=kind, key=keys)
    result = table.upsert(pa.table({"id": ["a"], "city": ["x"], "n": [1], "ts": [2]}))
    assert (result.rows_updated, result.rows_inserted) == (1, 0)
    table.update("id = 'b'", {"ts": "ts + 5"})
    table.insert(pa.table({"id": ["c"], "city": ["y"], "n": [3], "ts": [1]}))
    source = pa.table({"id": ["c", "d"], "city": ["y", "y"], "n": [3, 4], "ts": [9, 9]})
    merge = table.merge(source).when_matched_update({"ts": "source.ts"})
    result = merge.when_not_matched_insert_all().execute()
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert [(row["id"], row["ts"]) for row in by_id(table.scan().to_arrow())] == [
        ("a", 2),
        ("b", 6),
        ("c", 9),
        ("d", 9),
    ]
    table.delete("ts = 6")
    table.delete_keys(pa.table({name: {"id": ["d"], "n": [4]}[name] for name in keys}))
    assert [row["id"] for row in by_id(table.scan().to_arrow())] == ["a", "c"]
    table.alter().add_column("more", pa.string()).execute()
    table.upsert(pa.table({"id": ["a"], "city": ["x"], "n": [1], "ts": [3], "more": ["m"]}))
    assert [row["more"] for row in by_id(table.scan().to_arrow())] == ["m", None]


def test_rows_go_to_their_buckets(tmp_path: Path) -> None:
    options = {**VIRTUAL, "hoodie.bucket.index.num.buckets": "2"}
    table = pyhudi.create_table(
        tmp_path / "b", ROWS, key="id", order_by="ts", type="mor", index="bucket", options=options
    )
    assert table.upsert(ROWS).rows_updated == 2
    assert len(by_id(table.scan().to_arrow())) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.index.type": "BLOOM"},
        {"hoodie.index.type": "GLOBAL_SIMPLE"},
        {"hoodie.logfile.data.block.format": "hfile"},
    ],
)
def test_virtual_keys_refuse_operations_that_need_stored_keys(
    tmp_path: Path, options: dict[str, str]
) -> None:
    TABLE.make(tmp_path / "t", version=6)
    with pytest.raises(UnsupportedTableFeature, match=r"populate\.meta\.fields"):
        pyhudi.open_table(tmp_path / "t", options=options).upsert(ROWS)


def test_partial_updates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTableFeature, match=r"populate\.meta\.fields"):
        TABLE.make(tmp_path / "t").upsert(ROWS.drop_columns(["n"]), partial=True)


@pytest.mark.parametrize(
    "more",
    [
        {"hoodie.table.keygenerator.type": "COMPLEX"},
        {"hoodie.table.keygenerator.type": "TIMESTAMP"},
        {"hoodie.table.recordkey.fields": ""},
        {"hoodie.table.metadata.partitions": "files,record_index"},
        {"hoodie.table.metadata.partitions": "files,bloom_filters"},
        {"hoodie.table.cdc.enabled": "true"},
        {"hoodie.table.version": "8", "hoodie.table.type": "MERGE_ON_READ"},
        {**SEVERAL, "hoodie.table.version": "6", "hoodie.table.type": "MERGE_ON_READ"},
    ],
)
def test_virtual_keys_refuse_settings_hudi_refuses(more: dict[str, str]) -> None:
    check_virtual_keys(TableConfig(PLAIN))
    check_virtual_keys(TableConfig({**PLAIN, **SEVERAL, "hoodie.table.type": "MERGE_ON_READ"}))
    with pytest.raises(UnsupportedTableFeature, match=r"populate\.meta\.fields"):
        check_virtual_keys(TableConfig({**PLAIN, **more}))


@pytest.mark.parametrize(
    "name", ["v6_mor_virtual_keys", "v6_cow_virtual_keys", "v9_mor_virtual_two_keys"]
)
def test_rows_of_hudis_tables_are_updated_and_not_doubled(
    golden: GoldenTables, name: str, tmp_path: Path
) -> None:
    base = shutil.copytree(golden.unpack(name), tmp_path / "t")
    table = pyhudi.open_table(str(base))
    before = by_id(table.scan().to_arrow())
    rows = table.scan().to_arrow()
    at = rows.schema.get_field_index("ts")
    later = pa.array([value + 1000 for value in rows["ts"].to_pylist()], rows["ts"].type)
    result = table.upsert(rows.set_column(at, rows.schema.field(at), later))
    assert (result.rows_updated, result.rows_inserted) == (len(before), 0)
    assert by_id(table.scan().to_arrow()) == [{**row, "ts": row["ts"] + 1000} for row in before]
    table.delete_keys(rows.select(table.config.record_key_fields).slice(0, 1))
    assert len(by_id(table.scan().to_arrow())) == len(before) - 1


def test_table_with_delete_key_generator_is_written(golden: GoldenTables, tmp_path: Path) -> None:
    base = shutil.copytree(golden.unpack("v9_mor_global_delete_keys"), tmp_path / "t")
    table = pyhudi.open_table(str(base))
    rows = table.scan(meta_fields=True).to_arrow()
    assert all(key.startswith("id:") for key in rows["_hoodie_record_key"].to_pylist())
    result = table.upsert(table.scan().to_arrow())
    assert (result.rows_updated, result.rows_inserted) == (rows.num_rows, 0)
    table.delete_keys(rows.select(["id"]).slice(0, 2))
    assert table.scan().to_arrow().num_rows == rows.num_rows - 2


def test_rows_in_no_partition_are_read_and_not_written_to(tmp_path: Path) -> None:
    """Hudi's procedure of clustering puts them there; see `tests/compat/test_virtual_keys.py`."""
    table = TABLE.make(tmp_path / "t")
    (file,) = (tmp_path / "t" / "x").glob("*.parquet")
    shutil.copy(file, tmp_path / "t" / file.name.replace(file.name[:8], "00000000"))
    with pytest.raises(UnsupportedTableFeature, match="is outside the table's partitions"):
        table.refresh().upsert(TABLE.rows("a"))
    assert "outside_partitions" in {finding.kind for finding in table.check().findings}


def test_restore_ignores_a_partition_that_hides_others(tmp_path: Path) -> None:
    """Hudi's clustering without the writers' options makes the table's own directory one."""
    table = TABLE.make(tmp_path / "t")
    first = table.inspect.commits()["requested"][-1].as_py()
    table.upsert(TABLE.rows("b"))
    mark = tmp_path / "t" / ".hoodie_partition_metadata"
    shutil.copy(tmp_path / "t" / "x" / mark.name, mark)
    table.refresh().restore(first)
    mark.unlink()
    assert table.refresh().count() == 2
