"""Group commits next to other writers, one seed after another, and crashes of a group writer.

A seed is replayed as in `test_many_writers.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.engine.local import LocalEngine
from pyhudi.storage.storage import Storage
from pyhudi.write import upsert
from tests.sim.crash import SMALL_BLOOM, Handle, leftovers, people, people_table
from tests.sim.seed_runner import ONE, SEEDS, play_all
from tests.sim.states import RecordingStorage, recorded
from tests.sim.table_kinds import GROUP_COMMIT_KINDS, Kind


@pytest.mark.each_time
@pytest.mark.parametrize("kind", GROUP_COMMIT_KINDS, ids=str)
def test_group_commits_are_serializable(
    kind: Kind,
    tables: Callable[[Kind], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    histories = play_all(SEEDS // 3, kind, tables(kind), tmp_path, monkeypatch)
    said = [attempt.said for history in histories for attempt in history.attempts]
    assert ONE or said.count("done") > len(said) // 2


OPTIONS = {**SMALL_BLOOM, "hoodie.parquet.small.file.limit": "0"}
BATCHES = {"a": [0, 1], "b": [1, 7], "c": [8], "d": [2, 9], "e": [7]}
"""Ids of rows by batch; each row has the number of its batch as value."""


def values_after(batches: list[str]) -> dict[str, int]:
    rows = {f"k{n:02}": 0 for n in range(6)}
    for name in batches:
        rows |= {f"k{n:02}": 1 + [*BATCHES].index(name) for n in BATCHES[name]}
    return rows


@pytest.mark.parametrize(("version", "kind"), [(9, "mor"), (9, "cow"), (6, "mor")])
def test_killed_group_writer_loses_only_unconfirmed_batches(
    version: int, kind: Literal["cow", "mor"], tmp_path: Path
) -> None:
    """At each change of storage: whole batches in their order, and all that had a result."""
    base = tmp_path / "table"
    upsert.insert(people_table(base, version, kind, OPTIONS), people(range(6), 0, 10))
    confirmed_at: dict[str, int] = {}

    def write(storage: Storage) -> None:
        assert isinstance(storage, RecordingStorage)
        writer = HudiTable(storage, LocalEngine(1), OPTIONS).writer(max_seconds=60)

        def submit(name: str) -> None:
            def note(_: Any) -> None:
                confirmed_at[name] = storage.changes

            rows = people(BATCHES[name], 1 + [*BATCHES].index(name), 20)
            writer.upsert(rows, commit_id=name).add_done_callback(note)

        for names in ("abc", "de"):
            for name in names:
                submit(name)
            writer.flush()
        writer.close()

    done = recorded(base, tmp_path, write)
    assert sorted(confirmed_at) == [*BATCHES]
    assert len({*confirmed_at.values()}) == 2
    counts = set()
    for n, crashed in done.deaths():
        # The writer dies instead of change n.
        confirmed = [name for name, change in confirmed_at.items() if change < n]
        table = pyhudi.open_table(crashed, options=OPTIONS)
        rows = table.scan().to_arrow().to_pylist()
        values = {row["id"]: row["v"] for row in rows}
        assert len(values) == len(rows)
        published = next(count for count in (0, 3, 5) if values == values_after([*BATCHES][:count]))
        assert published >= len(confirmed), f"change {n}"
        counts.add(published)
        # All callers retry, each by the id of its batch.
        with table.writer(max_seconds=60) as writer:
            futures = [
                writer.upsert(people(ids, number, 20), commit_id=name)
                for number, (name, ids) in enumerate(BATCHES.items(), 1)
            ]
        before = [future.result().was_written_before for future in futures]
        assert before == [number < published for number in range(len(BATCHES))], f"change {n}"
        rows = table.scan().to_arrow().to_pylist()
        assert {row["id"]: row["v"] for row in rows} == values_after([*BATCHES]), f"change {n}"
        upsert.upsert(Handle(Storage(str(crashed)), OPTIONS), people([4], 9, 50))
        assert leftovers(crashed) == [], f"change {n}"
    assert counts == {0, 3, 5}
