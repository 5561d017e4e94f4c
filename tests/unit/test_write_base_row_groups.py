"""Rewrites of base files copy row groups in which no row changes."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.slices import write_base
from tests.helpers.table_builder import TableBuilder

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int64()),
        ("f", pa.float64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("price", pa.decimal128(12, 3)),
        ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("inner", pa.struct([("x", pa.float32()), ("y", pa.list_(pa.int32()))])),
    ]
)
THINGS = TableBuilder.of(SCHEMA, partition_by=None)
MANY = 3000


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_base, "KEPT_ROWS", 1000)


def thing(number: int, value: int) -> dict[str, Any]:
    return {
        "id": f"k{number:06}",
        "n": None if value % 7 == 0 else value,
        "f": [math.inf, -0.0, 0.0, value / 3][value % 4],
        "at": value * 1_000_003,
        "price": None,
        "tags": None if value % 5 == 0 else [f"t{value % 3}"] * (value % 4),
        "counts": [(f"c{value % 3}", value)],
        "inner": {"x": value / 2, "y": list(range(value % 3))} if value % 4 else None,
    }


def things(numbers: Iterable[int], value: int) -> pa.Table:
    return pa.Table.from_pylist([thing(number, number + value) for number in numbers], SCHEMA)


def newest_file(table: HudiTable) -> Path:
    [path] = newest_files(table)
    return path


def newest_files(table: HudiTable) -> list[Path]:
    """Of each file group the newest base file."""
    found: dict[str, str] = {}
    for row in pyhudi.open_table(table.uri).inspect.slices().to_pylist():
        if row["base_file"]:
            found.setdefault(row["file_id"], row["base_file"])
    return [Path(table.uri) / name for name in found.values()]


def groups(table: HudiTable) -> list[int]:
    footer = pq.read_metadata(newest_file(table))
    return [footer.row_group(at).num_rows for at in range(footer.num_row_groups)]


def read(table: HudiTable) -> dict[str, dict[str, Any]]:
    again = pyhudi.open_table(table.uri)
    assert again.check(deep=True).ok
    return {row["id"]: row for row in again.scan().to_arrow().to_pylist()}


def expected(*given: pa.Table) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for rows in given for row in rows.to_pylist()}


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_new_rows_leave_a_row_group_as_it_is(
    tmp_path: Path, version: int, kind: Literal["cow", "mor"]
) -> None:
    first, more = things(range(MANY), 1), things(range(MANY, MANY + 500), 2)
    table = THINGS.make(tmp_path / "t", version=version, kind=kind, first=first)
    before = newest_file(table)
    table.upsert(more)
    assert groups(table) == [MANY, 500]
    assert read(table) == expected(first, more)
    old, new = (pq.read_metadata(path).row_group(0) for path in (before, newest_file(table)))
    for at in range(old.num_columns):
        name = old.column(at).path_in_schema
        one, other = old.column(at), new.column(at)
        if name != "_hoodie_file_name":
            assert one.total_compressed_size == other.total_compressed_size, name
            assert one.has_offset_index == other.has_offset_index
            # As text, since NaN equals nothing.
            assert known(one) == known(other)


def known(column: pq.ColumnChunkMetaData) -> str:
    return str(column.statistics and column.statistics.to_dict())


def test_copied_row_groups_have_name_of_new_file(tmp_path: Path) -> None:
    table = THINGS.make(tmp_path / "t", first=things(range(MANY), 1))
    times = table.scan(columns=["_hoodie_commit_time"]).to_arrow().column(0).unique()
    table.upsert(things([MANY], 2))
    path = newest_file(table)
    columns = ["_hoodie_file_name", "_hoodie_commit_time", "_hoodie_commit_seqno"]
    found = pq.read_table(path, columns=columns)
    assert found.column(0).unique().to_pylist() == [path.name]
    assert found.column(1).slice(0, MANY).unique() == times
    assert len(found.column(2).unique()) == MANY + 1


def test_changed_row_groups_are_rewritten(tmp_path: Path) -> None:
    first = things(range(MANY), 1)
    table = THINGS.make(tmp_path / "t", first=first)
    model = expected(first)
    for rows, wanted in [
        (things(range(MANY, MANY + 1100), 2), [MANY, 1100]),
        (things(range(MANY + 1100, MANY + 1200), 2), [MANY, 1100, 100]),
        # The middle one loses a row, and the smallest one is rewritten.
        (things([MANY + 7], 3), [MANY, 1099, 101]),
    ]:
        table.upsert(rows)
        model |= expected(rows)
        assert groups(table) == wanted
        assert read(table) == model
    table.delete_keys(pa.table({"id": [f"k{MANY + 8:06}", f"k{MANY + 9:06}"]}))
    del model[f"k{MANY + 8:06}"], model[f"k{MANY + 9:06}"]
    assert groups(table) == [MANY, 1097, 101]
    assert read(table) == model
    table.delete("id = 'k000000'")
    del model["k000000"]
    assert groups(table) == [MANY - 1, 1097, 101]
    assert read(table) == model


@pytest.mark.parametrize(("version", "kind"), [(6, "mor"), (8, "cow"), (9, "cow")])
def test_spread_changes_are_cut_out_of_pages(
    tmp_path: Path, version: int, kind: Literal["cow", "mor"]
) -> None:
    """Only columns with lists or maps are encoded again: the others keep their dictionaries.

    Values that no row has any more are blanked in them.
    """
    first, changed = things(range(2 * MANY), 1), things(range(5, 2 * MANY, 50), 2)
    table = THINGS.make(tmp_path / "t", version=version, kind=kind, first=first)
    before = newest_file(table)
    table.upsert(changed)
    gone = pa.table({"id": [f"k{number:06}" for number in range(7, 2 * MANY, 60)]})
    table.delete_keys(gone)
    if kind == "mor":
        assert len(table.compact().instants) == 1
    assert groups(table) == [2 * MANY - 120 - 100, 120]
    model = expected(first, changed)
    for key in gone.column("id").to_pylist():
        del model[key]
    assert read(table) == model
    again = pyhudi.open_table(table.uri)
    for where in ["n > 5990", "n < 20", "id = 'k000007'", "f < 0.5"]:
        found = again.scan(where=where).to_arrow().num_rows
        assert found == len(again.scan().to_arrow().filter(as_filter(where))), where
    # Another reader gets the same values.
    stored = pq.read_table(newest_file(table)).select(SCHEMA.names)
    assert {row["id"]: row for row in stored.cast(SCHEMA).to_pylist()} == model
    old, new = dictionaries(before), dictionaries(newest_file(table))
    same = {name for name, values in old.items() if new.get(name) == values}
    assert {"f", "_hoodie_commit_time"} <= same
    assert same.isdisjoint({"n", "at", "_hoodie_file_name"})


def as_filter(where: str) -> pc.Expression:
    name, sign, value = where.split()
    field = pc.field(name)
    match sign:
        case ">":
            return field > float(value)
        case "<":
            return field < float(value)
        case _:
            return field == value.strip("'")


def dictionaries(path: Path) -> dict[str, bytes]:
    """The dictionary page of each column of the first row group."""
    content, found = path.read_bytes(), {}
    group = pq.read_metadata(path).row_group(0)
    for at in range(group.num_columns):
        column = group.column(at)
        if column.has_dictionary_page:
            begin = column.dictionary_page_offset
            found[column.path_in_schema] = content[begin : column.data_page_offset]
    return found


def test_rows_that_are_inserted_without_a_look_at_keys(tmp_path: Path) -> None:
    first = things(range(MANY), 1)
    table = THINGS.make(tmp_path / "t", first=first)
    table.insert(things(range(5), 2))
    assert groups(table) == [MANY, 5]
    found = pyhudi.open_table(table.uri).scan().to_arrow().to_pylist()
    assert len(found) == MANY + 5
    for value in (1, 2):
        assert found.count(things([3], value).to_pylist()[0]) == 1


def test_widened_column_rewrites_all_row_groups(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("n", pa.int32())])
    rows = pa.table({"id": [f"k{n}" for n in range(MANY)], "n": range(MANY)}, schema=schema)
    table = TableBuilder.of(schema).make(tmp_path / "t", first=rows)
    table.upsert(pa.table({"id": ["new"], "n": pa.array([1 << 40])}), schema_mode="merge")
    assert groups(table) == [MANY + 1]
    found = pyhudi.open_table(table.uri).scan().to_arrow()
    assert found.schema.field("n").type == pa.int64()
    assert sum(found.column("n").to_pylist()) == sum(range(MANY)) + (1 << 40)


def test_new_codec_keeps_copied_row_groups(tmp_path: Path) -> None:
    first, more = things(range(MANY), 1), things(range(MANY, MANY + 9), 2)
    table = THINGS.make(tmp_path / "t", first=first)
    options = {"hoodie.parquet.compression.codec": "gzip"}
    pyhudi.open_table(table.uri, options=options).upsert(more)
    footer = pq.read_metadata(newest_file(table))
    codecs = [footer.row_group(at).column(2).compression for at in (0, 1)]
    assert codecs == ["ZSTD", "GZIP"]
    assert read(table) == expected(first, more)


def test_change_logs_tell_what_they_told(tmp_path: Path) -> None:
    first, more = things(range(MANY), 1), things(range(MANY, MANY + 9), 2)
    table = THINGS.make(tmp_path / "t", first=first, options={"hoodie.table.cdc.enabled": "true"})
    table.upsert(more)
    changes = pyhudi.open_table(table.uri).changes().to_arrow()
    assert changes.column("op").to_pylist() == ["i"] * (MANY + 9)
    assert read(table) == expected(first, more)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_small_commits_copy_row_groups(tmp_path: Path, kind: Literal["cow", "mor"]) -> None:
    chance = random.Random(kind)
    first = things(range(MANY), 1)
    table = THINGS.make(tmp_path / "t", kind=kind, first=first)
    model, total, kept = expected(first), MANY, 0
    for commit in range(2, 30):
        size = chance.choice([3, 200, 1500])
        rows = things(range(total, total + size), commit)
        total += size
        if chance.random() < 0.3:
            met = things(chance.sample(range(total - size), 3), commit)
            rows = pa.concat_tables([rows, met])
        table.upsert(rows)
        model |= expected(rows)
        if chance.random() < 0.3:
            gone = chance.sample(sorted(model), 5)
            table.delete_keys(pa.table({"id": gone}))
            model = {key: row for key, row in model.items() if key not in gone}
        counts = [pq.read_metadata(path).num_row_groups for path in newest_files(table)]
        kept += sum(count > 1 for count in counts)
        assert max(counts) <= 8
    assert kept
    assert read(table) == model


def test_compaction_copies_unaffected_row_groups(tmp_path: Path) -> None:
    first, more = things(range(MANY), 1), things(range(MANY, MANY + 1200), 2)
    table = THINGS.make(tmp_path / "t", kind="mor", first=first)
    table.upsert(more)
    late = things(range(MANY + 10, MANY + 20), 3)
    table.upsert(late)
    table.delete_keys(pa.table({"id": [f"k{MANY + 5:06}"]}))
    assert len(table.compact().instants) == 1
    assert groups(table) == [MANY, 1189, 10]
    model = expected(first, more, late)
    del model[f"k{MANY + 5:06}"]
    assert read(table) == model
