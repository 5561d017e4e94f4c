"""`pyhudi.testing`: histories on real tables beside the model, and that the checks can fail.

PYHUDI_TESTING_EXAMPLES in the environment runs as many new histories of each version and type.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi import (
    ConfigError,
    HudiError,
    HudiTable,
    SchemaMismatch,
    StorageError,
    UnsupportedTableFeature,
)
from pyhudi.testing import (
    Clean,
    Cluster,
    Compact,
    Condition,
    Delete,
    DeleteKeys,
    History,
    Insert,
    Operation,
    TableLayout,
    TableModel,
    Update,
    Upsert,
    assert_matches,
    check_invariants,
    comparable_rows,
    failing_table,
    histories,
    rows,
    tables,
    temporary_table,
)

EXAMPLES = int(os.environ.get("PYHUDI_TESTING_EXAMPLES", "0"))
FEW = settings(
    max_examples=EXAMPLES or 4,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
DRAWN = settings(FEW, max_examples=40)
SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
LAYOUT = TableLayout(SCHEMA, order_by=("ts",), type="mor")
PER_CITY = TableLayout(SCHEMA, partition_by=("city",), index="simple")
GLOBAL = TableLayout(SCHEMA, partition_by=("city",))


def row(key: str, city: str | None = None, ts: int | None = 1) -> dict[str, Any]:
    return {"id": key, "city": city, "ts": ts}


def run(layout: TableLayout, *operations: Operation) -> TableModel:
    """Return the model after operations on it and on a table, compared after each one."""
    model = TableModel(layout)
    with temporary_table(layout) as table:
        for operation in operations:
            operation.run(table)
            model.apply(operation)
            assert_matches(table, model)
        check_invariants(table)
    return model


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_histories_leave_rows_of_model(version: int, kind: Any) -> None:
    @FEW
    @given(histories(tables(versions=[version], types=[kind])))
    def check(history: History) -> None:
        run(history.table, *history.operations)

    check()


def test_histories_have_every_operation_and_print_rows() -> None:
    texts: list[str] = []
    kinds: set[type] = set()

    @DRAWN
    @given(histories())
    def collect(history: History) -> None:
        kinds.update(map(type, history.operations))
        texts.append(repr(history))

    collect()
    every = {Upsert, Insert, DeleteKeys, Delete, Update, Compact, Cluster, Clean}
    assert kinds == every
    assert all("Upsert(rows=[{'id': " in text and "pyarrow" not in text for text in texts)


@given(st.data())
@FEW
def test_rows_fit_existing_table(data: st.DataObject) -> None:
    with temporary_table(SCHEMA, key=["id", "ts"], partition_by="city", index="bloom") as table:
        table.upsert(data.draw(rows(table, min_rows=1)))
        check_invariants(table)
        keys = [{"id": "k", "ts": 1, "city": "oslo"}]
        table.upsert(data.draw(rows(table, keys=keys, min_rows=2)))
        assert table.get([("k", 1)]).num_rows == 1


def test_rows_name_types_without_values() -> None:
    layout = TableLayout(pa.schema([("id", pa.float64()), ("t", pa.time64("us"))]))
    with pytest.raises(UnsupportedTableFeature, match="keys for the column id of the type double"):
        rows(layout)
    with pytest.raises(UnsupportedTableFeature, match=r"values of the type time64\[us\]"):
        rows(layout, keys=[{"id": 1.0}])
    layout = TableLayout(pa.schema([("id", pa.string()), ("x", pa.float64())]), order_by=("x",))
    with pytest.raises(UnsupportedTableFeature, match="ordering values for the column x"):
        rows(layout)
    with pytest.raises(UnsupportedTableFeature, match="does not compare floats"):
        TableModel(layout)


@pytest.mark.parametrize("kind", [pa.string(), pa.timestamp("us", "UTC"), pa.date32()], ids=str)
def test_histories_order_by_column_of_other_types(kind: pa.DataType) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", kind), ("text", pa.string())])
    layout = TableLayout(schema, order_by=("at",), type="mor")
    layouts = st.sampled_from((layout, replace(layout, type="cow")))

    @FEW
    @given(histories(layouts))
    def check(history: History) -> None:
        run(history.table, *history.operations)

    check()


def test_model_follows_merge_modes() -> None:
    late: list[Operation] = [
        Upsert([row("a", "oslo", 5)]),
        Upsert([row("a", "rome", 4), row("b", "rome", 1)]),
    ]
    assert run(LAYOUT, *late).rows() == [row("a", "oslo", 5), row("b", "rome", 1)]
    late.append(Update(Condition("id", "==", "a"), {"ts": 3}))
    assert run(LAYOUT, *late).rows() == [row("a", "oslo", 5), row("b", "rome", 1)]
    by_commit = TableLayout(SCHEMA, type="mor")
    assert run(by_commit, *late).rows() == [row("a", "rome", 3), row("b", "rome", 1)]


def test_model_follows_conditions() -> None:
    model = run(
        PER_CITY,
        Insert([row("a", "oslo", 1), row("a", "rome", 2), row("b", "oslo", None), row("c")]),
        Update(Condition("ts", "is null"), {"ts": 7}),
        Delete(Condition("ts", "<", 2)),
        DeleteKeys([{"id": "a", "city": "oslo"}]),
    )
    assert model.rows() == [row("a", "rome", 2), row("b", "oslo", 7)]
    model.apply(DeleteKeys([{"id": "a"}]))
    assert model.rows() == [row("b", "oslo", 7)]


@pytest.mark.parametrize(
    ("layout", "operations", "message"),
    [
        (LAYOUT, [Insert([row("a")])], "no duplicate keys"),
        (GLOBAL, [Upsert([row("a", "rome")])], "to another partition"),
        (LAYOUT, [Upsert([row("a", ts=None)])], "does not compare nulls"),
        (LAYOUT, [DeleteKeys([{"id": "a"}]), Upsert([row("a", ts=0)])], "lower ordering value"),
    ],
)
def test_model_refuses_unknown_results(
    layout: TableLayout, operations: list[Operation], message: str
) -> None:
    model = TableModel(layout)
    model.apply(Insert([row("a", "oslo")]))
    *first, last = operations
    for operation in first:
        model.apply(operation)
    with pytest.raises(UnsupportedTableFeature, match=message):
        model.apply(last)


def test_model_refuses_tables_it_cannot_follow() -> None:
    partial = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
    with (
        temporary_table(SCHEMA, key="id", order_by="ts", options=partial) as table,
        pytest.raises(UnsupportedTableFeature, match="the merge rules"),
    ):
        TableModel(table)
    with (
        temporary_table(SCHEMA, key=None) as table,
        pytest.raises(UnsupportedTableFeature, match="without key columns"),
    ):
        TableModel(table)
    data = pa.Table.from_pylist([row("a"), row("a")], SCHEMA)
    with (
        temporary_table(data, key="id") as table,
        pytest.raises(UnsupportedTableFeature, match="no duplicate keys"),
    ):
        TableModel(table)


@pytest.mark.parametrize(
    ("operation", "error", "message"),
    [
        ("x", ConfigError, "cannot apply 'x'"),
        (Upsert([{"id": "a", "ts": 1}]), SchemaMismatch, "no column 'city'"),
        (Insert([{**row("b"), "towm": "oslo"}]), SchemaMismatch, "the table has no column 'towm'"),
        (Upsert([row("a", ts="x")]), SchemaMismatch, "the rows do not fit"),  # type: ignore[arg-type]
        (DeleteKeys([{"idd": "a"}]), SchemaMismatch, "no column 'idd'"),
        (DeleteKeys([{"city": "oslo"}]), SchemaMismatch, "do not have the key column 'id'"),
        (Delete(Condition("cty", "==", "x")), SchemaMismatch, "no column 'cty'"),
        (Update(Condition("ts", "<", 9), {"cty": "x"}), SchemaMismatch, "no column 'cty'"),
        (Update(Condition("ts", "<", 9), {"id": "x"}), ConfigError, "'id' cannot be set"),
    ],
)
def test_model_refuses_what_a_table_refuses(
    operation: Any, error: type[Exception], message: str
) -> None:
    model = TableModel(LAYOUT)
    model.apply(Upsert([row("a")]))
    with pytest.raises(error, match=message):
        model.apply(operation)
    if not isinstance(operation, str):
        with temporary_table(LAYOUT) as table:
            table.upsert(pa.Table.from_pylist([row("a")], SCHEMA))
            with pytest.raises(HudiError):
                operation.run(table)


def test_model_ignores_other_columns_of_keys() -> None:
    """So does `HudiTable.delete_keys`."""
    run(LAYOUT, Upsert([row("a", "oslo"), row("b")]), DeleteKeys([{"id": "a", "city": "rome"}]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: TableModel("uri"), "'uri' is not a HudiTable"),  # type: ignore[arg-type]
        (lambda _: failing_table("uri", 1), "'uri' is not a HudiTable"),  # type: ignore[arg-type]
        (lambda table: failing_table(table, 0), "at is 0"),
        (lambda table: failing_table(table, "1"), "it must be an integer"),  # type: ignore[arg-type]
        (lambda table: assert_matches(table, []), r"\[\] is not a TableModel"),  # type: ignore[arg-type]
        (lambda table: assert_matches("uri", TableModel(table)), "not a HudiTable"),  # type: ignore[arg-type]
        (lambda _: check_invariants("uri"), "not a HudiTable"),  # type: ignore[arg-type]
        (lambda _: comparable_rows(5), "int is no Arrow data"),
        (lambda _: DeleteKeys(["a"]), "not a list of dicts"),
        (lambda _: Upsert("rows"), "not a list of dicts"),
        (lambda _: Condition("n", "=", 1), "comparison is '='"),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments_name_what_to_pass(call: Any, message: str) -> None:
    with temporary_table(LAYOUT) as table, pytest.raises(ConfigError, match=message):
        call(table)


def test_missing_hypothesis_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['hypothesis'] = None; import pyhudi.testing\n"
        "try: pyhudi.testing.histories\n"
        "except pyhudi.ConfigError as error: print(error)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert "pip install 'pyhudi[testing]'" in output.stdout


def test_assert_matches_names_keys() -> None:
    data = pa.Table.from_pylist([row("a"), row("b", ts=2), row("c")], SCHEMA)
    with temporary_table(data, key="id") as table:
        model = TableModel(table)
        assert_matches(table, model)
        model.apply(DeleteKeys([{"id": "a"}]))
        model.apply(Upsert([row("b", "oslo", 3), row("d")]))
        table.insert(pa.Table.from_pylist([row("c")], SCHEMA))
        with pytest.raises(AssertionError) as error:
            assert_matches(table, model)
        assert str(error.value).splitlines() == [
            f"{table.uri} differs from the model: 1 missing, 1 extra, 1 duplicate, 1 different",
            f"  missing: id='d': {row('d')}",
            f"  extra: id='a': {row('a')}",
            "  duplicate: id='c': 2 rows",
            "  different: id='b': city is None, expected 'oslo'; ts is 2, expected 3",
        ]


def test_check_invariants_finds_duplicate_keys() -> None:
    data = pa.Table.from_pylist([row("a")], SCHEMA)
    with temporary_table(data, key="id", index="simple") as table:
        check_invariants(table)
        table.insert(data)
        with pytest.raises(AssertionError, match="key 'a' is 2 times in ''"):
            check_invariants(table)


@pytest.mark.filterwarnings("ignore::pyhudi.MetadataTableWarning")
def test_check_invariants_finds_stale_metadata(tmp_path: Path) -> None:
    """The metadata table of an earlier commit does not know the files of a later one."""
    with temporary_table(pa.Table.from_pylist([row("a")], SCHEMA), key="id") as table:
        metadata = Path(table.uri) / ".hoodie" / "metadata"
        shutil.copytree(metadata, tmp_path / "metadata")
        table.insert(pa.Table.from_pylist([row("b")], SCHEMA))
        check_invariants(table)
        shutil.rmtree(metadata)
        shutil.copytree(tmp_path / "metadata", metadata)
        with pytest.raises(AssertionError, match=r"check: .*metadata_commit_missing"):
            check_invariants(table)


@pytest.mark.parametrize("lost_response", [False, True])
@pytest.mark.filterwarnings("ignore::pyhudi.AfterCommitWarning", "ignore::pyhudi.LockWarning")
def test_failing_table_fails_once_at_each_change(lost_response: bool) -> None:
    outcomes = set()
    with temporary_table(pa.Table.from_pylist([row("a")], SCHEMA), key="id", type="mor") as table:
        for at in range(1, 100):
            before = table.to_arrow().to_pylist()
            data = [row("a", ts=at + 1)]
            handle, failure = failing_table(table, at, lost_response=lost_response)
            try:
                handle.upsert(pa.Table.from_pylist(data, SCHEMA))
                outcomes.add("written")
                assert table.refresh().to_arrow().to_pylist() == data
            except StorageError:
                outcomes.add("failed")
                assert table.refresh().to_arrow().to_pylist() in (before, data)
            if not failure.has_failed:
                break
        check_invariants(table)
    assert at > 10
    assert outcomes == {"written", "failed"}


def test_temporary_table_removes_directory_after_error() -> None:
    uris: list[str] = []

    def fail(table: HudiTable) -> None:
        uris.append(table.uri)
        table.upsert({"unknown": [1]})

    with pytest.raises(SchemaMismatch), temporary_table(LAYOUT) as table:
        fail(table)
    assert not Path(uris[0]).parent.exists()


FIXTURE_TESTS = """
import pyarrow as pa
from pathlib import Path
made = []

def test_one(hudi_table):
    table = hudi_table(pa.table({"id": [1]}), key="id", type="mor")
    other = hudi_table(table.schema, key="id")
    assert table.count() == 1 and other.count() == 0
    made.extend([table.uri, other.uri])

def test_two():
    assert len(made) == 2 and not any(Path(uri).parent.exists() for uri in made)
"""


def test_pytest_plugin_removes_tables_after_each_test(tmp_path: Path) -> None:
    file = tmp_path / "test_fixture.py"
    file.write_text(FIXTURE_TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pyhudi.testing.pytest_plugin"]
    output = subprocess.run(
        [*command, file.name], capture_output=True, check=False, text=True, cwd=tmp_path
    )
    assert "2 passed" in output.stdout, output.stdout


def test_testing_package_loads_hypothesis_for_strategies_only() -> None:
    code = (
        "import sys, pyhudi.testing.pytest_plugin; before = [*sys.modules];"
        "from pyhudi.testing import check_invariants, failing_table;"
        "print('pyarrow' in before, 'hypothesis' in sys.modules)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert output.stdout.split() == ["False", "False"]
