"""Each flipped bit of a table is reported by a deep check, or changes nothing that readers see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.storage import properties_file
from tests.helpers import bit_flips

UNCHECKED = {".hoodie/.index_defs/index.json", ".hoodie/.locks/table_lock.json"}
"""JSON files that Hudi defines, without a place for a checksum."""


def _rows(numbers: range, added: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{number:04}" for number in numbers],
            "city": ["rome" if number % 2 else "oslo" for number in numbers],
            "v": [number + added for number in numbers],
            "note": [None if number % 7 == 0 else f"note {number % 5}" for number in numbers],
        }
    )


def _table(path: Path, version: int, **options: Any) -> pyhudi.HudiTable:
    table = pyhudi.create_table(
        path,
        _rows(range(60), 0),
        key="id",
        partition_by="city",
        type="mor",
        version=version,
        options=options,
    )
    table.upsert(_rows(range(10), 100))
    table.delete_keys(["k0011", "k0012"])
    table.upsert(_rows(range(5), 200))
    return table


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pyhudi.errors.MetadataTableWarning")
@pytest.mark.parametrize("version", [6, 9])
def test_deep_check_reports_flipped_bits(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bits of all files are sampled. What no check reports is what readers see as before."""
    monkeypatch.setattr(properties_file, "_SECONDS_BETWEEN_ROUNDS", 0.0)
    path = tmp_path / "t"
    _table(path, version)
    expected = bit_flips.content(path)
    assert not pyhudi.open_table(path).check(deep=True).findings
    missed: Counter[str] = Counter()
    for flip in bit_flips.sample(path, per_file=1, seed=version):
        outcome = bit_flips.outcome(path, flip, tmp_path / "copy", expected)
        kind = bit_flips.kind_of(flip.path)
        if version == 6 and kind == "timeline":
            continue  # JSON instants have no checksum.
        assert outcome.is_reported or not outcome.is_silent, flip
        if not outcome.is_reported and flip.path not in UNCHECKED:
            missed[kind] += 1
    assert not missed


Verify = Callable[[str], bool]
"""Returns whether all bytes of a file have right checksums. Raises `CorruptTable` if not."""


def _verify(table: pyhudi.HudiTable, kind: str) -> Verify:
    def verify(path: str) -> bool:
        if kind == "base file":
            return _native.verify_base_file(table.storage.native, path) == "whole"
        if kind == "HFile":
            return _native.verify_hfile(table.storage.native, path) == "whole"
        return _native.verify_log_file(table.storage.native, path) == ("whole", None)

    return verify


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "pattern", "blocks"),
    [
        ("base file", "oslo/*.parquet", "avro"),
        ("log", "oslo/.*.log.*", "avro"),
        ("log", "oslo/.*.log.*", "parquet"),
        ("metadata log", ".hoodie/metadata/files/.*.log.*", "avro"),
        ("HFile", ".hoodie/metadata/files/*.hfile", "avro"),
    ],
)
def test_deep_check_reports_every_bit_of_data_files(
    kind: str, pattern: str, blocks: str, tmp_path: Path
) -> None:
    table = _table(
        tmp_path / "t",
        9,
        **{"hoodie.logfile.data.block.format": blocks, "hoodie.index.type": "SIMPLE"},
    )
    file = min(tmp_path.joinpath("t").glob(pattern), key=lambda path: path.stat().st_size)
    path = str(file.relative_to(tmp_path / "t"))
    verify = _verify(table, kind)
    assert verify(path)
    content = file.read_bytes()
    unreported = []
    for bit in range(len(content) * 8):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        try:
            if verify(path):
                unreported.append(bit)
        except (pyhudi.CorruptTable, pyhudi.UnsupportedTableFeature):
            pass
    assert not unreported


def test_damaged_page_is_an_error_with_its_place(tmp_path: Path) -> None:
    """A reader names file, offset, column and row group, and returns no rows."""
    path = tmp_path / "t"
    table = pyhudi.create_table(path, _rows(range(3000), 0), key="id", type="cow")
    (file,) = path.glob("*.parquet")
    column = pq.read_schema(file).names.index("v")
    chunk = pq.read_metadata(file).row_group(0).column(column)
    damaged = bytearray(file.read_bytes())
    damaged[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 4
    file.write_bytes(damaged)
    assert pyhudi.open_table(path).to_arrow(columns=["id", "note"]).num_rows == 3000
    with pytest.raises(pyhudi.CorruptTable, match='column "v" of row group 0') as raised:
        table.to_arrow()
    assert raised.value.file is not None
    assert raised.value.file.endswith(file.name)
    assert raised.value.offset is not None
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    assert start <= raised.value.offset < start + chunk.total_compressed_size
    with pytest.raises(pyhudi.CorruptTable, match=file.name):
        table.get(["k0007"])
    (finding,) = (one for one in table.check(deep=True) if one.kind == "damaged_file")
    assert 'column "v" of row group 0' in finding.found


def test_checksums_are_verified_by_pyarrow(tmp_path: Path) -> None:
    """PyArrow verifies pages, also those that an upsert copied from the file before."""
    path = tmp_path / "t"
    table = pyhudi.create_table(path, _rows(range(30_000), 0), key="id", type="cow")
    table.upsert(_rows(range(2), 100))
    files = sorted(path.glob("*.parquet"))
    assert len(files) == 2
    for file in files:
        pq.read_table(file, partitioning=None, page_checksum_verification=True)
        damaged = bytearray(file.read_bytes())
        chunk = pq.read_metadata(file).row_group(0).column(7)
        damaged[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 4
        file.write_bytes(damaged)
        with pytest.raises(OSError, match="CRC"):
            pq.read_table(file, partitioning=None, page_checksum_verification=True)


def test_check_names_files_without_checksums(tmp_path: Path) -> None:
    """A file of another writer is no finding, but flipped bits in it may stay unnoticed."""
    path = tmp_path / "t"
    table = pyhudi.create_table(path, _rows(range(30), 0), key="id", type="cow")
    (file,) = path.glob("*.parquet")
    assert table.check(deep=True).unverified == ()
    pq.write_table(pq.read_table(file, partitioning=None), file)
    result = table.check(deep=True)
    assert result.unverified == (file.name,)
    assert "1 file without checksums" in str(result)
    assert table.check().unverified == ()
