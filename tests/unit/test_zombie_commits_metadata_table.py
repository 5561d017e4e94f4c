"""A delta commit of the metadata table that was completed after its rollback.

Its writer stalled between its last check of the timeline and its last file (seed 7000185 of
v9-mor-bucket-metadata-appends), and may have failed since then.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import CorruptTable
from pyhudi.metadata import commit_participant
from pyhudi.metadata.consistency import check_files
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Instant, Timeline
from pyhudi.txn.lock_manager import TableLockManager
from tests.helpers.metadata_table import metadata_table
from tests.sim.crash import rows_read

TIMELINE = Path(".hoodie/metadata/.hoodie/timeline")


def rows(first: int, value: int) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in range(first, first + 4)], "v": [value] * 4})


@pytest.mark.parametrize("version", [8, 9])
def test_zombie_delta_commit_keeps_table_usable(tmp_path: Path, version: int) -> None:
    base = tmp_path / "t"
    table = pyhudi.create_table(base, rows(0, 0).schema, key="id", type="mor", version=version)
    table.upsert(rows(0, 1))
    late = table.upsert(rows(2, 2)).instant
    (completed,) = (base / TIMELINE).glob(f"{late}_*.deltacommit")
    content = completed.read_bytes()
    table.rollback(late)
    assert not completed.exists()
    completed.write_bytes(content)
    expected = [{"id": f"k{n}", "v": 1} for n in range(4)]
    for metadata in ("true", "false"):
        found = rows_read(base, metadata)
        assert [{name: row[name] for name in ("id", "v")} for row in found] == expected
    pyhudi.open_table(base).upsert(rows(3, 3))
    assert rows_read(base, "true") == rows_read(base, "false")
    assert [row["v"] for row in rows_read(base, "true")] == [1, 1, 1, 3, 3, 3, 3]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_zombie_delta_commit_is_not_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, kind: Any
) -> None:
    """Its log files, too, came after the rollback (seed 11000427 of v6-mor-bloom-metadata)."""
    calls: list[tuple[Any, ...]] = []
    real = commit_participant.MetadataParticipant.before_complete

    def noted(self: Any, *given: Any) -> Any:
        calls.append((self, *given))
        return real(self, *given)

    monkeypatch.setattr(commit_participant.MetadataParticipant, "before_complete", noted)
    base = tmp_path / "t"
    table = pyhudi.create_table(base, rows(0, 0).schema, key="id", type=kind, version=version)
    table.upsert(rows(0, 1))
    late = table.upsert(rows(2, 2)).instant
    came_late = calls[-1]
    files = {file: file.read_bytes() for file in base.iterdir() if file.is_file()}
    table.rollback(late)
    gone = [file for file in files if not file.exists()]
    for file in gone:  # the writer had looked at them before
        file.write_bytes(files[file])
    with monkeypatch.context() as patch:  # and had looked at its lock
        patch.setattr(TableLockManager, "check_held", lambda _: None)
        real(*came_late)
    for file in gone:
        file.unlink()
    assert delta_of(base, late) is not None
    options = {"hoodie.metadata.compact.max.delta.commits": "1"}
    pyhudi.open_table(base, options=options).upsert(rows(3, 3))
    assert any(instant.action == "commit" for instant in timeline_of(base).filter_completed())
    assert delta_of(base, late) is None
    assert pyhudi.open_table(base).check(deep=True).findings == ()
    assert rows_read(base, "true") == rows_read(base, "false")


def timeline_of(base: Path) -> Timeline:
    return metadata_table(Storage(str(base))).timeline


def delta_of(base: Path, instant: str) -> Instant | None:
    return timeline_of(base).find(instant, "deltacommit")


def test_zombie_delta_commit_file_is_recognized(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = pyhudi.create_table(base, rows(0, 0).schema, key="id", type="mor")
    table.upsert(rows(0, 1))
    with pytest.raises(CorruptTable, match=r"files/.* is missing"):
        check_files(metadata_table(table.storage).timeline, "files", {})
