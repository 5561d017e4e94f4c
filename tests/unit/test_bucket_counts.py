"""A number of buckets that is not the table's, or not every partition's: no wrong answer."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi import HudiTable, _native
from pyhudi.config.index_options import BUCKET_ENGINE, BUCKET_FIELDS, BUCKETS
from pyhudi.errors import ConfigError

COUNTS = {"big": 8, "other": 2, "small": 1}
KEYS = [f"k{n}" for n in range(8)]
Kind = Literal["cow", "mor"]


def rows(partition: str, v: int = 1) -> pa.Table:
    return pa.table({"id": KEYS, "p": [partition] * 8, "v": [v] * 8})


def told(base: Path, count: int) -> HudiTable:
    return pyhudi.open_table(base, options={"hoodie.index.type": "BUCKET", BUCKETS: count})


@pytest.fixture(params=["cow", "mor"])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """As a writer with `hoodie.bucket.index.partition.expressions` leaves it (Hudi 1.1)."""
    kind: Kind = request.param
    path = tmp_path / "t"
    pyhudi.create_table(
        path, rows("x").schema, key="id", partition_by="p", type=kind, index="bucket"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyhudi.index.bucket_lookup.in_bucket", lambda *_: True)
        for partition, count in COUNTS.items():
            told(path, count).insert(rows(partition))
    for partition, count in COUNTS.items():
        files = {file.name[:8] for file in (path / partition).glob("0*.parquet")}
        assert files == {f"{number:08}" for number in range(count)}
    return path


@pytest.mark.parametrize("count", [1, 2, 3, 8, 16])
def test_filters_by_key_lose_no_row(base: Path, count: int) -> None:
    table = told(base, count)
    assert [table.scan(where=f"id = '{key}'").count() for key in KEYS] == [3] * 8
    assert [table.scan(where=f"id = '{key}' AND p = 'big'").count() for key in KEYS] == [1] * 8


@pytest.mark.parametrize("count", [1, 2, 3, 8, 16])
def test_write_refuses_partition_with_other_bucket_count(base: Path, count: int) -> None:
    table = told(base, count)
    for partition, right in COUNTS.items():
        if count == right:
            table.upsert(rows(partition, 2))
        else:
            with pytest.raises(ConfigError, match="bucket"):
                table.upsert(rows(partition, 2))
        with pytest.raises(ConfigError, match="bucket"):
            table.upsert(pa.concat_tables(rows(each, 3) for each in COUNTS))
    assert table.refresh().scan().count() == 24


LOOKS_LIKE_FIELDS = ['{"a":1,"b":2}', "x:1,y:2", "a,b:c", ",a:b", ":,:", "urn:abc", "12:30:00", "k"]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("engine", ["SIMPLE", "CONSISTENT_HASHING"])
def test_keys_that_look_like_fields_are_found(
    tmp_path: Path, version: Literal[6, 8, 9], engine: str
) -> None:
    table = pyhudi.create_table(
        tmp_path / "t",
        pa.table({"id": LOOKS_LIKE_FIELDS, "v": range(8)}),
        key="id",
        index="bucket",
        type="mor",
        version=version,
        options={BUCKETS: 16, BUCKET_ENGINE: engine},
    )
    assert [table.scan(where=[("id", "=", key)]).count() for key in LOOKS_LIKE_FIELDS] == [1] * 8
    table.delete([("id", "in", LOOKS_LIKE_FIELDS[:7])])
    assert table.scan().to_arrow()["id"].to_pylist() == ["k"]


def test_bucket_pruning_keeps_rows_hashed_by_other_field(tmp_path: Path) -> None:
    """Hudi 0.15 takes the empty text behind the comma for a value of `n`."""
    table = pyhudi.create_table(
        tmp_path / "t",
        pa.table({"id": ["x:1,"], "n": [1]}),
        key=["id", "n"],
        index="bucket",
        version=6,
        options={BUCKETS: 16, BUCKET_FIELDS: "n"},
    )
    assert table.scan(where="n = 1").count() == 1


def key_in(number: int, count: int, other: int, other_count: int) -> str:
    """A key that is in a bucket of so many, and in another one of another number."""
    keys = pa.array([f"k{n}" for n in range(400)])
    first = _native.bucket_numbers(keys, ["id"], count, scan=True)
    second = _native.bucket_numbers(keys, ["id"], other_count, scan=True)
    found = pc.and_(pc.equal(first, number), pc.equal(second, other))
    return str(keys.filter(found)[0].as_py())


@pytest.fixture
def few(tmp_path: Path) -> tuple[Path, str]:
    """A table of 8 buckets with one key each, of which only the last is elsewhere in 16."""
    keys = [key_in(number, 8, number, 16) for number in range(5)]
    last = key_in(5, 8, 13, 16)
    rows = pa.table({"id": [*keys, last], "p": ["a"] * 6, "v": [1] * 6})
    options = {BUCKETS: 8}
    pyhudi.create_table(
        tmp_path / "t", rows, key="id", partition_by="p", index="bucket", options=options
    )
    return tmp_path / "t", last


def test_bucket_pruning_stops_at_key_in_wrong_bucket(few: tuple[Path, str]) -> None:
    base, last = few
    table = told(base, 16)
    assert table.scan(where=f"id = '{last}'").count() == 1
    with pytest.raises(ConfigError, match=f"{BUCKETS} is 16"):
        table.upsert(pa.table({"id": [last], "p": ["a"], "v": [2]}))


def test_numbers_that_differ_by_partition_are_not_gone_by(few: tuple[Path, str]) -> None:
    base, last = few
    left_out = "bucket index: pruned 5"
    assert left_out in str(told(base, 8).scan(where=f"id = '{last}'").explain())
    folder = base / ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
    folder.mkdir(parents=True)
    (folder / "00000000000000.hashing_config").write_text("{}")
    assert "bucket index" not in str(told(base, 8).scan(where=f"id = '{last}'").explain())


def test_many_keys_of_few_slices_tell_a_number(tmp_path: Path) -> None:
    """And many keys of one hash do not."""
    ids = [f"k{n}" for n in range(400)]
    rows = pa.table({"id": ids, "city": ["osaka", "rome"] * 200})
    for path, field, gone in (("a", "id", 3), ("b", "city", 0)):
        options = {BUCKETS: 4, BUCKET_FIELDS: field}
        table = pyhudi.create_table(
            tmp_path / path, rows, key=["id", "city"], index="bucket", options=options
        )
        plan = str(table.scan(where="id = 'k1' AND city = 'rome'").explain())
        assert f"bucket index: pruned {gone} of" in plan


def test_correct_bucket_count_prunes_slices(tmp_path: Path) -> None:
    pyhudi.create_table(
        tmp_path / "t", rows("a"), key="id", partition_by="p", index="bucket", options={BUCKETS: 8}
    )
    for count, gone in ((8, 7), (3, 0)):
        plan = str(told(tmp_path / "t", count).scan(where="id = 'k1'").explain())
        assert f"bucket index: pruned {gone} of 8 file slices" in plan


@pytest.fixture(scope="module")
def consistent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hashed by both key fields."""
    base = tmp_path_factory.mktemp("consistent") / "t"
    data = pa.table({"a": [f"a{n}" for n in range(200)], "b": [f"b{n % 7}" for n in range(200)]})
    data = data.append_column("v", pa.array([1] * 200))
    options = {BUCKET_ENGINE: "CONSISTENT_HASHING", BUCKETS: "8"}
    table = pyhudi.create_table(
        base, data.schema, key=["a", "b"], type="mor", index="bucket", options=options
    )
    table.insert(data)
    return base


@pytest.mark.parametrize("fields", ["a", "b", "b,a"])
def test_other_hash_fields_of_consistent_hashing_hide_no_row(
    consistent: Path, tmp_path: Path, fields: str
) -> None:
    base = tmp_path / "t"
    shutil.copytree(consistent, base)
    table = pyhudi.open_table(base, options={BUCKET_FIELDS: fields})
    both = [table.scan(where=f"a = 'a{n}' AND b = 'b{n % 7}'").count() for n in range(0, 200, 20)]
    assert both == [1] * 10
    assert table.scan(where="b = 'b3'").count() == 29
    assert table.update("b = 'b4'", {"v": 2}).rows_updated == 28
    assert table.refresh().delete("b = 'b3'").rows_deleted == 29


def test_hash_fields_of_consistent_hashing_prune_slices(consistent: Path) -> None:
    table = pyhudi.open_table(consistent, options={BUCKET_FIELDS: "a,b"})
    plan = str(table.scan(where="a = 'a5' AND b = 'b5'").explain())
    assert "bucket index (consistent hashing): pruned 7 of 8 file slices" in plan


def test_hash_field_must_be_key_field(consistent: Path) -> None:
    table = pyhudi.open_table(consistent, options={BUCKET_FIELDS: "v"})
    with pytest.raises(ConfigError, match=r"'v'.*not a record key field"):
        table.scan(where="a = 'a5' AND b = 'b5'").count()
