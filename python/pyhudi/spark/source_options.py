"""The options of Spark's format "pyhudi", and the query that they describe.

Spark passes all options as text, and plans in a Python worker without a session. A query is
therefore a picklable description, and each process opens the table itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, cast, get_args

from pyhudi.api.changes import Changes
from pyhudi.api.scan import Scan
from pyhudi.api.table import HudiTable, open_table
from pyhudi.config.memory_size import parse_memory_size
from pyhudi.config.options import CREATE_OPTIONS, KNOWN_OPTIONS
from pyhudi.config.unknown_options import option_error
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError
from pyhudi.query.commit_range import HollowCommits
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.predicates import both
from pyhudi.suggestions import did_you_mean
from pyhudi.timeline.named_instants import PlainTime

QueryType = Literal["snapshot", "read_optimized", "incremental", "cdc"]

_HUDI_NAMES = {
    "hoodie.datasource.query.type": "query_type",
    "as.of.instant": "as_of",
    "hoodie.datasource.read.begin.instanttime": "begin",
    "hoodie.datasource.read.end.instanttime": "end",
    "hoodie.datasource.write.operation": "operation",
}
"""Options of Hudi's own source with the same meaning (`DataSourceOptions`, 1.2.0).

Times are an exception: Hudi treats them as points in time, even if a commit has the same time.
"""
_TIMES = ("as_of", "begin", "end")
STORAGE = "storage."
"""Prefix of the name of each storage option."""
_STREAM_ONLY = ("max_instants_per_batch", "max_bytes_per_batch")


@dataclass(frozen=True)
class Query:
    """A requested query. Picklable; the names are those of the options."""

    path: str
    query_type: QueryType = "snapshot"
    as_of: str | None = None
    begin: str | None = None
    end: str | None = None
    columns: tuple[str, ...] | None = None
    where: str | None = None
    meta_fields: bool = False
    memory_limit: int = 512 * 1024 * 1024
    hollow_commits: HollowCommits = "fail"
    fallback_full_scan: bool = False
    """False by default: the user would not see the warning of `HudiTable.incremental`."""
    images: Literal["struct", "json"] = "struct"
    max_instants_per_batch: int | None = None
    max_bytes_per_batch: int | None = None
    operation: str | None = None
    """Operation of a write, which no query has."""
    options: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    pushed: tuple[tuple[Any, ...], ...] = ()
    """Filter tuples that Spark pushed down."""

    @classmethod
    def of(cls, options: Mapping[str, str], *, stream: bool = False) -> Query:
        """Parse a query. Raises `ConfigError` for unknown options, wrong values or combinations."""
        query = cls(**_arguments(options))
        query._check(stream=stream)
        return query

    @classmethod
    def of_schema(cls, options: Mapping[str, str]) -> Query:
        """Parse the parts of a query that determine its columns, for a batch query or a stream."""
        query = cls(**_arguments(options))
        check_path(query.path)
        return replace(query, begin=None, end=None)

    def _check(self, *, stream: bool) -> None:
        check_path(self.path)
        ranged = self.query_type in ("incremental", "cdc")
        conflicts = {
            "query_type": self.query_type not in get_args(QueryType),
            "as_of": self.as_of is not None and (ranged or stream),
            "begin": self.begin is not None and not ranged,
            "end": self.end is not None and (not ranged or stream),
            "columns": self.columns is not None and self.query_type == "cdc",
            "images": self.images not in ("struct", "json"),
            "operation": self.operation is not None,
        }
        conflicts |= {name: getattr(self, name) is not None and not stream for name in _STREAM_ONLY}
        for name, is_wrong in conflicts.items():
            if is_wrong:
                context = "a stream" if stream else f"a query of the type {self.query_type!r}"
                raise ConfigError(
                    f"the option {name} = {getattr(self, name)!r} does not apply to {context}",
                    hint=f"Query types: {', '.join(get_args(QueryType))}.",
                )

    def table(self) -> HudiTable:
        """Open the current table in a Python worker, which runs one task at a time."""
        return open_table(
            self.path,
            engine=LocalEngine(1),
            storage_options=self.storage_options,
            options=self.options,
            as_of=self.as_of,
        )

    def rows(self, table: HudiTable | None = None) -> Scan | Changes:
        """Return the lazy rows. Raises what the table's method raises."""
        table = table or self.table()
        if self.query_type == "cdc":
            return table.changes(self.begin, self.end, where=self.where, images=self.images)
        columns = None if self.columns is None else list(self.columns)
        arguments: dict[str, Any] = {"where": self.where, "meta_fields": self.meta_fields}
        if self.query_type == "incremental":
            arguments |= {
                "hollow_commits": self.hollow_commits,
                "fallback_full_scan": self.fallback_full_scan,
            }
            scan = table.incremental(self.begin, self.end, columns=columns, **arguments)
            memory = replace(scan.request, memory_limit=self.memory_limit)
            return self._apply_filters(replace(scan, request=memory))
        read_optimized = self.query_type == "read_optimized"
        scan = table.scan(
            columns, read_optimized=read_optimized, memory_limit=self.memory_limit, **arguments
        )
        return self._apply_filters(scan)

    def _apply_filters(self, scan: Scan) -> Scan:
        """Return the scan without rows that fail the filters that Spark pushed down."""
        if not self.pushed:
            return scan
        pushed = parse_where(list(self.pushed), scan.table_schema)
        return replace(scan, request=replace(scan.request, where=both(pushed, scan.request.where)))


def check_path(path: str) -> None:
    """Raise `ConfigError` for a relative path."""
    if "://" not in path and not path.startswith(("/", "file:")):
        raise ConfigError(
            f"the path {path!r} is relative",
            hint="Pass the absolute path: Spark's processes may run in different directories.",
        )


_TYPES = {field.name: str(field.type) for field in fields(Query)}


def _arguments(options: Mapping[str, str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {"options": {}, "storage_options": {}}
    hudis_times: list[str] = []
    check_no_catalog(options)
    for name, value in ((str(name).lower(), str(value)) for name, value in options.items()):
        query_field = _HUDI_NAMES.get(name, name)
        if name.startswith(STORAGE):
            arguments["storage_options"][name.removeprefix(STORAGE)] = value
        elif query_field in _OWN_NAMES:
            if query_field in arguments:
                raise ConfigError(f"the option {query_field} is set twice, also as {name}")
            arguments[query_field] = _parse_value(query_field, value)
            if query_field in _TIMES and name != query_field:
                hudis_times.append(query_field)
        elif (option_name := _KNOWN_OPTIONS.get(name)) is not None:
            arguments["options"][option_name] = value
        elif name.startswith("hoodie."):
            raise option_error(name, KNOWN_OPTIONS, CREATE_OPTIONS)
        else:
            hint = did_you_mean(name, _OWN_NAMES) or f"There are {', '.join(_OWN_NAMES)}."
            raise ConfigError(f"the option {name!r} is unknown", hint=hint)
    if arguments.get("query_type") != "cdc":
        # Ranges of changes have requested times in Hudi (`HoodieCDCExtractor`, 1.2.0).
        arguments |= {query_field: PlainTime(arguments[query_field]) for query_field in hudis_times}
    if "path" not in arguments:
        hint = f'Call .load("/path/of/the/table"). Spark\'s catalog stores no path: {_CREATE_VIEW}'
        raise ConfigError("no path was given", hint=hint)
    return arguments


def check_no_catalog(options: Mapping[str, str]) -> None:
    """Raise `ConfigError` for a table that Spark's catalog creates."""
    if _CATALOG_OPTION in options:
        raise ConfigError("a table in Spark's catalog cannot be of this format", hint=_CREATE_VIEW)


_CATALOG_OPTION = "owner"
"""Spark 4 passes it instead of path and options when a table of its catalog is created."""
_CREATE_VIEW = "CREATE TEMPORARY VIEW name USING pyhudi OPTIONS (path '/path/of/the/table')"
_OWN_NAMES = tuple(name for name in _TYPES if name not in ("options", "storage_options", "pushed"))
_KNOWN_OPTIONS = {name.lower(): name for name in sorted(KNOWN_OPTIONS)}


def _parse_value(name: str, value: str) -> Any:
    field_type = _TYPES[name]
    if name == "memory_limit":
        return parse_memory_size(value, "the option memory_limit")
    if field_type == "bool":
        if value.lower() not in ("true", "false"):
            raise ConfigError(f"the option {name} is {value!r}, expected true or false")
        return value.lower() == "true"
    if field_type.startswith("int"):
        if not value.isdecimal() or not int(value):
            raise ConfigError(f"the option {name} is {value!r}, not a number above 0")
        return int(value)
    if name == "columns":
        return tuple(column.strip() for column in value.split(","))
    if name == "query_type":
        return cast("QueryType", value.lower())
    return value
