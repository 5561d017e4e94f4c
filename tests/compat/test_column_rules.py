"""Merge rules by column: Apache Hudi does not know the merger, and refuses the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.oracle.client import HudiError, HudiOracle

SCHEMA = pa.schema([("id", pa.string()), ("clicks", pa.int64()), ("name", pa.string())])
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    ),
    "hoodie.embed.timeline.server": "false",
    "hoodie.upsert.shuffle.parallelism": "1",
}
COMPACT = {"hoodie.compact.inline.max.delta.commits": "1"}
MERGED = [{"id": "a", "clicks": 11, "name": "new"}, {"id": "b", "clicks": 2, "name": "old"}]
RELEASES = [("1.2.0", 9), ("1.2.0", 8), ("1.0.2", 8)]


def made(base: Path, version: int, kind: Any) -> pyhudi.HudiTable:
    first = [{"id": "a", "clicks": 1, "name": "old"}, {"id": "b", "clicks": 2, "name": "old"}]
    table = pyhudi.create_table(
        base,
        pa.Table.from_pylist(first, SCHEMA),
        key="id",
        type=kind,
        version=version,
        merge_rules={"clicks": "sum"},
    )
    table.upsert([{"id": "a", "clicks": 10, "name": "new"}])
    return table


def rows_of(base: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pyhudi.open_table(base).to_arrow().sort_by("id").to_pylist()
    return rows


def write(hudi: HudiOracle, base: Path, operation: str, key: str) -> None:
    rows = [{"id": key, "clicks": 100, "name": "hudi"}]
    ddl = "id string, clicks long, name string"
    hudi.write(base, rows=rows, schema=ddl, operation=operation, options=OPTIONS)


def pending_plans(hudi: HudiOracle, base: Path) -> list[str]:
    instants = hudi.instants(base)
    return [
        instant["requested"]
        for instant in instants
        if instant["action"] == "compaction" and instant["state"] != "COMPLETED"
    ]


WRITES: dict[str, Callable[[HudiOracle, Path], object]] = {
    "upsert": lambda hudi, base: write(hudi, base, "upsert", "a"),
    "insert": lambda hudi, base: write(hudi, base, "insert", "z"),
    "update": lambda hudi, base: hudi.sql(base, "UPDATE {table} SET clicks = 5 WHERE id = 'a'"),
}


@pytest.mark.parametrize(
    ("hudi", "version"), RELEASES, indirect=["hudi"], ids=["1.2.0-9", "1.2.0-8", "1.0.2-8"]
)
def test_hudi_refuses_merge_on_read_tables_with_rules(
    tmp_path: Path, hudi: HudiOracle, version: int
) -> None:
    """No read with log files, no write and no compaction merges records in another way."""
    reads = {"snapshot": lambda hudi, base: hudi.read(base)}
    for name, call in {**reads, **WRITES}.items():
        base = tmp_path / name
        made(base, version, "mor")
        with pytest.raises(HudiError):
            call(hudi, base)
        assert rows_of(base) == MERGED, name
    pending = tmp_path / "pending"
    made(pending, version, "mor").compact(execute=False)
    with pytest.raises(HudiError):
        hudi.call(pending, "run_compaction(op => 'run')", conf=COMPACT)
    assert rows_of(pending) == MERGED
    planned = tmp_path / "planned"
    made(planned, version, "mor")
    with pytest.raises(HudiError):
        hudi.call(planned, "run_compaction(op => 'scheduleandexecute')", conf=COMPACT)
    assert rows_of(planned) == MERGED
    # The files are as pyhudi left them: it executes Hudi's plan and goes on.
    table = pyhudi.open_table(planned)
    for instant in pending_plans(hudi, planned):
        table.compact(instant=instant)
    table.upsert([{"id": "b", "clicks": 5, "name": "new"}])
    assert rows_of(planned)[1] == {"id": "b", "clicks": 7, "name": "new"}


@pytest.mark.parametrize(
    ("hudi", "version"), RELEASES, indirect=["hudi"], ids=["1.2.0-9", "1.2.0-8", "1.0.2-8"]
)
def test_hudi_reads_but_does_not_write_copy_on_write_tables_with_rules(
    tmp_path: Path, hudi: HudiOracle, version: int
) -> None:
    """Base files hold merged rows."""
    for name, call in WRITES.items():
        base = tmp_path / name
        made(base, version, "cow")
        assert hudi.read(base)["rows"] == MERGED
        with pytest.raises(HudiError):
            call(hudi, base)
        assert rows_of(base) == MERGED, name
