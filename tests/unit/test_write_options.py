from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.write_options import WriteOptions
from pyhudi.errors import ConfigError


def test_options_are_read_from_hudis_names() -> None:
    options = WriteOptions.of(
        {"hoodie.parquet.small.file.limit": "0", "hoodie.parquet.compression.codec": "ZSTD"}
    )
    assert (options.small_file_limit, options.codec) == (0, "zstd")
    blocks = {"hoodie.logfile.data.block.format": "PARQUET"}
    assert WriteOptions.of({**blocks, "hoodie.write.record.positions": "False"}) == WriteOptions(
        log_blocks="parquet", positions=False
    )
    assert WriteOptions.of({}) == WriteOptions()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hoodie.parquet.max.file.size", "0"),
        ("hoodie.parquet.max.file.size", "big"),
        ("hoodie.index.bloom.fpp", "1"),
        ("hoodie.parquet.compression.codec", "rar"),
        ("hoodie.logfile.data.block.format", "orc"),
        ("hoodie.orc.compression.codec", "LZO"),
        ("hoodie.orc.stripe.size", "0"),
        ("hoodie.orc.max.file.size", "big"),
        ("hoodie.orc.block.size", "-1"),
        ("hoodie.write.record.positions", "maybe"),
        ("hoodie.bloom.index.filter.type", "CUCKOO"),
        ("hoodie.record.size.estimation.threshold", "-1"),
        ("hoodie.copyonwrite.insert.split.size", "0"),
        ("hoodie.copyonwrite.insert.auto.split", "often"),
    ],
)
def test_invalid_values_raise_with_option_name(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        WriteOptions.of({name: value})


def test_orc_has_options_of_its_own() -> None:
    given = {
        "hoodie.orc.compression.codec": "SNAPPY",
        "hoodie.orc.stripe.size": "1000",
        "hoodie.orc.max.file.size": "2000",
        "hoodie.orc.block.size": "3000",
    }
    assert WriteOptions.of(given) == WriteOptions.of(given, "parquet") == WriteOptions()
    found = WriteOptions.of(given, "orc")
    assert (found.codec, found.row_group_bytes, found.max_file_size) == ("snappy", 1000, 2000)
    assert found.extension == "orc"
    assert found.null_elements
    usual = WriteOptions.of({"hoodie.parquet.max.file.size": "5"}, "orc")
    assert (usual.codec, usual.row_group_bytes, usual.max_file_size) == (
        "gzip",
        64 << 20,
        120 << 20,
    )


def test_rows_of_a_new_file_are_fixed_only_without_auto_split() -> None:
    size = {"hoodie.copyonwrite.insert.split.size": "70"}
    off = {"hoodie.copyonwrite.insert.auto.split": "false"}
    assert WriteOptions.of(size).insert_split_rows is None
    assert WriteOptions.of({**size, **off}).insert_split_rows == 70
    assert WriteOptions.of(off).insert_split_rows == 500_000


def test_options_for_the_commits_metadata(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"]})
    table = pyhudi.create_table(tmp_path / "t", rows.schema, key="id")
    pyhudi.open_table(tmp_path / "t", options={"_batch": "7"}).upsert(rows)
    pyhudi.open_table(tmp_path / "t").upsert(rows)
    timeline = table.refresh().state.timeline
    told = [timeline.commit_metadata(one).extra_metadata for one in timeline.commits]
    assert [one.get("_batch") for one in told] == ["7", None]
    assert all(one["schema"] for one in told)
