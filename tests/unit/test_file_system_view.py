"""Which slices a query reads: the rules of both timeline layouts on tables of empty files."""

from __future__ import annotations

import gc
import io
import json
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable, HistoryUnavailable, UnsupportedTableFeature
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import list_files, walk_partitions
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from tests.unit.memory_storage import MemoryStorage

MARKER = ".hoodie_partition_metadata"
HISTORY = ".hoodie/timeline/history"


def sorted_partitions(storage: Storage) -> list[str]:
    return sorted(path for path, _ in walk_partitions(storage))


def t(number: int) -> str:
    """An instant; a greater number is later."""
    return f"20240101000000{number:03d}"


def base(file_id: str, number: int, token: str = "0-0-0") -> str:
    return f"p/{file_id}_{token}_{t(number)}.parquet"


def log(file_id: str, number: int, version: int = 1, suffix: str = "") -> str:
    return f"p/.{file_id}_{t(number)}.log.{version}_0-0-0{suffix}"


def v9(*commits: tuple[int, int], pending: Sequence[str] = ()) -> list[str]:
    """Timeline files: delta commits as (requested, completed), and names of pending ones."""
    done = [f".hoodie/timeline/{t(at)}_{t(end)}.deltacommit" for at, end in commits]
    return done + [f".hoodie/timeline/{name}" for name in pending]


def v6(*commits: int, pending: Sequence[str] = ()) -> list[str]:
    return [f".hoodie/{t(at)}.deltacommit" for at in commits] + [f".hoodie/{n}" for n in pending]


def view(
    version: int,
    paths: Sequence[str],
    contents: Mapping[str, Any] | None = None,
    partitions: Sequence[str] | None = None,
) -> FileSystemView:
    files = dict.fromkeys(paths, b"")
    files.update({path: json.dumps(value).encode() for path, value in (contents or {}).items()})
    return view_of(version, files, partitions)


def view_of(
    version: int,
    files: dict[str, bytes],
    partitions: Sequence[str] | None = None,
    disk: Path | None = None,
) -> FileSystemView:
    """`disk`: where the files are written, for those that the core reads."""
    files = {f"p/{MARKER}": b"", **files}
    storage: Storage = MemoryStorage(files)
    if disk is not None:
        storage = Storage(str(disk))
        for path, data in files.items():
            storage.put(path, data)
    properties = f"hoodie.table.name=t\nhoodie.table.version={version}\n"
    config = TableConfig.parse((properties + "hoodie.table.type=MERGE_ON_READ\n").encode())
    return FileSystemView(storage, config, Timeline.load(storage, config), partitions)


def names(one: FileSlice) -> tuple[str | None, list[str]]:
    return (one.base.path if one.base else None, [log.path for log in one.logs])


def only(slices: Sequence[FileSlice]) -> tuple[str | None, list[str]]:
    assert len(slices) == 1
    return names(slices[0])


def compaction(number: int, file_id: str, folder: str) -> dict[str, Any]:
    one = {"partitionPath": "p", "fileId": file_id, "baseInstantTime": "001"}
    plan = {"operations": [one]}
    return {f"{folder}/{t(number)}.compaction.requested": plan}


def replace(path: str, file_id: str) -> dict[str, Any]:
    return {path: {"partitionToReplaceFileIds": {"p": [file_id]}}}


class TestVersion6:
    def test_logs_belong_to_the_base_instant_in_their_name(self) -> None:
        found = view(6, [*v6(1, 2, 3), base("a", 1), base("a", 3), log("a", 1), log("a", 3)])
        assert only(found.slices()) == (base("a", 3), [log("a", 3)])

    def test_logs_that_a_downgrade_left_join_the_slice_before(self) -> None:
        found = view(6, [*v6(1, 2, 3), base("a", 1), log("a", 2), log("a", 3)])
        assert only(found.slices()) == (base("a", 1), [log("a", 2), log("a", 3)])

    def test_logs_that_a_downgrade_left_make_one_slice_without_a_base_file(self) -> None:
        found = view(6, [*v6(1, 2), log("a", 1), log("a", 2)])
        assert only(found.slices()) == (None, [log("a", 1), log("a", 2)])

    def test_log_files_come_in_numeric_order(self) -> None:
        logs = [log("a", 1, version) for version in (1, 2, 10)]
        assert only(view(6, [*v6(1), base("a", 1), *logs]).slices())[1] == logs

    def test_view_ignores_uncommitted_base_file(self) -> None:
        paths = [*v6(1, pending=[f"{t(2)}.deltacommit.inflight"]), base("a", 1), base("a", 2)]
        assert only(view(6, paths).slices()) == (base("a", 1), [])

    def test_view_counts_instant_before_timeline_as_committed(self) -> None:
        assert only(view(6, [*v6(5), base("a", 1)]).slices()) == (base("a", 1), [])

    def test_view_ignores_pending_instant_before_timeline(self) -> None:
        paths = [*v6(5, pending=[f"{t(1)}.deltacommit.requested"]), base("a", 1)]
        assert view(6, paths).slices() == []

    def test_view_reads_log_only_group_after_first_commit(self) -> None:
        done = view(6, [*v6(1), log("a", 1)])
        assert only(done.slices()) == (None, [log("a", 1)])
        assert done.base_slices() == []

    def test_view_ignores_log_only_group_of_failed_commit(self) -> None:
        paths = [*v6(1, pending=[f"{t(2)}.deltacommit.inflight"]), log("a", 2)]
        assert view(6, paths).slices() == []

    def test_view_joins_slices_of_pending_compaction(self) -> None:
        paths = [*v6(1, 2, 4), base("a", 1), log("a", 1), log("a", 3)]
        found = view(6, paths, compaction(3, "a", ".hoodie"))
        assert only(found.slices()) == (base("a", 1), [log("a", 1), log("a", 3)])

    def test_view_ignores_base_file_of_running_compaction(self) -> None:
        paths = [*v6(1, 2, 4), base("a", 1), log("a", 1), base("a", 3), log("a", 3)]
        found = view(6, paths, compaction(3, "a", ".hoodie"))
        assert only(found.slices()) == (base("a", 1), [log("a", 1), log("a", 3)])
        assert only(found.base_slices()) == (base("a", 1), [])

    def test_appends_go_to_the_slice_of_the_pending_compaction(self) -> None:
        paths = [*v6(1), base("a", 1), base("b", 1)]
        found = view(6, paths, compaction(3, "a", ".hoodie")).iter_newest_slices()
        assert [(one.file_id, one.base_instant) for one in found] == [("a", t(3)), ("b", t(1))]

    def test_replaced_groups_are_gone(self) -> None:
        contents = replace(f".hoodie/{t(2)}.replacecommit", "a")
        found = view(6, [*v6(1), base("a", 1), base("b", 2)], contents)
        assert only(found.slices()) == (base("b", 2), [])

    def test_view_ignores_pending_clustering(self) -> None:
        pending = [f"{t(2)}.replacecommit.requested", f"{t(2)}.replacecommit.inflight"]
        paths = [*v6(1, pending=pending), base("a", 1), base("b", 2)]
        assert only(view(6, paths).slices()) == (base("a", 1), [])


class TestVersion9:
    def test_view_adds_log_to_slice_started_before_its_completion(self) -> None:
        paths = [*v9((1, 2), (3, 4), (5, 6)), base("a", 1), log("a", 3), base("a", 5)]
        assert only(view(9, paths).slices()) == (base("a", 5), [])

    def test_view_keeps_log_completed_after_compaction(self) -> None:
        paths = [*v9((1, 2), (3, 8), (5, 9)), base("a", 1), log("a", 3), base("a", 5)]
        assert only(view(9, paths).slices()) == (base("a", 5), [log("a", 3)])

    def test_view_keeps_log_during_pending_compaction(self) -> None:
        paths = [*v9((1, 2), (3, 4), (5, 8)), base("a", 1), log("a", 3), log("a", 5)]
        found = view(9, paths, compaction(6, "a", ".hoodie/timeline"))
        assert only(found.slices()) == (base("a", 1), [log("a", 3), log("a", 5)])
        assert names(found.all_slices()[0]) == (None, [log("a", 5)])

    def test_logs_of_uncommitted_instants_are_left_out(self) -> None:
        paths = [*v9((1, 2), pending=[f"{t(3)}.deltacommit.inflight"]), base("a", 1), log("a", 3)]
        assert only(view(9, paths).slices()) == (base("a", 1), [])

    def test_view_finds_commit_behind_files_of_failed_writer(self) -> None:
        pending = [f"{t(3)}.deltacommit.inflight"]
        paths = [*v9((1, 2), (5, 6), pending=pending), base("a", 1), base("a", 3), log("a", 5)]
        assert only(view(9, paths).slices()) == (base("a", 1), [log("a", 5)])

    def test_view_makes_one_slice_of_log_only_group(self) -> None:
        paths = [*v9((1, 2), (3, 4)), log("a", 1), log("a", 3)]
        found = view(9, paths).slices()
        assert only(found) == (None, [log("a", 1), log("a", 3)])
        assert found[0].base_instant == t(1)

    def test_cdc_files_hold_no_rows(self) -> None:
        paths = [*v9((1, 2), (3, 4)), base("a", 3), log("a", 3, suffix=".cdc")]
        assert only(view(9, paths).slices()) == (base("a", 3), [])

    def test_base_instants_of_another_length_compare_with_the_logs_own(self) -> None:
        old = "p/a_0-0-0_00000000000000.parquet"
        paths = [*v9((1, 2), (3, 4)), old, log("a", 3)]
        assert only(view(9, paths).slices()) == (old, [log("a", 3)])

    def test_clustering_results_replace_their_inputs(self) -> None:
        done = f".hoodie/timeline/{t(3)}_{t(4)}.replacecommit"
        found = view(9, [*v9((1, 2)), base("a", 1), base("c", 3)], replace(done, "a"))
        assert only(found.slices()) == (base("c", 3), [])


def history(*instants: tuple[int, int]) -> dict[str, bytes]:
    """An archived timeline of delta commits as (requested, completed)."""
    sink = io.BytesIO()
    times = {
        "instantTime": [t(a) for a, _ in instants],
        "completionTime": [t(b) for _, b in instants],
        "action": ["deltacommit"] * len(instants),
    }
    pq.write_table(pa.table(times), sink)
    name = f"{t(instants[0][0])}_{t(instants[-1][0])}_0.parquet"
    manifest = {"files": [{"fileName": name, "fileLen": 1}]}
    return {
        f"{HISTORY}/{name}": sink.getvalue(),
        f"{HISTORY}/manifest_1": json.dumps(manifest).encode(),
        f"{HISTORY}/_version_": b"1",
    }


class TestArchivedCompletions:
    PATHS = (*v9((7, 8)), base("a", 1), log("a", 3), base("a", 5))

    def files(self) -> dict[str, bytes]:
        return dict.fromkeys(self.PATHS, b"")

    @pytest.mark.parametrize(("completed", "logs"), [(4, []), (6, [log("a", 3)])])
    def test_place_logs_of_archived_commits(
        self, completed: int, logs: list[str], tmp_path: Path
    ) -> None:
        archived = history((1, 2), (3, completed), (5, 6))
        found = view_of(9, {**self.files(), **archived}, disk=tmp_path).slices()
        assert only(found) == (base("a", 5), logs)

    def test_are_found_while_the_version_file_is_being_replaced(self, tmp_path: Path) -> None:
        archived = history((1, 2), (3, 6), (5, 6))
        del archived[f"{HISTORY}/_version_"]
        found = view_of(9, {**self.files(), **archived}, disk=tmp_path).slices()
        assert only(found)[1] == [log("a", 3)]

    def test_view_reports_missing_file_sizes(self) -> None:
        with pytest.raises(HistoryUnavailable, match=t(3)):
            view_of(9, self.files()).slices()

    def test_are_not_asked_for_where_they_do_not_matter(self) -> None:
        paths = [*v9((7, 8)), base("a", 1), log("a", 3)]
        assert only(view(9, paths).slices()) == (base("a", 1), [log("a", 3)])

    @pytest.mark.parametrize("damage", [b"PAR1 no PAR1", b""])
    def test_view_names_damaged_file(self, damage: bytes, tmp_path: Path) -> None:
        archived = history((3, 4))
        name = next(path for path in archived if path.endswith(".parquet"))
        with pytest.raises(CorruptTable) as raised:
            view_of(9, {**self.files(), **archived, name: damage}, disk=tmp_path).slices()
        assert raised.value.file == name

    def test_view_names_missing_file(self, tmp_path: Path) -> None:
        archived = history((3, 4))
        name = next(path for path in archived if path.endswith(".parquet"))
        del archived[name]
        with pytest.raises(CorruptTable) as raised:
            view_of(9, {**self.files(), **archived}, disk=tmp_path).slices()
        assert raised.value.file == name


def test_partitions_are_folders_with_a_marker_at_any_depth() -> None:
    storage = MemoryStorage(
        dict.fromkeys(
            (
                f"a/b/{MARKER}",
                f"c/{MARKER}.parquet",
                f"c/inner/{MARKER}",
                "d/no_partition",
                f".hoodie/metadata/files/{MARKER}",
            ),
            b"",
        )
    )
    assert sorted_partitions(storage) == ["a/b", "c"]


def test_unpartitioned_table_is_one_partition() -> None:
    assert sorted_partitions(MemoryStorage({MARKER: b"", ".hoodie/x": b""})) == [""]


def test_listing_partitions_below_a_folder_called_hoodie() -> None:
    """As Apache Hudi lists them: such a folder may be a partition, and no folder of partitions."""
    files = [f"a/.hoodie/{MARKER}", f"a/b/{MARKER}", f"c/.hoodie/d/{MARKER}", f".hoodie/e/{MARKER}"]
    storage = MemoryStorage(dict.fromkeys(files, b""))
    assert sorted_partitions(storage) == ["a/.hoodie", "a/b"]
    assert [path for path, _ in list_files(storage, lambda path: path == "a/b")] == ["a/b"]


def test_listing_leaves_out_tables_within_the_table() -> None:
    properties = ".hoodie/hoodie.properties"
    files = [properties, f"a/{MARKER}", f"inner/{properties}", f"inner/b/{MARKER}"]
    assert sorted_partitions(MemoryStorage(dict.fromkeys(files, b""))) == ["a"]


def test_given_partitions_are_listed_directly_and_may_be_missing() -> None:
    storage = MemoryStorage({f"a/{MARKER}": b"", f"b/{MARKER}": b""})
    found = {path: len(files) for path, files in list_files(storage, ["b", "new"])}
    assert found == {"b": 1, "new": 0}


def test_view_refuses_orc_file_in_parquet_table() -> None:
    with pytest.raises(UnsupportedTableFeature, match="ORC"):
        view(9, [*v9((1, 2)), base("a", 1).replace(".parquet", ".orc")]).slices()


def test_view_is_freed_after_its_slices_were_found() -> None:
    """The garbage collector does not see a cycle through an object of the core."""
    used = view(9, [*v9((1, 2)), base("a", 1)])
    assert used.slices()
    dead = weakref.ref(used)
    del used
    gc.collect()
    assert dead() is None
