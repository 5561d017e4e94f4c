"""Checks of small files in a deep check: instants, archives, properties and partition metadata.

Only their bytes are checked: against checksums, and whether they can be parsed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pyhudi import _native
from pyhudi.admin.check_findings import Finding, damage_finding
from pyhudi.config.file_names import PARTITION_METADATA_PREFIX
from pyhudi.config.metadata_names import FOLDER
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import TimelineLayout
from pyhudi.engine.protocol import Attempt, Engine
from pyhudi.errors import CorruptTable
from pyhudi.storage.properties import has_wrong_checksum_comment
from pyhudi.storage.properties_file import FILE
from pyhudi.storage.storage import Storage
from pyhudi.timeline.serde import decode

_ARCHIVE = "history"
"""Directory of archived instants below the timeline."""
_FILES = 16
"""Number of files that one task reads."""


FileType: TypeAlias = Literal["instant", "archive", "properties"]
"""`archive`: a Parquet file of archived instants."""


@dataclass(frozen=True)
class SmallFilesTask:
    """Check some files of one type."""

    storage: Storage
    paths: tuple[str, ...]
    type: FileType


def check_small_files(
    engine: Engine, storage: Storage, config: TableConfig, partitions: Sequence[str]
) -> list[Finding]:
    """Return damaged instant files, properties and partition metadata of a table.

    The files of its metadata table are checked, too. partitions: paths of the table's partitions.
    """
    tasks = [*_tasks(storage, config.layout, partitions)]
    if config.metadata_partitions:
        folders = config.metadata_partitions
        tasks += _tasks(storage.below(FOLDER), config.layout, folders)
    results = engine.run(check_files, tasks, label="check instants and properties")
    return [finding for result in results for finding in result]


def _tasks(
    storage: Storage, layout: TimelineLayout, partitions: Sequence[str]
) -> Iterator[SmallFilesTask]:
    entries = storage.list_dir(layout.folder)[1]
    marks = (f"{path}/{PARTITION_METADATA_PREFIX}".lstrip("/") for path in partitions)
    types: dict[FileType, list[str]] = {
        "instant": [entry.path for entry in entries if layout.parse(entry.name) is not None],
        "properties": [FILE, *marks],
    }
    if layout.completion_in_name:
        archived = storage.list_dir(f"{layout.folder}/{_ARCHIVE}")[1]
        types["archive"] = [entry.path for entry in archived if entry.name.endswith(".parquet")]
    for file_type, paths in types.items():
        for start in range(0, len(paths), _FILES):
            yield SmallFilesTask(storage, tuple(paths[start : start + _FILES]), file_type)


def check_files(task: SmallFilesTask, _attempt: Attempt) -> list[Finding]:
    """Return the damaged files."""
    return [finding for path in task.paths for finding in _check_file(task, path)]


def _check_file(task: SmallFilesTask, path: str) -> Iterator[Finding]:
    data = task.storage.read_or_none(path)
    if data is None:
        return
    try:
        if task.type == "instant":
            decode(data, path)
        elif task.type == "archive":
            _native.verify_base_file(task.storage.native, path)
    except CorruptTable as error:
        yield damage_finding("", path, error)
    if task.type == "properties" and has_wrong_checksum_comment(data):
        expected, found = "the bytes that pyhudi wrote", "other bytes"
        yield Finding("properties_changed", "warning", "", path, expected, found)
