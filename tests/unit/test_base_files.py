"""Base files as the write options want them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi


def written(base: Path, **options: str) -> pq.FileMetaData:
    data = pa.table({"id": [f"k{i:05}" for i in range(20000)], "city": ["oslo"] * 20000})
    named = {key.replace("_", "."): value for key, value in options.items()}
    pyhudi.create_table(base, data, key="id", options=named)
    (file,) = base.glob("*.parquet")
    return pq.read_metadata(file)


@pytest.mark.parametrize("kind", ["SIMPLE", "DYNAMIC_V0"])
def test_kind_of_bloom_filter_and_key_range(tmp_path: Path, kind: str) -> None:
    footer = written(tmp_path / "t", hoodie_bloom_index_filter_type=kind).metadata or {}
    assert footer[b"hoodie_bloom_filter_type_code"] == kind.encode()
    assert footer[b"hoodie_min_record_key"] == b"k00000"
    assert footer[b"hoodie_max_record_key"] == b"k19999"


@pytest.mark.parametrize("on", ["true", "false"])
def test_dictionary_encoding(tmp_path: Path, on: str) -> None:
    metadata = written(tmp_path / "t", hoodie_parquet_dictionary_enabled=on)
    columns = [metadata.row_group(0).column(at) for at in range(metadata.num_columns)]
    city = next(column for column in columns if column.path_in_schema == "city")
    assert ("RLE_DICTIONARY" in city.encodings) == (on == "true")


@pytest.mark.parametrize(("codec", "shown"), [("zstd", "ZSTD"), ("snappy", "SNAPPY")])
def test_codec(tmp_path: Path, codec: str, shown: str) -> None:
    metadata = written(tmp_path / "t", hoodie_parquet_compression_codec=codec)
    assert metadata.row_group(0).column(0).compression == shown


def test_page_size(tmp_path: Path) -> None:
    sizes = {}
    for pages in ("1000", "1000000"):
        table = tmp_path / pages
        written(table, hoodie_parquet_page_size=pages, hoodie_parquet_dictionary_enabled="false")
        (file,) = table.glob("*.parquet")
        sizes[pages] = file.stat().st_size
    assert sizes["1000"] > sizes["1000000"]
