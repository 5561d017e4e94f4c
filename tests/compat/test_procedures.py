"""Hudi's procedures go through a history of commits and services that pyhudi wrote.

`make test` takes a short one, `make test-procedures` one of 120 commits.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.config.actions import CLEAN, ROLLBACK
from pyhudi.slices.file_system_view import FileSystemView
from tests.helpers import long_history
from tests.helpers.oracle.client import JSON, HudiOracle

COMMITS = int(os.environ.get("PYHUDI_PROCEDURE_COMMITS", "24"))
LIMIT = "limit => 100000"

pytestmark = pytest.mark.slow


class Procedures:
    """The procedures on one table."""

    def __init__(self, hudi: HudiOracle, table: HudiTable) -> None:
        self._hudi = hudi
        self._table = table

    @property
    def release(self) -> str:
        """The release of Hudi."""
        return self._hudi.hudi

    def call(self, procedure: str) -> list[JSON]:
        """Rows of the answer."""
        answer = self._hudi.call(self._table.uri, procedure)
        rows: list[JSON] = answer["rows"]
        assert len(rows) == answer["count"], "the oracle left rows out"
        return rows

    def column(self, procedure: str, name: str) -> list[Any]:
        """One column of the answer, in order."""
        return sorted(row[name] for row in self.call(procedure))


@pytest.mark.parametrize(
    ("hudi", "version"), [("0.15.0", 6), ("1.0.2", 8), ("1.2.0", 9)], indirect=["hudi"]
)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_procedures_agree_with_a_history_of_pyhudi(
    kind: Any, hudi: HudiOracle, version: int, tmp_path: Path
) -> None:
    table = long_history.write(tmp_path / "t", version, kind, COMMITS)
    procedures = Procedures(hudi, table)
    _compare_timeline(procedures, table)
    _compare_files(procedures, table)
    _compare_sizes(procedures, table)
    rows = _rows(table)
    assert _rows_of_hudi(hudi, table) == rows
    _repair_nothing(procedures, table)
    assert _rows(table.refresh()) == rows

    saved = table.state.timeline.commits[-1].requested
    procedures.call(f"create_savepoint(commit_time => '{saved}')")
    assert saved in table.refresh().savepoints().column("instant").to_pylist()
    procedures.call(f"delete_savepoint(instant_time => '{saved}')")
    assert saved not in table.refresh().savepoints().column("instant").to_pylist()

    if kind == "mor":
        procedures.call("run_compaction(op => 'scheduleandexecute')")
    procedures.call("run_clustering(op => 'scheduleandexecute')")
    procedures.call("run_clean(retain_commits => 2)")
    procedures.call(
        "archive_commits(min_commits => 4, max_commits => 5, retain_commits => 3, "
        "enable_metadata => true)"
    )
    table = table.refresh()
    assert _rows(table) == rows == _rows_of_hudi(hudi, table)
    assert table.check().ok
    table.upsert(long_history.TABLE.rows([1, 999], v=-1, ts=10**6))
    table.maintain()
    assert table.check().ok
    _compare_files(procedures, table.refresh())
    assert _rows_of_hudi(hudi, table) == _rows(table)


def _compare_timeline(procedures: Procedures, table: HudiTable) -> None:
    timeline, history = table.state.timeline, table.history().to_pylist()
    commits = procedures.call(f"show_commits({LIMIT})")
    assert {row["commit_time"]: row["total_bytes_written"] for row in commits} == {
        row["instant"]: row["bytes"] for row in history if row["bytes"] is not None
    }
    assert not any(row["total_errors"] for row in commits)
    assert len(commits) == len(timeline.commits)

    newest = timeline.commits[-1]
    files = procedures.call(f"show_commit_files(instant_time => '{newest.requested}', {LIMIT})")
    by_instant = {row["instant"]: row for row in history}
    assert len(files) == by_instant[newest.requested]["files"]

    saved = table.savepoints().column("instant").to_pylist()
    assert procedures.column("show_savepoints()", "savepoint_time") == saved
    if procedures.release == "1.2.0":  # older ones have no such procedure
        cleans = [one.requested for one in timeline.filter_completed(CLEAN)]
        assert procedures.column(f"show_cleans({LIMIT})", "clean_time") == cleans
    rollbacks = [one.requested for one in timeline.filter_completed(ROLLBACK)]
    assert procedures.column(f"show_rollbacks({LIMIT})", "instant") == rollbacks
    by_operation = {
        operation: sorted(row["instant"] for row in history if row["operation"] == operation)
        for operation in ("COMPACT", "CLUSTER")
    }
    if table.type == "mor":
        compactions = procedures.column(f"show_compaction({LIMIT})", "timestamp")
        assert compactions == by_operation["COMPACT"]
    clusterings = procedures.column(f"show_clustering({LIMIT})", "timestamp")
    assert clusterings == by_operation["CLUSTER"]

    earlier = table.history(archived=True).to_pylist()
    archived = {row["instant"] for row in earlier if row["bytes"] is not None}
    archived -= by_instant.keys()
    assert archived or COMMITS < 20
    shown = procedures.column(
        f"show_archived_commits({LIMIT}, start_ts => '20200101000000000', end_ts => '2999')",
        "commit_time",
    )
    assert set(shown) == archived


def _compare_files(procedures: Procedures, table: HudiTable) -> None:
    base = Path(table.uri)
    view = FileSystemView(table.storage, table.config, table.state.timeline)
    checked = procedures.call(f"validate_metadata_table_files(verbose => true, {LIMIT})")
    for row in checked:
        assert row["is_present_in_fs"] == row["is_present_in_metadata"], row
        assert row["fs_size"] == row["metadata_size"], row
    current = 0
    for city in long_history.CITIES:
        names = {path.name for path in (base / city).iterdir() if _is_data(path)}
        assert {row["file_name"] for row in checked if row["partition"] == city} == names
        shown = procedures.call(f"show_metadata_table_files(partition => '{city}', {LIMIT})")
        assert {row["file_path"] for row in shown} == names
        current += len(procedures.call(f"show_fsview_latest(partition_path => '{city}', {LIMIT})"))
    assert current == len(view.slices())
    assert not procedures.call(f"show_invalid_parquet(path => '{base}')")


def _compare_sizes(procedures: Procedures, table: HudiTable) -> None:
    base = Path(table.uri)
    details = procedures.call("show_fs_path_detail(path => '{base}', is_sub => true)")
    sizes = {
        Path(row["storage_path"]).name: (row["file_num"], row["storage_size"]) for row in details
    }
    files = []
    for city in long_history.CITIES:
        stored = [path for path in (base / city).iterdir() if path.suffix != ".crc"]
        assert sizes[city] == (len(stored), sum(path.stat().st_size for path in stored))
        files += [path for path in stored if _is_data(path)]
    by_commit: dict[str, list[int]] = {}
    for path in files:
        by_commit.setdefault(_instant(path), []).append(path.stat().st_size)
    shown = {
        row["commit_time"]: (row["num_files"], row["min"], row["max"])
        for row in procedures.call(f"stats_file_sizes(partition_path => '*', {LIMIT})")
        if row["commit_time"].isdigit()  # neither all nor the files of partition metadata
    }
    assert shown == {at: (len(size), min(size), max(size)) for at, size in by_commit.items()}


def _instant(path: Path) -> str:
    """The instant in the name of a data file."""
    if path.name.startswith("."):
        return path.name.split(".log.")[0].rsplit("_", 1)[1]
    return path.stem.rsplit("_", 1)[1]


def _repair_nothing(procedures: Procedures, table: HudiTable) -> None:
    repaired = procedures.call("repair_add_partition_meta(dry_run => true)")
    assert all(row["metadata_is_present"] == "Yes" for row in repaired)
    assert procedures.call("repair_corrupted_clean_files()") == [{"result": True}]
    for city in long_history.CITIES:
        procedures.call(
            f"repair_deduplicate(table => '{{table}}', duplicated_partition_path => '{city}', "
            f"repaired_output_path => '{table.uri}.repaired', dry_run => true)"
        )


def _is_data(path: Path) -> bool:
    return path.name.endswith(".parquet") or ".log." in path.name


def _rows(table: HudiTable) -> list[tuple[Any, ...]]:
    return _sorted_values(table.to_arrow().to_pylist())


def _rows_of_hudi(hudi: HudiOracle, table: HudiTable) -> list[tuple[Any, ...]]:
    return _sorted_values(hudi.read(table.uri)["rows"])


def _sorted_values(rows: list[JSON]) -> list[tuple[Any, ...]]:
    """Values in one order of columns: Hudi 0.15 reads partition columns last."""
    return sorted(tuple(row[name] for name in long_history.TABLE.schema.names) for row in rows)
