"""The time of a statement: one value in each call, which pruning and retries see too."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.errors import ConfigError, SchemaMismatch

NOW = datetime(2026, 3, 31, 12, 30, 59, 900_000)  # noqa: DTZ001
ROWS = pa.table(
    {
        "id": ["a", "b", "c"],
        "at": pa.array([NOW - timedelta(hours=hours) for hours in (1, 25, 49)], pa.timestamp("us")),
        "seen": pa.array([None] * 3, pa.timestamp("us", "UTC")),
        "again": pa.array([None] * 3, pa.timestamp("us")),
        "day": pa.array([date(2026, 3, 31), date(2026, 3, 30), None], pa.date32()),
        "tags": pa.array([["x"], None, []], pa.list_(pa.string())),
    }
)


@pytest.fixture(name="table")
def _table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pyhudi.HudiTable:
    table = pyhudi.create_table(tmp_path / "t", ROWS, key="id")
    ticks = count(int((NOW - datetime(1970, 1, 1)) / timedelta(milliseconds=1)))  # noqa: DTZ001
    monkeypatch.setattr(SystemClock, "now_ms", lambda _: next(ticks))
    return table


def ids(rows: pa.Table) -> list[str]:
    return sorted(rows["id"].to_pylist())


def test_scan_now_filters_and_prunes(table: pyhudi.HudiTable) -> None:
    scan = table.scan(where="at > now() - INTERVAL '1 day'")
    assert ids(scan.to_arrow()) == ["a"]
    assert scan.request.where is not None
    ((column, op, values),) = scan.request.where.conjuncts
    assert (column, op) == ("at", ">")
    assert timedelta(0) <= values[0].as_py() - (NOW - timedelta(days=1)) < timedelta(seconds=1)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("day = current_date", ["a"]),
        ("day >= current_date() - INTERVAL '1 day'", ["a", "b"]),
        ("day >= now() - INTERVAL '1 day'", ["a"]),
        ("CURRENT_TIMESTAMP - at > INTERVAL '1 day'", None),
        ("at < current_timestamp - INTERVAL 2 DAYS", ["c"]),
        ("extract(year FROM NOW()) = 2026 AND id = 'b'", ["b"]),
        ("id = 'now()'", []),
    ],
)
def test_scan_current_time(table: pyhudi.HudiTable, where: str, expected: list[str] | None) -> None:
    if expected is None:
        with pytest.raises((ConfigError, SchemaMismatch)):
            table.scan(where=where)
    else:
        assert ids(table.scan(where=where).to_arrow()) == expected


def test_update_uses_one_time_for_all_values(table: pyhudi.HudiTable) -> None:
    values = {"seen": "now()", "again": "current_timestamp", "day": "current_date"}
    table.update("at < now()", values)
    rows = table.to_arrow()
    assert rows["seen"].cast(pa.timestamp("us")).unique() == rows["again"].unique()
    assert len(rows["again"].unique()) == 1
    assert rows["day"].unique().to_pylist() == [rows["again"][0].as_py().date()]


def test_merge_and_sql_use_one_time(table: pyhudi.HudiTable) -> None:
    table.sql(
        """MERGE INTO t USING (SELECT 'a' AS id UNION ALL SELECT 'd') AS s ON t.id = s.id
        WHEN MATCHED AND t.at < now() THEN UPDATE SET again = now()
        WHEN NOT MATCHED THEN INSERT (id, again) VALUES (s.id, current_timestamp)"""
    )
    rows = table.scan(where="again IS NOT NULL").to_arrow()
    assert ids(rows) == ["a", "d"]
    assert len(rows["again"].unique()) == 1
    table.sql("DELETE FROM t WHERE at < now() - INTERVAL '2 days'")
    assert ids(table.to_arrow()) == ["a", "b", "d"]


def test_transaction_fixes_time_when_a_method_is_called(table: pyhudi.HudiTable) -> None:
    with table.transaction() as tx:
        tx.update("at < now()", {"again": "now()"})
        tx.delete("day < current_date")
    assert ids(table.to_arrow()) == ["a", "c"]


@pytest.mark.parametrize("condition", ["at <= now()", "day <= current_date"])
def test_constraint_refuses_current_time(tmp_path: Path, condition: str) -> None:
    with pytest.raises(ConfigError, match="time of a call") as raised:
        pyhudi.create_table(tmp_path / "c", ROWS, key="id", constraints={"past": condition})
    assert "CAST(" in raised.value.hint


def test_update_sets_array_literals(table: pyhudi.HudiTable) -> None:
    table.update("id = 'a'", {"tags": "['p', lower('Q')]"})
    table.update("id = 'b'", {"tags": "array()"})
    table.sql("UPDATE t SET tags = ARRAY['z'] WHERE array_contains(tags, 'q')")
    assert dict(
        zip(*(table.to_arrow()[name].to_pylist() for name in ("id", "tags")), strict=True)
    ) == {
        "a": ["z"],
        "b": [],
        "c": [],
    }
    with pytest.raises(SchemaMismatch):
        table.update("id = 'a'", {"tags": "[1, 2]"})
    with pytest.raises(ConfigError, match="cannot be used here") as raised:
        table.update("id = 'a'", {"tags": "[id]"})
    assert "constants" in raised.value.hint
