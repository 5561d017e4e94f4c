from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.config.merge_mode import MergeConfig
from pyhudi.config.table_version import table_version
from pyhudi.config.write_options import WriteOptions
from pyhudi.errors import CommitConflict
from pyhudi.index.protocol import TagResult
from pyhudi.slices.file_slice import BaseFile, FileSlice, LogFile
from pyhudi.slices.tagged_rows import Tagged, find_untagged, group_values, row_numbers
from pyhudi.slices.write_tasks import BaseFileTask, FileGroup, LogFileTask, WriteTarget, WriteTask
from pyhudi.storage.storage import Storage
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.write.assigned_rows import AssignedLocalRows, DeletedKeys
from pyhudi.write.file_assignment import plan_files, plan_new_files, workload_profile
from pyhudi.write.memory_rows import assign_rows
from pyhudi.write.pending_clustering import check_no_pending_clustering
from pyhudi.write.row_sizes import RowRange

MB = 1024 * 1024
SESSION: Any = None
"""Planning and filling tasks ask no table."""


def group(
    file_id: str,
    partition: str = "p",
    size: int = MB,
    logs: int = 0,
    *,
    compaction: str | None = None,
    clustering: str | None = None,
) -> FileGroup:
    base = BaseFile(partition, f"{file_id}_0-1-0_100.parquet", file_id, "100", "0-1-0", size)
    log_files = tuple(
        LogFile(partition, f".{file_id}_100.log.{n}_0-1-0", file_id, "100", n, "0-1-0", "", 10)
        for n in range(1, logs + 1)
    )
    return FileGroup(FileSlice(partition, file_id, "100", base, log_files), compaction, clustering)


def target(*, mor: bool = False, options: WriteOptions | None = None) -> WriteTarget:
    return WriteTarget(
        storage=Storage("/nowhere"),
        version=table_version(9),
        instant="200",
        merge_on_read=mor,
        schema=pa.schema([]),
        avro_schema="",
        merge=MergeConfig("COMMIT_TIME_ORDERING"),
        ordering_fields=(),
        options=options or WriteOptions(),
    )


def rows(keys: str, partitions: str | None = None) -> pa.Table:
    return pa.table(
        {
            "_hoodie_record_key": list(keys),
            "_hoodie_partition_path": list(partitions or "p" * len(keys)),
        }
    )


def tagged(*pairs: tuple[int, int]) -> Tagged:
    numbers = [pa.array([pair[i] for pair in pairs], pa.int64()) for i in (0, 1)]
    return Tagged(*numbers)


def plan(
    where: WriteTarget,
    data: pa.Table,
    tags: Tagged,
    groups: Sequence[FileGroup] = (),
    *,
    deleted: Sequence[int] = (),
    row_bytes: int = 1024,
) -> list[WriteTask]:
    marked = pa.array([n in deleted for n in range(data.num_rows)], pa.bool_())
    found = assign_rows(SESSION, data, marked, TagResult(tags, list(groups)))
    return planned(where, found, row_bytes=row_bytes)


def planned(
    where: WriteTarget,
    found: AssignedLocalRows,
    *,
    row_bytes: int = 1024,
    rewrite: Sequence[int] = (),
) -> list[WriteTask]:
    check_no_pending_clustering(found.groups[number] for number in found.counts.changed_groups)
    ids = count()
    files = plan_files(
        where,
        found.counts,
        row_bytes=row_bytes,
        merge_by_key=True,
        rewrite=rewrite,
        new_file_id=lambda: f"new{next(ids)}",
    )
    return [found.fill_task(file) for file in files]


def plan_deletes(
    where: WriteTarget, groups: Sequence[FileGroup], *keys: str, rewrite: Sequence[int] = ()
) -> list[WriteTask]:
    """keys: for each file group."""
    deletes = {number: DeletedKeys(pa.array(list(own))) for number, own in enumerate(keys) if own}
    return planned(where, AssignedLocalRows(SESSION, groups, deletes=deletes), rewrite=rewrite)


def keys_of(task: WriteTask) -> str:
    assert task.rows is not None
    return "".join(pa.table(task.rows).column(0).to_pylist())


def shape(tasks: Sequence[WriteTask]) -> list[tuple[str, str, str]]:
    return [(type(task).__name__, task.file_id, keys_of(task)) for task in tasks]


def test_split_keeps_order_within_a_key() -> None:
    parts = group_values(pa.array([2, 1, 2, 1]), pa.array([0, 1, 2, 3]))
    assert [(key, part.to_pylist()) for key, part in parts] == [(1, [1, 3]), (2, [0, 2])]
    assert list(group_values(pa.array([], pa.int64()), pa.array([], pa.int64()))) == []


def test_row_numbers_and_untagged() -> None:
    assert row_numbers(3).to_pylist() == [0, 1, 2]
    assert row_numbers(0).to_pylist() == []
    assert find_untagged(4, tagged((1, 0), (3, 0), (3, 1))).to_pylist() == [0, 2]


def test_copy_on_write_rewrites_and_fills_up_small_files() -> None:
    groups = [group("g0"), group("g1", size=101 * MB), group("g2", partition="q")]
    tasks = plan(target(), rows("abcd", "ppqr"), tagged((0, 1)), groups)
    assert shape(tasks) == [
        ("BaseFileTask", "g0", "b"),
        ("BaseFileTask", "g1", "a"),
        ("BaseFileTask", "g2", "c"),
        ("BaseFileTask", "new0", "d"),
    ]
    assert [task.previous is None for task in tasks if isinstance(task, BaseFileTask)] == [
        False, False, False, True,
    ]  # fmt: skip


def test_merge_on_read_updates_go_to_logs_and_inserts_to_base_files() -> None:
    groups = [group("g0", logs=1), group("g1", size=MB // 4), group("g2", size=MB // 2)]
    tasks = plan(target(mor=True), rows("abcd"), tagged((0, 0), (1, 2)), groups)
    assert shape(tasks) == [
        ("LogFileTask", "g0", "a"),
        ("BaseFileTask", "g1", "cd"),
        ("LogFileTask", "g2", "b"),
    ]


def test_merge_on_read_update_and_insert_of_one_group_are_one_rewrite() -> None:
    tasks = plan(target(mor=True), rows("ab"), tagged((0, 0)), [group("g0")])
    assert shape(tasks) == [("BaseFileTask", "g0", "ab")]
    assert (tasks[0].updates, tasks[0].inserts) == (1, 1)


@pytest.mark.parametrize("busy", [{"logs": 1}, {"compaction": "150"}, {"clustering": "150"}])
def test_busy_groups_take_no_inserts(busy: dict[str, object]) -> None:
    tasks = plan(target(mor=True), rows("a"), tagged(), [group("g0", **busy)])  # type: ignore[arg-type]
    assert shape(tasks) == [("BaseFileTask", "new0", "a")]


@pytest.mark.parametrize(
    ("mor", "factor", "size", "count", "takes"),
    [
        (True, 20, 1 * MB, 1, True),  # tiny
        (True, 20, 1 * MB + 1, 1, False),
        (True, 20, 20 * MB, 1023, False),
        (True, 20, 20 * MB, 1024, True),
        (False, 20, 20 * MB, 1023, False),
        (True, 3, 20 * MB, 1024, False),
        (True, 0, 99 * MB, 1, True),  # as Hudi
        (True, 0, 101 * MB, 1, False),
    ],
)
def test_inserts_rewrite_only_files_in_proportion(
    *, mor: bool, factor: int, size: int, count: int, takes: bool
) -> None:
    where = target(mor=mor, options=WriteOptions(rewrite_factor=factor))
    tasks = plan(where, rows("a" * count), tagged(), [group("g0", size=size)])
    assert [task.file_id for task in tasks] == ["g0" if takes else "new0"]


def test_inserts_go_to_a_large_file_that_is_rewritten_anyway() -> None:
    groups = [group("g0", size=50 * MB), group("g1", size=60 * MB)]
    tasks = plan(target(), rows("ab"), tagged((0, 1)), groups)
    assert shape(tasks) == [("BaseFileTask", "g1", "ab")]
    tasks = plan(target(mor=True), rows("ab"), tagged((0, 1)), groups)
    assert shape(tasks) == [("LogFileTask", "g1", "a"), ("BaseFileTask", "new0", "b")]


def test_new_groups_are_split_at_maximum_file_size() -> None:
    options = WriteOptions(small_file_limit=4096, max_file_size=4096)
    tasks = plan(target(options=options), rows("abcdefg"), tagged(), [group("g0", size=2048)])
    assert shape(tasks) == [
        ("BaseFileTask", "g0", "ab"),
        ("BaseFileTask", "new0", "cdef"),
        ("BaseFileTask", "new1", "g"),
    ]


def test_duplicate_key_is_updated_in_both_groups() -> None:
    groups = [group("g0"), group("g1")]
    assert shape(plan(target(), rows("a"), tagged((0, 0), (0, 1)), groups)) == [
        ("BaseFileTask", "g0", "a"),
        ("BaseFileTask", "g1", "a"),
    ]


def test_delete_rows_go_to_group_of_their_key() -> None:
    tasks = plan(
        target(mor=True), rows("abc"), tagged((0, 0), (1, 0)), [group("g0")], deleted=[1, 2]
    )
    assert shape(tasks) == [("LogFileTask", "g0", "ab")]
    log = tasks[0]
    assert isinstance(log, LogFileTask)
    assert (log.updates, log.deletes) == (1, 1)


def test_deletes_by_key_use_partition_of_match() -> None:
    groups = [group("g0"), group("g1", partition="q")]
    merge_on_read = plan_deletes(target(mor=True), groups, "a", "ab")
    assert [task.delete_keys.to_pydict() for task in merge_on_read] == [  # type: ignore[union-attr]
        {"_hoodie_record_key": ["a"], "_hoodie_partition_path": ["p"]},
        {"_hoodie_record_key": ["a", "b"], "_hoodie_partition_path": ["q", "q"]},
    ]
    for tasks in (
        plan_deletes(target(), groups, "b"),
        plan_deletes(target(mor=True), groups, "b", rewrite=[0]),
    ):
        assert [type(task).__name__ for task in tasks] == ["BaseFileTask"]
        assert [task.delete_keys.to_pylist() for task in tasks] == [["b"]]  # type: ignore[union-attr]


def test_update_of_group_in_pending_clustering_raises() -> None:
    groups = [group("g0", clustering="150")]
    with pytest.raises(CommitConflict, match="clustering 150 is pending"):
        plan(target(), rows("a"), tagged((0, 0)), groups)
    with pytest.raises(CommitConflict, match="clustering 150 is pending"):
        plan_deletes(target(), groups, "a")


def test_workload_profile_lists_inserts_and_updated_groups() -> None:
    groups = [group("g0"), group("g1", partition="q", logs=2)]
    tasks = plan(target(mor=True), rows("abc", "pqq"), tagged((1, 1)), groups)
    assert workload_profile(tasks) == {
        "p": (WriteStat(num_inserts=1),),
        "q": (
            WriteStat(num_inserts=1),
            WriteStat(file_id="g1", prev_commit="100", num_update_writes=1),
        ),
    }


def test_tasks_can_be_pickled() -> None:
    groups = [group("g0", logs=3)]
    task = plan(target(mor=True), rows("a"), tagged((0, 0)), groups)[0]
    copy = pickle.loads(pickle.dumps(task))
    assert isinstance(copy, LogFileTask)
    assert task.rows is not None
    assert copy.rows == pa.table(task.rows)
    assert copy.group.next_log_version == 4


def test_new_files_have_rows_of_option() -> None:
    options = WriteOptions(insert_split_rows=2, max_file_size=1)
    tasks = plan(target(options=options), rows("abcde"), tagged())
    assert [keys_of(task) for task in tasks] == ["ab", "cd", "e"]


def test_files_of_new_groups_alone_have_equal_parts() -> None:
    files = plan_new_files(
        target(options=WriteOptions(max_file_size=4096)),
        {"p": [RowRange(9, 9 * 1024)], "q": [RowRange(1, 1024)], "r": []},
        new_file_id=lambda: "new",
    )
    assert [(file.task.partition, file.inserts) for file in files] == [
        ("p", range(3)), ("p", range(3, 6)), ("p", range(6, 9)), ("q", range(1)),
    ]  # fmt: skip


def test_files_of_new_groups_are_cut_by_bytes() -> None:
    rows = [RowRange(1000, 1000), RowRange(3, 9000), RowRange(5, 0), RowRange(2, 2000)]
    files = plan_new_files(
        target(options=WriteOptions(max_file_size=4000)), {"p": rows}, new_file_id=lambda: "new"
    )
    assert [file.inserts for file in files] == [range(1001), range(1001, 1002), range(1002, 1010)]


def test_group_with_inserts_and_deletes_is_one_task() -> None:
    for mor, kind in ((True, LogFileTask), (False, BaseFileTask)):
        found = assign_rows(
            SESSION,
            rows("ab"),
            pa.array([False, False]),
            TagResult(tagged((0, 0)), [group("g0", logs=1)]),
        )
        found = replace(found, deletes={0: DeletedKeys(pa.array(["x", "y"]))})
        task = planned(target(mor=mor), found)[0]
        assert isinstance(task, kind)
        assert keys_of(task) == "a"
        if isinstance(task, LogFileTask):
            assert (task.updates, task.deletes) == (1, 2)
            assert task.delete_keys is not None
            assert task.delete_keys.column(0).to_pylist() == ["x", "y"]
        else:
            assert task.updates == 3
            assert task.delete_keys is not None
            assert task.delete_keys.to_pylist() == ["x", "y"]
