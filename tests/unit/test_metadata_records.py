"""Records of the metadata table as pyhudi and as Hudi make them of the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import _native
from pyhudi.clock import SystemClock
from pyhudi.config.metadata_names import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS, RECORD_INDEX
from pyhudi.config.table_config import TableConfig
from pyhudi.metadata.index_definitions import index_definitions
from pyhudi.metadata.partition_types.file_stats import FileStatsTask
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.record_locations import KeysTask
from pyhudi.metadata.record_tasks import RECORD_ROWS, RecordTaskContext, derive_rows, record_schema
from pyhudi.metadata.statistics_columns import statistics_columns
from pyhudi.schema.table_schema import table_schema
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from tests.helpers.tables import GoldenTables

TABLES = ["v6_cow_all_stats", "v9_cow_all_stats", "v9_mor_all_stats"]


class Both:
    """A golden table: what its metadata table says, and what pyhudi derives from its files."""

    def __init__(self, base: Path, scratch: Path) -> None:
        self.storage = Storage(str(base))
        self.config = TableConfig.load(self.storage, SystemClock())
        timeline = Timeline.load(self.storage, self.config)
        self.schema = table_schema(self.storage, self.config, timeline).arrow
        self.hudi = MetadataTable(self.storage, self.config, timeline)
        self.slices = FileSystemView(self.storage, self.config, timeline).slices()
        self.scratch = Storage(str(scratch))
        text = record_schema(self.config.version.metadata_schema)
        names = (COLUMN_STATS, PARTITION_STATS, BLOOM_FILTERS, RECORD_INDEX)
        self.task_context = RecordTaskContext(self.storage, text, dict.fromkeys(names, 1))

    def facts(self, *, blooms: bool) -> pa.Table:
        definitions = index_definitions(self.storage, self.config)
        columns = statistics_columns(definitions, self.schema)
        known = definitions.get(COLUMN_STATS)
        tasks = [
            FileStatsTask(
                self.task_context,
                one.partition,
                files_of(one),
                columns=pa.schema([]) if blooms else columns,
                value_types=known is not None and known.version > 1,
                partition_stats=False,
                bloom_filters=blooms,
                instant="1",
            )
            for one in self.slices
        ]
        return pa.Table.from_batches(
            [rows for task in tasks for rows in derive_rows(task)], RECORD_ROWS
        )

    def written(self, name: str, rows: pa.Table) -> _native.MetadataPartition:
        """A partition of one file group that holds the rows."""
        _native.write_metadata_log(
            self.scratch.native,
            f"{name}.log",
            rows,
            instant="1",
            avro_schema=self.task_context.avro_schema,
            partition=name,
        )
        return _native.MetadataPartition(self.scratch.native, [(None, [f"{name}.log"])])


@pytest.fixture(params=TABLES)
def both(request: pytest.FixtureRequest, golden: GoldenTables, tmp_path: Path) -> Both:
    name: str = request.param
    return Both(golden.unpack(name), tmp_path)


def test_statistics_are_those_that_hudi_wrote(both: Both) -> None:
    mine = both.written(COLUMN_STATS, both.facts(blooms=False))
    compared = 0
    for field in both.schema:
        ours = {row.pop("file_name"): row for row in _rows(mine, field)}
        theirs = {
            row.pop("file_name"): row for row in _rows(both.hudi.partition(COLUMN_STATS), field)
        }
        for name, row in ours.items():
            if name in theirs and not name.startswith("."):
                assert row == theirs[name], (field, name)
                compared += 1
    assert compared >= 9


def files_of(one: FileSlice) -> tuple[tuple[str, bool], ...]:
    base = () if one.base is None else ((one.base.path, False),)
    return (*base, *((log.path, True) for log in one.logs))


def _rows(partition: _native.MetadataPartition, field: pa.Field) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = partition.all_stats(field.name, field.type).to_pylist()
    return rows


def test_filters_hold_the_keys_of_their_files(both: Both) -> None:
    mine = both.written(BLOOM_FILTERS, both.facts(blooms=True))
    for one in both.slices:
        if one.base is None:
            continue
        keys = [
            key
            for batch in _native.read_keys(
                both.storage.native, base=one.base.path, logs=[], schema=both.schema
            )
            for key in batch.column(0).to_pylist()
        ]
        place = (pa.array([one.partition]), pa.array([one.base.name]))
        for partition in (mine, both.hudi.partition(BLOOM_FILTERS)):
            assert partition.may_contain(*place, keys[:1]).to_pylist() == [True]
            assert partition.may_contain(*place, ["nobody's key"]).to_pylist() == [False]


def test_locations_are_those_that_hudi_wrote(both: Both) -> None:
    tasks = [
        KeysTask(both.task_context, both.schema, one.partition, one.file_id, 5, base=one.base.path)
        for one in both.slices
        if one.base is not None
    ]
    rows = pa.Table.from_batches([r for task in tasks for r in derive_rows(task)], RECORD_ROWS)
    mine = _places(both.written(RECORD_INDEX, rows))
    theirs = _places(both.hudi.partition(RECORD_INDEX))
    assert theirs
    assert {key: mine[key] for key in theirs if key in mine} == {
        key: place for key, place in theirs.items() if key in mine
    }
    assert len(theirs.keys() - mine.keys()) == 0 or both.config.is_merge_on_read


def _places(partition: _native.MetadataPartition) -> dict[str, tuple[str, str]]:
    found = partition.locations().to_pylist()
    return {row["key"]: (row["partition"], row["file_id"]) for row in found}


def test_locations_of_many_keys_are_few_rows(both: Both) -> None:
    """A row a file group of the index and 32 KiB of keys, however many keys there are."""
    record_builder = _native.MetadataRecorder(both.task_context.avro_schema, {RECORD_INDEX: 4})
    keys = [f"key-{number}" for number in range(4000)]
    none = pa.array([], pa.string())
    rows = record_builder.locations("p", "f", 1, added=pa.array(keys), removed=none)
    assert sorted(rows.column("route").to_pylist()) == [f"{RECORD_INDEX}/{n}" for n in range(4)]
    assert rows.nbytes < 2 * sum(map(len, keys))
    assert _places(both.written("many", pa.table(rows))) == dict.fromkeys(keys, ("p", "f"))


def test_metadata_record_beats_deletion_of_its_key(both: Both) -> None:
    record_builder = both.task_context.record_builder()
    moved = record_builder.locations("p", "f", 1, added=pa.array(["k"]), removed=pa.array(["gone"]))
    left = record_builder.locations(
        "q", "g", 1, added=pa.array([], pa.string()), removed=pa.array(["k"])
    )
    for rows in ([moved, left], [left, moved]):
        partition = both.written(f"t{rows[0].num_rows}", pa.Table.from_batches(rows))
        assert _places(partition) == {"k": ("p", "f")}
