"""Commit metadata: what a commit wrote, in one model for both of its encodings.

JSON up to table version 6 (keys in the order of Hudi 0.15.0), Avro records from 8 on. Fields that
this release does not know are kept in `unknown` and written again if the target has them.
Sources: `HoodieCommitMetadata`, `HoodieReplaceCommitMetadata`, `HoodieWriteStat`,
`HoodieDeltaWriteStat`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from pyhudi.clock import Clock
from pyhudi.config.actions import CLUSTERING, REPLACE_COMMIT
from pyhudi.config.file_names import check_own, is_external
from pyhudi.config.table_version import TableVersion
from pyhudi.errors import CorruptTable
from pyhudi.timeline import serde

NO_PREVIOUS_COMMIT = "null"
"""`WriteStat.prev_commit` of a file that replaces none: this string, not a null."""

SCHEMA_KEY = "schema"
"""Key of the writer's Avro schema, without meta fields, in `CommitMetadata.extra_metadata`."""

_KEEP_SCHEMA = frozenset({"CLUSTER", "COMPACT", "INDEX", "LOG_COMPACT"})
"""Operations that do not change the table's schema (`WriteOperationType.canUpdateSchema`).
A service that began before a schema change carries the older one."""


@dataclass(frozen=True)
class RuntimeStats:
    """The duration of writing a file, in milliseconds."""

    total_scan_time: int = 0
    total_upsert_time: int = 0
    total_create_time: int = 0
    unknown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class WriteStat:
    """The statistics of one written file, in the order of the JSON encoding's fields."""

    file_id: str = ""
    """File group; "" for the inserts of a workload profile."""
    path: str | None = None
    """Relative to the table; None in a workload profile."""
    cdc_stats: Mapping[str, int] | None = None
    """CDC files: relative path to size in bytes."""
    prev_commit: str = NO_PREVIOUS_COMMIT
    """Commit time of the base file that was replaced. Log append: up to table version 6 the base
    instant of the slice, later the append's own instant."""
    num_writes: int = 0
    """Records in the new base file, or appended to the log."""
    num_deletes: int = 0
    num_update_writes: int = 0
    num_inserts: int = 0
    total_write_bytes: int = 0
    total_write_errors: int = 0
    temp_path: str | None = None
    partition_path: str | None = None
    total_log_records: int = 0
    total_log_files_compacted: int = 0
    total_log_size_compacted: int = 0
    total_updated_records_compacted: int = 0
    total_log_blocks: int = 0
    total_corrupt_log_block: int = 0
    total_rollback_blocks: int = 0
    file_size_in_bytes: int = 0
    """Size of the file; never 0 for one that was written, since the metadata table copies it."""
    min_event_time: int | None = None
    """Epoch milliseconds."""
    max_event_time: int | None = None
    runtime_stats: RuntimeStats | None = None
    log_version: int | None = None
    """Log appends only, like the three after it."""
    log_offset: int | None = None
    base_file: str | None = None
    """Name of the slice's base file."""
    log_files: tuple[str, ...] | None = None
    """Names of all log files of the slice, this one included."""
    prev_base_file: str | None = None
    """Name of the base file that was replaced (Hudi 1.x)."""
    num_updates: int = 0
    total_log_read_time_ms: int = 0
    total_log_files: int | None = None
    unknown: Mapping[str, Any] = field(default_factory=dict)
    """Fields that are not listed above, as read."""

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> WriteStat:
        """Parse one entry of `partitionToWriteStats`, JSON or Avro; a null number counts as 0."""
        arguments = _constructor_arguments(cls, record)
        if arguments.get("runtime_stats") is not None:
            runtime = arguments["runtime_stats"]
            arguments["runtime_stats"] = RuntimeStats(
                **_constructor_arguments(RuntimeStats, runtime)
            )
        if arguments.get("log_files") is not None:
            arguments["log_files"] = tuple(arguments["log_files"])
        # A frozen class takes ten times as long to fill by its constructor; there are thousands.
        stat = object.__new__(cls)
        stat.__dict__.update(_UNSET, **arguments)
        return stat

    def to_json_record(self) -> dict[str, Any]:
        """Encode with the keys of Hudi 0.15.0, in its order; log keys only for a log append.

        Keys of later releases are included if they have a value.
        """
        skipped = {name for name in _LATER_FIELDS if not getattr(self, name)}
        if self.log_files is None and self.log_version is None:
            skipped |= _LOG_FIELDS
        return _record_of(self, skipped)

    def to_avro_record(self) -> dict[str, Any]:
        """Encode every field."""
        return _record_of(self, ())


_UNSET = vars(WriteStat())


class CommitFile(NamedTuple):
    """The files of a write statistic."""

    partition: str
    """Partition path."""
    path: str
    """Relative to the table; "" where only change logs are named."""
    file_id: str
    base_file: str | None
    """Name of the base file of a log file's slice."""
    size: int
    """Size of the file in bytes, 0 if the statistic does not have it."""
    is_written: bool
    """Whether there was something to write: a file without size and records may not exist."""
    change_logs: Sequence[tuple[str, int]]
    """Paths and sizes of CDC files."""


class NamedPaths(NamedTuple):
    """The files that a commit names, with the base file of each log file's slice."""

    paths: list[str]
    """Relative to the table."""
    file_ids: list[str]
    """The file group of each."""


def paths_of_files(files: Iterable[CommitFile]) -> NamedPaths:
    """Return the paths of written files. Change logs are not among them."""
    named = NamedPaths([], [])
    for file in files:
        if not (file.path and file.is_written):
            continue
        named.paths.append(file.path)
        named.file_ids.append(file.file_id)
        if file.base_file:
            folder, slash, _ = file.path.rpartition("/")
            named.paths.append(f"{folder}{slash}{file.base_file.rpartition('/')[2]}")
            named.file_ids.append(file.file_id)
    return named


@dataclass(frozen=True)
class CommitMetadata:
    """The content of a commit, delta commit or replace commit, or a workload profile."""

    partition_to_write_stats: Mapping[str, tuple[WriteStat, ...]] = field(default_factory=dict)
    """By partition path, "" in a table without partitions."""
    compacted: bool = False
    """True for the commit of a compaction."""
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    operation_type: str | None = None
    """Name in `WriteOperationType`, such as UPSERT or COMPACT."""
    partition_to_replace_file_ids: Mapping[str, tuple[str, ...]] | None = None
    """File groups that a replace commit replaces; None in every other commit."""
    unknown: Mapping[str, Any] = field(default_factory=dict)
    """Fields that are not listed above, as read."""

    @property
    def write_stats(self) -> tuple[WriteStat, ...]:
        """The stats of all partitions."""
        return tuple(s for stats in self.partition_to_write_stats.values() for s in stats)

    @property
    def files(self) -> tuple[CommitFile, ...]:
        """The files of all statistics, as `decode_commit_files` returns them."""
        return tuple(
            CommitFile(
                partition,
                stat.path or "",
                stat.file_id,
                stat.base_file,
                stat.file_size_in_bytes,
                bool(stat.file_size_in_bytes or stat.num_writes or stat.num_deletes),
                [*(stat.cdc_stats or {}).items()],
            )
            for partition, stats in self.partition_to_write_stats.items()
            for stat in stats
            if stat.path or stat.cdc_stats
        )

    @property
    def paths(self) -> set[str]:
        """All files that the commit names, including change logs."""
        listed = {stat.path for stat in self.write_stats if stat.path}
        return listed | {path for stat in self.write_stats for path in stat.cdc_stats or ()}

    @property
    def replaced(self) -> frozenset[tuple[str, str]]:
        """The file groups that a replace commit replaces: partition path and file id."""
        return frozenset(
            (partition, file_id)
            for partition, ids in (self.partition_to_replace_file_ids or {}).items()
            for file_id in ids
        )

    @property
    def schema(self) -> str | None:
        """The writer's Avro schema, None if the commit has none or an empty one."""
        return self.extra_metadata.get(SCHEMA_KEY) or None

    @property
    def table_schema(self) -> str | None:
        """`schema`, if the operation of the commit can change the table's."""
        return None if self.operation_type in _KEEP_SCHEMA else self.schema

    @property
    def is_service(self) -> bool:
        """Whether it rewrote files without changing rows, whatever its stats count."""
        return self.compacted or self.operation_type in _KEEP_SCHEMA

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> CommitMetadata:
        """Build from the decoded content of a commit's file, JSON or Avro."""
        arguments = _constructor_arguments(cls, record)
        stats = arguments.get("partition_to_write_stats") or {}
        arguments["partition_to_write_stats"] = {
            partition: tuple(WriteStat.from_record(stat) for stat in of_partition)
            for partition, of_partition in stats.items()
        }
        replaced = arguments.get("partition_to_replace_file_ids")
        if replaced is not None:
            arguments["partition_to_replace_file_ids"] = {p: tuple(i) for p, i in replaced.items()}
        return cls(**arguments)

    def to_json(self) -> bytes:
        """Return the file's bytes up to table version 6."""
        stats = {
            partition: [stat.to_json_record() for stat in of_partition]
            for partition, of_partition in self.partition_to_write_stats.items()
        }
        return serde.encode_json(self._record(stats))

    def to_avro(self, clock: Clock, *, replace: bool = False) -> bytes:
        """Return the bytes from table version 8 on; `replace`: for a completed replace commit."""
        name = "HoodieReplaceCommitMetadata" if replace else "HoodieCommitMetadata"
        return serde.encode_container(name, self.avro_record(), clock)

    def avro_record(self) -> dict[str, Any]:
        """Return the record of the Avro encoding, with every field."""
        stats = {
            partition: [stat.to_avro_record() for stat in of_partition]
            for partition, of_partition in self.partition_to_write_stats.items()
        }
        return self._record(stats)

    def encode(self, version: TableVersion, action: str, clock: Clock) -> bytes:
        """Return the bytes of a completed file of `action` in a table of that version."""
        if version.commit_metadata_as_json:
            return self.to_json()
        return self.to_avro(clock, replace=action in (REPLACE_COMMIT, CLUSTERING))

    def encode_inflight(self, version: TableVersion, clock: Clock) -> bytes:
        """Return the bytes of an inflight file: plain commit metadata for any action."""
        return self.to_json() if version.commit_metadata_as_json else self.to_avro(clock)

    def _record(self, stats: Mapping[str, Any]) -> dict[str, Any]:
        skipped = ("partition_to_replace_file_ids",)
        record = _record_of(self, skipped if self.partition_to_replace_file_ids is None else ())
        record["partitionToWriteStats"] = stats
        return record


def by_partition(stats: Iterable[WriteStat]) -> dict[str, tuple[WriteStat, ...]]:
    """Group stats by partition path, as in `CommitMetadata`."""
    grouped: dict[str, list[WriteStat]] = {}
    for stat in stats:
        grouped.setdefault(stat.partition_path or "", []).append(stat)
    return {partition: tuple(of_partition) for partition, of_partition in grouped.items()}


def commit_metadata_of(record: Mapping[str, Any] | None, path: str) -> CommitMetadata:
    """Return the metadata in the decoded content of a commit; the default for an empty file.

    Raises `CorruptTable` naming `path` for a record that is not commit metadata,
    `UnsupportedTableFeature` for one with files that Hudi did not write.
    """
    try:
        metadata = CommitMetadata.from_record(record or {})
        for stat in metadata.write_stats:
            check_own(stat.path or "")
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        msg = f"{path}: not commit metadata: {error}"
        raise CorruptTable(msg, file=path) from error
    return metadata


def decode_commit_files(contents: Sequence[bytes]) -> list[tuple[CommitFile, ...] | None]:
    """Return the files that each commit names, from the bytes of its completed file.

    None for bytes that `commit_metadata_of` may refuse.
    """
    from pyhudi import _native  # noqa: PLC0415 - JSON timelines work without it

    return [
        None if files is None else _own_files(files) for files in _native.commit_files(contents)
    ]


def _own_files(files: Iterable[Any]) -> tuple[CommitFile, ...] | None:
    parsed = tuple(map(CommitFile._make, files))
    return None if any(map(is_external, (file.path for file in parsed))) else parsed


_LOG_FIELDS = frozenset({"log_version", "log_offset", "base_file", "log_files"})
_LATER_FIELDS = ("prev_base_file", "num_updates", "total_log_read_time_ms", "total_log_files")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _constructor_arguments(model: type[Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return constructor arguments: nulls take the default, unknown fields go to `unknown`."""
    by_key = _NAMES_BY_KEY[model]
    arguments = {by_key[k]: v for k, v in record.items() if k in by_key and v is not None}
    arguments["unknown"] = {key: value for key, value in record.items() if key not in by_key}
    return arguments


_NAMES_BY_KEY = {
    model: {_camel(f.name): f.name for f in fields(model) if f.name != "unknown"}
    for model in (CommitMetadata, RuntimeStats, WriteStat)
}


def _record_of(model: Any, skipped: Iterable[str]) -> dict[str, Any]:
    by_key, values = _NAMES_BY_KEY[type(model)].items(), vars(model)
    record = {key: values[name] for key, name in by_key if name not in skipped}
    for key, value in record.items():
        # Nearly all are scalars: no call for those.
        if type(value) not in _SCALARS:
            record[key] = _to_json_value(value)
    return {**record, **model.unknown}


_SCALARS = frozenset({str, int, float, bool, type(None)})


def _to_json_value(value: Any) -> Any:
    if type(value) in _SCALARS:
        return value
    if isinstance(value, RuntimeStats):
        return _record_of(value, ())
    if isinstance(value, tuple):
        return [_to_json_value(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _to_json_value(item) for key, item in value.items()}
    return value
