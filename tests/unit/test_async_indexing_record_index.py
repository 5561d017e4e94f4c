"""A record index built during other writes contains the rows of those writes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock, format_instant
from pyhudi.config.actions import INDEXING
from pyhudi.config.metadata_options import PARTITIONED_RECORD_INDEX_ENABLE, MetadataOptions
from pyhudi.config.property_names import PENDING_OPERATION
from pyhudi.errors import CommitConflict, ConfigError, StorageError
from pyhudi.metadata import index_definitions
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.initialize import PartitionBuild, initialize_partitions
from pyhudi.storage.storage import Storage
from pyhudi.timeline import instant_files
from pyhudi.txn import heartbeat
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.transaction import Transaction
from pyhudi.write import async_indexing, index_operations
from pyhudi.write.write_context import WriteContext
from tests.sim.crash import PEOPLE, Handle, people, rows_read
from tests.sim.interrupting_storage import StandingClock
from tests.sim.states import recorded

pytestmark = pytest.mark.slow

BY_PARTITION = "by_partition"
OPTIONS = {
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.record.index.max.filegroup.count": "2",
    "hoodie.record.index.update.partition.path": "false",
}


KINDS: list[tuple[Literal[6, 8, 9], Literal["cow", "mor"], str]] = [
    (9, "mor", "whole"),
    (9, "mor", BY_PARTITION),
    (9, "cow", "whole"),
    (9, "cow", BY_PARTITION),
    (8, "cow", "whole"),
    (6, "cow", "whole"),
    (6, "mor", "whole"),
]


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0]}-{kind[1]}-{kind[2]}")
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A table with updates and without a record index; its name tells what that is to be."""
    version, kind, index = request.param
    base = tmp_path / "table"
    options = {**OPTIONS, "hoodie.table.name": index}
    table = PEOPLE.make(base, version=version, kind=kind, first=range(8), options=options)
    table.upsert(people([1, 2], 2, 2))
    table.drop_index("record_index")
    return base


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StandingClock:
    return StandingClock.of_all(monkeypatch)


def is_by_partition(base: Path) -> bool:
    return f"hoodie.table.name={BY_PARTITION}" in (base / ".hoodie/hoodie.properties").read_text()


def options_of(base: Path) -> dict[str, str]:
    """Options of the index, too, which is one of each data partition or of the whole table."""
    by_partition = is_by_partition(base)
    return {**OPTIONS, PARTITIONED_RECORD_INDEX_ENABLE: str(by_partition).lower()}


def opened(base: Path) -> HudiTable:
    return pyhudi.open_table(str(base), options=options_of(base))


def moved(base: Path, row: dict[str, Any]) -> pa.Table:
    """A row that the table has: elsewhere, if the index looks there."""
    city = row["city"] if is_by_partition(base) else "milan"
    rows = people([int(row["id"][1:])], 9, 9)
    return rows.set_column(1, "city", pa.array([city]))


def once_meanwhile(
    patch: pytest.MonkeyPatch, owner: type, name: str, work: Callable[[], object]
) -> None:
    """Has something done by others, once, after a method was carried out."""
    carried_out = getattr(owner, name)

    def method(self: Any) -> Any:
        done = carried_out(self)
        patch.setattr(owner, name, carried_out)
        work()
        return done

    patch.setattr(owner, name, method)


def assert_kept(base: Path) -> None:
    """The index knows where each key is."""
    before = rows_read(base, "false")
    table = opened(base)
    assert "record_index" in table.config.metadata_partitions
    assert PENDING_OPERATION not in table.config.properties
    assert table.state.timeline.pending(INDEXING) == ()
    assert table.check(deep=True).findings == ()
    assert rows_read(base, "true") == before
    for row in before:
        table.upsert(moved(base, row))
    assert [row["id"] for row in rows_read(base, "true")] == [row["id"] for row in before]
    assert table.check(deep=True).ok


def test_async_index_contains_concurrent_writes(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work() -> None:
        other = opened(base)
        assert "record_index" not in other.config.metadata_partitions
        (pending,) = other.state.timeline.pending(INDEXING)
        assert not pending.is_completed
        other.upsert(people([3, 20, 21], 3, 3))
        other.delete_keys(pa.table({"id": ["k00", "k21"], "city": ["oslo", "rome"]}))
        other.delete(pa.compute.field("id") == "k05")
        other.upsert(people([22], 4, 4))
        # A data partition that the index has not seen.
        other.upsert(people([23], 4, 4).set_column(1, "city", pa.array(["arles"])))
        if other.config.is_merge_on_read:
            other.compact()
        other.upsert(people([1, 20], 5, 5))

    once_meanwhile(monkeypatch, PartitionBuild, "write_files", work)
    table = opened(base)
    made = table.create_index("record_index", concurrently=True)
    assert "record_index" in made
    (done,) = table.refresh().state.timeline.filter_completed(INDEXING)
    assert done.action == INDEXING
    assert_kept(base)


def test_async_index_waits_for_running_pyhudi_writes(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work() -> None:
        opened(base).create_index("record_index", concurrently=True)

    once_meanwhile(monkeypatch, Transaction, "__enter__", work)
    opened(base).upsert(people([2, 30], 6, 6))
    assert_kept(base)


def test_async_index_waits_for_running_hudi_writes(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(base)
    instant = format_instant(SystemClock().now_ms(), "UTC")
    before = table.config

    def begin() -> None:
        table.storage.put(heartbeat.path_of(instant), b"")
        action = "deltacommit" if before.is_merge_on_read else "commit"
        instant_files.request(before.layout, table.storage, instant, action, b"")
        instant_files.start(before.layout, table.storage, instant, action, b"")

    monkeypatch.setattr(async_indexing, "WRITER_TIMEOUT_MS", 10)
    once_meanwhile(monkeypatch, PartitionBuild, "write_files", begin)
    with pytest.raises(CommitConflict, match=f"{instant}.* is active"):
        table.create_index("record_index", concurrently=True)
    left = opened(base)
    assert left.config.properties == before.properties
    assert left.state.timeline.pending(INDEXING) == ()
    assert not (base / ".hoodie/metadata/record_index").exists()


def test_concurrent_index_changes_raise_during_build(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work() -> None:
        other = opened(base)
        verbs: list[Callable[[], object]] = [
            other.rebuild_metadata,
            partial(other.create_index, "bloom_filters"),
            partial(other.create_index, "record_index", concurrently=True),
            partial(other.drop_index, "files"),
        ]
        for verb in verbs:
            with pytest.raises(CommitConflict, match="another writer"):
                verb()

    once_meanwhile(monkeypatch, PartitionBuild, "write_files", work)
    opened(base).create_index("record_index", concurrently=True)
    assert_kept(base)


def test_async_index_keeps_index_of_faster_builder(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Hudi makes it, which does not know what is being made."""

    def work() -> None:
        table = opened(base)
        undone = table.config.properties[PENDING_OPERATION]
        folder = base / ".hoodie/metadata/record_index"
        kept = {path.name: path.read_bytes() for path in folder.iterdir()}
        options = options_of(base)
        context = WriteContext.open(Handle(table.storage, options), SystemClock())
        with context.table.lock_manager.critical_section():
            initialize_partitions(
                context.table, {"record_index"}, MetadataOptions.of(options), 1 << 30
            )
        table.refresh().config.update(table.storage, {PENDING_OPERATION: undone}, SystemClock())
        for name, data in kept.items():
            if not (folder / name).exists():
                (folder / name).write_bytes(data)

    once_meanwhile(monkeypatch, PartitionBuild, "write_files", work)
    with pytest.raises(CommitConflict, match="another writer created the index record_index"):
        opened(base).create_index("record_index", concurrently=True)
    assert_kept(base)


def test_stalled_builder_keeps_index_of_others_at_end(
    base: Path, monkeypatch: pytest.MonkeyPatch, clock: StandingClock
) -> None:
    """Its lock and its heartbeat have expired, and the next writer has built the index."""
    publish = PendingInstant.publish

    def published(instant: PendingInstant, completion: str, content: bytes) -> None:
        if instant.action == INDEXING and not clock.ahead_ms:
            clock.stand_still(3_600_000)
            opened(base).upsert(people([41], 4, 4))
            assert "record_index" in opened(base).config.metadata_partitions
        publish(instant, completion, content)

    monkeypatch.setattr(PendingInstant, "publish", published)
    with pytest.raises(CommitConflict, match="lock"):
        opened(base).create_index("record_index", concurrently=True)
    assert clock.ahead_ms
    assert_kept(base)


def test_stalled_builder_keeps_index_of_others_at_start(
    base: Path, monkeypatch: pytest.MonkeyPatch, clock: StandingClock
) -> None:
    """It removed their files (seed 25000311 of v9-mor-simple-metadata)."""
    begun = async_indexing._start

    def stood_still(*given: Any) -> Any:
        build = begun(*given)
        clock.stand_still(3_600_000)
        opened(base).upsert(people([41], 4, 4))
        assert "record_index" in opened(base).config.metadata_partitions
        return build

    monkeypatch.setattr(async_indexing, "_start", stood_still)
    with pytest.raises(CommitConflict, match="another writer"):
        opened(base).create_index("record_index", concurrently=True)
    assert_kept(base)


@pytest.mark.parametrize("seconds", [100, 3600])
def test_stalled_builder_fails_at_last_step(
    base: Path, monkeypatch: pytest.MonkeyPatch, clock: StandingClock, seconds: int
) -> None:
    """Its lock has run out, then its heartbeat too (seeds 24015015, 25014219 of v6-mor-simple)."""
    change = index_definitions.change_definitions

    def stood_still(*given: Any, **how: Any) -> Any:
        changed = change(*given, **how)
        if not clock.ahead_ms:
            clock.stand_still(seconds * 1000)
            opened(base).upsert(people([41], 4, 4))
        return changed

    monkeypatch.setattr(async_indexing, "change_definitions", stood_still)
    with pytest.raises(CommitConflict, match="changed the table's properties"):
        opened(base).create_index("record_index", concurrently=True)
    if seconds == 100:
        assert "record_index" not in opened(base).config.metadata_partitions
        assert opened(base).check(deep=True).ok
        opened(base).create_index("record_index", concurrently=True)
    assert_kept(base)


def test_builder_after_takeover_leaves_nothing(
    base: Path, monkeypatch: pytest.MonkeyPatch, clock: StandingClock
) -> None:
    """An inflight file was left for good (seed 25014903 of v6-mor-simple-metadata)."""
    begin = PendingInstant.begin

    def stood_still(instant: PendingInstant, *given: Any) -> Any:
        if instant.action == INDEXING and not clock.ahead_ms:
            clock.stand_still(3_600_000)
            opened(base).upsert(people([41], 4, 4))
        return begin(instant, *given)

    monkeypatch.setattr(PendingInstant, "begin", stood_still)
    with pytest.raises(CommitConflict):
        opened(base).create_index("record_index", concurrently=True)
    assert_kept(base)


def test_failed_builder_leaves_nothing(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = opened(base).config.properties

    def fail() -> None:
        opened(base).upsert(people([40], 4, 4))
        raise StorageError("no space left on device")

    once_meanwhile(monkeypatch, PartitionBuild, "write_files", fail)
    with pytest.raises(StorageError):
        opened(base).create_index("record_index", concurrently=True)
    assert opened(base).config.properties == before
    assert not (base / ".hoodie/metadata/record_index").exists()
    opened(base).create_index("record_index")
    assert_kept(base)


def test_async_index_refuses_unsupported_partitions(tmp_path: Path) -> None:
    table = PEOPLE.make(tmp_path / "new", first=range(3), options=OPTIONS)
    with pytest.raises(ConfigError, match="already"):
        table.create_index("record_index", concurrently=True)
    table.drop_index("record_index")
    table.drop_index("files")
    with pytest.raises(ConfigError, match="no metadata table"):
        table.create_index("record_index", concurrently=True)


def test_crashed_build_is_completed_by_next_write(base: Path, tmp_path: Path) -> None:
    def create(storage: Storage) -> object:
        handle = Handle(storage, options_of(base))
        return index_operations.create_index(
            handle, IndexRequest("record_index"), concurrently=True
        )

    whole = recorded(base, tmp_path, create)
    for n, died in whole.deaths():
        rows = rows_read(died, "false")
        begun = PENDING_OPERATION in opened(died).config.properties
        opened(died).upsert(people([0], 7, 7))
        table = opened(died)
        listed = table.config.metadata_partitions
        assert ("record_index" in listed) or not begun, f"change {n}"
        assert PENDING_OPERATION not in table.config.properties, f"change {n}"
        assert table.state.timeline.pending(INDEXING) == (), f"change {n}"
        if "record_index" in listed:
            opened(died).upsert(moved(died, rows[0]))
        found = [row["id"] for row in rows_read(died, "true")]
        assert found == [row["id"] for row in rows], f"change {n}"
        assert opened(died).check(deep=True).ok, f"change {n}"
