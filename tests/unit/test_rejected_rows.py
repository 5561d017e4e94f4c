"""Rows that break a rule go to another table, and the others are committed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import (
    CommitConflict,
    ConfigError,
    ConstraintViolation,
    SchemaMismatch,
    UnsupportedTableFeature,
    retryable_conflict,
)
from pyhudi.txn.transaction import Transaction
from pyhudi.write.rejected_rows import INSTANT, REASON

SCHEMA = pa.schema(
    [("id", pa.string()), pa.field("n", pa.int64(), nullable=False), ("tip", pa.int64())]
)
ROWS: list[dict[str, Any]] = [
    {"id": "a", "n": 1, "tip": 1, "double": 2},
    {"id": "b", "n": -1, "tip": None, "double": -2},
    {"id": "c", "n": None, "tip": 3, "double": None},
    {"id": "d", "n": 4, "tip": 3, "double": 9},
    {"id": "e", "n": -5, "tip": 9, "double": 0},
]
REASONS = {
    "b": "the constraint 'positive', n >= 0, is false",
    "c": "column 'n' is null, but the table requires a value",
    "d": "the generated column 'double' is not n * 2",
    "e": "the generated column 'double' is not n * 2",
}


@pytest.fixture(params=[(6, "mor"), (8, "cow"), (9, "mor")], ids=str)
def table(tmp_path: Path, request: pytest.FixtureRequest) -> pyhudi.HudiTable:
    version, kind = request.param
    return pyhudi.create_table(
        tmp_path / "t",
        SCHEMA,
        key="id",
        version=version,
        type=kind,
        constraints={"positive": "n >= 0", "tip": "tip <= n"},
        generated={"double": "n * 2"},
    )


def rejected(base: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pyhudi.open_table(base).to_arrow().sort_by("id").to_pylist()
    return rows


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
def test_rejected_rows_go_to_another_table(
    tmp_path: Path, table: pyhudi.HudiTable, operation: str
) -> None:
    write = getattr(table, operation)
    with pytest.raises((ConstraintViolation, SchemaMismatch)):
        write(ROWS)
    result = write(ROWS, rejected=tmp_path / "bad")
    assert (result.rows_inserted, result.rows_rejected) == (1, 4)
    assert table.refresh().to_arrow().to_pylist() == [ROWS[0]]
    bad = rejected(tmp_path / "bad")
    assert {row["id"]: row[REASON] for row in bad} == REASONS
    assert {row[INSTANT] for row in bad} == {result.instant}
    assert [{name: row[name] for name in ROWS[0]} for row in bad] == ROWS[1:]
    assert not table.check(deep=True)


def test_good_rows_create_no_table(tmp_path: Path, table: pyhudi.HudiTable) -> None:
    result = table.upsert(ROWS[:1], rejected=tmp_path / "bad")
    assert result.rows_rejected == 0
    assert not pyhudi.table_exists(tmp_path / "bad")
    assert not table.upsert(ROWS[:0], rejected=tmp_path / "bad").committed


def test_commit_without_good_rows_counts_them(tmp_path: Path, table: pyhudi.HudiTable) -> None:
    result = table.upsert(ROWS[1:3], rejected=tmp_path / "bad", commit_id="one")
    assert result.committed
    again = table.upsert(ROWS[1:3], rejected=tmp_path / "bad", commit_id="one")
    assert again.was_written_before
    assert again.rows_rejected == result.rows_rejected == 2
    assert len(rejected(tmp_path / "bad")) == 2


def test_table_of_rejected_rows_gets_new_columns(tmp_path: Path, table: pyhudi.HudiTable) -> None:
    table.upsert(ROWS, rejected=str(tmp_path / "bad"))
    other = pyhudi.open_table(tmp_path / "bad")
    new = [{**ROWS[1], "new": "x"}, {**ROWS[0], "new": "y"}]
    table.upsert(new, schema_mode="merge", rejected=other)
    assert sorted(row["new"] or "" for row in rejected(tmp_path / "bad")) == ["", "", "", "", "x"]


def test_crash_between_both_commits_loses_and_repeats_nothing(
    tmp_path: Path, table: pyhudi.HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        publish = Transaction._publish

        def crash_own(txn: Any, *args: Any) -> None:
            if txn._table.storage.uri == table.uri:
                crash()
            publish(txn, *args)

        patch.setattr(Transaction, "_publish", crash_own)
        with pytest.raises(KeyboardInterrupt):
            table.upsert(ROWS, rejected=tmp_path / "bad", commit_id="batch 7")
    assert len(rejected(tmp_path / "bad")) == 4
    assert table.refresh().count() == 0
    result = table.upsert(ROWS, rejected=tmp_path / "bad", commit_id="batch 7")
    assert result.rows_rejected == 4
    assert table.refresh().count() == 1
    assert len(rejected(tmp_path / "bad")) == 4


def test_retry_after_a_conflict_repeats_no_rejected_row(
    tmp_path: Path, table: pyhudi.HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = Transaction._publish
    failed: list[Any] = []

    def fail_once(txn: Any, *args: Any) -> None:
        if txn._table.storage.uri == table.uri and not failed:
            failed.append(txn)
            raise retryable_conflict("another writer was faster")
        publish(txn, *args)

    monkeypatch.setattr(Transaction, "_publish", fail_once)
    result = table.upsert(iter(pa.Table.from_pylist(ROWS).to_batches()), rejected=tmp_path / "bad")
    assert failed
    assert result.rows_rejected == 4
    assert len(rejected(tmp_path / "bad")) == 4
    assert table.refresh().count() == 1


def test_validators_see_only_the_good_rows(tmp_path: Path, table: pyhudi.HudiTable) -> None:
    """A commit that a validator rejects stores no rejected row either."""

    def refuse(commit: pyhudi.PendingCommit) -> bool:
        assert commit.rows().count() == 1
        return False

    with pytest.raises(ConstraintViolation, match="refuse"):
        table.with_validators(refuse).upsert(ROWS, rejected=tmp_path / "bad")
    assert not pyhudi.table_exists(tmp_path / "bad")


def test_arguments_are_checked(tmp_path: Path, table: pyhudi.HudiTable) -> None:
    with pytest.raises(ConfigError, match="the table itself"):
        table.upsert(ROWS, rejected=table)
    with pytest.raises(ConfigError, match="rejected is 5"):
        table.upsert(ROWS, rejected=5)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedTableFeature, match=r"partial update[^$]*Leave partial out"):
        table.upsert(ROWS, rejected=tmp_path / "bad", partial=True)
    with pytest.raises(SchemaMismatch, match="column 'unknown'"):
        table.upsert([{**ROWS[0], "unknown": 1}], rejected=tmp_path / "bad")
    pyhudi.create_table(tmp_path / "keyed", SCHEMA, key="id")
    with pytest.raises((ConfigError, CommitConflict), match="keyed"):
        table.upsert(ROWS, rejected=tmp_path / "keyed")
