"""A storage that dies at a chosen change, and what is needed to look at what it leaves behind.

A change is a call that alters storage. Reads are not counted: dying at one leaves what dying at the
change after it leaves. Files that the Rust core writes are changes too, in two steps, since such a
file may be left half written; so is the removal of a folder.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.api import create
from pyhudi.clock import SystemClock
from pyhudi.config.file_names import parse_base_name, parse_log_name
from pyhudi.config.new_table_properties import NewTable, new_table_config
from pyhudi.config.property_names import BASE_FILE_FORMAT
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.local import LocalEngine
from pyhudi.metadata import (
    commit_participant,
    initialize,
    log_file_writer,
    new_file_groups,
    services,
)
from pyhudi.schema.table_schema import table_schema
from pyhudi.slices import write_base as work_write
from pyhudi.slices import write_log
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import walk_partitions
from pyhudi.storage.storage import Entry, Storage
from pyhudi.timeline import Timeline
from tests.helpers.table_builder import TableBuilder, numbered


class Killed(BaseException):
    """The process is gone."""


class CrashingStorage(Storage):
    """Dies instead of making change number `dies_at` (from 1); 0 only counts."""

    def __init__(self, uri: str, dies_at: int = 0) -> None:
        super().__init__(uri)
        self.dies_at = dies_at
        self.changes = 0
        self.is_dead = False
        self.above: CrashingStorage | None = None

    def below(self, folder: str) -> Storage:
        part = CrashingStorage(f"{self.uri}/{folder}")
        part.above = self.above or self
        return part

    def step(self) -> None:
        if self.above is not None:
            self.above.step()
            return
        self._alive()
        self.changes += 1
        if self.changes == self.dies_at:
            self.is_dead = True
            raise Killed

    def _alive(self) -> None:
        if (self.above or self).is_dead:
            raise Killed

    def read(self, path: str) -> bytes:
        self._alive()
        return super().read(path)

    def head(self, path: str) -> Entry | None:
        self._alive()
        return super().head(path)

    def list_dir(self, prefix: str = "") -> tuple[list[str], list[Entry]]:
        self._alive()
        return super().list_dir(prefix)

    def put(self, path: str, data: bytes) -> None:
        self.step()
        super().put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        self.step()
        return super().put_if_absent(path, data)

    def set_modified(self, path: str, modified_ms: int) -> bool:
        self.step()
        return super().set_modified(path, modified_ms)

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        self._alive()
        return super().read_version(path)

    def replace_version(
        self, path: str, data: bytes, expected: str | None, *, durable: bool = False
    ) -> str | None:
        self.step()
        return super().replace_version(path, data, expected, durable=durable)

    def delete(self, path: str) -> bool:
        self.step()
        return super().delete(path)

    def delete_dir(self, path: str) -> None:
        self.step()
        files = self.list(path)
        for file in files[: len(files) // 2]:
            super().delete(file.path)
        self.step()
        super().delete_dir(path)

    def native_write(self, path: str, write: Callable[[], Any]) -> Any:
        self.step()
        try:
            self.step()
        except Killed:
            write()
            file = Path(self.uri) / path
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
            raise
        return write()


def count_native_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the core's files changes of a `CrashingStorage`."""
    for name in ("store_base_file", "rewrite_base_file"):
        monkeypatch.setattr(work_write, name, _counted(getattr(work_write, name)))
    for name in ("store_base_files", "join_base_files"):
        monkeypatch.setattr(work_write, name, _counted_files(getattr(work_write, name)))
    monkeypatch.setattr(write_log, "store_log_files", _counted_files(write_log.store_log_files))
    monkeypatch.setattr(
        log_file_writer, "store_group_log", _counted(log_file_writer.store_group_log)
    )
    monkeypatch.setattr(new_file_groups, "store_base", _counted(new_file_groups.store_base))
    start = _counted(new_file_groups.store_first_log)
    for module in (initialize, commit_participant):
        monkeypatch.setattr(module, "store_first_log", start)
    base = _counted(services.store_group_base)
    monkeypatch.setattr(services, "store_group_base", base)


def _counted(write: Callable[..., Any]) -> Callable[..., Any]:
    def counted(target: Any, path: str, *rest: Any, **more: Any) -> Any:
        if hasattr(target.storage, "native_write"):
            return target.storage.native_write(path, lambda: write(target, path, *rest, **more))
        return write(target, path, *rest, **more)

    return counted


def _counted_files(write: Callable[..., Any]) -> Callable[..., Any]:
    """Of a verb that asks for the path of each file; the first one is a change."""

    def counted(target: Any, next_path: Callable[[], str], *more: Any, **rest: Any) -> Any:
        if not hasattr(target.storage, "native_write"):
            return write(target, next_path, *more, **rest)
        first = next_path()
        paths = itertools.chain([first], iter(next_path, ""))
        make = paths.__next__
        return target.storage.native_write(first, lambda: write(target, make, *more, **rest))

    return counted


SMALL_BLOOM = {"hoodie.index.bloom.num_entries": "64"}


@dataclass
class Handle:
    """A table handle for the verbs."""

    storage: Storage
    options: dict[str, str] = field(default_factory=dict)
    engine: Any = field(default_factory=lambda: LocalEngine(1))


def people_table(base: Path, version: int, kind: str, options: dict[str, str]) -> Handle:
    """An empty table for `people`, without a metadata table; `options` are its handle's."""
    new = NewTable(
        name="people",
        table_type="COPY_ON_WRITE" if kind in ("cow", "orc") else "MERGE_ON_READ",
        version=version,
        record_key_fields=("id",),
        partition_fields=("city",),
        ordering_fields=("ts",),
        create_schema=_native.avro_schema(PEOPLE.schema, "people_record", "hoodie.people"),
        extra={BASE_FILE_FORMAT: "ORC"} if kind == "orc" else {},
    )
    handle = Handle(Storage(str(base)), options)
    create.make_table(handle.storage, new_table_config(new), SystemClock())
    return handle


def rows_read(base: Path, metadata: str, where: str | None = None) -> list[dict[str, Any]]:
    """What a scan gives, with the metadata table ("true") or without, sorted by id."""
    opened = pyhudi.open_table(str(base), options={"hoodie.metadata.enable": metadata})
    rows: list[dict[str, Any]] = opened.scan(where=where).to_arrow().to_pylist()
    return sorted(rows, key=lambda row: str(row["id"]))


def values_read(base: Path) -> dict[str, int]:
    """The values by key, read with the metadata table and without."""
    rows = rows_read(base, "false")
    assert rows_read(base, "true") == rows
    found = {row["id"]: row["v"] for row in rows}
    assert len(found) == len(rows)
    return found


def rows_of(base: Path) -> list[dict[str, Any]]:
    """What the core reads of each slice, sorted by id; no plan and no metadata table between."""
    storage = Storage(str(base))
    config = TableConfig.load(storage)
    timeline = Timeline.load(storage, config)
    schema = table_schema(storage, config, timeline).arrow
    valid = None
    if config.version.blocks_need_commit_check:
        valid = [instant.requested for instant in timeline.commits]
    rows: list[dict[str, Any]] = []
    for one in FileSystemView(storage, config, timeline).slices():
        reader, _ = _native.read_slice(
            storage.native,
            base=one.base.path if one.base else None,
            logs=[log.path for log in one.logs],
            schema=schema,
            columns=schema.names,
            merge_mode=config.merge.mode,  # type: ignore[arg-type]
            ordering_fields=config.ordering_fields,
            valid_instants=valid,
            timeline_start=timeline.first_active if valid else None,
        )
        rows += reader.read_all().to_pylist()
    kept = [{k: v for k, v in row.items() if not k.startswith("_hoodie")} for row in rows]
    return sorted(kept, key=lambda row: str(row["id"]))


def leftovers(base: Path) -> list[str]:
    """Everything that a table at rest must not have."""
    storage = Storage(str(base))
    config = TableConfig.load(storage)
    timeline = Timeline.load(storage, config)
    found = [f"pending {instant}" for instant in timeline.pending()]
    found += [f"marker {file.path}" for file in storage.list(".hoodie/.temp")]
    by_own_instant = not config.version.logs_named_by_base_instant
    for name, path in _data_files(storage):
        base_name, log_name = parse_base_name(name), parse_log_name(name)
        instant = base_name.instant if base_name else log_name.instant if log_name else None
        if instant is not None and (base_name or by_own_instant or log_name):
            found += [] if timeline.is_committed(instant) else [f"orphan {path}"]
    return found


def _data_files(storage: Storage) -> Iterator[tuple[str, str]]:
    for _, files in walk_partitions(storage):
        yield from ((file.name, file.path) for file in files)


PEOPLE = TableBuilder(
    {
        "id": (pa.string(), numbered(2)),
        "city": (pa.string(), lambda number: ("rome", "oslo")[number % 2]),
        "v": (pa.int32(), 1),
        "ts": (pa.int64(), 1),
    },
    partition_by="city",
    order_by="ts",
)


def people(ids: Sequence[int], v: int, ts: int) -> pa.Table:
    """Rows `k<id>` in the cities rome (even) and oslo (odd)."""
    return PEOPLE.rows(ids, v=v, ts=ts)
