"""A scan as a dataset of pyarrow: what DuckDB and pyarrow find in it, and how little is read."""

from __future__ import annotations

import datetime as dt
import math
import operator
import pickle
import random
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
import pytest
from pyarrow import acero

import pyhudi
from pyhudi.errors import ConfigError, CorruptTable, SchemaMismatch, UnsupportedTableFeature
from pyhudi.testing import comparable_rows
from tests.helpers.engine_rows import CITIES, DAY, NOON, odd_table
from tests.helpers.recording_engine import RecordingEngine


@pytest.fixture(scope="module")
def engine() -> RecordingEngine:
    return RecordingEngine()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, engine: RecordingEngine) -> pyhudi.HudiTable:
    return odd_table(tmp_path_factory.mktemp("table") / "odd", engine=engine)


@pytest.fixture(scope="module")
def everything(table: pyhudi.HudiTable) -> pa.Table:
    return table.scan().to_arrow()


@pytest.fixture
def dataset(table: pyhudi.HudiTable, everything: pa.Table, engine: RecordingEngine) -> pds.Dataset:
    engine.forget()
    return table.scan().to_dataset()


# --- pyarrow --------------------------------------------------------------------------------------

VALUES: dict[str, list[Any]] = {
    "city": [*CITIES, "paris"],
    "n": [-10, 0, 3, 105, 2**40, 2.5],
    "large": [2**53, 2**53 + 1, 2**53 + 30, float(2**53)],
    "f": [0.1, 0, -0.0, 3, float("nan"), float("inf")],
    "g": [0.1, pa.scalar(0.1, pa.float32()), 0, float("nan"), 2.5],
    "text": ["", "a", "ab", "é", "\U0001f600"],
    "flag": [True, False],
    "day": [DAY, DAY + dt.timedelta(20)],
    "at": [
        NOON,
        NOON + dt.timedelta(hours=5, microseconds=5),
        pa.scalar(NOON).cast(pa.timestamp("s", "UTC")),
    ],
    "price": [Decimal("2.50"), Decimal("2.505"), 3, 2.5],
}
OPERATORS = [operator.gt, operator.lt, operator.ge, operator.le, operator.eq, operator.ne]


def term(chance: random.Random) -> pc.Expression:
    name = chance.choice(list(VALUES))
    field, values = pc.field(name), VALUES[name]
    one = chance.choice(values)
    plain = [value for value in values if type(value) is type(values[0])]
    match chance.randrange(8):
        case 0:
            return field.isin([chance.choice(plain), chance.choice(plain)])
        case 1:
            return field.isin([chance.choice(plain), None])
        case 2:
            return field.is_null()
        case 3:
            return field.is_valid()
        case 4:
            return pc.scalar(one) > field
        case _:
            return chance.choice(OPERATORS)(field, one)


def expression(chance: random.Random) -> pc.Expression:
    made = term(chance)
    for _ in range(chance.randrange(3)):
        other = term(chance)
        match chance.randrange(4):
            case 0:
                made = made | other
            case 1:
                made = made & ~other
            case _:
                made = made & other
    return made


@pytest.mark.parametrize("seed", range(5))
def test_dataset_filter_matches_pyarrow(
    dataset: pds.Dataset, everything: pa.Table, seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(25):
        wanted = expression(chance)
        try:
            rows = everything.filter(wanted)
        except pa.ArrowInvalid:
            continue  # values that pyarrow itself does not compare
        assert comparable_rows(dataset.to_table(filter=wanted)) == comparable_rows(rows), str(
            wanted
        )


def test_columns_and_filters_go_into_the_scan(
    dataset: pds.Dataset, engine: RecordingEngine
) -> None:
    wanted = (pc.field("city") == "osaka") & (pc.field("n") > 20)
    rows = dataset.to_table(columns=["text"], filter=wanted)
    assert rows.column_names == ["text"]
    assert engine.columns == {"text", "city", "n"}
    assert engine.partitions == ["osaka"]


def test_conditions_that_rule_out_files(dataset: pds.Dataset, engine: RecordingEngine) -> None:
    field = pc.field
    wanted = (
        (field("n") >= 1)
        & (pc.scalar(5) > field("g"))
        & (field("day") <= DAY)
        & (field("at") > NOON)
        & (field("price") < Decimal("9.5"))
        & field("text").isin(["a", "b"])
        & (field("large") != 3)
        & field("flag")
        # What follows says nothing of one column that is certain of every value.
        & (field("g") > 0.1)
        & (field("price") > 2.5)
        & field("text").isin(["a", None])
        & (field("n") + 1 > 3)
        & ((field("n") > 3) | (field("f") > 3))
    )
    dataset.to_table(filter=wanted)
    where = engine.tasks[0].where
    assert where is not None
    assert {(name, op) for name, op, _ in where.conjuncts} == {
        ("n", ">="),
        ("g", "<"),
        ("day", "<="),
        ("at", ">"),
        ("price", "<"),
        ("text", "in"),
        ("large", "!="),
    }


def test_computed_columns_read_what_they_are_made_of(
    dataset: pds.Dataset, everything: pa.Table, engine: RecordingEngine
) -> None:
    rows = dataset.to_table(columns={"more": pc.field("n") + 1}, filter=pc.field("n") > 0)
    assert engine.columns == {"n"}
    wanted = everything.filter(pc.field("n") > 0)["n"]
    assert sorted(rows["more"].to_pylist()) == sorted(pc.add(wanted, 1).to_pylist())


def test_filters_follow_one_another(dataset: pds.Dataset, everything: pa.Table) -> None:
    one, two = pc.field("n") > 5, pc.field("city") != "rome"
    found = dataset.filter(one).filter(two).to_table()
    assert comparable_rows(found) == comparable_rows(everything.filter(one & two))
    with pytest.raises(SchemaMismatch, match="nope"):
        dataset.filter(pc.field("nope") > 1)


def test_counting_reads_one_column(dataset: pds.Dataset, engine: RecordingEngine) -> None:
    assert dataset.count_rows() == 60
    assert len(engine.columns) == 1
    engine.forget()
    assert dataset.count_rows(filter=pc.field("n") >= 100) == 12
    assert engine.columns == {"n"}


def test_dataset_supports_other_methods(dataset: pds.Dataset, everything: pa.Table) -> None:
    assert dataset.schema == everything.schema
    assert dataset.head(3).num_rows == 3
    assert dataset.take([4, 0]).equals(everything.take([4, 0]))
    assert sum(batch.num_rows for batch in dataset.to_batches(batch_size=7)) == 60
    assert max(batch.num_rows for batch in dataset.to_batches(batch_size=7)) <= 7
    ordered = dataset.sort_by([("id", "descending")]).to_table()
    assert ordered["id"].to_pylist() == [f"k{n:02}" for n in reversed(range(60))]
    assert comparable_rows(dataset.scanner().to_reader()) == comparable_rows(everything)


def test_dataset_written_copy_is_equal(
    dataset: pds.Dataset, everything: pa.Table, tmp_path: Path
) -> None:
    pds.write_dataset(dataset, tmp_path / "copy", format="parquet")
    assert comparable_rows(pds.dataset(tmp_path / "copy").to_table()) == comparable_rows(everything)


@pytest.mark.parametrize(
    "past_its_scanner",
    [
        lambda dataset: pds.dataset([dataset]),
        lambda dataset: pds.UnionDataset(dataset.schema, [dataset]).to_table(),
        lambda dataset: acero.Declaration("scan", acero.ScanNodeOptions(dataset)).to_table(),
        lambda dataset: dataset.join(dataset, "id"),
        lambda dataset: dataset.join_asof(dataset, "ts", "id", 1),
        lambda dataset: dataset.to_table(columns=["nope"]),
    ],
)
def test_dataset_unsupported_method_raises(dataset: pds.Dataset, past_its_scanner: Any) -> None:
    with pytest.raises((ConfigError, SchemaMismatch, FileNotFoundError)):
        past_its_scanner(dataset)


def test_dataset_limit_applies_before_filter(table: pyhudi.HudiTable) -> None:
    scan = table.scan(limit=7, where="n >= 0")
    first, wanted = scan.to_arrow(), pc.field("text") == "a"
    dataset = scan.to_dataset()
    assert dataset.count_rows() == 7
    found = dataset.to_table(columns=["id"], filter=wanted)
    assert comparable_rows(found) == comparable_rows(first.filter(wanted).select(["id"]))
    assert [part.to_table().num_rows for part in dataset.get_fragments()] == [7]


def test_columns_that_the_scan_leaves_out_are_not_there(table: pyhudi.HudiTable) -> None:
    dataset = table.scan(columns=["id"]).to_dataset()
    with pytest.raises(SchemaMismatch):
        dataset.to_table(filter=pc.field("n") > 1)
    assert dataset.schema.names == ["id"]


def test_errors_keep_their_kind(tmp_path: Path) -> None:
    dataset = odd_table(tmp_path / "odd").scan().to_dataset()
    for file in (tmp_path / "odd").rglob("*.parquet"):
        file.write_bytes(b"no" * (file.stat().st_size // 2))
    with pytest.raises(CorruptTable):
        dataset.to_table()


def test_fragments_are_the_dataset_in_parts(dataset: pds.Dataset, everything: pa.Table) -> None:
    wanted = pc.field("city").isin(["lisbon", "osaka"]) & (pc.field("n") > 3)
    parts = list(dataset.get_fragments(filter=wanted))
    assert len(parts) == 2
    whole = [part.to_table() for part in parts]
    assert comparable_rows(pa.concat_tables(whole)) == comparable_rows(
        everything.filter(pc.field("city") != "rome")
    )
    found = [part.to_table(columns=["id"], filter=wanted) for part in parts]
    assert comparable_rows(pa.concat_tables(found)) == comparable_rows(
        everything.filter(wanted).select(["id"])
    )
    kept = dataset.filter(pc.field("n") > 3).get_fragments()
    assert (
        sum(part.to_table().num_rows for part in kept)
        == everything.filter(pc.field("n") > 3).num_rows
    )


def test_dataset_pickles(dataset: pds.Dataset) -> None:
    kept = dataset.filter(pc.field("n") >= 100)
    assert pickle.loads(pickle.dumps(kept)).count_rows() == 12


def test_incremental_scans_have_datasets_too(table: pyhudi.HudiTable) -> None:
    first = table.inspect.commits()["completed"][0].as_py()
    changed = table.incremental(start=first).to_dataset()
    assert changed.count_rows(filter=pc.field("n") >= 105) == 7


# --- DuckDB ---------------------------------------------------------------------------------------

QUERIES = [
    "n > 20",
    "n BETWEEN 3 AND 30 AND city = 'rome'",
    "n IN (1, 2, 103)",
    "n IS NULL OR n = 3",
    "n <> 5",
    "n > 2.5",
    "f > 0.5",
    "f >= 'nan'::DOUBLE",
    "f = 'nan'::DOUBLE",
    "f < 3",
    "f <> 1.0",
    "f IN (0.0, 'nan'::DOUBLE)",
    "f IN (0.0, 0.5, 1.0) AND n > 0",
    "NOT f IN (0.0, -0.0)",
    "g NOT IN (0.0, 0.1) OR n = 3",
    "f = 0",
    "g > 0.1",
    "g <= 0.1::FLOAT",
    "NOT (f > 0.5)",
    "text LIKE 'a%'",
    "text >= 'b'",
    "text IS NOT NULL AND flag",
    "NOT flag",
    "day = '2024-01-05'",
    "\"at\" > '2024-01-02 00:00:00+00'",
    "price > 2.505",
    "price = 2.5 AND large > 9007199254740993",
    "city IN ('osaka', 'rome') AND (n < 5 OR n > 100)",
]


@pytest.mark.parametrize("where", QUERIES)
def test_duckdb_finds_what_it_finds_in_all_rows(
    table: pyhudi.HudiTable, everything: pa.Table, where: str
) -> None:
    with duckdb.connect() as connection:
        table.scan().to_duckdb(connection, "hudi")
        connection.execute("CREATE TABLE held AS FROM everything")
        found, wanted = (
            connection.sql(f"SELECT id FROM {name} WHERE {where} ORDER BY id").fetchall()
            for name in ("hudi", "held")
        )
    assert found == wanted


def test_duckdb_reads_what_a_query_needs(table: pyhudi.HudiTable, engine: RecordingEngine) -> None:
    with duckdb.connect() as connection:
        table.scan().to_duckdb(connection, "hudi")
        engine.forget()
        query = "SELECT sum(n) FROM hudi WHERE city = 'osaka' AND large > 9007199254741000"
        assert connection.sql(query).fetchall()[0][0] is not None
        assert engine.columns == {"n", "city", "large"}
        assert engine.partitions == ["osaka"]
        engine.forget()
        assert connection.sql("SELECT count(*) FROM hudi").fetchall() == [(60,)]
        assert len(engine.columns) == 1
        joined = "SELECT count(*) FROM hudi a JOIN hudi b USING (id) WHERE a.n > 100"
        assert connection.sql(joined).fetchall() == [(11,)]


@pytest.mark.skipif(
    duckdb.__version__.startswith("1."), reason="DuckDB 1 passes no IN lists to a dataset"
)
def test_rows_that_cannot_match_stay_in_the_core(
    table: pyhudi.HudiTable, engine: RecordingEngine
) -> None:
    with duckdb.connect() as connection:
        table.scan(read_optimized=True).to_duckdb(connection, "hudi")
        engine.forget()
        query = "SELECT id FROM hudi WHERE large > 9007199254741042 AND text IN ('a', 'b')"
        assert len(connection.sql(query).fetchall()) == engine.rows_of_core() == 2


FLOATS = [
    (pc.field("f") > 20, "f > 20"),
    (pc.is_nan(pc.field("f")), "f = 'NaN'"),
    (pc.greater_equal(pc.field("f"), pc.scalar(math.nan)), "f >= 'NaN'"),
    (~(pc.field("f") < 20) & (pc.field("city") == "rome"), "NOT f < 20 AND city = 'rome'"),
    ((pc.field("f") == 0) | (pc.field("g") >= 24), "f = 0 OR g >= 24"),
]


@pytest.mark.parametrize(("wanted", "where"), FLOATS, ids=str)
def test_floats_as_sql_has_them(table: pyhudi.HudiTable, wanted: pc.Expression, where: str) -> None:
    """Releases of DuckDB before 2.0, and DataFusion, leave such a comparison to the dataset."""
    dataset = table.scan().to_dataset(sql_floats=True)
    rows = comparable_rows(dataset.to_table(filter=wanted))
    assert rows == comparable_rows(table.scan(where=where))
    parts = dataset.filter(wanted).get_fragments()
    assert comparable_rows(pa.concat_tables([part.to_table() for part in parts])) == rows


def test_filters_that_cannot_compare_floats_as_sql_does(table: pyhudi.HudiTable) -> None:
    dataset = table.scan().to_dataset(sql_floats=True)
    with pytest.raises(UnsupportedTableFeature, match="f as SQL does"):
        dataset.to_table(filter=pc.field("f") * 2 > 3)
    assert dataset.count_rows(filter=pc.field("n") * 2 > 40) > 0


def test_dataset_refuses_duckdb_with_decimal_bug(
    table: pyhudi.HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb, "__version__", "1.1.3")
    with duckdb.connect() as connection:
        with pytest.raises(ConfigError, match="price"):
            table.scan().to_duckdb(connection, "hudi")
        table.scan(columns=["id", "n"]).to_duckdb(connection, "hudi")
        assert connection.sql("SELECT count(*) FROM hudi WHERE n = 20").fetchall() == [(1,)]


@pytest.mark.parametrize("taken", ["head(1)", "filter(F).head(1)", "to_batches().__next__()"])
def test_dataset_head_stops_reading(table: pyhudi.HudiTable, taken: str) -> None:
    """Threads of Arrow's read on while the interpreter ends."""
    program = f"""
import pyarrow.compute as pc
import pyhudi
F = pc.field("n") >= 0
print(pyhudi.open_table({table.uri!r}).scan().to_dataset().{taken}.num_rows > 0)
"""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
