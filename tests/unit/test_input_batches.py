"""Input rows from Arrow, pandas, polars and others become plain Arrow types."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
import pytest

import pyhudi
from pyhudi.errors import ConfigError, SchemaMismatch, UnsupportedTableFeature
from pyhudi.input.batches import is_read_once, read_batches
from pyhudi.input.decode_encodings import plain_batch, plain_schema


def encoded() -> pa.Table:
    """Encodings at every depth."""
    words = pa.DictionaryArray.from_arrays(
        pa.array([1, 0, None, 1], pa.int8()), pa.array(["a", "b"], pa.string_view())
    )
    lists = pa.ListArray.from_arrays(pa.array([0, 1, None, 1, 4], pa.int32()), words)
    pairs = pa.MapArray.from_arrays([0, 2, 2, 4, 4], pa.array(["k", "l", "k", "m"]), words)
    return pa.table(
        {
            "words": words,
            "runs": pa.RunEndEncodedArray.from_arrays([1, 4], ["x", None]),
            "lists": lists,
            "fixed": pa.FixedSizeListArray.from_arrays(pa.concat_arrays([words, words]), 2),
            "pairs": pairs,
            "inner": pa.StructArray.from_arrays([words, lists], ["word", "list"]),
            "view": pa.array([b"a", None, b"", b"c"], pa.binary_view()),
        }
    )


def taken(data: Any) -> pa.Table:
    schema, batches = read_batches(data)
    return pa.Table.from_batches(batches, schema)


def test_encodings_are_undone_at_every_depth() -> None:
    rows = taken(encoded())
    assert rows.schema == plain_schema(encoded().schema)
    assert [str(field.type) for field in rows.schema] == [
        "string",
        "string",
        "list<item: string>",
        "fixed_size_list<item: string>[2]",
        "map<string, string>",
        "struct<word: string, list: list<item: string>>",
        "binary",
    ]
    rows.validate(full=True)
    assert rows.to_pylist() == [
        {
            "words": "b",
            "runs": "x",
            "lists": ["b"],
            "fixed": ["b", "a"],
            "pairs": [("k", "b"), ("l", "a")],
            "inner": {"word": "b", "list": ["b"]},
            "view": b"a",
        },
        {
            "words": "a",
            "runs": None,
            "lists": [],
            "fixed": [None, "b"],
            "pairs": [],
            "inner": {"word": "a", "list": []},
            "view": None,
        },
        {
            "words": None,
            "runs": None,
            "lists": None,
            "fixed": ["b", "a"],
            "pairs": [("k", None), ("m", "b")],
            "inner": {"word": None, "list": None},
            "view": b"",
        },
        {
            "words": "b",
            "runs": None,
            "lists": ["a", None, "b"],
            "fixed": [None, "b"],
            "pairs": [],
            "inner": {"word": "b", "list": ["a", None, "b"]},
            "view": b"c",
        },
    ]


@pytest.mark.parametrize("start", [1, 2, 3])
def test_parts_of_encoded_arrays_are_their_own_rows(start: int) -> None:
    part = taken(encoded().slice(start, 1))
    part.validate(full=True)
    assert part.to_pylist() == taken(encoded()).slice(start, 1).to_pylist()


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("encoding", ["dictionary", "runs", "runs of a dictionary", "views"])
def test_input_refuses_more_text_than_array_holds(encoding: str, nested: bool) -> None:
    rows, size = 2200, 1_000_000
    one = pa.array(["x" * size])
    first = pa.array([0] * rows, pa.int32())
    if encoding == "views":
        # Length, the first four bytes, which buffer and where in it.
        views = struct.pack("<i4sii", size, b"xxxx", 0, 0) * rows
        buffers = [None, pa.py_buffer(views), one.buffers()[2]]
        column: Any = pa.Array.from_buffers(pa.string_view(), rows, buffers)
    elif encoding == "dictionary":
        column = pa.DictionaryArray.from_arrays(first, one)
    else:
        run = one if encoding == "runs" else one.dictionary_encode()
        column = pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), run)
    if nested:
        column = pa.StructArray.from_arrays([column], ["q"])
    batch = pa.record_batch({"s": column})
    schema = plain_schema(batch.schema)
    before = pa.total_allocated_bytes()
    with pytest.raises(SchemaMismatch, match=f"column 's.*{rows * size} bytes") as error:
        plain_batch(batch, schema)
    assert "smaller batches" in str(error.value)
    assert pa.total_allocated_bytes() - before < size
    assert plain_batch(batch.slice(3, 2), schema).nbytes >= 2 * size


def test_plain_data_are_not_copied() -> None:
    rows = pa.table({"a": [1, 2], "b": ["x", "y"]})
    again = taken(rows)
    assert again.equals(rows)
    assert again["a"].chunk(0).buffers()[1].address == rows["a"].chunk(0).buffers()[1].address


def test_categories_of_polars_and_pandas_are_texts() -> None:
    frame = pl.DataFrame(
        {"a": pl.Series(["x", None], dtype=pl.Categorical), "b": pl.Series(["u", "v"])}
    )
    frame = frame.with_columns(pl.Series("e", ["v", "u"], dtype=pl.Enum(["u", "v"])))
    assert taken(frame).to_pylist() == [
        {"a": "x", "b": "u", "e": "v"},
        {"a": None, "b": "v", "e": "u"},
    ]
    assert taken(frame.to_pandas()).column("a").to_pylist() == ["x", None]
    assert {str(kind) for kind in taken(frame).schema.types} == {"string"}


@pytest.mark.skipif(not hasattr(pa, "uuid"), reason="pyarrow 17 has no uuid")
def test_extension_types_that_are_their_storage() -> None:
    rows = pa.table(
        {"u": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16)))}
    )
    assert taken(rows).schema.field("u").type == pa.binary(16)
    months = pd.DataFrame({"p": pd.period_range("2020-01", periods=1, freq="M")})
    with pytest.raises(SchemaMismatch, match=r"column 'p' is extension<pandas.period"):
        taken(months)


def failing(error: Exception) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [1]})
        raise error

    return pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches())


class Stream:
    """Foreign rows, which come as a C stream."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self.reader = reader

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.reader.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("made", [lambda reader: reader, Stream], ids=["reader", "stream"])
def test_input_wraps_errors_of_row_source(made: Any) -> None:
    with pytest.raises(ConfigError, match=r"the input rows cannot be read: .*mine") as raised:
        taken(made(failing(KeyError("mine"))))
    assert "Traceback" not in str(raised.value)
    assert raised.value.__cause__ is not None


def test_input_wraps_failing_query() -> None:
    with pytest.raises(ConfigError, match=r"cannot read rows from a .*DuckDBPyRelation: Conv"):
        taken(duckdb.sql("SELECT 'a'::INT AS x FROM range(3)"))


def test_own_errors_of_the_rows_stay_what_they_are() -> None:
    with pytest.raises(SchemaMismatch, match=r"^mine$"):
        taken(failing(SchemaMismatch("mine")))


def test_input_propagates_interrupt() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        raise KeyboardInterrupt
        yield

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches())
    with pytest.raises(KeyboardInterrupt):
        taken(reader)


@pytest.mark.parametrize(
    "data",
    [
        None,
        5,
        "rows",
        [1],
        [("a", 1)],
        [{"a": 1}, None],
        iter([{"a": 1}]),
        iter([pa.record_batch({"a": [1]}), 5]),
        [pa.record_batch({"a": [1]}), {"a": 1}],
        pa.array([1]),
        pa.chunked_array([[1]]),
        pd.Series([1]),
        pl.Series([1]),
        object(),
    ],
    ids=lambda data: type(data).__name__,
)
def test_input_refuses_what_is_no_rows(data: Any) -> None:
    with pytest.raises(ConfigError, match="cannot read rows from ") as raised:
        taken(data)
    assert "dicts" in raised.value.hint


def test_input_error_names_the_type_with_its_article() -> None:
    for data, name in ((1, "an int"), ("a", "a str"), (object(), "an object")):
        with pytest.raises(ConfigError, match=f"cannot read rows from {name}"):
            taken(data)


def many() -> pa.Table:
    return pa.table({"a": range(5), "b": list("vwxyz")})


def batches() -> list[pa.RecordBatch]:
    return list(many().to_batches(max_chunksize=2))


@pytest.mark.parametrize(
    ("made", "once"),
    [
        (batches, False),
        (lambda: tuple(batches()), False),
        (lambda: iter(batches()), True),
        (lambda: (batch for batch in batches()), True),
        (lambda: [many().slice(0, 2), many().slice(2)], False),
        (lambda: pds.dataset(many()), False),
        (lambda: pds.dataset(many()).filter(pc.field("a") >= 0), False),
        (lambda: pds.dataset(many()).scanner(columns=["a", "b"]), True),
        (lambda: pl.LazyFrame(pl.DataFrame(many())), False),
        (lambda: pl.LazyFrame(pl.DataFrame(many())).filter(pl.col("a") >= 0), False),
        (lambda: duckdb.from_arrow(many()), True),
        (lambda: many().to_pandas(), False),
        (lambda: many().to_pandas().set_index("a"), False),
        (lambda: many().to_pandas().set_index(["a", "b"]), False),
        (lambda: many().to_pylist(), False),
        (lambda: many().to_pydict(), False),
    ],
)
def test_input_accepts_every_row_source(made: Any, once: bool) -> None:
    assert taken(made()).to_pylist() == many().to_pylist()
    assert is_read_once(made()) is once


def test_batches_are_taken_as_they_come() -> None:
    asked: list[int] = []

    def slowly() -> Iterator[pa.RecordBatch]:
        for number in range(3):
            asked.append(number)
            yield pa.record_batch({"a": [number]})

    _, given = read_batches(slowly())
    assert asked == [0]
    next(given), next(given)
    assert asked == [0, 1]


def test_batches_that_differ() -> None:
    with pytest.raises(SchemaMismatch, match="columns a string, the first had a int64"):
        taken([pa.record_batch({"a": [1]}), pa.record_batch({"a": ["x"]})])


def test_input_refuses_empty_iterator() -> None:
    with pytest.raises(ConfigError, match="no schema"):
        taken(iter([]))


def test_input_wraps_failing_polars_query() -> None:
    frame = pl.LazyFrame({"a": ["x"]})
    with pytest.raises(ConfigError, match="polars query fails"):
        taken(frame.select("nope"))
    with pytest.raises(ConfigError, match="the input rows cannot be read"):
        taken(frame.select(pl.col("a").cast(pl.Int64)))
    objects = pl.LazyFrame({"a": [object()]}, schema={"a": pl.Object})
    with pytest.raises(SchemaMismatch, match="Python objects"):
        taken(objects)


def test_input_empty_pandas_column_takes_table_type(tmp_path: Path) -> None:
    kinds = {"id": pa.int64(), "text": pa.string(), "day": pa.date32(), "tags": pa.list_(pa.int8())}
    table = pyhudi.create_table(tmp_path / "t", pa.schema(kinds), key="id")
    lacking = float("nan")
    for absent in ([lacking] * 2, [pd.NaT] * 2, [None, lacking], pd.array([None] * 2, "Int64")):
        frame = pd.DataFrame({"id": [1, 2], "text": absent, "day": absent, "tags": absent})
        for mode in ("strict", "merge"):
            assert table.upsert(frame, schema_mode=mode).rows_in == 2
    empty: dict[str, Any] = {name: [] for name in kinds}
    for frame in (pd.DataFrame(empty), pd.DataFrame(columns=list(kinds)), pd.DataFrame()):
        assert table.upsert(frame).rows_in == 0
    with pytest.raises(SchemaMismatch, match="is missing"):
        table.upsert(pd.DataFrame(index=[1, 2]))
    rows = table.scan().to_arrow()
    assert rows.schema.field("day").type == pa.date32()
    assert rows.drop_columns("id").to_pylist() == [{"text": None, "day": None, "tags": None}] * 2
    with pytest.raises(SchemaMismatch, match="column 'text' is double"):
        table.upsert(
            pd.DataFrame({"id": [1, 2], "text": [lacking, 1.5], "day": None, "tags": None})
        )


def test_input_refuses_large_number_pandas_may_have_rounded(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "n": [2**53 + 1, None]})
    table = pyhudi.create_table(tmp_path / "t", rows, key="id")
    with pytest.raises(SchemaMismatch, match=r"column 'n' is double.*\n.*Int64"):
        table.upsert(table.scan().to_pandas())
    table.upsert(table.scan().to_pandas(dtype_backend="pyarrow"))
    assert table.scan().to_arrow().equals(rows)


def test_input_ignores_unnamed_pandas_index() -> None:
    frame = many().to_pandas().iloc[[3, 1]]
    assert taken(frame).to_pylist() == many().take([3, 1]).to_pylist()


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than one column 'a'"),
        (
            pd.DataFrame({"a": [1]}).set_index("a", drop=False),
            r"'a' as a column and.*\n.*drop=",
        ),
        (pd.DataFrame({"a": [1, "x"]}), "row 1 does not fit column 'a', which is int64 in"),
        (pd.DataFrame({"a": [object()]}), "row 0 does not fit column 'a'"),
        (pd.DataFrame({"a": [1 + 2j]}), "cannot be converted to Arrow"),
        (pd.DataFrame({"a": [2**70, 1]}), r"row 0 does not fit column 'a'.*\n.*decimals"),
        (pd.DataFrame({"a": [Decimal(1), Decimal("Infinity")]}), "row 1 .* column 'a'"),
    ],
)
def test_frames_without_a_form_in_arrow(frame: Any, said: str) -> None:
    with pytest.raises(SchemaMismatch, match=said):
        taken(frame)


def test_objects_of_a_data_frame_have_the_types_of_the_table() -> None:
    like = pa.schema({"price": pa.decimal128(20, 1), "pairs": pa.map_(pa.string(), pa.int64())})
    frame = pd.DataFrame({"price": [2**63, 2.5, None], "pairs": [[("a", 1)], {"b": 2}, None]})
    schema, batches = read_batches(frame.astype(object), like)
    assert pa.Table.from_batches(batches, schema).to_pylist() == [
        {"price": Decimal(2**63), "pairs": [("a", 1)]},
        {"price": Decimal("2.5"), "pairs": [("b", 2)]},
        {"price": None, "pairs": None},
    ]


def test_nan_within_lists_and_structs_of_a_data_frame_is_a_number(tmp_path: Path) -> None:
    kinds = {"id": pa.int64(), "v": pa.list_(pa.float32()), "s": pa.struct({"x": pa.float64()})}
    frame = pd.DataFrame(
        {
            "id": [1, 2],
            "v": pd.Series([np.array([0.1, np.nan], "float32"), np.nan]),
            "s": pd.Series([{"x": np.nan}, None]),
        }
    )
    table = pyhudi.create_table(tmp_path / "t", pa.schema(kinds), key="id")
    table.upsert(frame)
    assert table.upsert(table.scan().to_pandas()).rows_updated == 2
    for rows in (table.scan().to_arrow(), taken(frame)):
        assert rows["v"].null_count == rows["s"].null_count == 1
        elements = rows["v"].combine_chunks().flatten()
        assert elements.null_count == 0
        assert pc.is_nan(elements).to_pylist() == [False, True]
        assert pc.is_nan(pc.struct_field(rows["s"], "x")).to_pylist() == [True, None]


def test_nested_times_of_a_data_frame_come_back(tmp_path: Path) -> None:
    noon = dt.datetime(2024, 1, 1, 12, 0, 0, 5)  # noqa: DTZ001
    rows = pa.table(
        {
            "id": [1],
            "local": pa.array([[noon]], pa.list_(pa.timestamp("us"))),
            "at": pa.array([[noon]], pa.list_(pa.timestamp("us", "UTC"))),
            "inner": pa.array([{"at": noon}], pa.struct({"at": pa.timestamp("us", "UTC")})),
            "days": pa.array([[noon.date()]], pa.list_(pa.date32())),
        }
    )
    table = pyhudi.create_table(tmp_path / "t", rows, key="id")
    table.upsert(table.scan().to_pandas())
    assert table.scan().to_arrow().equals(rows)
    finer = pd.Series([np.array(["2024-01-01T00:00:00.000000001"], "datetime64[ns]")])
    with pytest.raises(SchemaMismatch, match="row 0 does not fit column 'local'"):
        table.upsert(table.scan().to_pandas().assign(local=finer))


@pytest.mark.parametrize("nested", [False, True])
def test_text_that_is_no_utf_8_is_named(nested: bool, tmp_path: Path) -> None:
    good, bad = (
        pa.Array.from_buffers(pa.string(), 1, pa.array([text]).buffers())
        for text in (b"x", b"\xff\xfe")
    )
    first, second = (
        pa.table({"id": ["a"], "v": pa.ListArray.from_arrays([0, 1], text) if nested else text})
        for text in (good, bad)
    )
    table = pyhudi.create_table(tmp_path / "t", first, key="id")
    for verb in (table.upsert, table.insert, table.bulk_insert):
        with pytest.raises(SchemaMismatch, match=r"column 'v' has no valid .*string"):
            verb(second)
    assert table.refresh().scan().to_arrow()["v"].to_pylist() == first["v"].to_pylist()


@pytest.mark.parametrize("nested", [False, True])
def test_input_names_decimal_with_too_many_digits(nested: bool) -> None:
    numbers = b"".join(value.to_bytes(16, "little", signed=True) for value in (999, 10**20, -5))
    values = pa.Array.from_buffers(pa.decimal128(3, 0), 3, [None, pa.py_buffer(numbers)])
    column = pa.StructArray.from_arrays([values], ["d"]) if nested else values
    with pytest.raises(SchemaMismatch, match=r"column 'v' .*100000000000000000000 does not fit"):
        taken(pa.table({"v": column}))


def test_types_in_one_another_beyond_what_any_table_has_are_refused() -> None:
    for wrapped in (lambda kind: pa.struct([("a", kind)]), pa.list_):
        kind: pa.DataType = pa.int64()
        for _ in range(900):
            kind = wrapped(kind)
        with pytest.raises(UnsupportedTableFeature, match=r"column 'v' .* more than 64"):
            plain_schema(pa.schema([("v", kind)]))


def test_input_refuses_repeated_column() -> None:
    rows = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    for given in (rows, rows.to_reader(), rows.to_batches()[0], Stream(rows.to_reader())):
        with pytest.raises(SchemaMismatch, match="more than one column 'a'"):
            taken(given)
