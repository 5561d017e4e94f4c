"""The project of `examples/dbt` in dbt: models, seeds, tests and docs on Hudi tables."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from tests.helpers.snippets import snippets

PROJECT = Path(__file__).parents[2] / "examples" / "dbt"
CONF = ("spark.ui.enabled=false", "spark.sql.shuffle.partitions=2", "spark.driver.host=127.0.0.1")
NEW_SEED = """id,city,fare,at
a,oslo,9.5,2026-01-01 10:00:00
b,rome,8,2026-01-01 11:00:00
c,oslo,13.25,2026-01-02 09:00:00
d,bern,1,2026-01-03 09:00:00
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project after two builds: the second one with other seeds and a new column."""
    project = tmp_path_factory.mktemp("dbt") / "shop"
    shutil.copytree(PROJECT, project)
    run(project, "build")
    assert rows(project, "latest_trips", "id", "fare") == [("a", 9.5), ("b", 7.0), ("c", 12.25)]
    (project / "seeds" / "raw_trips.csv").write_text(NEW_SEED, encoding="utf-8")
    run(project, "build", "--vars", "{with_tax: true}")
    return project


def run(project: Path, *arguments: str) -> None:
    """Run dbt in a process of its own: the catalog is all that it has of an earlier one."""
    conf = " ".join(f"--conf {setting}" for setting in CONF)
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"{conf} pyspark-shell",
        "PYTHONWARNINGS": "",
    }
    done = subprocess.run(
        [sys.executable, "run_dbt.py", *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def rows(project: Path, table: str, *columns: str) -> list[tuple[Any, ...]]:
    handle = pyhudi.open_table(project / "spark-warehouse" / "shop.db" / table)
    assert not handle.check().findings
    found = handle.scan(list(columns)).to_arrow().to_pylist()
    return sorted(tuple(row[name] for name in columns) for row in found)


def test_table_has_the_rows_of_the_last_build(project: Path) -> None:
    assert rows(project, "trips", "id", "fare") == [("a", 9.5), ("b", 8.0), ("c", 13.25), ("d", 1)]
    table = pyhudi.open_table(project / "spark-warehouse" / "shop.db" / "trips")
    assert table.type == "mor"


def test_incremental_model_merges_and_adds_columns(project: Path) -> None:
    found = rows(project, "latest_trips", "id", "fare", "tax")
    assert [row[:2] for row in found] == [("a", 9.5), ("b", 7.0), ("c", 13.25), ("d", 1.0)]
    assert [row[2] is None for row in found] == [True, True, False, False]


def test_incremental_model_appends(project: Path) -> None:
    assert [row[0] for row in rows(project, "all_trips", "id")] == ["a", "b", "c", "d"]


def test_incremental_model_overwrites_partitions(project: Path) -> None:
    """The second build writes rows of one city only."""
    found = rows(project, "trips_by_city", "city", "id", "fare")
    assert found == [("oslo", "a", 9.5), ("oslo", "c", 13.25), ("rome", "b", 7.0)]


def test_page_shows_the_runner() -> None:
    page = PROJECT.parents[1] / "docs" / "how-to" / "dbt.md"
    program = (PROJECT / "run_dbt.py").read_text(encoding="utf-8")
    assert snippets(page, "dbt")[0].removeprefix("# run_dbt.py\n") in program


def test_docs_have_the_columns(project: Path) -> None:
    run(project, "docs", "generate")
    catalog = json.loads((project / "target" / "catalog.json").read_text(encoding="utf-8"))
    assert not catalog["errors"]
    nodes = catalog["nodes"]
    columns = nodes["model.shop.trips"]["columns"]
    assert {name: column["type"] for name, column in columns.items()} == {
        "id": "string",
        "city": "string",
        "fare": "double",
        "at": "timestamp",
    }
    assert "tax" in nodes["model.shop.latest_trips"]["columns"]
    assert nodes["model.shop.fares"]["metadata"]["type"] == "view"
