"""Tables that are partitioned by a generated column, and the partitions that filters prune."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.errors import ConfigError, ConstraintViolation
from pyhudi.schema.column_transforms import ColumnTransform

UTC = timezone.utc
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EDGES = [
    EPOCH,
    EPOCH - timedelta(microseconds=1),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2024, 2, 29, tzinfo=UTC),
    datetime(2024, 2, 29, tzinfo=UTC) - timedelta(microseconds=1),
    datetime(2023, 12, 31, 23, tzinfo=UTC),
]
TEXTS = ["B", "a", "ab", "abc", "abd", "äöü", "äö", "z 1", "😀x"]
TIMES = pa.timestamp("us", "UTC")
LOCAL_TIMES = pa.timestamp("us", "America/New_York")
TYPES: dict[str, pa.DataType] = {
    "at": TIMES,
    "local": pa.timestamp("us"),
    "zoned": LOCAL_TIMES,
    "born": pa.date32(),
    "n": pa.int64(),
    "small": pa.int32(),
    "text": pa.string(),
    "x": pa.float64(),
}
TRANSFORMS: list[ColumnTransform] = [
    pyhudi.day("at"),
    pyhudi.month("at"),
    pyhudi.year("at"),
    pyhudi.hour("at"),
    pyhudi.day("local"),
    pyhudi.hour("zoned"),
    pyhudi.day("born"),
    pyhudi.month("born"),
    pyhudi.bucket("n", 5),
    pyhudi.bucket("text", 5),
    pyhudi.bucket("at", 5),
    pyhudi.bucket("born", 5),
    pyhudi.truncate("n", 10),
    pyhudi.truncate("small", 7),
    pyhudi.truncate("text", 2),
]
EXPRESSIONS = {"x": "floor(x)", "text": "lower(text)", "n": "n % 3"}
OPERATORS = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def value(column: str, rng: random.Random) -> Any:
    """A random value of a column, near others."""
    if rng.random() < 0.1:
        return None
    if column in ("at", "local", "zoned", "born"):
        near = EPOCH + timedelta(microseconds=rng.randrange(-(10**13), 10**13))
        time = rng.choice([*EDGES, near, datetime(2024, 3, 1, tzinfo=UTC)])
        if column == "born":
            return time.date()
        return time.replace(tzinfo=None) if column == "local" else time
    if column == "x":
        return rng.choice([0.0, -0.0, float("nan"), float("inf"), 1.5, -1.5, 2.0])
    if column == "text":
        return rng.choice(TEXTS)
    return rng.choice([0, 1, -1, -10, 9, 10, -(2**31), 2**31 - 1, rng.randrange(-100, 100)])


def rows(column: str, rng: random.Random, count: int) -> pa.Table:
    values = pa.array([value(column, rng) for _ in range(count)], TYPES[column])
    return pa.table({"id": [str(number) for number in range(count)], column: values})


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda each: f"{each.function}-{each.column}")
def test_pruned_scans_return_all_rows(tmp_path: Path, transform: ColumnTransform) -> None:
    """Filters on the source return the rows that Arrow finds, and read fewer partitions."""
    rng = random.Random(transform.name)
    column = transform.column
    data = rows(column, rng, 60)
    table = pyhudi.create_table(
        tmp_path / "t",
        data,
        key="id",
        partition_by=transform,
        options={"hoodie.metadata.enable": "false", "hoodie.parquet.compression.codec": "gzip"},
    )
    assert table.config.partition_fields == (transform.name,)
    assert table.config.key_generator == "SIMPLE"
    every = table.inspect.partitions().num_rows
    pruned = 0
    for op, compare in OPERATORS.items():
        for _ in range(6):
            literal = value(column, rng)
            if literal is None:
                continue
            scalar = pa.scalar(literal, TYPES[column])
            scan = table.scan(where=[(column, op, literal)])
            expected = data.filter(compare(data[column], scalar))["id"].to_pylist()
            assert sorted(scan.to_arrow()["id"].to_pylist()) == sorted(expected), (op, literal)
            pruned += every - len(set(scan.plan()["partition"].to_pylist()))
    assert pruned > 0


@pytest.mark.parametrize("column", EXPRESSIONS)
def test_other_expressions_prune_by_equality_only(tmp_path: Path, column: str) -> None:
    rng = random.Random(column)
    data = rows(column, rng, 60)
    table = pyhudi.create_table(
        tmp_path / "t",
        data,
        key="id",
        partition_by="g",
        generated={"g": EXPRESSIONS[column]},
        options={"hoodie.metadata.enable": "false"},
    )
    everywhere = set(table.scan().plan()["partition"].to_pylist())
    for op in ("=", ">"):
        literal = next(v for v in data[column].to_pylist() if v is not None and str(v) != "nan")
        scan = table.scan(where=[(column, op, literal)])
        compare = OPERATORS[op](data[column], pa.scalar(literal, TYPES[column]))
        if column == "x":
            # SQL's NaN is above all numbers.
            compare = pc.or_(compare, pc.and_(pc.is_nan(data["x"]), pa.scalar(op == ">")))
        expected = data.filter(compare)["id"].to_pylist()
        assert sorted(scan.to_arrow()["id"].to_pylist()) == sorted(expected)
        partitions = set(scan.plan()["partition"].to_pylist())
        assert (partitions < everywhere) == (op == "=" and column != "x")


def make(base: Path, **more: Any) -> pyhudi.HudiTable:
    days = [datetime(2024, 3, day, 12, tzinfo=UTC) for day in (1, 2, 3)]
    data = pa.table({"id": ["a", "b", "c"], "at": pa.array(days, TIMES)})
    return pyhudi.create_table(base, data, key="id", partition_by=pyhudi.day("at"), **more)


def test_sql_filters_prune_partitions(tmp_path: Path) -> None:
    table = make(tmp_path / "t", options={"hoodie.datasource.write.hive_style_partitioning": True})
    scan = table.scan(where="at >= TIMESTAMP '2024-03-02 12:00:00Z' AND at < '2024-03-03'")
    assert scan.plan()["partition"].to_pylist() == ["at_day=2024-03-02"]
    assert "partition path" in str(scan.explain())
    assert scan.to_arrow()["id"].to_pylist() == ["b"]
    assert table.scan(where="at IN ('2024-03-01 12:00:00', '2030-01-01 00:00:00')").count() == 1
    start = table.scan().position
    table.upsert([{"id": "d", "at": datetime(2024, 3, 9, tzinfo=UTC)}])
    assert table.refresh().incremental(start, where="at < '2024-03-09'").count() == 0
    assert table.incremental(start, where="at >= '2024-03-09'").count() == 1


@pytest.mark.parametrize("index", ["record_index", "global_simple", "global_bloom"])
def test_rows_move_to_the_partition_of_their_value(tmp_path: Path, index: str) -> None:
    """A global index finds the old row; it leaves no row that a filter on the source misses."""
    table = make(tmp_path / "t", index=index)
    moved = datetime(2024, 3, 3, tzinfo=UTC)
    table.upsert([{"id": "a", "at": moved}])
    assert table.refresh().scan(where="at = '2024-03-03 00:00:00'").count() == 1
    assert table.count() == 3
    assert table.scan(where="id = 'a'").to_arrow()["at_day"].to_pylist() == [date(2024, 3, 3)]
    option = {
        "record_index": "hoodie.record.index.update.partition.path",
        "global_simple": "hoodie.simple.index.update.partition.path",
        "global_bloom": "hoodie.bloom.index.update.partition.path",
    }[index]
    options = {option: "false", "hoodie.index.type": index.upper()}
    with pytest.raises(ConfigError, match=option):
        pyhudi.open_table(table.uri, options=options).upsert([{"id": "a", "at": moved}])


def test_updates_cannot_move_rows(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.update("id = 'a'", {"at": "TIMESTAMP '2024-03-01 23:59:59'"})
    with pytest.raises(ConstraintViolation, match="'at_day'"):
        table.update("id = 'a'", {"at": "TIMESTAMP '2024-03-02 00:00:00'"})


def test_keys_and_merges_need_no_generated_column(tmp_path: Path) -> None:
    table = make(tmp_path / "t", index="simple", options={"hoodie.metadata.enable": "false"})
    day = datetime(2024, 3, 2, tzinfo=UTC)
    table.merge(
        [{"id": "b", "at": day}, {"id": "d", "at": day}]
    ).when_matched_delete().when_not_matched_insert_all().execute()
    assert sorted(table.refresh().to_arrow()["id"].to_pylist()) == ["a", "c", "d"]
    table.delete_keys([{"id": "d", "at": day}, {"id": "a", "at": day}])
    assert sorted(table.refresh().to_arrow()["id"].to_pylist()) == ["a", "c"]


def test_names_of_transforms(tmp_path: Path) -> None:
    data = pa.table(
        {
            "id": [1, 2],
            "order": pa.array(
                [datetime(2024, 1, 1, tzinfo=UTC).replace(tzinfo=None)] * 2, pa.timestamp("us")
            ),
            "s": pa.array([{"order": 1}, {"order": 2}]),
        }
    )
    table = pyhudi.create_table(
        tmp_path / "t",
        data,
        key="id",
        partition_by=[pyhudi.month("order", as_="m"), pyhudi.bucket("id", 3)],
        generated={"o": pyhudi.truncate("s.order", 2)},
    )
    assert table.config.partition_fields == ("m", "id_bucket")
    assert table.to_arrow()["o"].to_pylist() == [0, 2]
    assert table.scan(where="id = 1").plan().num_rows == 1
    with pytest.raises(ConfigError, match="buckets is 0"):
        pyhudi.bucket("id", 0)
    with pytest.raises(ConfigError, match="column is ''"):
        pyhudi.day("")
    with pytest.raises(ConfigError, match="two expressions"):
        pyhudi.create_table(
            tmp_path / "u",
            data,
            key="id",
            partition_by=pyhudi.day("s", as_="x"),
            generated={"x": "id + 1"},
        )
