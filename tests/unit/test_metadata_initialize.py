"""Making a metadata table: its properties, its partitions' content, adding and dropping indexes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import CommitConflict, ConfigError, UnsupportedTableFeature
from pyhudi.config.actions import DELTA_COMMIT
from pyhudi.config.file_names import parse_log_name
from pyhudi.config.meta_columns import META_COLUMNS
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.metadata.index_definitions import index_definitions
from pyhudi.metadata.initialize import metadata_config
from pyhudi.metadata.new_file_groups import group_id
from pyhudi.metadata.partition_types.base import PartitionRequest
from pyhudi.metadata.partition_types.registry import new_definitions
from pyhudi.timeline import Timeline
from pyhudi.write import metadata_lifecycle
from tests.helpers.metadata_table import metadata_table
from tests.helpers.pending_compaction import request_compaction
from tests.helpers.pickling_engine import Travelling
from tests.helpers.table_builder import SMALL, TableBuilder
from tests.helpers.tables import unpack

pytestmark = pytest.mark.in_parts

ON = {"hoodie.metadata.enable": "true"}
OFF = {"hoodie.metadata.enable": "false"}
VERSIONS = [6, 8, 9]


TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "city": (pa.string(), lambda key: key[-1]),  # the last letter of the id
        "fare": (pa.float64(), 1.0),
        "ts": (pa.int64(), 1),
    },
    partition_by="city",
    order_by="ts",
    version=8,
    options=SMALL,
)


def ids(table: pyhudi.HudiTable, metadata: str = "true") -> list[str]:
    """The table's keys, read by a handle of its own."""
    opened = pyhudi.open_table(table.uri, options={"hoodie.metadata.enable": metadata})
    found: list[str] = opened.scan(columns=["id"], where="fare > 0").to_arrow()["id"].to_pylist()
    return sorted(found)


# --- what is made ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["v6_cow_record_index", "v8_mor_part_avro", "v9_cow_record_index"])
def test_properties_are_hudis(tmp_path: Path, name: str) -> None:
    table = pyhudi.open_table(unpack(name, tmp_path))
    hudis = metadata_table(table.storage).config.properties
    assert dict(metadata_config(table.config).properties) == dict(hudis)


@pytest.mark.parametrize(
    "name",
    [
        "v8_cow_nonpart",
        "v8_cow_event_time",
        "v8_mor_all_types",
        "v9_cow_nonpart",
        "v9_cow_event_time",
        "v9_cow_record_index",
    ],
)
def test_definitions_are_hudis(tmp_path: Path, name: str) -> None:
    """Hudi 1.0.2 stores no version of an index; 1.2.0 stores V1 in a table of version 8."""
    table = pyhudi.open_table(unpack(name, tmp_path))
    hudis = json.loads(table.storage.read(".hoodie/.index_defs/index.json"))["indexDefinitions"]
    meta = [pa.field(name, pa.string()) for name in META_COLUMNS]
    wish = PartitionRequest(
        table.config, MetadataOptions(), schema=pa.schema([*meta, *table.schema])
    )
    hudis = {index: {"version": "V1", **definition} for index, definition in hudis.items()}
    assert new_definitions(table.config.metadata_partitions, wish) == hudis


@pytest.mark.parametrize("version", VERSIONS)
def test_new_table_has_partitions_of_release_and_record_index(tmp_path: Path, version: int) -> None:
    table = TABLE.make(tmp_path / "t", version=version)
    stats = set() if version == 6 else {"column_stats", "partition_stats"}
    assert set(table.config.metadata_partitions) == {"files", "record_index"} | stats
    own = metadata_table(table.storage)
    start = "00000000000000" + ("010" if version == 6 else "000")
    assert next(one.requested for one in own.timeline.filter_completed()) == start
    for partition, count in {"files": 1, "record_index": 10}.items():
        names = [file.name for file in own.storage.list_dir(partition)[1]]
        logs = sorted(log.file_id for log in map(parse_log_name, names) if log is not None)
        assert logs == [group_id(partition, number) for number in range(count)]
    assert table.inspect.metadata().num_rows == 0
    assert ids(table) == []
    table.insert(TABLE.rows(["ax", "by"]))
    assert "hoodie.metadata.enable is" not in str(table.scan().explain())
    assert ids(table) == ids(table, "false") == ["ax", "by"]


def test_file_ids_have_the_prefixes_of_hudi() -> None:
    assert group_id("column_stats", 1) == "col-stats-0001-0"
    assert group_id("secondary_index_idx_name", 12) == "secondary-index-idx-name-0012-0"
    assert group_id("record_index", 10000) == "record-index-10000-0"


@pytest.mark.parametrize(
    "how",
    [
        {"index": "bloom"},
        {"key": None, "order_by": None},
        {"options": {"hoodie.populate.meta.fields": "false"}},
    ],
    ids=["another-index", "no-key", "virtual-keys"],
)
def test_without_a_use_for_it_no_record_index_is_made(tmp_path: Path, how: dict[str, Any]) -> None:
    table = TABLE.make(tmp_path / "t", **how)
    assert set(table.config.metadata_partitions) == {"files", "column_stats", "partition_stats"}
    table.insert(TABLE.rows(["ax"]))
    assert ids(table) == ["ax"]


def test_metadata_table_is_absent_if_disabled(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", options=OFF)
    assert table.config.metadata_partitions == ()
    table.upsert(TABLE.rows(["ax"]))
    assert not table.storage.list(".hoodie/metadata")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"hoodie.metadata.enable": "false", "hoodie.index.type": "RECORD_INDEX"}, "is enabled"),
        ({**ON, "hoodie.metadata.index.column.stats.column.list": "nope"}, "nope"),
        ({**ON, "hoodie.metadata.record.index.enable": "perhaps"}, "perhaps"),
        ({**ON, "hoodie.metadata.record.index.growth.factor": "-1"}, "growth"),
        (
            {
                **ON,
                "hoodie.metadata.index.column.stats.enable": "false",
                "hoodie.metadata.index.partition.stats.enable": "true",
            },
            "without",
        ),
    ],
)
def test_wrong_options_leave_no_table(
    tmp_path: Path, options: dict[str, str], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        TABLE.make(tmp_path / "t", options=options)
    assert not (tmp_path / "t" / ".hoodie").exists()


def test_statistics_of_partitions_are_refused_where_hudi_has_none(tmp_path: Path) -> None:
    options = {
        **ON,
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.partition.stats.enable": "true",
    }
    with pytest.raises(UnsupportedTableFeature, match=r"partition\.stats"):
        TABLE.make(tmp_path / "t", version=6, options=options)


@pytest.mark.parametrize(
    ("how", "column"),
    [
        ({"version": 8}, "s.a"),
        ({"version": 9, "type": "mor"}, "s.a"),
        ({"version": 9}, "l.list.element"),
        ({"version": 9}, "s"),
    ],
)
def test_statistics_that_hudi_would_fail_on_are_refused(
    tmp_path: Path, how: dict[str, Any], column: str
) -> None:
    data = pa.table({"id": [1], "s": [{"a": 2}], "l": [[3]]})
    options = {
        **ON,
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.column.stats.column.list": column,
    }
    with pytest.raises(UnsupportedTableFeature, match=column):
        pyhudi.create_table(tmp_path / "t", data, key="id", options=options, **how)
    assert not (tmp_path / "t" / ".hoodie").exists()


def test_record_index_has_as_many_file_groups_as_hudi_reckons() -> None:
    groups = MetadataOptions().record_groups
    assert [groups(records) for records in (0, 10**8, 2 * 10**8)] == [10, 10, 17]
    assert groups(10**13) == 10000
    few = MetadataOptions(min_record_groups=1, record_growth=1.0, record_group_bytes=480)
    assert [few.record_groups(records) for records in (0, 10, 29, 30)] == [1, 1, 2, 3]


# --- of tables that have rows ---------------------------------------------------------------------

REBUILT = [
    "v6_cow_all_stats",
    "v6_mor_part_avro",
    "v8_mor_part_avro",
    "v8_cow_nonpart",
    "v8_cow_overwrites",
    "v9_cow_nonpart",
    "v9_cow_record_index",
    "v9_mor_record_index",
    "v9_mor_parquet_log",
]


def told(table: pyhudi.HudiTable) -> dict[str, Any]:
    """What a metadata table says, as far as it does not depend on when it was made."""
    found: dict[str, Any] = {}
    for name in table.config.metadata_partitions:
        if name == "files":
            listed = table.inspect.metadata().to_pylist()
            found[name] = {
                (row["partition"], row["name"]): row["size"]
                for row in listed
                if not row["is_deleted"]
            }
        elif name == "record_index":
            located = table.inspect.metadata(name).to_pylist()
            found[name] = {row["key"]: (row["partition"], row["file_id"]) for row in located}
        elif name == "column_stats":
            for column in ("ts", "id", "_hoodie_record_key"):
                of_files = table.inspect.metadata(name, column).to_pylist()
                found[column] = {row.pop("file_name"): row for row in of_files}
    return found


@pytest.mark.parametrize("name", REBUILT)
def test_rebuilt_it_says_what_hudis_says(tmp_path: Path, name: str) -> None:
    table = pyhudi.open_table(unpack(name, tmp_path))
    partitions, before = table.config.metadata_partitions, told(table)
    expected = sorted(map(str, table.scan().to_arrow().to_pylist()))
    assert table.rebuild_metadata() == partitions
    after = told(table)
    for part, of_hudi in before.items():
        assert of_hudi, part
        if part in {"files", "record_index"}:
            assert after[part] == of_hudi
        else:
            # Statistics of log files are made in a way of their own.
            both = [file for file in of_hudi if file in after[part] and file[0] != "."]
            assert both
            assert {file: after[part][file] for file in both} == {
                file: of_hudi[file] for file in both
            }
            assert {file for file in of_hudi if file[0] != "."} <= set(after[part])
    assert sorted(map(str, table.scan().to_arrow().to_pylist())) == expected


def test_metadata_tasks_run_on_any_engine(tmp_path: Path) -> None:
    engine = Travelling()
    table = pyhudi.open_table(unpack("v8_mor_part_avro", tmp_path), engine=engine)
    table.create_index("record_index")
    table.create_index("bloom_filters")
    table.create_index("secondary_index", ["name"], name="names")
    table.create_index("column_stats", ["name"], name="low", function="lower")
    table.rebuild_metadata()
    made = {f"build {name}" for name in table.config.metadata_partitions}
    assert made | {"count records"} <= engine.labels
    located = table.inspect.metadata("record_index")["key"].to_pylist()
    assert sorted(located) == ids_of(table)


def test_little_memory_takes_more_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_lifecycle, "memory_limit", lambda _: 512)
    table = TABLE.make(tmp_path / "t", options=OFF)
    keys = [f"{number}{city}" for number in range(20) for city in "xy"]
    table.insert(TABLE.rows(keys))
    table.create_index("record_index")
    assert sorted(table.inspect.metadata("record_index")["key"].to_pylist()) == sorted(keys)
    own = metadata_table(table.storage)
    names = [file.name for file in own.storage.list_dir("record_index")[1]]
    # Each file group was written in a turn, and so under a token, of its own.
    stages = {name.split("_")[1].split("-")[1] for name in names if name.endswith(".hfile")}
    assert len(stages) > 5
    result = table.upsert(TABLE.rows([*keys[:3], "newx"], fare=2.0, ts=2))
    assert (result.rows_updated, result.rows_inserted) == (3, 1)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_indexes_come_and_go_between_writes(
    tmp_path: Path, version: int, kind: Literal["cow", "mor"]
) -> None:
    table = TABLE.make(tmp_path / "t", version=version, options=OFF, kind=kind)
    table = pyhudi.open_table(table.uri, options={"hoodie.index.bloom.num_entries": "64"})
    table.insert(TABLE.rows(["ax", "by"]))
    table.upsert(TABLE.rows(["ax", "cy"], fare=2.0, ts=2))
    table.delete_keys(TABLE.rows(["by"]).select(["id", "city"]))
    assert table.create_index("record_index") == ("files", "record_index")
    assert sorted(table.inspect.metadata("record_index")["key"].to_pylist()) == ["ax", "cy"]
    table.upsert(TABLE.rows(["ax", "dz"], fare=3.0, ts=3))
    columns = [] if version == 6 else ["fare"]
    assert "column_stats" in table.create_index("column_stats", columns)
    assert "bloom_filters" in table.create_index("bloom_filters")
    table.upsert(TABLE.rows(["ez"], fare=9.0))
    assert "column_stats" in str(table.scan(where="fare > 8").explain())
    assert table.drop_index("record_index") == ("record_index",)
    table.upsert(TABLE.rows(["fz", "ax"], fare=4.0, ts=4))
    # File groups of the old index must not be looked for in the new one.
    table.create_index("record_index")
    result = table.upsert(TABLE.rows(["fz", "gz"], fare=5.0, ts=5))
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert ids(table) == ids(table, "false") == ["ax", "cy", "dz", "ez", "fz", "gz"]
    gone = table.drop_index("column_stats")
    assert set(gone) == {"column_stats", "partition_stats"} & {*gone, "column_stats"}
    assert set(table.drop_index("files")) == {"files", "bloom_filters", "record_index"}
    assert not table.storage.list(".hoodie/metadata")
    assert ids(table) == ["ax", "cy", "dz", "ez", "fz", "gz"]


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("concurrently", [False, True])
def test_statistics_of_partitions_come_back(
    tmp_path: Path, version: int, concurrently: bool
) -> None:
    table = TABLE.make(tmp_path / "t", version=version, first=["ax", "by"])
    table.drop_index("partition_stats")
    table.upsert(TABLE.rows(["cx"], fare=5.0))
    assert "partition_stats" in table.create_index("partition_stats", concurrently=concurrently)
    for fare in (2, 6):
        steps = [step.index for step in table.scan(where=f"fare > {fare}").explain().steps]
        assert "partition_stats(fare)" in steps
        table.upsert(TABLE.rows(["dy"], fare=7.0))
    assert table.check(deep=True).ok
    with pytest.raises(ConfigError, match="already"):
        table.create_index("partition_stats", concurrently=concurrently)
    table.drop_index("column_stats")
    assert {"column_stats", "partition_stats"} <= {
        *table.create_index("partition_stats", concurrently=concurrently)
    }


@pytest.mark.parametrize("concurrently", [False, True])
def test_statistics_of_partitions_need_partitions(tmp_path: Path, concurrently: bool) -> None:
    table = TABLE.make(tmp_path / "t", partition_by=None, first=["ax"])
    with pytest.raises(ConfigError, match="no partition columns"):
        table.create_index("partition_stats", concurrently=concurrently)
    with pytest.raises(ConfigError, match="those of column_stats"):
        table.create_index("partition_stats", ["fare"], concurrently=concurrently)
    assert "partition_stats" not in table.config.metadata_partitions


def test_write_builds_partitions_of_options(tmp_path: Path) -> None:
    uri = TABLE.make(tmp_path / "t", options=OFF).uri
    pyhudi.open_table(uri).upsert(TABLE.rows(["ax", "by"]))
    assert pyhudi.open_table(uri).config.metadata_partitions == ()
    plain = pyhudi.open_table(uri, options=ON)
    plain.upsert(TABLE.rows(["cx"]))
    assert set(plain.config.metadata_partitions) == {"column_stats", "files", "partition_stats"}
    plain.drop_index("column_stats")
    plain.upsert(TABLE.rows(["dx"]))
    assert plain.config.metadata_partitions == ("files",)
    indexed = pyhudi.open_table(uri, options={**ON, "hoodie.index.type": "RECORD_INDEX"})
    result = indexed.upsert(TABLE.rows(["ax", "ex"], fare=2.0, ts=2))
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert indexed.config.metadata_partitions == ("files", "record_index")
    assert ids(indexed) == ["ax", "by", "cx", "dx", "ex"]


@pytest.mark.parametrize("version", [8, 9])
def test_columns_that_come_later_have_statistics(tmp_path: Path, version: int) -> None:
    table = TABLE.make(tmp_path / "t", version=version)
    table.insert(TABLE.rows(["ax"]))
    late = TABLE.rows(["bx"], ts=2).append_column("tip", pa.array([7.0]))
    table.upsert(late, schema_mode="merge")
    table.upsert(TABLE.rows(["cx"], ts=3).append_column("tip", pa.array([9.0])))
    assert table.inspect.metadata("column_stats", "tip").num_rows > 0
    for where in ("tip < 8", "tip > 8", "tip IS NULL"):
        without = pyhudi.open_table(table.uri, options=OFF).scan(where=where).count()
        assert table.scan(where=where).count() == without == 1


def test_index_of_hudi_can_be_dropped(tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack("v8_mor_secondary_index", tmp_path))
    assert "secondary_index_idx_name" in table.config.metadata_partitions
    with pytest.raises(ConfigError, match="needs record_index"):
        table.drop_index("record_index")
    assert "secondary_index_idx_name" in table.rebuild_metadata()
    assert table.drop_index("idx_name") == ("secondary_index_idx_name",)
    assert "secondary_index_idx_name" not in index_definitions(table.storage, table.config)
    assert not table.storage.list(".hoodie/metadata/secondary_index_idx_name")
    assert table.rebuild_metadata() == ("files", "record_index")


def test_create_and_drop_index_report_refusals(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", options=ON)
    with pytest.raises(ConfigError, match="already"):
        table.create_index("record_index")
    with pytest.raises(ConfigError, match="no index 'nope'"):
        table.drop_index("nope")
    with pytest.raises(ConfigError, match="takes no columns"):
        table.create_index("bloom_filters", ["fare"])
    with pytest.raises(UnsupportedTableFeature, match="does not build the index type 'files'"):
        table.create_index("files")
    old = TABLE.make(tmp_path / "old", version=6, options=ON)
    with pytest.raises(UnsupportedTableFeature, match=r"column\.list"):
        old.create_index("column_stats", ["fare"])
    with pytest.raises(ConfigError, match="opened as of"):
        pyhudi.open_table(table.uri, as_of="2099-01-01").drop_index("files")


def test_active_writer_blocks_metadata_changes(tmp_path: Path) -> None:
    """The golden table has a pending write, whose heartbeat unpacking has made young."""
    table = pyhudi.open_table(unpack("v9_mor_inflight", tmp_path))
    table.storage.put(f".hoodie/.heartbeat/{pending(table)[0]}", b"")
    before = table.config.metadata_partitions
    with pytest.raises(UnsupportedTableFeature, match="is active"):
        table.rebuild_metadata()
    known = {"hoodie.write.lock.provider": "StorageBasedLockProvider"}
    with pytest.raises(CommitConflict, match="is active"):
        pyhudi.open_table(table.uri, options=known).rebuild_metadata()
    assert pyhudi.open_table(table.uri).config.metadata_partitions == before


def pending(table: pyhudi.HudiTable) -> list[str]:
    timeline = Timeline.load(table.storage, table.config)
    return [one.requested for one in timeline.pending(DELTA_COMMIT)]


@pytest.mark.parametrize("name", ["v8_mor_inflight", "v9_mor_inflight"])
def test_files_of_failed_work_stay_out(tmp_path: Path, name: str) -> None:
    table = pyhudi.open_table(unpack(name, tmp_path))
    table.storage.delete_dir(".hoodie/.heartbeat")
    expected = ids_of(table)
    assert pending(table)
    pyhudi.open_table(table.uri, options=ON).drop_index("files")
    assert "files" in table.rebuild_metadata()
    assert pending(table) == []
    assert ids_of(table) == expected


def ids_of(table: pyhudi.HudiTable) -> list[str]:
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("version", VERSIONS)
def test_metadata_table_is_built_next_to_pending_compaction(tmp_path: Path, version: int) -> None:
    table = TABLE.make(tmp_path / "t", version=version, options=OFF, kind="mor")
    table = pyhudi.open_table(table.uri)
    table.insert(TABLE.rows(["ax", "by"]))
    table.upsert(TABLE.rows(["ax"], fare=2.0, ts=2))
    request_compaction(table)
    if version == 6:
        with pytest.raises(CommitConflict, match="pending"):
            table.create_index("record_index")
        assert not table.storage.list(".hoodie/metadata")
        return
    table.create_index("record_index")
    table.upsert(TABLE.rows(["ax", "cy"], fare=3.0, ts=3))
    assert ids(table) == ids(table, "false") == ["ax", "by", "cy"]
