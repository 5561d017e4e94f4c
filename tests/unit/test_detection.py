"""Detecting a table's index from its files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.config.file_names import are_buckets, is_bucket
from pyhudi.errors import ConfigError
from pyhudi.index.detection import IndexDetector
from pyhudi.write.write_context import WriteContext

NO_METADATA = {"hoodie.metadata.enable": "false"}
LIKE_A_BUCKET = "00054321-4bcb-4a7c-9a35-9d1a3c1c0000-0"


def rows(first: int, last: int, value: int) -> pa.Table:
    return pa.table({"id": range(first, last), "v": [value] * (last - first)})


def made(base: Path, **options: str) -> pyhudi.HudiTable:
    given = {name.replace("_", "."): text for name, text in options.items()}
    table = pyhudi.create_table(
        base, rows(0, 1, 0).schema, key="id", options={**NO_METADATA, **given}
    )
    table.upsert(rows(0, 10, 1))
    return table


def has_buckets(table: pyhudi.HudiTable) -> bool:
    return IndexDetector(table.storage, table.config, table.state.timeline).has_buckets


def test_ids_that_begin_as_buckets_do() -> None:
    assert is_bucket(LIKE_A_BUCKET)
    assert not are_buckets([])
    assert not are_buckets([LIKE_A_BUCKET])
    assert are_buckets(["00000001-4bcb-4a7c-9a35-9d1a3c1c0000-0"])
    assert not are_buckets(["00000001-4bcb-4a7c-9a35-9d1a3c1c0000-0", "a" + LIKE_A_BUCKET[1:]])
    assert are_buckets([f"0005432{n}" + LIKE_A_BUCKET[8:] for n in range(3)])


@pytest.mark.parametrize("index", [None, "SIMPLE", "GLOBAL_SIMPLE"])
def test_file_id_that_looks_like_bucket_is_not_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str | None
) -> None:
    """Of 43,000 ids Hudi makes one such; the table's other commits tell what it is."""
    with monkeypatch.context() as patch:
        patch.setattr(WriteContext, "new_file_id", lambda _: LIKE_A_BUCKET)
        table = made(tmp_path / "t")
    assert not has_buckets(table)
    options = {**NO_METADATA, **({"hoodie.index.type": index} if index else {})}
    again = pyhudi.open_table(tmp_path / "t", options=options)
    again.upsert(rows(5, 15, 2))
    found = again.scan().to_arrow().sort_by("id")
    assert found.column("id").to_pylist() == list(range(15))
    assert found.column("v").to_pylist() == [1] * 5 + [2] * 10
    assert not again.check(deep=True).findings


def test_few_buckets_are_told_from_small_numbers(tmp_path: Path) -> None:
    table = made(tmp_path / "t", hoodie_index_type="BUCKET", hoodie_bucket_index_num_buckets="2")
    table.upsert(rows(0, 1, 5))
    assert has_buckets(table)
    simple = pyhudi.open_table(tmp_path / "t", options={"hoodie.index.type": "SIMPLE"})
    with pytest.raises(ConfigError, match="file groups are buckets"):
        simple.upsert(rows(0, 1, 6))


def test_bucket_index_is_refused_for_other_file_ids(tmp_path: Path) -> None:
    made(tmp_path / "t")
    buckets = pyhudi.open_table(tmp_path / "t", options={"hoodie.index.type": "BUCKET"})
    with pytest.raises(ConfigError, match="file groups are not buckets"):
        buckets.upsert(rows(0, 1, 6))


def test_ids_made_here_never_begin_as_a_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pyhudi.create_table(tmp_path / "t", rows(0, 1, 0).schema, key="id", options=NO_METADATA)
    opened = WriteContext.open(table, SystemClock())
    monkeypatch.setattr(SystemClock, "uuid", lambda _: LIKE_A_BUCKET.removesuffix("-0"))
    assert opened.new_file_id() == f"f{LIKE_A_BUCKET[1:]}"
