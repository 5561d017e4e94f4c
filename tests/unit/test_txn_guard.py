from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config import TableConfig
from pyhudi.errors import CommitConflict, UnsupportedTableFeature
from pyhudi.timeline import Timeline
from pyhudi.txn import guard
from tests.helpers.tables import unpack

PLAIN = {
    "hoodie.table.name": "t",
    "hoodie.table.version": "9",
    "hoodie.table.recordkey.fields": "id",
}


def test_plain_table_may_be_written() -> None:
    guard.check_config(TableConfig(PLAIN))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hoodie.table.version", "5"),
        ("hoodie.table.metadata.partitions", "files"),
        ("hoodie.table.metadata.partitions.inflight", "column_stats"),
        ("hoodie.table.cdc.enabled", "true"),
        ("hoodie.populate.meta.fields", "false"),
        ("hoodie.datasource.write.drop.partition.columns", "true"),
        ("hoodie.datasource.write.slash.separated.date.partitioning", "true"),
        ("hoodie.partition.metafile.use.base.format", "true"),
        ("hoodie.bootstrap.base.path", "/elsewhere"),
        ("hoodie.table.base.file.format", "ORC"),
        ("hoodie.table.multiple.base.file.formats.enable", "true"),
        ("hoodie.record.merge.mode", "CUSTOM"),
        ("hoodie.table.partial.update.mode", "IGNORE_DEFAULTS"),
        ("hoodie.table.keygenerator.type", "CUSTOM"),
        ("hoodie.table.recordkey.fields", ""),
    ],
)
def test_unsupported_property_is_named(name: str, value: str) -> None:
    with pytest.raises(UnsupportedTableFeature, match=name.replace(".", r"\.")):
        guard.check_config(TableConfig({**PLAIN, name: value}))


def test_payload_that_merges_fields_is_named() -> None:
    name = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
    config = {**PLAIN, "hoodie.table.version": "6", "hoodie.compaction.payload.class": name}
    with pytest.raises(UnsupportedTableFeature, match=r"payload\.class=.*PartialUpdate"):
        guard.check_config(TableConfig(config))


def test_bucket_numbers_as_file_ids_are_refused() -> None:
    guard.check_not_bucketed(["00000003-cc25-0", "a05a1abb-9369-0"])
    guard.check_not_bucketed([])
    with pytest.raises(UnsupportedTableFeature, match="BUCKET"):
        guard.check_not_bucketed(["00000003-cc25-0", "00000000-cc26-0"])


def without_metadata_table(base: Path) -> Path:
    """Takes the metadata table off the properties; the tables here are small and listed."""
    file = base / ".hoodie" / "hoodie.properties"
    lines = file.read_text().splitlines()
    kept = [line for line in lines if not line.startswith("hoodie.table.metadata.partitions")]
    file.write_text("\n".join(kept) + "\n")
    return base


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("v9_mor_part_avro", r"hoodie\.table\.metadata\.partitions is"),
        ("v9_mor_virtual_keys", r"hoodie\."),
        ("v6_cow_timestamp_key", r"hoodie\."),
    ],
)
def test_golden_table_is_refused_before_anything_is_written(
    name: str, said: str, tmp_path: Path
) -> None:
    unpack(name, tmp_path)
    base = tmp_path / name
    before = {path: path.stat().st_mtime_ns for path in base.rglob("*")}
    table = pyhudi.open_table(base)
    with pytest.raises(UnsupportedTableFeature, match=said):
        table.upsert(table.scan().to_arrow())
    assert {path: path.stat().st_mtime_ns for path in base.rglob("*")} == before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("v9_mor_bucket", "BUCKET"),
        ("v6_mor_consistent", "BUCKET"),
        ("v9_cow_cdc_data_before_after", r"hoodie\.table\.cdc\.enabled"),
        ("v6_mor_payload_partial_update", r"hoodie\.compaction\.payload\.class"),
        ("v9_mor_payload_partial_update", r"hoodie\.table\.partial\.update\.mode"),
    ],
)
def test_golden_table_is_refused_also_without_its_metadata_table(
    name: str, said: str, tmp_path: Path
) -> None:
    unpack(name, tmp_path)
    table = pyhudi.open_table(without_metadata_table(tmp_path / name))
    schema = table.schema
    rows = pa.Table.from_pylist([], schema=schema)
    with pytest.raises(UnsupportedTableFeature, match=said):
        table.upsert(rows)


def test_update_of_a_group_in_a_pending_clustering_is_refused(tmp_path: Path) -> None:
    for name in ("v6_cow_clustering", "v9_mor_clustering"):
        unpack(name, tmp_path)
        table = pyhudi.open_table(without_metadata_table(tmp_path / name))
        rows = table.scan().to_arrow()
        with pytest.raises(CommitConflict, match=r"clustering \d+ is pending"):
            table.upsert(rows)
        assert table.refresh().scan().to_arrow().num_rows == rows.num_rows


def test_a_schema_history_alone_tells_of_columns_with_ids(tmp_path: Path) -> None:
    base = without_metadata_table(unpack("v9_cow_nonpart", tmp_path))
    table = pyhudi.open_table(str(base))
    history = base / ".hoodie" / ".schema" / "20240101000000000.schemacommit"
    history.parent.mkdir(exist_ok=True)
    history.write_text('{"schemas": []}')
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.schema\.on\.read\.enable"):
        guard.check_writable(
            table.storage, table.config, Timeline.load(table.storage, table.config)
        )
