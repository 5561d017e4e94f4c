"""Tables without stored keys, and keys for deletes alone: both sides write to one table in turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.table_version import table_version
from pyhudi.errors import UnsupportedTableFeature
from tests.helpers.oracle.client import HudiError, HudiOracle

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int32()),
        ("city", pa.string()),
        ("fare", pa.float64()),
        ("ts", pa.int64()),
    ]
)
DDL = "id string, n int, city string, fare double, ts bigint"
KEYGEN = "org.apache.hudi.keygen."
RELEASES = [(6, "0.15.0"), (8, "1.0.2"), (9, "1.2.0")]
Row = dict[str, Any]


def rows_of(n: int, ts: int = 1) -> list[Row]:
    cities = ("oslo", "rome")
    return [
        {"id": f"k{i}", "n": i, "city": cities[i % 2], "fare": i / 2, "ts": ts} for i in range(n)
    ]


def arrow(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


class Pair:
    """One table, Apache Hudi's options for it, and its rows as they should be, by id."""

    def __init__(self, base: Path, hudi: HudiOracle, kind: str, options: dict[str, str]) -> None:
        self.base, self.hudi, self.rows = base, hudi, dict[str, Row]()
        self.options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": (
                "COPY_ON_WRITE" if kind == "cow" else "MERGE_ON_READ"
            ),
            "hoodie.index.type": "SIMPLE",
            "hoodie.metadata.enable": "false",
            "hoodie.embed.timeline.server": "false",
            "hoodie.clean.automatic": "false",
            "hoodie.upsert.shuffle.parallelism": "2",
            "hoodie.write.auto.upgrade": "false",
            **options,
        }

    @property
    def table(self) -> pyhudi.HudiTable:
        return pyhudi.open_table(str(self.base))

    def upsert(self, rows: list[Row]) -> None:
        self.table.upsert(arrow(rows))
        self.rows |= {row["id"]: row for row in rows}

    def hudi_upserts(self, rows: list[Row]) -> None:
        self.hudi.write(self.base, rows=rows, schema=DDL, options=self.options)
        self.rows |= {row["id"]: row for row in rows}

    def hudi_deletes(self, rows: list[Row]) -> None:
        self.hudi.write(self.base, rows=rows, schema=DDL, operation="delete", options=self.options)
        self.gone(*(row["id"] for row in rows))

    def gone(self, *keys: str) -> None:
        for key in keys:
            del self.rows[key]

    def check(self) -> None:
        wanted = sorted(self.rows.values(), key=lambda row: str(row["id"]))
        found = self.table.scan().to_arrow().to_pylist()
        assert sorted(found, key=lambda row: str(row["id"])) == wanted
        found = self.hudi.read(self.base, metadata=False)["rows"]
        assert sorted(found, key=lambda row: str(row["id"])) == wanted


GENERATORS = {
    "simple": (("id",), ("city",), "SimpleKeyGenerator"),
    "complex": (("id", "n"), ("city",), "ComplexKeyGenerator"),
    "nonpart": (("id",), (), "NonpartitionedKeyGenerator"),
}


CASES = [
    (version, release, kind, generator)
    for version, release in RELEASES
    for kind in ("cow", "mor")
    for generator, (keys, _, _) in GENERATORS.items()
    if kind == "cow" or len(keys) <= table_version(version).virtual_log_keys
]
"""Log files that Hudi of a version does not read, pyhudi refuses."""


@pytest.mark.parametrize(("version", "hudi", "kind", "generator"), CASES, indirect=["hudi"])
@pytest.mark.timeout(900)
def test_tables_without_stored_keys(
    tmp_path: Path, version: int, hudi: HudiOracle, kind: Any, generator: str
) -> None:
    keys, partitions, named = GENERATORS[generator]
    options = {
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.recordkey.field": ",".join(keys),
        "hoodie.datasource.write.partitionpath.field": ",".join(partitions),
        "hoodie.datasource.write.keygenerator.class": KEYGEN + named,
    }
    pair = Pair(tmp_path / "t", hudi, kind, options)
    pyhudi.create_table(
        str(pair.base),
        SCHEMA,
        key=keys,
        partition_by=partitions,
        order_by="ts",
        type=kind,
        version=version,
        options={"hoodie.populate.meta.fields": "false"},
    )
    pair.upsert(rows_of(8))
    pair.upsert([{**row, "fare": 9.0} for row in rows_of(3, 2)])
    result = pair.table.delete_keys(arrow([pair.rows["k4"]]).select([*keys, *partitions]))
    assert result.rows_deleted == 1
    pair.gone("k4")
    pair.check()

    pair.hudi_upserts([{**row, "fare": 7.0} for row in rows_of(2, 3)])
    pair.hudi_upserts([{**rows_of(10, 3)[-1]}])
    pair.hudi_deletes([{**pair.rows["k5"], "ts": 4}])
    pair.check()

    pair.upsert(
        [{**row, "fare": 5.0} for row in rows_of(12, 5) if row["id"] in ("k1", "k9", "k11")]
    )
    pair.table.update("id = 'k3'", {"fare": "fare + 1", "ts": "ts + 9"})
    pair.rows["k3"] = {**pair.rows["k3"], "fare": pair.rows["k3"]["fare"] + 1, "ts": 10}
    pair.table.delete("id = 'k6'")
    pair.gone("k6")
    source = arrow([{**pair.rows["k2"], "fare": 3.5, "ts": 11}])
    pair.table.merge(source).when_matched_update_all().execute()
    pair.rows["k2"] = {**pair.rows["k2"], "fare": 3.5, "ts": 11}
    pair.check()
    if kind == "mor":
        off = {"hoodie.metadata.enable": "false"}
        hudi.call(pair.base, "run_compaction(op => 'scheduleandexecute')", off)
        pair.check()
    pair.upsert([{**row, "fare": 1.0} for row in rows_of(4, 20)])
    pair.hudi_upserts([{**row, "fare": 0.25} for row in rows_of(2, 21)])
    pair.check()
    meta = pair.table.config.properties
    assert meta["hoodie.populate.meta.fields"] == "false"


NUMBERED = {
    "hoodie.populate.meta.fields": "false",
    "hoodie.datasource.write.recordkey.field": "n",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.keygenerator.class": f"{KEYGEN}SimpleKeyGenerator",
}


@pytest.mark.parametrize("hudi", ["1.2.0"], indirect=True)
@pytest.mark.timeout(900)
def test_keys_that_are_no_text(tmp_path: Path, hudi: HudiOracle) -> None:
    pair = Pair(tmp_path / "t", hudi, "mor", NUMBERED)
    pyhudi.create_table(
        str(pair.base),
        SCHEMA,
        key="n",
        partition_by="city",
        order_by="ts",
        type="mor",
        options={"hoodie.populate.meta.fields": "false"},
    )
    pair.upsert(rows_of(8))
    pair.hudi_upserts(rows_of(2, 2))
    pair.upsert([{**row, "fare": 9.0} for row in rows_of(3, 3)])
    pair.check()
    pair.table.delete_keys(arrow([pair.rows["k4"]]).select(["n", "city"]))
    pair.hudi_deletes([{**pair.rows["k5"], "ts": 4}])
    pair.gone("k4")
    pair.check()


@pytest.mark.parametrize("hudi", ["0.15.0"], indirect=True)
@pytest.mark.timeout(900)
def test_keys_that_hudi_takes_for_text(tmp_path: Path, hudi: HudiOracle) -> None:
    """Its own log files it cannot read right either, so such a table is refused.

    What goes wrong is up to a property of the session, which Hudi changes by itself as well.
    """
    pair = Pair(tmp_path / "t", hudi, "mor", NUMBERED)
    pair.hudi_upserts(rows_of(8))
    pair.check()
    with pytest.raises(UnsupportedTableFeature, match="record key field n is int32"):
        pair.upsert(rows_of(2, 2))
    pair.hudi_deletes([{**pair.rows["k5"], "ts": 4}])
    assert pair.table.scan().count() == 7
    by_columns = "spark.sql.parquet.enableVectorizedReader"
    hudi.sql(pair.base, f"set {by_columns}=true")
    with pytest.raises(HudiError, match="NullPointerException"):
        hudi.read(pair.base, metadata=False)
    hudi.sql(pair.base, f"set {by_columns}=false")
    assert hudi.read(pair.base, metadata=False)["count"] == 8, "the deleted row exists"
    hudi.sql(pair.base, f"reset {by_columns}")


@pytest.mark.parametrize(("version", "hudi"), RELEASES, indirect=["hudi"])
@pytest.mark.timeout(900)
def test_keys_for_deletes_alone(tmp_path: Path, version: int, hudi: HudiOracle) -> None:
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.keygenerator.class": KEYGEN + "GlobalDeleteKeyGenerator",
    }
    pair = Pair(tmp_path / "t", hudi, "mor", options)
    pyhudi.create_table(
        str(pair.base),
        SCHEMA,
        key="id",
        order_by="ts",
        type="mor",
        version=version,
        options={"hoodie.table.keygenerator.type": "GLOBAL_DELETE"},
    )
    pair.upsert(rows_of(4))
    pair.hudi_upserts([{**row, "fare": 7.0} for row in rows_of(5, 2)[1:]])
    pair.check()
    pair.table.delete_keys(pa.table({"id": ["k1", "k4"]}))
    pair.gone("k1", "k4")
    pair.hudi_deletes([{**pair.rows["k2"], "ts": 3}])
    pair.upsert([{**pair.rows["k3"], "fare": 0.5, "ts": 4}])
    pair.check()


@pytest.mark.parametrize("hudi", ["1.2.0"], indirect=True)
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.timeout(600)
def test_virtual_keys_read_after_clustering_without_partitions(
    tmp_path: Path, hudi: HudiOracle, kind: Any
) -> None:
    """Hudi's procedure, not told the writers' options, puts rows into the table's own folder."""
    options = {
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.keygenerator.class": f"{KEYGEN}SimpleKeyGenerator",
        "hoodie.write.table.version": "9",
    }
    pair = Pair(tmp_path / "t", hudi, kind, options)
    pair.hudi_upserts(rows_of(4))
    before = pair.table.state.timeline.commits[-1].requested
    hudi.call(pair.base, "run_clustering(op => 'scheduleAndExecute')")
    with pytest.raises(HudiError, match="Empty partition column"):
        hudi.read(pair.base, metadata=False)
    assert pair.table.scan().to_arrow().num_rows == 4
    with pytest.raises(UnsupportedTableFeature, match="is outside the table's partitions"):
        pair.table.upsert(arrow(rows_of(2, ts=2)))
    assert "outside_partitions" in {finding.kind for finding in pair.table.check().findings}
    pair.table.restore(before)
    pair.check()
    pair.upsert(rows_of(2, ts=2))
    pair.hudi_upserts(rows_of(1, ts=3))
    pair.check()
