"""Parses and builds names of base files and log files, and nothing else.

A partition also has names that are not data files (`.crc` side files of Hadoop's local file system,
`.hoodie_partition_metadata`); the parsers return None for them. Formats: `FSUtils`,
`HoodieBaseFile` and `HoodieLogFile` (Hudi 1.2.0).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from sys import intern

from pyhudi.errors import UnsupportedTableFeature

BASE_EXTENSION = "parquet"
CDC_SUFFIX = ".cdc"
PARTITION_METADATA_PREFIX = ".hoodie_partition_metadata"

PARSED = 16384
"""Names that the parsers cache: each write lists those of its table again."""

ORC_EXTENSION = "orc"
DATA_EXTENSIONS = (BASE_EXTENSION, ORC_EXTENSION)
"""Possible extensions of base files of a data table."""

_BASE_EXTENSIONS = frozenset({*DATA_EXTENSIONS, "hfile", "lance"})

_EXTERNAL_SUFFIX = "_hudiext"
"""Suffix of files that Hudi did not write (`ExternalFilePathUtil`, 0.15.0 to 1.2.0)."""

_BASE_NAME = re.compile(
    r"(?P<file_id>[a-zA-Z0-9-]+)_(?P<token>[a-zA-Z0-9-]+)_(?P<instant>[0-9]+)\.(?P<ext>[a-zA-Z0-9]+)"
)
# File ids of a record index by data partition contain the partition's path.
_HFILE_NAME = re.compile(
    r"(?P<file_id>[^._/][^_/]*)_(?P<token>[a-zA-Z0-9-]+)_(?P<instant>[0-9]+)\.(?P<ext>hfile)"
)

# Releases before 1.1 also accept a file id with dots; only an underscore ends it in all of them.
_LOG_NAME = re.compile(
    r"\.(?P<file_id>[^_/]+)_(?P<instant>[^._/]*)\.log\.(?P<version>[0-9]+)"
    r"(?:_(?P<token>[0-9]+-[0-9]+-[0-9]+)(?P<suffix>\.cdc)?)?"
)


def file_name_of(path: str | None) -> str:
    """Return the last part of a path; "" for None."""
    return (path or "").rsplit("/", 1)[-1]


@dataclass(frozen=True)
class BaseName:
    """The parts of `<file id>_<write token>_<instant>.parquet`, or `.orc`."""

    file_id: str
    write_token: str
    instant: str


@dataclass(frozen=True)
class LogName:
    """The parts of `.<file id>_<instant>.log.<version>_<write token>[.cdc]`."""

    file_id: str
    instant: str
    version: int
    write_token: str
    """Write token, "" if the name has none."""
    suffix: str
    """Suffix, ".cdc" or ""."""


@lru_cache(PARSED)
def parse_base_name(name: str, extension: str | None = None) -> BaseName | None:
    """Return the parts of a base file's name, None if it is not one.

    Raises `UnsupportedTableFeature` for a base file of another format, and for one that Hudi did
    not write: ignoring it would lose its rows.

    extension: that of the table's base files; base files of the metadata table are HFiles. None for
    any extension that pyhudi reads.
    """
    check_own(name)
    match = (_HFILE_NAME if extension == "hfile" else _BASE_NAME).fullmatch(name)
    if match is None:
        return None
    extensions = DATA_EXTENSIONS if extension is None else (extension,)
    suffix = match["ext"].lower()
    if suffix in _BASE_EXTENSIONS and suffix not in extensions:
        msg = f"hoodie.table.base.file.format: {name} is a base file in {suffix.upper()} format"
        hint = "pyhudi reads Parquet and ORC, both where the table's properties say so."
        raise UnsupportedTableFeature(msg, hint=hint)
    if match["ext"] not in extensions:
        return None
    # A million files have few instants and tokens, so each string is stored once.
    return BaseName(match["file_id"], intern(match["token"]), intern(match["instant"]))


def is_external(name: str) -> bool:
    """Return whether a name or path is that of a file that Hudi did not write."""
    return name.endswith(_EXTERNAL_SUFFIX)


def check_own(name: str) -> None:
    """Raise `UnsupportedTableFeature` for the name or path of a file that Hudi did not write.

    Commits and the metadata table use this name; the file itself has another one.
    """
    if is_external(name):
        msg = f"{_EXTERNAL_SUFFIX}: {name} refers to a file of another writer than Apache Hudi"
        hint = "Apache XTable creates such entries: read the table in its original format."
        raise UnsupportedTableFeature(msg, hint=hint)


@lru_cache(PARSED)
def parse_log_name(name: str) -> LogName | None:
    """Return the parts of a log file's name (also of CDC files), None if it is not one."""
    match = _LOG_NAME.fullmatch(name)
    if match is None:
        return None
    return LogName(
        file_id=match["file_id"],
        instant=match["instant"],
        version=int(match["version"]),
        write_token=match["token"] or "",
        suffix=match["suffix"] or "",
    )


def base_file_name(file_id: str, write_token: str, instant: str, extension: str) -> str:
    """Return the name of a base file. extension: that of the table's base files."""
    return f"{file_id}_{write_token}_{instant}.{extension}"


def log_file_name(file_id: str, instant: str, version: int, write_token: str) -> str:
    """Return the name of a log file. Versions count from 1.

    instant: the slice's base instant up to table version 6, the delta commit's own from 8 on.
    """
    return f".{file_id}_{instant}.log.{version}_{write_token}"


def is_partition_metadata(name: str) -> bool:
    """Return whether a file of this name marks its directory as a partition."""
    return name.startswith(PARTITION_METADATA_PREFIX)


# A random file id looks like a bucket's once in thirty million cases.
BUCKET_FILE_ID = r"^000[0-9]{5}-"
"""Pattern of file ids that begin with a bucket number."""
_BUCKET_FILE_ID = re.compile(BUCKET_FILE_ID)


def is_bucket(file_id: str) -> bool:
    """Return whether a file id begins with a bucket number, as one in 43,000 random ids does."""
    return _BUCKET_FILE_ID.match(file_id) is not None


def plain_file_id(uuid: str) -> str:
    """Return the id of a new file group that is not a bucket; it does not begin like a bucket's."""
    file_id = f"{uuid}-0"
    return f"f{file_id[1:]}" if is_bucket(file_id) else file_id


ENOUGH_IDS = 3
"""Minimum number of different ids with bucket numbers that cannot be random."""
_USUAL_BUCKETS = 4096


def are_buckets(file_ids: Collection[str]) -> bool:
    """Return whether file groups are buckets, by their ids.

    If there are only one or two ids, their numbers must be in the usual range.
    """
    if not file_ids or not all(map(is_bucket, file_ids)):
        return False
    numbers = (int(file_id.partition("-")[0]) for file_id in file_ids)
    return len(set(file_ids)) >= ENOUGH_IDS or max(numbers) < _USUAL_BUCKETS
