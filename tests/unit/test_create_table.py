"""Making tables: what is refused beforehand, what a failure leaves, and which options there are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api import create
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, HudiError, SchemaMismatch, UnsupportedTableFeature
from pyhudi.input.conform import conform
from tests.helpers.pairwise import pairwise

ROWS = pa.table({"id": ["a", "b"], "part": ["x", "y/z"], "v": [1, 2], "ts": [1, 1]})
PARTS: dict[str, Any] = {"key": "id", "partition_by": "part", "order_by": "ts"}
CDC = "hoodie.table.cdc.enabled"
MODE = "hoodie.table.cdc.supplemental.logging.mode"


def files(base: Path) -> list[str]:
    return sorted(str(path.relative_to(base)) for path in base.rglob("*"))


class Dying(LocalEngine):
    """Dies when it is to do its share of something."""

    def __init__(self, label: str, error: BaseException) -> None:
        super().__init__(1)
        self._label, self._error = label, error

    def run(self, work: Any, tasks: Any, *, stage: int = 0, label: str = "") -> Any:
        done = super().run(work, tasks, stage=stage, label=label)
        if label.startswith(self._label):
            raise self._error
        return done


@pytest.mark.parametrize("error", [OSError("disk"), KeyboardInterrupt()], ids=["error", "ctrl-c"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_create_leaves_nothing_if_first_write_fails(
    tmp_path: Path, version: int, kind: Any, error: BaseException
) -> None:
    mine = tmp_path / "x" / "notes.txt"
    mine.parent.mkdir()
    mine.write_text("kept")
    engine = Dying("write files", error)
    with pytest.raises(type(error)):
        pyhudi.create_table(tmp_path, ROWS, type=kind, version=version, engine=engine, **PARTS)
    assert files(tmp_path) == ["x", "x/notes.txt"]
    table = pyhudi.create_table(tmp_path, ROWS, type=kind, version=version, **PARTS)
    assert table.scan().count() == 2


def test_create_leaves_nothing_if_metadata_table_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("disk")

    monkeypatch.setattr(create, "build_partitions", full)
    with pytest.raises(OSError, match="disk"):
        pyhudi.create_table(tmp_path, ROWS.schema, **PARTS)
    assert files(tmp_path) == []


def test_create_keeps_foreign_files_on_failure(tmp_path: Path) -> None:
    kept = [tmp_path / ".hoodie" / "mine", tmp_path / "x" / ".hoodie_partition_metadata"]
    kept.append(tmp_path / "x" / "f1-0_0-1-0_20200101000000000.parquet")
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_text("commitTime=20200101000000000")
    engine = Dying("write files", OSError("disk"))
    options = {"hoodie.metadata.enable": False}
    with pytest.raises(OSError, match="disk"):
        pyhudi.create_table(tmp_path, ROWS, engine=engine, options=options, **PARTS)
    assert [tmp_path / name for name in files(tmp_path) if (tmp_path / name).is_file()] == kept


def test_create_keeps_table_of_concurrent_creator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyhudi.create_table(tmp_path, ROWS, **PARTS)
    monkeypatch.setattr(create, "_check_absent", lambda _: None)
    with pytest.raises(ConfigError, match="exists at"):
        pyhudi.create_table(tmp_path, ROWS, **PARTS)
    assert pyhudi.open_table(tmp_path).scan().count() == 2


def test_create_keeps_table_with_completed_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise OSError("disk")

    monkeypatch.setattr("pyhudi.metadata.commit_participant.run_services", failing)
    with suppress(OSError, HudiError):
        pyhudi.create_table(tmp_path, ROWS, **PARTS)
    assert pyhudi.open_table(tmp_path).scan().count() == 2


BAD: list[dict[str, Any]] = [
    {"options": {"hoodie.parquet.max.file.size": "big"}},
    {"options": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.hash.field": "v"}},
    {
        "options": {
            "hoodie.index.type": "BUCKET",
            "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        }
    },
    {"options": {"hoodie.logfile.data.block.format": "hfile"}, "type": "mor"},
    {"options": {"hoodie.keep.min.commits": "30", "hoodie.keep.max.commits": "10"}},
    {"options": {"hoodie.table.timeline.timezone": "Europe/Oslo"}},
    {"options": {"hoodie.datasource.write.hive_style_partitioning": "yes"}},
    {"options": {"hoodie.populate.meta.fields": "off"}},
    {"options": {"hoodie.populate.meta.fields": "false", "hoodie.index.type": "BLOOM"}},
    {"options": {"hoodie.metadata.index.column.stats.column.list": "nowhere"}},
    {"options": {CDC: "true", MODE: "everything"}},
    {"options": {CDC: "maybe"}},
    {"options": {MODE: "OP_KEY_ONLY"}},
    {
        "options": {
            CDC: "true",
            "hoodie.populate.meta.fields": "false",
            "hoodie.metadata.enable": "false",
        }
    },
    {"options": {"hoodie.datasource.write.drop.partition.columns": "true"}},
    {"version": 7},
    {"key": "nowhere"},
]


@pytest.mark.parametrize("how", BAD, ids=str)
@pytest.mark.parametrize("given", [ROWS, ROWS.schema], ids=["rows", "schema"])
def test_bad_arguments_make_no_table(tmp_path: Path, given: Any, how: dict[str, Any]) -> None:
    with pytest.raises((ConfigError, UnsupportedTableFeature)):
        pyhudi.create_table(tmp_path, given, **{**PARTS, **how})
    assert files(tmp_path) == []


def test_create_accepts_every_handle_option(tmp_path: Path) -> None:
    options = {
        "hoodie.metadata.compact.max.delta.commits": 2,
        "hoodie.keep.min.commits": 4,
        "hoodie.keep.max.commits": 8,
        "hoodie.enable.data.skipping": False,
        "_source": "test",
    }
    table = pyhudi.create_table(tmp_path / "t", ROWS, **PARTS, options=options)
    opened = pyhudi.open_table(tmp_path / "t", options=options)
    assert table.options == opened.options
    timeline = table.state.timeline
    assert timeline.last_commit is not None
    assert timeline.commit_metadata(timeline.last_commit).extra_metadata["_source"] == "test"


SLASHES = "hoodie.datasource.write.slash.separated.date.partitioning"
MOMENTS = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
}


@pytest.mark.parametrize(
    ("partition_by", "options", "named"),
    [
        ("part", {"hoodie.datasource.write.hive_style_partitioning": "true"}, "hive_style"),
        ("ts", {**MOMENTS, "hoodie.table.keygenerator.type": "TIMESTAMP"}, "is TIMESTAMP"),
        ("ts:timestamp", MOMENTS, "is CUSTOM"),
        (["part:simple", "id:simple"], {}, "is CUSTOM"),
    ],
)
def test_slashes_in_dates_where_hudi_has_none_are_refused(
    tmp_path: Path, partition_by: Any, options: dict[str, str], named: str
) -> None:
    table = {"key": "id", "partition_by": partition_by, "options": {**options, SLASHES: "TRUE"}}
    with pytest.raises(UnsupportedTableFeature, match=f"{SLASHES} .*{named}"):
        pyhudi.create_table(tmp_path / "t", ROWS, **table)
    assert not (tmp_path / "t").exists()


def test_options_of_creation_are_refused_later(tmp_path: Path) -> None:
    pyhudi.create_table(tmp_path, ROWS, **PARTS)
    with pytest.raises(ConfigError, match="set when a table is created") as error:
        pyhudi.open_table(tmp_path, options={CDC: True})
    assert "create_table" in str(error.value)


@pytest.mark.parametrize(
    ("name", "said", "hint"),
    [
        ("hoodie.compaction.lazy.block.read", "Apache Hudi's compaction", "no effect"),
        ("hoodie.clustering.async.enabled", "Apache Hudi's clustering", "no effect"),
        ("hoodie.cleaner.parallelism", "Apache Hudi's cleaning", "no effect"),
        ("hoodie.datasource.meta.sync.base.path", "Apache Hudi's synchronisation", "no effect"),
        ("hoodie.write.lock.client.wait_time_ms_between_retry", "Apache Hudi's locks", "no effect"),
        ("hoodie.datasource.write.recordkey.field", "no option", "`key`"),
        ("hoodie.datasource.write.operation", "no option", "method"),
        ("hoodie.client.heartbeat.interval_in_ms", "no option", "all writers"),
        ("hoodie.client.heartbeat.tolerable.misses", "no option", "all writers"),
        ("hoodie.parquet.compression.ratio", "no option", "no effect"),
        ("hoodie.parquet.blocksize", "is unknown", "Did you mean 'hoodie.parquet.block.size'?"),
        ("hoodie.metadata.enabled", "is unknown", "Did you mean 'hoodie.metadata.enable'?"),
        ("parquet.page.size", "is unknown", "Did you mean 'hoodie.parquet.page.size'?"),
        ("compression", "is unknown", "begin with hoodie."),
    ],
)
def test_hints_are_near_or_say_what_is_lacking(
    tmp_path: Path, name: str, said: str, hint: str
) -> None:
    pyhudi.create_table(tmp_path / "t", ROWS, **PARTS)
    calls: list[Callable[[], Any]] = [
        lambda: pyhudi.open_table(tmp_path / "t", options={name: "true"}),
        lambda: pyhudi.create_table(tmp_path / "new", ROWS, **PARTS, options={name: "true"}),
    ]
    for refused in calls:
        with pytest.raises(ConfigError) as error:
            refused()
        assert name in str(error.value)
        assert said in str(error.value)
        assert hint in str(error.value)


@pytest.mark.parametrize(
    ("version", "kind", "mode"),
    pairwise((6, 8, 9), ("cow", "mor"), (None, "DATA_BEFORE_AFTER", "data_before", "OP_KEY_ONLY")),
)
def test_changes_of_a_table_of_ones_own(
    tmp_path: Path, version: int, kind: Any, mode: str | None
) -> None:
    options = {CDC: True, **({MODE: mode} if mode else {})}
    table = pyhudi.create_table(
        tmp_path, ROWS, type=kind, version=version, options=options, **PARTS
    )
    table.upsert(pa.table({"id": ["a", "c"], "part": ["x", "x"], "v": [7, 3], "ts": [2, 2]}))
    table.delete_keys(pa.table({"id": ["b"]}))
    found = table.changes().to_arrow().to_pylist()
    told = sorted(
        (row["op"], row["before"] and row["before"]["v"], row["after"] and row["after"]["v"])
        for row in found
    )
    assert told == [("d", 2, None), ("i", None, 1), ("i", None, 2), ("i", None, 3), ("u", 1, 7)]
    properties = pyhudi.open_table(tmp_path).config.properties
    assert properties[MODE] == (mode or "DATA_BEFORE_AFTER").upper()


LISTS = pa.schema(
    [
        ("id", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("deep", pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.list_(pa.int64()))))])),
    ]
)


def listed(tags: Any, deep: Any = None, key: str = "k") -> pa.Table:
    return pa.table({"id": [key], "tags": [tags], "deep": [deep]}, schema=LISTS)


NULL_ELEMENTS = [
    (listed(["x", None]), "'tags'"),
    (listed([], {"m": [("a", [[1, None]])]}), "'deep'.*m.value"),
    (listed([], {"m": [("a", [None])]}), "'deep'.*m.value"),
]


@pytest.mark.parametrize(("bad", "said"), NULL_ELEMENTS)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_null_elements_are_refused_before_a_write_begins(
    tmp_path: Path, kind: Any, bad: pa.Table, said: str
) -> None:
    with pytest.raises(SchemaMismatch, match=said):
        pyhudi.create_table(tmp_path / "new", bad, key="id", type=kind)
    assert not (tmp_path / "new").exists()
    base = tmp_path / "t"
    fine = listed(["x"], {"m": [("a", None), ("b", [[]])]})
    table = pyhudi.create_table(base, fine, key="id", type=kind)
    before = files(base)
    writes: list[Any] = [
        lambda: table.upsert(bad),
        lambda: table.insert(bad),
        lambda: table.bulk_insert(bad),
        lambda: table.overwrite(bad),
        lambda: table.upsert(
            bad.drop_columns(["deep"] if "tags" in said else ["tags"]), partial=True
        ),
        lambda: table.merge(bad).when_matched_update_all().execute(),
        lambda: (
            table.merge(bad.set_column(0, "id", pa.array(["new"])))
            .when_not_matched_insert_all()
            .execute()
        ),
        lambda: table.update("id = 'k'", {"tags": ["x", None]}),
        lambda: table.upsert(large_stream(bad), memory_limit=1 << 20),
    ]
    for write in writes:
        with pytest.raises(SchemaMismatch, match="null element"):
            write()
    assert files(base) == before
    assert table.scan().to_arrow().equals(pyhudi.open_table(base).scan().to_arrow())


def large_stream(last: pa.Table) -> pa.RecordBatchReader:
    """More than a part of memory, with what is wrong at its end."""
    fine = [listed(["x" * 1000], key=f"k{at}") for at in range(1200)]
    batches = pa.concat_tables([*fine, last]).combine_chunks().to_batches(max_chunksize=100)
    return pa.RecordBatchReader.from_batches(LISTS, batches)


def test_create_ignores_values_below_null() -> None:
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, 3]), pa.array(["x", None, "y"]), mask=pa.array([True, False])
    )
    rows = pa.table({"tags": lists})
    assert conform(rows, rows.schema).num_rows == 2
    sliced = pa.table({"tags": pa.array([["x", None], ["y"]])}).slice(1)
    assert conform(sliced, sliced.schema).num_rows == 1
    maps = pa.table(
        {"m": pa.array([[("a", [None])], [("b", [[1]])]], LISTS.field("deep").type[0].type)}
    )
    assert conform(maps.slice(1), maps.schema).num_rows == 1


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("MOR", "mor"), ("Merge_On_Read", "mor"), ("COPY_ON_WRITE", "cow")],
)
def test_create_accepts_long_table_type(tmp_path: Path, given: Any, wanted: str) -> None:
    rows = pa.table({"id": ["a"]})
    assert pyhudi.create_table(tmp_path / "t", rows, key="id", type=given).type == wanted


def test_whether_a_table_exists(tmp_path: Path) -> None:
    assert not pyhudi.table_exists(tmp_path / "t")
    pyhudi.create_table(tmp_path / "t", pa.table({"id": ["a"]}), key="id")
    assert pyhudi.table_exists(tmp_path / "t")
    assert not pyhudi.table_exists(tmp_path)
    with pytest.raises(ConfigError):
        pyhudi.table_exists("")
