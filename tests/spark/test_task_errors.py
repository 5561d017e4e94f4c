"""Errors of Spark tasks have the types and fields of other engines, wherever they appear."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import pyhudi
from pyhudi.errors import CommitConflict, CorruptTable, MissingFile
from pyhudi.schema import payloads
from pyhudi.spark import SparkEngine, read, register, register_source, sql, task_errors
from pyhudi.spark.task_errors import original_error, raise_original
from tests.helpers.tables import unpack

pytestmark = [pytest.mark.spark35, pytest.mark.filterwarnings("ignore")]

COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("s", pa.string())])
Action = Callable[[DataFrame, Path], object]


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a log file that cannot be read."""
    base = tmp_path_factory.mktemp("damaged") / "table"
    table = pyhudi.create_table(base, COLUMNS, key="id", type="mor")
    table.bulk_insert(pa.table({"id": range(9), "v": range(9), "s": ["x"] * 9}, COLUMNS))
    table.upsert(pa.table({"id": [1, 2], "v": [5, 6], "s": ["a", "b"]}, COLUMNS))
    (log,) = base.glob(".*.log.*")
    data = log.read_bytes()
    log.write_bytes(data[:-60] + b"\xff" * 30 + data[-30:])
    return base


ACTIONS: dict[str, Action] = {
    "collect": lambda frame, _: frame.where("v > 3").collect(),
    "aggregate": lambda frame, _: frame.groupBy("s").count().collect(),
    "count": lambda frame, _: frame.where("v > 3").count(),
    "pandas": lambda frame, _: frame.toPandas(),
    "write": lambda frame, folder: frame.write.parquet(str(folder / "rows")),
    "view": lambda frame, _: frame.sparkSession.sql("SELECT sum(v) FROM damaged").collect(),
    "sql": lambda frame, _: sql(frame.sparkSession, "UPDATE damaged SET v = v + 1").collect(),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_action_raises_error_of_task(
    spark: SparkSession, damaged: Path, tmp_path: Path, action: str
) -> None:
    register(spark, "damaged", damaged)
    with pytest.raises(CorruptTable, match="is damaged at byte") as caught:
        ACTIONS[action](read(spark, damaged), tmp_path)
    assert ".log." in str(caught.value.file)
    assert caught.value.offset
    assert "\tat " not in str(caught.getrepr(style="short"))


def test_pyspark_text_begins_with_error_of_task(
    spark: SparkSession, damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If PySpark's conversion cannot be replaced, it shows the message, without code or a blob."""
    frame = read(spark, damaged)
    monkeypatch.setattr(task_errors, "original_error", lambda _: None)
    with pytest.raises(Exception, match=r"pyhudi\.errors\.CorruptTable: \.") as caught:
        frame.collect()
    text = str(caught.value)
    head = text[: text.index("pyhudi.errors.CorruptTable")]
    assert "File " not in head
    details = text.split("Details: ")[1].splitlines()[0]
    assert len(details) < 250
    assert type(original_error(text)) is CorruptTable


def test_read_raises_for_missing_file(spark: SparkSession, tmp_path: Path) -> None:
    base = unpack("v9_mor_commit_time", tmp_path)
    frame = read(spark, base)
    for path in base.rglob("*.parquet"):
        path.unlink()
    with pytest.raises(MissingFile) as caught:
        frame.collect()
    assert "refresh()" in caught.value.hint


def test_read_raises_error_of_merger(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_older: pa.RecordBatch, _newer: pa.RecordBatch) -> pa.RecordBatch:
        raise RuntimeError("no rule for these rows")

    strategy = "1897ef5f-18bc-4557-939c-9d6a8afd1519"
    base = unpack("v9_mor_commit_time", tmp_path)
    with (base / ".hoodie" / "hoodie.properties").open("a", encoding="utf-8") as file:
        file.write(f"hoodie.record.merge.mode=CUSTOM\nhoodie.record.merge.strategy.id={strategy}\n")
    monkeypatch.setitem(payloads._registered, strategy, (fail, None))
    with pytest.raises(RuntimeError, match="no rule for these rows") as caught:
        read(spark, base).collect()
    assert ", in fail" in vars(caught.value)["__notes__"][-1]


def test_service_raises_error_of_task_from_one_line(spark: SparkSession, damaged: Path) -> None:
    table = pyhudi.open_table(damaged, engine=SparkEngine(spark))
    with pytest.raises(CorruptTable) as caught:
        table.compact()
    cause = str(caught.value.__cause__)
    assert cause.startswith("In a Spark task on")
    assert "\n" not in cause


def test_conflict_keeps_retry() -> None:
    """A session whose PySpark converts nothing has the same errors in what pyhudi runs."""
    details = '{"error": "pyhudi.errors.CommitConflict", "host": "w1", "retry": true}'
    text = (
        "Task 3 in stage 2.0 failed 4 times\npyhudi.errors.CommitConflict: lost\nHint: Run it.\n"
        f"Details: {details}\n\tat org"
    )
    with pytest.raises(CommitConflict) as caught, raise_original():
        raise RuntimeError(text)
    assert str(caught.value) == "lost\nHint: Run it."
    assert caught.value.retry
    assert str(caught.value.__cause__) == "Task 3 in stage 2.0 failed 4 times"


def test_source_raises_errors_of_planning_and_tasks(
    spark: SparkSession, damaged: Path, tmp_path: Path
) -> None:
    pytest.importorskip("pyspark.sql.datasource", reason="PySpark 3.5 has no data sources")
    register_source(spark)
    with pytest.raises(pyhudi.TableNotFound, match="nothing"):
        spark.read.format("pyhudi").load(str(tmp_path / "nothing"))
    with pytest.raises(CorruptTable, match="is damaged at byte"):
        spark.read.format("pyhudi").load(str(damaged)).collect()
