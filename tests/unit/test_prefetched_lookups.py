"""Lookups in a record index that is newer than the write's timeline.

Another write began since then, updated the index, and fails before it is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.actions import ROLLBACK
from pyhudi.index import record_index
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.write import upsert
from pyhudi.write.table_opening import WritableTable
from tests.sim.crash import CrashingStorage, Handle, Killed, leftovers, rows_read
from tests.sim.interrupting_storage import StandingClock

STAND_MS = 70_000
"""The lock of the dead is free by then, and its heartbeat not dead yet."""
KINDS = [(6, "cow"), (6, "mor"), (8, "mor"), (9, "cow"), (9, "mor")]


def rows(ids: Any, value: int) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in ids], "v": [value for _ in ids]})


VERBS: dict[str, Callable[[WritableTable], object]] = {
    "brings": lambda handle: upsert.upsert(handle, rows([5], 2)),
    "deletes": lambda handle: upsert.delete_keys(handle, rows([5], 2).select(["id"])),
}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StandingClock:
    """Everybody's."""
    return StandingClock.of_all(monkeypatch)


def dies(base: Path, verb: str, options: dict[str, str]) -> None:
    """A write that ends just before its completed file is there."""
    publish, storage = PendingInstant.publish, CrashingStorage(str(base))

    def published(opened: PendingInstant, completion: str, content: bytes) -> None:
        if opened.table.storage is storage and opened.action != ROLLBACK:
            storage.is_dead = True
            raise Killed
        publish(opened, completion, content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PendingInstant, "publish", published)
        with pytest.raises(Killed):
            VERBS[verb](Handle(storage, options))


@pytest.mark.parametrize("small", ["0", "104857600"])
@pytest.mark.parametrize("verb", list(VERBS))
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_prefetched_lookup_ignores_incomplete_writes(
    tmp_path: Path,
    clock: StandingClock,
    monkeypatch: pytest.MonkeyPatch,
    version: Any,
    kind: Any,
    verb: str,
    small: str,
) -> None:
    """A key went out of the index, or was there twice (seed 26005122 of v9-mor-record_index)."""
    base, options = tmp_path / "t", {"hoodie.parquet.small.file.limit": small}
    table = pyhudi.create_table(
        base, rows([0], 0).schema, key="id", type=kind, version=version, options=options
    )
    table.upsert(rows(range(4) if verb == "brings" else [*range(4), 5], 1))
    tag = record_index._tag_by_index

    def tagged(*given: Any, **how: Any) -> Any:
        # Once.
        monkeypatch.setattr(record_index, "_tag_by_index", tag)
        dies(base, verb, options)
        clock.stand_still(STAND_MS)
        return tag(*given, **how)

    monkeypatch.setattr(record_index, "_tag_by_index", tagged)
    pyhudi.open_table(base, options=options).upsert(rows([5], 3))
    clock.stand_still(4_000_000)
    pyhudi.open_table(base, options=options).upsert(rows([0, 5], 9))
    found = rows_read(base, "true")
    assert [(row["id"], row["v"]) for row in found] == [
        *(("k0", 9), ("k1", 1), ("k2", 1), ("k3", 1), ("k5", 9))
    ]
    assert found == rows_read(base, "false")
    assert leftovers(base) == []
    assert not pyhudi.open_table(base).check(deep=True).findings
