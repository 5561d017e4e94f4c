"""Crashes of an ingestion at every change of storage: the next one loses and repeats no record."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from pyhudi import FileSource, SqlSource, ingest
from pyhudi.api.table import HudiTable
from pyhudi.engine.local import LocalEngine
from pyhudi.ingestion.ingest import Operation
from pyhudi.ingestion.source import Source
from pyhudi.storage.storage import Storage
from tests.sim.crash import SMALL_BLOOM, leftovers, people_table
from tests.sim.states import recorded

OPTIONS = {**SMALL_BLOOM, "hoodie.parquet.small.file.limit": "0"}

CITIES = ("oslo", "rome")


def files(folder: Path) -> Source:
    """Three files, each of which is a batch."""
    folder.mkdir()
    for n in range(3):
        path = folder / f"{n}.json"
        rows = [{"id": f"k{n}{city}", "city": city, "v": n, "ts": n} for city in CITIES]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        os.utime(path, (1_700_000_000 + n, 1_700_000_000 + n))
    return FileSource(folder, max_bytes=1, late_seconds=1)


def database(folder: Path) -> Source:
    """Three values, each of two rows."""
    folder.mkdir()
    with closing(sqlite3.connect(folder / "source.db")) as db:
        db.execute("CREATE TABLE rides (id TEXT, city TEXT, v INTEGER, ts INTEGER)")
        rows = [(f"k{n}{city}", city, n, n) for n in range(3) for city in CITIES]
        db.executemany("INSERT INTO rides VALUES (?, ?, ?, ?)", rows)
        db.commit()
    return SqlSource(f"sqlite:///{folder}/source.db", "rides", "v", max_rows=2)


SOURCES: dict[str, Callable[[Path], Source]] = {"files": files, "database": database}


@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize(
    ("version", "kind", "operation"),
    [(9, "cow", "insert"), (8, "mor", "bulk_insert"), (6, "mor", "insert"), (9, "mor", "upsert")],
)
def test_killed_ingest_is_continued_exactly(
    version: int, kind: str, operation: Operation, name: str, tmp_path: Path
) -> None:
    base = tmp_path / "table"
    people_table(base, version, kind, OPTIONS)
    source = SOURCES[name](tmp_path / "landing")

    def write(storage: Storage) -> None:
        ingest(HudiTable(storage, LocalEngine(1), OPTIONS), source, operation=operation)

    done = recorded(base, tmp_path, write)
    counts = set()
    for n, crashed in done.deaths():
        table = HudiTable(Storage(str(crashed)), LocalEngine(1), OPTIONS)
        counts.add(table.scan().count())
        result = ingest(table, source, operation=operation)
        rows = table.refresh().to_arrow().select(["id", "v"]).to_pylist()
        expected = [{"id": f"k{v}{city}", "v": v} for v in range(3) for city in CITIES]
        assert sorted(rows, key=lambda row: str(row["id"])) == expected, n
        # Without new data nothing is written, so the markers of the last commit may stay.
        assert result.commits == 0 or leftovers(crashed) == [], n
    assert counts == {0, 2, 4, 6}
