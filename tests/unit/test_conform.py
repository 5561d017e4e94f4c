from __future__ import annotations

import datetime as dt
import time
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.input.conform import conform, read_table
from pyhudi.schema.delete_field import find_delete_markers

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("n", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(10, 2)),
    ]
)
ROWS = pa.table(
    {
        "n": pa.array([1, None], pa.int64()),
        "id": ["a", "b"],
        "price": pa.array([Decimal("1.5"), None]),
        "at": pa.array([dt.datetime(2020, 1, 2, tzinfo=dt.timezone.utc), None], pa.timestamp("ms")),
    }
)


def test_thousands_of_columns_take_no_square_of_their_time() -> None:
    wide = pa.table({f"c{n}": pa.array([n]) for n in range(8000)})
    begun = time.process_time()
    assert conform(wide, wide.schema) == wide
    assert time.process_time() - begun < 5


def test_columns_are_matched_by_name_and_cast() -> None:
    fitted = conform(ROWS, SCHEMA)
    assert fitted.schema == SCHEMA
    assert fitted.to_pylist()[0] == {
        "id": "a",
        "n": 1,
        "at": dt.datetime(2020, 1, 2, tzinfo=dt.timezone.utc),
        "price": Decimal("1.50"),
    }


READS_VIEWS = pytest.mark.skipif(
    pa.__version__.startswith("17."), reason="pyarrow 17 does not convert strings of polars"
)


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        ROWS.to_batches()[0],
        ROWS.to_reader(),
        pytest.param(pl.from_arrow(ROWS), marks=READS_VIEWS),
        ROWS.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get),
    ],
    ids=["table", "batch", "reader", "polars", "pandas"],
)
def test_whatever_has_arrow_data_is_taken(data: Any) -> None:
    assert conform(read_table(data), SCHEMA).column("n").to_pylist() == [1, None]


@pytest.mark.parametrize("data", [[5], "rows", None])
def test_other_things_are_refused(data: Any) -> None:
    with pytest.raises(ConfigError, match="cannot read rows"):
        read_table(data)


def test_meta_columns_are_dropped() -> None:
    given = ROWS.append_column("_hoodie_record_key", pa.array(["x", "y"]))
    assert conform(given, SCHEMA).column_names == SCHEMA.names


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (ROWS.append_column("extra", pa.array([1, 2])), "no column 'extra'"),
        (ROWS.drop_columns(["n"]), "is missing the table's column 'n'"),
        (ROWS.set_column(0, "n", pa.array([2**40, 1])), "column 'n' is int64"),
        (ROWS.set_column(0, "n", pa.array([1.5, 1])), "column 'n' is double"),
        (ROWS.set_column(0, "n", pa.array(["1", "2"])), "column 'n' is string"),
        (ROWS.set_column(0, "n", pa.array([True, False])), "column 'n' is bool"),
        (ROWS.set_column(1, "id", pa.array(["a", None])), "'id' has nulls"),
        (ROWS.set_column(1, "id", pa.array([1, 2])), "column 'id' is int64"),
        (ROWS.set_column(3, "at", pa.array([1, 2])), "column 'at' is int64"),
    ],
)
def test_data_that_do_not_fit_are_refused_naming_the_column(rows: pa.Table, said: str) -> None:
    with pytest.raises(SchemaMismatch, match=said):
        conform(rows, SCHEMA)


def test_dictionary_and_null_columns_fit() -> None:
    rows = ROWS.set_column(1, "id", ROWS["id"].dictionary_encode())
    rows = rows.set_column(0, "n", pa.nulls(2))
    assert conform(read_table(rows), SCHEMA)["id"].to_pylist() == ["a", "b"]


def test_rows_that_mark_themselves_deleted() -> None:
    rows = pa.table({"_hoodie_is_deleted": [True, None, False], "op": ["I", "D", None]})
    assert find_delete_markers(rows, None, None).to_pylist() == [True, False, False]
    assert find_delete_markers(rows, "op", "D").to_pylist() == [True, True, False]
    assert find_delete_markers(rows.select(["op"]), None, None).to_pylist() == [False] * 3
