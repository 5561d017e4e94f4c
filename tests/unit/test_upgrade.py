"""Changing a table's version: rows and history stay, properties are those of the new version."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.admin import upgrade
from pyhudi.api.table import HudiTable
from pyhudi.config.file_names import parse_log_name
from pyhudi.config.table_config import TableConfig
from pyhudi.config.version_properties import convert_properties
from pyhudi.errors import (
    CommitConflict,
    ConfigError,
    CorruptTable,
    SchemaMismatch,
    UnsupportedTableFeature,
)
from pyhudi.metadata.index_definitions import index_definitions
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.storage.storage import Storage
from pyhudi.testing import comparable_rows
from tests.helpers.tables import unpack

TABLES = [
    "v5_mor_part",
    "v5_mor_crash",
    "v6_cow_archived",
    "v8_cow_overwrites",
    "v9_cow_overwrites",
    "v6_cow_overwrites",
    "v6_mor_archived",
    "v6_mor_compaction",
    "v6_mor_payload_overwrite_latest",
    "v6_mor_rollback",
    "v8_cow_commit_time",
    "v8_mor_event_time",
    "v8_mor_partial_sql",
    "v9_cow_event_time",
    "v9_mor_all_types",
    "v9_mor_compaction",
    "v9_mor_event_time",
]
CODES = (4, 5, 6, 8, 9)
MODEL = "org.apache.hudi.common.model."


def change(table: HudiTable, to: int, *, dry_run: bool = False) -> object:
    if to >= table.version:
        return table.upgrade(to, dry_run=dry_run)
    return table.downgrade(to, dry_run=dry_run)


@pytest.mark.parametrize("to", CODES)
@pytest.mark.parametrize("name", TABLES)
def test_rows_and_commits_stay(name: str, to: int, tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack(name, tmp_path))
    before = comparable_rows(table.scan().to_arrow())
    commits = set(table.inspect.commits()["requested"].to_pylist())
    archived = table.inspect.timeline(archived=True).num_rows > table.inspect.timeline().num_rows
    if to < 8 <= table.version and archived:
        with pytest.raises(UnsupportedTableFeature, match="archived timeline"):
            change(table, to)
        assert comparable_rows(pyhudi.open_table(table.uri).scan().to_arrow()) == before
        return
    change(table, to)
    after = pyhudi.open_table(table.uri)
    assert after.version == to
    assert comparable_rows(after.scan().to_arrow()) == before
    assert set(after.inspect.commits()["requested"].to_pylist()) >= commits
    assert after.inspect.timeline(archived=True).num_rows >= len(commits)


def test_upgrade_of_current_version_does_nothing(tmp_path: Path) -> None:
    table = pyhudi.create_table(tmp_path, pa.table({"id": ["a"]}), key="id", version=8)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for change in (table.upgrade(8), table.downgrade(8)):
        assert (change.before, change.after, change.properties_set) == (8, 8, {})
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("name", ["v6_mor_compaction", "v8_mor_event_time", "v9_mor_event_time"])
@pytest.mark.parametrize("to", [6, 8, 9])
def test_upgraded_table_accepts_writes(name: str, to: int, tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack(name, tmp_path))
    if to == table.version:
        to = 6 if to == 9 else 9
    change(table, to)
    before = table.scan().to_arrow()
    one = before.slice(0, 1)
    table.upsert(one)
    assert table.scan().count() == before.num_rows
    table.delete_keys(one)
    assert table.scan().count() == before.num_rows - 1


def test_empty_table_keeps_timeline_after_upgrade(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "v": [1]})
    for enabled in (True, False):
        options = {"hoodie.metadata.enable": enabled}
        folder = tmp_path / str(enabled)
        pyhudi.create_table(folder, rows.schema, key="id", version=6, options=options)
        pyhudi.open_table(folder).upgrade(9)
        assert (folder / ".hoodie/timeline/history").is_dir()
        table = pyhudi.open_table(folder)
        assert table.scan().count() == 0
        table.insert(rows)
        assert table.check().ok


def test_upgrade_dry_run_changes_nothing(tmp_path: Path) -> None:
    base = unpack("v6_mor_compaction", tmp_path)
    before = {path: path.read_bytes() for path in base.rglob("*") if path.is_file()}
    found = pyhudi.open_table(base).upgrade(9, dry_run=True)
    assert {path: path.read_bytes() for path in base.rglob("*") if path.is_file()} == before
    assert (found.before, found.after, found.dry_run) == (6, 9, True)
    assert found.properties_set["hoodie.table.version"] == "9"
    assert "hoodie.table.precombine.field" in found.properties_removed


def test_upgraded_properties_match_hudi(tmp_path: Path) -> None:
    """Of a table that Hudi 1.2.0 itself upgraded from 8, step by step backwards and on again."""
    config = TableConfig.load(Storage(str(unpack("v9_mor_upgraded_from_8", tmp_path))))
    down = convert_properties(config.properties, 8)
    assert down["hoodie.record.merge.strategy.id"] == "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
    assert down["hoodie.table.precombine.field"] == "ts"
    again = convert_properties(down, 9)
    kept = {k: v for k, v in config.properties.items() if k != "hoodie.table.format"}
    assert again == kept


OF_HUDI_0_15 = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
}


@pytest.mark.parametrize(
    ("payload", "mode", "partial", "ordering"),
    [
        ("OverwriteNonDefaultsWithLatestAvroPayload", "COMMIT", "IGNORE_DEFAULTS", "ts"),
        ("PartialUpdateAvroPayload", "EVENT", "IGNORE_DEFAULTS", "ts"),
        ("debezium.PostgresDebeziumAvroPayload", "EVENT", "FILL_UNAVAILABLE", "_event_lsn"),
        ("debezium.MySqlDebeziumAvroPayload", "EVENT", None, "_event_bin_file,_event_pos"),
        ("AWSDmsAvroPayload", "COMMIT", None, "ts"),
    ],
)
def test_payload_classes_become_merge_rules(
    payload: str, mode: str, partial: str | None, ordering: str
) -> None:
    name = MODEL + payload
    found = convert_properties(
        {
            **OF_HUDI_0_15,
            "hoodie.table.precombine.field": "ts",
            "hoodie.compaction.payload.class": name,
        },
        9,
    )
    assert found["hoodie.record.merge.mode"] == f"{mode}_TIME_ORDERING"
    assert found.get("hoodie.table.partial.update.mode") == partial
    assert found["hoodie.table.ordering.fields"] == ordering
    assert found["hoodie.table.legacy.payload.class"] == name
    assert "hoodie.compaction.payload.class" not in found
    assert "hoodie.record.merge.strategy.id" not in found


@pytest.mark.parametrize("version", [8, 9])
def test_upgrade_without_payload_class_keeps_event_time(version: int) -> None:
    """As Hudi 0.15 leaves copy-on-write, and as the upgrade of Hudi 1.2.0 has it."""
    found = convert_properties({**OF_HUDI_0_15, "hoodie.table.precombine.field": "ts"}, version)
    assert found["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"
    assert (
        convert_properties(OF_HUDI_0_15, version)["hoodie.record.merge.mode"]
        == "COMMIT_TIME_ORDERING"
    )


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_event_time_payloads_become_class_of_hudi(
    table_type: str,
) -> None:
    found = convert_properties(
        {
            **OF_HUDI_0_15,
            "hoodie.table.type": table_type,
            "hoodie.compaction.payload.class": MODEL + "EventTimeAvroPayload",
        },
        8,
    )
    assert found["hoodie.compaction.payload.class"] == MODEL + "DefaultHoodieRecordPayload"
    assert found["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"
    assert found["hoodie.record.merge.strategy.id"] == "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"


@pytest.mark.parametrize("mode", ["COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"])
@pytest.mark.parametrize("name", ["DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload"])
def test_upgrade_keeps_stored_merge_mode(name: str, mode: str) -> None:
    """`EightToNineUpgradeHandler` maps six classes to a mode, and neither of these (1.2.0)."""
    properties = {
        **OF_HUDI_0_15,
        "hoodie.table.version": "8",
        "hoodie.timeline.layout.version": "2",
        "hoodie.compaction.payload.class": MODEL + name,
        "hoodie.record.merge.mode": mode,
    }
    found = convert_properties(properties, 9)
    assert found["hoodie.record.merge.mode"] == mode
    assert found["hoodie.table.legacy.payload.class"] == MODEL + name


def test_downgrade_drops_merge_properties_of_class_only() -> None:
    prefix = "hoodie.record.merge.property.hoodie.payload.delete."
    properties = {
        **OF_HUDI_0_15,
        "hoodie.table.precombine.field": "ts",
        "hoodie.compaction.payload.class": MODEL + "AWSDmsAvroPayload",
    }
    nine = convert_properties(properties, 9)
    assert (nine[prefix + "field"], nine[prefix + "marker"]) == ("Op", "D")
    assert not any(name.startswith(prefix) for name in convert_properties(nine, 8))
    own = convert_properties({**nine, prefix + "field": "kind"}, 8)
    assert (own[prefix + "field"], own[prefix + "marker"]) == ("kind", "D")


@pytest.mark.parametrize(
    ("name", "enabled", "kind"),
    [
        ("hfile.HFileBootstrapIndex", "true", "HFILE"),
        ("NoOpBootstrapIndex", "true", "NONE"),
        ("NoOpBootstrapIndex", "false", "NONE"),
    ],
)
def test_bootstrap_index_property_changes_with_version(name: str, enabled: str, kind: str) -> None:
    index_class = f"org.apache.hudi.common.bootstrap.index.{name}"
    old = {
        **OF_HUDI_0_15,
        "hoodie.bootstrap.index.enable": enabled,
        "hoodie.bootstrap.index.class": index_class,
    }
    found = convert_properties(old, 8)
    assert found["hoodie.bootstrap.index.type"] == kind
    del found["hoodie.bootstrap.index.class"]
    back = convert_properties(found, 6)
    assert back["hoodie.bootstrap.index.class"] == index_class
    assert "hoodie.bootstrap.index.type" not in back
    assert "hoodie.bootstrap.index.type" not in convert_properties(OF_HUDI_0_15, 8)


def test_upgrade_raises_for_null_partitions_of_version_4(tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack("v4_mor_crash", tmp_path))
    with pytest.raises(UnsupportedTableFeature, match="directory default"):
        table.upgrade(9)


def test_upgrade_of_same_version_changes_nothing(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "v": [1]})
    table = pyhudi.create_table(tmp_path / "t", rows.schema, key="id")
    table.upsert(rows)
    for change in (table.upgrade(9, dry_run=True), table.upgrade(9), table.downgrade(9)):
        assert (change.before, change.after, change.metadata_removed) == (9, 9, ())
        assert (change.properties_set, change.metadata_made) == ({}, ())


def test_wrong_directions_and_numbers(tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack("v8_mor_event_time", tmp_path))
    with pytest.raises(ConfigError, match="downgrade"):
        table.upgrade(6)
    with pytest.raises(ConfigError, match="upgrade"):
        table.downgrade(9)
    with pytest.raises(ConfigError, match="no table version 7"):
        table.upgrade(7)


def test_upgrade_refuses_pending_clustering(tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack("v9_mor_pending_clusterings", tmp_path))
    with pytest.raises(CommitConflict, match="clustering"):
        table.downgrade(8)


def test_downgrade_drops_statistics_of_nested_fields(tmp_path: Path) -> None:
    options = {
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.column.stats.column.list": "v,s.a",
    }
    data = pa.table({"id": ["a", "b"], "v": [1, 2], "s": [{"a": 1}, None]})
    table = pyhudi.create_table(tmp_path / "t", data, key="id", version=9, options=options)
    with pytest.warns(pyhudi.MetadataTableWarning, match=r"s\.a"):
        change = table.downgrade(8)
    assert change.metadata_made == ()
    pyhudi.open_table(table.uri).upgrade(9)
    pyhudi.open_table(table.uri, options=options).rebuild_metadata()
    pyhudi.open_table(table.uri).downgrade(8)
    table = pyhudi.open_table(table.uri)
    columns = index_definitions(table.storage, table.config)["column_stats"].columns
    assert "v" in columns
    assert "s.a" not in columns
    table.upsert(data)
    assert table.check(deep=True).ok


def test_upgrade_rebuilds_metadata_table(tmp_path: Path) -> None:
    options = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.column.stats.column.list": "v",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
    }
    data = pa.table({"id": ["a", "b"], "p": ["x", "y"], "v": [1, 2]})
    table = pyhudi.create_table(
        tmp_path / "t",
        data.schema,
        key="id",
        partition_by="p",
        version=9,
        type="mor",
        options=options,
    )
    table.upsert(data)
    made = {"files", "column_stats", "bloom_filters", "record_index"}
    for to, more in ((8, {"partition_stats"}), (6, set()), (9, set())):
        change = pyhudi.open_table(table.uri).upgrade(to) if to == 9 else table.downgrade(to)
        assert set(change.metadata_made) == made | more
        config = TableConfig.load(Storage(str(tmp_path / "t")))
        assert set(config.metadata_partitions) == made | more
        table = pyhudi.open_table(table.uri)
        assert table.check().ok
        table.upsert(data)
        assert table.check().ok
        definitions = index_definitions(Storage(table.uri), config)
        if to == 8:
            assert "v" in definitions["column_stats"].columns
            assert "p" not in definitions["column_stats"].columns


def test_missing_ordering_column_allows_reads(tmp_path: Path) -> None:
    """Spark's writers of 0.x note one that a table need not have; nothing is compared here."""
    base = tmp_path / "t"
    data = pa.table({"id": ["a", "b"], "v": [1, 2]})
    table = pyhudi.create_table(base, data, key="id", type="mor", version=6)
    table.upsert(data.slice(0, 1))
    with (base / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("\nhoodie.table.precombine.field=ts\n")
        properties.write(
            "hoodie.compaction.payload.class="
            "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload\n"
        )
    assert pyhudi.open_table(base).upgrade(9).compaction
    table = pyhudi.open_table(base)
    assert table.scan().to_arrow().sort_by("id") == data
    assert table.scan(read_optimized=True).count() == 2
    with pytest.raises(SchemaMismatch, match="ts"):
        table.upsert(data)


def logs_by_slice(table: HudiTable) -> dict[str, set[str]]:
    now = table.refresh()
    view = FileSystemView(now.storage, now.config, now.state.timeline)
    return {one.base_instant: {log.name for log in one.logs} for one in view.all_slices()}


@pytest.mark.parametrize("shift", ["copied", "zone"])
@pytest.mark.parametrize("archived", [False, True])
def test_upgrade_keeps_log_files_in_their_slices(
    shift: str, archived: bool, tmp_path: Path
) -> None:
    """Those of a copy are all later, those by the clocks of another zone by hours."""
    rows = pa.table({"id": ["a", "b"], "v": [1, 1]})
    table = pyhudi.create_table(
        tmp_path, rows.schema, key="id", type="mor", version=6,
        options={
            "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1",
            "hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false", "hoodie.clean.commits.retained": "1",
        },
    )  # fmt: skip
    table.upsert(rows)
    table.delete_keys(rows.slice(0, 1).select(["id"]))
    table.compact()
    table.upsert(pa.table({"id": ["a", "b"], "v": [9, 5]}))
    table.compact()
    if archived:
        for n in range(6):
            table.upsert(pa.table({"id": ["b"], "v": [n]}))
    instants = sorted((tmp_path / ".hoodie").glob("[0-9]*"))
    for number, path in enumerate(instants):
        path.touch()
        changed = path.stat().st_mtime + (7 * 3600 if shift == "zone" else -number / 100)
        os.utime(path, (changed, changed))
    if archived:
        table.archive(min_commits=2, max_commits=3)
        assert table.refresh().state.timeline.archive.commits()
    slices = logs_by_slice(table)
    before = table.scan().to_arrow()
    table.upgrade(9)
    assert table.refresh().scan().to_arrow().equals(before)
    after = logs_by_slice(table)
    assert slices.items() <= after.items()
    timeline = table.state.timeline
    known = {one.requested: one.completed or "" for one in timeline.archive.instants()}
    known |= {one.requested: one.completed or "" for one in timeline.instants}
    openings = sorted(after)
    for opening, names in slices.items():
        for name in names:
            # Hudi goes by the completion alone (`HoodieFileGroup.getBaseInstantTime`, 1.2.0).
            instant = (parse_log_name(name) or pytest.fail(name)).instant
            assert max(one for one in openings if one <= known[instant]) == opening


@pytest.mark.parametrize("zone", ["UTC", "LOCAL"])
def test_downgrade_sets_file_times_to_completion_times(zone: str, tmp_path: Path) -> None:
    """Hudi 1.x puts log files into slices by that (`CompletionTimeQueryViewV1`, 1.2.0)."""
    rows = pa.table({"id": ["a", "b"], "v": [1, 1]})
    table = pyhudi.create_table(
        tmp_path, rows, key="id", type="mor", version=8,
        options={"hoodie.table.timeline.timezone": zone},
    )  # fmt: skip
    table.delete_keys(rows.slice(0, 1).select(["id"]))
    table.compact()
    table.upsert(pa.table({"id": ["a"], "v": [9]}))
    before = {one.requested: one.completed for one in table.refresh().state.timeline.instants}
    slices = logs_by_slice(table)
    table.downgrade(6)
    after = {one.requested: one.completed for one in table.refresh().state.timeline.instants}
    assert before.items() <= after.items()
    assert slices.items() <= logs_by_slice(table).items()
    assert table.scan().count() == 2


def test_downgrade_refuses_log_files_without_file_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgrade, "is_bucket", lambda _: True)
    rows = pa.table({"id": ["a", "b"], "v": [1, 1]})
    table = pyhudi.create_table(tmp_path, rows, key="id", type="mor", version=9)
    assert table.downgrade(6, dry_run=True).after == 6
    table.upsert(rows)
    for dry_run in (True, False):
        with pytest.raises(UnsupportedTableFeature, match=r"hoodie.table.version.*\.log\.1"):
            table.downgrade(6, dry_run=dry_run)
    table.compact()
    table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retain=1)
    assert table.downgrade(6).after == 6
    assert table.refresh().scan().count() == 2


@pytest.mark.parametrize(("version", "to"), [(6, 9), (9, 6)])
def test_upgrade_finds_unreadable_instant_before_changes(
    version: int, to: int, tmp_path: Path
) -> None:
    table = pyhudi.create_table(tmp_path, pa.table({"id": ["a"]}), key="id", version=version)
    table.upsert(pa.table({"id": ["b"]}))
    timeline = table.refresh().state.timeline
    path = tmp_path / timeline.path(timeline.commits[0])
    path.write_bytes(path.read_bytes()[:-9])
    before = {p: p.read_bytes() for p in (tmp_path / ".hoodie").rglob("*") if p.is_file()}
    for dry_run in (True, False):
        with pytest.raises(CorruptTable, match=path.name):
            change(pyhudi.open_table(tmp_path), to, dry_run=dry_run)
        after = {p: p.read_bytes() for p in (tmp_path / ".hoodie").rglob("*") if p.is_file()}
        assert all(before[p] == after[p] for p in before if p.parent.name != ".locks")
