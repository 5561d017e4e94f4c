"""A compaction of the metadata table that others carry out while who began it stands still.

Seed 22001007 of v8-mor-record_index-metadata-forgets: it removed what they had published.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.services import compaction
from pyhudi.txn.locks.storage_lock import PATH

OPTIONS = {"hoodie.metadata.compact.max.delta.commits": "2"}


def rows(ids: str, value: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": [value] * len(ids)})


@pytest.mark.filterwarnings("ignore:.*services wait:pyhudi.errors.MetadataTableWarning")
@pytest.mark.parametrize("version", [6, 8, 9])
def test_the_files_of_who_took_it_over_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    base = tmp_path / "t"
    schema = rows("a", 0).schema
    table = pyhudi.create_table(base, schema, key="id", version=version, options=OPTIONS)
    real = compaction._begun
    calls: list[str] = []

    def late(opened: Any, *given: Any) -> Any:
        calls.append(opened.time)
        if len(calls) == 1:
            lock = json.loads((base / PATH).read_text())
            (base / PATH).write_text(json.dumps({**lock, "expired": True}))
            opened.table.guard._lock._content = None
            pyhudi.open_table(base, options=OPTIONS).upsert(rows("c", 9))
        return real(opened, *given)

    monkeypatch.setattr(compaction, "_begun", late)
    value = 0
    while not calls:
        value += 1
        table.upsert(rows("ab", value))
    assert calls.count(calls[0]) > 1
    opened = pyhudi.open_table(base, options=OPTIONS)
    assert opened.check(deep=True).findings == ()
    assert opened.upsert(rows("ac", 10)).rows_updated == 2
    found = opened.scan(["id", "v"]).to_arrow().to_pylist()
    assert sorted((row["id"], row["v"]) for row in found) == [
        ("a", 10),
        ("b", value),
        ("c", 10),
    ]
