"""Writes with Hudi's options warn of defaults that differ, without a Spark session."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiDefaultsWarning
from pyhudi.engine.local import LocalEngine
from pyhudi.spark.hudi_defaults import DIFFERENCES
from pyhudi.spark.hudi_operations import ArrowRows, Target, run_write
from pyhudi.spark.hudi_option_table import decision
from pyhudi.spark.hudi_options import WriteRequest, check_hudi_options

W = "hoodie.datasource.write."
KEY = {W + "recordkey.field": "id"}
MOR = {**KEY, W + "table.type": "MERGE_ON_READ"}
SET = {
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.clean.max.commits": "1",
    "pyhudi.small.file.rewrite.factor": "0",
}


def write_warnings(base: Path, options: dict[str, str]) -> list[str]:
    rows = ArrowRows(pa.table({"id": ["a"], "v": [1]}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_write(rows, WriteRequest.of(options), Target(str(base), LocalEngine(1)), "append")
    return [str(each.message) for each in caught if each.category is HudiDefaultsWarning]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (KEY, "3 defaults differ from Hudi's: hoodie.parquet.compression.codec is zstd, not gzip"),
        (MOR, "4 defaults differ from Hudi's"),
        ({**MOR, **SET}, "1 default differs from Hudi's: hoodie.compact.inline is false"),
    ],
)
def test_first_write_warns_once_with_count(
    tmp_path: Path, options: dict[str, str], message: str
) -> None:
    [warning] = write_warnings(tmp_path / "t", options)
    assert warning.startswith(message)
    assert not write_warnings(tmp_path / "t", options)


def test_options_that_are_set_are_not_reported(tmp_path: Path) -> None:
    assert write_warnings(tmp_path / "t", {**KEY, **SET}) == []


@pytest.mark.parametrize(
    ("options", "writes", "message"),
    [
        ({**MOR, "hoodie.write.table.version": "6"}, 1, "hoodie.write.auto.upgrade is false"),
        (MOR, 5, "hoodie.compact.inline is false"),
        ({**KEY, "hoodie.index.type": "BUCKET"}, 1, "hoodie.index.type is BUCKET"),
    ],
)
def test_existing_table_warns_of_defaults_with_effect(
    tmp_path: Path, options: dict[str, str], writes: int, message: str
) -> None:
    for _ in range(writes):
        write_warnings(tmp_path / "t", options)
    later = {name: value for name, value in options.items() if name != "hoodie.index.type"}
    [warning] = write_warnings(tmp_path / "t", later)
    assert warning.startswith(f"1 default differs from Hudi's: {message}")


@pytest.mark.parametrize("name", [name for each in DIFFERENCES for name in each.names])
def test_reported_options_can_be_set(name: str) -> None:
    values: dict[str, Any] = {"hoodie.parquet.compression.codec": "gzip"}
    value = values.get(name, "true" if decision(name) is not None else "1")
    check_hudi_options({name: value}, "write")
