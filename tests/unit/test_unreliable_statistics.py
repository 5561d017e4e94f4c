"""Filters find all rows although Hudi wrote wrong statistics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.metadata import commit_participant
from pyhudi.schema import evolution
from pyhudi.slices import write_base
from tests.helpers.hudi_statistics import Told, hudi_says
from tests.helpers.table_builder import TableBuilder
from tests.unit.test_savepoints import timeline_of

OPTIONS = {
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
}
TABLE = TableBuilder(
    {
        "id": (pa.string(), lambda key: key),
        "city": (pa.string(), lambda key: key[0]),
        "n": (pa.int64(), 1),
        "s": (pa.string(), None),
    },
    partition_by="city",
)
LONG = "z" * 5000
NARROW = Told("s", "a", "c", values=4, nulls=2, size=12000)
"""Of two long texts, `a` and `c`: Parquet has statistics of the short ones alone."""


def insert(
    base: Path, column: str, values: dict[str, Any], options: dict[str, str] = OPTIONS, **more: Any
) -> None:
    """values: of the column, by key."""
    rows = TABLE.rows(values, **{column: values.get})
    pyhudi.open_table(base, options=options).insert(rows, **more)


def partitions_left_out(table: HudiTable, where: str) -> int:
    steps = str(table.scan(where=where).explain()).splitlines()
    found = [step.split()[2] for step in steps if step.strip().startswith("partition_stats")]
    assert len(found) <= 1
    return sum(map(int, found))


@pytest.mark.parametrize("version", [8, 9])
def test_long_text_is_found_beside_short_text(tmp_path: Path, version: int) -> None:
    """Of one file with row groups of either, and of its partition."""
    TABLE.make(tmp_path, version=version)
    with hudi_says(NARROW, "column_stats", "partition_stats"):
        insert(tmp_path, "s", {"p1": f"{LONG}1", "p2": f"{LONG}2", "p3": "a", "p4": "c"})
    for _ in range(2):
        table = pyhudi.open_table(tmp_path)
        assert table.scan(where="s > 'm'").count() == 2
        assert table.scan(where=f"s = '{LONG}1'").count() == 1
        # Bounds of the partition are made of those of its files.
        insert(tmp_path, "s", {"p5": "b"})


@pytest.mark.parametrize("version", [8, 9])
def test_text_beside_nulls_is_left_out_by_what_pyhudi_wrote(tmp_path: Path, version: int) -> None:
    TABLE.make(tmp_path, version=version)
    for part in "pq":
        texts = {f"{part}{number}": f"{part}{number:040}" for number in range(200)}
        insert(tmp_path, "s", {**texts, f"{part}none": None})
    table = pyhudi.open_table(tmp_path)
    assert partitions_left_out(table, "s > 'q'") == 1
    assert partitions_left_out(table, "s > 'r'") == 2
    assert table.scan(where="s > 'q'").count() == 200


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("created", [False, True], ids=["unsaid", "created"])
def test_numbers_that_became_text_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, created: bool, archived: bool
) -> None:
    """Hudi compares their bounds as text. created: the properties tell the schema of then."""
    texts = evolution._type

    def to_text(kind: str, given: pa.DataType, path: str, fixed: Any) -> Any:
        is_change = kind == "int" and pa.types.is_string(given)
        return "string" if is_change else texts(kind, given, path, fixed)

    monkeypatch.setattr(evolution, "_type", to_text)
    numbers = {"p1": 2, "p2": 7, "p3": 10}
    columns = {**TABLE.columns, "s": (pa.int32(), numbers.get)}
    TABLE.make(tmp_path, columns=columns, first=numbers)
    with hudi_says(Told("s", "2", "4", values=5), "partition_stats"):
        insert(tmp_path, "s", {"p4": "3", "p5": "4"}, schema_mode="merge")
    if not created:
        forget_creation(tmp_path)
    if archived:
        archive_first(tmp_path)
    table = pyhudi.open_table(tmp_path)
    assert table.scan(where="s = '7'").count() == 1
    assert table.scan(where="s > '5'").count() == 1


@pytest.mark.parametrize("created", [False, True], ids=["unsaid", "created"])
def test_partitions_are_left_out_by_what_was_always_text(tmp_path: Path, *, created: bool) -> None:
    TABLE.make(tmp_path)
    insert(tmp_path, "s", {"p1": "a", "q1": "b"})
    if not created:
        forget_creation(tmp_path)
    assert partitions_left_out(pyhudi.open_table(tmp_path), "s > 'a'") == 1
    assert partitions_left_out(pyhudi.open_table(tmp_path), "_hoodie_commit_time < '2'") == 2


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_overtaken_hudi_write_disables_statistics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    """The record of the one that was requested last counts. Hudi's writers do not give way."""
    TABLE.make(tmp_path, kind=kind)
    insert(tmp_path, "n", {"p0": 50, "q0": 50})
    monkeypatch.setattr(commit_participant, "_check_newest", lambda *_: None)
    overtaking = iter([{"p2": 20}])

    for name in ("store_base_file", "store_base_files"):
        stored = getattr(write_base, name)

        def beside(*args: Any, stored: Any = stored, **more: Any) -> Any:
            for values in overtaking:
                insert(tmp_path, "n", values)
            return stored(*args, **more)

        monkeypatch.setattr(write_base, name, beside)
    insert(tmp_path, "n", {"p1": 999})
    table = pyhudi.open_table(tmp_path)
    assert table.scan(where="n > 900").count() == 1
    assert partitions_left_out(table, "n > 900") == 1


def test_statistics_left_by_hudi_upgrade_are_ignored(tmp_path: Path) -> None:
    """Of merge-on-read, 1.0.2 leaves out files that wait for a compaction."""
    TABLE.make(tmp_path, version=8, kind="mor")
    with hudi_says(Told("n", 1, 2, values=1), "partition_stats"):
        insert(tmp_path, "n", {"p1": 1, "p2": 99})
    assert pyhudi.open_table(tmp_path).scan(where="n = 99").count() == 1
    upgrade_as_hudi(tmp_path)
    table = pyhudi.open_table(tmp_path)
    assert table.config.version.code == 9
    assert table.scan(where="n = 99").count() == 1


def forget_creation(base: Path) -> None:
    """As tables are that Hudi makes for a DataFrame."""
    file = base / ".hoodie/hoodie.properties"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(one for one in lines if not one.startswith("hoodie.table.create.")))


def archive_first(base: Path) -> None:
    """So that the oldest active commit has the newest schema."""
    for number in range(4):
        insert(base, "s", {f"q{number}": "1"})
    options = {
        "hoodie.metadata.compact.max.delta.commits": "2",
        "hoodie.clean.commits.retained": "1",
    }
    insert(base, "s", {"q9": "1"}, options)
    pyhudi.open_table(base, options=options).archive(min_commits=2, max_commits=3)
    timeline = timeline_of(base)
    assert timeline.archive.commits()
    assert '"int"' not in (timeline.commit_metadata(timeline.commits[0]).schema or "")


def upgrade_as_hudi(base: Path) -> None:
    """What `EightToNineUpgradeHandler` does to a table with indexes (1.2.0)."""
    for folder in (".hoodie", ".hoodie/metadata/.hoodie"):
        file = base / folder / "hoodie.properties"
        file.write_text(file.read_text().replace("table.version=8", "table.version=9"))
    file = base / ".hoodie/.index_defs/index.json"
    found = json.loads(file.read_text())
    for definition in found["indexDefinitions"].values():
        definition.setdefault("version", "V1")
    file.write_text(json.dumps(found))
