"""Data files of another size than they were written with: rows are never less without an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.config.options import CHECK_SIZES
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import CorruptTable, MissingFile
from tests.helpers.appended_logs import appended_to, begun_in_a_log
from tests.helpers.table_builder import TableBuilder

AS_HUDI = {CHECK_SIZES: False}
LISTED = {"hoodie.metadata.enable": False}

Damage = Callable[[bytes], bytes]
CUTS: dict[str, Damage] = {
    "empty": lambda _: b"",
    "in a block": lambda data: data[: len(data) // 2],
    "last byte": lambda data: data[:-1],
    "between blocks": lambda data: data[: data.rindex(b"#HUDI#")],
}


TABLE = TableBuilder(
    {"id": (pa.string(), str), "part": (pa.string(), "x"), "v": (pa.int64(), 1)},
    partition_by="part",
    first="ab",
)


def made(base: Path, version: int, options: dict[str, Any], kind: str = "mor") -> HudiTable:
    """A table with a base file and two log files, the second with a data and a delete block."""
    table = TABLE.make(base, version=version, kind=kind, options=options)
    table.upsert(TABLE.rows("ab", v=2))
    gone = pa.array([False, True])
    table.upsert(
        TABLE.rows("ab", v=3).append_column("_hoodie_is_deleted", gone), schema_mode="merge"
    )
    return table


def the_file(base: Path, pattern: str) -> Path:
    """The newest of a kind."""
    return max((base / "x").glob(pattern), key=lambda path: path.name)


def damage(path: Path, how: Damage) -> tuple[int, int]:
    """Sizes before and after."""
    data = path.read_bytes()
    path.write_bytes(how(data))
    return len(data), path.stat().st_size


def check_refused(raised: pytest.ExceptionInfo[CorruptTable], path: Path, *sizes: int) -> None:
    error = raised.value
    assert error.file is not None
    assert error.file.endswith(path.name)
    for size in sizes:
        assert str(size) in str(error)
    assert CHECK_SIZES in error.hint


@pytest.mark.parametrize("cut", CUTS.values(), ids=list(CUTS))
@pytest.mark.parametrize("options", [{}, LISTED], ids=["metadata", "listed"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_cut_log_file(tmp_path: Path, version: int, options: Any, cut: Damage) -> None:
    made(tmp_path, version, options)
    path = the_file(tmp_path, ".*.log.*")
    sizes = damage(path, cut)
    with pytest.raises(CorruptTable) as raised:
        pyhudi.open_table(tmp_path, options=options).scan().to_arrow()
    check_refused(raised, path, *sizes)
    allowed = pyhudi.open_table(tmp_path, options={**options, **AS_HUDI})
    assert allowed.scan(columns=["v"]).to_arrow()["v"].to_pylist()[0] in (2, 3)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("how", [lambda data: data[:-1], lambda data: data + b"\0"])
def test_base_file_of_another_size(tmp_path: Path, version: int, how: Damage) -> None:
    made(tmp_path, version, {}, "cow")
    path = the_file(tmp_path, "*.parquet")
    sizes = damage(path, how)
    with pytest.raises(CorruptTable) as raised:
        pyhudi.open_table(tmp_path).scan().to_arrow()
    check_refused(raised, path, *sizes)


def test_log_file_of_another_table(tmp_path: Path) -> None:
    made(tmp_path / "table", 9, {})
    made(tmp_path / "other", 9, {})
    path = the_file(tmp_path / "table", ".*.log.*")
    other = min((tmp_path / "other" / "x").glob(".*.log.*"), key=lambda one: one.name)
    path.write_bytes(other.read_bytes())
    with pytest.raises(CorruptTable) as raised:
        pyhudi.open_table(tmp_path / "table").scan().to_arrow()
    check_refused(raised, path)


@pytest.mark.parametrize("options", [{}, LISTED], ids=["metadata", "listed"])
def test_log_files_grow_where_commits_append_to_them(tmp_path: Path, options: Any) -> None:
    made(tmp_path, 6, options)
    path = the_file(tmp_path, ".*.log.*")
    damage(path, lambda data: data + data)
    assert pyhudi.open_table(tmp_path).scan(columns=["v"]).to_arrow()["v"].to_pylist() == [3]


def shared(base: Path) -> HudiTable:
    """A table whose two commits after the first are in one log file."""
    table = TABLE.make(base, version=6, kind="mor", options=LISTED)
    table.upsert(TABLE.rows("ab", v=2))
    table.upsert(TABLE.rows("a", v=3))
    return appended_to(table)


def values(base: Path, commit: int) -> list[int]:
    """As they were after a commit, by its number."""
    table = pyhudi.open_table(base, options=LISTED)
    instant = table.state.timeline.commits[commit].requested
    found = table.scan(["v"], as_of=instant).to_arrow()["v"].to_pylist()
    return sorted(found)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_log_file_of_several_commits(tmp_path: Path, version: Any) -> None:
    """From before an upgrade, where it is read of old slices."""
    table = shared(tmp_path)
    if version > 6:
        table.upgrade(version)
    assert (values(tmp_path, 1), values(tmp_path, 2)) == ([2, 2], [2, 3])
    path = the_file(tmp_path, ".*.log.*")
    sizes = damage(path, CUTS["between blocks"])
    assert values(tmp_path, 1) == [2, 2]
    with pytest.raises(CorruptTable) as raised:
        values(tmp_path, 2)
    check_refused(raised, path, *sizes)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_log_file_that_began_its_slice(tmp_path: Path, version: Any) -> None:
    table = begun_in_a_log(shared(tmp_path))
    if version > 6:
        table.upgrade(version)
    assert (values(tmp_path, 0), values(tmp_path, 1)) == ([2, 2], [2, 3])
    path = the_file(tmp_path, ".*.log.*")
    damage(path, CUTS["empty"])
    for commit in (0, 1):
        with pytest.raises(CorruptTable) as raised:
            values(tmp_path, commit)
        check_refused(raised, path)


CALLS: dict[str, Callable[[HudiTable], Any]] = {
    "count": lambda t: t.scan().count(),
    "update": lambda t: t.update("v = 3", {"v": 4}),
    "delete": lambda t: t.delete("v = 3"),
    "merge": lambda t: t.merge(TABLE.rows("ab", v=5)).when_matched_update_all().execute(),
    "incremental": lambda t: t.incremental().to_arrow(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_reads_refuse_truncated_file(tmp_path: Path, call: Callable[[HudiTable], Any]) -> None:
    made(tmp_path, 9, {})
    path = the_file(tmp_path, ".*.log.*")
    damage(path, CUTS["empty"])
    with pytest.raises(CorruptTable) as raised:
        call(pyhudi.open_table(tmp_path))
    check_refused(raised, path)
    call(pyhudi.open_table(tmp_path, options=AS_HUDI))


@pytest.mark.parametrize("options", [{}, LISTED], ids=["metadata", "listed"])
def test_compaction_refuses_truncated_file(tmp_path: Path, options: Any) -> None:
    made(tmp_path, 6, options)
    path = the_file(tmp_path, ".*.log.*")
    damage(path, CUTS["between blocks"])
    with pytest.raises(CorruptTable) as raised:
        pyhudi.open_table(tmp_path, options=options).upgrade(9)
    check_refused(raised, path)
    table = pyhudi.open_table(tmp_path, options={**options, **AS_HUDI})
    assert table.version == 6
    table.upgrade(9)
    assert table.version == 9


@pytest.mark.parametrize("index", ["SIMPLE", "RECORD_INDEX", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("version", [6, 9])
def test_partial_upsert_refuses_truncated_file(tmp_path: Path, version: int, index: str) -> None:
    made(tmp_path, version, {})
    path = the_file(tmp_path, ".*.log.*")
    sizes = damage(path, CUTS["between blocks"])
    before = sorted(tmp_path.rglob("*.log.*"))
    data = TABLE.rows("ab", v=4).drop_columns(["v"])
    options = {"hoodie.index.type": index}
    with pytest.raises(CorruptTable) as raised:
        pyhudi.open_table(tmp_path, options=options).upsert(data, partial=True)
    check_refused(raised, path, *sizes)
    assert [one for one in sorted((tmp_path / "x").iterdir()) if ".log." in one.name] == [
        one for one in before if one.parent.name == "x"
    ]
    pyhudi.open_table(tmp_path, options={**options, **AS_HUDI}).upsert(data, partial=True)


@pytest.mark.parametrize("version", [6, 9])
def test_changes_of_a_cut_log_file(tmp_path: Path, version: int) -> None:
    options = {"hoodie.table.cdc.enabled": "true", **LISTED}
    table = made(tmp_path, version, options)
    assert table.changes().to_arrow().num_rows > 2
    path = the_file(tmp_path, ".*.log.*")
    sizes = damage(path, CUTS["between blocks"])
    with pytest.raises(CorruptTable) as raised:
        pyhudi.open_table(tmp_path).changes().to_arrow()
    check_refused(raised, path, *sizes)
    assert pyhudi.open_table(tmp_path, options=AS_HUDI).changes().to_arrow().num_rows


class Cleaned(LocalEngine):
    """A file goes when the files are listed, and the first task is about to begin."""

    def __init__(self, path: Path) -> None:
        super().__init__(1)
        self._path = path

    def run(self, *args: Any, **more: Any) -> list[Any]:
        self._path.unlink(missing_ok=True)
        return super().run(*args, **more)


LOOKING: dict[str, Callable[[HudiTable], Any]] = {
    "upsert": lambda table: table.upsert(TABLE.rows("ab", v=4)),
    "insert": lambda table: table.insert(TABLE.rows("ab", v=4)),
    "delete_keys": lambda table: table.delete_keys(TABLE.rows("ab", v=4)),
    "delete": lambda table: table.delete("v = 2"),
    "merge": lambda table: table.merge(TABLE.rows("ab", v=4)).when_matched_update_all().execute(),
}


@pytest.mark.parametrize("call", LOOKING.values(), ids=list(LOOKING))
@pytest.mark.parametrize(("kind", "pattern"), [("cow", "*.parquet"), ("mor", ".*.log.*")])
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "GLOBAL_BLOOM"])
def test_row_lookup_names_missing_file(
    tmp_path: Path, call: Callable[[HudiTable], Any], index: str, kind: str, pattern: str
) -> None:
    TABLE.make(tmp_path, kind=kind, options=LISTED).upsert(TABLE.rows("ab", v=2))
    path = the_file(tmp_path, pattern)
    options = {
        **LISTED,
        "hoodie.index.type": index,
        "hoodie.datasource.insert.dup.policy": "drop",
    }
    table = pyhudi.open_table(tmp_path, options=options, engine=Cleaned(path))
    with pytest.raises(MissingFile, match=r"Call refresh\(\)") as raised:
        call(table)
    assert path.name in str(raised.value.file)


def test_log_blocks_of_a_file_that_goes_while_it_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inspect = made(tmp_path, 9, {}).inspect
    view = inspect._view()
    assert view.slices()
    path = the_file(tmp_path, ".*.log.*")
    path.unlink()
    monkeypatch.setattr(inspect, "_view", lambda: view)
    with pytest.raises(MissingFile) as raised:
        inspect.logs()
    assert path.name in str(raised.value.file)


@pytest.mark.parametrize("pattern", ["*.parquet", ".*.log.*"])
def test_read_names_missing_file(tmp_path: Path, pattern: str) -> None:
    table = made(tmp_path, 9, {})
    path = the_file(tmp_path, pattern)
    path.unlink()
    with pytest.raises(MissingFile) as raised:
        table.scan().to_arrow()
    assert isinstance(raised.value, CorruptTable)
    assert isinstance(raised.value, FileNotFoundError)
    assert raised.value.file is not None
    assert raised.value.file.endswith(path.name)
    assert path.name in str(raised.value)
