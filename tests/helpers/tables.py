"""The golden tables: whole tables that Apache Hudi wrote, and what Apache Hudi reads from them.

`tests/fixtures/tables/README.md` is the catalogue. Where the release that wrote a table and Hudi
1.2.0 read different rows, both are real behaviour and 1.2.0's answer is the one wanted here.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyhudi import HistoryUnavailable, HudiError, HudiTable, Scan, UnsupportedTableFeature
from pyhudi.api.outputs import Outputs
from tests.helpers.images import broken_columns, comparable
from tests.helpers.rows import canonical, canonical_rows, difference, digest

FOLDER = Path(__file__).parents[1] / "fixtures" / "tables"
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
    """A key of `READS`."""
    number: int | None
    """Which of the table's reads of that kind, None where there is but one."""
    asked: Mapping[str, Any]
    """The times of the read: `as_of`, or `begin` and `end`."""
    columns: tuple[str, ...]
    """To be compared, in Hudi's order."""
    rows: tuple[str, ...] | None
    """Canonical rows; None where only `sha256` is kept, or where Hudi itself fails to read."""
    sha256: str | None
    """None with `rows` None: Hudi fails to read this, so any rows or a refusal will do."""
    guarded: type[HudiError] | None = None
    """What pyhudi raises where Hudi refuses the read on purpose."""

    def __str__(self) -> str:
        number = "" if self.number is None else f"-{self.number}"
        return f"{self.table}-{self.kind}{number}"

    def read(self, table: HudiTable) -> pa.Table:
        """The read through the public API."""
        return READS[self.kind](table, self.asked).to_arrow()

    def mismatch(self, table: pa.Table) -> str | None:
        """How the rows differ from Hudi's, None when they are the same."""
        if self.rows is None and self.sha256 is None:
            return None
        if self.kind == "cdc":
            return self._changes_mismatch(table)
        mine = canonical_rows(table, self.columns)
        if self.rows is not None:
            return difference(mine, self.rows)
        return None if digest(mine) == self.sha256 else f"other rows than Hudi's: {len(mine)}"

    def _changes_mismatch(self, table: pa.Table) -> str | None:
        wanted = [json.loads(row) for row in self.rows or ()]
        broken = broken_columns(wanted)
        return difference(comparable(table.to_pylist(), broken), comparable(wanted, broken))


def _incremental(table: HudiTable, asked: Mapping[str, Any]) -> Scan:
    # What Hudi 1.2.0 does by default, and so pyhudi too, but for the warning.
    fallback = True if table.version >= 8 else None
    return table.incremental(
        asked["begin"], asked.get("end"), meta_fields=True, fallback_full_scan=fallback
    )


READS: Mapping[str, Callable[[HudiTable, Mapping[str, Any]], Outputs]] = {
    "snapshot": lambda table, _: table.scan(meta_fields=True),
    "read_optimized": lambda table, _: table.scan(meta_fields=True, read_optimized=True),
    "as_of": lambda table, asked: table.scan(meta_fields=True, as_of=asked["as_of"]),
    "incremental": _incremental,
    "cdc": lambda table, asked: table.changes(asked["begin"], asked.get("end"), images="json"),
}
"""The kinds of reads that the tables' json has answers for. One that is not here is not tested."""

_GUARDS: Mapping[str, type[HudiError]] = {
    "Cleaner cleaned up the timestamp of interest": HistoryUnavailable,
    "HoodieTimeTravelException": HistoryUnavailable,
    "HoodieIncrementalPathNotFoundException": HistoryUnavailable,
    "Found hollow commit": HistoryUnavailable,
    "not supported when meta fields are disabled": UnsupportedTableFeature,
}
"""Errors of Hudi that refuse a read, by their text. Others are crashes, where pyhudi may answer."""

_WRITER_IS_RIGHT = frozenset(
    {
        # 1.2.0 places the log files by modification times, which unpacking has changed: deleted
        # rows come back, and rows are read from a later slice.
        "v6_mor_compaction-as_of-1",
        "v6_mor_part_avro-as_of-2",
    }
)
"""Reads where 1.2.0's answer is a defect that the release which wrote the table lacks."""


_UNANSWERED = frozenset({"v8_mor_partial_sql-incremental-1"})
"""Reads where 1.2.0 fails, and the release that wrote the table has another rule for ranges."""

_PARTIAL = frozenset(
    {
        *(f"v6_cow_clean_versions-as_of-{number}" for number in range(3)),
        "v6_mor_overwritten_cleaned-as_of-0",
        "v9_mor_overwritten_cleaned-as_of-0",
        "v8_cow_clean_versions-as_of-0",
        "v9_cow_clean_versions-as_of-0",
        *(f"v{version}_cow_pending_clean-as_of-0" for version in (6, 8, 9)),
    }
)
"""Times of which a clean took files, by versions of files or before it was complete.

Hudi shows what is left, pyhudi refuses.
"""


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
    _find_source(into / name, into / f"{name}.source")
    return into / name


def _find_source(base: Path, source: Path) -> None:
    """Tells a bootstrapped table where its source is now."""
    if source.exists():
        properties = base / ".hoodie" / "hoodie.properties"
        text = properties.read_text(encoding="latin-1")
        text = re.sub("(?m)^(hoodie.bootstrap.base.path)=.*$", rf"\1={source}", text)
        properties.write_text(text, encoding="latin-1")


def cases() -> Iterator[Case]:
    """Every read of every table, of the kinds in `READS`."""
    for name in names():
        expected = facts(name)["expected"]
        for kind in READS:
            answers = expected.get(kind, [])
            if isinstance(answers, list):
                yield from (_case(name, kind, number) for number in range(len(answers)))
            else:
                yield _case(name, kind, None)


def _case(name: str, kind: str, number: int | None) -> Case:
    known = facts(name)
    written = _answer(known["expected"], kind, number)
    asked = {key: written[key] for key in ("as_of", "begin", "end") if key in written}
    case = Case(name, kind, number, asked, (), None, None)
    answer = written
    latest = _answer(known.get("read_by", {}).get(LATEST, {}), kind, number)
    if not latest.get("same", True) and "sha256" in latest and str(case) not in _WRITER_IS_RIGHT:
        answer = {**written, **latest}
    if str(case) in _PARTIAL:
        return replace(case, guarded=HistoryUnavailable)
    if "sha256" not in answer or str(case) in _UNANSWERED:
        guards = (error for text, error in _GUARDS.items() if text in answer.get("error", ""))
        return replace(case, guarded=next(guards, None))
    rows = answer.get("rows")
    columns = list(answer.get("columns") or (rows[0] if rows else ()))
    if not rows:
        nothing = None if rows is None else ()
        return replace(case, columns=tuple(columns), rows=nothing, sha256=answer["sha256"])
    # In a version-6 table Hudi 1.x slices log files by modification times, which a copy changes.
    # The rows come out the same, the file they are said to be in does not.
    if known["table_version"] < 8:
        columns = [column for column in columns if column != "_hoodie_file_name"]
    wanted = tuple(canonical({column: row.get(column) for column in columns}) for row in rows)
    return replace(case, columns=tuple(columns), rows=wanted, sha256=answer["sha256"])


def _answer(answers: Mapping[str, Any], kind: str, number: int | None) -> Mapping[str, Any]:
    found = answers.get(kind, {} if number is None else [])
    if number is None:
        return dict(found)
    return dict(found[number]) if number < len(found) else {}
