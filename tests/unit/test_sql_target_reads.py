"""A SQL statement commits only on the rows of the table that it read."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyhudi
from pyhudi.errors import CommitConflict
from tests.helpers.target_reads import COUNTS, STATEMENTS, values, write_before_commits


@pytest.mark.parametrize("name", STATEMENTS)
def test_statement_runs_again_if_rows_that_it_read_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The table is as if the statement had run after the other write."""
    base, expected = tmp_path / "t", tmp_path / "expected"
    change = COUNTS.rows("xy", n=5)
    COUNTS.make(expected).upsert(change)
    pyhudi.sql(STATEMENTS[name], tables={"t": str(expected)})
    COUNTS.make(base)
    with monkeypatch.context() as patch:
        write_before_commits(patch, lambda _: pyhudi.open_table(base).upsert(change), 1)
        pyhudi.open_table(base).sql(STATEMENTS[name])
    assert values(base) == values(expected)


def test_statement_ignores_services_and_other_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction changes no rows, and a statement is a commit of one table."""
    table = COUNTS.make(tmp_path / "t", kind="mor")
    table.upsert(COUNTS.rows("xy", n=5))
    other = COUNTS.make(tmp_path / "other")

    def write(_: int) -> None:
        pyhudi.open_table(tmp_path / "t").compact()
        pyhudi.open_table(tmp_path / "other").upsert(COUNTS.rows("xy", n=9))

    statement = (
        "UPDATE t SET n = (SELECT max(n) FROM t) + (SELECT max(n) FROM other) WHERE id = 'x'"
    )
    with monkeypatch.context() as patch:
        plans = write_before_commits(patch, write, 1)
        table.sql(statement, tables={"other": other})
    assert plans[0] < 3
    assert values(tmp_path / "t") == {"x": 5, "y": 5}


def test_statement_raises_commit_conflict_if_each_attempt_loses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = COUNTS.make(tmp_path / "t")
    options = {"hoodie.write.num.retries.on.conflict.failures": "2"}

    def write(number: int) -> None:
        pyhudi.open_table(tmp_path / "t").upsert(COUNTS.rows("y", n=number))

    loser = pyhudi.open_table(tmp_path / "t", options=options)
    with monkeypatch.context() as patch:
        write_before_commits(patch, write, 99)
        with pytest.raises(CommitConflict, match="changed the table after the statement read it"):
            loser.sql(STATEMENTS["value of another row"])
    assert values(tmp_path / "t")["x"] == 0
    assert table.refresh().check().findings == ()
