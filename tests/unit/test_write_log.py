"""Log files: kinds of blocks, positions, sizes, and rows with some of the columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, _native
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.timeline import Timeline
from tests.helpers.table_builder import TableBuilder, numbered

Block = dict[str, Any]


TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered()),
        "v": (pa.int32(), 1),
        "n": (pa.string(), "a"),
        "ts": (pa.int32(), 10),
    },
    order_by="ts",
    kind="mor",
    first=range(8),
)


def table_of(base: Path, version: int, **options: str) -> HudiTable:
    """Merge-on-read, with eight rows, under an index that knows where in a file a key is."""
    named = {key.replace("_", "."): value for key, value in options.items()}
    return TABLE.make(base, version=version, index="simple", options=named)


def appended(table: HudiTable) -> list[list[Block]]:
    """The blocks of each log file of the newest commit."""
    timeline = Timeline.load(table.storage, table.config)
    stats = timeline.commit_metadata(timeline.commits[-1]).write_stats
    paths = [str(stat.path) for stat in stats if stat.log_version is not None]
    return [_native.log_blocks(table.storage.native, path) for path in paths]


def values(table: HudiTable) -> dict[str, tuple[Any, ...]]:
    found = table.refresh().scan().to_arrow().to_pylist()
    return {row["id"]: (row["v"], row["n"], row["ts"]) for row in found}


@pytest.mark.parametrize(
    ("version", "kind"),
    [(6, "hfile"), *((version, kind) for version in (6, 8, 9) for kind in ("avro", "parquet"))],
)
def test_log_blocks_of_every_type_round_trip(tmp_path: Path, version: int, kind: str) -> None:
    table = table_of(tmp_path / "t", version, hoodie_logfile_data_block_format=kind)
    table.upsert(TABLE.rows([5, 1, 3], v=2, ts=20))
    ((block,),) = appended(table)
    assert block["type"] == f"{kind.upper()}_DATA_BLOCK"
    old = {f"k{i}": (1, "a", 10) for i in range(8)}
    assert values(table) == old | {f"k{i}": (2, "a", 20) for i in (1, 3, 5)}


@pytest.mark.parametrize("version", [8, 9])
def test_blocks_tell_the_rows_that_they_update(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path / "t", version)
    table.upsert(TABLE.rows([5, 1, 3], v=2, ts=20))
    table.delete_keys(pa.table({"id": ["k7", "k0"]}))
    ((block,),) = appended(table)
    first = Timeline.load(table.storage, table.config).commits[0].requested
    assert block["header"]["BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS"] == first
    timeline = Timeline.load(table.storage, table.config)
    (slice_,) = FileSystemView(table.storage, table.config, timeline).slices()
    assert slice_.base is not None
    reader, stats = _native.read_slice(
        table.storage.native,
        base=slice_.base.path,
        logs=[log.path for log in slice_.logs],
        schema=table.state.columns,
        columns=["id", "v"],
        merge_mode="EVENT_TIME_ORDERING",
        ordering_fields=["ts"],
        base_instant=slice_.base.instant,
    )
    assert sorted(reader.read_all()["v"].to_pylist()) == [1, 1, 1, 2, 2, 2]
    assert stats.by_position


def test_log_file_group_uses_its_own_base_file(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", 9, hoodie_parquet_small_file_limit="0")
    table.upsert(TABLE.rows([20], v=1, ts=10))
    table.upsert(TABLE.rows([20, 1], v=2, ts=20))
    blocks = [block for file in appended(table) for block in file]
    assert all("RECORD_POSITIONS" in block["header"] for block in blocks)
    assert len(blocks) == 2


@pytest.mark.parametrize("version", [6, 9])
def test_positions_are_left_out_where_they_must_be(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path / "t", version, hoodie_write_record_positions=str(version == 6))
    table.upsert(TABLE.rows([1], v=2, ts=20))
    ((block,),) = appended(table)
    assert set(block["header"]) == {"INSTANT_TIME", "SCHEMA"}


def test_duplicate_key_has_no_position(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", 9)
    table.insert(TABLE.rows([1], v=1, ts=10))
    table.upsert(TABLE.rows([1], v=2, ts=20))
    ((block,),) = appended(table)
    assert "RECORD_POSITIONS" not in block["header"]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_full_log_file_is_followed_by_next_version(tmp_path: Path, version: int) -> None:
    table = table_of(
        tmp_path / "t",
        version,
        hoodie_logfile_max_size="1",
        hoodie_logfile_data_block_max_size="1",
    )
    data = pa.Table.from_batches(
        [*TABLE.rows([1], v=2, ts=20).to_batches(), *TABLE.rows([2], v=3, ts=20).to_batches()]
    )
    result = table.upsert(data)
    stats = Timeline.load(table.storage, table.config)
    last = stats.commit_metadata(stats.commits[-1]).write_stats
    assert [stat.log_version for stat in last] == list(range(1, len(last) + 1))
    assert sum(stat.num_update_writes for stat in last) == 2
    assert values(table)["k1"] == (2, "a", 20)
    assert values(table)["k2"] == (3, "a", 20)
    assert result.rows_updated == 2


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_rows_keep_the_columns_that_the_data_lack(tmp_path: Path, version: int, kind: Any) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind, first=range(4))
    table.upsert(TABLE.rows([1], v=2, ts=20))
    some = pa.table({"ts": pa.array([30, 30, 5], pa.int32()), "id": ["k1", "k9", "k2"]})
    table.upsert(some.append_column("n", pa.array(["b", "c", "d"])), partial=True)
    if kind == "mor":
        ((block, *_), *_) = appended(table)
        assert "IS_PARTIAL" not in block["header"]
    assert values(table) == {
        "k0": (1, "a", 10),
        "k1": (2, "b", 30),
        "k2": (1, "a", 10),
        "k3": (1, "a", 10),
        "k9": (None, "c", 30),
    }


def test_partial_update_block_has_key_and_time(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", 9)
    with pytest.raises(SchemaMismatch, match="'ts'"):
        table.upsert(pa.table({"id": ["k1"], "n": ["b"]}), partial=True)
    with pytest.raises(SchemaMismatch, match="'id'"):
        table.upsert(pa.table({"n": ["b"], "ts": [1]}), partial=True)
    with pytest.raises(SchemaMismatch, match="'x'"):
        table.upsert(pa.table({"id": ["b"], "ts": [1], "x": [1]}), partial=True)
    with pytest.raises(SchemaMismatch, match="'n'"):
        table.upsert(pa.table({"id": ["b"], "ts": [1], "v": [1]}))


@pytest.mark.parametrize(("version", "column"), [(6, "key"), (8, "v"), (9, "v")])
def test_hfile_blocks_are_refused_where_hudi_cannot_read_them(
    tmp_path: Path, version: int, column: str
) -> None:
    data = pa.table({"id": ["a"], column: ["b"]})
    table = pyhudi.create_table(tmp_path / "t", data, key="id", type="mor", version=version)
    blocks = {"hoodie.logfile.data.block.format": "hfile"}
    other = pyhudi.open_table(tmp_path / "t", options=blocks)
    with pytest.raises(UnsupportedTableFeature, match="hfile"):
        other.upsert(data)
    table.upsert(data)


DELETE_FIELD = {"hoodie.payload.delete.field": "n", "hoodie.payload.delete.marker": "D"}


def as_ordering(numbers: pa.ChunkedArray[Any] | pa.Array[Any], ts: pa.DataType) -> Any:
    return numbers.cast(pa.int32() if pa.types.is_decimal(ts) else pa.int64()).cast(ts)


def marked_table(base: Path, version: int, mode: str, ts: pa.DataType) -> HudiTable:
    """Eight rows at 10; those with "D" in `n` are deletes."""
    data = TABLE.rows(range(8), v=1, ts=10)
    at = data.schema.get_field_index("ts")
    data = data.set_column(at, "ts", as_ordering(data.column("ts"), ts))
    table = TABLE.make(base, version=version, index="simple", first=data)
    file = base / ".hoodie" / "hoodie.properties"
    prefix = "hoodie.record.merge.property." if version == 9 else ""
    more = {"hoodie.record.merge.mode": mode, **{prefix + k: v for k, v in DELETE_FIELD.items()}}
    lines = [line for line in file.read_text().splitlines() if line.split("=")[0] not in more]
    file.write_text("\n".join((*lines, *(f"{name}={value}" for name, value in more.items()), "")))
    return table.refresh()


@pytest.mark.parametrize(
    "ts", [pa.int64(), pa.timestamp("us"), pa.string(), pa.decimal128(12, 2), pa.time64("us")]
)
@pytest.mark.parametrize("mode", ["COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"])
def test_rows_with_the_tables_marker_become_deletes(
    tmp_path: Path, mode: str, ts: pa.DataType
) -> None:
    """As Hudi's writers do: its readers look for the marker in no data block of version 9."""
    table = marked_table(tmp_path / "t", 9, mode, ts)
    when = as_ordering(pa.array([20, 5, 20, 5, 20]), ts)
    new = pa.table({"id": ["k1", "k2", "k3", "k4", "k9"], "v": pa.array([2] * 5, pa.int32())})
    new = new.append_column("n", pa.array(["b", "b", "D", "D", "D"])).append_column("ts", when)
    result = table.upsert(new)
    (blocks,) = appended(table)
    assert [block["type"] for block in blocks] == ["AVRO_DATA_BLOCK", "DELETE_BLOCK"]
    assert all("RECORD_POSITIONS" in block["header"] for block in blocks)
    assert (result.rows_updated, result.rows_deleted) == (2, 2)
    late = mode == "EVENT_TIME_ORDERING" and ts != pa.string()
    found = {row["id"]: row["n"] for row in table.refresh().scan().to_arrow().to_pylist()}
    kept = {f"k{i}": "a" for i in (0, 5, 6, 7)}
    assert found == {**kept, "k1": "b", "k2": "a" if late else "b", **({"k4": "a"} if late else {})}
    result = table.update("id = 'k5'", {"n": "'D'"})
    assert (result.rows_updated, result.rows_deleted) == (0, 1)
    assert "k5" not in values(table)
