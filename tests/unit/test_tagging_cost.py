"""What an upsert by the record index reads: of base files those that it writes anew, no others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from tests.helpers.record_index import TABLE, content, opened
from tests.helpers.tables import unpack

KEYS = 200_000


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of many keys in several files a partition."""
    folder = tmp_path_factory.mktemp("wide")
    for name in ("v9_cow_record_index", "v9_mor_record_index"):
        unpack(name, folder)
        table = opened(folder / name, **{"hoodie.parquet.max.file.size": str(192 * 1024)})
        assert table.bulk_insert(TABLE.rows(range(KEYS), ts=1000)).files_written > 8
    return folder


def base_files(base: Path) -> list[Path]:
    return [file for file in base.rglob("*.parquet") if ".hoodie" not in file.parts]


def spoil(files: list[Path], kept: Path) -> None:
    """Puts the files aside and leaves nothing to read in their places."""
    for file in files:
        shutil.copy(file, kept / file.name)
        file.write_bytes(bytes(file.stat().st_size))


def mend(files: list[Path], kept: Path) -> None:
    for file in files:
        if file.exists():
            shutil.copy(kept / file.name, file)


@pytest.mark.slow
def test_upsert_appends_without_opening_a_base_file(wide: Path, tmp_path: Path) -> None:
    base = wide / "v9_mor_record_index"
    files = base_files(base)
    spoil(files, tmp_path)
    changed = pa.concat_tables(
        [TABLE.rows(range(4321, KEYS, 500), ts=2000), TABLE.rows(range(KEYS, KEYS + 9), ts=1)]
    )
    result = opened(base).upsert(changed)
    mend(files, tmp_path)
    assert result.bytes_read == 0
    assert (result.rows_updated, result.rows_inserted) == (changed.num_rows - 9, 9)
    check_rows(base, changed)


def test_upsert_opens_the_base_files_that_it_rewrites(wide: Path, tmp_path: Path) -> None:
    base = wide / "v9_cow_record_index"
    changed = TABLE.rows(range(500, 520), ts=2000)
    where = pyhudi.open_table(base).scan(meta_fields=True, where="id >= 'w0000500'").to_arrow()
    hit = where.filter(pc.is_in(where.column("id"), value_set=changed.column("id")))
    names = set(hit.column("_hoodie_file_name").to_pylist())
    files = base_files(base)
    others = [file for file in files if file.name not in names]
    assert len(others) == len(files) - 1
    spoil(others, tmp_path)
    result = opened(base).upsert(changed)
    mend(others, tmp_path)
    assert result.bytes_read == sum(file.stat().st_size for file in files if file.name in names)
    assert result.rows_updated == 20
    check_rows(base, changed)


def check_rows(base: Path, changed: pa.Table) -> None:
    found = content(base)
    assert len(found.column("id").unique()) == found.num_rows
    kept = found.filter(pc.is_in(found.column("id"), value_set=changed.column("id")))
    assert kept.column("ts").to_pylist() == changed.sort_by("id").column("ts").to_pylist()
