"""Other indexes built during concurrent writes equal indexes built afterwards."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.config.actions import INDEXING
from pyhudi.config.property_names import PENDING_OPERATION
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict, CorruptTable, StorageError, UnsupportedTableFeature
from pyhudi.metadata.index_definitions import index_definitions
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.initialize import PartitionBuild
from pyhudi.metadata.pending_operation import PendingOperation
from pyhudi.storage.properties_file import FILE
from pyhudi.storage.storage import Storage
from pyhudi.write import index_operations, write_context
from tests.helpers.metadata_records import stored_records
from tests.helpers.pairwise import each_value, pairwise
from tests.sim.crash import PEOPLE, Handle, people, rows_read
from tests.sim.states import recorded
from tests.unit.test_async_indexing_record_index import once_meanwhile

pytestmark = pytest.mark.slow

OPTIONS = {
    "hoodie.metadata.index.column.stats.file.group.count": "2",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
DAY = {"format": "yyyy-MM-dd"}


@dataclass(frozen=True)
class Index:
    """What is asked for, and the partitions that it is."""

    asked: IndexRequest
    partitions: tuple[str, ...]
    first: Literal[6, 8] = 8
    """Table version that has it."""
    last: Literal[6, 9] = 9
    logs: bool = True
    """Merge-on-read tables have it."""

    def made(self, table: HudiTable, *, concurrently: bool) -> tuple[str, ...]:
        asked = self.asked
        return table.create_index(
            asked.index_type,
            asked.columns,
            name=asked.name,
            function=asked.function,
            options=asked.options,
            concurrently=concurrently,
        )


INDEXES = {
    "statistics": Index(IndexRequest("column_stats"), ("column_stats", "partition_stats")),
    "statistics of files": Index(IndexRequest("column_stats"), ("column_stats",), first=6, last=6),
    "some statistics": Index(
        IndexRequest("column_stats", ("v",)), ("column_stats", "partition_stats")
    ),
    "filters": Index(IndexRequest("bloom_filters"), ("bloom_filters",), first=6),
    "values": Index(IndexRequest("secondary_index", ("v",), "by_v"), ("secondary_index_by_v",)),
    "days": Index(
        IndexRequest("column_stats", ("ts",), "by_day", "from_unixtime", DAY),
        ("expr_index_by_day",),
    ),
    "low": Index(
        IndexRequest("bloom_filters", ("city",), "by_low", "lower"),
        ("expr_index_by_low",),
        logs=False,
    ),
}
KINDS = ("cow", "mor")


def can_be(version: int, kind: str, index: str) -> bool:
    has = INDEXES[index].first <= version <= INDEXES[index].last
    return has and (kind == "cow" or INDEXES[index].logs)


CASES = pairwise((9, 8, 6), KINDS, tuple(INDEXES), allowed=can_be)


def opened(base: Path, **options: str) -> HudiTable:
    return pyhudi.open_table(str(base), options={**OPTIONS, **options})


def made_table(base: Path, version: int, kind: str, index: Index) -> HudiTable:
    """A table with updates and without the index."""
    table = PEOPLE.make(base, version=version, kind=kind, first=range(8), options=OPTIONS)
    table.upsert(people([1, 2], 2, 2))
    for name in ("column_stats", "bloom_filters"):
        if name in table.refresh().config.metadata_partitions:
            table.drop_index(name)
    return opened(base)


def written(base: Path) -> None:
    """Updates, deletes, new rows, a compaction, and a clean that takes what was first there."""
    table = opened(base)
    table.upsert(people([3, 20, 21], 3, 86_400 * 3))
    table.delete_keys(pa.table({"id": ["k00", "k21"], "city": ["rome", "oslo"]}))
    table.delete(pa.compute.field("id") == "k05")
    table.upsert(people([22], -4, 4))
    if table.config.is_merge_on_read:
        table.compact()
    table.upsert(people([1, 20], 50, 86_400 * 5))
    table.clean(retain=1)
    table.upsert(people([7], 70, 86_400 * 7))


def said(base: Path, index: Index) -> dict[str, list[dict[str, Any]]]:
    """What a table's index says, as far as that can be shown."""
    inspect, found = opened(base).inspect, {}
    for name in index.partitions:
        columns = (None,) if name.startswith(("secondary", "record")) else ("v", "ts")
        if name.startswith(("column", "partition", "secondary")):
            for column in columns:
                rows = inspect.metadata(name, column).to_pylist()
                found[f"{name} {column}"] = sorted(rows, key=repr)
    return found


def keys_of(base: Path, index: Index) -> set[str]:
    """The keys that a table's index has or had a record of."""
    folder = base / ".hoodie" / "metadata" / index.partitions[0]
    return {key for key, _ in stored_records(folder)}


def assert_kept(base: Path, index: Index) -> None:
    """It is there, what it says holds, and it leaves no rows out."""
    table = opened(base)
    assert {*index.partitions} <= {*table.config.metadata_partitions}
    assert PENDING_OPERATION not in table.config.properties
    assert table.state.timeline.pending(INDEXING) == ()
    found = table.check(deep=True).findings
    # Up to version 6 log files that were there first have no statistics, and are read.
    allowed = {"statistics_missing"} if table.version == 6 else set()
    assert not [one for one in found if one.kind not in allowed or ".log." not in one.item], found
    for where in ("v = 3", "v = 50", "v < 0", "id = 'k22'", "ts > 86400", "v > 60", "v = 1"):
        assert rows_read(base, "true", where) == rows_read(base, "false", where), where
    assert rows_read(base, "true") == rows_read(base, "false")


@pytest.mark.parametrize(("version", "kind", "name"), CASES)
def test_async_index_equals_index_built_after_concurrent_writes(
    tmp_path: Path, version: int, kind: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, index = tmp_path / "table", INDEXES[name]
    table = made_table(base, version, kind, index)
    once_meanwhile(monkeypatch, PartitionBuild, "write_files", lambda: written(base))
    made = index.made(table, concurrently=True)
    assert {*index.partitions} <= {*made}
    (done,) = opened(base).state.timeline.filter_completed(INDEXING)
    plan = opened(base).state.timeline.read(done)
    infos = (plan or {})["indexPartitionInfos"]
    assert [info["metadataPartitionPath"] for info in infos] == [*index.partitions]
    assert_kept(base, index)

    alone = shutil.copytree(base, tmp_path / "alone")
    other = opened(alone)
    other.drop_index(index.partitions[0])
    index.made(other, concurrently=False)
    one, two = said(base, index), said(alone, index)
    if version == 8:  # its bounds of partitions are widened by each commit
        one, two = (
            {k: rows for k, rows in found.items() if not k.startswith("partition")}
            for found in (one, two)
        )
    assert one == two
    assert keys_of(base, index) >= keys_of(alone, index)
    written(base)
    assert_kept(base, index)


@pytest.mark.parametrize("name", [name for name in INDEXES if can_be(9, "cow", name)])
def test_failed_async_index_leaves_nothing(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, index = tmp_path / "table", INDEXES[name]
    table = made_table(base, 9, "cow", index)
    before = table.config.properties

    def fail() -> None:
        opened(base).upsert(people([40], 4, 4))
        raise StorageError("no space left on device")

    once_meanwhile(monkeypatch, PartitionBuild, "write_files", fail)
    with pytest.raises(StorageError):
        index.made(table, concurrently=True)
    assert opened(base).config.properties == before
    folder = base / ".hoodie" / "metadata"
    assert not [name for name in index.partitions if (folder / name).exists()]
    index.made(opened(base), concurrently=True)
    assert_kept(base, index)


def test_async_index_fails_if_required_index_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, index = tmp_path / "table", INDEXES["values"]
    table = made_table(base, 9, "cow", index)

    def take_away() -> None:
        """Remove it from the properties, as Apache Hudi does for a writer without the option."""
        config = opened(base).config
        left = [name for name in config.metadata_partitions if name != "record_index"]
        changes = {"hoodie.table.metadata.partitions": ",".join(left)}
        config.update(opened(base).storage, changes, opened(base).state.clock)

    once_meanwhile(monkeypatch, PartitionBuild, "write_files", take_away)
    with pytest.raises(CommitConflict, match="dropped the index record_index"):
        index.made(table, concurrently=True)
    assert not (base / ".hoodie/metadata/secondary_index_by_v").exists()


def test_async_index_skips_column_dropped_concurrently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, index = tmp_path / "table", INDEXES["values"]
    table = made_table(base, 9, "cow", index)
    once_meanwhile(
        monkeypatch,
        PartitionBuild,
        "write_files",
        lambda: opened(base).alter().drop_column("v").execute(),
    )
    with pytest.raises(UnsupportedTableFeature):
        index.made(table, concurrently=True)
    assert PENDING_OPERATION not in opened(base).config.properties
    opened(base).upsert(people([1], 1, 9).drop_columns(["v"]))


@pytest.mark.parametrize(
    ("version", "kind", "name"), each_value((9, 8, 6), KINDS, tuple(INDEXES), allowed=can_be)
)
def test_crashed_async_index_is_completed_by_next_write(
    tmp_path: Path, version: int, kind: str, name: str
) -> None:
    base, index = tmp_path / "table", INDEXES[name]
    made_table(base, version, kind, index)

    def create(storage: Storage) -> object:
        handle = Handle(storage, OPTIONS)
        return index_operations.create_index(handle, index.asked, concurrently=True)

    for n, died in recorded(base, tmp_path, create).deaths():
        begun = PENDING_OPERATION in opened(died).config.properties
        opened(died).upsert(people([0], 7, 7))
        table = opened(died)
        listed = {*index.partitions} <= {*table.config.metadata_partitions}
        assert listed or not begun, f"change {n}"
        assert PENDING_OPERATION not in table.config.properties, f"change {n}"
        assert table.state.timeline.pending(INDEXING) == (), f"change {n}"
        assert rows_read(died, "true") == rows_read(died, "false"), f"change {n}"
        if listed:
            assert_kept(died, index)


def test_write_opens_while_index_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its definition is deleted already, but the properties that were read still name the index."""
    table = PEOPLE.make(tmp_path / "t", first=range(2))
    other = pyhudi.open_table(table.uri)
    dropped: list[str] = []

    def late(*given: Any) -> Any:
        if not dropped:
            dropped.append("column_stats")
            other.drop_index("column_stats")
        return index_definitions(*given)

    monkeypatch.setattr(write_context, "index_definitions", late)
    table.upsert(people([0], 2, 2))
    assert dropped
    assert [row["v"] for row in rows_read(tmp_path / "t", "true")] == [2, 1]


@pytest.mark.parametrize(
    "said", ["x", "[" * 100_000, '{"by": "b", "version": 1e999, "definitions": {}}']
)
def test_unknown_index_state_in_properties_is_damage(said: str) -> None:
    with pytest.raises(CorruptTable, match=PENDING_OPERATION) as error:
        PendingOperation.of(TableConfig({PENDING_OPERATION: said}))
    assert error.value.file == FILE
