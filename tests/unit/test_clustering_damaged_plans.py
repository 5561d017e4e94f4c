"""Clusterings that cannot run because Hudi left an empty requested file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import CorruptTable, HudiTable
from pyhudi.clock import SystemClock
from pyhudi.timeline import serde
from tests.helpers.pairwise import pairwise
from tests.helpers.table_builder import SMALL, TableBuilder

TIME = "20240101000000000"
PEOPLE = TableBuilder({"id": (pa.string(), str), "v": (pa.int64(), 1)}, options=SMALL)
RECORD = "HoodieRequestedReplaceMetadata"
NO_PLAN = serde.encode_container(RECORD, {"operationType": "CLUSTER"}, SystemClock())
SYNC = NO_PLAN[-16:]
NO_RECORD = NO_PLAN[: NO_PLAN.index(SYNC) + len(SYNC)]
DAMAGED = {"no record": NO_RECORD, "cut": NO_PLAN[:100], "zeros": bytes(20)}


def planned(base: Path, version: int, kind: Any, plan: bytes, begun: bytes | None) -> HudiTable:
    """A table with a clustering of this plan; begun: whether an attempt has written this file."""
    table = PEOPLE.make(base, version=version, kind=kind, first="abc")
    table.upsert(PEOPLE.rows("ab", v=2))
    timeline = base / ".hoodie" / ("timeline" if version > 6 else "")
    action = "clustering" if version > 6 else "replacecommit"
    (timeline / f"{TIME}.{action}.requested").write_bytes(plan)
    if begun is not None:
        (timeline / f"{TIME}.{action}.inflight").touch()
        (base / f"11111111-2222-3333-4444-555555555555-0_0-1-0_{TIME}.parquet").write_bytes(begun)
    return pyhudi.open_table(base)


def kinds(table: HudiTable) -> set[str]:
    return {finding.kind for finding in table.check()}


@pytest.mark.filterwarnings("ignore:.*the record index is not used")
@pytest.mark.parametrize(
    ("version", "kind", "damage"), pairwise((6, 8, 9), ("cow", "mor"), tuple(DAMAGED))
)
def test_rollback_removes_a_clustering_with_a_damaged_plan(
    version: int, kind: str, damage: str, tmp_path: Path
) -> None:
    begun = b"half" if damage == "cut" else None
    table = planned(tmp_path / "t", version, kind, DAMAGED[damage], begun)
    assert kinds(table) == {"damaged_plan"}
    hint = rf'rollback\("{TIME}"\)'
    for change in (lambda: table.upsert(PEOPLE.rows("a", v=3)), table.cluster, table.maintain):
        with pytest.raises(CorruptTable, match=hint):
            change()
    assert table.rollback(TIME, dry_run=True).instants == (TIME,)
    table.rollback(TIME)
    assert not [*(tmp_path / "t").rglob(f"*{TIME}*")]
    assert kinds(table) == set()
    table.upsert(PEOPLE.rows("a", v=3))
    table.cluster()
    assert table.refresh().scan().count() == 3


@pytest.mark.parametrize("plan", [b"", NO_PLAN], ids=["no bytes", "no plan"])
@pytest.mark.parametrize(("version", "kind"), [(8, "mor"), (9, "cow")])
def test_write_succeeds_next_to_clustering_without_plan(
    plan: bytes, version: int, kind: str, tmp_path: Path
) -> None:
    table = planned(tmp_path / "t", version, kind, plan, None)
    assert kinds(table) == {"empty_plan"}
    table.upsert(PEOPLE.rows("a", v=3))
    left = "\n".join(table.cluster().left)
    assert f'rollback("{TIME}") cancels it' in left
    table.maintain()
    table.rollback(TIME)
    assert kinds(table) == set()
    assert table.refresh().scan().count() == 3
