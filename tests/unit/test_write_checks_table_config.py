from __future__ import annotations

from pathlib import Path

import pytest

import pyhudi
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict, UnsupportedTableFeature
from pyhudi.timeline import Timeline
from pyhudi.write import checks
from tests.helpers.tables import unpack

PLAIN = {
    "hoodie.table.name": "t",
    "hoodie.table.version": "9",
    "hoodie.table.recordkey.fields": "id",
}


def test_plain_table_may_be_written() -> None:
    checks.check_config(TableConfig(PLAIN))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hoodie.table.version", "5"),
        ("hoodie.table.metadata.partitions", "column_stats"),
        ("hoodie.table.metadata.partitions", "files,secondary_index_by_name"),
        ("hoodie.table.metadata.partitions", "files,vector_index"),
        ("hoodie.table.metadata.partitions.inflight", "column_stats"),
        ("hoodie.datasource.write.drop.partition.columns", "true"),
        ("hoodie.partition.metafile.use.base.format", "true"),
        ("hoodie.table.multiple.base.file.formats.enable", "true"),
        ("hoodie.record.merge.mode", "CUSTOM"),
        ("hoodie.table.keygenerator.type", "USER_PROVIDED"),
    ],
)
def test_unsupported_property_is_named(name: str, value: str) -> None:
    with pytest.raises(UnsupportedTableFeature, match=name.replace(".", r"\.")):
        checks.check_config(TableConfig({**PLAIN, name: value}))


def test_orc_may_be_written_but_not_over_a_bootstrap() -> None:
    orc = {**PLAIN, "hoodie.table.base.file.format": "ORC"}
    checks.check_config(TableConfig(orc))
    source = {"hoodie.bootstrap.base.path": "/source"}
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.table\.base\.file\.format is ORC"):
        checks.check_config(TableConfig({**orc, **source}))


def test_custom_payload_raises() -> None:
    config = {**PLAIN, "hoodie.table.version": "6", "hoodie.compaction.payload.class": "com.acme.P"}
    with pytest.raises(UnsupportedTableFeature, match=r"payload\.class=com\.acme\.P"):
        checks.check_config(TableConfig(config))


def test_change_logs_raise_for_field_merges() -> None:
    captured = {**PLAIN, "hoodie.table.cdc.enabled": "true"}
    checks.check_config(TableConfig(captured))
    hidden = {**captured, "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
    hidden["hoodie.record.merge.mode"] = "EVENT_TIME_ORDERING"
    with pytest.raises(UnsupportedTableFeature, match=r"cdc\.enabled"):
        checks.check_config(TableConfig(hidden))


def without_metadata_table(base: Path) -> Path:
    """Remove the metadata table from the properties; these small tables are listed."""
    file = base / ".hoodie" / "hoodie.properties"
    lines = file.read_text().splitlines()
    kept = [line for line in lines if not line.startswith("hoodie.table.metadata.partitions")]
    file.write_text("\n".join(kept) + "\n")
    return base


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("v6_cow_timestamp_key", r"hoodie\."),
    ],
)
def test_unsupported_golden_table_raises_before_writing(
    name: str, said: str, tmp_path: Path
) -> None:
    unpack(name, tmp_path)
    base = tmp_path / name
    before = {path: path.stat().st_mtime_ns for path in base.rglob("*")}
    table = pyhudi.open_table(base)
    with pytest.raises(UnsupportedTableFeature, match=said):
        table.upsert(table.scan().to_arrow())
    assert {path: path.stat().st_mtime_ns for path in base.rglob("*")} == before


def test_update_of_group_in_pending_clustering_raises(tmp_path: Path) -> None:
    for name in ("v6_cow_clustering", "v9_mor_clustering"):
        unpack(name, tmp_path)
        table = pyhudi.open_table(without_metadata_table(tmp_path / name))
        rows = table.scan().to_arrow()
        with pytest.raises(CommitConflict, match=r"clustering \d+ is pending"):
            table.upsert(rows)
        assert table.refresh().scan().to_arrow().num_rows == rows.num_rows


def test_column_ids_with_change_logs_raise(tmp_path: Path) -> None:
    base = without_metadata_table(unpack("v9_cow_nonpart", tmp_path))
    properties = base / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text() + "hoodie.table.cdc.enabled=true\n")
    table = pyhudi.open_table(str(base))
    timeline = Timeline.load(table.storage, table.config)
    config = TableConfig({**table.config.properties, "hoodie.table.cdc.enabled": "true"})
    checks.check_writable(table.storage, config, timeline)
    history = base / ".hoodie" / ".schema" / "20240101000000000.schemacommit"
    history.parent.mkdir(exist_ok=True)
    history.write_text('{"schemas": []}')
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.schema\.on\.read\.enable"):
        checks.check_writable(table.storage, config, timeline)
