"""The options of Spark's format "pyhudi", and the query that they describe.

Spark gives all of them as text, and plans in a Python worker that has no session: a query is
therefore a picklable description, and each process opens the table for itself.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, cast, get_args

from pyhudi.api.changes import Changes
from pyhudi.api.scan import Scan
from pyhudi.api.table import HudiTable, open_table
from pyhudi.config.options import CREATE_OPTIONS, KNOWN_OPTIONS
from pyhudi.config.unknown_options import option_error
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError
from pyhudi.query.commit_range import HollowCommits
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.predicates import both
from pyhudi.timeline.named_instants import PlainTime

QueryType = Literal["snapshot", "read_optimized", "incremental", "cdc"]

_HUDIS_NAMES = {
    "hoodie.datasource.query.type": "query_type",
    "as.of.instant": "as_of",
    "hoodie.datasource.read.begin.instanttime": "begin",
    "hoodie.datasource.read.end.instanttime": "end",
    "hoodie.datasource.write.operation": "operation",
}
"""Options of Hudi's own source that mean the same (`DataSourceOptions`, 1.2.0).

But for times: Hudi takes them for points in time, also where a commit has the same time.
"""
_TIMES = ("as_of", "begin", "end")
_STORAGE = "storage."
"""Before the name of each storage option."""
_STREAM_ONLY = ("max_instants_per_batch", "max_bytes_per_batch")
_OF_WRITES = ("path", "operation", "memory_limit", "options", "storage_options")


@dataclass(frozen=True)
class Query:
    """What is asked for. Picklable; the names are those of the options."""

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
    """False by default: the warning of `HudiTable.incremental` would be seen by nobody."""
    images: Literal["struct", "json"] = "struct"
    max_instants_per_batch: int | None = None
    max_bytes_per_batch: int | None = None
    operation: str | None = None
    """Of a write."""
    options: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    pushed: tuple[tuple[Any, ...], ...] = ()
    """Filter tuples that Spark pushed down."""

    @classmethod
    def of(cls, options: Mapping[str, str], *, stream: bool = False) -> Query:
        """Raises `ConfigError` for an unknown option, a wrong value, and what does not combine."""
        query = cls(**_arguments(options))
        query._check(stream=stream)
        return query

    @classmethod
    def of_schema(cls, options: Mapping[str, str]) -> Query:
        """The query as far as its columns go, for a batch query or a stream."""
        query = cls(**_arguments(options))
        query._check_path()
        return replace(query, begin=None, end=None)

    @classmethod
    def of_write(cls, options: Mapping[str, str]) -> Query:
        """What a write is told. Raises `ConfigError` as `of` does."""
        arguments = _arguments(options)
        wrong = [name for name in arguments if name not in _OF_WRITES]
        if wrong:
            raise ConfigError(f"the option {wrong[0]} does not go with a write")
        query = cls(**arguments)
        query._check_path()
        return query

    def _check_path(self) -> None:
        if "://" not in self.path and not self.path.startswith(("/", "file:")):
            raise ConfigError(
                f"the path {self.path!r} is relative",
                hint="Spark's processes need not be in one folder: give all of it.",
            )

    def _check(self, *, stream: bool) -> None:
        self._check_path()
        ranged = self.query_type in ("incremental", "cdc")
        wrong = {
            "query_type": self.query_type not in get_args(QueryType),
            "as_of": self.as_of is not None and (ranged or stream),
            "begin": self.begin is not None and not ranged,
            "end": self.end is not None and (not ranged or stream),
            "columns": self.columns is not None and self.query_type == "cdc",
            "images": self.images not in ("struct", "json"),
            "operation": self.operation is not None,
        }
        wrong |= {name: getattr(self, name) is not None and not stream for name in _STREAM_ONLY}
        for name, is_wrong in wrong.items():
            if is_wrong:
                what = "a stream" if stream else f"a query of the type {self.query_type!r}"
                raise ConfigError(
                    f"the option {name} = {getattr(self, name)!r} does not go with {what}",
                    hint=f"Query types: {', '.join(get_args(QueryType))}.",
                )

    def table(self) -> HudiTable:
        """The table as it is now, for work in a Python worker, which runs one task at a time."""
        return open_table(
            self.path,
            engine=LocalEngine(1),
            storage_options=self.storage_options,
            options=self.options,
            as_of=self.as_of,
        )

    def rows(self, table: HudiTable | None = None) -> Scan | Changes:
        """The lazy rows. Raises what the table's verb raises."""
        table = table or self.table()
        if self.query_type == "cdc":
            return table.changes(self.begin, self.end, where=self.where, images=self.images)
        columns = None if self.columns is None else list(self.columns)
        how: dict[str, Any] = {"where": self.where, "meta_fields": self.meta_fields}
        if self.query_type == "incremental":
            how |= {
                "hollow_commits": self.hollow_commits,
                "fallback_full_scan": self.fallback_full_scan,
            }
            found = table.incremental(self.begin, self.end, columns=columns, **how)
            memory = replace(found.request, memory_limit=self.memory_limit)
            return self._apply_filters(replace(found, request=memory))
        read_optimized = self.query_type == "read_optimized"
        found = table.scan(
            columns, read_optimized=read_optimized, memory_limit=self.memory_limit, **how
        )
        return self._apply_filters(found)

    def _apply_filters(self, scan: Scan) -> Scan:
        """Without rows that fail what Spark pushed down."""
        if not self.pushed:
            return scan
        pushed = parse_where(list(self.pushed), scan.shown)
        return replace(scan, request=replace(scan.request, where=both(pushed, scan.request.where)))


_TYPES = {field.name: str(field.type) for field in fields(Query)}


def _arguments(given: Mapping[str, str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {"options": {}, "storage_options": {}}
    hudis_times: list[str] = []
    if _OF_A_CATALOG in given:
        raise ConfigError("a table in Spark's catalog cannot be of this format", hint=_A_VIEW)
    for name, value in ((str(name).lower(), str(value)) for name, value in given.items()):
        own = _HUDIS_NAMES.get(name, name)
        if name.startswith(_STORAGE):
            arguments["storage_options"][name.removeprefix(_STORAGE)] = value
        elif own in _OWN_NAMES:
            if own in arguments:
                raise ConfigError(f"the option {own} is given twice, once as {name}")
            arguments[own] = _parse_value(own, value)
            if own in _TIMES and name != own:
                hudis_times.append(own)
        elif (known := _KNOWN_OPTIONS.get(name)) is not None:
            arguments["options"][known] = value
        elif name.startswith("hoodie."):
            raise option_error(name, KNOWN_OPTIONS, CREATE_OPTIONS)
        else:
            near = difflib.get_close_matches(name, _OWN_NAMES, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(_OWN_NAMES)}."
            raise ConfigError(f"the option {name!r} is unknown", hint=hint)
    if arguments.get("query_type") != "cdc":
        # Ranges of changes have requested times in Hudi (`HoodieCDCExtractor`, 1.2.0).
        arguments |= {own: PlainTime(arguments[own]) for own in hudis_times}
    if "path" not in arguments:
        hint = f'.load("/folder/of/the/table"); Spark\'s catalog keeps none: {_A_VIEW}'
        raise ConfigError("no path was given", hint=hint)
    return arguments


_OF_A_CATALOG = "owner"
"""Spark 4 gives it instead of path and options where a table of its catalog is made."""
_A_VIEW = "CREATE TEMPORARY VIEW name USING pyhudi OPTIONS (path '/folder/of/the/table')"
_OWN_NAMES = tuple(name for name in _TYPES if name not in ("options", "storage_options", "pushed"))
_KNOWN_OPTIONS = {name.lower(): name for name in sorted(KNOWN_OPTIONS)}


def _parse_value(name: str, value: str) -> Any:
    kind = _TYPES[name]
    if kind == "bool":
        if value.lower() not in ("true", "false"):
            raise ConfigError(f"the option {name} is {value!r}, expected true or false")
        return value.lower() == "true"
    if kind.startswith("int"):
        if not value.isdecimal() or not int(value):
            raise ConfigError(f"the option {name} is {value!r}, not a number above 0")
        return int(value)
    if name == "columns":
        return tuple(column.strip() for column in value.split(","))
    if name == "query_type":
        return cast("QueryType", value.lower())
    return value
