"""Validation of plans and records on the timeline before they are used.

Writers of any release wrote them, so only the values that pyhudi uses are checked: strings must be
strings, and a path must lead to a file in a partition of the table. `commit_metadata.py` checks the
content of commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyhudi.config.actions import (
    CLEAN,
    CLUSTERING,
    COMPACTION,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    Instant,
    State,
)
from pyhudi.config.timeline_layout import META_FOLDER
from pyhudi.errors import CorruptTable

_SHOWN = 100
"""Characters of an invalid value in a message."""


@dataclass(frozen=True)
class _Is:
    """One value."""

    what: str
    """The expected value, for the message."""
    contains: Callable[[Any], bool]


@dataclass(frozen=True)
class _MapOf:
    """An object with any names."""

    name: _Is
    value: Any


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_partition(value: Any) -> bool:
    parts = value.split("/") if isinstance(value, str) else ["."]
    return value == "" or (parts[0] != META_FOLDER and {"", ".", ".."}.isdisjoint(parts))


def _is_file(value: Any) -> bool:
    return isinstance(value, str) and value.rsplit("/", 1)[-1] not in ("", ".", "..")


def _or_none(shape: _Is) -> _Is:
    return _Is(shape.what, lambda value: value is None or value == "" or shape.contains(value))


_ANY = _Is("value", lambda _: True)
_TEXT = _Is("string", _is_text)
_TEXT_OR_NONE = _or_none(_TEXT)
_PARTITION = _Is("path of a partition", _is_partition)
_FILE = _Is("data file of a partition", _is_file)

# Objects and lists may be null, and optional ones may be missing.
_OPERATIONS = {
    "operations": [
        {
            "partitionPath": _or_none(_PARTITION),
            "fileId": _TEXT,
            "baseInstantTime": _TEXT,
            "dataFilePath": _or_none(_FILE),
            "deltaFilePaths": [_FILE],
        }
    ],
    "extraMetadata": _MapOf(_TEXT, _ANY),
}
_CLUSTERING = {
    "clusteringPlan": {
        "inputGroups": [{"slices": [{"partitionPath": _or_none(_PARTITION), "fileId": _TEXT}]}]
    }
}
_CLEANED = _MapOf(_PARTITION, {"successDeleteFiles": [_FILE], "deletePathPatterns": [_TEXT]})
_ROLLED_BACK = {
    "commitsRollback": [_TEXT],
    "instantsRollback": [{"commitTime": _TEXT, "action": _TEXT}],
    "partitionMetadata": _MapOf(
        _PARTITION,
        {
            "successDeleteFiles": [_FILE],
            "rollbackLogFiles": _MapOf(_TEXT, _ANY),
            "logFilesFromFailedCommit": _MapOf(_TEXT, _ANY),
        },
    ),
}
_SAVED = {
    "savepointedBy": _TEXT_OR_NONE,
    "comments": _TEXT_OR_NONE,
    "partitionMetadata": _MapOf(_PARTITION, {"savepointDataFile": [_FILE]}),
}
_SHAPES: Mapping[tuple[str, State], Any] = {
    (ROLLBACK, State.REQUESTED): {
        "instantToRollback": {"commitTime": _TEXT, "action": _TEXT},
        "RollbackRequests": [
            {
                "partitionPath": _PARTITION,
                "fileId": _or_none(_TEXT),
                "latestBaseInstant": _or_none(_TEXT),
                "filesToBeDeleted": [_FILE],
                "logBlocksToBeDeleted": _MapOf(_TEXT, _ANY),
            }
        ],
    },
    (CLEAN, State.REQUESTED): {
        "earliestInstantToRetain": {"timestamp": _or_none(_TEXT)},
        "filesToBeDeletedPerPartition": _MapOf(_PARTITION, [_FILE]),
        "filePathsToBeDeletedPerPartition": _MapOf(_PARTITION, [{"filePath": _FILE}]),
        "partitionsToBeDeleted": [_PARTITION],
    },
    (COMPACTION, State.REQUESTED): _OPERATIONS,
    (LOG_COMPACTION, State.REQUESTED): _OPERATIONS,
    (CLUSTERING, State.REQUESTED): _CLUSTERING,
    (REPLACE_COMMIT, State.REQUESTED): _CLUSTERING,
    (CLEAN, State.COMPLETED): {
        "earliestCommitToRetain": _or_none(_TEXT),
        "partitionMetadata": _CLEANED,
        "bootstrapPartitionMetadata": _CLEANED,
    },
    (ROLLBACK, State.COMPLETED): _ROLLED_BACK,
    (SAVEPOINT, State.COMPLETED): _SAVED,
    (RESTORE, State.REQUESTED): {
        "instantsToRollback": [{"commitTime": _TEXT, "action": _TEXT}],
        "savepointToRestoreTimestamp": _TEXT_OR_NONE,
    },
    (RESTORE, State.COMPLETED): {"hoodieRestoreMetadata": _MapOf(_TEXT, [_ROLLED_BACK])},
}


def check_content(content: Mapping[str, Any], file: Instant, path: str) -> None:
    """Raise `CorruptTable` naming `path` for an invalid plan or record."""
    for at, value, expected in _wrong(content, _SHAPES.get((file.action, file.state), _ANY), ""):
        shortened = repr(value)[:_SHOWN]
        msg = f"{path}: {at} is {shortened}, expected: {expected}"
        raise CorruptTable(msg, file=path)


def _wrong(value: Any, shape: Any, at: str) -> Iterator[tuple[str, Any, str]]:
    """Yield each invalid value with its position and the expected value."""
    if isinstance(shape, _Is):
        if not shape.contains(value):
            yield at, value, shape.what
        return
    if value is None:
        return
    if isinstance(shape, list):
        yield from _wrong_items(value, shape[0], at)
    elif not isinstance(value, Mapping):
        yield at, value, "object"
    elif isinstance(shape, _MapOf):
        for name, item in value.items():
            yield from _wrong(name, shape.name, f"a name in {at}")
            yield from _wrong_item(item, shape.value, f"{at}.{name}")
    else:
        for name, inner in shape.items():
            yield from _wrong(value.get(name), inner, f"{at}.{name}".lstrip("."))


def _wrong_items(value: Any, shape: Any, at: str) -> Iterator[tuple[str, Any, str]]:
    if not isinstance(value, list):
        yield at, value, "list"
    else:
        for position, item in enumerate(value):
            yield from _wrong_item(item, shape, f"{at}[{position}]")


def _wrong_item(value: Any, shape: Any, at: str) -> Iterator[tuple[str, Any, str]]:
    """Yield the invalid values of an item of a list or map, which must not be null."""
    if value is None and not isinstance(shape, _Is):
        yield at, value, "object"
    else:
        yield from _wrong(value, shape, at)
