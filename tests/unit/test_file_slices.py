"""File slices in the core: names, groups, the rules of slices, and what they cost in Python."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyhudi
from pyhudi import HudiTable, _native
from pyhudi.config.actions import COMMIT, State
from pyhudi.config.file_names import parse_base_name, parse_log_name
from pyhudi.config.timeline_layout import LAYOUT_2
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.slices.file_slice import BaseFile, LogFile, LogFiles, Selection
from pyhudi.slices.file_slices import FileSlices, slices_table, snapshot_slice
from pyhudi.slices.slice_builder import FileGroups
from pyhudi.timeline.commit_metadata import CommitMetadata
from tests.helpers.slice_model import GroupModel

NAME_PARTS = st.lists(
    st.sampled_from(
        [
            ".", "_", "-", "/", "f1", "0", "12", "007", "log", ".log.", ".cdc", "é", " ",
            "0-1-2", "_0-1-2", "parquet", ".parquet", ".PARQUET", ".orc", ".hfile", ".lance",
            "_hudiext", ".f1_1.log.1", "f1_0_2.parquet", "\n",
        ]
    ),
    max_size=7,
).map("".join)  # fmt: skip
NAMES = st.one_of(NAME_PARTS, st.text(max_size=20))


def test_log_files_of_slice_are_equal_to_their_objects() -> None:
    names = [f".f1_00{number}.log.1_0-1-2" for number in range(3)]
    builder = _native.FileGroupsBuilder("parquet")
    builder.add("p", [(f"p/{name}", 7, 0) for name in names])
    (group,) = FileGroups(builder.finish(), appended=False).values()
    parts = [(name, f"00{number}", "0-1-2", 7, 1, "") for number, name in enumerate(names)]
    logs = LogFiles("p", "f1", parts, appended=False)
    assert logs == tuple(group.logs)
    assert tuple(group.logs) == logs
    assert logs == LogFiles("p", "f1", list(parts), appended=False)
    assert logs != LogFiles("p", "f1", parts, appended=True)
    assert hash(logs) == hash(tuple(group.logs))
    assert (logs[-1], logs[1:]) == (group.logs[-1], tuple(group.logs[1:]))
    assert pickle.loads(pickle.dumps(logs)) == tuple(group.logs)


def test_absent_files_are_those_that_are_not_listed() -> None:
    listed = [".f1_001.log.1_0-1-2", ".f1_001.log.2_0-1-2", "f1_0-1-2_001.parquet", ".f1_002.log.1"]
    builder = _native.FileGroupsBuilder("parquet")
    builder.add("p/q", [(f"p/q/{name}", 7, 0) for name in listed])
    builder.add("", [("f1_0-1-2_003.parquet", 7, 0)])
    groups = builder.finish()
    others = [
        "p/q/.f1_003.log.1_0-1-2", "p/q/.f1_001.log.1_0-1-3", "p/q/.f2_001.log.1_0-1-2",
        "p/f1_0-1-2_001.parquet", "f1_0-1-2_001.parquet", "p/q/f1_0-1-2_002.parquet", "p/q/x",
        "p/q/.f1_001.log.1_0-1-2.cdc",
    ]  # fmt: skip
    paths = [*others, *(f"p/q/{name}" for name in listed), "f1_0-1-2_003.parquet"]
    assert groups.absent(paths) == list(range(len(others)))


@settings(max_examples=300, deadline=None)
@given(NAMES, st.sampled_from(["parquet", "orc", "hfile", None]))
def test_names_are_parsed_as_single_ones_are(name: str, extension: str | None) -> None:
    name = name.rpartition("/")[2].encode(errors="replace").decode()
    builder = _native.FileGroupsBuilder(extension)
    unsupported = builder.add("", [(name, 7, 0)])
    try:
        base, log = parse_base_name(name, extension), parse_log_name(name)
    except UnsupportedTableFeature:
        assert unsupported == name
        return
    assert unsupported is None
    groups = FileGroups(builder.finish().with_change_logs(True), appended=False)
    files: list[BaseFile | LogFile] = [file for group in groups.values() for file in group.bases]
    files += [file for group in groups.values() for file in group.logs]
    expected: list[tuple[Any, ...]] = []
    if base is not None:
        expected = [(name, base.file_id, base.instant, base.write_token, 7)]
    elif log is not None:
        expected = [(name, log.file_id, log.instant, log.write_token, 7)]
        assert [(one.version, one.suffix) for one in groups["", log.file_id].logs] == [
            (log.version, log.suffix)
        ]
    assert [(one.name, one.file_id, one.instant, one.write_token, one.size) for one in files] == (
        expected
    )


INSTANTS = [f"{number:03d}" for number in range(1, 9)] + ["0045"]
TOKENS = ["0-1-2", "0-1", "0-1-10"]


@st.composite
def timelines(draw: st.DrawFn) -> dict[str, Any]:
    """Files of two groups, and the state of their instants."""
    groups = st.sampled_from(["f1", "f2"])
    base = st.builds("{}_{}_{}.parquet".format, groups, st.sampled_from(TOKENS), instants())
    log = st.builds(
        ".{}_{}.log.{}_{}".format, groups, instants(), st.sampled_from(["1", "2", "10"]), tokens()
    )
    return {
        "names": draw(st.lists(st.one_of(base, log), max_size=12, unique=True)),
        "committed": draw(st.sets(instants())),
        "completed": {
            instant: draw(st.sampled_from([one for one in INSTANTS if one >= instant]))
            for instant in INSTANTS
        },
        "compaction": draw(st.none() | instants()),
        "by_name": draw(st.booleans()),
        "change_logs": draw(st.booleans()),
    }


def instants() -> st.SearchStrategy[str]:
    return st.sampled_from(INSTANTS)


def tokens() -> st.SearchStrategy[str]:
    return st.sampled_from(["0-1-2", "0-1-10", "0-1-2.cdc"])


@settings(max_examples=300, deadline=None)
@given(timelines())
def test_slices_are_those_of_a_slow_model(history: dict[str, Any]) -> None:
    builder = _native.FileGroupsBuilder("parquet")
    builder.add("p", [(f"p/{name}", 5, 0) for name in history["names"]])
    native = builder.finish().with_change_logs(history["change_logs"])
    groups = FileGroups(native, appended=history["by_name"])
    compaction = history["compaction"]
    pending = {("p", "f1"): compaction} if compaction else {}
    finder = _native.SliceFinder(
        native,
        is_committed=history["committed"].__contains__,
        completion_time=history["completed"].__getitem__,
        logs_named_by_base_instant=history["by_name"],
        compactions=list(pending.items()),
    )

    def find(selection: Selection) -> FileSlices:
        return FileSlices(finder.find(selection, []), appended=history["by_name"])

    models = [
        GroupModel(
            *key,
            group.bases,
            group.logs,
            history["by_name"],
            history["committed"].__contains__,
            history["completed"].__getitem__,
            pending.get(key),
        ).slices()
        for key, group in groups.items()
    ]
    assert find("all") == [slice_ for slices in models for slice_ in slices]
    assert find("newest") == [slices[0] for slices in models if slices]
    snapshot = [snapshot_slice(slices, compaction) for slices in models]
    assert find("snapshot") == [slice_ for slice_ in snapshot if slice_ is not None]
    found = find("all")
    assert found.to_arrow() == slices_table(list(found))
    assert found.totals[2:] == (
        sum(len(slice_.logs) for slice_ in found),
        sum(slice_.log_size for slice_ in found),
    )


# --- cost -----------------------------------------------------------------------------------------

GROUPS = 2_000
PARTITIONS = 4


@pytest.fixture(scope="module")
def many_groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of empty base files, all of one commit."""
    base = tmp_path_factory.mktemp("many") / "t"
    schema = pa.schema([("id", pa.string()), ("day", pa.string()), ("v", pa.int64())])
    options = {"hoodie.metadata.enable": "false"}
    pyhudi.create_table(base, schema, key="id", partition_by="day", version=9, options=options)
    for number in range(GROUPS):
        folder = base / f"d{number % PARTITIONS}"
        if number < PARTITIONS:
            folder.mkdir()
            (folder / ".hoodie_partition_metadata").write_text("partitionDepth=1\n")
        name = f"{number:08x}-0000-4000-8000-000000000000-0_0-1-2_20240101000000000.parquet"
        (folder / name).touch()
    avro = _native.avro_schema(schema, "record", "hoodie.test")
    commit = CommitMetadata(extra_metadata={"schema": avro}, operation_type="UPSERT")
    name = LAYOUT_2.file_name("20240101000000000", COMMIT, State.COMPLETED, "20240101000001000")
    (base / ".hoodie/timeline" / name).write_bytes(commit.to_avro(pyhudi.clock.SystemClock()))
    return base


def python_calls(work: Callable[[], object]) -> int:
    """Return the number of Python functions that are called."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    "work",
    [
        lambda table: table.scan().plan(),
        lambda table: len(table.scan().tasks),
        lambda table: table.scan(where="day = 'd1'").explain(),
        lambda table: table.inspect.health(),
    ],
    ids=["plan", "tasks", "explain", "health"],
)
def test_planning_calls_no_python_function_for_each_slice(
    work: Callable[[HudiTable], object], many_groups: Path
) -> None:
    options = {"hoodie.metadata.enable": "false"}
    table = pyhudi.open_table(many_groups, options=options)
    assert table.scan().plan().num_rows == GROUPS
    work(table)
    assert python_calls(lambda: work(table)) < GROUPS
