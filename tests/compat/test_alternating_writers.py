"""pyhudi and Apache Hudi write one table in turn; after each round both read what a model says."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.table_builder import TableBuilder

ROUNDS = 5
CITIES = ("oslo", "quito", "lima")
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        # 1.0.2 cannot read a key that was deleted and came back under a long ordering field.
        ("ts", pa.int32()),
        ("city", pa.string()),
        ("fare", pa.float64()),
        ("note", pa.string()),
    ]
)
TRIPS = TableBuilder.of(
    SCHEMA, partition_by="city", order_by="ts", options={"hoodie.table.name": "trips"}
)
DDL = "id string, ts int, city string, fare double, note string"
KEY_GENERATORS = "org.apache.hudi.keygen"

Row = dict[str, Any]


@dataclass
class Model:
    """Rows by key under event-time ordering, with what each round changed."""

    numbers: random.Random
    rows: dict[str, Row] = field(default_factory=dict)
    gone: list[Row] = field(default_factory=list)
    clock: int = 100
    made: int = 0

    def batch(self, size: int) -> list[Row]:
        """Updates, one of them late, a deleted key that comes back, new rows; no key twice."""
        self.clock += 10
        known = self.numbers.sample(sorted(self.rows), min(size, len(self.rows)))
        batch = [self._row(key, self.rows[key]["city"], self.clock) for key in known]
        if batch:
            batch[0]["ts"] = 1
        if self.gone:
            back = self.gone.pop(0)
            batch.append(self._row(back["id"], back["city"], self.clock))
        for _ in range(size):
            self.made += 1
            batch.append(self._row(f"k{self.made:04d}", self.numbers.choice(CITIES), self.clock))
        self.numbers.shuffle(batch)
        return batch

    def _row(self, key: str, city: str, ts: int) -> Row:
        note = self.numbers.choice(["", "plain", "ünï\u4e16", None])
        return {
            "id": key,
            "ts": ts,
            "city": city,
            "fare": self.numbers.randrange(1000) / 4,
            "note": note,
        }

    def upsert(self, batch: list[Row]) -> None:
        for row in batch:
            old = self.rows.get(row["id"])
            if old is None or row["ts"] >= old["ts"]:
                self.rows[row["id"]] = row

    def chosen(self, count: int) -> list[Row]:
        keys = self.numbers.sample(sorted(self.rows), min(count, len(self.rows)))
        return [self.rows[key] for key in keys]

    def delete(self, rows: list[Row]) -> None:
        for row in rows:
            del self.rows[row["id"]]
        self.gone += rows

    def sorted(self) -> list[Row]:
        return [self.rows[key] for key in sorted(self.rows)]


def hudi_options(kind: str, *, partitioned: bool) -> dict[str, str]:
    generator = "SimpleKeyGenerator" if partitioned else "NonpartitionedKeyGenerator"
    return {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE" if kind == "cow" else "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "city" if partitioned else "",
        "hoodie.datasource.write.keygenerator.class": f"{KEY_GENERATORS}.{generator}",
        "hoodie.index.type": "SIMPLE",
        "hoodie.metadata.enable": "false",
        "hoodie.embed.timeline.server": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.compact.inline.max.delta.commits": "100",
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.delete.shuffle.parallelism": "2",
        "hoodie.index.bloom.num_entries": "64",
        "hoodie.write.auto.upgrade": "false",
    }


def read_by_pyhudi(base: Path) -> list[Row]:
    rows: list[Row] = pyhudi.open_table(str(base)).scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: str(row["id"]))


def read_by_hudi(hudi: HudiOracle, base: Path) -> list[Row]:
    rows: list[Row] = hudi.read(base, metadata=False)["rows"]
    return sorted(rows, key=lambda row: str(row["id"]))


def write_with_pyhudi(base: Path, model: Model, hudi: HudiOracle) -> None:
    table = pyhudi.open_table(str(base))
    batch = model.batch(4)
    result = table.upsert(pa.Table.from_pylist(batch, SCHEMA))
    late = {row["id"] for row in batch if row["ts"] == 1}
    model.upsert(batch)
    check_incremental(hudi, base, result.instant, {row["id"] for row in batch}, late)
    gone = model.chosen(2)
    keys = pa.Table.from_pylist(gone, SCHEMA).select(["id", "city"])
    pyhudi.open_table(str(base)).delete_keys(keys)
    model.delete(gone)


def check_incremental(
    hudi: HudiOracle, base: Path, instant: str, batch: set[str], late: set[str]
) -> None:
    """Hudi's incremental query over our instant alone gives the rows that it changed.

    In merge-on-read tables it merges only the files of the range: a late record, which loses to its
    base row in a snapshot, is there where the base file is not among them.
    """
    by_instant = {i["requested"]: i for i in hudi.instants(base) if i["state"] == "COMPLETED"}
    info = hudi.info(base)
    end = by_instant[instant]["completed"] if info["table_version"] >= 8 else instant
    begin = str(int(end) - 1)
    changed = hudi.read(base, query="incremental", begin=begin, end=end, metadata=False)["rows"]
    ids = [row["id"] for row in changed]
    assert len(ids) == len(set(ids))
    assert batch - late <= set(ids)
    assert set(ids) <= (batch if info["table_type"] == "MERGE_ON_READ" else batch - late)


def write_with_hudi(
    hudi: HudiOracle, base: Path, model: Model, options: dict[str, str], compact: bool
) -> None:
    batch = model.batch(4)
    hudi.write(base, rows=batch, schema=DDL, operation="upsert", options=options)
    model.upsert(batch)
    gone = model.chosen(2)
    hudi.write(base, rows=gone, schema=DDL, operation="delete", options=options)
    model.delete(gone)
    if compact:
        conf = {"hoodie.metadata.enable": "false", "hoodie.write.auto.upgrade": "false"}
        hudi.call(base, "run_compaction(op => 'scheduleandexecute')", conf=conf)


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "flat"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(
    ("version", "hudi"), [(6, "0.15.0"), (8, "1.0.2"), (9, "1.2.0")], indirect=["hudi"]
)
@pytest.mark.timeout(900)
def test_rounds_in_turn(
    tmp_path: Path,
    hudi: HudiOracle,
    version: int,
    kind: Literal["cow", "mor"],
    partitioned: bool,
) -> None:
    base = tmp_path / "trips"
    model = Model(random.Random(f"{version}-{kind}-{partitioned}"))
    first = model.batch(12)
    TRIPS.make(
        base,
        version=version,
        kind=kind,
        partition_by="city" if partitioned else None,
        first=pa.Table.from_pylist(first, SCHEMA),
    )
    model.upsert(first)
    options = hudi_options(kind, partitioned=partitioned)
    for number in range(ROUNDS):
        if number % 2:
            write_with_pyhudi(base, model, hudi)
        else:
            write_with_hudi(hudi, base, model, options, kind == "mor" and number % 4 == 2)
        assert read_by_pyhudi(base) == model.sorted(), f"pyhudi, round {number}"
        assert read_by_hudi(hudi, base) == model.sorted(), f"Hudi, round {number}"
    assert int(hudi.info(base)["table_version"]) == version
