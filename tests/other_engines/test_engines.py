"""Ray, Dask, Daft and DataFusion read a table by the examples of the guides in `docs/how-to`."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from tests.helpers.snippets import snippets

GUIDES = Path(__file__).parents[2] / "docs" / "how-to"
PAGES = (GUIDES / "ray-dask-daft.md", GUIDES / "polars-duckdb-pandas.md")
SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("fare", pa.float64())])
CITIES = ("rome", "oslo", "lima")
NUMBERS = "fare > 10 AND fare < 1000"
"""pandas has NaN for null."""

pytestmark = pytest.mark.filterwarnings("ignore")  # What the engines do is theirs.


def block(engine: str) -> str:
    """The block of the guides that imports an engine."""
    own = re.compile(rf"^(import|from) {engine}\b", re.MULTILINE)
    blocks = (block for page in PAGES for block in snippets(page, "engine"))
    (code,) = filter(own.search, blocks)
    return code


def run(engine: str, **names: Any) -> dict[str, Any]:
    names |= {"pa": pa, "pyhudi": pyhudi, "__name__": "snippet"}
    exec(compile(block(engine), f"the example of {engine}", "exec"), names)
    return names


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    fares = [math.nan if number % 50 == 0 else number / 4 for number in numbers]
    cities = [CITIES[number % 3] for number in numbers]
    return pa.table({"id": numbers, "city": cities, "fare": fares}, schema=SCHEMA)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    """Merge-on-read, with log files that change and delete rows of base files."""
    uri = tmp_path_factory.mktemp("tables") / "trips"
    made = pyhudi.create_table(uri, SCHEMA, key="id", partition_by="city", type="mor")
    made.bulk_insert(rows(0, 300))
    made.upsert(rows(200, 200))
    made.delete_keys([5, 6, 7])
    return made


def wanted(table: HudiTable, where: str | None = "fare > 10") -> list[dict[str, Any]]:
    return in_order(table.scan(where=where).to_arrow())


def in_order(found: pa.Table) -> list[dict[str, Any]]:
    plain = found.select(SCHEMA.names).cast(SCHEMA)
    # NaN equals nothing.
    return [
        {**row, "fare": str(row["fare"])} for row in plain.sort_by("id").to_pylist()
    ]  # fmt: skip


def test_ray(table: HudiTable) -> None:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        found = run("ray", parts=table.scan(where="fare > 10").splits())["trips"]
        read = pa.concat_tables(ray.get(found.to_arrow_refs()))
    finally:
        ray.shutdown()
    assert in_order(read) == wanted(table)


def test_dask(table: HudiTable) -> None:
    scan = table.scan(where=NUMBERS)
    found = run("dask", scan=scan, parts=scan.splits())["trips"]
    assert found.npartitions == len(scan.splits())
    assert in_order(pa.Table.from_pandas(found.compute(), preserve_index=False)) == wanted(
        table, NUMBERS
    )
    means = found.groupby("city").fare.mean().compute()
    assert sorted(means.index) == sorted(CITIES)


def test_daft(table: HudiTable) -> None:
    found = run("daft", scan=table.scan())["trips"]
    assert in_order(found.to_arrow()) == wanted(table, None)
    assert found.select("id").count_rows() == table.scan().count()
    daft = pytest.importorskip("daft")
    few = found.where(daft.col("city") == "rome").select("id").to_arrow()
    assert few.num_rows == table.scan(where="city = 'rome'").count()


def test_daft_in_memory(table: HudiTable) -> None:
    daft = pytest.importorskip("daft")
    parts = table.scan(where="fare > 10").splits()
    found = daft.from_arrow(part.to_arrow() for part in parts)
    assert in_order(found.to_arrow()) == wanted(table)


def test_datafusion(table: HudiTable, capfd: pytest.CaptureFixture[str]) -> None:
    context = run("datafusion", scan=table.scan())["context"]
    shown = capfd.readouterr().out
    assert all(city in shown for city in CITIES)

    def asked(query: str) -> pa.Table:
        return pa.Table.from_batches(context.sql(query).collect())

    # NaN is the greatest number, as for DataFusion.
    some = asked("SELECT * FROM trips WHERE fare > 10")
    assert in_order(some) == wanted(table)
    assert any(math.isnan(fare) for fare in some.column("fare").to_pylist())
    assert asked("SELECT id FROM trips WHERE city = 'oslo' AND id < 30").num_rows == (
        table.scan(where="city = 'oslo' AND id < 30").count()
    )
    total = asked("SELECT count(*) AS n, min(id) AS least FROM trips")
    assert total.to_pylist() == [{"n": table.scan().count(), "least": 0}]


def test_arrow_takes_what_the_engines_gave(table: HudiTable, tmp_path: Path) -> None:
    daft, dask = pytest.importorskip("daft"), pytest.importorskip("dask.dataframe")
    target = pyhudi.create_table(tmp_path / "t", SCHEMA, key="id", partition_by="city")
    target.upsert(daft.from_arrow(table.scan().to_arrow()).to_arrow())
    assert in_order(target.scan().to_arrow()) == wanted(table, None)
    given = dask.from_pandas(table.scan(where=NUMBERS).to_pandas(), npartitions=2)
    target.overwrite(given.compute())
    assert in_order(target.scan().to_arrow()) == wanted(table, NUMBERS)
