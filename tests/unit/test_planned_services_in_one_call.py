"""Services that execute several plans in one call, one commit each."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.config.table_config import TableConfig
from pyhudi.metadata import commit_participant
from pyhudi.metadata.pending_operation import PendingOperation
from pyhudi.table.table_snapshot import TableSnapshot
from tests.helpers.table_builder import TableBuilder

TABLE = TableBuilder(
    {"id": (pa.string(), str), "p": (pa.string(), "x"), "v": (pa.int64(), 1)},
    partition_by="p",
    kind="mor",
    first="a",
)


@pytest.mark.parametrize("service", ["compact", "cluster"])
def test_service_plan_ignores_previous_own_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    """Seed 27003731: each commit counts that it went on without who makes an index, and is dead."""
    table = TABLE.make(tmp_path)
    for part in ("x", "y"):
        rows = TABLE.rows("a" if part == "x" else "b", p=part)
        for _ in range(4):
            table.bulk_insert(rows) if service == "cluster" else table.upsert(rows)
        if part == "x":
            assert getattr(table, service)(execute=False).scheduled
    times = itertools.count(1)

    def counts(now: TableSnapshot) -> None:
        undone = PendingOperation(
            "20240101000000000", 9, is_concurrent=True, times_fenced=next(times)
        )
        TableConfig.load(now.storage).update(now.storage, undone.properties, now.clock)

    monkeypatch.setattr(commit_participant, "fence_build", counts)
    assert len(getattr(table, service)().instants) == 2
