"""The writing verbs on the Spark engine: the same rows as on threads of this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.engine.protocol import Engine
from pyhudi.spark import SparkEngine
from tests.helpers.table_builder import TableBuilder, numbered

pytestmark = [
    pytest.mark.spark35,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own warnings are not ours to mend
]

MIB = 1 << 20


TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered(6)),
        "part": (pa.string(), lambda number: f"p{number % 3}"),
        "v": (pa.int64(), 1),
        "text": (pa.string(), "x" * 400),
    },
    partition_by="part",
    order_by="v",
)


def written(base: Path, kind: Any, form: str, engine: Engine) -> Iterator[list[dict[str, Any]]]:
    """What is in a table after each verb."""
    options = {"hoodie.table.base.file.format": form}
    table = TABLE.make(base, kind=kind, engine=engine, options=options)
    table.bulk_insert(TABLE.rows(range(60), v=1), sort="global")
    yield content(table)
    result = table.upsert(TABLE.rows(range(50, 70), v=2))
    assert (result.rows_inserted, result.rows_updated) == (10, 10)
    yield content(table)
    table.update("v = 2 AND part = 'p1'", {"v": "v + 1"})
    table.delete("part = 'p2' AND v = 1")
    yield content(table)
    merge = table.merge(TABLE.rows(range(60, 80), v=9)).when_matched_update_all(
        where="target.v = 3"
    )
    merge.when_matched_delete().when_not_matched_insert_all().execute()
    yield content(table)
    stream = pa.RecordBatchReader.from_batches(
        TABLE.schema, TABLE.rows(range(6000), v=20).to_batches(500)
    )
    table.upsert(stream, memory_limit=MIB)
    yield content(table)
    clustered = table.cluster(sort_by=["v", "id"], layout="hilbert", memory_limit=MIB)
    assert (clustered.rows_written, clustered.files_written) == (6000, 3)
    yield content(table)
    table.overwrite_partitions(TABLE.rows(range(1), v=5))
    yield content(table)


def content(table: HudiTable) -> list[dict[str, Any]]:
    local = pyhudi.open_table(table.uri)
    found: list[dict[str, Any]] = local.scan(columns=["id", "v"]).to_arrow().to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


@pytest.mark.parametrize(
    ("kind", "form"), [("cow", "parquet"), ("mor", "parquet"), ("mor", "orc"), ("cow", "orc")]
)
def test_verbs_write_the_same_as_in_this_process(
    tmp_path: Path, spark: SparkSession, kind: str, form: str
) -> None:
    local = list(written(tmp_path / "local", kind, form, pyhudi.LocalEngine(2)))
    assert [len(found) for found in local] == [60, 70, 54, 57, 6000, 6000, 4001]
    assert list(written(tmp_path / "spark", kind, form, SparkEngine(spark))) == local
    assert {file.suffix for file in tmp_path.glob("*/p0/*_*_*.*")} >= {f".{form}"}
