"""Reads rows by stored record key from one snapshot, and keeps what later reads need again.

The record index locates the keys, if it describes the snapshot; otherwise a scan's plan selects the
file slices. A slice is planned once. The Rust core keeps blocks of the index, footers, and which
rows and log records have which keys (`rust/slice/src/lookup`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.engine.memory_pool import machine_memory
from pyhudi.engine.protocol import Engine
from pyhudi.errors import MissingFile
from pyhudi.input.semi_structured import is_variant
from pyhudi.metadata.fallback_reader import MetadataAccess, OutdatedError
from pyhudi.metadata.pruning_context import PRUNING_FALLBACK, PruningContext
from pyhudi.query.concurrent_clean import detect_concurrent_clean
from pyhudi.query.file_pruning import select_file_slices
from pyhudi.schema.key_generator import plain_key
from pyhudi.schema.predicates import Where
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read import spec_of_matches
from pyhudi.slices.read_tasks import ReadTask, ScanRequest, merge_rule, slice_tasks
from pyhudi.storage.options import is_remote
from pyhudi.storage.prefetch import MAX_CONCURRENT
from pyhudi.table.table_snapshot import TableSnapshot

RecordLocation = tuple[str, str]
"""Partition path and file id."""

_ROWS_BYTES = max(96 * 1024 * 1024, machine_memory() // 32)
_INDEX_BYTES = 64 * 1024 * 1024
"""Memory of a handle: for footers, keys of files, pages, dictionaries and rows; and for the record
index."""

_MAX_READERS = 8
"""Maximum number of readers, one for each choice of columns; the oldest is dropped."""

Columns = tuple[str, ...] | None
"""The columns of a call; None for all."""


class KeyReaders:
    """The lookup state of a table handle: threads share it, and it outlives a refresh."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._cache = _new_cache()
        self._readers: dict[Columns, KeyReader] = {}

    def __reduce__(self) -> tuple[type[KeyReaders], tuple[()]]:
        """Pickle no memory: another process reads files for itself."""
        return KeyReaders, ()

    def find(self, table: TableSnapshot, columns: Columns) -> KeyReader | None:
        """Return the reader of a snapshot and of the columns of a call, if there is one."""
        reader = self._readers.get(columns)
        is_own = reader is not None and reader.table is table and self._process == os.getpid()
        return reader if is_own else None

    def add(
        self, table: TableSnapshot, engine: Engine, columns: Columns, schema: pa.Schema
    ) -> KeyReader:
        """Return a new reader. schema: that of the rows."""
        if self._process != os.getpid():
            # A thread of the parent process may have held a lock of the cache.
            self._process, self._cache, self._readers = os.getpid(), _new_cache(), {}
        current = {names: each for names, each in self._readers.items() if each.table is table}
        other = next(iter(current.values()), None)
        index = _record_index(table) if other is None else other.index
        slices = {} if other is None else other.slices
        reader = KeyReader(table, engine, schema, self._cache, index, slices)
        while len(current) >= _MAX_READERS:
            current.pop(next(iter(current)))
        self._readers = {**current, columns: reader}
        return reader

    def forget(self, table: TableSnapshot) -> None:
        """Drop the readers of a snapshot, whose record index cannot be read any more."""
        self._readers = {
            names: each for names, each in self._readers.items() if each.table is not table
        }


class KeyReader:
    """Reads columns of the rows of stored record keys."""

    def __init__(
        self,
        table: TableSnapshot,
        engine: Engine,
        schema: pa.Schema,
        cache: _native.LookupCache,
        index: _native.MetadataPartition | None,
        slices: dict[RecordLocation, FileSlice],
    ) -> None:
        self.table = table
        self.slices = slices
        """File slices of the snapshot that a plan returned, for all readers of it."""
        self.schema = schema
        self.index = index
        self.takes_strings = plain_key(table.config, table.columns) is not None
        """Whether strings are record keys as they are."""
        self.has_variants = any(map(is_variant, schema))
        # The core compares the keys of rows that it read.
        self._request = ScanRequest(tuple(dict.fromkeys((*schema.names, RECORD_KEY))))
        self._threads = MAX_CONCURRENT if is_remote(table.storage.uri) else engine.tasks_per_process
        self._native = _native.KeyReader(cache, schema, index)

    def read(self, keys: list[str], *, by_slice: bool = False) -> pa.RecordBatch | None:
        """Return the rows of the keys, in their order; a repeated key counts once.

        by_slice: in the order of the file slices and of their rows instead.

        None if the record index cannot be read: a scan finds out why. Raises as a scan does.
        """
        try:
            if self.index is None:
                return self._read_planned(keys)
            return self._find(keys, by_slice=by_slice)
        except MissingFile as error:
            return next(detect_concurrent_clean(_raising(error), self.table))

    def _find(self, keys: list[str], *, by_slice: bool) -> pa.RecordBatch | None:
        """Return the rows of keys that the record index locates."""
        rows, unknown, was_read = self._native.find(keys, self._threads, by_slice=by_slice)
        if was_read and not self._has_same_index():
            return None
        if unknown:
            if not self._add_planned(unknown):
                self._plan(keys)
            self._add_others(self._native.unknown(unknown))
            rows, _, was_read = self._native.find(keys, self._threads, by_slice=by_slice)
            if was_read and not self._has_same_index():
                return None
        return rows

    def _has_same_index(self) -> bool:
        """Return whether no other writer has rebuilt the metadata table since it was opened."""
        table = self.table
        try:
            MetadataAccess(
                table.storage, table.config, table.timeline, table.options
            ).check_not_rebuilt()
        except OutdatedError:
            return False
        return True

    def _read_planned(self, keys: list[str]) -> pa.RecordBatch:
        """Return the rows of keys in slices that other indexes do not exclude."""
        return self._native.read(keys, self._plan(keys), self._threads)

    def _plan(self, keys: list[str]) -> list[RecordLocation]:
        """Return the slices that may have the keys, after adding those that are unknown."""
        request = replace(self._request, where=_is_among(pa.array(keys, pa.string())))
        slices = select_file_slices(self.table, request).slices
        unknown = set(self._native.unknown([slice_.key for slice_ in slices]))
        self._add([slice_ for slice_ in slices if slice_.key in unknown])
        return [slice_.key for slice_ in slices]

    def _add_others(self, locations: list[RecordLocation]) -> None:
        """Add file groups that a plan for the keys does not have, but the index does.

        The index also returns earlier locations of a key, and those of keys with an equal hash.
        These file groups may have other keys. If a group is not part of the snapshot, it is empty.
        """
        if locations:
            slices = select_file_slices(self.table, self._request).slices
            self._add(slices.filter(slices.in_groups(set(locations))))
            for location in self._native.unknown(locations):
                self._native.add(*location)

    def _add_planned(self, locations: list[RecordLocation]) -> bool:
        """Add slices that another reader of the snapshot has planned, if it has planned all."""
        slices = [self.slices.get(location) for location in locations]
        added = [slice_ for slice_ in slices if slice_ is not None]
        if len(added) == len(locations):
            self._add(added)
        return len(added) == len(locations)

    def _add(self, slices: Sequence[FileSlice]) -> None:
        self.slices.update({slice_.key: slice_ for slice_ in slices})
        for task in slice_tasks(self.table, self._request, slices, merge_rule(self.table)):
            self._native.add(
                *task.slice.key, task.storage.native, _path_row(task), **spec_of_matches(task)
            )


def _new_cache() -> _native.LookupCache:
    return _native.LookupCache(_ROWS_BYTES)


def _record_index(
    table: TableSnapshot, *, reopen: bool = False
) -> _native.MetadataPartition | None:
    """Return the record index if it has each key of a snapshot. reopen: see `MetadataAccess`."""
    access = MetadataAccess(
        table.storage, table.config, table.timeline, table.options, reopen=reopen
    )
    request = ScanRequest((RECORD_KEY,), where=_is_among(pa.array([], pa.string())))
    context = PruningContext(table, request, access)
    if not (access.has(RECORD_INDEX) and context.conjuncts and context.reads_current_snapshot):
        return None
    definition = context.definitions.get(RECORD_INDEX)
    is_partitioned = definition is not None and definition.is_partitioned
    if is_partitioned or not context.has_unique_keys:
        return None
    try:
        index = access.use(PRUNING_FALLBACK, lambda metadata: metadata.partition(RECORD_INDEX))
    except OutdatedError:
        # Another writer has rebuilt the metadata table.
        return _record_index(table, reopen=True)
    return None if index is None else index.keeping(_INDEX_BYTES)


def _raising(error: MissingFile) -> Iterator[Any]:
    raise error
    yield


def can_read(table: TableSnapshot) -> bool:
    """Return whether the core alone makes the rows of scans of a table."""
    return not table.as_text and table.config.populate_meta_fields


def _path_row(task: ReadTask) -> pa.RecordBatch | None:
    """Return the values of columns that the partition path contains, as one row."""
    if not task.path_values:
        return None
    names, values = zip(*task.path_values, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array([value.as_py()], value.type) for value in values], names=list(names)
    )


def _is_among(keys: pa.Array[Any]) -> Where:
    return Where(pc.field(RECORD_KEY).isin(keys), (RECORD_KEY,), ((RECORD_KEY, "in", keys),))
