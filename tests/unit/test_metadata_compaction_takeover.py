"""A metadata table compaction that another writer completes while the first one pauses.

Seeds of v8-mor-record_index-metadata-forgets. 22001007: it removed what they had published.
24000003: it published what they had removed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.actions import COMPACTION
from pyhudi.services import compaction
from pyhudi.txn.locks.storage_lock import PATH
from pyhudi.txn.pending_instant import PendingInstant

OPTIONS = {"hoodie.metadata.compact.max.delta.commits": "2"}


def rows(ids: str, value: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": [value] * len(ids)})


@pytest.mark.filterwarnings(
    "ignore:.*services of the metadata table failed:pyhudi.errors.MetadataTableWarning"
)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_metadata_compaction_keeps_files_of_other_executor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    base = tmp_path / "t"
    schema = rows("a", 0).schema
    table = pyhudi.create_table(base, schema, key="id", version=version, options=OPTIONS)
    real = compaction._files_of_attempts
    calls: list[str] = []

    def late(opened: Any, *given: Any) -> Any:
        calls.append(opened.time)
        if len(calls) == 1:
            lose_lock(base, opened)
            pyhudi.open_table(base, options=OPTIONS).upsert(rows("c", 9))
        return real(opened, *given)

    monkeypatch.setattr(compaction, "_files_of_attempts", late)
    value = 0
    while not calls:
        value += 1
        table.upsert(rows("ab", value))
    assert calls.count(calls[0]) > 1
    go_on(base, value)


@pytest.mark.filterwarnings(
    "ignore:.*services of the metadata table failed:pyhudi.errors.MetadataTableWarning"
)
@pytest.mark.parametrize("late_at", ["in_step", "publish"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_metadata_compaction_publishes_only_with_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, late_at: str
) -> None:
    base = tmp_path / "t"
    schema = rows("a", 0).schema
    table = pyhudi.create_table(base, schema, key="id", version=version, options=OPTIONS)
    begin, complete, publish = PendingInstant.begin, PendingInstant.complete, PendingInstant.publish
    begun: list[PendingInstant] = []
    calls: list[str] = []

    def noted(opened: PendingInstant, content: bytes = b"") -> None:
        begin(opened, content)
        if opened.action == COMPACTION:
            begun.append(opened)
            if calls:
                raise KeyboardInterrupt

    def stands_still() -> None:
        if begun and not calls:
            calls.append(begun[0].time)
            lose_lock(base, begun[0])
            with pytest.raises(KeyboardInterrupt):
                pyhudi.open_table(base, options=OPTIONS).upsert(rows("c", 9))

    def late_publish(opened: PendingInstant, *given: Any) -> None:
        stands_still()
        publish(opened, *given)

    def late_in_step(opened: PendingInstant, *given: Any) -> str:
        stands_still()
        return complete(opened, *given)

    monkeypatch.setattr(PendingInstant, "begin", noted)
    if late_at == "publish":
        monkeypatch.setattr(PendingInstant, "publish", late_publish)
    else:
        monkeypatch.setattr(PendingInstant, "complete", late_in_step)
    value = 0
    while not calls:
        value += 1
        table.upsert(rows("ab", value))
    monkeypatch.undo()
    go_on(base, value)


def lose_lock(base: Path, opened: Any) -> None:
    """As it is for who stood still until the lock's time was over."""
    lock = json.loads((base / PATH).read_text())
    (base / PATH).write_text(json.dumps({**lock, "expired": True}))
    opened.table.lock_manager._lock._content = None


def go_on(base: Path, value: int) -> None:
    opened = pyhudi.open_table(base, options=OPTIONS)
    assert opened.check(deep=True).findings == ()
    assert opened.upsert(rows("ac", 10)).rows_updated == 2
    found = opened.scan(["id", "v"]).to_arrow().to_pylist()
    assert sorted((row["id"], row["v"]) for row in found) == [
        ("a", 10),
        ("b", value),
        ("c", 10),
    ]
