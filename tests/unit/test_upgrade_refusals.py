"""Reasons against a change of version, and rules that a changed table keeps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.config import merge_mode as merging
from pyhudi.config import property_names as names
from pyhudi.config.property_names import PARTITION_SPEC
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import LAYOUT_1, LAYOUT_2
from pyhudi.config.version_properties import LEGACY_PAYLOAD
from pyhudi.errors import CommitConflict, UnsupportedTableFeature
from pyhudi.schema import payloads
from pyhudi.storage.storage import Storage
from pyhudi.txn.transaction import Transaction
from pyhudi.write.write_context import WriteContext
from tests.helpers.table_builder import TableBuilder, numbered

MERGER = "11111111-2222-3333-4444-555555555555"
BY_ID = {merging.MERGE_MODE: "CUSTOM", merging.STRATEGY_ID: MERGER}
FIRST_VALUE = "org.apache.hudi.common.model.FirstValueAvroPayload"
OP, MARKER = (
    merging.MERGE_PROPERTY + name for name in (merging.DELETE_FIELD, merging.DELETE_MARKER)
)
TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered()),
        "v": (pa.int64(), 1),
        "op": (pa.string(), "u"),
        "ts": (pa.int64(), 5),
    },
    order_by="ts",
    first=range(2),
)


def edited(
    base: Path, properties: Mapping[str, str], removed: Collection[str] = (), **options: str
) -> HudiTable:
    """The table with other properties, as if they had been there from the beginning."""
    storage, clock = Storage(str(base)), SystemClock()
    TableConfig.load(storage, clock).update(storage, properties, clock, removed=removed)
    return pyhudi.open_table(base, options=options)


def change(table: HudiTable, to: int, *, dry_run: bool = False) -> pyhudi.VersionChange:
    verb = table.upgrade if to > table.version else table.downgrade
    return verb(to, dry_run=dry_run)


def files(base: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in base.rglob("*") if path.is_file()}


def but_for_locks(base: Path) -> dict[Path, bytes]:
    return {path: data for path, data in files(base).items() if path.parent.name != ".locks"}


def refused(table: HudiTable, to: int, match: str, error: type[Exception] | None = None) -> None:
    """By a dry run and by the change, both of which leave every file as it is."""
    before = files(Path(table.uri))
    for dry_run in (True, False):
        with pytest.raises(error or UnsupportedTableFeature, match=match):
            change(table, to, dry_run=dry_run)
        assert files(Path(table.uri)) == before


@pytest.fixture
def merger() -> Any:
    """Adds the values of both records."""

    def added(older: pa.RecordBatch, newer: pa.RecordBatch) -> pa.RecordBatch:
        at = newer.schema.get_field_index("v")
        return newer.set_column(at, newer.schema.field(at), pc.add(older["v"], newer["v"]))

    pyhudi.register_merger(MERGER, added)
    yield
    del payloads._registered[MERGER]


@pytest.mark.parametrize(("version", "to"), [(8, 9), (9, 8), (6, 8), (6, 5), (5, 6), (5, 9)])
@pytest.mark.parametrize(
    "properties",
    [
        {names.DROP_PARTITION_COLUMNS: "true"},
        {merging.PAYLOAD_CLASS: FIRST_VALUE, merging.MERGE_MODE: "CUSTOM"},
        {"hoodie.allow.operation.metadata.field": "true"},
        {merging.DELETE_FIELD: "op"},
        {"hoodie.meta.fields.mode": "COMMIT_TIME_ONLY"},
    ],
    ids=lambda properties: next(iter(properties)).rpartition(".")[2],
)
def test_upgrade_keeps_tables_pyhudi_does_not_write(
    tmp_path: Path, version: int, to: int, properties: dict[str, str]
) -> None:
    TABLE.make(tmp_path, version=max(version, 6))
    more = {names.TABLE_VERSION: "5"} if version == 5 else {}
    refused(edited(tmp_path, {**properties, **more}), to, next(iter(properties)))


@pytest.mark.parametrize(("version", "to"), [(9, 8), (6, 9)])
def test_upgrade_refuses_active_writer(tmp_path: Path, version: int, to: int) -> None:
    table = TABLE.make(tmp_path, version=version)
    context = WriteContext.open(table, SystemClock())
    with Transaction(context.table, "INSERT") as txn:
        refused(table, to, txn.instant, CommitConflict)
        txn.start({})
        txn.withdraw()
    assert change(table, to).metadata_made


def test_upgrade_refuses_foreign_lock(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path, version=8)
    (tmp_path / ".hoodie/lock").touch()
    refused(table, 9, "hoodie.write.lock.provider")


def half_moved(base: Path, instants: slice) -> None:
    """As Hudi leaves a table where it dies over a change of the version."""
    table = pyhudi.open_table(base)
    timeline, old = table.state.timeline, table.config.layout
    new = LAYOUT_1 if old.completion_in_name else LAYOUT_2
    (base / new.folder).mkdir(exist_ok=True)
    for instant in timeline.instants[instants]:
        for file in timeline.files(instant):
            name = new.file_name(file.requested, file.action, file.state, instant.completed)
            (base / old.path(file.file_name)).rename(base / new.path(name))


@pytest.mark.parametrize("moved", [slice(1), slice(2, None), slice(None)], ids=str)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_upgrade_leaves_half_done_upgrade_of_hudi(
    tmp_path: Path, version: int, moved: slice
) -> None:
    """Of versions 8 and 9 a read cannot tell that the oldest instants are not archived."""
    table = TABLE.make(tmp_path, version=version)
    for n in range(3):
        table.upsert(TABLE.rows(range(n + 1), v=n))
    table.refresh()
    half_moved(tmp_path, moved)
    before = but_for_locks(tmp_path)
    verbs: list[Callable[[HudiTable], Any]] = [
        lambda table: table.upsert(TABLE.rows([1])),
        lambda table: table.delete_keys(pa.table({"id": ["1"]})),
        lambda table: table.clean(),
        lambda table: table.restore(table.inspect.commits()["requested"][0].as_py()),
        lambda table: table.check(),
        lambda table: table.upgrade(9) if version < 9 else table.downgrade(8),
        lambda table: table.downgrade(6) if version > 6 else table.upgrade(8),
    ]
    if version == 6 or moved != slice(1):
        verbs.append(lambda table: table.scan().to_arrow())
    for verb in verbs:
        with pytest.raises(UnsupportedTableFeature, match="by Apache Hudi was interrupted"):
            verb(table.refresh())
        with pytest.raises(UnsupportedTableFeature, match="by Apache Hudi was interrupted"):
            verb(pyhudi.open_table(tmp_path))
    assert but_for_locks(tmp_path) == before


def test_old_timeline_directory_is_no_half_done_upgrade(tmp_path: Path) -> None:
    """Hudi's downgrade leaves it (1.2.0)."""
    table = TABLE.make(tmp_path, version=6)
    (tmp_path / ".hoodie/timeline/history").mkdir(parents=True)
    table.upsert(TABLE.rows([3]))
    assert table.refresh().scan().count() == 3
    assert table.check().ok


@pytest.mark.usefixtures("merger")
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("payload", [merging.EVENT_TIME_PAYLOAD, merging.COMMIT_TIME_PAYLOAD])
def test_upgrade_keeps_merger_next_to_empty_payload_class(
    tmp_path: Path, kind: Any, payload: str
) -> None:
    TABLE.make(tmp_path, version=8, kind=kind)
    table = edited(tmp_path, {**BY_ID, merging.PAYLOAD_CLASS: payload})
    before = table.properties
    for to in (9, 8):
        table.upsert(TABLE.rows([0], v=10, ts=6))
        change(table, to)
        assert table.properties[merging.STRATEGY_ID] == MERGER
    table.upsert(TABLE.rows([0], v=100, ts=7))
    assert sorted(table.scan(["v"]).to_arrow()["v"].to_pylist()) == [1, 121]
    rules = (merging.MERGE_MODE, merging.STRATEGY_ID, merging.PAYLOAD_CLASS)
    assert [table.properties[name] for name in rules] == [before[name] for name in rules]


@pytest.mark.usefixtures("merger")
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_upgrade_refuses_to_drop_merger(tmp_path: Path, kind: Any) -> None:
    """Version 6 uses the payload class; its upgrade, in Hudi too, supports no merger."""
    TABLE.make(tmp_path / "8", version=8, kind=kind)
    payload = {merging.PAYLOAD_CLASS: merging.EVENT_TIME_PAYLOAD}
    refused(edited(tmp_path / "8", {**BY_ID, **payload}), 6, merging.STRATEGY_ID)
    TABLE.make(tmp_path / "6", version=6, kind=kind)
    by_id = {merging.OLD_STRATEGY_ID: MERGER}
    table = edited(tmp_path / "6", by_id, [merging.PAYLOAD_CLASS])
    for to in (8, 9):
        refused(table, to, merging.OLD_STRATEGY_ID)


def test_custom_partition_types_need_option(tmp_path: Path) -> None:
    """Hudi 0.15 splits the fields at commas alone."""
    timed = {
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
        "hoodie.keygen.timebased.timezone": "UTC",
    }
    by = TABLE.make(tmp_path, version=8, partition_by=["op:simple", "ts:timestamp"], options=timed)
    assert by.properties[names.PARTITION_FIELDS] == "op:simple,ts:timestamp"
    before = by.scan(meta_fields=True).to_arrow()
    by.downgrade(6)
    assert by.properties[names.PARTITION_FIELDS] == "op,ts"
    table = pyhudi.open_table(tmp_path)
    refused(table, 8, names.PARTITION_FIELDS)
    told = pyhudi.open_table(tmp_path, options={PARTITION_SPEC: "op:simple,ts:TIMESTAMP"})
    told.upsert(before.select(TABLE.schema.names))
    told.upgrade(9)
    assert told.properties[names.PARTITION_FIELDS] == "op:simple,ts:TIMESTAMP"
    table = pyhudi.open_table(tmp_path)
    table.upsert(before.select(TABLE.schema.names))
    after = table.scan(meta_fields=True).to_arrow()
    paths = "_hoodie_partition_path"
    assert after[paths].to_pylist() == before[paths].to_pylist()


@pytest.mark.parametrize(("version", "to"), [(8, 9), (9, 8), (9, 6)])
def test_upgrade_raises_for_keys_encoded_differently(tmp_path: Path, version: int, to: int) -> None:
    """`NineToEightDowngradeHandler` refuses it too (1.2.0)."""
    table = TABLE.make(tmp_path, version=version, partition_by=["op", "ts"])
    refused(table, to, "COMPLEX with one key field")


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_delete_markers_of_the_table_stay(tmp_path: Path, kind: Any) -> None:
    TABLE.make(tmp_path, kind=kind)
    table = edited(tmp_path, {OP: "op", MARKER: "D"})
    for to in (8, 6):
        table.downgrade(to)
        assert (table.properties[OP], table.properties[MARKER]) == ("op", "D")
        table.upsert(TABLE.rows([to], op="u"))
        table.upsert(TABLE.rows([to], op="D", ts=6))
        assert sorted(table.scan(["id"]).to_arrow()["id"].to_pylist()) == ["k0", "k1"]


def test_log_files_are_compacted_on_the_way_to_version_5(tmp_path: Path) -> None:
    """Their blocks are of another version there (`SixToFiveDowngradeHandler`)."""
    table = TABLE.make(tmp_path, version=6, kind="mor")
    table.upsert(TABLE.rows([0], v=7, ts=6))
    table.delete_keys(TABLE.rows([1]))
    assert table.inspect.logs().num_rows
    assert table.downgrade(5).compaction is not None
    table = pyhudi.open_table(tmp_path)
    slices = table.inspect.slices().to_pylist()
    newest = max(slices, key=lambda found: found["base_instant"])
    assert newest["log_files"] == []
    assert table.scan(["id", "v"]).to_arrow().to_pylist() == [{"id": "k0", "v": 7}]


def test_upgrade_raises_for_missing_ordering_field_of_class(tmp_path: Path) -> None:
    columns = {
        "id": (pa.string(), numbered()),
        "_event_bin_file": (pa.string(), "1"),
        "_event_pos": (pa.int64(), 2),
        "_event_seq": (pa.string(), "1.2"),
        "_change_operation_type": (pa.string(), "c"),
    }
    builder = TableBuilder(columns, order_by="_event_seq", version=8, kind="mor", first=range(2))
    mysql = {merging.MERGE_MODE: "CUSTOM", merging.PAYLOAD_CLASS: merging.DEBEZIUM_PAYLOADS[0]}
    builder.make(tmp_path / "t")
    table = edited(tmp_path / "t", mysql)
    table.upgrade(9)
    assert table.properties[names.ORDERING_FIELDS] == "_event_bin_file,_event_pos"
    table.downgrade(8)
    assert table.properties[names.PRECOMBINE_FIELD] == "_event_seq"
    table.upsert(builder.rows([0], _event_seq="1.1", _event_pos=1))
    table.upsert(builder.rows([1], _event_seq="1.10", _event_pos=10))
    found = table.scan(["_event_seq"]).to_arrow()["_event_seq"].to_pylist()
    assert sorted(found) == ["1.10", "1.2"]
    del columns["_event_pos"]
    TableBuilder(columns, order_by="_event_seq", version=8, kind="mor").make(tmp_path / "u")
    refused(edited(tmp_path / "u", mysql), 9, "_event_pos")


def test_downgrade_raises_for_rules_missing_in_version_8(tmp_path: Path) -> None:
    TABLE.make(tmp_path / "a", order_by=["ts", "v"])
    refused(pyhudi.open_table(tmp_path / "a"), 8, names.ORDERING_FIELDS)
    TABLE.make(tmp_path / "b")
    partial = {merging.PARTIAL_UPDATE_MODE: "IGNORE_DEFAULTS"}
    refused(edited(tmp_path / "b", partial), 8, merging.PARTIAL_UPDATE_MODE)
    other = {LEGACY_PAYLOAD: merging.EVENT_TIME_PAYLOAD}
    refused(edited(tmp_path / "b", other), 8, merging.PARTIAL_UPDATE_MODE)
    same = {LEGACY_PAYLOAD: "org.apache.hudi.common.model.PartialUpdateAvroPayload"}
    assert change(edited(tmp_path / "b", same), 8).after == 8


@pytest.mark.parametrize(
    ("key", "kind", "to"),
    [("id", "mor", 8), (["id", "v"], "mor", 8), (["id", "v"], "mor", 6), ("v", "mor", 6)],
)
def test_upgrade_raises_for_unsupported_virtual_keys(
    tmp_path: Path, key: Any, kind: Any, to: int
) -> None:
    options = {"hoodie.populate.meta.fields": "false", "hoodie.index.type": "SIMPLE"}
    table = TABLE.make(tmp_path, key=key, kind=kind, options=options)
    refused(table, to, "hoodie.populate.meta.fields")
