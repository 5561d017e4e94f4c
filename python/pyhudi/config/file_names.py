"""Names of base files and log files: reading and making them, and nothing else.

A partition also holds names that are no data file (`.crc` side files of Hadoop's local file system,
`.hoodie_partition_metadata`); for those the parsers answer None. Formats: `FSUtils`,
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
"""Names that parsers remember: a table's are listed anew with each write."""

ORC_EXTENSION = "orc"
DATA_EXTENSIONS = (BASE_EXTENSION, ORC_EXTENSION)
"""What names of base files of a data table may end with."""

_BASE_EXTENSIONS = frozenset({*DATA_EXTENSIONS, "hfile", "lance"})

_EXTERNAL_SUFFIX = "_hudiext"
"""Of the names of files that Hudi did not write (`ExternalFilePathUtil`, 0.15.0 to 1.2.0)."""

_BASE_NAME = re.compile(
    r"(?P<file_id>[a-zA-Z0-9-]+)_(?P<token>[a-zA-Z0-9-]+)_(?P<instant>[0-9]+)\.(?P<ext>[a-zA-Z0-9]+)"
)
# File ids of a record index by data partition hold the partition's path.
_HFILE_NAME = re.compile(
    r"(?P<file_id>[^._/][^_/]*)_(?P<token>[a-zA-Z0-9-]+)_(?P<instant>[0-9]+)\.(?P<ext>hfile)"
)

# Releases before 1.1 also take a file id with dots; only an underscore ends it everywhere.
_LOG_NAME = re.compile(
    r"\.(?P<file_id>[^_/]+)_(?P<instant>[^._/]*)\.log\.(?P<version>[0-9]+)"
    r"(?:_(?P<token>[0-9]+-[0-9]+-[0-9]+)(?P<suffix>\.cdc)?)?"
)


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
    """"" when the name has none."""
    suffix: str
    """".cdc" or ""."""


@lru_cache(PARSED)
def parse_base_name(name: str, extension: str | None = None) -> BaseName | None:
    """The parts of a base file's name, None when it is not one.

    extension: of the table's base files; those of the metadata table are HFiles. None where any
    that pyhudi reads will do.

    A base file of another format raises `UnsupportedTableFeature`, and so does one that Hudi did
    not write: passing it over would lose its rows.
    """
    check_own(name)
    match = (_HFILE_NAME if extension == "hfile" else _BASE_NAME).fullmatch(name)
    if match is None:
        return None
    wanted = DATA_EXTENSIONS if extension is None else (extension,)
    found = match["ext"].lower()
    if found in _BASE_EXTENSIONS and found not in wanted:
        msg = f"hoodie.table.base.file.format: {name} is a base file in {found.upper()} format"
        hint = "pyhudi reads Parquet and ORC, both where the table's properties say so."
        raise UnsupportedTableFeature(msg, hint=hint)
    if match["ext"] not in wanted:
        return None
    # Of a million files few instants and tokens: each is there once.
    return BaseName(match["file_id"], intern(match["token"]), intern(match["instant"]))


def check_own(name: str) -> None:
    """Raises `UnsupportedTableFeature` for the name or path of a file that Hudi did not write.

    Commits and the metadata table name it so; the file itself has another name.
    """
    if name.endswith(_EXTERNAL_SUFFIX):
        msg = f"{_EXTERNAL_SUFFIX}: {name} refers to a file of another writer than Apache Hudi"
        hint = "Apache XTable creates such entries: read the table in its original format."
        raise UnsupportedTableFeature(msg, hint=hint)


@lru_cache(PARSED)
def parse_log_name(name: str) -> LogName | None:
    """The parts of a log file's name (CDC files too), None when it is not one."""
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
    """The name of a base file. extension: what the table's end with."""
    return f"{file_id}_{write_token}_{instant}.{extension}"


def log_file_name(file_id: str, instant: str, version: int, write_token: str) -> str:
    """The name of a log file. Versions count from 1.

    instant: the slice's base instant up to table version 6, the delta commit's own from 8 on.
    """
    return f".{file_id}_{instant}.log.{version}_{write_token}"


def is_partition_metadata(name: str) -> bool:
    """Whether a file of this name makes its folder a partition."""
    return name.startswith(PARTITION_METADATA_PREFIX)


# A random file id looks like a bucket's once in thirty million times.
_BUCKET_FILE_ID = re.compile(r"000\d{5}-")


def is_bucket(file_id: str) -> bool:
    """Whether a file id begins with a bucket number. A random one does once in 43,000 times."""
    return _BUCKET_FILE_ID.match(file_id) is not None


def plain_file_id(uuid: str) -> str:
    """The file id of a new file group that is no bucket: none that begins as a bucket's does."""
    found = f"{uuid}-0"
    return f"f{found[1:]}" if is_bucket(found) else found


ENOUGH_IDS = 3
"""So many different ids that begin with bucket numbers are not random."""
_USUAL_BUCKETS = 4096


def are_buckets(file_ids: Collection[str]) -> bool:
    """Whether file groups are buckets, by their ids: of one or two the numbers must be usual."""
    if not file_ids or not all(map(is_bucket, file_ids)):
        return False
    numbers = (int(file_id.partition("-")[0]) for file_id in file_ids)
    return len(set(file_ids)) >= ENOUGH_IDS or max(numbers) < _USUAL_BUCKETS
