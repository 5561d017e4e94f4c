"""Crashes at every change of storage by a write: readers and the next writer."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.config.table_config import TableConfig
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.write import merge as operations_merge
from pyhudi.write import overwrite as operations_replace
from pyhudi.write import upsert as operations
from pyhudi.write.merge_planning import MergeClause
from tests.helpers.pairwise import pairwise
from tests.sim.crash import (
    SMALL_BLOOM,
    Handle,
    leftovers,
    people,
    people_table,
    rows_of,
)
from tests.sim.states import deaths, recorded

VERSIONS = (6, 8, 9)
KINDS = ("cow", "mor", "cdc", "orc")
OPTIONS = {**SMALL_BLOOM, "hoodie.parquet.small.file.limit": "0"}


@pytest.fixture
def table(version: int, kind: str, tmp_path: Path) -> Path:
    """A table with a base file and, in merge-on-read, a log file in each of two partitions."""
    base = tmp_path / "table"
    handle = people_table(base, version, kind, OPTIONS)
    if kind == "cdc":
        with (base / ".hoodie" / "hoodie.properties").open("a") as properties:
            properties.write("\nhoodie.table.cdc.enabled=true\n")
    operations.insert(handle, people(range(6), 1, 10))
    operations.upsert(handle, people([2, 3], 2, 20))
    return base


def upsert(handle: Handle) -> None:
    operations.upsert(handle, people([0, 1, 7, 8], 3, 30))


def delete(handle: Handle) -> None:
    operations.delete_keys(handle, pa.table({"id": ["k00", "k03"]}))


def overwrite(handle: Handle) -> None:
    operations_replace.overwrite_partitions(handle, people([8, 10], 4, 1))


def merge(handle: Handle) -> None:
    update = MergeClause("update", "source.v < 9", {"v": "source.v", "ts": 40})
    clauses = (update, MergeClause("delete"), MergeClause("insert"))
    source = pa.concat_tables([people([0, 7], 6, 40), people([2, 3], 9, 40)])
    operations_merge.merge(handle, source, clauses)


BEFORE = {"k00": 1, "k01": 1, "k02": 2, "k03": 2, "k04": 1, "k05": 1}
AFTER: dict[Callable[[Handle], None], dict[str, int]] = {
    upsert: {**BEFORE, "k00": 3, "k01": 3, "k07": 3, "k08": 3},
    delete: {key: v for key, v in BEFORE.items() if key not in {"k00", "k03"}},
    overwrite: {"k01": 1, "k03": 2, "k05": 1, "k08": 4, "k10": 4},
    merge: {"k00": 6, "k01": 1, "k04": 1, "k05": 1, "k07": 6},
}


def on(write: Callable[[Handle], None]) -> Callable[[Storage], None]:
    return lambda storage: write(Handle(storage, OPTIONS))


def base_files(base: Path) -> list[Path]:
    return [*base.rglob("*.parquet"), *base.rglob("*.orc")]


def values(base: Path) -> dict[str, int]:
    return {row["id"]: row["v"] for row in rows_of(base)}


def commits(base: Path) -> int:
    storage = Storage(str(base))
    return len(Timeline.load(storage, TableConfig.load(storage)).commits)


def assert_next_writer_cleans_up(base: Path, wanted: dict[str, int], n: int) -> None:
    operations.upsert(Handle(Storage(str(base)), OPTIONS), people([4, 11], 5, 50))
    assert values(base) == {**wanted, "k04": 5, "k11": 5}, f"after change {n}"
    assert leftovers(base) == [], f"after change {n}"


Story = Callable[[Path, Path], None]


def whole_commits(write: Callable[[Handle], None]) -> Story:
    """Readers see all of a write or nothing, and the next writer cleans up."""

    def story(table: Path, tmp_path: Path) -> None:
        done, seen = commits(table), set()
        for n, crashed in deaths(table, tmp_path, on(write)):
            committed = commits(crashed) > done
            seen.add(committed)
            wanted = AFTER[write] if committed else BEFORE
            assert values(crashed) == wanted, f"after change {n}"
            assert_next_writer_cleans_up(crashed, wanted, n)
        assert seen == {True, False}

    return story


def while_it_cleans_up(table: Path, tmp_path: Path) -> None:
    upserted = recorded(table, tmp_path / "upsert", on(upsert))
    for state in reversed(upserted.states):
        state.restore(upserted.base)
        if commits(upserted.base) == commits(table):
            break
    assert values(upserted.base) == BEFORE
    for n, crashed in deaths(upserted.base, tmp_path, on(delete)):
        wanted = AFTER[delete] if commits(crashed) > commits(table) else BEFORE
        assert values(crashed) == wanted, f"after change {n}"
        assert_next_writer_cleans_up(crashed, wanted, n)


def without_its_markers(table: Path, tmp_path: Path) -> None:
    """What a failed write left is found by listing."""
    for n, crashed in deaths(table, tmp_path, on(upsert)):
        if commits(crashed) > commits(table):
            continue
        shutil.rmtree(crashed / ".hoodie" / ".temp", ignore_errors=True)
        assert_next_writer_cleans_up(crashed, BEFORE, n)


STORIES: dict[str, Story] = {
    **{write.__name__: whole_commits(write) for write in AFTER},
    "while it cleans up": while_it_cleans_up,
    "without its markers": without_its_markers,
}
BASE_FILES = ("store_base_file", "rewrite_base_file")
"""What writes one in `slices/write_base.py`."""
every_table = pytest.mark.parametrize(("version", "kind"), pairwise(VERSIONS, KINDS))


@pytest.mark.parametrize(("version", "kind", "story"), pairwise(VERSIONS, KINDS, sorted(STORIES)))
def test_write_crash_keeps_committed_rows(table: Path, tmp_path: Path, story: str) -> None:
    assert values(table) == BEFORE
    STORIES[story](table, tmp_path)


@every_table
def test_failed_task_leaves_no_files(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyhudi.slices import write_base as work_write

    def fail(*_arguments: Any, **_more: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        for name in BASE_FILES:
            patched.setattr(work_write, name, fail)
        with pytest.raises(KeyboardInterrupt):
            upsert(Handle(Storage(str(table)), OPTIONS))
    assert leftovers(table) == []
    assert values(table) == BEFORE
    assert_next_writer_cleans_up(table, BEFORE, 0)


@every_table
def test_file_written_after_rollback_is_removed(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyhudi.slices import write_base as work_write

    def late_of(store: Callable[..., Any]) -> Callable[..., Any]:
        def fail_late(*arguments: Any, **more: Any) -> Any:
            store(*arguments, **more)
            fail()

        return fail_late

    def fail() -> None:
        begun.extend(path.relative_to(table) for path in table.rglob("*.marker.*"))
        kept.extend((path, path.read_bytes()) for path in base_files(table))
        raise KeyboardInterrupt

    begun: list[Path] = []
    kept: list[tuple[Path, bytes]] = []
    with monkeypatch.context() as patched:
        for name in BASE_FILES:
            patched.setattr(work_write, name, late_of(getattr(work_write, name)))
        with pytest.raises(KeyboardInterrupt):
            upsert(Handle(Storage(str(table)), OPTIONS))
    for marker in begun:
        (table / marker).parent.mkdir(parents=True, exist_ok=True)
        (table / marker).touch()
    late = [(path, data) for path, data in kept if not path.exists()]
    assert begun
    assert late
    for path, data in late:
        path.write_bytes(data)
    assert values(table) == BEFORE
    assert_next_writer_cleans_up(table, BEFORE, 0)
    assert not any(path.exists() for path, _ in late)
    assert all(path.exists() for path, _ in kept if (path, _) not in late)
