"""Writing beside a record index: it keeps to the rows, whatever verb and data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.errors import CorruptTable, MetadataTableWarning
from pyhudi.metadata import partitioned_record_index
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.write_tasks import FileGroup
from tests.helpers.record_index import TABLE, check_index, content, opened
from tests.helpers.tables import unpack

pytestmark = pytest.mark.in_parts

MOVE = "hoodie.record.index.update.partition.path"
GLOBAL = ["v6_cow_record_index", "v9_cow_record_index", "v9_mor_record_index"]
BY_PARTITION = "v9_mor_partitioned_record_index"
MIB = 1 << 20


# --- file groups by data partition ----------------------------------------------------------------


def group(path: str, number: int) -> FileGroup:
    return FileGroup(
        FileSlice("record_index", partitioned_record_index.file_id(path, number), "1", None)
    )


def test_file_groups_tell_their_data_partition() -> None:
    paths = ["", "a", "a b", "a/b=c", "new_york-[1]", "%41", "zürich"]
    groups = [group(path, number) for path in paths for number in range(len(path) % 3 + 1)]
    groups.sort(key=lambda one: one.slice.file_id)
    partitioned_record_index.check_numbers("record_index", groups)
    found = partitioned_record_index.ranges(groups)
    assert set(found) == set(paths)
    for path, (first, many) in found.items():
        assert many == len(path) % 3 + 1
        ids = [one.slice.file_id for one in groups[first : first + many]]
        assert ids == [partitioned_record_index.file_id(path, number) for number in range(many)]
    assert (
        partitioned_record_index.file_id("new_york-[1]", 2)
        == "record-index-new%5Fyork%2D%5B1%5D-0002-0"
    )
    new = partitioned_record_index.new_groups(found, ["a", "b"], "5")
    assert [one.slice.logs[0].name for one in new] == [".record-index-b-0000-0_5.log.1_0-0-0"]


def test_missing_file_group_is_noticed() -> None:
    with pytest.raises(CorruptTable, match="does not have the file group 1"):
        partitioned_record_index.check_numbers(
            "record_index", [group("a", 0), group("a", 2), group("b", 0)]
        )
    plain = FileGroup(FileSlice("record_index", "record-index-0000-0", "1", None))
    with pytest.raises(CorruptTable, match="not a file group of a partitioned record index"):
        partitioned_record_index.ranges([plain])


# --- what the index knows afterwards --------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("moves", ["true", "false"])
@pytest.mark.parametrize("name", [*GLOBAL, BY_PARTITION])
def test_streams_larger_than_memory_are_written_as_from_memory(
    tmp_path: Path, name: str, moves: str
) -> None:
    contents = []
    for limit in (MIB, None):
        base = unpack(name, tmp_path / str(limit))
        table = opened(base, **{MOVE: moves})
        table.upsert(TABLE.rows(range(9000), ts=1000), memory_limit=limit)
        # Late ones, those that move or are new in another partition, and some twice.
        again = [
            TABLE.rows(range(2000, 5000), ts=2000, city="oslo"),
            TABLE.rows(range(100), ts=500, city="quito"),
        ]
        again += [TABLE.rows(range(8000, 12000), ts=3000), TABLE.rows(range(8500, 9000), ts=2500)]
        result = table.upsert(pa.concat_tables(again), memory_limit=limit)
        check_index(base)
        contents.append((content(base), result.rows_inserted, result.rows_updated))
    assert contents[0] == contents[1]
    found = contents[0][0]
    assert (len(found.column("id").unique()) == found.num_rows) is (name != BY_PARTITION)


@pytest.mark.parametrize("name", [*GLOBAL, BY_PARTITION])
def test_merge_finds_keys_by_the_index(tmp_path: Path, name: str) -> None:
    base = unpack(name, tmp_path)
    table = opened(base)
    table.upsert(TABLE.rows(range(3998, 4003), ts=1000))
    table.delete_keys(TABLE.rows(range(3998, 3999), ts=1).select(["id", "city"]))
    source = TABLE.rows(range(3997, 4004), ts=2000, city="oslo")
    merge = table.merge(source).when_matched_delete(where="source.id = 'w0004002'")
    result = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    check_index(base)
    found = content(base).to_pylist()
    mine = {row["id"]: row for row in found if row["id"].startswith("w") and row["ts"] == 2000}
    assert set(mine) == {f"w{n:07}" for n in (3997, 3998, 3999, 4000, 4001, 4002, 4003)} - (
        set() if name == BY_PARTITION else {"w0004002"}
    )
    # A record over all partitions is updated where it is.
    place = "oslo" if name == BY_PARTITION else "osaka"
    assert mine["w0004000"]["_hoodie_partition_path"] == place
    inserted = 7 if name == BY_PARTITION else 3
    assert result.rows_inserted == inserted
    assert mine["w0003998"]["_hoodie_partition_path"] == "oslo"


@pytest.mark.parametrize("name", [*GLOBAL, BY_PARTITION])
def test_index_keeps_to_the_rows_of_every_verb(tmp_path: Path, name: str) -> None:
    base = unpack(name, tmp_path)
    table = opened(base, **{MOVE: "true"})
    check_index(base)
    writes: tuple[Callable[[], Any], ...] = (
        lambda: table.insert(TABLE.rows(range(3990, 4010), ts=1000)),
        lambda: table.bulk_insert(TABLE.rows(range(7990, 8010), ts=1000)),
        lambda: table.upsert(TABLE.rows(range(3995, 4005), ts=2000, city="new-city_1")),
        lambda: table.update("id = 'w0004009'", {"age": 1}),
        lambda: table.delete("id = 'w0004008'"),
        lambda: table.overwrite_partitions(TABLE.rows(range(8000, 8003), ts=3000)),
        lambda: table.upsert(TABLE.rows(range(8000, 8010), ts=3000)),
        lambda: table.delete_partitions(["osaka"]),
        lambda: table.upsert(TABLE.rows(range(3990, 4010), ts=4000)),
        lambda: table.overwrite(TABLE.rows(range(3985, 3995), ts=5000, city="lisbon")),
        lambda: table.upsert(TABLE.rows(range(3990, 4000), ts=6000, city="osaka")),
        lambda: table.overwrite(TABLE.rows(range(0), ts=1)),
        lambda: table.upsert(TABLE.rows(range(3), ts=1)),
    )
    for write in writes:
        write()
        check_index(base)
    assert content(base).num_rows == 3


@pytest.mark.parametrize("name", GLOBAL)
def test_small_files_that_lose_rows_while_they_take_others(tmp_path: Path, name: str) -> None:
    base = unpack(name, tmp_path)
    table = pyhudi.open_table(base, options={MOVE: "true"})
    table.upsert(TABLE.rows(range(3990, 4010), ts=1000))
    both = [
        TABLE.rows(range(3990, 3995), ts=2000, city="osaka"),
        TABLE.rows(range(3970, 3980), ts=2000),
    ]
    pyhudi.open_table(base, options={MOVE: "true"}).upsert(pa.concat_tables(both))
    check_index(base)
    found = content(base)
    assert len(found.column("id").unique()) == found.num_rows


@pytest.mark.parametrize("name", ["v9_mor_record_index", BY_PARTITION])
def test_index_learns_keys_that_another_index_brought_back(tmp_path: Path, name: str) -> None:
    base = unpack(name, tmp_path)
    by_files = opened(base, **{"hoodie.index.type": "SIMPLE"})
    by_files.upsert(TABLE.rows(range(10), ts=1000))
    by_files.upsert(TABLE.rows(range(5), ts=2000))
    by_files.delete_keys(TABLE.rows(range(5), ts=1).select(["id", "city"]))
    check_index(base)
    # The simple index takes the keys in the log file for updates.
    by_files.upsert(TABLE.rows(range(3), ts=3000))
    check_index(base)
    opened(base).upsert(TABLE.rows(range(10), ts=4000))
    check_index(base)
    assert content(base).filter(pc.equal(content(base).column("ts"), 4000)).num_rows == 10


@pytest.mark.parametrize("name", [*GLOBAL, BY_PARTITION])
def test_late_deletes_leave_the_record_in_the_index(tmp_path: Path, name: str) -> None:
    base = unpack(name, tmp_path)
    table = opened(base)
    more = pa.field("_hoodie_is_deleted", pa.bool_())
    first = TABLE.rows(range(6), ts=1000)
    table.upsert(first.append_column(more, pa.array([False] * 6)), schema_mode="merge")
    parts = [
        TABLE.rows(range(2), ts=500),
        TABLE.rows(range(2, 4), ts=2000),
        TABLE.rows(range(4, 5), ts=2000),
    ]
    given = pa.concat_tables(parts).combine_chunks()
    table.upsert(given.append_column(more, pa.array([True, True, True, True, False])))
    check_index(base)
    found = [key for key in content(base).column("id").to_pylist() if key.startswith("w")]
    assert found == [f"w{n:07}" for n in (0, 1, 4, 5)]


@pytest.mark.parametrize("name", ["v6_cow_record_index", "v9_mor_record_index", BY_PARTITION])
def test_damaged_index_costs_a_warning_and_no_duplicate(tmp_path: Path, name: str) -> None:
    base = unpack(name, tmp_path)
    table = opened(base)
    table.upsert(TABLE.rows(range(10), ts=1000))
    table.delete_keys(TABLE.rows(range(4, 6), ts=1).select(["id", "city"]))
    for file in (base / ".hoodie" / "metadata" / "record_index").iterdir():
        if ".log." in file.name and not file.name.endswith(".crc") and file.stat().st_size > 100:
            data = bytearray(file.read_bytes())
            data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
            file.write_bytes(data)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = table.upsert(TABLE.rows(range(12), ts=2000))
    # Its services may be due too, and warn of the same damage.
    damage = [str(one.message) for one in said if one.category is MetadataTableWarning]
    assert any("the record index is not used" in text for text in damage)
    assert (result.rows_updated, result.rows_inserted) == (8, 4)
    found = content(base).filter(pc.equal(content(base).column("ts"), 2000))
    assert found.column("id").to_pylist() == [f"w{n:07}" for n in range(12)]


@pytest.mark.parametrize("name", [*GLOBAL, BY_PARTITION])
def test_some_columns_are_updated_where_the_index_says(tmp_path: Path, name: str) -> None:
    base = unpack(name, tmp_path)
    table = opened(base)
    table.upsert(TABLE.rows(range(3998, 4003), ts=1000))
    table.upsert(TABLE.rows(range(4000, 4005), ts=2000).select(["id", "ts", "city"]), partial=True)
    check_index(base)
    found = table.scan(where="id >= 'w0004000' AND ts = 2000").to_arrow().sort_by("id")
    assert found.column("id").to_pylist() == [f"w{n:07}" for n in range(4000, 4005)]
    assert found.column("name").to_pylist() == [
        *(f"name {n}" for n in range(4000, 4003)),
        None,
        None,
    ]


def test_some_columns_move_with_the_others(tmp_path: Path) -> None:
    base = unpack("v9_mor_record_index", tmp_path)
    table = opened(base, **{MOVE: "true"})
    table.upsert(TABLE.rows(range(3998, 4003), ts=1000))
    moved = TABLE.rows(range(4000, 4005), ts=2000).select(["id", "ts"])
    moved = moved.append_column("city", pa.array(["elsewhere"] * 5))
    table.upsert(moved, partial=True)
    check_index(base)
    found = table.scan(where="id >= 'w0004000' AND ts = 2000").to_arrow().sort_by("id")
    assert found.column("city").to_pylist() == ["elsewhere"] * 5
    assert found.column("name").to_pylist() == [
        *(f"name {n}" for n in range(4000, 4003)),
        None,
        None,
    ]


def test_inspect_shows_a_record_index_by_partition(tmp_path: Path) -> None:
    table = pyhudi.open_table(str(unpack(BY_PARTITION, tmp_path)))
    shown = table.inspect.metadata("record_index")
    rows = table.scan(columns=["_hoodie_record_key", "_hoodie_partition_path"]).to_arrow()
    places = zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True)
    found = zip(shown["key"].to_pylist(), shown["partition"].to_pylist(), strict=True)
    assert sorted(found) == sorted(places)
