"""A scan as a LazyFrame: polars finds what it finds in all rows, and less is read."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import ConfigError, CorruptTable
from tests.helpers.engine_rows import CITIES, DAY, NOON, odd_table
from tests.helpers.recording_engine import RecordingEngine

pl = pytest.importorskip("polars")
assert_frame_equal = pytest.importorskip("polars.testing").assert_frame_equal
NEW_POLARS = pytest.mark.skipif(
    pl.__version__.startswith("1."), reason="polars 1 passes fewer conditions to a source"
)


@pytest.fixture(scope="module")
def engine() -> RecordingEngine:
    return RecordingEngine()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, engine: RecordingEngine) -> pyhudi.HudiTable:
    return odd_table(tmp_path_factory.mktemp("table") / "odd", engine=engine)


@pytest.fixture
def scan(table: pyhudi.HudiTable) -> pyhudi.Scan:
    return table.scan()


@pytest.fixture(autouse=True)
def _forget(engine: RecordingEngine) -> None:
    engine.forget()


def same(found: Any, wanted: Any) -> None:
    """Equal frames but for the order of rows."""
    assert_frame_equal(found.sort("id"), wanted.sort("id"))


VALUES: dict[str, list[Any]] = {
    "city": [*CITIES, "paris"],
    "n": [-10, 0, 3, 105, 2**31 - 1, 2**40, 2.5],
    "large": [2**53, 2**53 + 1, 2**53 + 30, float(2**53), 0],
    "f": [0.1, 0, 0.0, -0.0, 3, float("nan"), float("inf"), 1e300],
    "g": [0.1, pl.lit(0.1, dtype=pl.Float64), 0, float("nan"), 2.5],
    "text": ["", "a", "ab", "é", "\U0001f600", "zz"],
    "flag": [True, False],
    "day": [DAY, DAY + dt.timedelta(20), NOON.replace(tzinfo=None)],
    "at": [NOON, NOON + dt.timedelta(hours=5, microseconds=5)],
    "price": [Decimal("2.50"), Decimal("2.505"), 3, 2.5],
}


def term(chance: random.Random) -> Any:
    """One condition on one column, at random."""
    name = chance.choice(list(VALUES))
    column, values = pl.col(name), VALUES[name]
    one, two = chance.choice(values), chance.choice(values)
    plain = [v for v in values if type(v) is type(values[0])]
    match chance.randrange(12):
        case 0:
            return column > one
        case 1:
            return column < one
        case 2:
            return column == one
        case 3:
            return column != one
        case 4:
            return one <= column
        case 5:
            return column.is_in([chance.choice(plain), chance.choice(plain)])
        case 6:
            return column.is_between(one, two, closed=chance.choice(["both", "left", "right"]))
        case 7:
            return column.is_null()
        case 8:
            return column.is_not_null()
        case 9:
            return column.eq_missing(one)
        case 10:
            return pl.col("flag") if chance.random() < 0.5 else ~pl.col("flag")
        case _:
            return column.is_in([chance.choice(plain), None])


def predicate(chance: random.Random) -> Any:
    """Conditions joined at random."""
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


@pytest.mark.parametrize("seed", range(6))
def test_polars_finds_what_it_finds_in_all_rows(scan: pyhudi.Scan, seed: int) -> None:
    chance, everything, lazy = random.Random(seed), scan.to_polars(), scan.to_polars_lazy()
    for _ in range(25):
        wanted = predicate(chance)
        try:
            rows = everything.filter(wanted)
        except pl.exceptions.PolarsError:
            continue  # types that polars itself does not compare
        same(lazy.filter(wanted).collect(), rows)


def test_polars_prunes_partitions(scan: pyhudi.Scan, engine: RecordingEngine) -> None:
    lazy = scan.to_polars_lazy().filter(pl.col("city") == "rome").select("id")
    assert lazy.collect().height == 20
    assert engine.partitions == ["rome"]
    assert engine.columns == {"id", "city"}


def test_rows_that_cannot_match_stay_in_the_core(
    table: pyhudi.HudiTable, engine: RecordingEngine
) -> None:
    lazy = table.scan(read_optimized=True).to_polars_lazy()
    found = lazy.filter(pl.col("large") > 2**53 + 50, pl.col("text").is_in(["a", "b"])).collect()
    assert engine.rows_of_core() == found.height == 2
    engine.forget()
    assert lazy.filter(pl.col("large") > 2**60).collect().height == engine.rows_of_core() == 0


def test_values_that_python_lacks_are_compared_by_polars(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("day", pa.date32()), ("code", pa.binary(3))])
    rows = pa.table({"id": ["a"], "day": [DAY], "code": [b"abc"]}, schema)
    lazy = pyhudi.create_table(tmp_path / "t", rows, key="id").scan().to_polars_lazy()
    beyond = pl.lit(dt.date(9999, 12, 31)).dt.offset_by("1d")
    for wanted in (
        pl.col("day") < beyond,
        pl.col("code") > b"a",
        ~pl.col("code").is_in([b"a", b"ab"]),
    ):
        assert lazy.filter(wanted).collect().height == 1
    assert lazy.filter(pl.col("code") == b"a").collect().height == 0


@NEW_POLARS
def test_conditions_that_are_pushed(scan: pyhudi.Scan, engine: RecordingEngine) -> None:
    wanted = (
        (pl.col("n") >= 1)
        & pl.col("day").is_between(DAY, DAY + dt.timedelta(50))
        & (pl.col("at") > NOON)
        & (pl.col("price") < Decimal("9.00"))
        & pl.col("text").is_in(["a", "b"])
        & (pl.col("text").str.len_chars() < 2)
    )
    scan.to_polars_lazy().filter(wanted).collect()
    where = engine.tasks[0].where
    assert where is not None
    assert sorted((name, op) for name, op, _ in where.conjuncts) == [
        ("at", ">"),
        ("day", "<="),
        ("day", ">="),
        ("n", ">="),
        ("price", "<"),
        ("text", "in"),
    ]


@NEW_POLARS
def test_polars_pushes_bounds_of_long_lists(scan: pyhudi.Scan, engine: RecordingEngine) -> None:
    many, everything = list(range(20, 1500)), scan.to_polars()
    engine.forget()
    wanted = pl.col("n").is_in(many) & pl.col("text").is_in([str(n) for n in many] + ["a"])
    same(scan.to_polars_lazy().filter(wanted).collect(), everything.filter(wanted))
    where = engine.tasks[0].where
    assert where is not None
    assert [(name, op, value[0].as_py()) for name, op, value in where.conjuncts] == [
        ("n", ">=", 20),
        ("n", "<=", 1499),
        ("text", ">=", "100"),
        ("text", "<=", "a"),
    ]


def test_polars_limit_applies_before_later_filter(
    scan: pyhudi.Scan, engine: RecordingEngine
) -> None:
    everything, lazy = scan.to_polars(), scan.to_polars_lazy()
    engine.forget()
    wanted = pl.col("n") > 20
    same(lazy.head(30).filter(wanted).collect(), everything.head(30).filter(wanted))
    same(lazy.filter(wanted).head(3).collect(), everything.filter(wanted).head(3))


def test_few_rows_are_few_files(scan: pyhudi.Scan, engine: RecordingEngine) -> None:
    assert scan.to_polars_lazy().head(2).collect().height == 2
    assert len(engine.tasks) == 1


def test_counting_reads_one_column(scan: pyhudi.Scan, engine: RecordingEngine) -> None:
    assert scan.to_polars_lazy().select(pl.len()).collect().item() == 60
    assert len(engine.columns) == 1


def test_polars_scan_with_limit_and_filter(table: pyhudi.HudiTable) -> None:
    limited = table.scan(limit=5, where="n >= 0")
    everything = limited.to_polars()
    assert everything.height == 5
    wanted = pl.col("n") > 3
    same(limited.to_polars_lazy().filter(wanted).collect(), everything.filter(wanted))
    filtered = table.scan(where="n >= 0", columns=["n", "id"])
    same(filtered.to_polars_lazy().filter(wanted).collect(), filtered.to_polars().filter(wanted))
    assert filtered.to_polars_lazy().collect_schema().names() == ["n", "id"]


def test_polars_scan_without_rows(scan: pyhudi.Scan) -> None:
    lazy = scan.to_polars_lazy()
    nothing = lazy.filter(pl.col("city") == "paris").select("id", "f").collect()
    assert nothing.schema == {"id": pl.String, "f": pl.Float64}
    assert nothing.height == 0


def test_polars_joins_with_itself_and_streams(scan: pyhudi.Scan) -> None:
    lazy = scan.to_polars_lazy()
    counted = lazy.join(lazy, on="id").filter(pl.col("n") >= 100).select(pl.len())
    assert counted.collect(engine="streaming").item() == 12


def test_without_polars(scan: pyhudi.Scan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyhudi.api.outputs.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="polars is not installed"):
        scan.to_polars_lazy()


@pytest.mark.parametrize("version", ["1.9.0", "1.21.0", "0.20.31"])
def test_polars_version_that_loses_filters_is_refused(
    scan: pyhudi.Scan, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(pl, "__version__", version)
    with pytest.raises(ConfigError, match="loses filters"):
        scan.to_polars_lazy()


def test_polars_collect_reports_cause(tmp_path: Path) -> None:
    table = odd_table(tmp_path / "odd")
    lazy = table.scan().to_polars_lazy()
    for file in (tmp_path / "odd").rglob("*.parquet"):
        file.write_bytes(b"no" * (file.stat().st_size // 2))
    with pytest.raises((CorruptTable, pl.exceptions.ComputeError), match=r"[.]parquet"):
        lazy.collect()
