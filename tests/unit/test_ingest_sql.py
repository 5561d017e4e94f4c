"""`pyhudi.ingest` of a database: which rows are read, checkpoints, drivers."""

from __future__ import annotations

import datetime
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import SqlSource, ingest
from pyhudi.cli import main
from pyhudi.config.streamer_checkpoint import KEY_V2
from pyhudi.errors import ConfigError, StorageError
from tests.helpers import postgres


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "source.db")
    connection.execute("CREATE TABLE rides (id INTEGER PRIMARY KEY, v TEXT, n INTEGER)")
    yield connection
    connection.close()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/source.db"


def add(db: sqlite3.Connection, *rows: tuple[int, str | None, int | None]) -> None:
    db.executemany("INSERT INTO rides VALUES (?, ?, ?)", rows)
    db.commit()


def ids(table: Path) -> list[int]:
    found: list[int] = pyhudi.open_table(table).to_arrow()["id"].to_pylist()
    return sorted(found)


def metadata(table: Path) -> dict[str, str]:
    return dict(pyhudi.open_table(table).history(1).to_pylist()[0]["metadata"])


def test_sql_source_reads_larger_values_once(
    db: sqlite3.Connection, url: str, tmp_path: Path
) -> None:
    """Numbers are compared as numbers, and rows without a value are not read."""
    table, source = tmp_path / "t", SqlSource(url, "rides", "n")
    add(db, (1, "a", 9), (2, "it's", 10), (3, "c", None))
    assert ingest(table, source, key="id", operation="insert").rows == 2
    assert metadata(table)[KEY_V2] == "10"
    assert ingest(table, source, operation="insert").commits == 0
    add(db, (4, "d", 100), (5, "e", 9))
    assert ingest(table, source, operation="insert").rows == 1
    assert ids(table) == [1, 2, 4]


def test_sql_source_keeps_rows_of_a_value_together(
    db: sqlite3.Connection, url: str, tmp_path: Path
) -> None:
    add(db, *((id_, "v", id_ // 4) for id_ in range(10)))
    done: list[int] = []
    source = SqlSource(url, "SELECT * FROM rides WHERE id < 9", "n", max_rows=3)
    ingest(
        tmp_path / "t",
        source,
        key="id",
        operation="insert",
        on_commit=lambda written: done.append(written.rows_in or 0),
    )
    assert done == [4, 4, 1]
    assert ids(tmp_path / "t") == [*range(9)]


def test_sql_source_compares_text_and_quotes_it(
    db: sqlite3.Connection, url: str, tmp_path: Path
) -> None:
    table, source = tmp_path / "t", SqlSource(url, "rides", "v")
    add(db, (1, "9", 0), (2, "a'b", 0))
    ingest(table, source, key="id")
    assert metadata(table)[KEY_V2] == "a'b"
    add(db, (3, "a'c", 0), (4, "8", 0))
    assert ingest(table, source).rows == 1
    add(db, (5, "z\\", 0))
    with pytest.raises(ConfigError, match="backslash"):
        ingest(table, source)


def test_sql_source_reads_until_expression(
    db: sqlite3.Connection, url: str, tmp_path: Path
) -> None:
    add(db, *((id_, "v", id_) for id_ in range(5)))
    source = SqlSource(url, "rides", "n", until="SELECT max(n) - 1 FROM rides")
    assert ingest(tmp_path / "t", source, key="id").rows == 3


def test_sql_source_continues_checkpoint_of_hudi(
    db: sqlite3.Connection, url: str, tmp_path: Path
) -> None:
    """Hudi quotes every value; the database compares it with the column's type."""
    table = pyhudi.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]), key="id")
    add(db, (8, "a", 9), (9, "a", 9), (10, "b", 10))
    table.upsert([{"id": 0}], commit_metadata={KEY_V2: "9"})
    assert ingest(table, SqlSource(url, "rides", "id")).rows == 1
    assert ids(tmp_path / "t") == [0, 10]


def test_sql_source_takes_types_of_table(db: sqlite3.Connection, url: str, tmp_path: Path) -> None:
    columns = pa.schema([("id", pa.int32()), ("v", pa.string()), ("n", pa.float64())])
    pyhudi.create_table(tmp_path / "t", columns, key="id")
    add(db, (1, None, 3))
    ingest(tmp_path / "t", SqlSource(lambda: sqlite3.connect(url[10:]), "rides", "id"))
    assert pyhudi.open_table(tmp_path / "t").to_arrow().to_pylist() == [
        {"id": 1, "v": None, "n": 3.0}
    ]


def test_sql_source_errors_name_the_cause(db: sqlite3.Connection, url: str, tmp_path: Path) -> None:
    add(db, (1, "a", 1))
    for source, error, match in (
        (SqlSource(url, "nowhere", "id"), StorageError, "no such table"),
        (SqlSource(url, "SELECT v FROM rides", "rowid2"), StorageError, "no such column"),
        (SqlSource("sqlite:///nowhere/x.db", "t", "id"), StorageError, "cannot connect"),
        (SqlSource("oracle://x", "t", "id"), ConfigError, "begins with 'oracle'"),
    ):
        with pytest.raises(error, match=match):
            ingest(tmp_path / "t", source, key="id")
    with pytest.raises(ConfigError):
        SqlSource(url, "rides", "id", max_rows=0)
    assert "secret" not in repr(SqlSource("postgresql://u:secret@h/d", "t", "id"))


def test_sql_command_prints_result(
    db: sqlite3.Connection,
    url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add(db, (1, "a", 1))
    monkeypatch.setenv("PYHUDI_SOURCE_URL", url)
    command = ["ingest", "sql", str(tmp_path / "t"), "rides", "--column", "id", "-k", "id"]
    assert main([*command, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["rows"], printed["checkpoint"]) == (1, "1")


@pytest.mark.slow
@pytest.mark.skipif(not postgres.is_available(), reason="needs psycopg and PostgreSQL")
def test_sql_source_reads_postgres(tmp_path: Path) -> None:
    """Types, times with a zone and schemas of a real PostgreSQL in another time zone."""
    with postgres.server() as url:
        import psycopg

        with psycopg.connect(url, autocommit=True) as db:
            db.execute("SET TIME ZONE 'Asia/Tokyo'")
            db.execute("CREATE SCHEMA shop")
            db.execute(
                "CREATE TABLE shop.orders (id bigint, price numeric(10, 2), tags text[], "
                "changed timestamptz, at timestamp)"
            )
            insert = "INSERT INTO shop.orders VALUES (%s, 1.50, '{a,b}', %s, %s)"
            at = datetime.datetime(2026, 1, 2, 3, 4, 5, 123000, datetime.timezone.utc)
            step = datetime.timedelta(microseconds=1)
            db.execute(insert, (1, at, at.replace(tzinfo=None)))
            for column, text in (
                ("changed", "2026-01-02 03:04:05.123+00:00"),
                ("at", "2026-01-02 03:04:05.123"),
                ("id", "1"),
                ("price", "1.50"),
            ):
                table = tmp_path / column
                source = SqlSource(url, "shop.orders", column)
                assert ingest(table, source, key="id").rows == 1
                assert metadata(table)[KEY_V2] == text
                assert ingest(table, source).rows == 0
            db.execute(insert, (2, at + step, (at + step).replace(tzinfo=None)))
            for column in ("changed", "at", "id"):
                source = SqlSource(url, "shop.orders", column)
                assert ingest(tmp_path / column, source).rows == 1
            rows: list[dict[str, Any]] = pyhudi.open_table(tmp_path / "id").to_arrow().to_pylist()
            assert rows[0]["tags"] == ["a", "b"]
            assert str(rows[0]["price"]) == "1.50"
            assert {row["changed"] for row in rows} == {at, at + step}


def test_sql_source_refuses_checkpoint_of_another_column(
    db: sqlite3.Connection, url: str, tmp_path: Path
) -> None:
    add(db, (1, "z", 1), (2, "y", 2))
    ingest(tmp_path / "t", SqlSource(url, "rides", "v"), key="id")
    with pytest.raises(ConfigError, match="another source, sql:rides by v"):
        ingest(tmp_path / "t", SqlSource(url, "rides", "n"))


def test_sql_source_takes_a_statement_with_its_semicolon(
    db: sqlite3.Connection, url: str, tmp_path: Path
) -> None:
    add(db, (1, "a", 1))
    for query in ("SELECT * FROM rides;", "rides ; "):
        ingest(tmp_path / query[:3], SqlSource(url, query, "id"), key="id")
        assert ids(tmp_path / query[:3]) == [1]


def test_sql_source_refuses_what_is_no_connection(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="returned int, not a connection"):
        ingest(tmp_path / "t", SqlSource(lambda: 5, "rides", "id"), key="id")
    with pytest.raises(ConfigError, match="connection is 5"):
        SqlSource(5, "rides", "id")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: SqlSource("sqlite:///x", 5, "id"),  # type: ignore[arg-type]
        lambda: pyhudi.FileSource(None),  # type: ignore[arg-type]
        lambda: pyhudi.FileSource(".", pattern=5),  # type: ignore[arg-type]
        lambda: pyhudi.KafkaSource("host", None),  # type: ignore[arg-type]
        lambda: pyhudi.KafkaSource("host", "topic", max_rows="5"),  # type: ignore[arg-type]
    ],
)
def test_sources_check_types_of_arguments(make: Any) -> None:
    with pytest.raises(ConfigError, match="it must be"):
        make()
