"""The plugin of dbt-duckdb: sources and models that are Hudi tables.

dbt-duckdb imports this module if a profile names it, and nothing else imports it. A view named by a
table's location is registered on each cursor, and dbt's relations are views of it, which DuckDB
stores. So a later process finds the location in the stored views and registers it again.
docs/how-to/dbt-duckdb.md shows the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from dbt.adapters.duckdb.plugins import BasePlugin
from dbt.adapters.factory import get_adapter_by_type
from dbt.flags import get_flags

from pyhudi.api.create import create_table
from pyhudi.api.outputs import Outputs
from pyhudi.api.scan import Scan
from pyhudi.api.scan_outputs import check_duckdb
from pyhudi.api.table import HudiTable, open_table
from pyhudi.api.table_exists import table_exists
from pyhudi.cached_property import cached_property
from pyhudi.config import argument_checks
from pyhudi.config.argument_checks import missing_key
from pyhudi.config.hint_spelling import for_dbt, spell_hints
from pyhudi.errors import ConfigError, HudiError
from pyhudi.input.lazy_rows import LazyRows
from pyhudi.sql_statements.duckdb_queries import arrow_reader
from pyhudi.suggestions import did_you_mean

if TYPE_CHECKING:
    import duckdb
    from dbt.adapters.duckdb.utils import SourceConfig, TargetConfig

SETTINGS = "hudi"
"""The name of the mapping of settings in the configuration of a source or a model."""
_PREFIX = "hudi:"
"""Prefix of the registered view of a table, before its location."""
_VIEW_OF = re.compile(rf'"{_PREFIX}((?:[^"]|"")+)"')
_QUERIES = ("snapshot", "incremental", "changes")
_MERGE_COLUMNS = ("merge_update_columns", "merge_exclude_columns")
_METHODS = {
    "overwrite": "overwrite",
    "insert_overwrite": "overwrite_partitions",
    "upsert": "upsert",
    "insert": "insert",
}
"""Methods of a table by dbt's names of operations."""
_SCHEMA_RULES = ("ignore", "fail", "append_new_columns")
_OF_NEW_TABLES = (
    "key",
    "partition_by",
    "order_by",
    "type",
    "version",
    "index",
    "constraints",
    "merge_rules",
)


class Plugin(BasePlugin):  # type: ignore[misc]  # dbt-duckdb ships no types
    """Reads sources of dbt from Hudi tables, and writes models of dbt to them."""

    def initialize(self, plugin_config: Mapping[str, Any]) -> None:
        """Read the plugin's `config` in the profile; dbt-duckdb adds DuckDB's own settings to it.

        Args:
            plugin_config: `root`, `storage_options` and `options`.
        """
        root = plugin_config.get("root")
        self._root = None if root is None else str(root).rstrip("/")
        self._access: dict[str, Any] = {
            name: plugin_config.get(name) for name in ("storage_options", "options")
        }
        self._rows: dict[str, Any] = {}
        self._lock = Lock()

    def default_materialization(self) -> str:
        """Return "view": a query reads the columns and rows of the source that it needs."""
        return "view"

    def configure_cursor(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Register the tables that the database's views read.

        A table that cannot be opened is left out: only queries of its view fail.

        Args:
            cursor: a new cursor.
        """
        stored = "SELECT sql FROM duckdb_views() WHERE NOT internal AND NOT temporary"
        for (sql,) in cursor.execute(stored).fetchall():
            for match in _VIEW_OF.findall(sql):
                uri = match.replace('""', '"')
                if uri not in self._rows:
                    with suppress(HudiError):
                        self._add(self._open(uri))
        with self._lock:
            views = list(self._rows.items())
        for uri, rows in views:
            cursor.register(_PREFIX + uri, rows)

    @spell_hints(for_dbt)
    def load(self, source_config: SourceConfig) -> Any:
        """Return the rows of a source, as an object that DuckDB reads in each query.

        Args:
            source_config: the source with its settings: `path`, `query`, and the arguments of
                `HudiTable.scan`, `incremental` or `changes`.

        Returns:
            A dataset of pyarrow, which DuckDB pushes columns and filters into; for changes a stream
            of Arrow batches.

        Raises:
            ConfigError: a setting is wrong.
            TableNotFound: there is no table.
        """
        settings = _settings(source_config.get(SETTINGS))
        path = self._path(settings, source_config.schema, source_config.identifier)
        query = settings.pop("query", "snapshot")
        _check_choice("query", query, _QUERIES)
        table = self._open(path)
        read = table.scan if query == "snapshot" else getattr(table, query)
        return _readable(read(**settings))

    @spell_hints(for_dbt)
    def store(self, target_config: TargetConfig) -> None:
        """Write the rows of a model to its table, and make the model's view read the table.

        dbt-duckdb has written the rows to a file, and the view reads that file. If the write fails,
        the view reads the table as it was; without a table pyhudi drops the view.

        Args:
            target_config: the view and the model's configuration.

        Raises:
            ConfigError: a setting is wrong, or the table has another key, partition or type.
            SchemaMismatch: the rows do not match the table.
        """
        relation, config = target_config.relation, target_config.config
        connections = get_adapter_by_type("duckdb").connections
        cursor = connections.get_thread_connection().handle.cursor()
        path = None
        try:
            settings = _settings(config.get(SETTINGS))
            path = self._path(settings, relation.schema, relation.identifier)
            self._write(path, settings, config, ModelRows(cursor, str(relation)))
        finally:
            self._publish(cursor, str(relation), path)
            staged = target_config.location
            if staged is not None and config.get("location") is None:
                with suppress(OSError):  # A directory, or not a local file.
                    Path(staged.path).unlink()

    def _write(self, path: str, settings: dict[str, Any], config: Any, rows: ModelRows) -> None:
        new_table = {name: settings.pop(name) for name in _OF_NEW_TABLES if name in settings}
        if "key" not in new_table:
            raise missing_key(f"key in {SETTINGS}", f"key: none in {SETTINGS}")
        write = _write_of(settings, config)
        if not self._exists(path):
            create_table(path, rows, **new_table, **self._access)
        else:
            write.run(
                create_table(path, rows.schema, mode="ignore", **new_table, **self._access), rows
            )

    def _publish(self, cursor: duckdb.DuckDBPyConnection, relation: str, path: str | None) -> None:
        """Make a view read the table at a path; drop the view if there is no table."""
        # dbt rolls back what it does not commit itself, so another connection changes the view.
        with cursor.cursor() as own:
            if path is None or not self._exists(path):
                own.execute(f"DROP VIEW IF EXISTS {relation}")
                return
            uri = self._add(self._open(path))
            for connection in (own, cursor):  # Hooks after the model use dbt's.
                connection.register(_PREFIX + uri, self._rows[uri])
            view = _quote(_PREFIX + uri)
            own.execute(f"CREATE OR REPLACE VIEW {relation} AS SELECT * FROM {view}")  # noqa: S608 - as above

    def _add(self, table: HudiTable) -> str:
        """Keep the current rows of a table for new cursors, and return its location."""
        with self._lock:
            self._rows[table.uri] = _readable(table.scan())
        return table.uri

    def _open(self, path: str) -> HudiTable:
        return open_table(path, **self._access)

    def _exists(self, path: str) -> bool:
        return table_exists(path, storage_options=self._access["storage_options"])

    def _path(self, settings: dict[str, Any], schema: str, identifier: str) -> str:
        """Take the path from the settings; by default it is below the root of the profile."""
        path = settings.pop("path", None)
        if path is None and self._root is None:
            raise ConfigError(
                f"{schema}.{identifier} has no location",
                hint=f"Set path in its {SETTINGS}, or root in the plugin's config.",
            )
        return f"{self._root}/{schema}/{identifier}" if path is None else str(path)


class ModelRows(LazyRows):
    """The rows of a relation of dbt; each stream of them is a query on a connection of its own."""

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, relation: str, columns: str = "*"
    ) -> None:
        self._cursor, self._relation, self._columns = cursor, relation, columns

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns."""
        connection, reader = self._query("LIMIT 0")
        with connection:
            return reader.schema

    def select(self, names: Sequence[str]) -> ModelRows:
        """Return the rows with these columns only."""
        return ModelRows(self._cursor, self._relation, ", ".join(map(_quote, names)))

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream. Times with a zone are in UTC."""
        connection, reader = self._query()

        def batches() -> Iterator[pa.RecordBatch]:
            with connection:
                yield from reader

        return pa.RecordBatchReader.from_batches(reader.schema, batches())

    def _query(self, limit: str = "") -> tuple[duckdb.DuckDBPyConnection, pa.RecordBatchReader]:
        connection = self._cursor.cursor()
        connection.execute("SET TimeZone = 'UTC'")
        rows = connection.sql(f"SELECT {self._columns} FROM {self._relation} {limit}")  # noqa: S608 - dbt's name
        return connection, arrow_reader(rows)


@dataclass(frozen=True)
class ModelWrite:
    """How the rows of a model change a table that exists."""

    operation: str
    schema_rule: str
    merge_columns: Mapping[str, Sequence[str]]
    """The columns of `_MERGE_COLUMNS`."""

    def run(self, table: HudiTable, rows: ModelRows) -> None:
        """Write the rows in one commit."""
        is_overwrite = self.operation == "overwrite"
        if self.schema_rule == "ignore" and not is_overwrite:
            columns = table.schema.names
            rows = rows.select([name for name in rows.schema.names if name in columns])
        adds_columns = self.schema_rule == "append_new_columns" or (
            is_overwrite and self.schema_rule != "fail"
        )
        if self.operation == "merge":
            self._merge(table, rows)
            return
        write = getattr(table, _METHODS[self.operation])
        write(rows, schema_mode="merge" if adds_columns else "strict")

    def _merge(self, table: HudiTable, rows: ModelRows) -> None:
        columns = rows.schema.names
        new = next((name for name in columns if name not in table.schema.names), None)
        if new is not None:
            raise ConfigError(
                f"a merge cannot add the column {new!r} to the table",
                hint="Use the operation upsert, or add the column with table.alter().",
            )
        fixed = (*table.config.record_key_fields, *table.config.partition_fields)
        excluded = self.merge_columns.get("merge_exclude_columns", ())
        updated = self.merge_columns.get("merge_update_columns", columns)
        values = {
            name: f"source.{_quote(name)}"
            for name in updated
            if name not in excluded and name not in fixed
        }
        table.merge(rows).when_matched_update(values).when_not_matched_insert_all().execute()


def _write_of(settings: dict[str, Any], config: Any) -> ModelWrite:
    """Take the settings of a write, and raise `ConfigError` for wrong and unknown ones."""
    operation = settings.pop("operation", "overwrite")
    _check_choice("operation", operation, (*_METHODS, "merge"))
    merge_columns = {name: settings.pop(name) for name in _MERGE_COLUMNS if name in settings}
    for name, columns in merge_columns.items():
        argument_checks.names(name, columns)
        if operation != "merge":
            raise ConfigError(f"{name} is set, but the operation is {operation!r}")
    if settings:
        unknown = next(iter(settings))
        known = [*_OF_NEW_TABLES, *_MERGE_COLUMNS, "operation", "path"]
        raise ConfigError(
            f"{SETTINGS} has the unknown setting {unknown!r}; it takes {', '.join(known)}",
            hint=did_you_mean(unknown, known),
        )
    rule = config.get("on_schema_change") or "ignore"
    _check_choice("on_schema_change", rule, _SCHEMA_RULES)
    full_refresh = config.get("full_refresh")
    if get_flags().FULL_REFRESH if full_refresh is None else full_refresh:
        return ModelWrite("overwrite", rule, {})
    return ModelWrite(operation, rule, merge_columns)


def _readable(rows: Outputs) -> Any:
    """Return an object that DuckDB reads in each query, with pushdown if it is a scan."""
    check_duckdb(rows.schema)
    return rows.to_dataset(sql_floats=True) if isinstance(rows, Scan) else rows


def _settings(settings: object) -> dict[str, Any]:
    """Return a copy of the mapping of settings."""
    if settings is None:
        return {}
    argument_checks.by_name(SETTINGS, settings)
    return dict(cast("Mapping[str, Any]", settings))


def _check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ConfigError(f"{name} is {value!r}; it must be one of {', '.join(choices)}")


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
