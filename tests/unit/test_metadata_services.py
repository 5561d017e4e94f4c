"""Compaction and cleaning of the metadata table: the same files as Hudi's, and when they come."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.clock import SystemClock, parse_instant
from pyhudi.config.actions import CLEAN, COMMIT, COMPACTION, DELTA_COMMIT
from pyhudi.config.file_names import parse_base_name
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, MetadataTableWarning
from pyhudi.metadata import services
from pyhudi.metadata.file_group_handle import FileGroupHandle
from pyhudi.metadata.record_tasks import record_schema
from pyhudi.metadata.services import EXTENSION, compact_group
from pyhudi.metadata.table_writer import delta_commit
from pyhudi.services import cleaning, compaction
from pyhudi.services.clean_plan import clean_plan
from pyhudi.services.clean_policy import Retention, oldest_retained, slices_before
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.service_plans import resolve_planned_slices
from pyhudi.storage.storage import Storage
from pyhudi.timeline import instant_files
from pyhudi.txn.pending_instant import PendingInstant
from tests.engine.faulty import DiesAfterWriting, FaultyEngine, Twice
from tests.helpers.metadata_table import metadata_table
from tests.helpers.tables import GoldenTables, unpack
from tests.sim.crash import PEOPLE, people, rows_read

ARCHIVED = [
    "v6_cow_archived",
    "v6_mor_archived",
    "v6by12_cow_archived",
    "v8_cow_archived",
    "v9_cow_archived",
    "v9_mor_archived",
]


@pytest.mark.parametrize("name", ARCHIVED)
def test_metadata_base_file_equals_hudi_file(
    golden: GoldenTables, name: str, tmp_path: Path
) -> None:
    base = golden.unpack(name)
    own = metadata_table(Storage(str(base)))
    compared = 0
    for instant in own.timeline.filter_completed(COMMIT):
        operations = (own.timeline.plan(instant) or {}).get("operations") or ()
        (slice_,) = resolve_planned_slices(own.storage, own.config, operations)
        (stat,) = own.timeline.commit_metadata(instant).write_stats
        scratch = Storage(str(tmp_path))
        for path in [slice_.base.path if slice_.base else "", *(log.path for log in slice_.logs)]:
            if path:
                (tmp_path / path).parent.mkdir(exist_ok=True)
                (tmp_path / path).write_bytes(own.storage.read(path))
        group = FileGroupHandle(
            scratch,
            slice_.base.path if slice_.base else None,
            tuple(log.path for log in slice_.logs),
            None,
            None,
        )
        path = f"mine/{str(stat.path).rsplit('/', 1)[-1]}"
        schema = record_schema(own.config.version.metadata_schema)
        written = _native.compact_metadata_group(group.open(), path, avro_schema=schema)
        assert written.size == (tmp_path / path).stat().st_size
        assert written.rows == stat.num_writes
        mine = _native.MetadataPartition(scratch.native, [(path, [])]).files()
        hudis = _native.MetadataPartition(own.storage.native, [(stat.path, [])]).files()
        assert mine == hudis
        for fact in ("minRecordKey", "maxRecordKey", "bloomFilterTypeCode"):
            expected = _native.hfile_info(own.storage.native, str(stat.path), fact)
            assert _native.hfile_info(scratch.native, path, fact) == expected
        assert all(
            path.rsplit("/", 1)[-1].encode() in value
            for _, value in _native.hfile_pairs(scratch.native, path)
        )
        compared += 1
    assert compared > 0


@pytest.mark.parametrize("name", ["v6_cow_record_index", "v8_mor_part_avro", "v9_mor_record_index"])
def test_compaction_comes_after_so_many_delta_commits(name: str, tmp_path: Path) -> None:
    base = unpack(name, tmp_path)
    table = pyhudi.open_table(str(base), options={"hoodie.metadata.compact.max.delta.commits": 4})
    rows = table.scan().to_arrow().slice(0, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counts = []
        for _ in range(9):
            table.upsert(rows)
            timeline = metadata_table(table.storage).timeline
            last = max((one.requested for one in timeline.filter_completed(COMMIT)), default="")
            deltas = timeline.filter_completed(DELTA_COMMIT)
            counts.append(sum(one.requested > last for one in deltas))
    assert max(counts) <= 4
    assert counts.count(0) >= 2
    own = metadata_table(table.storage)
    for instant in own.timeline.filter_completed(COMMIT):
        if table.version == 6:
            assert delta_commit(own, instant.requested[:17]) is not None
            assert instant.requested[17:] == services._COMPACTION_SUFFIX
        else:
            assert len(instant.requested) == 17
    found = table.check(deep=True)
    assert found.ok, str(found)


@pytest.mark.parametrize(
    ("name", "has_records", "waits"),
    [
        ("v6_cow_record_index", False, True),
        ("v9_mor_record_index", False, False),
        ("v9_mor_record_index", True, True),
    ],
)
def test_metadata_compaction_waits_for_pending_instants_with_records(
    name: str, has_records: bool, waits: bool, tmp_path: Path
) -> None:
    """From version 8 on they come after the compaction, by the time of completion."""
    base = unpack(name, tmp_path)
    table = pyhudi.open_table(str(base), options={"hoodie.metadata.compact.max.delta.commits": 1})
    rows = table.scan().to_arrow().slice(0, 2)
    layout = table.config.layout
    before = len(metadata_table(table.storage).timeline.filter_completed(COMMIT))
    instant_files.request(layout, table.storage, "20200101000000000", COMPACTION, _empty_plan())
    if has_records:
        kept = metadata_table(table.storage)
        instant_files.request(kept.config.layout, kept.storage, "20200101000000000", DELTA_COMMIT)
    table.upsert(rows)
    after = len(metadata_table(table.storage).timeline.filter_completed(COMMIT))
    assert after == before + (0 if waits else 1)


def _empty_plan() -> bytes:
    from pyhudi.clock import SystemClock
    from pyhudi.slices.compaction_plan import compaction_plan
    from pyhudi.timeline import serde

    return serde.encode_container("HoodieCompactionPlan", compaction_plan([]), SystemClock())


def test_failing_metadata_service_is_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = unpack("v9_mor_record_index", tmp_path)
    table = pyhudi.open_table(str(base), options={"hoodie.metadata.compact.max.delta.commits": 1})
    rows = table.scan().to_arrow().slice(0, 2)

    def broken(*_: Any, **__: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr(compaction, "compact", broken)
    with pytest.warns(MetadataTableWarning, match="no space"):
        table.upsert(rows)
    assert table.check(deep=True).ok


def test_commit_completes_after_services_with_faster_clock(tmp_path: Path) -> None:
    table = pyhudi.open_table(str(unpack("v9_mor_record_index", tmp_path)))
    own = metadata_table(table.storage)
    time, layout = "29990101000000000", own.config.layout
    instant_files.request(layout, own.storage, time, CLEAN)
    instant_files.start(layout, own.storage, time, CLEAN)
    instant_files.publish(layout, own.storage, time, CLEAN, "29990101000000001", b"")
    table.upsert(table.scan().to_arrow().slice(0, 2))
    newest = metadata_table(table.storage).timeline.filter_completed(DELTA_COMMIT)[-1]
    assert (newest.completed or "") > "29990101000000001"
    assert (table.refresh().state.timeline.commits[-1].completed or "") > (newest.completed or "")


def _dies_when_compacting(work: Any) -> Any:
    return DiesAfterWriting(work) if work is compact_group else work


@pytest.mark.parametrize("name", ["v6_cow_record_index", "v9_mor_record_index"])
def test_attempts_that_are_lost_leave_no_base_files(name: str, tmp_path: Path) -> None:
    base = unpack(name, tmp_path)
    options = {"hoodie.metadata.compact.max.delta.commits": 1}
    dying = FaultyEngine(LocalEngine(2), _dies_when_compacting)
    table = pyhudi.open_table(str(base), options=options, engine=dying)
    rows = table.scan().to_arrow().slice(0, 2)
    before = sorted(base.glob(f".hoodie/metadata/*/*.{EXTENSION}"))
    with pytest.warns(MetadataTableWarning, match="after writing"):
        table.upsert(rows)
    assert metadata_table(table.storage).timeline.pending(COMPACTION) == ()
    assert sorted(base.glob(f".hoodie/metadata/*/*.{EXTENSION}")) == before
    twice = FaultyEngine(LocalEngine(2), Twice)
    again = pyhudi.open_table(str(base), options=options, engine=twice)
    again.upsert(rows)
    own = metadata_table(table.storage)
    assert own.timeline.pending() == ()
    named = {
        stat.path
        for instant in own.timeline.filter_completed(COMMIT)
        for stat in own.timeline.commit_metadata(instant).write_stats
    }
    instants = {one.requested for one in own.timeline.filter_completed(COMMIT)}
    written = [
        str(path.relative_to(base / ".hoodie" / "metadata"))
        for path in (base / ".hoodie" / "metadata").glob(f"*/*.{EXTENSION}")
        if path.stem.rsplit("_", 1)[-1] in instants
    ]
    assert sorted(written) == sorted(map(str, named))
    assert again.check(deep=True).ok


@pytest.mark.parametrize("name", ["v6_cow_record_index", "v9_mor_record_index"])
def test_slices_that_were_left_behind_go(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "RETAINED", 6)
    base = unpack(name, tmp_path)
    table = pyhudi.open_table(str(base), options={"hoodie.metadata.compact.max.delta.commits": 4})
    rows = table.scan().to_arrow().slice(0, 2)
    for _ in range(16):
        table.upsert(rows)
    own = metadata_table(table.storage)
    cleans = own.timeline.filter_completed(CLEAN)
    assert cleans
    removed = [
        f"{partition}/{name}"
        for one in cleans
        for partition, part in (own.timeline.read(one) or {})["partitionMetadata"].items()
        for name in part["successDeleteFiles"]
    ]
    assert removed
    assert not any(own.storage.exists(path) for path in removed)
    assert any(parse_base_name(path.rsplit("/", 1)[-1], EXTENSION) for path in removed)
    found = table.check(deep=True)
    assert found.ok, str(found)
    both = [
        pyhudi.open_table(str(base), options={"hoodie.metadata.enable": on}).scan().to_arrow()
        for on in ("true", "false")
    ]
    assert both[0].sort_by("id") == both[1].sort_by("id")


@pytest.mark.parametrize("version", [6, 8, 9])
def test_metadata_clean_lists_table_after_compactions_only(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no slice stays that may go: as if it were listed after each commit."""
    options = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
    table = PEOPLE.make(tmp_path / "t", version=version, kind="mor", options=options)
    plan, planned = clean_plan, []

    def counted(*given: Any) -> Any:
        planned.append(1)
        return plan(*given)

    monkeypatch.setattr(cleaning, "clean_plan", counted)
    for number in range(60):
        table.upsert(people([number % 3], number, number))
    assert 0 < len(planned) < 30
    own = metadata_table(table.storage)
    earliest_retained = oldest_retained(own.timeline, services.RETAINED)
    assert earliest_retained is not None
    partitions = table.config.metadata_partitions
    assert not plan(own, Retention(earliest_retained=earliest_retained), partitions).files


def test_metadata_clean_keeps_slice_of_earliest_retained_commit() -> None:
    slices = [FileSlice("files", "files-0000-0", str(time), None) for time in (9, 7, 5, 3)]
    outdated = [
        [one.base_instant for one in slices_before(slices, earliest_retained)]
        for earliest_retained in "8642"
    ]
    assert outdated == [["5", "3"], ["3"], [], []]
    assert [one.base_instant for one in slices_before(slices, "99")] == ["7", "5", "3"]


@pytest.mark.parametrize("text", ["0", "many", "-1", ""])
def test_options_are_checked(text: str) -> None:
    with pytest.raises(ConfigError, match="compact"):
        MetadataOptions.of({"hoodie.metadata.compact.max.delta.commits": text})
    assert MetadataOptions.of({}).compact_after == 10


def test_bounds_of_a_partition_are_united(tmp_path: Path) -> None:
    base = unpack("v8_mor_part_avro", tmp_path)
    table = pyhudi.open_table(str(base), options={"hoodie.metadata.compact.max.delta.commits": 2})
    rows: pa.Table = table.scan().to_arrow()
    for start in range(4):
        table.upsert(rows.slice(start, 1))
    assert metadata_table(table.storage).timeline.filter_completed(COMMIT)
    found = table.check(deep=True)
    assert found.ok, str(found)


def test_write_takes_another_instant_than_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a writer's clock is behind that of the one that compacted the metadata table."""
    options = {"hoodie.metadata.compact.max.delta.commits": "1"}
    table = PEOPLE.make(tmp_path, version=9, kind="mor", first=range(4), options=options)
    table.upsert(people([1], 2, 2))
    taken = metadata_table(Storage(str(tmp_path))).timeline.filter_completed(COMMIT)[-1].requested
    waited, now_ms, sleep = False, SystemClock.now_ms, SystemClock.sleep

    def behind(clock: SystemClock) -> int:
        return now_ms(clock) if waited else parse_instant(taken, "UTC")

    def waits(clock: SystemClock, seconds: float) -> None:
        nonlocal waited
        waited = True
        sleep(clock, seconds)

    requested: list[str] = []
    request = PendingInstant.request

    def asked(instant: PendingInstant, content: bytes = b"") -> None:
        requested.append(f"{instant.time}.{instant.action}")
        request(instant, content)

    monkeypatch.setattr(SystemClock, "now_ms", behind)
    monkeypatch.setattr(SystemClock, "sleep", waits)
    monkeypatch.setattr(PendingInstant, "request", asked)
    table.upsert(people([2], 3, 3))
    assert requested[0] == f"{taken}.{DELTA_COMMIT}"
    assert requested.count(requested[0]) == 1
    assert [row["v"] for row in rows_read(tmp_path, "true")] == [1, 2, 3, 1]
    assert table.refresh().check(deep=True).findings == ()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("name", ["v6_cow_record_index", "v9_mor_record_index"])
def test_metadata_compaction_hides_no_concurrent_commit(
    name: str, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer stood still, and its lock was taken (seed 5000421 of v6-mor-bloom-metadata)."""
    base = unpack(name, tmp_path)
    alone = {"hoodie.write.concurrency.mode": "SINGLE_WRITER"}
    due = {"hoodie.metadata.compact.max.delta.commits": "1"}
    rows = pyhudi.open_table(base).scan().to_arrow().slice(0, 4)
    others = [rows.slice(2, 1)]
    request = PendingInstant.request

    def another_comes(self: PendingInstant, *given: Any) -> None:
        if moment == "after":
            request(self, *given)
        if self.action == COMPACTION and others:
            pyhudi.open_table(base, options=alone).delete_keys(others.pop())
        if moment == "before":
            request(self, *given)

    monkeypatch.setattr(PendingInstant, "request", another_comes)
    table = pyhudi.open_table(base, options={**alone, **due})
    with pytest.warns(MetadataTableWarning, match="completed while a compaction was planned"):
        table.upsert(rows.slice(0, 1))
    monkeypatch.undo()
    assert not others
    assert rows_read(base, "true") == rows_read(base, "false")
    pyhudi.open_table(base, options={**alone, **due}).upsert(rows.slice(3, 1))
    assert rows_read(base, "true") == rows_read(base, "false")
    assert not pyhudi.open_table(base).check(deep=True).findings
