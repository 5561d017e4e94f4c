"""A stream follows a table that Apache Hudi writes, and Hudi ignores the consumer's file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pyhudi
from tests.compat.test_alternating_writers import hudi_options
from tests.compat.test_metadata_writes import EVENT_TIME, METADATA, RELEASES
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.pairwise import with_kinds

DDL = "id string, city string, v bigint, ts bigint"
FILE = ".hoodie/.pyhudi/consumers/copy/position.json"


class Followed:
    """A table of Hudi's, and what a consumer of pyhudi's has read of it."""

    def __init__(self, hudi: HudiOracle, base: Path, version: int, kind: str) -> None:
        self.hudi, self.base = hudi, base
        self.options = {**hudi_options(kind, partitioned=True), **METADATA}
        self.options |= {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
        self.options["hoodie.parquet.small.file.limit"] = "0"
        if version == 6:
            self.options |= EVENT_TIME
        self.state: dict[str, int] = {}

    def write(self, operation: str, ids: str, v: int) -> str:
        """Write keys such as "a1 b2", whose first letter is the city; return the instant."""
        rows = [{"id": key, "city": key[0], "v": v, "ts": v} for key in ids.split()]
        answer = self.hudi.write(
            self.base,
            rows=rows,
            schema=DDL,
            operation=operation,
            options=self.options,
            mode="append" if self.base.exists() else "overwrite",
        )
        return str(answer["instants"][-1]["requested"])

    def call(self, procedure: str) -> None:
        conf = {name: value for name, value in self.options.items() if "metadata" in name}
        self.hudi.call(self.base, procedure, conf)

    def read(self) -> list[dict[str, int]]:
        """Return the new batches, and apply them."""
        batches = []
        for batch in pyhudi.open_table(self.base).stream("earliest", consumer="copy", wait=False):
            batches.append({row["id"]: row["v"] for row in batch.to_arrow().to_pylist()})
            self.state |= batches[-1]
            batch.commit()
        return batches


@pytest.mark.parametrize(
    ("version", "hudi", "kind"),
    [(*release, kind) for release, kind in with_kinds(RELEASES)],
    indirect=["hudi"],
)
def test_stream_follows_table_that_hudi_writes_and_services(
    version: int, hudi: HudiOracle, kind: str, tmp_path: Path
) -> None:
    table = Followed(hudi, tmp_path / "t", version, kind)
    table.write("upsert", "a1 a2 b1", 1)
    table.write("upsert", "a1 c1", 2)
    assert table.read() == [{"a1": 1, "a2": 1, "b1": 1}, {"a1": 2, "c1": 2}]
    position = (table.base / FILE).read_bytes()
    table.write("delete", "b1", 3)
    if kind == "mor":
        table.call("run_compaction(op => 'scheduleandexecute')")
    table.call("run_clustering(op => 'scheduleAndExecute')")
    table.write("insert_overwrite", "c9", 4)
    for v in (5, 6, 7):
        table.write("upsert", "a1 c2", v)
    assert table.read() == [{"c9": 4}, *({"a1": v, "c2": v} for v in (5, 6, 7))]
    del table.state["b1"], table.state["c1"]

    read = (table.base / FILE).read_bytes()
    assert read != position
    table.call("run_clean(clean_policy => 'KEEP_LATEST_COMMITS', retain_commits => 1)")
    for v in (8, 9, 10):
        table.write("upsert", "a2", v)
    keep = "min_commits => 2, max_commits => 3, retain_commits => 1, enable_metadata => true"
    table.call(f"archive_commits({keep})")
    # No writer or service of Hudi has touched the file, and the archive has what follows it.
    assert (table.base / FILE).read_bytes() == read
    assert table.read() == [{"a2": v} for v in (8, 9, 10)]
    for metadata in (False, True):
        rows: Any = hudi.read(table.base, metadata=metadata)["rows"]
        assert {row["id"]: row["v"] for row in rows} == table.state
    assert hudi.validate(table.base)["ok"]
    current = pyhudi.open_table(table.base)
    assert not current.check(deep=True).findings
    # Commits of both in turn, and a rollback of one that was read.
    current.upsert([{"id": "a1", "city": "a", "v": 11, "ts": 11}])
    undone = table.write("upsert", "a1", 12)
    assert table.read() == [{"a1": 11}, {"a1": 12}]
    pyhudi.open_table(table.base).rollback(undone)
    table.write("upsert", "a2", 13)
    assert table.read() == [{"a2": 13}]


@pytest.mark.hudi("1.2.0")
def test_hudi_upgrades_table_with_consumer(hudi: HudiOracle, tmp_path: Path) -> None:
    table = Followed(hudi, tmp_path / "t", 6, "mor")
    pyhudi.create_table(
        table.base,
        [{"id": "a1", "city": "a", "v": 1, "ts": 1}],
        key="id",
        partition_by="city",
        order_by="ts",
        type="mor",
        version=6,
        options={"hoodie.table.name": "trips"},
    )
    assert table.read() == [{"a1": 1}]
    content = (table.base / FILE).read_bytes()
    table.options |= {"hoodie.write.auto.upgrade": "true", "hoodie.write.table.version": "9"}
    table.write("upsert", "a2", 2)
    assert pyhudi.open_table(table.base).version == 9
    assert (table.base / FILE).read_bytes() == content
    with pytest.raises(pyhudi.ConfigError, match="is a requested time"):
        table.read()
