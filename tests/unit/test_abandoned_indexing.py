"""Index builds of a failed Hudi writer: an error first, removed later."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.config.actions import INDEXING
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict, ConfigError, UnsupportedTableFeature
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.txn import heartbeat
from pyhudi.write import index_operations
from tests.helpers.tables import unpack
from tests.sim.crash import Handle
from tests.sim.states import recorded

INFLIGHT = "hoodie.table.metadata.partitions.inflight"
LISTED = "hoodie.table.metadata.partitions"
NAME = "secondary_index_idx_name"


def died(base: Path, *, built: bool, name: str = NAME) -> Path:
    """The table as Hudi's indexer leaves it that dies before its last act, or before its first.

    built: it has told writers and has made the partition.
    """
    timeline = base / ".hoodie" / "timeline"
    (completed,) = timeline.glob("*_*.indexing")
    completed.unlink()
    storage = Storage(str(base))
    config = TableConfig.load(storage)
    left = ",".join(part for part in config.metadata_partitions if part != name)
    changes = {LISTED: left, INFLIGHT: name if built else ""}
    config.update(storage, changes, SystemClock())
    if not built:
        (begun,) = timeline.glob("*.indexing.inflight")
        begun.unlink()
        storage.delete_dir(f".hoodie/metadata/{name}")
    return base


def pending(base: Path) -> list[str]:
    storage = Storage(str(base))
    timeline = Timeline.load(storage, TableConfig.load(storage))
    return [str(instant) for instant in timeline.pending(INDEXING)]


@pytest.mark.parametrize("name", ["v8_mor_secondary_index", "v9_mor_secondary_index"])
@pytest.mark.parametrize("built", [True, False])
def test_abandoned_index_is_removed_and_rebuilt(tmp_path: Path, name: str, built: bool) -> None:
    base = died(unpack(name, tmp_path), built=built)
    table = pyhudi.open_table(base)
    before = sorted(table.scan().to_arrow().to_pylist(), key=str)
    some = table.scan().to_arrow().slice(0, 2)
    if built:
        with pytest.raises(UnsupportedTableFeature, match=INFLIGHT) as refused:
            table.upsert(some)
        assert "drop_index" in str(refused.value)
    else:
        # What is only planned asks nothing of writers.
        table.upsert(some)
    assert pending(base)
    # By the name that Hudi's SQL has for it.
    assert table.drop_index("idx_name") == (NAME,)
    assert pending(base) == []
    assert not (base / ".hoodie/metadata" / NAME).exists()
    assert TableConfig.load(Storage(str(base))).properties[INFLIGHT] == ""
    table.upsert(some)
    assert sorted(table.refresh().scan().to_arrow().to_pylist(), key=str) == before
    assert NAME in table.create_index("secondary_index", columns=["name"], name="idx_name")
    table.upsert(some)
    found = table.refresh().check(deep=True)
    assert found.ok, str(found)
    assert table.drop_index(NAME) == (NAME,)
    with pytest.raises(ConfigError, match="the table has no index"):
        table.drop_index(NAME)


@pytest.mark.parametrize("where", ["", ".hoodie/metadata/"])
def test_abandoned_index_of_active_writer_is_kept(tmp_path: Path, where: str) -> None:
    base = died(unpack("v9_mor_secondary_index", tmp_path), built=True)
    (begun,) = (base / ".hoodie/timeline").glob("*.indexing.inflight")
    instant = begun.name.split(".")[0]
    beat = f"{where}{heartbeat.path_of(instant)}"
    storage = Storage(str(base))
    storage.put(beat, b"")
    with pytest.raises(CommitConflict, match=f"executing the indexing {instant}"):
        pyhudi.open_table(base).drop_index(NAME)
    assert pending(base)
    storage.delete(beat)
    assert pyhudi.open_table(base).drop_index(NAME) == (NAME,)


def test_abandoned_index_is_removed_by_next_writer(tmp_path: Path) -> None:
    base = died(unpack("v9_mor_secondary_index", tmp_path), built=True)

    def drop(storage: Storage) -> None:
        index_operations.drop_index(Handle(storage), NAME)

    whole = recorded(base, tmp_path, drop)
    assert pending(whole.base) == []
    for n, left in whole.deaths():
        table = pyhudi.open_table(left)
        if TableConfig.load(Storage(str(left))).properties[INFLIGHT]:
            with pytest.raises(UnsupportedTableFeature, match=INFLIGHT):
                table.delete(where="id = 'nobody'")
            assert table.drop_index(NAME) == (NAME,), f"after change {n}"
        assert pending(left) == [], f"after change {n}"
        assert not (left / ".hoodie/metadata" / NAME).exists(), f"after change {n}"
        # Hudi has left folders of other partitions there.
        kinds = {finding.kind for finding in pyhudi.open_table(left).check().findings}
        assert kinds <= {"metadata_partition_unlisted"}, f"after change {n}"
