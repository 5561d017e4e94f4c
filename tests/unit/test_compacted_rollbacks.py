"""Rollbacks of commits that the metadata table has compacted already.

Apache Hudi 1.2.0 unpublishes a commit, and fails the rollback at its metadata table: the commit is
inflight then, and the next writer rolls it back.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, MissingFile
from pyhudi.config.table_config import TableConfig
from pyhudi.metadata import compacted_rollbacks
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from tests.helpers.aged import age_what_waits
from tests.helpers.pairwise import pairwise
from tests.helpers.table_builder import SMALL, TableBuilder
from tests.unit.test_restore import rows_of, sound

CASES = pairwise((6, 8, 9), ("cow", "mor"))
COMPACT_EACH = {"hoodie.metadata.compact.max.delta.commits": "1"}
CITIES = TableBuilder(
    {"id": (pa.string(), str), "city": (pa.string(), "rome"), "v": (pa.int64(), 1)},
    partition_by="city",
    options=SMALL,
)


def compacted(base: Path, version: int, kind: Any, **more: Any) -> tuple[HudiTable, str]:
    """A table whose metadata table was compacted past its newest write of rows, and that write.

    The write deletes "b" and "c", and inserts "x" in a new partition.
    """
    CITIES.make(base, version=version, kind=kind, **more).insert(CITIES.rows("abcdef"))
    table = pyhudi.open_table(base, options=COMPACT_EACH)
    for v in range(2, 5):
        table.upsert(CITIES.rows("abc", v=v))
    rows = pa.concat_tables([CITIES.rows("bc"), CITIES.rows("x", city="oslo")])
    merge = table.merge(rows).when_matched_delete().when_not_matched_insert_all()
    newest = merge.execute()
    table.clean(retain=3)
    return table, newest.instant


def unpublish(base: Path, instant: str) -> None:
    """Removes the completed file of a commit, as the first step of Hudi's rollback."""
    storage = Storage(str(base))
    timeline = Timeline.load(storage, TableConfig.load(storage))
    (commit,) = (found for found in timeline.commits if found.requested == instant)
    storage.delete(timeline.path(commit))


EXPECTED = {"a": 4, "b": 4, "c": 4, "d": 1, "e": 1, "f": 1}


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_next_writer_removes_the_files_from_the_metadata_table(
    version: int, kind: str, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    _, instant = compacted(base, version, kind)
    unpublish(base, instant)
    table = pyhudi.open_table(base)
    partitions = table.config.metadata_partitions
    table.upsert(CITIES.rows("ce", v=20))
    assert rows_of(table) == {**EXPECTED, "c": 20, "e": 20}
    assert table.config.metadata_partitions == partitions
    assert sound(table)


@pytest.mark.parametrize(
    ("operation", "v"),
    [
        (lambda table: table.cluster(sort_by="v"), 2),
        (lambda table: table.clean(retain=1), 2),
        (lambda table: table.maintain(), 2),
        (lambda table: table.create_index("bloom_filters"), 2),
        (lambda table: table.create_index("secondary_index", ["v"], name="by_v"), 2),
        (lambda table: table.check(repair=True), 2),
        (lambda table: table.rollback(table.state.timeline.commits[-1].requested), 1),
        (lambda table: table.restore(table.state.timeline.commits[-1].requested), 2),
    ],
    ids=["cluster", "clean", "maintain", "index", "secondary", "repair", "rollback", "restore"],
)
def test_service_goes_on_after_its_recovery_dropped_indexes(
    operation: Callable[[HudiTable], Any], v: int, tmp_path: Path
) -> None:
    """The metadata table is compacted at each commit, so its indexes cannot be rolled back."""
    base = tmp_path / "t"
    table = CITIES.make(base, version=9, kind="mor")
    table.insert(CITIES.rows("abcdef"))
    table = pyhudi.open_table(base, options=COMPACT_EACH)
    table.upsert(CITIES.rows("abc", v=2))
    unpublish(base, table.upsert(CITIES.rows("bx", v=3)).instant)
    age_what_waits(base)
    table = pyhudi.open_table(base, options=COMPACT_EACH)
    operation(table)
    expected = {**dict.fromkeys("abc", v), **dict.fromkeys("def", 1)}
    assert rows_of(table) == expected
    table.upsert(CITIES.rows("e", v=20))
    assert rows_of(table) == {**expected, "e": 20}
    assert sound(table)


def test_repair_rebuilds_a_metadata_table_that_lists_rolled_back_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Tables of earlier releases have such entries; once the commit is archived, too."""
    base = tmp_path / "t"
    _, instant = compacted(base, 9, "cow")
    unpublish(base, instant)
    with monkeypatch.context() as patch:
        patch.setattr(compacted_rollbacks, "has_merged_records", lambda *_: False)
        pyhudi.open_table(base).upsert(CITIES.rows("e", v=20))
    options = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", **COMPACT_EACH}
    table = pyhudi.open_table(base, options={"hoodie.clean.commits.retained": "1", **options})
    for v in range(21, 29):
        table.upsert(CITIES.rows("e", v=v))
    assert instant < table.inspect.commits()["requested"][0].as_py()
    with pytest.raises(MissingFile):
        table.scan().to_arrow()
    found = table.check(repair=True)
    assert {finding.kind for finding in found.repaired} == {"metadata_extra_file"}
    assert found.ok, str(found)
    assert rows_of(table) == {**EXPECTED, "e": 28}
    assert sound(table)


def test_repair_keeps_entries_of_files_that_a_commit_lost(tmp_path: Path) -> None:
    table = CITIES.make(tmp_path / "t", first="abc")
    next((tmp_path / "t" / "rome").glob("*.parquet")).unlink()
    found = table.check(repair=True)
    assert found.repaired == ()
    assert {"missing_file", "metadata_extra_file"} <= {finding.kind for finding in found}
