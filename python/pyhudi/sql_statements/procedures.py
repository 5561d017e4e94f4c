"""Hudi's procedures (`CALL run_clean(table => 'trips')`), through the methods of a table handle.

Names of procedures and arguments are Hudi's (`HoodieProcedures`, 1.2.0). The columns of the results
are pyhudi's: those of the method that a procedure calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import pyarrow as pa

from pyhudi.api.table import HudiTable
from pyhudi.errors import ConfigError
from pyhudi.sql_statements.statements import Call
from pyhudi.suggestions import closest_name

DEFAULT_LIMIT = 10
"""Rows of a procedure that shows the newest of them, as in Hudi."""

OpenTable = Callable[[str | None, str | None], HudiTable]
"""Opens the table of a name or a path."""
Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Procedure:
    """A procedure and the arguments that it takes, in the order of positional ones."""

    run: Callable[[HudiTable, Arguments], Any]
    arguments: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


def call_procedure(call: Call, open_table: OpenTable) -> pa.Table:
    """Run a procedure and return its result as rows.

    Raises `ConfigError` for an unknown procedure or argument and for a missing one, and what the
    method of the table raises.
    """
    if call.procedure == "help":
        return _help(call)
    procedure = _procedure(call.procedure)
    names = ("table", "path", *procedure.arguments)
    positional_names = ("table", *procedure.arguments)
    if len(call.positional) > len(positional_names):
        raise ConfigError(
            f"{call.procedure} has {len(call.positional)} positional arguments",
            hint=f"It takes {', '.join(positional_names)}.",
        )
    arguments: dict[str, Any] = dict(zip(positional_names, call.positional, strict=False))
    for name, value in call.named.items():
        if name not in names:
            hint = _suggestion(name, names) or f"It takes {', '.join(names)}."
            raise ConfigError(f"{call.procedure} has no argument {name!r}", hint=hint)
        if name in arguments:
            raise ConfigError(f"{call.procedure} gets {name!r} twice")
        arguments[name] = value
    passed = {name: value for name, value in arguments.items() if value is not None}
    table, path = passed.pop("table", None), passed.pop("path", None)
    if (table is None) == (path is None):
        raise ConfigError(f"{call.procedure} needs table or path", hint="table => 'trips'")
    missing = [name for name in procedure.required if name not in passed]
    if missing:
        raise ConfigError(f"{call.procedure} needs {missing[0]}")
    return _rows(procedure.run(open_table(table, path), passed))


def _procedure(name: str) -> Procedure:
    if name not in PROCEDURES:
        hint = _suggestion(name, [*PROCEDURES]) or "CALL help() lists the procedures."
        raise ConfigError(f"there is no procedure {name!r}", hint=hint)
    return PROCEDURES[name]


def _suggestion(name: str, names: Sequence[str]) -> str:
    """Return a question with a similar name of SQL, which has no quotes, or ""."""
    closest = closest_name(name, names)
    return f"Did you mean {closest}?" if closest is not None else ""


def query_timeline(table: HudiTable, archived: object = False) -> pa.Table:
    """Return the rows of `hudi_query_timeline(table, archived)`: the instants of the timeline."""
    return table.inspect.timeline(archived=str(archived).lower() == "true")


def filesystem_view(table: HudiTable, partition: object = None) -> pa.Table:
    """Return the rows of `hudi_filesystem_view(table, partition)`: the file slices."""
    slices = table.inspect.slices()
    return slices if partition is None else _rows_with(slices, "partition", partition)


def newest_rows(rows: pa.Table, limit: object = DEFAULT_LIMIT) -> pa.Table:
    """Return the last rows in reverse order. Raises `ConfigError` for an invalid limit."""
    if not isinstance(limit, int) or limit < 0:
        raise ConfigError(f"the limit is {limit!r}", hint="Pass a whole number of rows.")
    order = range(rows.num_rows - 1, max(rows.num_rows - limit, 0) - 1, -1)
    return rows.take(pa.array(order, pa.int64()))


def table_properties(table: HudiTable) -> pa.Table:
    """Return the content of `hoodie.properties`, in the order of the keys."""
    pairs = sorted(table.config.properties.items())
    return pa.table(
        {
            "key": pa.array([name for name, _ in pairs], pa.string()),
            "value": pa.array([value for _, value in pairs], pa.string()),
        }
    )


def _rows_with(rows: pa.Table, column: str, value: object) -> pa.Table:
    values = rows.column(column).to_pylist()
    chosen = [at for at, each in enumerate(values) if each == value]
    return rows.take(pa.array(chosen, pa.int64()))


def _help(call: Call) -> pa.Table:
    name = call.named.get("cmd", call.positional[0] if call.positional else None)
    procedures = PROCEDURES if name is None else {str(name): _procedure(str(name))}
    return pa.table(
        {
            "procedure": pa.array(list(procedures), pa.string()),
            "arguments": pa.array(
                [", ".join(("table", "path", *each.arguments)) for each in procedures.values()],
                pa.string(),
            ),
        }
    )


def _rows(result: Any) -> pa.Table:
    """Return the result of a method as rows."""
    if isinstance(result, pa.Table):
        return result
    if is_dataclass(result) and not isinstance(result, type):
        row = {name: value for name, value in asdict(result).items() if name != "metrics"}
    elif isinstance(result, dict):
        row = result
    else:
        row = {"result": result}
    row = {name: list(value) if isinstance(value, tuple) else value for name, value in row.items()}
    return pa.Table.from_pylist([row])


def _run_compaction(table: HudiTable, arguments: Arguments) -> Any:
    operation = str(arguments.get("op", "scheduleandexecute")).lower()
    if operation not in {"schedule", "run", "execute", "scheduleandexecute"}:
        raise ConfigError(
            f"op is {operation!r}", hint="schedule, execute (or run) or scheduleAndExecute"
        )
    instant = arguments.get("timestamp", arguments.get("instants"))
    return table.compact(
        schedule=operation.startswith("schedule"),
        execute=operation != "schedule",
        instant=None if instant is None else str(instant),
    )


def _run_clustering(table: HudiTable, arguments: Arguments) -> Any:
    operation = str(arguments.get("op", "scheduleandexecute")).lower()
    if operation not in {"schedule", "execute", "scheduleandexecute"}:
        raise ConfigError(f"op is {operation!r}", hint="schedule, execute or scheduleAndExecute")
    order = arguments.get("order")
    strategy = arguments.get("order_strategy")
    paths = arguments.get("selected_partitions")
    predicate = arguments.get("predicate")
    if paths is not None and predicate is not None:
        raise ConfigError("run_clustering has both predicate and selected_partitions")
    layouts = {"linear": "linear", "z-order": "zorder", "hilbert": "hilbert", None: None}
    if strategy not in layouts:
        raise ConfigError(f"order_strategy is {strategy!r}", hint="linear, z-order or hilbert")
    return table.cluster(
        sort_by=None if order is None else [name.strip() for name in str(order).split(",")],
        layout=layouts[strategy],  # type: ignore[arg-type]
        partitions=predicate if paths is None else [path.strip() for path in paths.split(",")],
        schedule=operation != "execute",
        execute=operation != "schedule",
    )


def _run_clean(table: HudiTable, arguments: Arguments) -> Any:
    retained = {
        "KEEP_LATEST_COMMITS": "retain_commits",
        "KEEP_LATEST_BY_HOURS": "hours_retained",
        "KEEP_LATEST_FILE_VERSIONS": "file_versions_retained",
    }
    policy = arguments.get("clean_policy")
    named = [name for name in retained.values() if name in arguments]
    if len(named) > 1:
        raise ConfigError(f"run_clean has both {named[0]} and {named[1]}")
    if policy is None and named:
        policy = next(name for name, argument in retained.items() if argument == named[0])
    return table.clean(policy=policy, retain=arguments.get(named[0]) if named else None)


def _savepoint(table: HudiTable, arguments: Arguments) -> Any:
    instant = arguments.get("commit_time")
    comment = str(arguments.get("comments", ""))
    return {"instant": table.savepoint(comment, None if instant is None else str(instant))}


def _delete_savepoint(table: HudiTable, arguments: Arguments) -> Any:
    table.delete_savepoint(str(arguments["instant_time"]))
    return {"instant": str(arguments["instant_time"])}


def _rollback_to_savepoint(table: HudiTable, arguments: Arguments) -> Any:
    instant = str(arguments["instant_time"])
    saved = table.savepoints().column("instant").to_pylist()
    if instant not in saved:
        raise ConfigError(
            f"{instant} is not a savepoint",
            hint=f"The savepoints are {', '.join(saved) or 'none'}.",
        )
    return table.restore(instant)


def _drop_partition(table: HudiTable, arguments: Arguments) -> Any:
    paths = str(arguments["partition"]).split(",")
    result = table.delete_partitions([path.strip() for path in paths])
    return {"instant": result.instant, "file_groups_replaced": result.file_groups_replaced}


def _with_action(action: str) -> Callable[[HudiTable, Arguments], pa.Table]:
    return lambda table, arguments: newest_rows(
        _rows_with(table.inspect.timeline(), "action", action), **arguments
    )


def _upgrade(table: HudiTable, arguments: Arguments) -> Any:
    return {"version": table.upgrade(_version(arguments)).after}


def _downgrade(table: HudiTable, arguments: Arguments) -> Any:
    return {"version": table.downgrade(_version(arguments)).after}


def _version(arguments: Arguments) -> int:
    names = {"SIX": 6, "EIGHT": 8, "NINE": 9}
    version = arguments["to_version"]
    number = str(names.get(str(version).upper(), version))
    if not number.isdecimal():
        raise ConfigError(f"to_version is {version!r}", hint="Pass 6, 8 or 9.")
    return int(number)


PROCEDURES: Mapping[str, Procedure] = {
    "run_compaction": Procedure(_run_compaction, ("op", "timestamp", "instants")),
    "run_clustering": Procedure(
        _run_clustering, ("predicate", "order", "op", "order_strategy", "selected_partitions")
    ),
    "run_clean": Procedure(
        _run_clean,
        ("clean_policy", "retain_commits", "hours_retained", "file_versions_retained"),
    ),
    "run_ttl": Procedure(
        lambda table, arguments: table.expire_partitions(arguments.get("retain_days")),
        ("retain_days",),
    ),
    "archive_commits": Procedure(
        lambda table, arguments: table.archive(
            min_commits=arguments.get("min_commits"), max_commits=arguments.get("max_commits")
        ),
        ("min_commits", "max_commits"),
    ),
    "create_savepoint": Procedure(_savepoint, ("commit_time", "comments")),
    "delete_savepoint": Procedure(_delete_savepoint, ("instant_time",), ("instant_time",)),
    "rollback_to_savepoint": Procedure(
        _rollback_to_savepoint, ("instant_time",), ("instant_time",)
    ),
    "rollback_to_instant": Procedure(
        lambda table, arguments: table.rollback(str(arguments["instant_time"])),
        ("instant_time",),
        ("instant_time",),
    ),
    "restore_to_instant": Procedure(
        lambda table, arguments: table.restore(str(arguments["instant_time"])),
        ("instant_time",),
        ("instant_time",),
    ),
    "drop_partition": Procedure(_drop_partition, ("partition",), ("partition",)),
    "truncate_table": Procedure(
        lambda table, _: {"instant": table.overwrite(table.schema.empty_table()).instant}
    ),
    "upgrade_table": Procedure(_upgrade, ("to_version",), ("to_version",)),
    "downgrade_table": Procedure(_downgrade, ("to_version",), ("to_version",)),
    "create_metadata_table": Procedure(lambda table, _: {"partitions": table.rebuild_metadata()}),
    "delete_metadata_table": Procedure(lambda table, _: {"partitions": table.drop_index("files")}),
    "show_commits": Procedure(
        lambda table, arguments: newest_rows(table.inspect.commits(), **arguments), ("limit",)
    ),
    "show_timeline": Procedure(
        lambda table, arguments: newest_rows(table.inspect.timeline(), **arguments), ("limit",)
    ),
    "show_compaction": Procedure(_with_action("compaction"), ("limit",)),
    "show_clustering": Procedure(_with_action("clustering"), ("limit",)),
    "show_cleans": Procedure(_with_action("clean"), ("limit",)),
    "show_rollbacks": Procedure(_with_action("rollback"), ("limit",)),
    "show_savepoints": Procedure(lambda table, _: table.savepoints()),
    "show_table_properties": Procedure(lambda table, _: table_properties(table)),
    "show_fsview_latest": Procedure(lambda table, _: table.inspect.slices()),
}
"""The procedures by name."""
