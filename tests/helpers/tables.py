"""The golden tables: whole tables that Apache Hudi wrote, and what Apache Hudi reads from them.

`tests/fixtures/tables/README.md` is the catalogue. Where the release that wrote a table and Hudi
1.2.0 read different rows, both are real behaviour and 1.2.0's answer is the one wanted here.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.helpers.rows import canonical, difference, digest, encode_table

FOLDER = Path(__file__).parents[1] / "fixtures" / "tables"
KINDS = ("snapshot", "read_optimized")
LATEST = "1.2.0"


class GoldenTables:
    """Unpacks golden tables below a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def unpack(self, name: str) -> Path:
        """The table's folder; shared between tests, so only for reading."""
        base = self._folder / name
        if not base.exists():
            unpack(name, self._folder)
        return base


@dataclass(frozen=True)
class Case:
    """One read of one golden table."""

    table: str
    kind: str
    """"snapshot" or "read_optimized"."""
    columns: tuple[str, ...]
    """To be compared, in Hudi's order."""
    rows: tuple[str, ...] | None
    """Canonical rows; None where only `sha256` is kept, or where Hudi itself fails to read."""
    sha256: str | None
    """None with `rows` None: Hudi fails to read this, so any rows or a refusal will do."""

    def __str__(self) -> str:
        return f"{self.table}-{self.kind}"

    def mismatch(self, table: pa.Table) -> str | None:
        """How the rows differ from Hudi's, None when they are the same."""
        if self.rows is None and self.sha256 is None:
            return None
        mine = [canonical(row) for row in encode_table(table, self.columns)]
        if self.rows is not None:
            return difference(mine, self.rows)
        return None if digest(mine) == self.sha256 else f"other rows than Hudi's: {len(mine)}"


def names() -> list[str]:
    """Every golden table."""
    return sorted(path.stem for path in FOLDER.glob("*.zip"))


@cache
def facts(name: str) -> Mapping[str, Any]:
    """What is known of a table: how it was made, its timeline, what Hudi reads."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def unpack(name: str, into: Path) -> Path:
    """A fresh copy of a table below `into`, for a test that changes it."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        archive.extractall(into)
    return into / name


def cases() -> Iterator[Case]:
    """Every snapshot and read-optimized read of every table."""
    for name in names():
        for kind in KINDS:
            if kind in facts(name)["expected"]:
                yield _case(name, kind)


def _case(name: str, kind: str) -> Case:
    known = facts(name)
    answer = known["expected"][kind]
    latest = known.get("read_by", {}).get(LATEST, {}).get(kind, {"same": True})
    if not latest["same"] and "sha256" in latest:
        answer = {**answer, **latest}
    if "sha256" not in answer:
        return Case(name, kind, (), None, None)
    rows = answer.get("rows")
    if rows is None:
        return Case(name, kind, tuple(answer["columns"]), None, answer["sha256"])
    columns = answer.get("columns") or list(rows[0])
    # In a version-6 table Hudi 1.x slices log files by modification times, which a copy changes.
    # The rows come out the same, the file they are said to be in does not.
    if known["table_version"] < 8:
        columns = [column for column in columns if column != "_hoodie_file_name"]
    wanted = tuple(canonical({column: row.get(column) for column in columns}) for row in rows)
    return Case(name, kind, tuple(columns), wanted, answer["sha256"])
