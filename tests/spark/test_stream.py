"""Streams from a table and to one: every commit once, across restarts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.config.extra_metadata import STREAM_BATCHES
from pyhudi.errors import ConfigError
from pyhudi.slices.task_packing import PackSizes
from pyhudi.spark import register_source, sink
from pyhudi.spark.stream_sink import DEFAULT_IDENTIFIER, SinkMethod, StreamBatches
from pyhudi.spark.types import spark_schema, wire_schema
from tests.spark.arrow import frame_of

needs_spark4 = pytest.mark.skipif(
    int(pyspark.__version__.split(".")[0]) < 4, reason="Spark 3.5 has no data sources in Python"
)
pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own warnings are not ours to mend

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])


def rows(*pairs: tuple[str, int]) -> pa.Table:
    return pa.table({"id": [key for key, _ in pairs], "v": [v for _, v in pairs]}, SCHEMA)


def create(base: Path, version: int = 9) -> HudiTable:
    return pyhudi.create_table(
        base,
        SCHEMA,
        key="id",
        version=version,
        type="mor",
        options={"hoodie.metadata.enable": "false"},
    )


def content(base: Path) -> dict[str, int]:
    found = pyhudi.open_table(base).scan(["id", "v"]).to_arrow().to_pylist()
    return {row["id"]: row["v"] for row in found}


def drain(
    spark: SparkSession, base: Path, folder: Path, fail: bool = False, **options: Any
) -> list[list[tuple[str, int]]]:
    """Runs a query to its end; what is new of its batches. fail: in the first batch."""
    seen: list[list[tuple[str, int]]] = []

    def take(batch: DataFrame, _: int) -> None:
        seen.append(sorted((row["id"], row["v"]) for row in batch.collect()))
        if fail:
            raise ValueError("as asked")

    frame = spark.readStream.format("pyhudi").options(**options).load(str(base))
    writing = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(folder))
    query = writing.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except Exception:  # PySpark's classes differ between releases
        if not fail:
            raise
    return seen


@needs_spark4
@pytest.mark.parametrize("version", [6, 9])
def test_stream_resumes_at_checkpoint(spark: SparkSession, tmp_path: Path, version: int) -> None:
    register_source(spark)
    base, folder = tmp_path / "table", tmp_path / "checkpoint"
    table = create(base, version)
    table.upsert(rows(("a", 1), ("b", 1)))
    table.upsert(rows(("b", 2)))
    assert drain(spark, base, folder) == [[("a", 1), ("b", 2)]]
    table.upsert(rows(("c", 3)))
    table.upsert(rows(("a", 4)))
    table.upsert(rows(("d", 5)))
    # The batch that fails comes again as it was, though there are more commits by then.
    one: dict[str, Any] = {"max_instants_per_batch": 1}
    assert drain(spark, base, folder, fail=True, **one) == [[("c", 3)]]
    table.upsert(rows(("e", 6)))
    assert drain(spark, base, folder, **one) == [
        [("c", 3)],
        [("a", 4)],
        [("d", 5)],
        [("e", 6)],
    ]
    assert drain(spark, base, folder, **one) == []


@needs_spark4
def test_stream_starts_at_later_instant(spark: SparkSession, tmp_path: Path) -> None:
    register_source(spark)
    base = tmp_path / "table"
    table = create(base)
    table.upsert(rows(("a", 1)))
    table.upsert(rows(("b", 2)))
    first = table.state.timeline.commits[0]
    for number, time in enumerate((first.completed, first.requested)):
        assert drain(spark, base, tmp_path / f"one{number}", begin=time) == [[("b", 2)]]
    # The first batch, which is empty here, has Spark keep where the stream begins.
    assert drain(spark, base, tmp_path / "two", begin="latest") == [[]]
    table.upsert(rows(("c", 3)))
    assert drain(spark, base, tmp_path / "two", begin="latest") == [[("c", 3)]]
    with pytest.raises(Exception, match="is not a time"):
        drain(spark, base, tmp_path / "four", begin="20231301000000")
    small = drain(spark, base, tmp_path / "three", max_bytes_per_batch=1)
    assert small == [[("a", 1)], [("b", 2)], [("c", 3)]]


class Reader:
    """A stream as Spark before 4.2 drives it, which does not tell where the next batch begins."""

    def __init__(self, base: Path) -> None:
        from pyhudi.spark.source import project_query  # noqa: PLC0415
        from pyhudi.spark.stream import HudiStreamReader, stream_query  # noqa: PLC0415

        query = stream_query({"path": str(base)})
        schema = spark_schema(wire_schema(query.rows().schema))
        self.reader = HudiStreamReader(project_query(query, schema), schema, PackSizes())

    def end(self) -> dict[str, str]:
        offset: dict[str, str] = self.reader.latestOffset()
        return offset

    def rows(self, start: dict[str, str], end: dict[str, str]) -> list[tuple[str, int]]:
        parts = self.reader.partitions(start, end)
        batches = [batch for part in parts for batch in self.reader.read(part)]
        return sorted((row["id"], row["v"]) for batch in batches for row in batch.to_pylist())


@needs_spark4
@pytest.mark.parametrize("verb", ["rollback", "restore"])
@pytest.mark.parametrize("version", [6, 9])
def test_stream_raises_after_read_commit_is_rolled_back(
    tmp_path: Path, version: int, verb: str
) -> None:
    """Its offset stays where it is, and a new reader, which knows of none, goes on."""
    base = tmp_path / "table"
    table = create(base, version)
    table.upsert(rows(("a", 1)))
    first = table.state.timeline.commits[-1].requested
    table.upsert(rows(("b", 2)))
    second = table.state.timeline.commits[-1].requested
    reader = Reader(base)
    begin, read = reader.reader.initialOffset(), reader.end()
    assert reader.rows(begin, read) == [("a", 1), ("b", 2)]
    if verb == "restore":
        table.restore(first)
    else:
        table.rollback(second)
    assert reader.end() == read
    fresh = Reader(base)
    back = fresh.end()
    assert back["after"] < read["after"]
    assert fresh.rows(read, back) == []
    assert fresh.end() == back
    pyhudi.open_table(base).upsert(rows(("c", 3)))
    for one, start in ((reader, read), (fresh, back)):
        assert one.rows(start, one.end()) == [("c", 3)]
    # The batch comes again as it is in the checkpoint.
    again = Reader(base)
    assert again.rows(read, back) == []
    assert again.end() == reader.end()


@needs_spark4
def test_stream_raises_after_only_commit_is_rolled_back(tmp_path: Path) -> None:
    base = tmp_path / "table"
    table = create(base)
    table.upsert(rows(("a", 1)))
    reader = Reader(base)
    read = reader.end()
    table.rollback(table.state.timeline.commits[-1].requested)
    assert reader.end() == read
    fresh = Reader(base)
    back = fresh.end()
    assert fresh.rows(read, back) == []
    assert fresh.end() == back
    pyhudi.open_table(base).upsert(rows(("b", 2)))
    assert fresh.rows(back, fresh.end()) == [("b", 2)]


@pytest.mark.spark35
def test_sink_writes_each_batch_once(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "table"
    table = create(base)
    write = sink(base)
    write(frame_of(spark, rows(("a", 1), ("b", 1))), 0)
    write(frame_of(spark, rows(("b", 2))), 1)
    write(frame_of(spark, rows(("b", 9))), 1)
    table.upsert(rows(("c", 3)))  # of another writer, which says nothing of batches
    write(frame_of(spark, rows(("a", 9))), 0)
    assert content(base) == {"a": 1, "b": 2, "c": 3}
    write(frame_of(spark, rows(("a", 4))), 2)
    sink(base, identifier="other")(frame_of(spark, rows(("d", 5))), 0)
    assert content(base) == {"a": 4, "b": 2, "c": 3, "d": 5}
    told = [
        table.refresh().state.timeline.commit_metadata(one).extra_metadata.get(STREAM_BATCHES)
        for one in table.refresh().state.timeline.commits
    ]
    assert told[:3] == [
        json.dumps({DEFAULT_IDENTIFIER: "0"}),
        json.dumps({DEFAULT_IDENTIFIER: "1"}),
        None,
    ]


@pytest.mark.spark35
@pytest.mark.parametrize("verb", ["upsert", "insert"])
def test_sink_skips_batch_of_faster_driver(
    verb: SinkMethod, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver stood still after its look, and Spark has started another one."""
    base = tmp_path / "table"
    table = create(base)
    late, other, looked = sink(base, verb), sink(base, verb), StreamBatches.has

    def overtaken(self: StreamBatches, *given: Any) -> bool:
        found = looked(self, *given)
        monkeypatch.setattr(StreamBatches, "has", looked)
        other(frame_of(spark, rows(("a", 1), ("b", 1))), 0)
        other(frame_of(spark, rows(("c", 2))), 1)
        return found

    monkeypatch.setattr(StreamBatches, "has", overtaken)
    late(frame_of(spark, rows(("a", 1), ("b", 1))), 0)
    timeline = table.refresh().state.timeline
    assert len(timeline.commits) == 2
    assert timeline.pending() == ()
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ["a", "b", "c"]


def test_sink_and_stream_run_in_one_query(spark: SparkSession, tmp_path: Path) -> None:
    """From files to a table and, with the sink's function failing once, without a row lost."""
    base, files = tmp_path / "table", tmp_path / "files"
    create(base)
    write = sink(str(base))
    calls: list[int] = []

    def run(checkpoint: str, *, fail: bool = False) -> None:
        def once(batch: DataFrame, number: int) -> None:
            calls.append(number)
            write(batch, number)
            if fail:
                raise ValueError("after the commit")

        frame = spark.readStream.schema("id string, v long").json(str(files))
        query = frame.writeStream.foreachBatch(once)
        query = query.option("checkpointLocation", str(tmp_path / checkpoint))
        query.trigger(availableNow=True).start().awaitTermination()

    spark.createDataFrame([("a", 1), ("b", 1)], "id string, v long").write.json(str(files))
    with pytest.raises(Exception, match="after the commit"):
        run("one", fail=True)
    commits = len(pyhudi.open_table(base).state.timeline.commits)
    run("one")
    assert calls == [0, 0]
    assert len(pyhudi.open_table(base).state.timeline.commits) == commits == 1
    frame = spark.createDataFrame([("b", 2)], "id string, v long")
    frame.write.mode("append").json(str(files))
    run("one")
    assert content(base) == {"a": 1, "b": 2}
    with pytest.raises(Exception, match="another identifier"):
        run("two")


def test_sink_refuses_unknown_operation() -> None:
    with pytest.raises(ConfigError, match="compact"):
        sink("/table", "compact")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("how", "told"), [({"commit_id": "job-1"}, "commit_id"), ({"sort": "global"}, "'sort'")]
)
def test_sink_refuses_arguments_batches_cannot_use(how: dict[str, Any], told: str) -> None:
    """Under one id all batches but the first would count as written before."""
    with pytest.raises(ConfigError, match=told):
        sink("/table", "upsert", **how)
    sink("/table", "bulk_insert", sort="global", memory_limit=2**30)
