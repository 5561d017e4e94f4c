"""The names of data files are durable before the commit that names them is published.

The core syncs the content of each file, and the publication syncs each directory once: a crash of
the machine must not lose a file that a commit names.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.config.table_config import TableConfig
from pyhudi.metadata.table_writer import open_metadata_table
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from tests.sim.crash import people

SERVICES = {
    "hoodie.compact.inline.max.delta.commits": "3",
    "hoodie.metadata.compact.max.delta.commits": "4",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}


class Syncs:
    """The paths whose names were synced, and what was missing at each publication."""

    def __init__(self) -> None:
        self.synced: set[str] = set()
        self.at_publication: dict[str, set[str]] = {}

    def of(self, storage: Storage, timeline_file: str) -> set[str]:
        """Return what was durable when the file was created."""
        return self.at_publication[f"{storage.uri}/{timeline_file}"]


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Syncs:
    """Record syncs and the creation of files, and make both all the same."""
    syncs = Syncs()
    sync, create = Storage.sync_directories, Storage.put_if_absent

    def recorded_sync(storage: Storage, paths: Iterable[str]) -> None:
        paths = list(paths)
        sync(storage, paths)
        for path in paths:
            directory = Path(storage.uri, path).parent
            syncs.synced.update(map(str, directory.iterdir()))

    def recorded_create(storage: Storage, path: str, data: bytes) -> bool:
        syncs.at_publication[f"{storage.uri}/{path}"] = set(syncs.synced)
        return create(storage, path, data)

    monkeypatch.setattr(Storage, "sync_directories", recorded_sync)
    monkeypatch.setattr(Storage, "put_if_absent", recorded_create)
    return syncs


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("partition_by", ["city", None])
def test_files_of_each_commit_were_synced(
    version: int, kind: str, partition_by: str | None, tmp_path: Path, syncs: Syncs
) -> None:
    base = tmp_path / "trips"
    table = pyhudi.create_table(
        str(base),
        people(range(40), 1, 1),
        key="id",
        partition_by=partition_by,
        type=kind,  # type: ignore[arg-type]
        version=version,
        options={**SERVICES, "hoodie.table.cdc.enabled": "true"} if kind == "cow" else SERVICES,
    )
    for value in range(2, 8):
        table.upsert(people(range(0, 40, 3), value, value))
    table.insert(people(range(40, 60), 8, 8))
    table.delete("id < 'k05'")
    table.cluster()
    table.overwrite(people(range(5), 9, 9))
    if kind == "mor":
        table.compact()
    storage = Storage(str(base))
    data = TableSnapshot.open(storage, TableConfig.load(storage), SystemClock())
    assert _check(data, syncs) >= 8
    assert _check(open_metadata_table(data), syncs) >= 10


def _check(table: TableSnapshot, syncs: Syncs) -> int:
    """Assert that each commit's files were durable before it; return how many there are."""
    storage, timeline = table.storage, table.timeline
    checked = 0
    for commit in timeline.commits:
        completed = timeline.files(commit)[-1].file_name
        durable = syncs.of(storage, table.config.layout.path(completed))
        paths = timeline.commit_metadata(commit).paths
        assert {f"{storage.uri}/{path}" for path in paths} <= durable, commit
        checked += len(paths)
    return checked
