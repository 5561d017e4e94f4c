"""Schema on read: identifies columns by id, and finds the table's columns in older files.

A table evolved by id keeps Hudi's internal schemas: one in the metadata of each commit
(`latest_schema`), all of them in the newest file of `.hoodie/.schema`. Names and ids come from
them, types from the table's Avro schema. The result is a plan; the Rust core renames the columns of
a batch. Rules: `InternalSchemaCache`, `InternalSchemaMerger` (Hudi 1.2.0).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.types as at

from pyhudi.config.actions import Instant
from pyhudi.config.bounded_json import parse_json
from pyhudi.errors import CorruptTable
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.timeline.instant_range import InstantRange

LATEST_SCHEMA = "latest_schema"
"""Key of a commit's extra metadata: the internal schema of its files."""

SCHEMA_FOLDER = ".hoodie/.schema"
SCHEMA_SUFFIX = ".schemacommit"

_ELEMENT, _VALUE = "element", "value"


@dataclass(frozen=True)
class Column:
    """A column, struct field, array element or map value of an internal schema."""

    id: int
    parts: Mapping[str, Column]
    """The fields of a struct by name; of an array `element`, of a map `value`."""

    def name_of(self, part_id: int) -> str | None:
        """Return the name of the part with an id, or None."""
        return next((name for name, part in self.parts.items() if part.id == part_id), None)


class Source(NamedTuple):
    """The source of a column, or of a part of one, in files of one schema version."""

    name: str
    """The table's name for it."""
    stored: str | None
    """The files' name for it; None if the files do not have it."""
    parts: tuple[Source, ...]
    """The same for the fields of a struct, an array's element or a map's value; empty if the files
    have the table's names for all of them."""


Map = tuple[Source, ...]
"""The source of each column of the table in files of one schema version."""

FileNames = tuple[tuple[Map, ...], tuple[tuple[str, int | None], ...], str]
"""The maps and versions of an `Evolution`, and the instant of the base file: arguments of the Rust
core.
"""


@dataclass(frozen=True)
class Evolution:
    """The sources of a table's columns in the files of every schema version. Picklable."""

    maps: tuple[Map, ...]
    """One entry for every distinct naming of the columns in files."""
    versions: tuple[tuple[str, int | None], ...]
    """The first instant of each map, oldest first; None: the files name the columns as the table
    does. Files before the first are of the first."""


@dataclass(frozen=True)
class SchemaHistory:
    """The current and earlier column ids of a table that was evolved by id."""

    current: str
    """The current internal schema, as JSON."""
    file_json: str
    """Every version, as the newest history file has them; "" without one."""
    versions: Mapping[str, Column]
    """The columns of each version, by the instant from which it holds; the one before the first
    evolution holds from ""."""

    def evolution(self, schema: pa.Schema) -> Evolution | None:
        """Return how to read files with a schema of `current` ids; None if all names agree.

        Raises `CorruptTable` for an internal schema that cannot be parsed.
        """
        table = _parse(self.current, "the table's internal schema")
        return _deduplicate(
            (instant, _identity_as_none(_sources(schema, table, version)))
            for instant, version in sorted(self.versions.items())
        )


def find_history(
    storage: Storage, timeline: Timeline, newest: Instant | None
) -> SchemaHistory | None:
    """Return the ids of a table's columns; None for a table without.

    newest: the commit of the table's schema. A commit that was written without schema on read after
    the table was evolved has names only: their ids are those of the version before.

    Raises `CorruptTable` for an internal schema that cannot be parsed.
    """
    file_json, documents = _history(storage, timeline)
    history = {instant: _table(document) for instant, document in documents.items()}
    latest = _latest_schema(timeline, newest) if newest is not None else None
    if latest is None and not history:
        return None
    current = latest or json.dumps(documents[max(documents)], separators=(",", ":"))
    versions = {**history, **_commit_versions(timeline, history)}
    return SchemaHistory(current, file_json, versions)


def internal_columns(json_text: str) -> Column:
    """Parse the columns of an internal schema in JSON. Raises `CorruptTable` for anything else."""
    return _parse(json_text, "an internal schema")


def is_evolved(storage: Storage, timeline: Timeline) -> bool:
    """Return whether the table's columns have ids, by its last commit or its schema history."""
    last = timeline.last_commit
    return (last is not None and _latest_schema(timeline, last) is not None) or bool(
        storage.list_dir(SCHEMA_FOLDER)[1]
    )


def _latest_schema(timeline: Timeline, instant: Instant) -> str | None:
    return timeline.commit_metadata(instant).extra_metadata.get(LATEST_SCHEMA) or None


def _history(storage: Storage, timeline: Timeline) -> tuple[str, dict[str, Any]]:
    """Return every schema version of the newest history file whose commit counts, by instant.

    The version before the first evolution has the instant "". The first item is the file's content;
    "" if there is no file.
    """
    name = _newest_file(storage, timeline)
    if name is None:
        return "", {}
    path = f"{SCHEMA_FOLDER}/{name}"
    file_json = storage.read(path).decode(errors="replace")
    document = _load(file_json, path)
    try:
        versions = {_time_of(version["version_id"]): version for version in document["schemas"]}
        for version in versions.values():
            _table(version)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _corrupt_error(path, error) from error
    return file_json, versions


def _newest_file(storage: Storage, timeline: Timeline) -> str | None:
    """Return the newest history file whose commit counts."""
    names = (name for name in _files_of(storage, timeline) if name.endswith(SCHEMA_SUFFIX))
    active = {commit.requested for commit in timeline.commits}
    for name in sorted(names, reverse=True):
        instant = instant_of_file(name)
        if instant in active or (
            timeline.is_committed(instant) and _was_archived(timeline, instant)
        ):
            return name
    return None


def _was_archived(timeline: Timeline, instant: str) -> bool:
    """Return whether an instant that left the timeline was archived as a commit.

    Hudi keeps the history file of a commit that a rollback or a restore removed. A commit older
    than the archive counts, because nothing records its state.
    """
    commits = timeline.archive.commits(InstantRange(until=instant))
    return not commits or commits[-1].requested == instant


def _files_of(storage: Storage, timeline: Timeline) -> tuple[str, ...]:
    """Return names in `SCHEMA_FOLDER`, sorted; listed once for the same commits.

    A file exists before its commit is complete, and counts only with it.
    """
    commits = "\n".join(commit.file_name for commit in timeline.commits)
    key = storage.uri, f"{SCHEMA_FOLDER}?{hashlib.sha256(commits.encode()).hexdigest()}"
    names: tuple[str, ...] | None = storage.cache.get(key)
    if names is None:
        exists = SCHEMA_FOLDER in timeline.meta_folder[0]
        entries = storage.list_dir(SCHEMA_FOLDER)[1] if exists else []
        names = tuple(sorted(entry.name for entry in entries))
        storage.cache.put(key, names, weight=len(names) + 1)
    return names


def instant_of_file(name: str) -> str:
    """Return the instant of a file of `SCHEMA_FOLDER`, whatever its state."""
    return name.split(".", 1)[0].split("_", 1)[0]


def _time_of(version_id: int) -> str:
    return str(version_id) if version_id else ""


def _commit_versions(timeline: Timeline, history: Mapping[str, Column]) -> dict[str, Column]:
    """Return the version of each active commit whose own record differs from the history.

    Commits before the first version are included: a service that was scheduled before it and
    executed after it may have its columns.
    """
    parsed: dict[str, Column] = {}
    versions: dict[str, Column] = {}
    for instant in timeline.commits:
        recorded = _latest_schema(timeline, instant)
        if recorded is None:
            older = [time for time in history if time <= instant.requested]
            if older:
                versions[instant.requested] = history[max(older)]
            continue
        if recorded not in parsed:
            parsed[recorded] = _parse(recorded, f"the commit {instant.requested}")
        versions[instant.requested] = parsed[recorded]
    return versions


def _deduplicate(
    maps: Iterable[tuple[str, Map | None]],
) -> Evolution | None:
    """Return each distinct map once, and the instants at which it changes."""
    distinct: dict[Map, int] = {}
    versions: list[tuple[str, int | None]] = []
    for instant, map_ in maps:
        index = None if map_ is None else distinct.setdefault(map_, len(distinct))
        if not versions or versions[-1][1] != index:
            versions.append((instant, index))
    return Evolution(tuple(distinct), tuple(versions)) if distinct else None


# ---- maps


def _sources(fields: Iterable[pa.Field], table: Column, version: Column) -> Map:
    return tuple(_source(field, table, version) for field in fields)


def _source(field: pa.Field, table: Column, version: Column) -> Source:
    column = table.parts.get(field.name)
    if column is None:
        return Source(field.name, field.name, ())
    stored = version.name_of(column.id)
    if stored is None:
        # Another column may have this name now: its values must not be returned.
        return Source(field.name, None if field.name in version.parts else field.name, ())
    return Source(field.name, stored, _parts(field.type, column, version.parts[stored]))


def _parts(data_type: pa.DataType, table: Column, version: Column) -> Map:
    if at.is_struct(data_type):
        fields = [data_type.field(index) for index in range(data_type.num_fields)]
        return _identity_as_none(_sources(fields, table, version)) or ()
    name, inner = _inside(data_type)
    if inner is None or name not in table.parts or name not in version.parts:
        return ()
    parts = _parts(inner, table.parts[name], version.parts[name])
    return (Source(name, name, parts),) if parts else ()


def _inside(data_type: pa.DataType) -> tuple[str, pa.DataType | None]:
    if at.is_map(data_type):
        return _VALUE, data_type.item_type
    if at.is_list(data_type) or at.is_large_list(data_type):
        return _ELEMENT, data_type.value_type
    return "", None


def _identity_as_none(sources: Map) -> Map | None:
    same = all(source.name == source.stored and not source.parts for source in sources)
    return None if same else sources


# ---- JSON (`SerDeHelper`, Hudi 1.2.0)


def _parse(json_text: str, where: str) -> Column:
    document = _load(json_text, where)
    try:
        return _table(document)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _corrupt_error(where, error) from error


def _load(json_text: str | bytes, where: str) -> Any:
    try:
        return parse_json(json_text, where)
    except CorruptTable as error:
        raise _corrupt_error(where, error) from error


def _table(document: Any) -> Column:
    if document["type"] != "record":
        raise TypeError("it is not a record")
    return _column(-1, document)


def _column(id_: int, document: Any) -> Column:
    if not isinstance(document, Mapping):
        return Column(id_, {})
    match document["type"]:
        case "record":
            fields = document["fields"]
            return Column(id_, {f["name"]: _column(f["id"], f["type"]) for f in fields})
        case "array":
            return Column(id_, {_ELEMENT: _column(document["element_id"], document["element"])})
        case "map":
            return Column(id_, {_VALUE: _column(document["value_id"], document["value"])})
        case other:
            raise TypeError(f"the type {other}")


def _corrupt_error(where: str, error: Exception) -> CorruptTable:
    return CorruptTable(f"{where}: no internal schema (schema on read): {error!r}")
