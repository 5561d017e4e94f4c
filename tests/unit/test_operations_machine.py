"""Every operation of the public API in any order, beside the model: a Hypothesis state machine.

Operations change rows, columns, indexes, services and versions; storage fails in some of them; old
readers, positions and savepoints are used long after they were taken. After each step the table
holds the rows of the model. PYHUDI_MACHINE_EXAMPLES sets how many machines run.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pyhudi import (
    CommitConflict,
    ConfigError,
    HistoryUnavailable,
    HudiTable,
    SchemaMismatch,
    StorageError,
    UnsupportedTableFeature,
    open_table,
)
from pyhudi.testing import (
    Cluster,
    DeleteKeys,
    Insert,
    Operation,
    TableLayout,
    TableModel,
    Upsert,
    assert_matches,
    check_invariants,
    comparable_rows,
    failing_table,
    next_operation,
    rows,
    tables,
    temporary_table,
)

EXAMPLES = int(os.environ.get("PYHUDI_MACHINE_EXAMPLES", "6"))
STEPS = int(os.environ.get("PYHUDI_MACHINE_STEPS", "16"))
NEW_TYPES = (pa.string(), pa.int32(), pa.float64(), pa.date32())
WIDER = {pa.int32(): pa.int64()}
INDEXES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("column_stats", {}),
    ("partition_stats", {}),
    ("bloom_filters", {}),
    ("record_index", {}),
    ("secondary_index", {"columns": ["ts"], "name": "by_ts"}),
)


class InTransaction:
    """A transaction that takes the operations of `pyhudi.testing`, which ask for a schema."""

    def __init__(self, transaction: Any, schema: pa.Schema) -> None:
        self._transaction = transaction
        self.schema = schema

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)


@dataclasses.dataclass
class Moment:
    """A position in the table's history and the model at it."""

    position: str
    instant: str
    model: TableModel


class OperationsMachine(RuleBasedStateMachine):
    """A table and its model, changed alike."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.table: HudiTable
        self.model: TableModel
        self.moments: list[Moment] = []
        self.savepoints: list[Moment] = []
        self.readers: list[tuple[HudiTable, list[str]]] = []
        self.number = 0

    def teardown(self) -> None:
        with self.stack:
            if hasattr(self, "table"):
                check_invariants(self.table)

    @initialize(layout=tables(), data=st.data())
    def create(self, layout: TableLayout, data: st.DataObject) -> None:
        self.table = self.stack.enter_context(temporary_table(layout))
        self.model = TableModel(layout)
        self._run(Upsert(data.draw(rows(layout, min_rows=1))))

    # ---- rows

    @rule(data=st.data())
    def change_rows(self, data: st.DataObject) -> None:
        self._run(data.draw(next_operation(self.model)))

    @rule(data=st.data(), count=st.integers(1, 4))
    def run_transaction(self, data: st.DataObject, count: int) -> None:
        model = copy.deepcopy(self.model)
        statements: list[Operation] = []
        for _ in range(count):
            statements.append(data.draw(next_operation(model, services=False)))
            model.apply(statements[-1])
        try:
            with self.table.transaction() as transaction:
                for statement in statements:
                    statement.run(InTransaction(transaction, self.table.schema))  # type: ignore[arg-type]
        except SchemaMismatch as error:
            if "writes one with a smaller value" not in str(error):
                raise
        else:
            self.model = model

    @rule(data=st.data(), change=st.integers(1, 60), lost_response=st.booleans())
    def fail_in_an_operation(self, data: st.DataObject, change: int, lost_response: bool) -> None:
        operation = data.draw(next_operation(self.model))
        after = copy.deepcopy(self.model)
        after.apply(operation)
        handle, failure = failing_table(self.table, change, lost_response=lost_response)
        try:
            run_operation(operation, handle)
        except StorageError:
            assert failure.has_failed
            try:
                assert_matches(self.table, self.model)
            except AssertionError:
                self.model = after
        else:
            self.model = after

    @rule(data=st.data())
    def bulk_insert(self, data: st.DataObject) -> None:
        drawn = data.draw(rows(self.model.layout)).to_pylist()
        existing = {self.model.place(row) for row in self.model.rows()}
        new = {self.model.place(row): row for row in drawn if self.model.place(row) not in existing}
        valid = [row for row in new.values() if self._is_valid(row)]
        if valid:
            self.table.bulk_insert(pa.Table.from_pylist(valid, self.model.layout.schema))
            self.model.apply(Insert(valid))

    def _is_valid(self, row: dict[str, Any]) -> bool:
        lowest = self.model.min_ordering(row) or ()
        order = tuple(row[name] for name in self.model.layout.order_by)
        return not lowest or order >= lowest

    @rule(data=st.data())
    def overwrite(self, data: st.DataObject) -> None:
        drawn = data.draw(rows(self.model.layout))
        unique = {self.model.place(row): row for row in drawn.to_pylist()}
        with allow_refusals():
            self.table.overwrite(pa.Table.from_pylist(list(unique.values()), drawn.schema))
            self.model = TableModel(self.model.layout)
            self.model.apply(Upsert(list(unique.values())))

    @precondition(lambda self: self.model.layout.partition_by and self.model.rows())
    @rule(data=st.data())
    def delete_partition(self, data: st.DataObject) -> None:
        (column,) = self.model.layout.partition_by
        value = data.draw(st.sampled_from(sorted({row[column] or "" for row in self.model.rows()})))
        if not value:
            return
        with allow_refusals():
            self.table.delete_partitions([{column: value}])
            self.model.apply(DeleteKeys([row for row in self.model.rows() if row[column] == value]))

    # ---- services and indexes

    @rule(name=st.sampled_from(["maintain", "archive", "log_compact", "rebuild_metadata"]))
    def run_service(self, name: str) -> None:
        with allow_refusals():
            getattr(self.table, name)()

    @rule(index=st.sampled_from(INDEXES), concurrently=st.booleans())
    def create_index(self, index: tuple[str, dict[str, Any]], concurrently: bool) -> None:
        kind, arguments = index
        if kind == "record_index" and not self.model.layout.has_global_keys:
            return  # `check` reports keys that several partitions have
        with allow_refusals():
            self.table.create_index(kind, concurrently=concurrently, **arguments)

    @rule(name=st.sampled_from([*(kind for kind, _ in INDEXES[:4]), "by_ts", "files"]))
    def drop_index(self, name: str) -> None:
        with allow_refusals():
            self.table.drop_index(name)

    # ---- columns and versions

    @rule(kind=st.sampled_from(NEW_TYPES))
    def add_column(self, kind: pa.DataType) -> None:
        self.number += 1
        name = f"n{self.number}"
        schema = self.model.layout.schema
        with self._altered():
            self.table.alter().add_column(name, kind).execute()
            self._set_schema(schema.append(pa.field(name, kind)))
            for row in self.model.rows():
                row[name] = None

    @precondition(lambda self: self._free_columns())
    @rule(data=st.data())
    def drop_column(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self._free_columns()))
        schema = self.model.layout.schema
        with self._altered():
            self.table.alter().drop_column(name).execute()
            self._set_schema(schema.remove(schema.get_field_index(name)))
            for row in self.model.rows():
                del row[name]

    @precondition(lambda self: self._free_columns())
    @rule(data=st.data())
    def rename_column(self, data: st.DataObject) -> None:
        self.number += 1
        name, new = data.draw(st.sampled_from(self._free_columns())), f"r{self.number}"
        names = [new if old == name else old for old in self.model.layout.schema.names]
        with self._altered():
            self.table.alter().rename_column(name, new).execute()
            schema = self.model.layout.schema
            self._set_schema(
                pa.schema([f.with_name(n) for f, n in zip(schema, names, strict=True)])
            )
            for row in self.model.rows():
                values = list(row.values())
                row.clear()
                row.update(zip(names, values, strict=True))

    @precondition(lambda self: self._free_columns())
    @rule(data=st.data())
    def widen_column(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self._free_columns()))
        schema = self.model.layout.schema
        at = schema.get_field_index(name)
        wider = WIDER.get(schema.field(at).type)
        if wider is None:
            return
        with self._altered():
            self.table.alter().change_type(name, wider).execute()
            self._set_schema(schema.set(at, schema.field(at).with_type(wider)))

    @precondition(lambda self: self.model.layout.version < 9)
    @rule()
    def upgrade(self) -> None:
        to = {6: 8, 8: 9}[self.model.layout.version]
        with allow_refusals():
            self.table.upgrade(to)
            self.model.layout = dataclasses.replace(self.model.layout, version=to)
            self.moments, self.savepoints = [], []

    # ---- history

    @rule()
    def keep_reader(self) -> None:
        self.readers.append((self._new_handle(), self._rows()))

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def use_reader(self, data: st.DataObject) -> None:
        handle, expected = data.draw(st.sampled_from(self.readers))
        # Its files may have been cleaned, rolled back or restored away.
        with suppress(HistoryUnavailable):
            assert comparable_rows(handle.to_arrow()) == expected

    @rule()
    def keep_position(self) -> None:
        last = self.table.refresh().history().to_pylist()[0]
        moment = Moment(
            self.table.scan().position or "", last["instant"], copy.deepcopy(self.model)
        )
        self.moments.append(moment)

    @precondition(lambda self: self.moments)
    @rule(data=st.data())
    def travel(self, data: st.DataObject) -> None:
        moment = data.draw(st.sampled_from(self.moments))
        with suppress(HistoryUnavailable):
            old = open_table(self.table.uri, as_of=moment.position)
            assert comparable_rows(old.to_arrow()) == self._rows(moment.model)

    @precondition(lambda self: self.moments)
    @rule(data=st.data())
    def read_incrementally(self, data: st.DataObject) -> None:
        moment = data.draw(st.sampled_from(self.moments))
        if moment.model.layout.schema != self.model.layout.schema:
            return
        names = self.model.layout.schema.names
        try:
            scan = self.table.refresh().incremental(start=moment.position, columns=names)
            changed = scan.to_arrow().to_pylist()
        except HistoryUnavailable:
            return
        current = {self.model.place(row): repr(row) for row in self.model.rows()}
        before = {self.model.place(row): repr(row) for row in moment.model.rows()}
        for row in changed:
            # Incremental queries return encoded partition paths as they are, as Hudi 1.2.0 does.
            row["part"] = row["part"] and unquote(row["part"])
            assert repr(row) == current[self.model.place(row)]
        found = {self.model.place(row) for row in changed}
        for place, row in current.items():
            assert place in found or before.get(place) == row, place

    @rule()
    def save(self) -> None:
        instant = self.table.refresh().history().to_pylist()[0]["instant"]
        with allow_refusals():
            instant = self.table.savepoint("kept")
            self.savepoints.append(Moment("", instant, copy.deepcopy(self.model)))

    @precondition(lambda self: self.savepoints)
    @rule()
    def restore(self) -> None:
        moment = self.savepoints.pop()
        with allow_refusals():
            self.table.restore(moment.instant)
            self.model = copy.deepcopy(moment.model)
            self.moments = []

    # ---- helpers

    @invariant()
    def the_table_has_the_rows_of_the_model(self) -> None:
        if hasattr(self, "table"):
            assert_matches(self.table, self.model)

    def _run(self, operation: Operation) -> None:
        run_operation(operation, self.table)
        self.model.apply(operation)

    def _new_handle(self) -> HudiTable:
        return HudiTable(self.table.storage, self.table.engine, self.table.options)

    def _rows(self, model: TableModel | None = None) -> list[str]:
        return sorted(map(repr, (model or self.model).rows()))

    def _free_columns(self) -> list[str]:
        layout = self.model.layout
        fixed = {*layout.key, *layout.partition_by, *layout.order_by, "ts", "part"}
        return [name for name in layout.schema.names if name not in fixed]

    def _set_schema(self, schema: pa.Schema) -> None:
        self.model.layout = dataclasses.replace(self.model.layout, schema=schema)

    @contextmanager
    def _altered(self) -> Iterator[None]:
        with allow_refusals():
            self.table.drop_index("partition_stats")
        with allow_refusals():
            yield


@contextmanager
def allow_refusals() -> Iterator[None]:
    """Let an operation be refused: it has to leave the rows as they are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(ConfigError, UnsupportedTableFeature, CommitConflict):
            yield


def run_operation(operation: Operation, table: HudiTable) -> None:
    """Run an operation. A secondary index excludes clustering, which replaces file groups."""
    with allow_refusals() if isinstance(operation, Cluster) else nullcontext():
        operation.run(table)


OperationsMachine.TestCase.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    derandomize="PYHUDI_MACHINE_EXAMPLES" not in os.environ,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
    print_blob=True,
)

test_operations = pytest.mark.filterwarnings("ignore")(OperationsMachine.TestCase)
