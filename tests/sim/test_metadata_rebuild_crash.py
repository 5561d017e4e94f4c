"""A crash at every change while a record index is dropped and built again.

Whoever writes next finds the key in the partition where it is, and gives the index back.
"""

from __future__ import annotations

import contextlib
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.admin.upgrade import change_version
from pyhudi.clock import SystemClock, format_instant
from pyhudi.config.actions import COMPACTION
from pyhudi.config.lock_options import MODE
from pyhudi.config.property_names import PENDING_OPERATION
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import (
    CommitConflict,
    ConfigError,
    CorruptTable,
    HudiError,
    MetadataTableWarning,
    StorageError,
)
from pyhudi.metadata.index_definitions import read_definitions
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.pending_operation import PendingOperation
from pyhudi.slices.compaction_plan import compaction_plan
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.storage.storage import Storage
from pyhudi.timeline import instant_files, serde
from pyhudi.write import index_operations, metadata_lifecycle, upsert
from tests.sim.crash import PEOPLE, CrashingStorage, Handle, Killed, leftovers, people, rows_read
from tests.sim.states import Recorded, deaths, recorded

OPTIONS = {
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.record.index.max.filegroup.count": "2",
    "hoodie.index.bloom.num_entries": "64",
    # Rows stay where they are, and nothing is said of it.
    "hoodie.record.index.update.partition.path": "false",
}
Deed = Callable[[Handle], object]


class FailingStorage(CrashingStorage):
    """Raises from change number `dies_at` on, such as where the disk is full; reads go on."""

    def step(self) -> None:
        if self.above is not None:
            self.above.step()
            return
        self.changes += 1
        if self.changes >= self.dies_at:
            raise StorageError("no space left on device")

    def delete(self, path: str) -> bool:
        return Storage.delete(self, path)

    def delete_dir(self, path: str) -> None:
        Storage.delete_dir(self, path)


class FailingOnce(CrashingStorage):
    """Raises instead of change number `dies_at`, and goes on as before."""

    def step(self) -> None:
        if self.above is not None:
            self.above.step()
            return
        self.changes += 1
        if self.changes == self.dies_at:
            raise StorageError("not to be reached for a moment")


def rebuild(handle: Handle) -> object:
    return metadata_lifecycle.rebuild(handle)


def to_version(code: int) -> Deed:
    def change(handle: Handle) -> object:
        now = pyhudi.open_table(handle.storage.uri).version
        return change_version(handle, code, up=code >= now, dry_run=False)

    return change


CASES: list[tuple[int, Literal["cow", "mor"], Deed]] = [
    (6, "cow", rebuild),
    (9, "mor", rebuild),
    (6, "mor", to_version(9)),
    (8, "cow", to_version(9)),
    (9, "mor", to_version(6)),
]
NAMES = [f"{code}-{kind}-{number}" for number, (code, kind, _) in enumerate(CASES)]


@pytest.fixture(params=CASES, ids=NAMES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Deed]:
    version: int
    kind: Literal["cow", "mor"]
    version, kind, deed = request.param
    base = tmp_path / "table"
    table = PEOPLE.make(base, version=version, kind=kind, first=range(4), options=OPTIONS)
    table.upsert(people([1, 2], 2, 2))
    assert "record_index" in table.config.metadata_partitions
    return base, deed


def moved() -> pa.Table:
    """A row that the table has in rome, said to be elsewhere."""
    rows = people([0], 3, 3)
    return rows.set_column(1, "city", pa.array(["milan"]))


def assert_given_back(base: Path, indexes: set[str], where: str) -> None:
    before = rows_read(base, "false")
    assert rows_read(base, "true") == before, where
    table = pyhudi.open_table(str(base), options=OPTIONS)
    table.upsert(moved())
    keys = [row["id"] for row in rows_read(base, "true")]
    assert keys == [row["id"] for row in before], where
    table = pyhudi.open_table(str(base))
    assert {*table.config.metadata_partitions} >= indexes, where
    assert PENDING_OPERATION not in table.config.properties, where
    assert table.check().ok, where
    assert leftovers(base) == [], where
    assert unknown_files(base) == [], where


def unknown_files(base: Path) -> list[str]:
    """What an upgrade or a making may have left."""
    table = pyhudi.open_table(str(base))
    other = ".hoodie/timeline" if table.version < 8 else ".hoodie"
    found = [path.name for path in (base / other).glob("[0-9]*")]
    found += [path.name for path in base.glob(".hoodie/**/.pyhudi_moving")]
    listed = table.config.metadata_partitions
    folders = (path.name for path in (base / ".hoodie/metadata").glob("*") if path.is_dir())
    return found + [name for name in folders if name not in (".hoodie", *listed)]


def whole_and_left(case: tuple[Path, Deed], tmp_path: Path) -> tuple[Recorded, set[str]]:
    """The deed carried out, and the partitions that are there before and after it."""
    start, deed = case
    before = {*pyhudi.open_table(str(start)).config.metadata_partitions}
    whole = recorded(start, tmp_path, lambda storage: deed(Handle(storage, OPTIONS)))
    after = {*pyhudi.open_table(str(whole.base)).config.metadata_partitions}
    assert_given_back(whole.base, after, "whole")
    return whole, before & after


def test_crashed_rebuild_is_completed_by_next_write(
    case: tuple[Path, Deed], tmp_path: Path
) -> None:
    whole, left = whole_and_left(case, tmp_path)
    for n, died in whole.deaths(one_in=2):
        assert_given_back(died, left, f"change {n}")


def test_full_disk_keeps_index(case: tuple[Path, Deed], tmp_path: Path) -> None:
    start, deed = case
    whole, left = whole_and_left(case, tmp_path)
    for n in range(1, len(whole.states) + 1, 3):
        copy = shutil.copytree(start, tmp_path / f"at{n}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MetadataTableWarning)
            with contextlib.suppress(HudiError):
                deed(Handle(FailingStorage(str(copy), n), OPTIONS))
        assert_given_back(copy, left, f"change {n}")
        shutil.rmtree(copy)


def test_crashed_create_leaves_index_build_to_next_writer(tmp_path: Path) -> None:
    """Properties are the last thing that makes a table; its indexes come after."""
    base = tmp_path / "table"
    PEOPLE.make(base, order_by=None, options=OPTIONS)
    made = pyhudi.open_table(str(base)).config.metadata_partitions
    empty = pyhudi.open_table(str(base))
    again = metadata_lifecycle.with_pending_partitions(empty.config, made, OPTIONS, SystemClock())
    empty.drop_index("files")
    undone = PendingOperation.of(again).properties
    empty.config.update(empty.storage, undone, SystemClock())
    upsert.upsert(Handle(Storage(str(base)), OPTIONS), people(range(4), 1, 1))
    upsert.upsert(Handle(Storage(str(base)), OPTIONS), moved())
    assert len(rows_read(base, "true")) == 4
    assert pyhudi.open_table(str(base)).config.metadata_partitions == made


@pytest.mark.parametrize(
    ("version", "kind", "asked"),
    [
        (6, "cow", IndexRequest("record_index")),
        (9, "mor", IndexRequest("record_index")),
        (9, "cow", IndexRequest("column_stats", columns=("v",))),
        (9, "mor", IndexRequest("secondary_index", columns=("v",), name="by_v")),
    ],
    ids=str,
)
def test_crashed_index_build_is_completed_by_next_write(
    version: Literal[6, 9], kind: Literal["cow", "mor"], asked: IndexRequest, tmp_path: Path
) -> None:
    start = tmp_path / "start"
    table = PEOPLE.make(start, version=version, kind=kind, first=range(4), options=OPTIONS)
    table.upsert(people([1, 2], 2, 2))
    if asked.index_type != "secondary_index":
        table.drop_index(asked.index_type)

    def create(storage: Storage) -> object:
        return index_operations.create_index(Handle(storage, OPTIONS), asked)

    whole = recorded(start, tmp_path, create)
    done = {*pyhudi.open_table(str(whole.base)).config.metadata_partitions}
    definitions = index_definitions(Storage(str(whole.base)), done)
    for n, died in whole.deaths(one_in=2):
        config = pyhudi.open_table(str(died)).config
        if PENDING_OPERATION in config.properties or {*config.metadata_partitions} == done:
            assert_given_back(died, done, f"change {n}")
            assert index_definitions(Storage(str(died)), done) == definitions, f"change {n}"


def index_definitions(storage: Storage, names: set[str]) -> dict[str, object]:
    """What the table says of its indexes, but for when they were made."""
    found = read_definitions(storage, TableConfig.load(storage, SystemClock()))
    return {name: found[name] for name in names if name in found}


def test_failed_index_build_is_not_retried(tmp_path: Path) -> None:
    base = tmp_path / "table"
    table = PEOPLE.make(base, first=range(4), options=OPTIONS)
    table.drop_index("record_index")
    before = table.refresh().config
    for n in range(1, 9):
        storage = FailingOnce(str(base), n)
        with pytest.raises(StorageError, match="for a moment"):
            index_operations.create_index(Handle(storage), IndexRequest("record_index"))
        config = table.refresh().config
        assert config.properties == before.properties
        assert unknown_files(base) == []
        table.upsert(people([n % 4], n, n))
        assert len(rows_read(base, "true")) == 4
        assert table.refresh().config.metadata_partitions == before.metadata_partitions
    table.create_index("record_index")
    assert table.check(deep=True).ok


def test_lookup_reads_all_rows_while_index_is_pending(tmp_path: Path) -> None:
    """A pending compaction rules out, in version 6, that the metadata table is made."""
    base = tmp_path / "table"
    made = PEOPLE.make(base, version=6, kind="mor", first=range(4), options=OPTIONS)
    made.upsert(people([1], 2, 2))
    with pytest.raises(Killed):
        metadata_lifecycle.rebuild(Handle(CrashingStorage(str(base), 8), OPTIONS))
    table = pyhudi.open_table(str(base), options=OPTIONS)
    assert table.config.metadata_partitions == ()
    plan = compaction_plan(
        FileSystemView(table.storage, table.config, table.state.timeline).slices()
    )
    instant = format_instant(SystemClock().now_ms(), "UTC")
    data = serde.encode_container("HoodieCompactionPlan", plan, SystemClock())
    instant_files.request(table.config.layout, table.storage, instant, COMPACTION, data)
    with pytest.warns(MetadataTableWarning) as told:
        table.upsert(moved())
    causes = [str(one.message) for one in told if one.category is MetadataTableWarning]
    assert "was not rebuilt" in causes[0]
    assert "the record index is not used (rows are read instead)" in causes[1]
    assert [row["id"] for row in rows_read(base, "false")] == ["k00", "k01", "k02", "k03"]
    table.storage.delete(f".hoodie/{instant}.compaction.requested")
    table.upsert(people([5], 4, 4))
    assert "record_index" in table.config.metadata_partitions
    assert table.check(deep=True).ok


def test_pending_index_can_be_dropped(tmp_path: Path) -> None:
    base = tmp_path / "table"
    PEOPLE.make(base, order_by=None, first=[0])
    with pytest.raises(Killed):
        metadata_lifecycle.rebuild(Handle(CrashingStorage(str(base), 8)))
    table = pyhudi.open_table(str(base))
    with pytest.raises(ConfigError, match="already"):
        table.create_index("record_index")
    assert table.drop_index("record_index") == ("record_index",)
    table.upsert(people([0], 2, 2))
    assert "record_index" not in table.config.metadata_partitions
    assert "files" in table.config.metadata_partitions


@pytest.mark.parametrize("name", ["record_index", "files"])
def test_crashed_index_drop_leaves_nothing(tmp_path: Path, name: str) -> None:
    start = tmp_path / "start"
    PEOPLE.make(start, order_by=None, first=[0])

    def drop(handle: Handle) -> object:
        return index_operations.drop_index(handle, name)

    for n, base in deaths(start, tmp_path, lambda storage: drop(Handle(storage))):
        pyhudi.open_table(str(base)).upsert(people([0], 2, 2))
        assert unknown_files(base) == [], f"change {n}"
        assert PENDING_OPERATION not in pyhudi.open_table(str(base)).config.properties
        assert pyhudi.open_table(str(base)).check().ok


@pytest.mark.parametrize("deed", [rebuild, to_version(6)], ids=["rebuild", "downgrade"])
def test_running_index_build_excludes_others(tmp_path: Path, deed: Deed) -> None:
    base = tmp_path / "table"
    PEOPLE.make(base, order_by=None, kind="mor", first=[0])
    # Without a lock, which it would wait for, it has the heartbeat alone to see.
    other = pyhudi.open_table(str(base), options={MODE: "SINGLE_WRITER"})
    tried = 0

    class Watched(CrashingStorage):
        def step(self) -> None:
            nonlocal tried
            if PENDING_OPERATION in other.refresh().config.properties:
                tried += 1
                with pytest.raises(CommitConflict, match="another writer"):
                    other.upsert(moved())
            super().step()

    deed(Handle(Watched(str(base))))
    assert tried > 20
    assert rows_read(base, "true") == rows_read(base, "false")
    assert "record_index" in other.refresh().config.metadata_partitions


def test_pending_index_name_with_foreign_path_raises(tmp_path: Path) -> None:
    base = tmp_path / "table"
    table = PEOPLE.make(base, order_by=None, first=[0])
    undone = PendingOperation("1", 9, removed=("../../..",))
    table.config.update(table.storage, undone.properties, SystemClock())
    with pytest.raises(CorruptTable, match="is not a valid name"):
        table.upsert(moved())
    assert (base / ".hoodie").is_dir()
