"""The Spark code of the documentation pages runs and prints what they show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

import pyhudi
from tests.helpers.snippets import Snippet, read_snippets, snippets

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
    if snippets(page, "spark")
]
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("fare", pa.float64()),
        ("ts", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("stale", pa.bool_()),
    ]
)
KEYED: dict[str, Any] = {"key": "id", "partition_by": "city", "order_by": "ts"}


def rows(*fares: float) -> pa.Table:
    at = datetime(2019, 1, 1, tzinfo=timezone.utc)
    given = [
        dict(zip(SCHEMA.names, (f"trip-{n}", "oslo", fare, 5, at, False), strict=True))
        for n, fare in enumerate(fares)
    ]
    return pa.Table.from_pylist(given, SCHEMA)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the table of the pages, of two commits, and what they read besides."""
    table = pyhudi.create_table(
        tmp_path / "trips", rows(3.0, 7.0, 9.0), options={"hoodie.table.cdc.enabled": True}, **KEYED
    )
    table.upsert(rows(4.0, 8.0))
    pyhudi.create_table(tmp_path / "copy", SCHEMA, **KEYED)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for query in SparkSession.builder.getOrCreate().streams.active:
        query.stop()


def code_of(page: Path, lake: Path) -> list[Snippet]:
    """The page's blocks, with places and times of this machine."""
    first, last = pyhudi.open_table(lake / "trips").inspect.commits()["completed"].to_pylist()[:2]
    here = {
        "/lake/trips_new": f"{lake}/made",
        "s3://bucket/lake": str(lake),
        "s3://bucket": str(lake),
        '"/lake/trips", "id string': f'"{lake}/empty", "id string',
        "/lake": str(lake),
        "20231114000000000": first,
        "2023-11-14": first,
        "2023-11-15": last,
    }
    blocks = [snippet for snippet in read_snippets(page) if snippet.tag == "spark"]
    for shown, real in here.items():
        blocks = [replace(block, code=block.code.replace(shown, real)) for block in blocks]
    return blocks


@pytest.mark.skipif(pyspark.__version__ < "4", reason="the pages show what Spark 4 has")
@pytest.mark.filterwarnings("ignore:.*the record index was removed")  # `write` goes by SIMPLE
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_run_in_order(page: Path, lake: Path, spark: SparkSession) -> None:
    more = spark.createDataFrame(rows(5.0, 6.0).to_pandas())
    more.write.parquet(str(lake / "incoming"))
    names: dict[str, Any] = {
        "__name__": "snippet",
        "pyhudi": pyhudi,
        "spark": spark,
        "frame": more,
        "new": more.selectExpr("concat('new ', id) AS id", *SCHEMA.names[1:]),
        "news": more.selectExpr("*", "id = 'trip-1' AS gone"),
    }
    for snippet in code_of(page, lake):
        snippet.run(page, names)
    if "query" in names:
        names["query"].processAllAvailable()
        assert pyhudi.open_table(lake / "copy").scan().count() > 0
    assert pyhudi.open_table(lake / "trips").check(deep=True).findings == ()
