"""Tables with ORC base files, written: verbs and services beside a model of the rows in a dict."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import UnsupportedTableFeature
from tests.helpers.pairwise import pairwise
from tests.helpers.table_builder import SMALL, TableBuilder
from tests.helpers.tables import unpack

ORC = {"hoodie.table.base.file.format": "orc"}
CITIES = ["oslo", "quito", "lima"]
LISTS = [None, [], ["x", None], ["y"]]
THINGS = TableBuilder(
    {
        "id": (pa.string(), lambda name: f"k{name:04}"),
        "city": (pa.string(), lambda name: CITIES[name % 3]),
        "n": (pa.int64(), lambda name: name),
        "price": (pa.decimal128(20, 4), lambda name: Decimal(name).scaleb(-2)),
        "day": (pa.date32(), lambda name: dt.date(1900, 1, 1) + dt.timedelta(name * 500)),
        "tags": (pa.list_(pa.string()), lambda name: LISTS[name % 4]),
        "st": (
            pa.struct([("a", pa.int32()), ("m", pa.map_(pa.string(), pa.float64()))]),
            lambda name: {"a": name, "m": [("k", name / 4)]} if name % 5 else None,
        ),
        "ts": (pa.int64(), 1),
    },
    partition_by="city",
    order_by="ts",
    options={**ORC, **SMALL},
)
INDEXES = ["simple", "bloom", "bucket", "record_index", "global_simple"]
AXES = pairwise((6, 8, 9), ("cow", "mor"), INDEXES)


@dataclass
class Modelled:
    """A table, and what its rows are to be."""

    base: Path
    options: dict[str, str]
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def table(self) -> HudiTable:
        return pyhudi.open_table(self.base, options=self.options)

    def given(self, names: Any, **values: Any) -> pa.Table:
        """Rows to be written, which the model has from now on."""
        rows = THINGS.rows(names, **values)
        self.rows |= {row["id"]: row for row in rows.to_pylist()}
        return rows

    def check(self) -> None:
        table = self.table
        found = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
        assert found == self.rows
        assert table.scan().count() == len(self.rows)
        some = table.scan(["id"], where="n > 20 AND city = 'lima'").to_arrow()["id"].to_pylist()
        assert set(some) == {
            key for key, row in self.rows.items() if row["n"] > 20 and row["city"] == "lima"
        }
        names = [file.name for file in self.base.rglob("*_*_*.*") if ".hoodie" not in file.parts]
        assert not [name for name in names if name.endswith(".parquet")]
        for file in self.base.glob("*/*.orc"):
            assert orc.ORCFile(file).metadata


def made(base: Path, version: int, kind: Any, index: str) -> Modelled:
    options = dict(SMALL)
    if index == "bucket":
        options |= {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    elif index != "record_index":
        options |= {"hoodie.index.type": index.upper()}
    THINGS.make(base, version=version, kind=kind, index=index, options=options)
    return Modelled(base, options)


def instants(one: Modelled) -> list[str]:
    return sorted(one.table.inspect.commits()["requested"].to_pylist())


@pytest.mark.parametrize(("version", "kind", "index"), AXES)
def test_verbs_and_services_keep_the_rows(
    tmp_path: Path, version: int, kind: str, index: str
) -> None:
    one = made(tmp_path / "t", version, kind, index)
    one.table.bulk_insert(one.given(range(40)))
    one.check()
    start = instants(one)[0]
    one.table.insert(one.given(range(40, 60)))
    one.table.upsert(one.given(range(30, 70), n=100, ts=2))
    one.check()
    one.table.delete_keys(pa.table({"id": ["k0001", "k0002"], "city": ["quito", "lima"]}))
    one.table.delete(where="id = 'k0003'")
    for key in ("k0001", "k0002", "k0003"):
        del one.rows[key]
    one.table.update("id = 'k0004'", {"n": 7})
    one.rows["k0004"]["n"] = 7
    one.check()
    merged = one.given(range(65, 72), n=-5, ts=3)
    merge = one.table.merge(merged)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    one.check()
    assert not one.table.check(deep=True).findings
    changed = one.table.diff(start, instants(one)[-1]).to_arrow()
    assert set(changed["op"].to_pylist()) == {"i", "u", "d"}
    assert one.table.incremental(start).to_arrow().num_rows > 40
    if kind == "mor":
        assert one.table.compact().instants
        one.check()
        one.table.upsert(one.given(range(5, 15), n=9, ts=4))
    if index != "bucket":
        one.table.cluster(sort_by="n")
        one.check()
        one.table.upsert(one.given(range(10, 20), n=8, ts=5))
    one.check()
    assert not one.table.check(deep=True).findings


@pytest.mark.parametrize(("version", "kind"), pairwise((6, 8, 9), ("cow", "mor")))
def test_orc_overwrites_and_rollbacks_work(tmp_path: Path, version: int, kind: str) -> None:
    one = made(tmp_path / "t", version, kind, "simple")
    one.table.insert(one.given(range(30)))
    one.table.upsert(one.given(range(10), n=50, ts=2))
    before = dict(one.rows)
    saved = one.table.savepoint()
    one.table.overwrite_partitions(one.given([100, 103]))
    one.rows = {
        key: row for key, row in one.rows.items() if row["city"] != "quito" or key > "k0099"
    }
    one.check()
    one.table.delete_partitions("city = 'lima'")
    one.rows = {key: row for key, row in one.rows.items() if row["city"] != "lima"}
    one.check()
    one.table.insert(THINGS.rows(range(200, 210)))
    one.table.rollback(instants(one)[-1])
    one.check()
    one.table.restore(saved)
    one.rows = before
    one.check()
    one.table.delete_savepoint(saved)
    one.rows = {}
    one.table.overwrite(one.given(range(300, 320)))
    for number in range(4):
        one.table.upsert(one.given(range(300, 305), n=number, ts=10 + number))
    one.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retain=1)
    one.table.archive(min_commits=2, max_commits=3)
    one.check()
    assert not one.table.check(deep=True).findings


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_versions_go_up_and_down(tmp_path: Path, kind: str) -> None:
    one = made(tmp_path / "t", 6, kind, "simple")
    one.table.insert(one.given(range(30)))
    one.table.upsert(one.given(range(10), n=50, ts=2))
    one.table.upgrade(9)
    one.check()
    one.table.upsert(one.given(range(20, 40), n=60, ts=3))
    one.check()
    assert set(one.table.config.metadata_partitions) <= {"files", "record_index"}
    one.table.downgrade(6)
    one.check()
    one.table.upsert(one.given(range(5), n=70, ts=4))
    one.check()


@pytest.mark.parametrize(("version", "kind"), pairwise((6, 8, 9), ("cow", "mor")))
def test_changes_are_captured(tmp_path: Path, version: int, kind: Any) -> None:
    captured = {"hoodie.table.cdc.enabled": "true"}
    table = THINGS.make(
        tmp_path / "t", version=version, kind=kind, options=captured, first=range(9)
    )
    table.upsert(THINGS.rows([1, 20], n=-1, ts=2))
    table.delete(where="id = 'k0002'")
    changed = table.changes().to_arrow().to_pylist()
    assert sorted(each["op"] for each in changed) == ["d", *["i"] * 10, "u"]
    (updated,) = (each for each in changed if each["op"] == "u")
    assert (updated["before"]["n"], updated["after"]["n"]) == (1, -1)


def test_orc_change_data_capture_works(tmp_path: Path) -> None:
    rng = random.Random(3)
    for number, (version, kind, index) in enumerate(
        [(9, "mor", "record_index"), (6, "cow", "bloom")]
    ):
        one = made(tmp_path / str(number), version, kind, index)
        # Lists have null elements there, too.
        one.options["hoodie.logfile.data.block.format"] = "parquet"
        for ts in range(12):
            names = sorted(rng.sample(range(200), rng.randrange(1, 60)))
            if rng.random() < 0.3 and one.rows:
                gone = rng.sample(sorted(one.rows), min(5, len(one.rows)))
                one.table.delete(where=f"id IN ({', '.join(map(repr, gone))})")
                for key in gone:
                    del one.rows[key]
            one.table.upsert(one.given(names, n=rng.randrange(100), ts=ts + 2))
            if rng.random() < 0.2:
                one.table.maintain()
            one.check()


def test_files_are_cut_by_the_options_of_orc(tmp_path: Path) -> None:
    rng = random.Random(1)
    options = {
        "hoodie.orc.max.file.size": "60000",
        "hoodie.orc.stripe.size": "8000",
        "hoodie.orc.compression.codec": "NONE",
        "hoodie.orc.block.size": "1000",
        "hoodie.parquet.small.file.limit": "0",
    }
    one = Modelled(tmp_path / "t", options)
    THINGS.make(one.base, partition_by=None, options=options, metadata=False, index="simple")
    rows = one.given(range(3000), n=lambda _: rng.randrange(2**60))
    one.table.bulk_insert(rows)
    one.check()
    files = [orc.ORCFile(file) for file in one.base.glob("*.orc")]
    assert len(files) > 2
    assert max(file.nstripes for file in files) > 1
    assert {file.compression for file in files} == {"UNCOMPRESSED"}
    assert max(file.stat().st_size for file in one.base.glob("*.orc")) < 150_000


def test_secondary_and_record_index(tmp_path: Path) -> None:
    one = made(tmp_path / "t", 9, "mor", "record_index")
    one.table.insert(one.given(range(60)))
    one.table.create_index("secondary_index", ["n"], name="by_n")
    one.table.upsert(one.given(range(5), n=1000, ts=2))
    table = one.table
    assert set(table.scan(where="n = 1000").to_arrow()["id"].to_pylist()) == {
        f"k{name:04}" for name in range(5)
    }
    assert table.scan(where="n = 33").to_arrow()["id"].to_pylist() == ["k0033"]
    assert not table.check(deep=True).findings


@pytest.mark.parametrize("version", [6, 8, 9])
def test_orc_has_no_statistics(tmp_path: Path, version: int) -> None:
    table = THINGS.make(tmp_path / "t", version=version, first=range(9))
    assert set(pyhudi.open_table(tmp_path / "t").config.metadata_partitions) == {
        "files",
        "record_index",
    }
    for kind in ("column_stats", "bloom_filters"):
        with pytest.raises(UnsupportedTableFeature, match=r"base\.file\.format is ORC"):
            table.create_index(kind)
    for name in ("column.stats", "bloom.filter"):
        option = {f"hoodie.metadata.index.{name}.enable": "true"}
        with pytest.raises(UnsupportedTableFeature, match=r"base\.file\.format is ORC"):
            THINGS.make(tmp_path / name, version=version, options=option)
        assert not (tmp_path / name).exists()


def test_orc_refuses_expression_index(tmp_path: Path) -> None:
    table = THINGS.make(tmp_path / "t", first=range(9))
    with pytest.raises(UnsupportedTableFeature, match=r"base\.file\.format is ORC"):
        table.create_index("column_stats", ["city"], name="up", function="upper")


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("us", "UTC"),
        pa.timestamp("ms"),
        pa.time64("us"),
        pa.list_(pa.struct([("at", pa.timestamp("us"))])),
        pa.map_(pa.string(), pa.timestamp("us", "UTC")),
    ],
    ids=str,
)
def test_times_are_refused_before_anything_is_there(tmp_path: Path, kind: pa.DataType) -> None:
    schema = pa.schema([("id", pa.string()), ("seen", kind)])
    with pytest.raises(UnsupportedTableFeature, match=r"base\.file\.format is ORC: column 'seen"):
        pyhudi.create_table(tmp_path / "t", schema, key="id", options=ORC)
    assert not (tmp_path / "t").exists()
    table = THINGS.make(tmp_path / "u", first=range(3))
    with pytest.raises(UnsupportedTableFeature, match=r"base\.file\.format is ORC: column 'seen"):
        table.upsert(THINGS.rows([1]).append_column("seen", pa.nulls(1, kind)), schema_mode="merge")
    with pytest.raises(UnsupportedTableFeature, match=r"base\.file\.format is ORC: column 'seen"):
        table.alter().add_column("seen", kind).execute()
    assert table.scan().count() == 3


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_dates_of_the_old_calendar_are_refused(tmp_path: Path, kind: Any) -> None:
    first = dt.date(1582, 10, 15)
    table = THINGS.make(tmp_path / "t", kind=kind, first=THINGS.rows(range(3), day=first))
    for days in (first - dt.timedelta(1), dt.date(1, 1, 1)):
        with pytest.raises(UnsupportedTableFeature, match=r"ORC: a date before 1582-10-15"):
            table.insert(THINGS.rows([7], day=days))
    assert table.scan().to_arrow()["day"].to_pylist() == [first] * 3


@pytest.mark.parametrize("name", ["v6_cow_orc", "v6by12_mor_orc", "v8by12_mor_orc", "v9_mor_orc"])
def test_tables_of_hudi_are_written(tmp_path: Path, name: str) -> None:
    unpack(name, tmp_path)
    table = pyhudi.open_table(tmp_path / name, options=SMALL)
    rows = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    some = [{**rows[key], "age": 7, "ts": 10**6} for key in sorted(rows)[::3]]
    new = {**some[0], "id": "new"}
    table.upsert(pa.Table.from_pylist([*some, new], table.schema))
    gone = sorted(rows)[1]
    table.delete(where=f"id = '{gone}'")
    del rows[gone]
    rows |= {row["id"]: row for row in (*some, new)}
    if table.type == "mor":
        assert {row["id"]: row for row in table.scan().to_arrow().to_pylist()} == rows
        assert table.compact().instants
    assert {row["id"]: row for row in table.scan().to_arrow().to_pylist()} == rows
    assert not table.check(deep=True).findings
    assert not list((tmp_path / name).glob("*/*.parquet"))


def test_create_accepts_orc_and_parquet_only(tmp_path: Path) -> None:
    for form in ("hfile", "lance"):
        options = {"hoodie.table.base.file.format": form}
        with pytest.raises(UnsupportedTableFeature, match=r"base\.file\.format is"):
            THINGS.make(tmp_path / "t", options=options)
    assert not list(tmp_path.iterdir())


def test_columns_may_be_altered(tmp_path: Path) -> None:
    THINGS.make(tmp_path / "t", metadata=False, index="simple", first=range(10))
    table = pyhudi.open_table(tmp_path / "t", options={"hoodie.metadata.enable": "false"})
    table.alter().rename_column("n", "m").add_column("new", pa.string()).execute()
    rows = THINGS.rows([1, 20], ts=2).rename_columns(
        ["m" if name == "n" else name for name in THINGS.schema.names]
    )
    table.upsert(rows.append_column("new", pa.array(["a", "b"])))
    found = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert found["k0001"]["new"] == "a"
    assert [found[f"k{name:04}"]["m"] for name in (0, 1, 9, 20)] == [0, 1, 9, 20]
    assert len(found) == 11
