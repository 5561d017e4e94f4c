"""Writers of the format "pyhudi" as Spark calls them, in one process without a session."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.spark.types import spark_schema, wire_schema
from pyhudi.storage.storage import Storage

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # Defaults that differ from Hudi's.
    pytest.mark.skipif(
        int(pyspark.__version__.split(".")[0]) < 4, reason="Spark 3.5 has no data sources in Python"
    ),
]

W = "hoodie.datasource.write."
TRIPS = {W + "recordkey.field": "id", W + "precombine.field": "v"}


def rows(*pairs: tuple[str | None, int]) -> pa.Table:
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    return pa.table({"id": [key for key, _ in pairs], "v": [v for _, v in pairs]}, schema)


def content(base: Path) -> dict[str, int]:
    found = pyhudi.open_table(base).scan(["id", "v"]).to_arrow().to_pylist()
    return {row["id"]: row["v"] for row in found}


def staged(base: Path) -> list[Path]:
    return list(base.glob(".hoodie/.temp/*"))


def save(table: pa.Table, base: Path, options: dict[str, str], *, overwrite: bool = False) -> None:
    from pyhudi.spark.source import HudiDataSource  # noqa: PLC0415

    source = HudiDataSource({**options, "path": str(base)})
    writer = pickle.loads(
        pickle.dumps(source.writer(spark_schema(wire_schema(table.schema)), overwrite))
    )  # noqa: S301
    try:
        writer.commit([writer.write(iter(part.to_batches())) for part in (table[:1], table[1:])])
    except Exception:
        writer.abort([])
        raise


def stream(table: pa.Table, base: Path, batch: int, checkpoint: Path, **options: str) -> None:
    from pyhudi.spark.source import HudiDataSource  # noqa: PLC0415

    options = {**TRIPS, **options, "path": str(base), "checkpointlocation": str(checkpoint)}
    writer = HudiDataSource(options).streamWriter(spark_schema(table.schema), overwrite=False)
    writer.commit([writer.write(iter(table.to_batches())), None], batch)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_operations_run_on_staged_rows(tmp_path: Path, table_type: str) -> None:
    options = {**TRIPS, W + "partitionpath.field": "p", W + "table.type": table_type}

    def wrote(operation: str, keys: str, v: int, **more: str) -> dict[str, int]:
        table = pa.table({"id": list(keys), "p": [str(ord(key) % 2) for key in keys]})
        table = table.append_column(
            "V" if operation == "upsert" else "v", pa.array([v] * len(keys))
        )
        named = {W + "operation": operation} if operation else {}
        named |= {W + name: value for name, value in more.items()}
        save(table, tmp_path, {**options, **named, "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"})
        assert not staged(tmp_path)
        return content(tmp_path)

    assert wrote("", "abcd", 1) == {"a": 1, "b": 1, "c": 1, "d": 1}
    assert wrote("upsert", "ab", 2) == {"a": 2, "b": 2, "c": 1, "d": 1}
    assert wrote("insert", "e", 3) == {"a": 2, "b": 2, "c": 1, "d": 1, "e": 3}
    assert wrote("bulk_insert", "f", 4) == {"a": 2, "b": 2, "c": 1, "d": 1, "e": 3, "f": 4}
    assert wrote("delete", "af", 0) == {"b": 2, "c": 1, "d": 1, "e": 3}
    assert wrote("insert_overwrite", "h", 5) == {"c": 1, "e": 3, "h": 5}
    assert wrote("delete_partition", "h", 0) == {"c": 1, "e": 3}
    assert wrote("delete_partition", "h", 0, **{"partitions.to.delete": "*"}) == {}
    assert wrote("insert_overwrite_table", "xy", 6) == {"x": 6, "y": 6}
    history = pyhudi.open_table(tmp_path).history().column("operation").to_pylist()
    assert history[0] == "INSERT_OVERWRITE_TABLE"
    assert len(history) == 9


def test_missing_columns_need_option(tmp_path: Path) -> None:
    save(rows(("a", 1)).append_column("w", pa.array([7])), tmp_path, TRIPS)
    with pytest.raises(pyhudi.SchemaMismatch, match="missing the columns w"):
        save(rows(("b", 1)), tmp_path, TRIPS)
    for operation in ("upsert", "insert_overwrite_table"):
        options = {W + "operation": operation, W + "reconcile.schema": "true"}
        save(rows(("b", 1)), tmp_path, {**TRIPS, **options})
    found = pyhudi.open_table(tmp_path).scan().to_arrow().to_pylist()
    assert found == [{"id": "b", "v": 1, "w": None}]


def test_stages_of_failed_drivers_are_removed(tmp_path: Path) -> None:
    from pyhudi.spark.staged_rows import Stage  # noqa: PLC0415

    save(rows(("a", 1), ("b", 1)), tmp_path, TRIPS)
    storage = Storage(str(tmp_path))
    active, killed, remote, straggler = (Stage.create(storage, SystemClock()) for _ in range(4))
    for stage in (active, killed, remote, straggler):
        stage.write(rows(("c", 1)).to_batches(), SystemClock())
    driver = "from pyhudi.txn.process_liveness import owner; print(owner('a').decode())"
    ended = subprocess.run(  # noqa: S603
        [sys.executable, "-c", driver], capture_output=True, check=True, text=True
    ).stdout
    (tmp_path / killed.path / "owner").write_text(ended)
    (tmp_path / remote.path / "owner").write_text(json.dumps({"machine": "other", "pid": 1}))
    for path in (tmp_path / remote.path).iterdir():
        os.utime(path, (1, 1))
    (tmp_path / straggler.path / "owner").unlink()
    save(rows(("a", 2)), tmp_path, TRIPS)
    assert staged(tmp_path) == [tmp_path / active.path]
    assert content(tmp_path) == {"a": 2, "b": 1}
    assert pyhudi.open_table(tmp_path).check(deep=True).ok


def test_large_input_is_staged_in_several_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyhudi.spark.staged_rows._FILE_BYTES", 100)
    many = rows(*((f"k{n}", n) for n in range(200)))
    batches = pa.Table.from_batches(
        [part for n in range(0, 200, 10) for part in many[n : n + 10].to_batches()]
    )
    save(batches, tmp_path, {**TRIPS, "memory_limit": "1048576"})
    assert content(tmp_path) == {f"k{n}": n for n in range(200)}


def test_overwrite_that_fails_keeps_table(tmp_path: Path) -> None:
    save(rows(("a", 1)), tmp_path, TRIPS, overwrite=True)
    save(rows(("b", 2)), tmp_path, TRIPS)
    with pytest.raises(pyhudi.SchemaMismatch, match="no record key"):
        save(rows(("c", 3), (None, 3)), tmp_path, TRIPS, overwrite=True)
    assert content(tmp_path) == {"a": 1, "b": 2}
    save(rows(("c", 3)), tmp_path, TRIPS, overwrite=True)
    assert content(tmp_path) == {"c": 3}
    assert pyhudi.open_table(tmp_path).history().num_rows == 1
    assert not staged(tmp_path)


@pytest.mark.parametrize(
    ("options", "overwrite", "message"),
    [
        ({W + "recordkey.field": "v"}, False, "the record key is 'v'"),
        ({"as_of": "2023"}, False, "as_of"),
        ({"hoodie.tabel.name": "x"}, False, r"hoodie\.table\.name"),
        ({W + "operation": "delete"}, True, "does not support mode 'overwrite'"),
        ({W + "operation": "insert", "operation": "upsert"}, False, "set twice"),
        ({"memory_limit": "1"}, False, "memory_limit"),
        ({"owner": "me"}, False, "catalog"),
    ],
)
def test_options_are_checked_before_rows_are_staged(
    tmp_path: Path, options: dict[str, str], overwrite: bool, message: str
) -> None:
    save(rows(("a", 1)), tmp_path, TRIPS)
    with pytest.raises(ConfigError, match=message):
        save(rows(("b", 1)), tmp_path, {**TRIPS, **options}, overwrite=overwrite)
    assert not staged(tmp_path)
    assert content(tmp_path) == {"a": 1}


def test_option_names_are_case_insensitive(tmp_path: Path) -> None:
    """Spark passes them in lower case."""
    lower = {name.lower(): value for name, value in TRIPS.items()}
    save(rows(("a", 1)), tmp_path, {**lower, "HOODIE.TABLE.NAME": "trips"})
    assert pyhudi.open_table(tmp_path).name == "trips"


def test_session_times_do_not_fit_bare_timestamps(tmp_path: Path) -> None:
    """Batches have the zone of the session, which no worker of the driver knows."""
    bare = pa.schema([("id", pa.string()), ("v", pa.timestamp("us"))])
    pyhudi.create_table(tmp_path, bare, key="id")
    zoned = pa.table({"id": ["a"], "v": pa.array([0], pa.timestamp("us", "America/New_York"))})
    with pytest.raises(pyhudi.SchemaMismatch, match="time zone"):
        save(zoned, tmp_path, {})
    assert pyhudi.open_table(tmp_path).history().num_rows == 0


def test_stream_batch_is_written_once(tmp_path: Path) -> None:
    base, checkpoint = tmp_path / "t", tmp_path / "c"
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text('{"id": "q1"}')
    for batch, value in ((0, 1), (0, 9), (1, 2), (1, 9)):
        stream(rows(("a", value)), base, batch, checkpoint)
    assert content(base) == {"a": 2}
    stream(rows(("a", 3)), base, 0, checkpoint, identifier="other")
    assert content(base) == {"a": 3}
    assert pyhudi.open_table(base).history().num_rows == 3
    (checkpoint / "metadata").write_text('{"id": "q2"}')
    with pytest.raises(ConfigError, match="another identifier"):
        stream(rows(("a", 4)), base, 1, checkpoint)
    assert not staged(base)


def test_stream_refuses_complete_output_and_unknown_checkpoint(tmp_path: Path) -> None:
    from pyhudi.spark.source import HudiDataSource  # noqa: PLC0415

    source = HudiDataSource({**TRIPS, "path": str(tmp_path / "t")})
    schema = spark_schema(rows(("a", 1)).schema)
    with pytest.raises(UnsupportedTableFeature, match="complete"):
        source.streamWriter(schema, overwrite=True)
    with pytest.raises(ConfigError, match="checkpointLocation"):
        source.streamWriter(schema, overwrite=False)
    assert not (tmp_path / "t").exists()
