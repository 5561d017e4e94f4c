"""Footers of base files beside those that Apache Hudi gave the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi.config.write_options import BLOOM_ENTRIES
from pyhudi.slices.write_base import store_base_file
from pyhudi.slices.write_tasks import WriteTarget
from pyhudi.write.write_context import WriteContext
from tests.helpers.tables import unpack

FEW = "64"
MANY = "60000"
"""Keys that filters were made for: what `tests/helpers/golden` sets, and Hudi's default."""

TABLES = {
    "v6_cow_all_types": FEW,
    "v6_mor_all_types": FEW,
    "v6_cow_clustering": FEW,
    "v6_cow_nonpart": MANY,
    "v8_cow_commit_time": FEW,
    "v8_mor_all_types": FEW,
    "v8_cow_nonpart": MANY,
    "v9_cow_commit_time": FEW,
    "v9_cow_all_types": FEW,
    "v9_cow_nonpart": MANY,
}
AVRO_WRITER = b"parquet.avro.schema"
"""Hudi's row writer, which clustering uses, leaves it out."""


def footers(name: str, folder: Path) -> Iterator[tuple[pq.ParquetFile, pq.ParquetFile]]:
    """Every base file of the table that Hudi's Avro writer made, and ours of the same rows."""
    base = unpack(name, folder)
    table = pyhudi.open_table(base, options={BLOOM_ENTRIES: TABLES[name]})
    target = WriteContext.open(table, None).target("20990101000000000")
    for file in sorted(base.rglob("*.parquet")):
        if ".hoodie" in file.parts:
            continue
        theirs = pq.ParquetFile(file)
        if AVRO_WRITER in theirs.metadata.metadata:
            yield theirs, rewritten(target, base, file)


def rewritten(target: WriteTarget, base: Path, file: Path) -> pq.ParquetFile:
    """A file with the same rows in the same order."""
    name = f"again-{file.name}"
    store_base_file(target, name, pq.read_table(file, partitioning=None))
    return pq.ParquetFile(base / name)


@pytest.mark.parametrize("name", TABLES)
def test_footers_are_those_of_hudi(name: str, tmp_path: Path) -> None:
    compared = 0
    for theirs, ours in footers(name, tmp_path):
        # Avro schema, model name, key range, kind and bytes of the bloom filter.
        entries = dict(ours.metadata.metadata)
        assert entries.pop(b"pyhudi.crc32")
        assert entries == theirs.metadata.metadata
        assert ours.schema.equals(theirs.schema)
        compared += 1
    assert compared


def test_another_size_of_the_filter_shows_in_the_footer(tmp_path: Path) -> None:
    base = unpack("v9_cow_nonpart", tmp_path)
    table = pyhudi.open_table(base, options={BLOOM_ENTRIES: FEW})
    file = next(file for file in base.glob("*.parquet"))
    ours = rewritten(WriteContext.open(table, None).target("20990101000000000"), base, file)
    key = b"org.apache.hudi.bloomfilter"
    assert ours.metadata.metadata[key] != pq.ParquetFile(file).metadata.metadata[key]
