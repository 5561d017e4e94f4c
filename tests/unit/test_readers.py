"""Which engines can read a table: the answers follow the table's features."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.admin.reader_limits import (
    CLICKHOUSE,
    DAFT,
    ENGINES,
    FEATURES,
    LIMITS,
    RS_5,
    RS_6,
    SPARK_0,
    SPARK_1,
    SPARK_12,
    TRINO,
    limits_of,
)
from pyhudi.admin.readers import _CHECKS
from tests.helpers.table_builder import SMALL, TableBuilder

ROWS = TableBuilder(
    {"id": (pa.string(), str), "city": (pa.string(), "oslo"), "fare": (pa.float64(), 1.0)},
    partition_by="city",
    metadata=False,
    options=SMALL,
    first="ab",
)
SPARKS = (SPARK_0, SPARK_1, SPARK_12)


def answers(table: HudiTable) -> dict[str, str]:
    return {reader.engine: reader.answer for reader in table.inspect.readers()}


def features(table: HudiTable) -> set[str]:
    return {limit.feature for reader in table.inspect.readers() for limit in reader.limits}


def test_versions_decide_which_spark_reads(tmp_path: Path) -> None:
    by_version = {
        version: [found[spark] for spark in SPARKS]
        for version in (6, 8, 9)
        for found in [answers(ROWS.make(tmp_path / str(version), version=version))]
    }
    assert by_version == {
        6: ["yes", "yes", "yes"],
        8: ["no", "yes", "yes"],
        9: ["no", "no", "yes"],
    }


def test_log_files_count_until_they_are_compacted(tmp_path: Path) -> None:
    """ClickHouse and Trino read base files only; this table has its rows there at the end."""
    table = ROWS.make(tmp_path / "t", kind="mor")
    assert "log_files" not in features(table)
    table.upsert(ROWS.rows("b", fare=2.0))
    assert "log_files" in features(table)
    assert table.inspect.readers()[TRINO].answer == "unknown"
    assert answers(table)[RS_5] == "yes"
    table.compact()
    assert "log_files" not in features(table)


def test_replaced_files_count_until_they_are_cleaned(tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t", version=6)
    assert answers(table)[DAFT] == "yes"
    table.bulk_insert(ROWS.rows("c"))
    table.cluster()
    readers = table.inspect.readers()
    assert readers[DAFT].answer == "wrong"
    assert "returns the rows of replaced files" in str(readers[DAFT])
    assert any("table.clean()" in limit.change for limit in readers[CLICKHOUSE].limits)
    for fare in range(3):
        table.upsert(ROWS.rows("a", fare=float(fare)))
    table.clean(retain=1)
    assert answers(table)[DAFT] == "yes"


def test_planned_compaction_of_version_6(tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t", version=6, kind="mor")
    table.upsert(ROWS.rows("b", fare=2.0))
    table.compact(execute=False)
    assert answers(table)[RS_5] == "wrong"
    table.compact(schedule=False)
    assert answers(table)[RS_5] == "yes"


@pytest.mark.parametrize(
    ("axes", "feature", "engine", "answer"),
    [
        ({"partition_by": ["city:simple"]}, "typed_partitions", RS_5, "no"),
        ({"partition_by": ["city:simple"], "version": 6}, None, RS_5, "yes"),
        ({"order_by": ["fare", "id"]}, "several_orderings", RS_5, "no"),
        (
            {"kind": "mor", "index": "bucket", "options": {
                "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
                "hoodie.bucket.index.num.buckets": "2",
            }},
            "consistent_hashing",
            RS_5,
            "wrong",
        ),
        (
            {"options": {"hoodie.table.base.file.format": "ORC"}},
            "orc_copy_on_write",
            SPARK_12,
            "no",
        ),
        ({"columns": {**ROWS.columns, "at": (pa.timestamp("us"), None)}}, "local_timestamps", RS_5,
         "no"),
        ({"columns": {**ROWS.columns, "at": (pa.timestamp("us", "UTC"), None)}}, "timestamps", RS_5,
         "yes"),
        (
            {"columns": {**ROWS.columns, "s": (pa.struct([("at", pa.timestamp("us"))]), None)}},
            "local_timestamps",
            SPARK_1,
            "wrong",
        ),
        ({"columns": {**ROWS.columns, "v": (pyhudi.vector(2), None)}}, "vectors", RS_5, "wrong"),
        ({"metadata": True}, "column_stats", SPARK_12, "yes"),
        ({"partition_by": None}, "no_partitions", SPARK_12, "yes"),
    ],
)  # fmt: skip
def test_features_of_new_tables(
    axes: dict[str, Any], feature: str | None, engine: str, answer: str, tmp_path: Path
) -> None:
    axes = {"version": 8 if engine == SPARK_1 else 9, **axes}
    table = ROWS.make(tmp_path / "t", **axes)
    assert feature is None or feature in features(table)
    assert answers(table)[engine] == answer


def test_readers_know_altered_columns(tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t", version=6)
    table.alter().rename_column("fare", "price").execute()
    assert answers(pyhudi.open_table(table.uri))[RS_5] == "wrong"


def test_readers_as_text_table_and_html(tmp_path: Path) -> None:
    readers = ROWS.make(tmp_path / "t").inspect.readers()
    rows = readers.to_arrow().to_pylist()
    assert [row["engine"] for row in rows] == list(ENGINES)
    assert len(readers) == len(ENGINES)
    for row, reader in zip(rows, readers, strict=True):
        assert row["answer"] == reader.answer
        assert len(row["limits"]) == len(row["changes"]) == len(row["sources"])
        assert str(reader) in str(readers)
    html = readers._repr_html_()
    assert all(engine.replace("'", "&#x27;") in html or engine in html for engine in ENGINES)
    with pytest.raises(pyhudi.ConfigError, match="Did you mean 'Trino'"):
        readers["trino"]


def test_readers_of_unreleased_engine_are_unknown(tmp_path: Path) -> None:
    assert answers(ROWS.make(tmp_path / "t"))[RS_6] == "unknown"


def test_limits_name_engine_feature_and_source() -> None:
    assert FEATURES.keys() == _CHECKS.keys()
    assert {limit.feature for limit in LIMITS} == FEATURES.keys()
    pairs = [(limit.engine, limit.feature) for limit in LIMITS]
    assert len(pairs) == len(set(pairs))
    for limit in LIMITS:
        assert limit.engine in ENGINES
        assert limit.source or limit.answer == "unknown", limit
    assert sum(len(list(limits_of(engine))) for engine in ENGINES) == len(LIMITS)


def test_sources_and_changes_exist(tmp_path: Path) -> None:
    """Pages that limits name, and methods that they advise."""
    root = Path(__file__).parents[2]
    table = ROWS.make(tmp_path / "t")
    for limit in LIMITS:
        if limit.source.startswith("docs/"):
            assert (root / limit.source).is_file()
        for method in re.findall(r"table\.(\w+)\(", limit.change):
            assert hasattr(table, method)
