"""Properties as a handle shows them, and which of them can change on a living table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.config.merge_mode import DELETE_FIELD, DELETE_MARKER, PAYLOAD_CLASS
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict, ConfigError, LockTimeout, UnsupportedTableFeature
from pyhudi.storage.properties import has_valid_checksum
from pyhudi.storage.storage import Storage
from pyhudi.txn.locks.storage_lock import StorageLock
from pyhudi.txn.transaction import Transaction
from pyhudi.write.write_context import WriteContext

CDC = "hoodie.table.cdc.enabled"
MODE = "hoodie.table.cdc.supplemental.logging.mode"
ROWS = pa.table({"id": ["a", "b"], "v": [1, 2]})
OPTIONS: dict[str, Any] = {"hoodie.metadata.enable": False}


def made(base: Path, **more: Any) -> pyhudi.HudiTable:
    return pyhudi.create_table(base, ROWS, **{"key": "id", "options": OPTIONS, **more})


def stored(base: Path) -> TableConfig:
    return TableConfig.load(Storage(str(base)))


def test_properties_are_a_mapping_that_prints(tmp_path: Path) -> None:
    table = made(tmp_path)
    found = table.properties
    assert found["hoodie.table.recordkey.fields"] == "id"
    assert dict(found) == dict(stored(tmp_path).properties)
    lines = repr(found).splitlines()
    assert len(lines) == len(found)
    assert lines == sorted(lines)
    assert lines[0].split() == [next(iter(found)), found[next(iter(found))]]
    assert "hoodie.table.recordkey.fields" in found._repr_html_()
    with pytest.raises(TypeError):
        found["a"] = "b"  # type: ignore[index]


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [6, 9])
def test_enabled_cdc_records_later_changes(tmp_path: Path, version: int, kind: Any) -> None:
    table = made(tmp_path, version=version, type=kind)
    with pytest.raises(UnsupportedTableFeature, match="cdc"):
        table.changes().to_arrow()
    table.set_properties({CDC: True, MODE: "data_before"})
    assert (table.properties[CDC], table.properties[MODE]) == ("true", "DATA_BEFORE")
    assert has_valid_checksum(stored(tmp_path).properties)
    since = table.history()["instant" if version == 6 else "completed"].to_pylist()
    table.upsert(pa.table({"id": ["a", "c"], "v": [5, 6]}))
    changes = table.changes(start=max(since)).to_arrow()
    assert sorted(changes["op"].to_pylist()) == ["i", "u"]
    table.set_properties({CDC: False})
    assert pyhudi.open_table(tmp_path).properties[CDC] == "false"


def test_cdc_mode_is_fixed_once_changes_exist(tmp_path: Path) -> None:
    table = made(tmp_path)
    with pytest.raises(ConfigError, match="is not true"):
        table.set_properties({MODE: "OP_KEY_ONLY"})
    table.set_properties({CDC: True})
    assert table.properties[MODE] == "DATA_BEFORE_AFTER"
    table.set_properties({MODE: "OP_KEY_ONLY"})
    table.upsert(pa.table({"id": ["a"], "v": [5]}))
    for change in ({MODE: "DATA_BEFORE"}, {MODE: "DATA_BEFORE", CDC: True}):
        with pytest.raises(ConfigError, match="has logged changes"):
            table.set_properties(change)
    table.set_properties({MODE: "OP_KEY_ONLY", "owner": "nina"})
    assert table.properties["owner"] == "nina"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("hoodie.table.recordkey.fields", "keys"),
        ("hoodie.table.partition.fields", "directories"),
        ("hoodie.table.ordering.fields", "wins"),
        ("hoodie.record.merge.mode", "wins"),
        ("hoodie.table.type", "be rewritten"),
        ("hoodie.table.version", "upgrade"),
        ("hoodie.table.metadata.partitions", "create_index"),
        ("hoodie.table.create.schema", "alter"),
        ("hoodie.table.name", "locks"),
        ("hoodie.table.checksum", "computed"),
        ("hoodie.something.new", "does not know"),
        ("pyhudi.unfinished", "does not know"),
        ("", "does not know"),
    ],
)
def test_properties_files_depend_on_are_fixed(tmp_path: Path, name: str, reason: str) -> None:
    table = made(tmp_path)
    before = stored(tmp_path).properties
    for value in ("x", None):
        with pytest.raises(ConfigError, match=reason):
            table.set_properties({"owner": "nina", name: value})
    assert stored(tmp_path).properties == before


@pytest.mark.parametrize("change", [{CDC: "perhaps"}, {CDC: None}, {CDC: True, MODE: "ALL"}])
def test_bad_values(tmp_path: Path, change: dict[str, Any]) -> None:
    table = made(tmp_path)
    with pytest.raises(ConfigError, match=r"cdc"):
        table.set_properties(change)
    assert table.properties[CDC] == "false"


def test_own_properties_can_be_set_and_removed(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.set_properties({"owner": "nina", "größe": "1 = 2"})
    other = pyhudi.open_table(tmp_path)
    assert (other.properties["owner"], other.properties["größe"]) == ("nina", "1 = 2")
    table.set_properties({"owner": None, "never": None})
    assert "owner" not in table.properties
    written = (tmp_path / ".hoodie" / "hoodie.properties").stat().st_mtime_ns
    table.set_properties({"größe": "1 = 2", CDC: False})
    assert (tmp_path / ".hoodie" / "hoodie.properties").stat().st_mtime_ns == written
    assert not table.check()


def test_altered_tables_get_no_change_logs(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.alter().rename_column("v", "w").execute()
    with pytest.raises(UnsupportedTableFeature, match="change logs"):
        table.set_properties({CDC: True})


def test_set_properties_raises_for_active_writer(tmp_path: Path) -> None:
    options = {
        **OPTIONS,
        "hoodie.write.lock.wait_time_ms": 50,
        "hoodie.write.lock.client.num_retries": 0,
    }
    table = made(tmp_path, options=options)
    context = WriteContext.open(table, SystemClock())
    with Transaction(context.table, "INSERT") as txn:
        with pytest.raises(CommitConflict, match=txn.instant):
            table.set_properties({CDC: True})
        txn.start({})
        txn.withdraw()
    lock = StorageLock(Storage(str(tmp_path)), SystemClock(), validity_ms=60_000, renew_ms=6_000)
    assert lock.acquire(1000)
    try:
        with pytest.raises(LockTimeout):
            table.set_properties({CDC: True})
    finally:
        lock.release()
    with pytest.raises(ConfigError, match="as of"):
        pyhudi.open_table(tmp_path, as_of=table.history()["instant"][0].as_py()).set_properties({})


def of_no_class(base: Path, rows: pa.Table) -> pyhudi.HudiTable:
    """A copy-on-write table as Hudi 0.15 leaves it."""
    pyhudi.create_table(base, rows, key="id", order_by="ts", version=6)
    path = base / ".hoodie" / "hoodie.properties"
    lines = [line for line in path.read_text().splitlines() if "payload.class" not in line]
    path.write_text("\n".join(lines) + "\n")
    return pyhudi.open_table(base)


def test_payload_class_can_be_named_once(tmp_path: Path) -> None:
    """Hudi 0.15 does not store it for copy-on-write."""
    name = "org.apache.hudi.common.model.AWSDmsAvroPayload"
    rows = pa.table({"id": ["a", "b"], "ts": [1, 1], "Op": ["I", "I"]})
    table = of_no_class(tmp_path, rows)
    table.set_properties({PAYLOAD_CLASS: name})
    table.upsert(pa.table({"id": ["a"], "ts": [2], "Op": ["D"]}))
    assert table.scan(["id"]).to_arrow().column("id").to_pylist() == ["b"]
    with pytest.raises(ConfigError, match="which of two stored rows"):
        table.set_properties({PAYLOAD_CLASS: "org.apache.hudi.common.model.OtherPayload"})


@pytest.mark.parametrize("name", ["org.apache.hudi.common.model.FirstValueAvroPayload", "a.B"])
def test_unknown_payload_class_disables_writes(tmp_path: Path, name: str) -> None:
    rows = pa.table({"id": ["a"], "ts": [1]})
    table = of_no_class(tmp_path, rows)
    table.set_properties({PAYLOAD_CLASS: name})
    with pytest.raises(UnsupportedTableFeature, match=name):
        table.upsert(rows)
    assert table.scan().to_arrow().num_rows == 1
    # It was a slip.
    table.set_properties({PAYLOAD_CLASS: "org.apache.hudi.common.model.DefaultHoodieRecordPayload"})
    assert table.upsert(rows).rows_updated == 1
    with pytest.raises(ConfigError, match="which of two stored rows"):
        table.set_properties({PAYLOAD_CLASS: name})


@pytest.mark.parametrize(("version", "kind"), [(6, "mor"), (8, "cow"), (9, "cow"), (9, "mor")])
def test_payload_class_that_would_change_rows_raises(
    tmp_path: Path, version: int, kind: Any
) -> None:
    table = made(tmp_path, version=version, type=kind)
    with pytest.raises(ConfigError, match="which of two stored rows"):
        table.set_properties({PAYLOAD_CLASS: "org.apache.hudi.common.model.AWSDmsAvroPayload"})


@pytest.mark.parametrize(("version", "kind"), [(6, "cow"), (6, "mor"), (8, "mor")])
def test_delete_rule_can_be_set_once(tmp_path: Path, version: Any, kind: Any) -> None:
    """Writers of Hudi 0.15 and 1.0 are told which rows they are, and store nothing of it."""
    rows = pa.table({"id": ["a", "b"], "ts": [1, 1], "op": ["I", "I"]})
    table = pyhudi.create_table(tmp_path, rows, key="id", order_by="ts", version=version, type=kind)
    table.upsert(rows)
    names = {DELETE_FIELD: "op", DELETE_MARKER: "D"}
    with pytest.raises(UnsupportedTableFeature, match="not both"):
        table.set_properties({DELETE_FIELD: "op"})
    table.set_properties(names)
    table.upsert(pa.table({"id": ["a"], "ts": [2], "op": ["D"]}))
    assert table.scan(["id"]).to_arrow().column("id").to_pylist() == ["b"]
    with pytest.raises(ConfigError, match="which of two stored rows"):
        table.set_properties({**names, DELETE_MARKER: "I"})


def test_delete_rule_needs_existing_column(tmp_path: Path) -> None:
    """The name stays, and nothing could be written any more."""
    table = made(tmp_path, version=8)
    with pytest.raises(UnsupportedTableFeature, match=f"{DELETE_FIELD} is nope"):
        table.set_properties({DELETE_FIELD: "nope", DELETE_MARKER: "D"})
    assert DELETE_FIELD not in table.refresh().properties


def test_version_9_stores_delete_rule(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="which of two stored rows"):
        made(tmp_path).set_properties({DELETE_FIELD: "op", DELETE_MARKER: "D"})


@pytest.mark.parametrize("change", [{"own": "a\ud800"}, {"own\udfff": "a"}])
def test_property_with_half_surrogate_pair_raises(tmp_path: Path, change: dict[str, str]) -> None:
    """The file would contain another string."""
    table = made(tmp_path)
    with pytest.raises(ConfigError, match="surrogate"):
        table.set_properties(change)
    table.set_properties({"own": "\U0001f600"})
    assert pyhudi.open_table(tmp_path).properties["own"] == "\U0001f600"
