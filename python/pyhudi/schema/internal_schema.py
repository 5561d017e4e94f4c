"""Schema on read: columns known by id, and where the table's columns are in older files.

A table evolved by id keeps Hudi's internal schemas: one in the metadata of each commit
(`latest_schema`), all of them in the newest file of `.hoodie/.schema`. Names and ids are taken from
them, types from the table's Avro schema. What is found here is a plan: renaming the columns of a
batch is the Rust core's part. Rules: `InternalSchemaCache`, `InternalSchemaMerger` (Hudi 1.2.0).
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
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
"""Key of a commit's extra metadata: the internal schema that its files were written with."""

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
        """The name of the part with an id, None when there is none."""
        return next((name for name, part in self.parts.items() if part.id == part_id), None)


class Source(NamedTuple):
    """Where a column, or a part of one, is in files of one schema version."""

    name: str
    """The table's name for it."""
    stored: str | None
    """The files' name for it; None where the files do not have it."""
    parts: tuple[Source, ...]
    """The same for the fields of a struct, an array's element or a map's value; empty where they
    are all called what the table calls them."""


Map = tuple[Source, ...]
"""Where each column of the table is in files of one schema version."""

FileNames = tuple[tuple[Map, ...], tuple[tuple[str, int | None], ...], str]
"""An `Evolution`'s maps and versions, and the instant of the base file: what the core takes."""


@dataclass(frozen=True)
class Evolution:
    """Where a table's columns are in the files of every schema version. Picklable."""

    maps: tuple[Map, ...]
    """One entry for every distinct way in which files name the columns."""
    versions: tuple[tuple[str, int | None], ...]
    """From which instant on files are of which map, oldest first; None: they name the columns as
    the table does. Files before the first are of the first."""

    def map_at(self, instant: str) -> Map | None:
        """Where the columns are in what an instant wrote; None when all are called the same."""
        at_ = bisect_right(self.versions, instant, key=lambda version: version[0])
        index = self.versions[max(at_ - 1, 0)][1]
        return None if index is None else self.maps[index]


@dataclass(frozen=True)
class SchemaHistory:
    """The columns' ids, now and before, of a table that was evolved by id."""

    current: str
    """The internal schema of the present, JSON text."""
    text: str
    """Every version there has been, as the newest history file has them; "" without one."""
    versions: Mapping[str, Column]
    """What each version calls the columns, by the instant that it holds from; the one that the
    table had before it was first evolved holds from ""."""

    def evolution(self, schema: pa.Schema) -> Evolution | None:
        """How files are read with a schema that `current` gives ids; None if all name it alike.

        Raises `CorruptTable` for an internal schema that cannot be understood.
        """
        table = _parse(self.current, "the table's internal schema")
        return _deduplicate(
            (instant, _identity_as_none(_sources(schema, table, version)))
            for instant, version in sorted(self.versions.items())
        )


def find_history(
    storage: Storage, timeline: Timeline, newest: Instant | None
) -> SchemaHistory | None:
    """The ids of a table's columns; None for a table without.

    newest: the commit that the table's schema comes from. A commit that was written without schema
    on read after the table was evolved carries names only: their ids are those of the version
    before.

    Raises `CorruptTable` for an internal schema that cannot be understood.
    """
    text, documents = _history(storage, timeline)
    history = {instant: _table(document) for instant, document in documents.items()}
    latest = _latest_schema(timeline, newest) if newest is not None else None
    if latest is None and not history:
        return None
    current = latest or json.dumps(documents[max(documents)], separators=(",", ":"))
    versions = {**history, **_commit_versions(timeline, history)}
    return SchemaHistory(current, text, versions)


def internal_columns(text: str) -> Column:
    """The columns of an internal schema, JSON text. Raises `CorruptTable` for what is none."""
    return _parse(text, "an internal schema")


def is_evolved(storage: Storage, timeline: Timeline) -> bool:
    """Whether the table's columns have ids, by its last commit or its schema history."""
    last = timeline.last_commit
    return (last is not None and _latest_schema(timeline, last) is not None) or bool(
        storage.list_dir(SCHEMA_FOLDER)[1]
    )


def _latest_schema(timeline: Timeline, instant: Instant) -> str | None:
    return timeline.commit_metadata(instant).extra_metadata.get(LATEST_SCHEMA) or None


def _history(storage: Storage, timeline: Timeline) -> tuple[str, dict[str, Any]]:
    """Every schema version of the newest history file whose commit counts, by its instant.

    The version that the table had before it was first evolved has the instant "". With the file's
    text; "" and nothing without a file.
    """
    name = _newest_file(storage, timeline)
    if name is None:
        return "", {}
    path = f"{SCHEMA_FOLDER}/{name}"
    text = storage.read(path).decode(errors="replace")
    document = _load(text, path)
    try:
        found = {_time_of(version["version_id"]): version for version in document["schemas"]}
        for version in found.values():
            _table(version)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _corrupt_error(path, error) from error
    return text, found


def _newest_file(storage: Storage, timeline: Timeline) -> str | None:
    """The newest history file whose commit counts."""
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
    """Whether an instant that has left the timeline did so as a commit.

    Hudi leaves the history file of a commit that a rollback or a restore took back. Of a commit
    that an archive does not go back to nothing is known: that counts.
    """
    commits = timeline.archive.commits(InstantRange(until=instant))
    return not commits or commits[-1].requested == instant


def _files_of(storage: Storage, timeline: Timeline) -> tuple[str, ...]:
    """Names in `SCHEMA_FOLDER`, sorted; listed once for the same commits.

    A file is there before its commit is complete, and counts with it alone.
    """
    commits = "\n".join(commit.file_name for commit in timeline.commits)
    key = storage.uri, f"{SCHEMA_FOLDER}?{hashlib.sha256(commits.encode()).hexdigest()}"
    known: tuple[str, ...] | None = storage.kept.get(key)
    if known is None:
        known = tuple(sorted(entry.name for entry in storage.list_dir(SCHEMA_FOLDER)[1]))
        storage.kept.put(key, known, weight=len(known) + 1)
    return known


def instant_of_file(name: str) -> str:
    """The instant of a file of `SCHEMA_FOLDER`, whatever its state."""
    return name.split(".", 1)[0].split("_", 1)[0]


def _time_of(version_id: int) -> str:
    return str(version_id) if version_id else ""


def _commit_versions(timeline: Timeline, history: Mapping[str, Column]) -> dict[str, Column]:
    """The version of each active commit whose own words differ from the history's answer.

    Also of those before the first version: what was planned before, and carried out after it, may
    have its columns.
    """
    known: dict[str, Column] = {}
    found: dict[str, Column] = {}
    for instant in timeline.commits:
        text = _latest_schema(timeline, instant)
        if text is None:
            older = [time for time in history if time <= instant.requested]
            if older:
                found[instant.requested] = history[max(older)]
            continue
        if text not in known:
            known[text] = _parse(text, f"the commit {instant.requested}")
        found[instant.requested] = known[text]
    return found


def _deduplicate(
    maps: Iterable[tuple[str, Map | None]],
) -> Evolution | None:
    """Each distinct map once, and the instants at which it changes."""
    distinct: dict[Map, int] = {}
    versions: list[tuple[str, int | None]] = []
    for instant, found in maps:
        index = None if found is None else distinct.setdefault(found, len(distinct))
        if not versions or versions[-1][1] != index:
            versions.append((instant, index))
    return Evolution(tuple(distinct), tuple(versions)) if distinct else None


# ---- maps


def _sources(fields: Iterable[pa.Field], table: Column, version: Column) -> Map:
    return tuple(_source(field, table, version) for field in fields)


def _source(field: pa.Field, table: Column, version: Column) -> Source:
    mine = table.parts.get(field.name)
    if mine is None:
        return Source(field.name, field.name, ())
    stored = version.name_of(mine.id)
    if stored is None:
        # The name may be another column's by now: that one's values must not show.
        return Source(field.name, None if field.name in version.parts else field.name, ())
    return Source(field.name, stored, _parts(field.type, mine, version.parts[stored]))


def _parts(kind: pa.DataType, table: Column, version: Column) -> Map:
    if at.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        return _identity_as_none(_sources(fields, table, version)) or ()
    name, inner = _inside(kind)
    if inner is None or name not in table.parts or name not in version.parts:
        return ()
    parts = _parts(inner, table.parts[name], version.parts[name])
    return (Source(name, name, parts),) if parts else ()


def _inside(kind: pa.DataType) -> tuple[str, pa.DataType | None]:
    if at.is_map(kind):
        return _VALUE, kind.item_type
    if at.is_list(kind) or at.is_large_list(kind):
        return _ELEMENT, kind.value_type
    return "", None


def _identity_as_none(sources: Map) -> Map | None:
    same = all(source.name == source.stored and not source.parts for source in sources)
    return None if same else sources


# ---- JSON (`SerDeHelper`, Hudi 1.2.0)


def _parse(text: str, where: str) -> Column:
    document = _load(text, where)
    try:
        return _table(document)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _corrupt_error(where, error) from error


def _load(text: str | bytes, where: str) -> Any:
    try:
        return parse_json(text, where)
    except CorruptTable as error:
        raise _corrupt_error(where, error) from error


def _table(document: Any) -> Column:
    if document["type"] != "record":
        raise TypeError("it is not a record")
    return _column(-1, document)


def _column(id_: int, kind: Any) -> Column:
    if not isinstance(kind, Mapping):
        return Column(id_, {})
    match kind["type"]:
        case "record":
            fields = kind["fields"]
            return Column(id_, {f["name"]: _column(f["id"], f["type"]) for f in fields})
        case "array":
            return Column(id_, {_ELEMENT: _column(kind["element_id"], kind["element"])})
        case "map":
            return Column(id_, {_VALUE: _column(kind["value_id"], kind["value"])})
        case other:
            raise TypeError(f"the type {other}")


def _corrupt_error(where: str, error: Exception) -> CorruptTable:
    return CorruptTable(f"{where}: no internal schema (schema on read): {error!r}")
