"""Where the rows of a bootstrapped table's skeleton base files are.

Bootstrapping in the mode METADATA_ONLY leaves the rows in the Parquet files they were in and gives
the table skeletons: base files of instant `00000000000001` with Hudi's own columns alone. Those of
the mode FULL_RECORD (`00000000000002`) and all later base files are whole.

Which source file belongs to a skeleton stands in an HFile below `.hoodie/.aux/.bootstrap`, by
partition: the key is `part=<partition path>`, the value an Avro container file with one
`HoodieBootstrapPartitionMetadata`, a map from file id to `HoodieFileStatus`. The file's info block
has a `HoodieBootstrapIndexInfo` with the folder that all sources lie in. Source:
`HFileBootstrapIndex`, `HFileBootstrapIndexWriter`, `AbstractTableFileSystemView` (Hudi 0.15.0,
1.2.0). A second file, by file id, says the same and is not read.

Hudi goes by the absolute paths in the index. Here `hoodie.bootstrap.base.path` wins where it is not
the folder that the index names, so that a table and its source can be moved.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyhudi.config import property_names as names
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable, UnsupportedTableFeature
from pyhudi.slices.file_slice import BootstrapFile, FileSlice
from pyhudi.storage.storage import Storage

SKELETON_INSTANT = "00000000000001"
"""`HoodieTimeline.METADATA_BOOTSTRAP_INSTANT_TS`."""

INDEX_FILE = (
    ".hoodie/.aux/.bootstrap/.partitions/"
    "00000000-0000-0000-0000-000000000000-0_1-0-1_00000000000001.hfile"
)
_KEY_PREFIX = "part="
_INFO = "INDEX_INFO"

Sources = Mapping[str, BootstrapFile]
"""By file id."""


def with_sources(
    storage: Storage, config: TableConfig, slices: Sequence[FileSlice]
) -> list[FileSlice]:
    """The slices, those on a skeleton with the file that has its rows.

    Raises `CorruptTable` when the index is missing, damaged or without a skeleton's file.
    """
    found = list(slices)
    if config.bootstrap_path is None:
        return found
    partitions = {slice_.partition for slice_ in found if _is_skeleton(slice_)}
    sources = _load(storage, config.bootstrap_path, sorted(partitions)) if partitions else {}
    return [_with_source(slice_, sources) if _is_skeleton(slice_) else slice_ for slice_ in found]


def _is_skeleton(slice_: FileSlice) -> bool:
    return slice_.base is not None and slice_.base.instant == SKELETON_INSTANT


def _with_source(slice_: FileSlice, sources: Mapping[str, Sources]) -> FileSlice:
    source = sources.get(slice_.partition, {}).get(slice_.file_id)
    if slice_.base is None or source is None:
        where = f"{slice_.file_id} of {slice_.partition!r}"
        msg = f"{INDEX_FILE} has no source for the skeleton file {where}"
        raise CorruptTable(msg, file=INDEX_FILE)
    return replace(slice_, base=replace(slice_.base, source=source))


def _load(storage: Storage, folder: str, partitions: Iterable[str]) -> dict[str, Sources]:
    from pyhudi import _native  # noqa: PLC0415 - planning other tables needs no core

    keys = sorted((_KEY_PREFIX + partition).encode() for partition in partitions)
    try:
        info = _native.hfile_info(storage.native, INDEX_FILE, _INFO)
        pairs = _native.hfile_pairs(storage.native, INDEX_FILE, keys=keys)
    except FileNotFoundError as error:
        msg = f"{INDEX_FILE} is missing, and with it the way to the rows of skeleton files"
        raise CorruptTable(msg, file=INDEX_FILE) from error
    written = _record(info)["bootstrapBasePath"] if info else folder
    return {
        key.decode().removeprefix(_KEY_PREFIX): _sources(_record(value), folder, written)
        for key, value in pairs
    }


def _record(container: bytes) -> dict[str, Any]:
    from pyhudi import _native  # noqa: PLC0415 - planning other tables needs no core

    records = json.loads(_native.container_to_json(container)[1])
    if len(records) != 1 or not isinstance(records[0], dict):
        raise CorruptTable(f"{INDEX_FILE}: not one record in a container", file=INDEX_FILE)
    return dict(records[0])


def _sources(record: Mapping[str, Any], folder: str, written: str) -> Sources:
    partition = record.get("bootstrapPartitionPath") or ""
    files = record.get("fileIdToBootstrapFile") or {}
    found = {}
    for file_id, status in files.items():
        uri = (status.get("path") or {}).get("uri")
        if not uri:
            raise CorruptTable(f"{INDEX_FILE}: {file_id} has no path", file=INDEX_FILE)
        root, path = split_source(uri, folder, written)
        found[file_id] = BootstrapFile(root, path, partition, status.get("length") or 0)
    return found


def split_source(uri: str, folder: str, written: str) -> tuple[str, str]:
    """A folder to open and the path of a source file in it.

    folder: that of all sources now. written: what it was when the index was written.
    """
    prefix = _bare(written).rstrip("/") + "/"
    if _bare(uri).startswith(prefix):
        return folder, _bare(uri).removeprefix(prefix)
    root, _, name = uri.rpartition("/")
    return root, name


def _bare(uri: str) -> str:
    """The path of a URI. Hadoop writes `file:/a` and `/a` for the same file."""
    scheme, colon, rest = uri.partition(":")
    if not colon or "/" in scheme:
        return uri
    if not rest.startswith("//"):
        return rest
    return "/" + rest.removeprefix("//").partition("/")[2]


def check_source_columns(
    storage: Storage,
    config: TableConfig,
    slice_: FileSlice,
    wanted: Iterable[str],
    values: Mapping[str, object],
) -> None:
    """Raises `UnsupportedTableFeature` for a partition column that only a source's folder names.

    wanted: columns to be read. values: those that come from the path instead.
    """
    source = slice_.base.source if slice_.base else None
    lost = {name for name in config.partition_fields if name in wanted and name not in values}
    if source is None or not lost:
        return
    from pyhudi import _native  # noqa: PLC0415 - planning other tables needs no core

    _, schema = _native.base_file_schema(source.storage(storage).native, source.path)
    missing = sorted(lost.difference(schema.names))
    if missing:
        raise UnsupportedTableFeature(
            f"{names.BOOTSTRAP_PATH}: {source.path} lacks the partition column "
            f"{', '.join(missing)}, whose value the folder does not tell for certain "
            f"(hoodie.table.keygenerator.type {config.key_generator})",
        )
