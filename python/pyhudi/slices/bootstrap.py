"""The bootstrap index: where the rows of a bootstrapped table's skeleton base files are.

A bootstrap in the mode METADATA_ONLY leaves the rows in their Parquet files and gives the table
skeletons: base files of instant `00000000000001` with only Hudi's own columns. Base files of the
mode FULL_RECORD (`00000000000002`) and all later ones are whole.

An HFile below `.hoodie/.aux/.bootstrap` maps skeletons to source files, by partition: the key is
`part=<partition path>`, the value an Avro container file with one
`HoodieBootstrapPartitionMetadata`, a map from file id to `HoodieFileStatus`. The file's info block
has a `HoodieBootstrapIndexInfo` with the directory of all sources. Source:
`HFileBootstrapIndex`, `HFileBootstrapIndexWriter`, `AbstractTableFileSystemView` (Hudi 0.15.0,
1.2.0). A second file, by file id, has the same content and is not read.

Hudi uses the absolute paths in the index. pyhudi gives precedence to `hoodie.bootstrap.base.path`
if it differs from the directory in the index, so that a table and its source can be moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from pyhudi.config import property_names as names
from pyhudi.config.file_names import parse_base_name
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable, UnsupportedTableFeature
from pyhudi.slices.file_slice import BaseFile, BootstrapFile, FileSlice
from pyhudi.slices.file_slices import FileSlices
from pyhudi.storage.storage import Storage
from pyhudi.timeline.serde import container_record

if TYPE_CHECKING:
    from pyhudi import _native

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
SourceSpec: TypeAlias = "tuple[_native.Store, str, pa.RecordBatch | None]"
"""Source of a skeleton's rows, for the core: store, path, values from the directory's name."""
WrittenFile: TypeAlias = "tuple[str, bool, SourceSpec | None]"
"""A file's path, whether it is a log file, and for a skeleton the source of its rows."""


def with_sources(storage: Storage, config: TableConfig, slices: FileSlices) -> FileSlices:
    """Return the slices, with the source files of skeletons added.

    Raises `CorruptTable` if the index is missing, damaged or has no entry for a skeleton.
    """
    if config.bootstrap_path is None:
        return slices
    skeletons = [slice_ for slice_ in slices if _is_skeleton(slice_)]
    if not skeletons:
        return slices
    sources = _load(storage, config, sorted({slice_.partition for slice_ in skeletons}))
    for slice_ in skeletons:
        _with_source(slice_, sources)
    return slices.with_change(
        lambda slice_: _with_source(slice_, sources) if _is_skeleton(slice_) else slice_,
        adds_sources=True,
    )


def add_sources(
    storage: Storage, config: TableConfig, slices: Sequence[FileSlice]
) -> list[FileSlice]:
    """Do what `with_sources` does, for slices that exist already."""
    all_slices = list(slices)
    if config.bootstrap_path is None:
        return all_slices
    partitions = {slice_.partition for slice_ in all_slices if _is_skeleton(slice_)}
    sources = _load(storage, config, sorted(partitions)) if partitions else {}
    return [
        _with_source(slice_, sources) if _is_skeleton(slice_) else slice_ for slice_ in all_slices
    ]


def sources_of(
    storage: Storage, config: TableConfig, paths: Iterable[str]
) -> dict[str, BootstrapFile]:
    """Return the source files of skeletons among some of a table's files, by path.

    Raises as `with_sources`.
    """
    if config.bootstrap_path is None:
        return {}
    slices = (slice_ for path in paths if (slice_ := _slice_of_path(path)) is not None)
    return skeletons(add_sources(storage, config, list(slices)))


def _slice_of_path(path: str) -> FileSlice | None:
    """Return a slice with only this base file, None for another file."""
    partition, _, name = path.rpartition("/")
    parts = parse_base_name(name)
    if parts is None:
        return None
    base = BaseFile(partition, name, parts.file_id, parts.instant, parts.write_token, 0)
    return FileSlice(partition, parts.file_id, parts.instant, base)


def source_spec(
    storage: Storage,
    slice_: FileSlice,
    schema: pa.Schema,
    columns: Iterable[str] | None = None,
) -> SourceSpec | None:
    """Return the source of a slice's skeleton, for the core; None for a whole base file.

    columns: the requested ones, None for all. Raises `UnsupportedTableFeature` as
    `check_source_columns`.
    """
    source = slice_.base.source if slice_.base else None
    return None if source is None else _spec(storage, source, slice_.partition, schema, columns)


def _spec(
    storage: Storage,
    source: BootstrapFile,
    partition: str,
    schema: pa.Schema,
    columns: Iterable[str] | None = None,
) -> SourceSpec:
    from pyhudi.slices.partition_values import path_values  # noqa: PLC0415 - other tables need no filters

    values = path_values(source.config, schema, partition)
    check_source_columns(storage, source, schema.names if columns is None else columns, values)
    row = [pa.array([value.as_py()], value.type) for value in values.values()]
    path_row = pa.RecordBatch.from_arrays(row, names=list(values)) if row else None
    return source.storage(storage).native, source.path, path_row


def _is_skeleton(slice_: FileSlice) -> bool:
    return slice_.base is not None and slice_.base.instant == SKELETON_INSTANT


def _with_source(slice_: FileSlice, sources: Mapping[str, Sources]) -> FileSlice:
    source = sources.get(slice_.partition, {}).get(slice_.file_id)
    if slice_.base is None or source is None:
        where = f"{slice_.file_id} of {slice_.partition!r}"
        msg = f"{INDEX_FILE} has no source for the skeleton file {where}"
        raise CorruptTable(msg, file=INDEX_FILE)
    return replace(slice_, base=replace(slice_.base, source=source))


def _load(storage: Storage, config: TableConfig, partitions: Iterable[str]) -> dict[str, Sources]:
    from pyhudi import _native  # noqa: PLC0415 - planning other tables needs no core

    folder = config.bootstrap_path or ""
    keys = sorted((_KEY_PREFIX + partition).encode() for partition in partitions)
    try:
        info = _native.hfile_info(storage.native, INDEX_FILE, _INFO)
        pairs = _native.hfile_pairs(storage.native, INDEX_FILE, keys=keys)
    except FileNotFoundError as error:
        msg = f"{INDEX_FILE} is missing: the source files of skeleton base files cannot be located"
        raise CorruptTable(msg, file=INDEX_FILE) from error
    try:
        written = container_record(info, INDEX_FILE)["bootstrapBasePath"] if info else folder
        records = {key.decode(): container_record(value, INDEX_FILE) for key, value in pairs}
        return {
            key.removeprefix(_KEY_PREFIX): _sources(record, config, folder, written)
            for key, record in records.items()
        }
    except (AttributeError, KeyError, TypeError, UnicodeDecodeError) as error:
        msg = f"{INDEX_FILE}: not a bootstrap index: {error!r}"
        raise CorruptTable(msg, file=INDEX_FILE) from error


def _sources(record: Mapping[str, Any], config: TableConfig, folder: str, written: str) -> Sources:
    partition = record.get("bootstrapPartitionPath") or ""
    files = record.get("fileIdToBootstrapFile") or {}
    sources = {}
    for file_id, status in files.items():
        uri = (status.get("path") or {}).get("uri")
        if not uri:
            raise CorruptTable(f"{INDEX_FILE}: {file_id} has no path", file=INDEX_FILE)
        root, path = parse_source(uri, folder, written)
        sources[file_id] = BootstrapFile(root, path, partition, status.get("length") or 0, config)
    return sources


def parse_source(uri: str, folder: str, written: str) -> tuple[str, str]:
    """Return a directory to open and the path of a source file in it.

    folder: that of all sources now. written: that of the sources when the index was written.
    """
    prefix = _bare(written).rstrip("/") + "/"
    if _bare(uri).startswith(prefix):
        return folder, _bare(uri).removeprefix(prefix)
    root, _, name = uri.rpartition("/")
    return root, name


def _bare(uri: str) -> str:
    """Return the path of a URI. Hadoop writes `file:/a` and `/a` for the same file."""
    scheme, colon, rest = uri.partition(":")
    if not colon or "/" in scheme:
        return uri
    if not rest.startswith("//"):
        return rest
    return "/" + rest.removeprefix("//").partition("/")[2]


def skeletons(slices: Iterable[FileSlice]) -> dict[str, BootstrapFile]:
    """Return the sources of the skeletons among the base files of slices, by path."""
    bases = (slice_.base for slice_ in slices)
    return {base.path: base.source for base in bases if base is not None and base.source}


def files_with_sources(
    storage: Storage,
    schema: pa.Schema,
    files: Iterable[tuple[str, bool]],
    sources: Mapping[str, BootstrapFile],
) -> list[WrittenFile]:
    """Return file paths, whether each is a log file, and the sources of skeletons.

    schema: the columns that are read. Raises as `source_spec`.
    """
    return [
        (path, is_log, _spec(storage, sources[path], path.rpartition("/")[0], schema))
        if path in sources
        else (path, is_log, None)
        for path, is_log in files
    ]


def check_source_columns(
    storage: Storage, source: BootstrapFile, columns: Iterable[str], values: Mapping[str, object]
) -> None:
    """Raise `UnsupportedTableFeature` for a partition column that only the directory name contains.

    columns: columns to be read. values: those that come from the path instead.
    """
    fields = source.config.partition_fields
    lost = {name for name in fields if name in columns and name not in values}
    if not lost:
        return
    from pyhudi import _native  # noqa: PLC0415 - planning other tables needs no core

    _, schema = _native.base_file_schema(source.storage(storage).native, source.path)
    missing = sorted(lost.difference(schema.names))
    if missing:
        raise UnsupportedTableFeature(
            f"{names.BOOTSTRAP_PATH}: {source.path} has no partition column "
            f"{', '.join(missing)}, whose value cannot be derived from the directory "
            f"(hoodie.table.keygenerator.type {source.config.key_generator})",
        )
