"""Models and sources of dbt-duckdb that are Hudi tables, run by dbt itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi

PROJECT = Path(__file__).parents[2] / "examples" / "dbt_duckdb"
NEW_SEED = """id,city,fare,started
a,oslo,9.5,2026-01-01 10:00:00
b,rome,8,2026-01-01 11:00:00
c,oslo,13.25,2026-01-02 09:00:00
d,bern,1,2026-01-03 09:00:00
"""
DBT = "import sys; from dbt.cli.main import cli; cli(sys.argv[1:])"


def run(project: Path, *arguments: str, fails: bool = False) -> str:
    """Run dbt in a process of its own: the database file is all that it has of an earlier one."""
    done = subprocess.run(
        [sys.executable, "-c", DBT, *arguments],
        cwd=project,
        env=os.environ | {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert bool(done.returncode) == fails, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def rows(project: Path, table: str, *columns: str) -> list[tuple[Any, ...]]:
    handle = pyhudi.open_table(project / "warehouse" / "main" / table)
    assert not handle.check().findings
    result = handle.scan(list(columns)).to_arrow().to_pylist()
    return sorted(tuple(row[name] for name in columns) for row in result)


def query(project: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of a table that DuckDB itself stores."""
    import duckdb

    with duckdb.connect(project / "shop.duckdb", read_only=True) as connection:
        result = connection.sql(f"SELECT * FROM {name} ORDER BY ALL").to_arrow_table()
    return list(result.to_pylist())


def new_project(directory: Path, models: dict[str, str]) -> Path:
    """Make a project with other models than those of the example."""
    project = directory / "shop"
    shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("models"))
    (project / "models").mkdir()
    for name, text in models.items():
        (project / "models" / name).write_text(text, encoding="utf-8")
    return project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example after three builds: the second repeats the first, the third has other seeds."""
    project = tmp_path_factory.mktemp("dbt") / "shop"
    shutil.copytree(PROJECT, project)
    for _ in range(2):
        run(project, "build")
        assert rows(project, "latest_trips", "id", "fare") == [("a", 9.5), ("b", 7.0), ("c", 12.25)]
        assert rows(project, "trips", "id") == [("a",), ("b",), ("c",)]
    (project / "seeds" / "raw_trips.csv").write_text(NEW_SEED, encoding="utf-8")
    run(project, "build", "--vars", "{with_tax: true}")
    return project


def test_store_overwrites_by_default(project: Path) -> None:
    assert rows(project, "trips", "id", "fare") == [("a", 9.5), ("b", 8.0), ("c", 13.25), ("d", 1)]
    assert pyhudi.open_table(project / "warehouse" / "main" / "trips").type == "mor"


def test_store_upserts_and_adds_columns(project: Path) -> None:
    """The model's filter reads the Hudi table: row b, which is older than the table, stays."""
    latest = rows(project, "latest_trips", "id", "fare", "tax")
    assert [row[:2] for row in latest] == [("a", 9.5), ("b", 7.0), ("c", 13.25), ("d", 1.0)]
    assert [row[2] is None for row in latest] == [True, True, False, False]
    table = pyhudi.open_table(project / "warehouse" / "main" / "latest_trips")
    assert table.config.ordering_fields == ("started",)


def test_store_overwrites_partitions(project: Path) -> None:
    """The later builds write rows of one city only."""
    partitions = rows(project, "trips_by_city", "city", "id", "fare")
    assert partitions == [("oslo", "a", 9.5), ("oslo", "c", 13.25), ("rome", "b", 7.0)]


def test_store_makes_views_of_all_rows_and_leaves_no_staged_file(project: Path) -> None:
    fares = query(project, "fares")
    assert fares == [
        {"city": "bern", "fare": 1.0},
        {"city": "oslo", "fare": 22.75},
        {"city": "rome", "fare": 7.0},
    ]
    assert not list(project.glob("*.parquet"))


def test_configure_cursor_registers_tables_of_earlier_processes(project: Path) -> None:
    """A single model reads views that another process made."""
    run(project, "run", "--select", "fares")
    assert len(query(project, "fares")) == 3


def test_full_refresh_overwrites(project: Path) -> None:
    copy = project.parent / "full"
    shutil.copytree(project, copy)
    arguments = ("--select", "trips_by_city", "--full-refresh")
    run(copy, "run", *arguments)
    # The view has the location of the original, which must not change.
    assert rows(project, "trips_by_city", "id") == [("a",), ("b",), ("c",)]
    assert rows(copy, "trips_by_city", "id") == [("a",), ("c",)]


MODES = {
    "merged.sql": """{{ config(hudi={
    'key': 'id', 'operation': 'merge', 'merge_update_columns': ['fare']}) }}
select id, case when id = 'a' then '{{ var("city", "oslo") }}' else city end as city,
    fare + {{ var("more", 0) }} as fare from {{ ref('raw_trips') }}""",
    "inserted.sql": """{{ config(hudi={'key': none, 'operation': 'insert'}) }}
select * from {{ ref('raw_trips') }}""",
    "ignored.sql": """{{ config(hudi={'key': 'id', 'operation': 'upsert'}) }}
select id, fare {% if var('more', 0) %}, 1 as tax {% endif %} from {{ ref('raw_trips') }}""",
    "failed.sql": """{{ config(
    hudi={'key': 'id', 'operation': 'upsert'}, on_schema_change='fail') }}
select id, fare {% if var('more', 0) %}, 1 as tax {% endif %} from {{ ref('raw_trips') }}""",
    "hooked.sql": """{{ config(
    hudi={'key': ['id', 'city'], 'path': 'elsewhere/hooked'}, location='hooked.csv', format='csv',
    post_hook={'sql': "select if(count(*) = 3, 3, error('wrong')) from {{ this }}",
               'transaction': false}) }}
select * from {{ ref('raw_trips') }}""",
    "misspelt.sql": """{{ config(hudi={'key': 'id', 'partitions': 'city'}) }}
select * from {{ ref('raw_trips') }}""",
    "keyless.sql": "select * from {{ ref('raw_trips') }}",
    "empty.sql": """{{ config(hudi={'key': 'id', 'operation': 'upsert'}) }}
select * from {{ ref('raw_trips') }} where false""",
}


def test_store_by_operation_and_schema_rule(tmp_path: Path) -> None:
    project = new_project(tmp_path, MODES)
    output = run(project, "build", fails=True)
    assert "unknown setting 'partitions'" in output
    assert "Did you mean 'partition_by'?" in output
    assert "missing a required argument: 'key'" in output
    assert "ERROR=2" in output
    again = run(project, "run", "--vars", "{more: 1, city: bern}", fails=True)
    assert "ERROR=3" in again
    assert "tax" in again
    assert rows(project, "merged", "id", "city", "fare") == [
        ("a", "oslo", 10.5),
        ("b", "rome", 8.0),
        ("c", "oslo", 13.25),
    ]
    assert len(rows(project, "inserted", "id")) == 6
    assert rows(project, "ignored", "id", "fare") == [("a", 9.5), ("b", 7.0), ("c", 12.25)]
    assert pyhudi.open_table(project / "warehouse" / "main" / "failed").schema.names == [
        "id",
        "fare",
    ]
    assert (project / "hooked.csv").exists()
    assert pyhudi.open_table(project / "elsewhere" / "hooked").config.record_key_fields == (
        "id",
        "city",
    )
    assert rows(project, "empty", "id") == []
    import duckdb

    with duckdb.connect(project / "shop.duckdb", read_only=True) as connection:
        views = connection.sql("SELECT view_name, sql FROM duckdb_views() WHERE NOT internal")
        stored = dict(views.fetchall())
    assert "misspelt" not in stored
    assert "hudi:" in stored["failed"], "a failed model reads its table again"


SOURCES = """version: 2
sources:
  - name: lake
    schema: lake
    config: {plugin: pyhudi}
    tables:
      - name: trips
      - name: filtered
        config: {hudi: {path: warehouse/lake/trips, where: fare > 8, columns: [id, fare]}}
      - name: earlier
        config: {hudi: {path: warehouse/lake/trips, as_of: "INSTANT"}}
      - name: newer
        config: {hudi: {path: warehouse/lake/trips, query: incremental, start: "INSTANT"}}
      - name: changes
        config: {hudi: {path: warehouse/lake/trips, query: changes}}
      - name: misspelt
        config: {hudi: {path: warehouse/lake/trips, filter: fare > 8}}
"""


def test_load_reads_snapshots_ranges_and_changes(tmp_path: Path) -> None:
    reads = ("trips", "filtered", "earlier", "newer", "changes")
    table = "{{ config(materialized='table') }}\nselect * from {{ source('lake', '%s') }}"
    project = new_project(tmp_path, {f"read_{name}.sql": table % name for name in reads})
    trips = pyhudi.create_table(
        project / "warehouse" / "lake" / "trips",
        pa.table({"id": ["a", "b"], "fare": [7.0, 9.0]}),
        key="id",
        options={"hoodie.table.cdc.enabled": True},
    )
    instant = trips.scan().position
    assert instant is not None
    trips.upsert(pa.table({"id": ["b", "c"], "fare": [10.0, 11.0]}))
    sources = project / "models" / "sources.yml"
    sources.write_text(SOURCES.replace("INSTANT", instant), encoding="utf-8")
    for _ in range(2):
        run(project, "build")
        a, b, c = ({"id": key, "fare": fare} for key, fare in (("a", 7), ("b", 10), ("c", 11)))
        assert query(project, "read_trips") == [a, b, c]
        assert query(project, "read_filtered") == [b, c]
        assert query(project, "read_earlier") == [a, {"id": "b", "fare": 9.0}]
        assert query(project, "read_newer") == [b, c]
        assert [row["op"] for row in query(project, "read_changes")] == ["i", "i", "i", "u"]
    (project / "models" / "wrong.sql").write_text(table % "misspelt", encoding="utf-8")
    output = run(project, "run", "--select", "wrong", fails=True)
    assert "scan() has no argument 'filter'" in output
