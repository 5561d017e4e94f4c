"""A commit that a failing writer completed after its rollback.

It stalled between its last check of the timeline and its completed file; an active writer would
have revoked that itself.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.txn import rollback
from tests.sim.crash import leftovers, rows_read


def rows(first: int, value: int) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in range(first, first + 4)], "v": [value] * 4})


def completed_file(table: pyhudi.HudiTable, instant: str) -> Path:
    action = "commit" if table.type == "cow" else "deltacommit"
    folder, ending = (".hoodie/timeline", "_*") if table.version > 6 else (".hoodie", "")
    (completed,) = (Path(table.uri) / folder).glob(f"{instant}{ending}.{action}")
    return completed


@pytest.mark.parametrize("way", ["rollback", "restore"])
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_recovery_revokes_commit_published_after_rollback(
    tmp_path: Path, version: int, kind: Any, way: str
) -> None:
    base = tmp_path / "t"
    table = pyhudi.create_table(base, rows(0, 0).schema, key="id", type=kind, version=version)
    kept = table.upsert(rows(0, 1)).instant
    late = table.upsert(rows(2, 2)).instant
    completed = completed_file(table, late)
    content = completed.read_bytes()
    if way == "rollback":
        table.rollback(late)
    else:
        table.restore(kept)
    assert not completed.exists()
    completed.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pyhudi.open_table(base).upsert(rows(3, 3))
        opened = pyhudi.open_table(base)
        assert opened.check(deep=True).findings == ()
        assert [row["v"] for row in rows_read(base, "true")] == [1, 1, 1, 3, 3, 3, 3]
        assert rows_read(base, "true") == rows_read(base, "false")
    assert not completed.exists()
    assert leftovers(base) == []


def test_zombie_commit_stays_without_rollback(tmp_path: Path) -> None:
    """A failed archiver may leave only the completed file, too."""
    base = tmp_path / "t"
    table = pyhudi.create_table(base, rows(0, 0).schema, key="id")
    table.upsert(rows(0, 1))
    other = table.upsert(rows(2, 2)).instant
    alone = table.upsert(rows(4, 3)).instant
    table.rollback(alone)
    for state in ("inflight", "commit.requested"):
        for file in (base / ".hoodie/timeline").glob(f"{other}*.{state}"):
            file.unlink()
    pyhudi.open_table(base).upsert(rows(3, 3))
    assert [row["v"] for row in rows_read(base, "true")] == [1, 1, 2, 3, 3, 3, 3]


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_recovery_revokes_commit_published_during_rollback(
    tmp_path: Path, version: int, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write that rolls it back must not plan on it, since its files are deleted."""
    base = tmp_path / "t"
    table = pyhudi.create_table(base, rows(0, 0).schema, key="id", type=kind, version=version)
    table.upsert(rows(0, 1))
    late = table.upsert(rows(2, 2)).instant
    completed = completed_file(table, late)
    content = completed.read_bytes()
    completed.unlink()
    roll_back = rollback.roll_back

    def roll_back_slowly(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(rollback, "roll_back", roll_back)
        result = roll_back(*arguments, **named)
        completed.write_bytes(content)
        return result

    monkeypatch.setattr(rollback, "roll_back", roll_back_slowly)
    result = pyhudi.open_table(base).update("v = 1", {"v": "v + 10"})
    assert result.rows_updated == 4
    assert [row["v"] for row in rows_read(base, "true")] == [11, 11, 11, 11]
    assert not completed.exists()
