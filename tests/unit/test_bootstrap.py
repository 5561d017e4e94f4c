"""Bootstrapped tables that Apache Hudi made: where the rows are, and what happens without them.

Writing to them is `test_bootstrap_writes.py`'s part.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi.errors import CorruptTable, UnsupportedTableFeature
from pyhudi.slices import bootstrap
from tests.helpers.tables import unpack

NAME = "v9_mor_bootstrap_compacted"
PROPERTIES = Path(".hoodie/hoodie.properties")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return unpack(NAME, tmp_path)


def source_files(base: Path) -> list[Path]:
    return sorted(base.with_name(f"{base.name}.source").rglob("*.parquet"))


def set_property(base: Path, key: str, value: str) -> None:
    path = base / PROPERTIES
    kept = [line for line in path.read_text().splitlines() if not line.startswith(f"{key}=")]
    path.write_text("\n".join([*kept, f"{key}={value}", ""]))


def test_slices_name_the_source_of_skeletons_alone(table: Path) -> None:
    tasks = pyhudi.open_table(str(table)).scan().tasks
    bases = [task.slice.base for task in tasks if task.slice.base]
    skeletons = [base for base in bases if base.instant == bootstrap.SKELETON_INSTANT]
    assert 0 < len(skeletons) < len(bases)
    for base in bases:
        assert (base.source is not None) == (base in skeletons)
    for base in skeletons:
        assert base.source is not None
        assert (Path(base.source.folder) / base.source.path).is_file()


def test_index_without_a_skeletons_file_is_damage(table: Path, tmp_path: Path) -> None:
    other = unpack("v9_mor_bootstrap_typed", tmp_path)
    shutil.copy(other / bootstrap.INDEX_FILE, table / bootstrap.INDEX_FILE)
    with pytest.raises(CorruptTable, match="no source for the skeleton"):
        pyhudi.open_table(str(table)).scan().to_arrow()


def test_missing_index_is_damage(table: Path) -> None:
    (table / bootstrap.INDEX_FILE).unlink()
    with pytest.raises(CorruptTable, match="hfile is missing") as caught:
        pyhudi.open_table(str(table)).scan().to_arrow()
    assert caught.value.file == bootstrap.INDEX_FILE


@pytest.mark.parametrize("part", [b"avro.schema", b'"fields"', b"fileIdToBootstrapFile"])
def test_bootstrap_index_names_damaged_record(table: Path, part: bytes) -> None:
    index = table / bootstrap.INDEX_FILE
    data = index.read_bytes()
    assert part in data
    index.write_bytes(data.replace(part, part.swapcase()))
    with pytest.raises(CorruptTable) as caught:
        pyhudi.open_table(str(table)).scan().to_arrow()
    assert caught.value.file == bootstrap.INDEX_FILE


def test_source_of_other_rows_is_damage(table: Path) -> None:
    for path in source_files(table):
        pq.write_table(pa.table({"id": ["k000"] * 1000}), path)
    with pytest.raises(CorruptTable, match="bootstrap source"):
        pyhudi.open_table(str(table)).scan().to_arrow()


def test_missing_source_is_no_empty_result(table: Path) -> None:
    shutil.rmtree(table.with_name(f"{NAME}.source"))
    with pytest.raises(FileNotFoundError, match="parquet"):
        pyhudi.open_table(str(table)).scan().to_arrow()


def test_partition_filter_knows_the_sources_folders(tmp_path: Path) -> None:
    base = unpack("v9_mor_bootstrap_not_hive", tmp_path)
    scan = pyhudi.open_table(str(base)).scan(where="city = 'osaka'")
    assert len(scan.tasks) < len(pyhudi.open_table(str(base)).scan().tasks)
    rows = scan.to_arrow()
    assert set(rows["city"].to_pylist()) == {"osaka"}


def test_partition_column_that_only_the_folder_holds_is_refused(table: Path) -> None:
    set_property(table, "hoodie.table.keygenerator.type", "TIMESTAMP")
    opened = pyhudi.open_table(str(table))
    assert opened.scan(columns=["id"]).count() > 0
    with pytest.raises(UnsupportedTableFeature, match="has no partition column city"):
        opened.scan().to_arrow()


@pytest.mark.parametrize(
    ("uri", "folder", "written", "found"),
    [
        ("file:/a/src/p=1/f", "/a/src", "/a/src", ("/a/src", "p=1/f")),
        ("file:///a/src/f", "file:/b", "file:/a/src/", ("file:/b", "f")),
        ("hdfs://host:1/a/src/f", "hdfs://host:1/a/src", "/a/src", ("hdfs://host:1/a/src", "f")),
        ("file:/a/srcs/f", "/a/src", "/a/src", ("file:/a/srcs", "f")),
        ("/a/src/c:d/f", "/a/src", "file:/a/src", ("/a/src", "c:d/f")),
    ],
)
def test_source_paths_are_relative_to_the_folder_where_they_lie_in_it(
    uri: str, folder: str, written: str, found: tuple[str, str]
) -> None:
    assert bootstrap.parse_source(uri, folder, written) == found
