"""Tables that are written through Spark, read and written on by Apache Hudi."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pyhudi
from tests.helpers.oracle.client import HudiOracle
from tests.spark.arrow import frame_of

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own warnings are not ours to mend

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.int64())])
DDL = "id string, part string, v bigint"
TABLES = [
    pytest.param("0.15.0", 6, "mor", id="0.15.0"),
    pytest.param("1.0.2", 8, "mor", id="1.0.2"),
    pytest.param("1.2.0", 9, "cow", id="1.2.0"),
]


@pytest.mark.parametrize(("hudi", "version", "kind"), TABLES, indirect=["hudi"])
def test_hudi_reads_and_goes_on(
    hudi: HudiOracle, spark: SparkSession, tmp_path: Path, version: int, kind: Any
) -> None:
    base = tmp_path / "table"
    table = pyhudi.create_table(
        base,
        SCHEMA,
        key="id",
        partition_by="part",
        order_by="v",
        type=kind,
        version=version,
        options={"hoodie.metadata.enable": "true"},
    )
    rows: dict[str, int] = {}

    def given(first: int, count: int, v: int) -> Any:
        rows.update({f"k{n:03}": v for n in range(first, first + count)})
        columns = {
            "id": [f"k{n:03}" for n in range(first, first + count)],
            "part": [f"p{n % 2}" for n in range(first, first + count)],
            "v": [v] * count,
        }
        return frame_of(spark, pa.table(columns, schema=SCHEMA)).repartition(2)

    table.bulk_insert(given(0, 20, 1))
    table.upsert(given(15, 10, 2))
    table.delete_keys(given(3, 2, 0).drop("v"))
    rows = {key: v for key, v in rows.items() if v}
    assert found(hudi, base) == rows
    assert hudi.validate(base)["ok"]
    more = [{"id": f"k{n:03}", "part": f"p{n % 2}", "v": 7} for n in range(22, 28)]
    rows.update({f"k{n:03}": 7 for n in range(22, 28)})
    hudi.write(
        base,
        rows=more,
        schema=DDL,
        options={
            "hoodie.table.name": table.refresh().name,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.precombine.field": "v",
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.metadata.enable": "true",
            "hoodie.write.auto.upgrade": "false",
            "hoodie.upsert.shuffle.parallelism": "2",
            "hoodie.embed.timeline.server": "false",
        },
    )
    table.refresh().upsert(given(26, 4, 9))
    assert found(hudi, base) == rows


def found(hudi: HudiOracle, base: Path) -> dict[str, int]:
    return {row["id"]: row["v"] for row in hudi.read(base)["rows"]}
