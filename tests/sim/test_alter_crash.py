"""Crashes of a writer that alters a table, or that writes to an altered one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.table_config import TableConfig
from pyhudi.schema.alter_changes import Add, Position, Rename
from pyhudi.schema.internal_schema import SCHEMA_FOLDER, instant_of_file
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.write import upsert as operations
from pyhudi.write.alter import alter
from tests.helpers.pairwise import pairwise
from tests.sim.crash import PEOPLE, SMALL_BLOOM, Handle, leftovers, people
from tests.sim.states import deaths


@pytest.fixture
def table(version: int, kind: Literal["cow", "mor"], tmp_path: Path) -> Path:
    base = tmp_path / "table"
    made = PEOPLE.make(
        base,
        version=version,
        kind=kind,
        partition_by=None,
        first=people(range(4), 1, 10),
    )
    made.upsert(people([1], 2, 20))
    return base


def first_alter(handle: Handle) -> None:
    alter(handle, (Rename("v", "w"), Add("v", pa.string(), Position(), None)))


def upsert(handle: Handle) -> None:
    rows = people([0, 5], 3, 30).rename_columns(["id", "city", "w", "ts"])
    operations.upsert(handle, rows.append_column("v", [["new", "new"]]))


BEFORE = {"k00": 1, "k01": 2, "k02": 1, "k03": 1}


def on(write: Callable[[Handle], None]) -> Callable[[Storage], None]:
    return lambda storage: write(Handle(storage, SMALL_BLOOM))


def commits(base: Path) -> int:
    storage = Storage(str(base))
    return len(Timeline.load(storage, TableConfig.load(storage)).commits)


def values(base: Path, column: str) -> dict[str, object]:
    rows = pyhudi.open_table(base).scan(columns=["id", column]).to_arrow().to_pylist()
    return {row["id"]: row[column] for row in rows}


def left_histories(base: Path) -> list[str]:
    storage = Storage(str(base))
    timeline = Timeline.load(storage, TableConfig.load(storage))
    names = (entry.name for entry in storage.list_dir(SCHEMA_FOLDER)[1])
    return [name for name in names if not timeline.is_committed(instant_of_file(name))]


def an_alter_is_there_or_not(table: Path, tmp_path: Path) -> None:
    done, seen = commits(table), set()
    for n, crashed in deaths(table, tmp_path, on(first_alter)):
        committed = commits(crashed) > done
        seen.add(committed)
        assert values(crashed, "w" if committed else "v") == BEFORE, f"after change {n}"
        if not committed:
            first_alter(Handle(Storage(str(crashed)), SMALL_BLOOM))
        assert values(crashed, "v") == dict.fromkeys(BEFORE), f"after change {n}"
        upsert(Handle(Storage(str(crashed)), SMALL_BLOOM))
        assert values(crashed, "w") == {**BEFORE, "k00": 3, "k05": 3}, f"after change {n}"
        assert leftovers(crashed) == left_histories(crashed) == [], f"after change {n}"
    assert seen == {True, False}


def a_failed_write_leaves_no_history(table: Path, tmp_path: Path) -> None:
    first_alter(Handle(Storage(str(table)), SMALL_BLOOM))
    done = commits(table)
    for n, crashed in deaths(table, tmp_path, on(upsert)):
        committed = commits(crashed) > done
        wanted = {**BEFORE, "k00": 3, "k05": 3} if committed else BEFORE
        assert values(crashed, "w") == wanted, f"after change {n}"
        operations.delete_keys(
            Handle(Storage(str(crashed)), SMALL_BLOOM), pa.table({"id": ["k03"]})
        )
        wanted = {key: v for key, v in wanted.items() if key != "k03"}
        assert values(crashed, "w") == wanted, f"after change {n}"
        assert leftovers(crashed) == left_histories(crashed) == [], f"after change {n}"


def a_failed_first_alter_is_forgotten_by_the_next_write(table: Path, tmp_path: Path) -> None:
    done = commits(table)
    for n, crashed in deaths(table, tmp_path, on(first_alter)):
        if commits(crashed) > done:
            continue
        operations.upsert(Handle(Storage(str(crashed)), SMALL_BLOOM), people([0], 3, 30))
        assert values(crashed, "v") == {**BEFORE, "k00": 3}, f"after change {n}"
        assert not Storage(str(crashed)).list_dir(SCHEMA_FOLDER)[1], f"after change {n}"


STORIES = {
    story.__name__: story
    for story in (
        an_alter_is_there_or_not,
        a_failed_write_leaves_no_history,
        a_failed_first_alter_is_forgotten_by_the_next_write,
    )
}


@pytest.mark.parametrize(
    ("version", "kind", "story"), pairwise((6, 8, 9), ("cow", "mor"), sorted(STORIES))
)
def test_alter_crash_keeps_table_readable(table: Path, tmp_path: Path, story: str) -> None:
    STORIES[story](table, tmp_path)
