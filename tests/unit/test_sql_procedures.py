"""Procedures of SQL call the methods of a table handle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.errors import ConfigError
from pyhudi.sql_statements.procedures import (
    PROCEDURES,
    call_procedure,
    filesystem_view,
    query_timeline,
)
from pyhudi.sql_statements.statement_parser import parse_statement
from pyhudi.sql_statements.statements import Call


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    data = pa.table({"id": ["a", "b"], "part": ["x", "y"], "v": [1, 2]})
    made = pyhudi.create_table(tmp_path / "t", data, key="id", partition_by="part", type="mor")
    made.upsert(data.set_column(2, "v", pa.array([3, 4])))
    return made


def call(table: HudiTable, sql: str) -> list[dict[str, Any]]:
    statement = parse_statement(f"CALL {sql}")
    assert isinstance(statement, Call)
    result: list[dict[str, Any]] = call_procedure(statement, lambda *_: table).to_pylist()
    return result


def test_call_procedure_runs_services(table: HudiTable) -> None:
    (planned,) = call(table, "run_compaction(op => 'schedule', table => 't')")
    assert len(planned["scheduled"]) == 1
    (done,) = call(table, f"run_compaction('t', 'execute', '{planned['scheduled'][0]}')")
    assert done["instants"] == planned["scheduled"]
    (clustered,) = call(
        table, "run_clustering(table => 't', order => 'v, id', predicate => 'part = ''x''')"
    )
    assert clustered["file_groups"] == 1
    (cleaned,) = call(table, "run_clean(table => 't', file_versions_retained => 1)")
    assert cleaned["files_removed"] > 0
    assert call(table, "archive_commits('t', min_commits => 2, max_commits => 3)")


def test_call_procedure_saves_and_restores(table: HudiTable) -> None:
    (saved,) = call(table, "create_savepoint('t', comments => 'before')")
    table.refresh().delete("v > 0")
    with pytest.raises(ConfigError, match="1 is not a savepoint"):
        call(table, "rollback_to_savepoint('t', '1')")
    call(table, f"rollback_to_savepoint('t', '{saved['instant']}')")
    assert table.refresh().count() == 2
    assert [row["comment"] for row in call(table, "show_savepoints('t')")] == ["before"]
    call(table, f"delete_savepoint('t', '{saved['instant']}')")
    (last,) = call(table, "show_commits('t', 1)")
    call(table, f"rollback_to_instant(table => 't', instant_time => '{last['requested']}')")
    assert table.refresh().scan(["v"]).to_arrow()["v"].to_pylist() == [1, 2]


def test_call_procedure_changes_partitions_and_versions(table: HudiTable) -> None:
    call(table, "drop_partition('t', 'x')")
    assert table.refresh().count() == 1
    assert call(table, "downgrade_table('t', 'EIGHT')") == [{"version": 8}]
    assert call(table, "upgrade_table('t', '9')") == [{"version": 9}]
    call(table, "truncate_table('t')")
    assert table.refresh().count() == 0


@pytest.mark.parametrize("name", [name for name in PROCEDURES if name.startswith("show_")])
def test_call_procedure_shows(table: HudiTable, name: str) -> None:
    assert isinstance(call(table, f"{name}('t')"), list)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("run_compaktion('t')", "Did you mean"),
        ("run_compaction(table => 't', opp => 'run')", "has no argument 'opp'"),
        ("run_compaction('t', table => 't')", "gets 'table' twice"),
        ("run_compaction()", "needs table or path"),
        ("run_compaction(table => 't', path => '/t')", "needs table or path"),
        ("run_compaction('t', 'later')", "op is 'later'"),
        ("run_compaction('t', 'run', '1', '2', '3')", "5 positional arguments"),
        ("delete_savepoint('t')", "needs instant_time"),
        ("run_clean('t', retain_commits => 1, hours_retained => 2)", "both"),
        ("run_clustering('t', order_strategy => 'random')", "order_strategy is 'random'"),
        ("show_commits('t', -1)", "limit is -1"),
        ("upgrade_table('t', 'TEN')", "to_version is 'TEN'"),
        ("help('run_clear')", "there is no procedure 'run_clear'"),
    ],
)
def test_call_procedure_error_names_the_cause(table: HudiTable, sql: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call(table, sql)


def test_procedures_of_table_functions(table: HudiTable) -> None:
    assert query_timeline(table.refresh()).num_rows < query_timeline(table, "true").num_rows + 1
    assert filesystem_view(table).num_rows == 2
    assert filesystem_view(table, "x").num_rows == 1
