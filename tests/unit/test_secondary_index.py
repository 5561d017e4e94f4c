"""Secondary indexes after pyhudi's writes: their entries are those of the rows, none more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi import UnsupportedTableFeature, _native
from pyhudi.clock import SystemClock
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.metadata.index_definitions import IndexDefinition
from pyhudi.metadata.initial_records import Source
from pyhudi.metadata.partition_types.base import DefinitionContext
from pyhudi.metadata.partition_types.secondary_index import SecondaryIndex, SecondaryTask
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.record_tasks import derive_rows, record_schema
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from tests.helpers.tables import unpack

INDEX = "secondary_index_idx_name"
TABLES = ["v8_mor_secondary_index", "v9_mor_secondary_index"]
ODD = ["a$b", "back\\slash", "", "nul\0", "ünï\u4e16", None]


@pytest.fixture(params=TABLES)
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    name: str = request.param
    unpack(name, tmp_path)
    return tmp_path / name


def entries(base: Path) -> list[tuple[str | None, str]]:
    storage = Storage(str(base))
    config = TableConfig.load(storage, SystemClock())
    table = MetadataTable(storage, config, Timeline.load(storage, config))
    version = table.definitions[INDEX].version
    rows = table.partition(INDEX).secondary(hashed_by_value=version > 1)
    return sorted(
        zip(rows["value"].to_pylist(), rows["record_key"].to_pylist(), strict=True), key=str
    )


def rows_of(base: Path) -> pa.Table:
    return pyhudi.open_table(str(base)).scan(meta_fields=True).to_arrow()


def expected(base: Path) -> list[tuple[str | None, str]]:
    rows = rows_of(base)
    if base.name.startswith("v8"):  # Hudi 1.0.2 has no entries of nulls
        rows = rows.filter(rows["name"].is_valid())
    pairs = zip(rows["name"].to_pylist(), rows["_hoodie_record_key"].to_pylist(), strict=True)
    return sorted(pairs, key=str)


def test_entries_follow_every_write(base: Path) -> None:
    rows = pyhudi.open_table(str(base)).scan().to_arrow()
    later = rows.set_column(
        rows.schema.get_field_index("ts"), "ts", pc.add(rows["ts"], pa.scalar(1000, pa.int64()))
    )
    named = later.slice(0, len(ODD))
    changed = named.set_column(
        rows.schema.get_field_index("name"), rows.schema.field("name"), pa.array(ODD, pa.string())
    )
    pyhudi.open_table(str(base)).upsert(changed)
    assert entries(base) == expected(base)
    new = changed.set_column(
        rows.schema.get_field_index("id"), "id", pa.array([f"n${n}" for n in range(len(ODD))])
    )
    pyhudi.open_table(str(base)).upsert(new)
    assert entries(base) == expected(base)
    # Rows that come too late change nothing.
    pyhudi.open_table(str(base)).upsert(rows.slice(0, 3))
    assert entries(base) == expected(base)
    keys = new.select(["id", "city"])
    pyhudi.open_table(str(base)).delete_keys(keys.slice(0, 4))
    assert entries(base) == expected(base)
    pyhudi.open_table(str(base)).delete(pc.field("name") == "")
    assert entries(base) == expected(base)
    for value in ODD[:-1]:
        found = pyhudi.open_table(str(base)).scan(where=pc.field("name") == value).to_arrow()
        assert found.num_rows == pc.sum(pc.equal(rows_of(base)["name"], value)).as_py()


def test_entries_with_null_characters_of_an_older_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1.0.2 leaves them as they are, and finds no others."""
    unpack(TABLES[0], tmp_path)
    base = tmp_path / TABLES[0]
    rows = pyhudi.open_table(base).scan().to_arrow().slice(0, 1)
    rows = rows.set_column(
        rows.schema.get_field_index("ts"), "ts", pc.add(rows["ts"], pa.scalar(1000, pa.int64()))
    )
    named = rows.schema.get_field_index("name")
    made = SecondaryTask.rows

    def older(task: SecondaryTask) -> Iterator[pa.RecordBatch]:
        for batch in made(task):
            keys = pa.array([key.replace("\\\0", "\0") for key in batch["key"].to_pylist()])
            groups = _native.metadata_groups(keys, task.task_context.groups[INDEX])
            routes = pa.array([f"{INDEX}/{group}" for group in groups.to_pylist()])
            arrays = [routes, keys, batch["value"], batch["keys"]]
            yield pa.RecordBatch.from_arrays(arrays, schema=batch.schema)

    with monkeypatch.context() as patch:
        patch.setattr(SecondaryTask, "rows", older)
        pyhudi.open_table(base).upsert(rows.set_column(named, "name", pa.array(["a\0b"])))
    assert pyhudi.open_table(base).scan(where=pc.field("name") == "a\0b").count() == 1
    pyhudi.open_table(base).upsert(rows.set_column(named, "name", pa.array(["c"])))
    assert entries(base) == expected(base)


def test_secondary_index_equals_hudi_index(base: Path, tmp_path: Path) -> None:
    storage = Storage(str(base))
    config = TableConfig.load(storage, SystemClock())
    timeline = Timeline.load(storage, config)
    table = MetadataTable(storage, config, timeline)
    definition = table.definitions[INDEX]
    groups = len(table.file_groups(INDEX))
    text = record_schema(config.version.metadata_schema)
    opened = TableSnapshot.open(storage, config, SystemClock())
    options = MetadataOptions(min_record_groups=groups, max_record_groups=groups)
    source = Source(opened, options, table.definitions, memory=1 << 30)
    made = SecondaryIndex().initial(source, INDEX)
    assert made.groups == groups
    rows = pa.Table.from_batches([rows for task in made.tasks for rows in derive_rows(task)])
    scratch, logs = Storage(str(tmp_path / "scratch")), []
    for number in range(groups):
        here = rows.filter(pc.equal(rows["route"], f"{INDEX}/{number}"))
        logs.append(f"{number}.log")
        _native.write_metadata_log(
            scratch.native, logs[-1], here, instant="1", avro_schema=text, partition=INDEX
        )
    mine = _native.MetadataPartition(scratch.native, [(None, [log]) for log in logs])
    assert mine.secondary(hashed_by_value=definition.version > 1).num_rows == rows.num_rows
    for value, key in entries(base):
        found = mine.secondary([value or ""], hashed_by_value=definition.version > 1)
        assert key in found["record_key"].to_pylist()


def find_unsupported(definition: IndexDefinition, schema: pa.Schema) -> str | None:
    return SecondaryIndex().find_unsupported(
        INDEX, DefinitionContext(TableConfig({}), {INDEX: definition}, schema)
    )


def test_values_whose_text_is_not_certain_are_refused() -> None:
    one = IndexDefinition(INDEX, "secondary_index", "identity", ("at",), {}, 1)
    for kind in (pa.timestamp("us", "UTC"), pa.date32(), pa.float64(), pa.decimal128(9, 2)):
        assert find_unsupported(one, pa.schema([("at", kind)]))
    for kind in (pa.string(), pa.int32(), pa.int64()):
        assert find_unsupported(one, pa.schema([("at", kind)])) is None
    assert find_unsupported(one, pa.schema([("other", pa.string())]))


def test_secondary_index_needs_record_index(base: Path) -> None:
    path = base / ".hoodie/hoodie.properties"
    text = path.read_text()
    path.write_text(
        "".join(
            line.replace("record_index,", "") + "\n"
            for line in text.splitlines()
            if "checksum" not in line
        )
    )
    rows = pyhudi.open_table(str(base)).scan().to_arrow().slice(0, 1)
    with pytest.raises(UnsupportedTableFeature, match=INDEX):
        pyhudi.open_table(str(base)).upsert(rows)
