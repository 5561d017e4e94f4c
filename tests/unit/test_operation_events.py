"""Events of public calls: each call that reads or changes a table is exactly one operation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import events
from pyhudi.errors import HudiError

ROWS = pa.table({"id": ["a", "b"], "v": [1, 2], "p": ["x", "y"]})
MORE = pa.table({"id": ["b", "c"], "v": [3, 4], "p": ["y", "y"]})

Call = Callable[[pyhudi.HudiTable], object]


def run_transaction(table: pyhudi.HudiTable) -> None:
    with table.transaction() as transaction:
        transaction.upsert(MORE)


def write_in_group(table: pyhudi.HudiTable) -> None:
    with table.writer() as writer:
        writer.upsert(MORE)


def drop_index(table: pyhudi.HudiTable) -> None:
    if table.as_of is None:
        with events.suppress_events():
            table.create_index("column_stats")
    table.drop_index("column_stats")


def save_and_delete(table: pyhudi.HudiTable) -> None:
    with events.suppress_events():
        saved = table.savepoint() if table.as_of is None else "20240101000000000"
    table.delete_savepoint(saved)


def consume(table: pyhudi.HudiTable) -> pyhudi.HudiTable:
    """Return the table, which then has the consumer `c`."""
    next(table.stream(consumer="c", wait=False)).commit()
    return table


CHANGES: dict[str, Call] = {
    "add_constraint": lambda t: t.add_constraint("positive", "v > 0"),
    "add_generated_column": lambda t: t.add_generated_column("w", "v + 1"),
    "alter": lambda t: t.alter().add_column("w", "int").execute(),
    "archive": lambda t: t.archive(),
    "bulk_insert": lambda t: t.bulk_insert(MORE),
    "check": lambda t: t.check(repair=True),
    "clean": lambda t: t.clean(),
    "cluster": lambda t: t.cluster(),
    "compact": lambda t: t.compact(),
    "create_index": lambda t: t.create_index("column_stats"),
    "delete": lambda t: t.delete("v = 1"),
    "delete_keys": lambda t: t.delete_keys(["a"]),
    "delete_partitions": lambda t: t.delete_partitions(["x"]),
    "delete_savepoint": save_and_delete,
    "downgrade": lambda t: t.downgrade(8),
    "drop_constraint": lambda t: t.drop_constraint("small"),
    "drop_generated_column": lambda t: t.drop_generated_column("double"),
    "drop_index": drop_index,
    "expire_partitions": lambda t: t.expire_partitions(1000),
    "insert": lambda t: t.insert(MORE),
    "log_compact": lambda t: t.log_compact(),
    "maintain": lambda t: t.maintain(),
    "merge": lambda t: t.merge(MORE).when_matched_update_all().execute(),
    "overwrite": lambda t: t.overwrite(MORE),
    "overwrite_partitions": lambda t: t.overwrite_partitions(MORE),
    "rebuild_metadata": lambda t: t.rebuild_metadata(),
    "restore": lambda t: t.restore(first(t)),
    "rollback": lambda t: t.rollback(t.state.timeline.commits[-1].requested),
    "savepoint": lambda t: t.savepoint(),
    "set_properties": lambda t: t.set_properties({"owner": "me"}),
    "sql": lambda t: t.sql("UPDATE t SET v = v + 1 WHERE id = 'a'"),
    "transaction": run_transaction,
    "update": lambda t: t.update("id = 'a'", {"v": "v + 1"}),
    "upgrade": lambda t: t.upgrade(9),
    "upsert": lambda t: t.upsert(MORE),
    "writer": write_in_group,
}
"""A call of each method that changes a table. A handle of an earlier snapshot refuses it."""

READS: dict[str, tuple[Call | None, Call | None]] = {
    "changes": (None, lambda t: t.changes()),
    "consumers": (lambda t: t.consumers(), None),
    "count": (lambda t: t.count(), lambda t: t.count("w = 1")),
    "delete_consumer": (
        lambda t: consume(t).delete_consumer("c"),
        lambda t: t.delete_consumer("c"),
    ),
    "diff": (lambda t: t.diff(first(t), first(t)).to_arrow(), lambda t: t.diff("x", "y")),
    "get": (lambda t: t.get(["a"]), lambda t: t.get(["a"], ["w"])),
    "head": (lambda t: t.head(1), lambda t: t.head(-1)),
    "history": (lambda t: t.history(), lambda t: t.history(-1)),
    "incremental": (lambda t: t.incremental().to_arrow(), lambda t: t.incremental("x")),
    "report": (None, lambda t: t.report("/nowhere/report.html")),
    "reset_consumer": (
        lambda t: consume(t).reset_consumer("c", first(t)),
        lambda t: t.reset_consumer("c", "x"),
    ),
    "savepoints": (lambda t: t.savepoints(), None),
    "scan": (lambda t: t.scan(limit=1).to_arrow(), lambda t: t.scan(where="w = 1")),
    "stream": (lambda t: next(t.stream(wait=False)).to_arrow(), lambda t: t.stream("x")),
    "sync": (None, lambda t: t.sync()),
    "to_arrow": (lambda t: t.to_arrow(), lambda t: t.to_arrow(where="w = 1")),
    "to_pandas": (lambda t: t.to_pandas(), lambda t: t.to_pandas(where="w = 1")),
    "to_polars": (lambda t: t.to_polars(), lambda t: t.to_polars(where="w = 1")),
    "to_reader": (lambda t: t.to_reader().read_all(), None),
}
"""Of each other method a call that succeeds, and one that fails; None if it needs more."""

NO_OPERATIONS = {
    "finish_services": "waits",
    "refresh": "loads the table, as open_table does",
    "with_validators": "copies the handle",
}

NAMES = {
    **dict.fromkeys(("head", "to_arrow", "to_pandas", "to_polars", "to_reader"), "scan"),
    "sql": "update",
    "stream": "scan",
    "writer": "group_commit",
}
"""Names of operations that differ from the method that the program calls."""


def first(table: pyhudi.HudiTable) -> str:
    return table.state.timeline.commits[0].requested


def operations(run: Callable[[], object]) -> tuple[list[events.Operation], BaseException | None]:
    """The operations of a call, and its exception."""
    ended: list[events.Event] = []
    raised = None
    with events.listen(ended.append):
        try:
            run()
        except (HudiError, OSError) as error:
            raised = error
    return [event for event in ended if isinstance(event, events.Operation)], raised


@pytest.fixture
def table(tmp_path: Path) -> pyhudi.HudiTable:
    table = pyhudi.create_table(
        tmp_path / "trips",
        ROWS,
        key="id",
        partition_by="p",
        type="mor",
        constraints={"small": "v < 100"},
        generated={"double": "v * 2"},
        options={"hoodie.metadata.enable": False},
    )
    table.upsert(ROWS)
    return table


def test_public_methods_are_in_a_list() -> None:
    public = {
        name
        for name in dir(pyhudi.HudiTable)
        if not name.startswith("_") and callable(getattr(pyhudi.HudiTable, name))
    }
    assert public == CHANGES.keys() | READS.keys() | NO_OPERATIONS.keys()


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_change_is_one_operation(name: str, table: pyhudi.HudiTable) -> None:
    """So is a change that fails, with its error."""
    (operation,), error = operations(lambda: CHANGES[name](table))
    assert (operation.name, operation.error, error) == (NAMES.get(name, name), None, None)
    assert (operation.uri, operation.table) == (table.uri, "trips")
    earlier = pyhudi.open_table(table.uri, as_of=first(table))
    (operation,), error = operations(lambda: CHANGES[name](earlier))
    assert isinstance(error, HudiError)
    assert operation.error is error


@pytest.mark.parametrize("name", sorted(READS))
def test_read_is_one_operation(name: str, table: pyhudi.HudiTable) -> None:
    succeed, fail = READS[name]
    if succeed is not None:
        (operation,), error = operations(lambda: succeed(table))
        assert (operation.name, operation.error, error) == (NAMES.get(name, name), None, None)
        assert (operation.uri, operation.table) == (table.uri, "trips")
    if fail is not None:
        (operation,), error = operations(lambda: fail(table))
        assert error is not None
        assert operation.error is error
