"""Names of base and log files: every form that Hudi writes, and what it passes over."""

from __future__ import annotations

import pytest

from pyhudi.config.file_names import (
    BaseName,
    LogName,
    base_file_name,
    is_partition_metadata,
    log_file_name,
    parse_base_name,
    parse_log_name,
)
from pyhudi.errors import UnsupportedTableFeature

FILE_ID = "9e007cbe-6993-47e2-8c43-81c568fa6bbc-0"
TIME = "20261121084258055"


def test_base_file_name_has_file_id_token_and_instant() -> None:
    name = f"{FILE_ID}_0-1860-2728_{TIME}.parquet"
    assert parse_base_name(name) == BaseName(FILE_ID, "0-1860-2728", TIME)
    assert base_file_name(FILE_ID, "0-1860-2728", TIME, "parquet") == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f".{FILE_ID}_{TIME}.log.1_0-1-2", LogName(FILE_ID, TIME, 1, "0-1-2", "")),
        (f".{FILE_ID}_{TIME}.log.12_0-1-2.cdc", LogName(FILE_ID, TIME, 12, "0-1-2", ".cdc")),
        (f".{FILE_ID}_{TIME}.log.3", LogName(FILE_ID, TIME, 3, "", "")),
        (
            f".00000003-cc25-4a03-a6fe-c551a9035643-0_{TIME}.log.1_1-0-1",
            LogName("00000003-cc25-4a03-a6fe-c551a9035643-0", TIME, 1, "1-0-1", ""),
        ),
    ],
)
def test_log_names_with_and_without_token_and_suffix(name: str, expected: LogName) -> None:
    assert parse_log_name(name) == expected


def test_log_file_name_round_trips() -> None:
    name = log_file_name(FILE_ID, TIME, 2, "3-4-5")
    assert parse_log_name(name) == LogName(FILE_ID, TIME, 2, "3-4-5", "")


@pytest.mark.parametrize(
    "name",
    [
        ".hoodie_partition_metadata",
        f".{FILE_ID}_0-1-2_{TIME}.parquet.crc",
        f"..{FILE_ID}_{TIME}.log.1_0-1-2.crc",
        f".{FILE_ID}_{TIME}.log.1_0-1-2.crc",
        f".{FILE_ID}_{TIME}.log.1_0-1-2.cdc.crc",
        f".{FILE_ID}_{TIME}.log.1_0-1-2.417-0.tmp",
        ".commits_.archive.1_1-0-1",
        f"{FILE_ID}_{TIME}.parquet",
        f"part-00000-{FILE_ID}.c000.snappy.parquet",
        f"{FILE_ID}_0-1-2_{TIME}.parquet.417-0.tmp",
        "_SUCCESS",
    ],
)
def test_foreign_file_name_is_ignored(name: str) -> None:
    assert parse_base_name(name) is None
    assert parse_log_name(name) is None


@pytest.mark.parametrize(
    ("extension", "of_table"),
    [("hfile", None), ("lance", None), ("orc", "parquet"), ("parquet", "orc"), ("hfile", "orc")],
)
def test_base_file_of_other_format_is_refused(extension: str, of_table: str | None) -> None:
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.table\.base\.file\.format"):
        parse_base_name(f"{FILE_ID}_0-1-2_{TIME}.{extension}", of_table)


@pytest.mark.parametrize("name", ["part-0.parquet", "2-0.snappy.parquet"])
@pytest.mark.parametrize("group", ["", "_fg%3Dbucket-0"])
def test_file_of_unknown_writer_is_refused(name: str, group: str) -> None:
    with pytest.raises(UnsupportedTableFeature, match="_hudiext"):
        parse_base_name(f"{name}_{TIME}{group}_hudiext")
    assert parse_base_name(name) is None


@pytest.mark.parametrize("extension", ["orc", "parquet"])
def test_base_files_of_data_tables(extension: str) -> None:
    name = f"{FILE_ID}_0-1-2_{TIME}.{extension}"
    assert parse_base_name(name) == parse_base_name(name, extension)
    assert parse_base_name(name) is not None


def test_partition_metadata_comes_in_three_forms() -> None:
    assert is_partition_metadata(".hoodie_partition_metadata")
    assert is_partition_metadata(".hoodie_partition_metadata.parquet")
    assert not is_partition_metadata("data.parquet")


def test_base_files_of_an_index_by_data_partition() -> None:
    name = "record-index-new%5Fyork 1.5-0000-0_1-246-731_20261121200846023.hfile"
    parsed = parse_base_name(name, "hfile")
    assert parsed is not None
    assert parsed.file_id == "record-index-new%5Fyork 1.5-0000-0"
    assert parsed.instant == "20261121200846023"
    assert parse_base_name(f".{name}.crc", "hfile") is None
    assert parse_base_name(name) is None
