"""Every public call ends in its result or in an error of the tree, whatever it is given."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, HudiError, SchemaMismatch, StorageError
from pyhudi.slices.service_plans import resolve_planned_slices

ROWS = pa.table(
    {
        "id": ["a", "b"],
        "part": ["x", "y"],
        "n": pa.array([1, None], pa.int64()),
        "s": ["u", None],
        "tags": pa.array([["t"], []], pa.list_(pa.string())),
        "inner": pa.array([{"f": 1.5}, None], pa.struct([("f", pa.float64())])),
        "at": pa.array([0, None], pa.timestamp("us", "UTC")),
    }
)
BYTES = pa.table({"b": [b"x"], "u": pa.array([b"0" * 16], pa.uuid()), "n": [1]})
create: Any = pyhudi.create_table
opened: Any = pyhudi.open_table
PLAIN = {"hoodie.metadata.enable": False}
"""Without a metadata table, to be quick."""
ODD: list[Any] = [
    None,
    "",
    "text",
    b"bytes",
    0,
    -1,
    10**30,
    1.5,
    float("nan"),
    True,
    [],
    ["id"],
    ["none"],
    [None],
    [1],
    (),
    {},
    {"id": 1},
    {1: 2},
    set(),
    {"id"},
    object(),
    Exception("no"),
    dt.date(2020, 1, 1),
    np.int64(3),
    np.array([1, 2]),
    pa.int64(),
    ROWS,
    lambda *_: None,
    int,
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("table")
    pyhudi.create_table(base, ROWS, key="id", partition_by="part", type="mor")
    return base


@pytest.fixture
def table(base: Path) -> HudiTable:
    return pyhudi.open_table(base)


def ends(call: Callable[[], Any]) -> Any:
    """What the call gives; None where it ends in an error of the tree that says something."""
    try:
        return call()
    except HudiError as error:
        said = str(error)
    assert said.strip()
    assert "Traceback" not in said
    return None


# --- arguments ------------------------------------------------------------------------------------

READS: dict[str, Callable[[HudiTable, Any], Any]] = {
    "columns": lambda t, odd: t.scan(columns=odd).to_arrow(),
    "where": lambda t, odd: t.scan(where=odd).to_arrow(),
    "read_optimized": lambda t, odd: t.scan(read_optimized=odd).to_arrow(),
    "meta_fields": lambda t, odd: t.scan(meta_fields=odd).to_arrow(),
    "as_of": lambda t, odd: t.scan(as_of=odd).to_arrow(),
    "memory_limit": lambda t, odd: t.scan(memory_limit=odd).to_arrow(),
    "incremental": lambda t, odd: t.incremental(odd).to_arrow(),
    "incremental end": lambda t, odd: t.incremental(None, odd).to_arrow(),
    "hollow_commits": lambda t, odd: t.incremental(hollow_commits=odd).to_arrow(),
    "fallback": lambda t, odd: t.incremental(fallback_full_scan=odd).to_arrow(),
    "changes": lambda t, odd: t.changes(odd).to_arrow(),
    "changes where": lambda t, odd: t.changes(where=odd).to_arrow(),
    "images": lambda t, odd: t.changes(images=odd).to_arrow(),
    "diff": lambda t, odd: t.diff(odd, odd).to_arrow(),
    "deep": lambda t, odd: t.check(deep=odd),
    "inspect": lambda t, odd: t.inspect.metadata(odd),
    "inspect column": lambda t, odd: t.inspect.metadata("column_stats", odd),
    "archived": lambda t, odd: t.inspect.timeline(archived=odd),
    "to_duckdb": lambda t, odd: t.scan().to_duckdb(odd, "rows"),
    "uri": lambda _, odd: pyhudi.open_table(odd),
    "storage_options": lambda t, odd: pyhudi.open_table(t.uri, storage_options=odd),
    "options": lambda t, odd: pyhudi.open_table(t.uri, options=odd),
    "option": lambda t, odd: pyhudi.open_table(t.uri, options={"hoodie.metadata.enable": odd}),
    "engine": lambda t, odd: pyhudi.open_table(t.uri, engine=odd),
    "open as_of": lambda t, odd: pyhudi.open_table(t.uri, as_of=odd),
    "threads": lambda _, odd: LocalEngine(odd),
    "look_ahead_bytes": lambda _, odd: LocalEngine(look_ahead_bytes=odd),
    "merger": lambda _, odd: pyhudi.register_merger("of a test", odd),
    "strategy": lambda _, odd: pyhudi.register_merger(odd, max),
    "merger columns": lambda _, odd: pyhudi.register_merger("of a test", max, columns=odd),
}

WRITES: dict[str, Callable[[HudiTable, Any], Any]] = {
    "upsert": lambda t, odd: t.upsert(odd),
    "schema_mode": lambda t, odd: t.upsert(ROWS, schema_mode=odd),
    "partial": lambda t, odd: t.upsert(ROWS, partial=odd),
    "memory_limit": lambda t, odd: t.upsert(ROWS, memory_limit=odd),
    "progress": lambda t, odd: callable(odd) or t.upsert(ROWS, progress=odd),
    "insert": lambda t, odd: t.insert(odd),
    "bulk_insert": lambda t, odd: t.bulk_insert(odd),
    "sort": lambda t, odd: t.bulk_insert(ROWS, sort=odd),
    "sort_columns": lambda t, odd: t.bulk_insert(ROWS, sort="global", sort_columns=odd),
    "delete_keys": lambda t, odd: t.delete_keys(odd),
    "delete": lambda t, odd: t.delete(odd),
    "update where": lambda t, odd: t.update(odd, {"n": 1}),
    "update set": lambda t, odd: t.update("id = 'a'", odd),
    "update n": lambda t, odd: t.update("id = 'a'", {"n": odd}),
    "update s": lambda t, odd: t.update("id = 'a'", {"s": odd}),
    "update tags": lambda t, odd: t.update("id = 'a'", {"tags": odd}),
    "update at": lambda t, odd: t.update("id = 'a'", {"at": odd}),
    "overwrite": lambda t, odd: t.overwrite(odd),
    "overwrite_partitions": lambda t, odd: t.overwrite_partitions(odd),
    "delete_partitions": lambda t, odd: t.delete_partitions(odd),
    "delete_partitions by value": lambda t, odd: t.delete_partitions([{"part": odd}]),
    "delete_partitions listed": lambda t, odd: t.delete_partitions([odd]),
    "merge": lambda t, odd: t.merge(odd).when_matched_update_all().execute(),
    "merge on": lambda t, odd: t.merge(ROWS, odd).when_matched_delete().execute(),
    "merge values": lambda t, odd: t.merge(ROWS).when_matched_update(odd).execute(),
    "merge value": lambda t, odd: t.merge(ROWS).when_matched_update({"n": odd}).execute(),
    "merge where": lambda t, odd: t.merge(ROWS).when_matched_delete(where=odd).execute(),
    "merge insert": lambda t, odd: t.merge(ROWS).when_not_matched_insert(odd).execute(),
    "add_column": lambda t, odd: t.alter().add_column(odd, pa.int64()).execute(),
    "add_column type": lambda t, odd: t.alter().add_column("new", odd).execute(),
    "add_column first": lambda t, odd: t.alter().add_column("f", pa.int64(), first=odd).execute(),
    "add_column after": lambda t, odd: t.alter().add_column("g", pa.int64(), after=odd).execute(),
    "rename_column": lambda t, odd: t.alter().rename_column(odd, "new").execute(),
    "rename_column to": lambda t, odd: t.alter().rename_column("n", odd).execute(),
    "drop_column": lambda t, odd: t.alter().drop_column(odd).execute(),
    "change_type": lambda t, odd: t.alter().change_type("n", odd).execute(),
    "set_doc": lambda t, odd: t.alter().set_doc("n", odd).execute(),
    "make_nullable": lambda t, odd: t.alter().make_nullable(odd).execute(),
    "move_column": lambda t, odd: t.alter().move_column("n", before=odd).execute(),
    "create_index": lambda t, odd: t.create_index(odd),
    "create_index columns": lambda t, odd: t.create_index("column_stats", odd),
    "create_index name": lambda t, odd: t.create_index("secondary_index", ["n"], name=odd),
    "create_index function": lambda t, odd: t.create_index(
        "column_stats", ["s"], name="i", function=odd
    ),
    "create_index options": lambda t, odd: t.create_index(
        "column_stats", ["s"], name="j", function="lower", options=odd
    ),
    "drop_index": lambda t, odd: t.drop_index(odd),
    "upgrade": lambda t, odd: t.upgrade(odd, dry_run=True),
    "dry_run": lambda t, odd: t.upgrade(9, dry_run=odd),
    "downgrade": lambda t, odd: t.downgrade(odd, dry_run=True),
}


@pytest.mark.parametrize("call", READS.values(), ids=list(READS))
def test_odd_arguments_of_reads(table: HudiTable, call: Callable[[HudiTable, Any], Any]) -> None:
    for odd in ODD:
        ends(partial(call, table, odd))


@pytest.mark.parametrize("call", WRITES.values(), ids=list(WRITES))
def test_odd_arguments_of_writes(tmp_path: Path, call: Callable[[HudiTable, Any], Any]) -> None:
    table = create(tmp_path, ROWS, key="id", partition_by="part", type="mor", options=PLAIN)
    for odd in ODD:
        ends(partial(call, table, odd))
    assert pyhudi.open_table(tmp_path).scan().count() >= 0


@pytest.mark.parametrize("name", ["key", "partition_by", "order_by", "type", "version", "index"])
def test_odd_arguments_of_new_tables(tmp_path: Path, name: str) -> None:
    for number, odd in enumerate(ODD):
        ends(partial(create, tmp_path / str(number), ROWS, **{"key": "id", name: odd}))


@pytest.mark.parametrize("name", ["key", "partition_by", "order_by"])
def test_columns_whose_order_is_stored_are_no_set(tmp_path: Path, name: str) -> None:
    for odd in ({"id", "part"}, frozenset(["id"])):
        with pytest.raises(ConfigError, match=f"{name} is a set(.|\n)*Pass a list"):
            create(tmp_path / "t", ROWS, **{"key": "id", name: odd})


@pytest.mark.slow
def test_odd_places_and_options_of_new_tables(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for number, odd in enumerate(ODD):
        path = tmp_path / str(number)
        ends(partial(create, odd, ROWS, key="id"))
        ends(partial(create, path, odd, key="id"))
        ends(partial(create, path / "o", ROWS, key="id", options=odd))
        ends(partial(create, path / "n", ROWS, key="id", options={"hoodie.table.name": odd}))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda t: t.scan(columns="id"), "columns is a string"),
        (lambda t: t.scan(columns=[1]), "columns has 1, which is not a string"),
        (lambda t: t.scan(columns=(n for n in ["id"])), "must be a list of strings"),
        (lambda t: t.scan(read_optimized="false"), "read_optimized is 'false'"),
        (lambda t: t.scan(memory_limit="5"), "memory_limit is 5; it must be at least"),
        (lambda t: t.upsert(ROWS, partial="no"), "partial is 'no'; it must be True or False"),
        (lambda t: t.upsert(ROWS, progress="no"), "progress is 'no'"),
        (lambda t: t.update("true", ["n"]), "set is a list; it must be a mapping"),
        (lambda t: t.update("true", {1: 2}), "set has the name 1"),
        (lambda t: t.alter().change_type("n", 5), "type is 5; .*pyarrow type"),
        (lambda t: t.alter().add_column(5, pa.int64()), "column is 5; it must be a string"),
        (lambda t: t.upgrade("9"), "to is '9'; it must be an integer of"),
        (lambda t: t.create_index(["column_stats"]), "kind is a list"),
        (lambda _: opened(5), "uri is 5; it must be a path"),
        (lambda _: opened(b"x"), "uri is b'x'"),
        (lambda _: opened("\ud800"), r"uri is '.ud800'; it must be a path or URI"),
        (lambda t: t.upsert(ROWS, commit_id="a\ud800"), r"commit_id is 'a.ud800'; .*surrogate"),
        (lambda t: t.upsert(ROWS, commit_metadata={"\ud800": "a"}), "surrogate"),
        (lambda t: t.upsert(ROWS, commit_metadata={"a": "\ud800"}), "surrogate"),
        (
            lambda t: create(f"{t.uri}-n", ROWS, key="id", options={"hoodie.table.name": "\ud800"}),
            r"hoodie.table.name' is '.*ud800': it contains half of a surrogate",
        ),
        (lambda t: opened(t.uri, options=["x"]), "options is a list"),
        (lambda t: opened(t.uri, options={5: "x"}), "options has the name 5"),
        (lambda t: opened(t.uri, engine="spark"), "engine is 'spark'"),
        (lambda _: LocalEngine("4"), "threads is '4'"),  # type: ignore[arg-type]
    ],
)
def test_argument_error_names_argument(
    table: HudiTable, call: Callable[[HudiTable], Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        call(table)


@pytest.mark.parametrize(
    ("call", "said", "hint"),
    [
        (lambda t: create(f"{t.uri}-7", ROWS, key="id", version=7), "version is 7", "6, 8, 9"),
        (lambda t: create(f"{t.uri}-5", ROWS, key="id", version=5), "version is 5", "6, 8, 9"),
        (lambda t: create(f"{t.uri}-b", BYTES, key="b"), "'b' of type binary cannot", "string"),
        (lambda t: create(f"{t.uri}-u", BYTES, key="u"), "'u' of type fixed_size", "string"),
        (lambda t: create(f"{t.uri}-s", ROWS, key="inner"), "'inner' of type struct", "inner.f"),
        (lambda t: create(f"{t.uri}-l", ROWS, key="tags"), "'tags' of type list", "string"),
        (lambda t: create(f"{t.uri}-p", BYTES, key="n", partition_by="b"), "'b' of", "string"),
        (lambda t: t.create_index("secondary_index", ["typo"], name="x"), "'typo'", "id, part"),
        (
            lambda t: t.create_index("secondary_index", ["at"], name="x"),
            "cannot have",
            "supported columns",
        ),
        (
            lambda t: t.create_index("column_stats", ["typo"], name="x", function="lower"),
            "no column 'typo'",
            "id, part",
        ),
        (lambda t: t.update("true", {"price": "price * 1.123"}), "would become", "DECIMAL(10, 2)"),
        (
            lambda t: t.update("true", {"price": "price * 99999"}),
            "out of range",
            "DECIMAL(10, 2)",
        ),
        (lambda t: t.update("true", {"typo": 1}), "no column 'typo'", "id, part"),
        (lambda t: t.scan(where=("n", ">", 1)), "one condition", "[('n', '>', 1)]"),
        (lambda t: t.scan(where="id = lisbon"), "'lisbon'", "single quotes"),
        (lambda t: t.scan(where="id = lisbon"), "'lisbon'", "Columns: id, part"),
        (lambda t: t.merge(ROWS, "t.id = s.id"), "by the record key", "Leave `on` out"),
        (lambda t: t.merge(ROWS, ["t.id = s.id"]), "by the record key", "Leave `on` out"),
        (lambda t: t.scan(where="from = 1"), "but got '='", "double"),
        (lambda t: t.scan(where="n = 1 group by"), "is not a SQL expression", "double"),
        (lambda t: t.scan(where="`id = 'a'"), "is not a SQL expression", "backticks"),
        (lambda t: t.update("n = 1", {"n": "`n + 1"}), "is not a SQL expression", "backticks"),
        (lambda t: t.update("n = 1", {"n": "from"}), "but got the end", "single"),
    ],
)
def test_errors_have_hints(
    priced: HudiTable, call: Callable[[HudiTable], Any], said: str, hint: str
) -> None:
    with pytest.raises(HudiError, match=said) as raised:
        call(priced)
    assert hint in raised.value.hint
    assert "Token" not in str(raised.value)


@pytest.fixture(scope="module")
def priced(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    price = pa.array([Decimal("12345.67"), None], pa.decimal128(10, 2))
    rows = ROWS.append_column("price", price)
    return pyhudi.create_table(tmp_path_factory.mktemp("priced") / "t", rows, key="id")


def test_missing_directory_error_has_hint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in ("file", "file/below"):
        with pytest.raises(StorageError, match="Not a directory") as raised:
            create(tmp_path / path, ROWS, key="id")
        assert "is a file" in raised.value.hint


def test_permission_error_names_cause() -> None:
    for number, hint in ((13, "permission"), (28, "full"), (30, "another directory")):
        assert hint in StorageError(f"/t/.hoodie/x: said so (os error {number})").hint
    assert StorageError("x", hint="mine").hint == "mine"
    assert StorageError("x (os error 5)").hint == ""


def test_arguments_are_checked_before_the_table_is_touched(table: HudiTable) -> None:
    before = table.inspect.timeline()
    with pytest.raises(ConfigError, match="memory_limit"):
        table.insert(ROWS, memory_limit=2.5)  # type: ignore[arg-type]
    assert table.refresh().inspect.timeline().equals(before)


# --- data -----------------------------------------------------------------------------------------


def with_column(values: Any, name: str = "s") -> pa.Table:
    return ROWS.set_column(ROWS.column_names.index(name), name, values)


def frames() -> dict[str, Any]:
    """Rows of many makers and types, good and bad."""
    kinds = {
        "null": pa.nulls(2),
        "decimal256": pa.array([1, 2], pa.decimal256(60, 2)),
        "duration": pa.array([1, None], pa.duration("us")),
        "time32": pa.array([1, None], pa.time32("ms")),
        "time64": pa.array([1, None], pa.time64("us")),
        "nanos": pa.array([1, None], pa.time64("ns")),
        "float16": pa.array([1.5, None], pa.float16()),
        "uint64": pa.array([2**63, None], pa.uint64()),
        "uint8": pa.array([1, None], pa.uint8()),
        "date64": pa.array([0, None], pa.date64()),
        "large_list": pa.array([["a"], None], pa.large_list(pa.large_string())),
        "list_view": pa.array([["a"], None], pa.list_view(pa.string())),
        "fixed_list": pa.array([[1, 2], None], pa.list_(pa.int64(), 2)),
        "list_of_null": pa.array([[None], None], pa.list_(pa.null())),
        "map_of_int": pa.array([[(1, 2)], None], pa.map_(pa.int64(), pa.int64())),
        "empty_struct": pa.array([{}, None], pa.struct([])),
        "struct_twice": pa.array([None, None], pa.struct([("a", pa.int64()), ("a", pa.int64())])),
        "interval": pa.array([None, None], pa.month_day_nano_interval()),
        "words": pa.array(["a", None]).dictionary_encode(),
        "numbers": pa.array([1, None]).dictionary_encode(),
        "views": pa.array(["a", None], pa.string_view()),
        "runs": pa.RunEndEncodedArray.from_arrays([1, 2], ["x", None]),
        "union": pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])]),
        "nested_words": pa.array([["a"], None], pa.list_(pa.string())),
        "zoned": pa.array([0, None], pa.timestamp("ns", "Asia/Tokyo")),
        "seconds": pa.array([0, None], pa.timestamp("s")),
        "bytes": pa.array([b"\xff", None]),
        "far": pa.array([2**62, None], pa.timestamp("s")),
    }
    found = {name: with_column(values) for name, values in kinds.items()}
    for name in ("words", "numbers", "views", "null", "float16"):
        found[f"key {name}"] = with_column(kinds[name], "id")
        found[f"part {name}"] = with_column(kinds[name], "part")
    polars = pl.DataFrame(ROWS.select(["id", "part", "n", "s"]))
    plain = ROWS.select(["id", "part", "n", "s"]).to_pandas()
    return {
        **found,
        "twice": pa.Table.from_arrays([*ROWS.columns, ROWS["n"]], [*ROWS.column_names, "n"]),
        "twice key": pa.Table.from_arrays([*ROWS.columns, ROWS["id"]], [*ROWS.column_names, "id"]),
        "no rows": ROWS.slice(0, 0),
        "no columns": pa.table({}),
        "no name": ROWS.rename_columns(["", *ROWS.column_names[1:]]),
        "odd names": ROWS.rename_columns(["id", "part", "a.b", "s p", "ü", "1", "_hoodie_x"]),
        "other case": ROWS.rename_columns([name.upper() for name in ROWS.column_names]),
        "polars": polars,
        "polars categories": polars.with_columns(pl.col("s", "id", "part").cast(pl.Categorical)),
        "polars objects": pl.DataFrame({"id": ["a"], "o": pl.Series([object()], dtype=pl.Object)}),
        "polars lazy": polars.lazy(),
        "pandas": plain,
        "pandas categories": plain.astype({"s": "category", "id": "category"}),
        "pandas numbers as names": plain.rename(columns={"n": 5}),
        "pandas tuples as names": plain.rename(columns={"n": ("n", 1)}),
        "pandas objects": plain.assign(s=[object(), 1]),
        "pandas mixed": plain.assign(s=[1, "x"]),
        "pandas periods": plain.assign(s=pd.period_range("2020", periods=2, freq="M")),
        "pandas intervals": plain.assign(s=pd.interval_range(0, 2)),
        "pandas timedeltas": plain.assign(s=pd.to_timedelta([1, 2], unit="s")),
        "pandas sparse": plain.assign(n=pd.arrays.SparseArray([1, 2])),
        "pandas complex": plain.assign(n=[1j, 2j]),
        "pandas empty": pd.DataFrame(),
        "dict": ROWS.to_pydict(),
        "list": ROWS.to_pylist(),
        "generator": iter(ROWS.to_batches()),
        "numpy": np.array([1, 2]),
        "array": pa.array([1, 2]),
        "records": ROWS.to_struct_array().chunk(0),
        "failing": failing_reader(),
    }


def failing_reader() -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield ROWS.to_batches()[0]
        raise LookupError("mine")

    return pa.RecordBatchReader.from_batches(ROWS.schema, batches())


VERBS: dict[str, Callable[[HudiTable, Any], Any]] = {
    "upsert": lambda t, data: t.upsert(data),
    "merge schema": lambda t, data: t.upsert(data, schema_mode="merge"),
    "partial": lambda t, data: t.upsert(data, partial=True),
    "insert": lambda t, data: t.insert(data),
    "bulk_insert": lambda t, data: t.bulk_insert(data),
    "delete_keys": lambda t, data: t.delete_keys(data),
    "overwrite_partitions": lambda t, data: t.overwrite_partitions(data),
    "merge": lambda t, data: (
        t.merge(data).when_matched_update_all().when_not_matched_insert_all().execute()
    ),
    "create": lambda t, data: pyhudi.create_table(f"{t.uri}-new", data, key="id"),
}


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS.values(), ids=list(VERBS))
def test_data_of_many_kinds(tmp_path: Path, verb: Any) -> None:
    table: HudiTable | None = None
    for number, (name, data) in enumerate(frames().items()):
        if table is None:
            base = tmp_path / str(number)
            table = create(base, ROWS, key="id", partition_by="part", options=PLAIN)
        if ends(partial(verb, table, data)) is not None:
            assert table.refresh().scan().to_arrow().num_rows >= 0, name
            made = Path(f"{table.uri}-new")
            if made.exists():
                assert opened(made).scan().to_arrow().num_rows >= 0, name
            table = None


def test_categories_are_written_as_their_values(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "id": pl.Series(["a", "b"], dtype=pl.Categorical),
            "part": pl.Series(["x", "y"], dtype=pl.Enum(["y", "x"])),
            "tags": pl.Series([["u"], None], dtype=pl.List(pl.Categorical)),
        }
    )
    table = pyhudi.create_table(tmp_path, frame, key="id", partition_by="part")
    table.upsert(frame.with_columns(tags=pl.Series([["v"], []], dtype=pl.List(pl.Categorical))))
    assert table.scan().to_polars().sort("id").to_dicts() == [
        {"id": "a", "part": "x", "tags": ["v"]},
        {"id": "b", "part": "y", "tags": []},
    ]


@pytest.mark.parametrize("verb", ["upsert", "insert", "delete_keys", "overwrite"])
def test_repeated_column_error_names_column(table: HudiTable, verb: str) -> None:
    rows = pa.Table.from_arrays([*ROWS.columns, ROWS["id"]], [*ROWS.column_names, "id"])
    with pytest.raises(SchemaMismatch, match="more than one column 'id'"):
        getattr(table, verb)(rows)


def test_python_objects_are_refused(table: HudiTable) -> None:
    frame = pl.DataFrame({"id": ["a"], "o": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(SchemaMismatch, match="column 'o' holds Python objects"):
        table.upsert(frame, schema_mode="merge")


def test_rows_of_another_table_keep_their_errors(tmp_path: Path, base: Path) -> None:
    source = pyhudi.create_table(tmp_path / "source", ROWS, key="id", partition_by="part")
    rows = source.scan()
    (path,) = (tmp_path / "source" / "x").glob("*.parquet")
    path.write_bytes(b"")
    with pytest.raises(pyhudi.CorruptTable, match="parquet"):
        pyhudi.open_table(base).upsert(rows)


# --- what the core and the storage say ------------------------------------------------------------


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_rows_that_fail_while_they_are_written(tmp_path: Path, kind: Any) -> None:
    table = create(tmp_path, ROWS, key="id", partition_by="part", type=kind, options=PLAIN)
    table.update("true", {"n": 2**62})
    with pytest.raises(SchemaMismatch, match="a value cannot be set: overflow") as raised:
        table.update("true", {"n": "n * 4"})
    assert "C Data" not in str(raised.value)
    assert "Traceback" not in str(raised.value)
    assert opened(tmp_path).scan().to_arrow()["n"].to_pylist() == [2**62] * 2


def test_paths_in_plans_that_lead_elsewhere(table: HudiTable) -> None:
    operation = {
        "partitionPath": "../other",
        "fileId": "f",
        "baseInstantTime": "20200101000000000",
        "dataFilePath": "f_0-1-0_20200101000000000.parquet",
        "deltaFilePaths": [],
    }
    with pytest.raises(pyhudi.CorruptTable, match="which is not a file") as raised:
        resolve_planned_slices(table.storage, table.config, [operation])
    assert raised.value.file == "../other/f_0-1-0_20200101000000000.parquet"


@pytest.mark.parametrize("path", ["../x", "/", "a//b", "a\0b", "."])
def test_partition_paths_that_lead_elsewhere(table: HudiTable, path: str) -> None:
    with pytest.raises(ConfigError, match="is not a partition path"):
        table.delete_partitions([path])


def test_extras_that_are_not_installed(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyhudi.api.outputs.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="polars is not installed"):
        table.scan().to_polars()
    with pytest.raises(ConfigError, match="pandas is not installed"):
        table.scan().to_pandas()
