"""A crash at every change while a metadata table is created, rebuilt or deleted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.storage.storage import Storage
from pyhudi.write import index_operations, metadata_lifecycle, upsert
from tests.sim.crash import PEOPLE, Handle, people, rows_read
from tests.sim.states import recorded

NOT_THEN = {"hoodie.metadata.enable": "false"}
ASKED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.record.index.max.filegroup.count": "2",
    "hoodie.index.bloom.num_entries": "64",
}
Deed = Callable[[Handle], object]


@pytest.fixture(params=[(6, "cow"), (8, "mor"), (9, "mor")], ids=str)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A table with rows, updates and deletes, without a metadata table."""
    version: int
    kind: Literal["cow", "mor"]
    version, kind = request.param
    base = tmp_path / "table"
    made = PEOPLE.make(
        base,
        version=version,
        kind=kind,
        first=range(6),
        options={**NOT_THEN, "hoodie.index.bloom.num_entries": "64"},
    )
    made.upsert(people([1, 2, 7], 2, 2))
    made.delete_keys(pa.table({"id": ["k03"], "city": ["oslo"]}))
    return base


def partitions(base: Path) -> tuple[str, ...]:
    return pyhudi.open_table(str(base)).config.metadata_partitions


def crash_everywhere(
    table: Path, tmp_path: Path, deed: Deed, *, again: Deed, whole: tuple[set[str], ...]
) -> None:
    """whole: the partitions that the table may be left with by a death, and then by success."""
    expected = rows_read(table, "false", "v > 0")
    carried_out = recorded(table, tmp_path, lambda storage: deed(Handle(storage, ASKED)))
    done = set(partitions(carried_out.base))
    assert done in whole
    assert rows_read(carried_out.base, "true", "v > 0") == expected
    for n, copy in carried_out.deaths(one_in=2):
        assert set(partitions(copy)) in whole, f"after change {n}"
        assert rows_read(copy, "true", "v > 0") == expected, f"after change {n}"
        handle = Handle(Storage(str(copy)), ASKED)
        again(handle)
        assert rows_read(copy, "true", "v > 0") == expected, f"again, {n}"
        assert set(partitions(copy)) == done, f"again, {n}"
        upsert.upsert(handle, people([2, 8], 3, 3))
        assert rows_read(copy, "true", "v > 0") == rows_read(copy, "false", "v > 0"), (
            f"after the next write, {n}"
        )
        assert len(rows_read(copy, "true", "v > 0")) == len(expected) + 1


def test_crashed_build_leaves_all_partitions_or_none(table: Path, tmp_path: Path) -> None:
    def make(handle: Handle) -> object:
        return metadata_lifecycle.rebuild(handle)

    made = set(
        metadata_lifecycle.rebuild(
            Handle(Storage(str(shutil.copytree(table, tmp_path / "x"))), ASKED)
        )
    )
    assert {"files", "column_stats", "record_index"} <= made
    crash_everywhere(table, tmp_path, make, again=make, whole=(set(), made))


def test_crashed_index_build_keeps_other_indexes(table: Path, tmp_path: Path) -> None:
    index_operations.create_index(Handle(Storage(str(table)), {}), IndexRequest("bloom_filters"))
    before = set(partitions(table))
    assert before == {"files", "bloom_filters"}

    def add(handle: Handle) -> object:
        if (
            "record_index"
            in metadata_lifecycle.finish_pending_operation(handle, None).metadata_partitions
        ):
            return None
        return index_operations.create_index(handle, IndexRequest("record_index"))

    after = before | {"record_index"}
    crash_everywhere(table, tmp_path, add, again=add, whole=(before, after))


def test_index_drop_changes_properties_first(table: Path, tmp_path: Path) -> None:
    handle = Handle(Storage(str(table)), ASKED)
    made = set(metadata_lifecycle.rebuild(handle))

    def drop(handle: Handle) -> object:
        if "record_index" not in partitions(Path(handle.storage.uri)):
            return None
        return index_operations.drop_index(handle, "record_index")

    left = made - {"record_index"}
    crash_everywhere(table, tmp_path, drop, again=drop, whole=(made, left))
