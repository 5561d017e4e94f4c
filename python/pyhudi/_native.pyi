"""The Rust core: bytes and Arrow batches in, Arrow batches and small results out.

Nothing here lists a timeline, reads `hoodie.properties` or chooses a file name, an instant or a
default: that is Python's part. Every call releases the GIL for its whole work. Arguments that take
Arrow data accept any object with the Arrow PyCapsule interface, most also a `BatchReader`. Paths
are relative to the store.

Errors: `pyhudi.errors.CorruptTable` (with `.file` and `.offset`) for damaged input,
`UnsupportedTableFeature` for a feature that is not supported, `StorageError` for failing storage,
`SchemaMismatch` for data that do not fit a schema.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, final, overload, type_check_only

import pyarrow as pa
from typing_extensions import Required, Unpack

from pyhudi.config.merge_mode import BuiltInMode
from pyhudi.schema.internal_schema import FileNames
from pyhudi.slices.file_slice import FileParts, Selection, SliceParts

__all__ = [
    "DEBUG_BUILD",
    "BaseFile",
    "BatchReader",
    "FieldRules",
    "FileGroups",
    "FileGroupsBuilder",
    "FileSlices",
    "KeptStats",
    "KeyReader",
    "KeyTagger",
    "KnownStats",
    "LogFile",
    "LookupCache",
    "MergeStats",
    "MetadataPartition",
    "MetadataRecorder",
    "SliceFinder",
    "Store",
    "__version__",
    "add_keys",
    "archive_block",
    "arrow_schema",
    "avro_file_rows",
    "avro_rows",
    "avro_schema",
    "base_file_rows",
    "base_file_schema",
    "blob_roots",
    "bucket_numbers",
    "check_variants",
    "columns_for_spark",
    "combine",
    "commit_files",
    "compact_logs",
    "compact_metadata_group",
    "consistent_hashes",
    "container_to_json",
    "filter_candidates",
    "footer_candidates",
    "format_times",
    "has_partial_records",
    "hfile_info",
    "hfile_order",
    "hfile_pairs",
    "initial_hash_nodes",
    "join_base_files",
    "json_shape",
    "json_to_container",
    "key_parts",
    "log_blocks",
    "log_records",
    "lost_keys",
    "match_changes",
    "metadata_groups",
    "nearest_rows",
    "parse_times",
    "parts_with_keys",
    "possible_bucket_ids",
    "possible_consistent_hashes",
    "read_blobs",
    "read_cdc",
    "read_keys",
    "read_log_keys",
    "read_slice",
    "request_totals",
    "rewrite_base_file",
    "rollback_block",
    "scatter",
    "shown_text",
    "sort_rows",
    "spark_hashes",
    "statistics_gaps",
    "text_hash",
    "variants_from_json",
    "variants_to_json",
    "verify_base_file",
    "verify_hfile",
    "verify_log_file",
    "with_meta_columns",
    "with_meta_fields",
    "without_meta_fields",
    "write_base_file",
    "write_base_files",
    "write_hfile",
    "write_log_files",
    "write_metadata_base",
    "write_metadata_log",
]

__version__: str
"""Version of the wheel."""

DEBUG_BUILD: bool
"""Whether the core was built without optimisation (ten times slower)."""

_Paths: TypeAlias = list[str]
_Files: TypeAlias = list[tuple[str, int, int]]

def request_totals() -> list[tuple[str, int, int, int, int, int]]:
    """Requests of this process to storage, by kind.

    Each: kind, requests, bytes sent, bytes received, retries, throttled requests.
    """

@final
class Store:
    """A place where a table's bytes live: a local folder, or keys below a prefix of a bucket.

    Belongs to one process: pickle URI and options, not the store. Opening asks nothing of storage.
    """

    def __new__(cls, uri: str, options: dict[str, str] | None = None) -> Store: ...
    @property
    def uri(self) -> str:
        """The absolute, normalised location: a path, or `s3://bucket/prefix` and the like."""
    def below(self, folder: str) -> Store:
        """A folder of it as a store of its own."""
    def read(self, path: str) -> bytes:
        """The whole file. Raises MissingFile when it is not there."""
    def head(self, path: str) -> tuple[str, int, int] | None:
        """(path, size in bytes, modification time in epoch ms) of a file, None when missing."""
    def list(self, prefix: str) -> _Files:
        """Every file below `prefix`, recursively, sorted by path: (path, size, modified ms)."""
    def list_dir(self, prefix: str) -> tuple[_Paths, _Files]:
        """One level: (folders, files). A missing folder is empty."""
    def put(self, path: str, data: bytes) -> None:
        """Writes a whole file in place of any older one; readers see the old or the new bytes."""
    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Writes a whole file unless one is there; False when there was one."""
    def set_modified(self, path: str, modified_ms: int) -> bool:
        """Has a file count as changed at another time; False where the storage alone says that."""
    def read_version(self, path: str) -> tuple[bytes, str] | None:
        """A whole file and its version; None when there is none."""
    def replace_version(
        self, path: str, data: bytes, expected: str | None, durable: bool
    ) -> str | None:
        """Writes a whole file if its version is `expected` still, None for no file.

        Gives the new version, None where another writer was first.
        """
    def sync_directories(self, paths: Sequence[str]) -> None:
        """Makes the names in directories durable; only a local file system needs it."""
    def delete(self, path: str) -> bool:
        """Removes a file; False when there was none."""
    def delete_all(self, paths: Sequence[str]) -> None:
        """Removes files, in no order; those that are gone already are fine."""
    def delete_dir(self, path: str) -> None:
        """Removes a folder and all below it; a missing one is fine."""

@final
class MergeStats:
    """Counters of one slice read; final once its reader is exhausted."""

    @property
    def base_rows(self) -> int:
        """Rows of the base file, those that are copied with their row group among them."""
    @property
    def log_records(self) -> int:
        """Records read from log files, deletes included."""
    @property
    def updated(self) -> int:
        """Base rows replaced by a newer record."""
    @property
    def deleted(self) -> int:
        """Base rows removed by a delete."""
    @property
    def inserted(self) -> int:
        """Rows that no base row had the key of."""
    @property
    def corrupt_blocks(self) -> int:
        """Corrupt log blocks that were passed over."""
    @property
    def rollback_blocks(self) -> int:
        """Rollback command blocks met."""
    @property
    def log_blocks(self) -> int:
        """Log blocks read, corrupt ones left out."""
    @property
    def by_position(self) -> bool:
        """Whether records were merged by their rows in the base file, without keys."""
    @property
    def spilled_parts(self) -> int:
        """Parts that went to local files."""
    @property
    def pruned_row_groups(self) -> int:
        """Row groups that statistics ruled out."""

@final
class FieldRules:
    """How two live records of one key become one, column by column; see `schema/payloads.py`."""

    def __new__(
        cls,
        fill: Literal["absent", "nulls", "defaults", "marker", "newer_marker"] = "absent",
        *,
        marker: str | None = None,
        defaults: Any | None = None,
        newest_meta: bool = False,
        deletes_always_win: bool = False,
        deletes_are_rows: bool = False,
        sequence_ordering: bool = False,
        column_rules: Sequence[tuple[str, str]] = ...,
        merger: Any | None = None,
        merger_columns: Sequence[str] = ...,
    ) -> FieldRules:
        """fill: which values of the winner are taken from the loser.

        defaults: Arrow data of one row, the columns' defaults; nulls in it equal nothing, and
        columns that it lacks have null as default. deletes_are_rows: rows that are marked as
        deletes are merged as others, and where one would win, the newer row stands. column_rules:
        columns and the names of their rules. merger: called
        with two record batches, older and newer records of the same keys; gives the merged batch,
        or that and a boolean array of keys to be deleted.
        """

@final
class BatchReader:
    """Record batches, one by one, with pyhudi's own errors (a C stream would lose them)."""

    @property
    def schema(self) -> pa.Schema:
        """Schema of every batch."""
    def __iter__(self) -> BatchReader: ...
    def __next__(self) -> pa.RecordBatch: ...
    def read_all(self) -> pa.Table:
        """All batches that are left."""
    def close(self) -> None:
        """Ends the reading; what is left is dropped."""

_SourceSpec: TypeAlias = tuple[Store, str, pa.RecordBatch | None]
"""Where a skeleton's rows are: a store and a path, and one row of columns that its folder tells."""
_WrittenFile: TypeAlias = tuple[str, bool, _SourceSpec | None]
"""A file's path, whether it is a log file, and of a skeleton where its rows are."""

@type_check_only
class SliceSpec(TypedDict, total=False):
    """What `read_slice` takes by name."""

    base: Required[str | None]
    logs: Required[Sequence[str]]
    schema: Required[pa.Schema]
    columns: Required[Sequence[str]]
    merge_mode: Required[BuiltInMode]
    ordering_fields: Sequence[str]
    key_fields: Sequence[str]
    delete_field: str | None
    delete_marker: str | None
    max_instant: str | None
    valid_instants: Sequence[str] | None
    timeline_start: str | None
    drops_repeated: bool
    incoming: Any | None
    delete_keys: Any | None
    null_ordering_loses: bool
    filters: Sequence[tuple[str, str, pa.Array[Any]]]
    evolution: FileNames | None
    batch_rows: int
    base_instant: str | None
    field_rules: FieldRules | None
    memory_limit: int | None
    spill_folder: str | None
    bootstrap: _SourceSpec | None
    plain_key: str | None
    two_threads: bool
    base_part: tuple[int, int | None] | None

def read_slice(store: Store, **spec: Unpack[SliceSpec]) -> tuple[BatchReader, MergeStats]:
    """One file slice, merged, as a stream of batches.

    base: path of the base file, None for a slice of log files alone.
    logs: paths of the log files, in log-file order (oldest first), CDC files left out.
    schema: the table's schema with meta fields, as `arrow_schema` makes it.
    columns: names of the columns to give, in order; a subset of `schema`.
    key_fields: the stored key column (`_hoodie_record_key`, the default), or the record key fields
        where meta fields are off.
    delete_field, delete_marker: a row whose `delete_field`, as text, equals the marker is a delete.
    max_instant: blocks of later instants are passed over.
    valid_instants: when given (table version 6), a block counts only if its instant is among these
        or is smaller than `timeline_start`.
    drops_repeated: a log-compacted block that stands for none of the blocks that count drops out.
    incoming: Arrow data (stream) to be merged in as the newest records; it has the columns of
        `schema`. For copy-on-write updates.
    delete_keys: a string array (Arrow) of keys to be deleted as the newest, ordering-free records.
    null_ordering_loses: a base row with a null ordering value loses to any newer record (what
        Hudi's copy-on-write does) in place of counting as 0.
    filters: conjuncts (column, one of = != < <= > >= in, literals). Row groups and rows of the base
        file that fail them are left out where that changes nothing else; other rows that fail them
        can come.
    base_instant: the base file's instant. When every log block says which rows of that very base
        file its records update, records are merged by row and no key is read.
    field_rules: merge records column by column.
    memory_limit: bytes that log records may take in memory; beyond it both sides of the slice go
        to local files by key hash and are merged in parts. None keeps them in memory.
    spill_folder: a local folder for them, the system's own by default. The files have no names.
    evolution: where files name the columns otherwise than `schema` (schema on read): the maps, one
        for every distinct naming, each (table's name, file's name or None, parts) for every column;
        from which instant on which map holds, None for the table's own names; the base file's
        instant.
    bootstrap: where the rows of the base file are when it is a skeleton of Hudi's own columns: the
        store and path of a Parquet file with as many rows, zipped with it row by row, and one row
        of columns that have this one value where neither file has them. Columns that the skeleton
        has are taken from there. Differing row counts raise `CorruptTable`.
    plain_key: a text column that equals the stored key column where it is not null: a filter on it
        is one on the key.
    two_threads: a second thread may decode some of the base file's columns.
    base_part: only row groups of the base file that begin at or after the first of these bytes and
        before the second (None for the file's end). Of a slice with nothing to merge alone.
    """

def hfile_pairs(
    store: Store, path: str, *, keys: Sequence[bytes] | None = None
) -> list[tuple[bytes, bytes]]:
    """Keys and values of an HFile in key order: all, or those of `keys` (in rising order)."""

def hfile_info(store: Store, path: str, name: str) -> bytes | None:
    """A fact of an HFile's info block, None when it has none of that name."""

def hfile_order(store: Store, path: str) -> Literal["bytes", "UTF-16"] | None:
    """The order of an HFile's keys, None where both orders are the same. Reads all keys."""

def read_keys(
    store: Store,
    *,
    base: str | None,
    logs: Sequence[str],
    schema: pa.Schema,
    key_fields: Sequence[str] = ...,
    max_instant: str | None = None,
    valid_instants: Sequence[str] | None = None,
    timeline_start: str | None = None,
) -> BatchReader:
    """Every record key that a slice's base file and log data blocks hold, deleted ones too.

    One column, `_hoodie_record_key`. Keys can come more than once. This is what an index that reads
    files tags with: a key that a log file deleted still belongs to its file group.
    """

@type_check_only
class MatchSpec(TypedDict, total=False):
    """What `match_changes` takes by name."""

    schema: Required[pa.Schema]
    images: Required[int]
    key_fields: Required[Sequence[str]]
    place: str | None
    constants: Sequence[tuple[str, pa.Array[Any]]]
    only_keys: Any | None
    bucket: tuple[int, int] | None
    as_json: bool

def match_changes(before: Any | None, after: Any | None, **spec: Unpack[MatchSpec]) -> BatchReader:
    """What changed from one state of some rows to another: op, key, before, after, changed.

    before, after: streams of rows; without one of them every row is a delete or an insert. The rows
        of `before` that count are held, those of `after` stream past them.
    schema: the columns to compare, the first `images` of which make up an image. Columns of another
        type are cast to it. Rows that differ in none are left out.
    key_fields: as in `read_slice`. place: column with the partition path. Rows pair by key and
        place, then by key alone; of rows that repeat a key, equal ones pair first.
    constants: columns that have one value in all rows, as arrays of one row.
    only_keys: stream of one string column; other keys are passed over.
    bucket: (n, of): only keys of the bucket n count. Equal keys have equal buckets.
    as_json: images as JSON text, as Hudi gives rows of data files, in place of structs.
    changed: of updates the names of image columns that differ, else null.
    """

def read_cdc(
    store: Store,
    files: Sequence[str],
    *,
    schema: pa.Schema,
    before: Any | None = None,
    after: Any | None = None,
    as_json: bool = False,
) -> BatchReader:
    """What change logs tell: op, key, before, after, changed (null), with the rows as logged.

    files: the change logs of one base file of one commit. schema: the columns of an image.
    before, after: rows of the replaced and of the new base file with their `_hoodie_record_key`,
        where the logs lack images; a key that is missing there raises `CorruptTable`.
    as_json: images as JSON text, as Hudi gives them, in place of structs.
    """

def read_log_keys(
    store: Store, logs: Sequence[str], *, key_fields: Sequence[str] = ...
) -> BatchReader:
    """Every record key in data and delete blocks of log files, whether or not the blocks count.

    One column, `_hoodie_record_key`. Keys can come more than once.
    """

@final
class KeyTagger:
    """Finds which of a batch's keys exist, and where. Thread-safe."""

    def __new__(cls, keys: Any) -> KeyTagger:
        """keys: Arrow data (array or stream of one string column) of the incoming record keys."""
    def probe(self, existing: Any, location: int) -> int:
        """Marks the keys that `existing` (a stream of one string column) holds with `location`.

        A key found at two locations keeps the smaller. Returns how many keys were newly found.
        """
    def probe_rows(self, existing: Any) -> None:
        """Marks the keys in `existing`, all keys of one file in its order, and notes their rows."""
    def positions(self) -> pa.Int64Array:
        """For each incoming key its row in that file; null where it has not one."""
    def locations(self) -> pa.Int32Array:
        """For each incoming key its location, null where it was not found."""

def lost_keys(before: Any, after: Any) -> pa.StringArray:
    """The keys of a file that its next version lacks. Both are batches with a column of keys."""

@final
class BaseFile:
    """What was written to a base file."""

    @property
    def path(self) -> str: ...
    @property
    def size(self) -> int:
        """Bytes."""
    @property
    def rows(self) -> int: ...
    @property
    def min_key(self) -> str | None: ...
    @property
    def max_key(self) -> str | None: ...

@type_check_only
class BaseFileSpec(TypedDict, total=False):
    """What `write_base_file` takes by name."""

    avro_schema: Required[str]
    file_name: str | None
    key_column: str | None
    codec: Required[Literal["gzip", "snappy", "zstd", "lz4_raw", "uncompressed"]]
    row_group_bytes: Required[int]
    bloom_entries: Required[int]
    bloom_by_keys: Required[bool]
    bloom_fpp: Required[float]
    bloom_max_entries: Required[int]
    bloom_type: Required[Literal["DYNAMIC_V0", "SIMPLE"] | None]
    page_bytes: Required[int]
    dictionary: Required[bool]
    old_lists: bool
    two_threads: bool

def write_base_file(store: Store, path: str, rows: Any, **spec: Unpack[BaseFileSpec]) -> BaseFile:
    """Writes a stream of batches as a base file, as Hudi's Avro writers do: ORC if named `.orc`.

    avro_schema: JSON text with meta fields; goes into the footer.
    file_name: value for the column `_hoodie_file_name` of every row.
    key_column: what the key range and the bloom filter are made of, default `_hoodie_record_key`.
    codec: gzip is ORC's zlib.
    row_group_bytes: a row group, or a stripe, ends after so many bytes.
    bloom_type: None leaves out the bloom filter and the key range.
    page_bytes: a page ends after so many bytes. This and what follows is Parquet's alone.
    dictionary: values that repeat are written once a page run.
    old_lists: lists have two levels, the default, and no null elements; else three.
    two_threads: a second thread may encode some of the columns, default no; it does while fewer
        such files are open in the process than there are processors.
    """

@type_check_only
class RewriteSpec(TypedDict, total=False):
    """What is asked of `rewrite_base_file`."""

    appended: Any | None
    new_rows: Required[int]
    kept_rows: Required[int]

def rewrite_base_file(
    store: Store,
    path: str,
    merged: SliceSpec,
    rewrite: RewriteSpec,
    **spec: Unpack[BaseFileSpec],
) -> tuple[BaseFile, MergeStats]:
    """Writes a slice, merged, as a new base file, with the rows that are appended behind.

    Row groups that no record is merged into are copied as they are where they fit: those have the
    new file's schema, `kept_rows` or more, and more rows than all that is written anew. They come
    first.

    merged: as of `read_slice`; all columns, but for the file's name where `file_name` gives it.
    appended: a stream of batches. new_rows: how many rows those have, roughly.
    """

def write_base_files(
    store: Store,
    next_path: Callable[[], str],
    rows: Any,
    most_bytes: int,
    **spec: Unpack[BaseFileSpec],
) -> list[BaseFile]:
    """As `write_base_file`, in files of about `most_bytes` at most; none for no rows.

    next_path: gives the path of each file before its first row is written. file_name: any text
    for each file's own name, None for no names.
    """

def join_base_files(
    store: Store,
    next_path: Callable[[], str],
    slices: Sequence[SliceSpec],
    most_bytes: int,
    kept_rows: int,
    **spec: Unpack[BaseFileSpec],
) -> tuple[list[BaseFile], list[MergeStats]]:
    """As `write_base_files`, of the merged rows of slices, one slice after the other.

    Row groups are copied as by `rewrite_base_file`. slices: as of `read_slice`, each with all
    columns.
    """

def sort_rows(
    readers: list[BatchReader],
    *,
    columns: list[str],
    layout: Literal["linear", "zorder", "hilbert"],
    memory_limit: int,
) -> BatchReader:
    """All rows of readers of one schema, sorted when the first batch is asked for.

    columns: by what, nulls first; without any rows come as they are. layout: along which curve, if
    there are several columns. memory_limit: bytes of rows that are held; more go to local files.
    """

@final
class LogFile:
    """What was written to a log file."""

    @property
    def path(self) -> str: ...
    @property
    def size(self) -> int:
        """Bytes."""
    @property
    def records(self) -> int:
        """Records in data blocks."""
    @property
    def deletes(self) -> int:
        """Records in delete blocks."""

@type_check_only
class LogFilesSpec(TypedDict, total=False):
    """What `write_log_files` takes by name."""

    instant: Required[str]
    avro_schema: Required[str]
    rows: Any | None
    delete_keys: Any | None
    block_bytes: Required[int]
    file_bytes: Required[int]
    blocks: Required[Literal["avro", "parquet", "hfile", "cdc"]]
    codec: Required[Literal["gzip", "snappy", "zstd", "lz4_raw", "uncompressed"]]
    old_lists: bool
    partial: bool
    base_instant: str | None

def write_log_files(
    store: Store, next_path: Callable[[], str], **spec: Unpack[LogFilesSpec]
) -> list[LogFile]:
    """Writes new log files: data blocks of `rows`, then a delete block of `delete_keys`.

    next_path: called for the first file's path, and again whenever a file is full.
    rows: stream with the schema's columns, meta columns included; others are left out.
    delete_keys: stream of string columns record key and partition path. Columns whose names begin
        with `_pyhudi_ordering` (int32, int64, float32, float64, string, boolean) make the ordering
        value of a delete, one for each field; without a value it is Integer 0, which beats every
        record (a commit-time delete).
    block_bytes: a data block ends after so many bytes of records.
    file_bytes: a file with more bytes is full.
    blocks: what data blocks are; "cdc" for the records of a change log.
    codec, old_lists: of Parquet blocks.
    partial: the schema has some of the table's columns only.
    base_instant: of the base file whose rows the column `_pyhudi_base_row` of rows and deletes
        counts. A block tells positions when all its records have one and they rise.
    """

@type_check_only
class CompactedSpec(TypedDict, total=False):
    """What `compact_logs` takes by name."""

    partition: Required[str]
    instant: Required[str]
    avro_schema: Required[str]
    block_bytes: Required[int]
    blocks: Required[Literal["avro", "parquet", "hfile"]]
    codec: Required[Literal["gzip", "snappy", "zstd", "lz4_raw", "uncompressed"]]
    old_lists: bool

def compact_logs(
    store: Store, path: str, merged: SliceSpec, **spec: Unpack[CompactedSpec]
) -> LogFile | None:
    """Writes what the log files of a slice come to by themselves as one new log file.

    Of each key that record or delete stays that would meet the base file. The headers of its blocks
    list the instants of those that they stand for. None, and no file, where no block counts. All
    log records are in memory. Raises `UnsupportedTableFeature` where records are merged column by
    column.

    merged: as of `read_slice`, without a base file.
    partition: path of the slice's partition.
    """

def rollback_block(rollback_instant: str, target_instant: str) -> bytes:
    """The bytes of a rollback command block (table version 6)."""

def add_keys(
    rows: Any,
    *,
    key_fields: Sequence[str],
    key_prefixed: bool,
    partition_fields: Sequence[str] = ...,
    hive_style: bool = False,
    url_encode: bool = False,
    slash_dates: bool = False,
    partition_columns: Any = None,
) -> pa.Table:
    """The rows with the columns `_hoodie_record_key` and `_hoodie_partition_path` in front.

    Values are rendered as Hudi's Avro key generators do (as Java prints). `key_prefixed`: the key
    is `field:value,…` (complex generator), else the plain value of the one field. A null or empty
    key raises `SchemaMismatch` naming the field and row. `slash_dates`: `/` for `-` in paths of one
    field. `partition_columns`: a table with the partition fields, in place of those of the rows.
    """

def format_times(times: pa.Array[Any], pattern: Sequence[str]) -> pa.Array[Any]:
    """Local times (timestamp in milliseconds without a zone) as text, null as null.

    `pattern`: a Joda pattern in parts: runs of one letter (y Y M d D H h k K m s S), or `'` and the
    literal text after it.
    """

def parse_times(texts: pa.Array[Any], patterns: Sequence[Sequence[str]]) -> pa.StructArray:
    """Texts as a struct of `time` (local, milliseconds) and `offset` (minutes, null without one).

    The first pattern (letters y Y M d H m s S Z) that takes a whole text wins. Raises
    `SchemaMismatch` with the row of a text that none takes.
    """

def combine(
    rows: Any,
    *,
    ordering_fields: Sequence[str],
    merge_mode: BuiltInMode,
    sequence_ordering: bool = False,
    delete_rule: tuple[str, str] | None = None,
) -> pa.Table:
    """One row a (`_hoodie_partition_path`, `_hoodie_record_key`), as Hudi combines a batch.

    EVENT_TIME_ORDERING keeps the row with the greatest ordering value (ties: the later row),
    COMMIT_TIME_ORDERING the last row. The order of first appearance is kept. Deletes take part like
    other rows; one whose value is 0 or null wins over what comes before it and loses to what comes
    after it. sequence_ordering: the value is text of two numbers, `file.position`. delete_rule:
    field and marker of the deletes beside those that `_hoodie_is_deleted` marks.
    """

def key_parts(keys: Any, parts: int) -> pa.Int32Array:
    """For each key (Arrow data of one string column) one of `parts` numbers from 0, by its hash.

    Equal keys have equal numbers, in every process.
    """

def parts_with_keys(keys: Any, parts: int) -> pa.BooleanArray:
    """For each of `parts` numbers whether `key_parts` gives it for one of the keys."""

def with_meta_columns(
    rows: Any,
    *,
    instant: str,
    task: int,
    first_row: int,
    file_name: str,
    populated: bool = True,
) -> BatchReader:
    """Rows that have key and partition columns with all five meta columns in front.

    The sequence number is `<instant>_<task>_<counter>`, counting from `first_row`. populated: false
    leaves the five null, as Hudi's files have them where keys are virtual.
    """

def arrow_schema(avro_schema: str) -> pa.Schema:
    """The Arrow schema that pyhudi reads records of an Avro schema as."""

def nearest_rows(
    column: pa.Array[Any], query: Sequence[float], k: int, *, metric: str, within: float | None
) -> tuple[pa.Int64Array, pa.DoubleArray]:
    """The rows of a VECTOR column that are nearest to `query`, nearest first, and their distances.

    At most `k`; rows without a vector, and those not nearer than `within`, are left out. metric:
    "l2", "cosine" or "dot". Raises `SchemaMismatch` for a column without vectors of that length.
    """

def blob_roots(column: pa.Array[Any], name: str) -> list[str]:
    """The storages that references of a BLOB column name: "s3://bucket", "file://".

    "" stands for absolute paths without a scheme. name: the column's. Raises `SchemaMismatch` for
    another column, `CorruptTable` for a reference that names no file.
    """

def read_blobs(
    column: pa.Array[Any],
    name: str,
    stores: Mapping[str, Store],
    *,
    first_row: int,
    start: int,
    most_bytes: int,
) -> pa.BinaryArray:
    """The bytes of a BLOB column from row `start` on, of as many rows as fit, one at least.

    stores: by the roots of `blob_roots`. first_row: number of the column's first row in messages.
    Raises `CorruptTable` for a row that contradicts itself, and for a file that is too short,
    `MissingFile` for one that is not there.
    """

def check_variants(column: pa.Array[Any], name: str) -> None:
    """Raises `SchemaMismatch` for a value that is no whole VARIANT. name: the column's."""

def variants_from_json(texts: pa.Array[Any]) -> pa.StructArray:
    """VARIANT values of JSON texts. Raises `SchemaMismatch` for a text that is no JSON."""

def variants_to_json(column: pa.Array[Any]) -> pa.StringArray:
    """JSON texts of VARIANT values. Raises `CorruptTable` for a damaged value."""

def avro_schema(schema: pa.Schema, record_name: str, namespace: str) -> str:
    """The Avro schema that Hudi's Spark writer makes for such columns."""

def with_meta_fields(avro_schema: str) -> str:
    """The Avro schema with the five `_hoodie_` fields in front, unless they are there."""

def without_meta_fields(avro_schema: str) -> str:
    """The Avro schema without `_hoodie_` meta fields."""

def container_to_json(data: bytes) -> tuple[str, str]:
    """An Avro object container file as (schema text, JSON array of its records)."""

def avro_file_rows(data: bytes) -> pa.Table:
    """The rows of an Avro object container file, with codec null or deflate.

    Raises `CorruptTable` for damaged bytes, `UnsupportedTableFeature` for another codec and for
    types that Arrow batches cannot hold here.
    """

def avro_rows(schema: str, records: pa.LargeBinaryArray, *, skip: int) -> pa.Table:
    """The rows of Avro records of one writer schema, each without a header of `skip` bytes.

    Raises as `avro_file_rows` does.
    """

def commit_files(
    contents: Sequence[bytes],
) -> list[list[tuple[str, str, str, str | None, int, bool, list[tuple[str, int]]]] | None]:
    """The files that commits name, of the contents of their completed files, JSON or Avro.

    For each write statistic that names files: partition path, path ("" where only change logs are
    named), file id, name of the slice's base file, size, whether there was something to write, and
    paths and sizes of change logs. None for content that is damaged or has values of other types.
    """

def json_to_container(schema: str, records: str, sync_marker: bytes) -> bytes:
    """An Avro object container file of a JSON array of records, with just this schema text."""

def shown_text(column: pa.Array[Any], name: str) -> pa.StringArray:
    """A column as text, as Spark casts it at UTC; null where it is null.

    name: the column's, for messages. Raises `SchemaMismatch` for binary and nested columns.
    """

@final
class KnownStats:
    """Statistics of files, for `MetadataRecorder.file_facts`."""

@final
class KeptStats:
    """Statistics of the same columns of files that stay in memory; files never change."""

    def __new__(cls) -> KeptStats: ...
    def __len__(self) -> int: ...

@final
class FileGroupsBuilder:
    """The data files of a table as they are listed, in any order."""

    def __new__(cls, extension: str | None = None) -> FileGroupsBuilder:
        """`extension`: that of base files: parquet, orc or hfile. None: parquet and orc."""

    def add(self, partition: str, entries: Sequence[tuple[str, int, int]]) -> str | None:
        """Adds a partition with its files; other files than data files are ignored.

        Returns the first name of a base file of another format, or of another writer; then the
        groups are of no use.
        """

    def add_metadata(self, listing: MetadataPartition, partitions: Mapping[str, str]) -> str | None:
        """Adds the files that a `files` partition lists. partitions: their paths by key.

        Returns as `add`.
        """

    def finish(self) -> FileGroups:
        """The groups of all files; the builder is empty then."""

@final
class FileGroups:
    """File groups by partition path and file id, committed or not. Change logs are left out."""

    def __len__(self) -> int: ...
    def with_change_logs(self, change_logs: bool) -> FileGroups:
        """The same groups, with change logs among their files or without."""

    def partitions(self) -> list[str]:
        """Paths of all partitions, sorted."""

    def keys(self) -> list[tuple[str, str]]:
        """Partition path and file id of each group; also of those with change logs alone."""

    def has_group(self, partition: str, file_id: str) -> bool: ...
    def files(self, partition: str, file_id: str) -> list[FileParts] | None:
        """The files of a group, in the order of their listing. None if there is no such group."""

    def has_file(self, partition: str, name: str) -> bool: ...
    def absent(self, paths: Sequence[str]) -> list[int]:
        """Positions of the paths without such a file."""

    def absent_of(self, listing: MetadataPartition, partitions: Mapping[str, str]) -> list[str]:
        """Paths that a `files` partition lists and that are not among the files.

        partitions: the paths of those to compare, by key.
        """

    def total(self) -> tuple[int, int]:
        """Number and bytes of all files."""

    def files_in(self, partition: str) -> int:
        """Number of a partition's files."""

@final
class SliceFinder:
    """Finds the slices of groups on a timeline."""

    def __new__(
        cls,
        groups: FileGroups,
        *,
        is_committed: Callable[[str], bool],
        completion_time: Callable[[str], str],
        logs_named_by_base_instant: bool,
        compactions: Sequence[tuple[tuple[str, str], str]],
    ) -> SliceFinder:
        """`is_committed`: called once for each instant in a name of the groups that are asked for.

        completion_time: when a committed instant was completed; called only if the result matters.
        logs_named_by_base_instant: as up to table version 6. compactions: groups with a pending
        compaction, and its instant.
        """

    def find(self, selection: Selection, without: Sequence[tuple[str, str]]) -> FileSlices:
        """Slices of all groups, in their order. without: groups to leave out."""

    def find_versions(
        self, without: Sequence[tuple[str, str]], also: Sequence[tuple[str, str]]
    ) -> FileSlices:
        """Every slice of the groups that may have several, and of those in `also`."""

    def find_one(self, partition: str, file_id: str) -> FileSlices:
        """Every slice of one group, newest first."""

    def newest_base(self, partition: str, file_id: str) -> str | None:
        """The instant of the newest committed base file of a group."""

@final
class FileSlices:
    """File slices, as numbers of their files."""

    def __len__(self) -> int: ...
    def parts(self, start: int, end: int) -> list[SliceParts]:
        """The slices from `start` up to `end`."""

    def file_paths(self) -> list[tuple[str, str, list[tuple[str, bool]]]]:
        """Partition path, file id and files of each slice: path, and whether it is a log file."""

    def take(self, numbers: Sequence[int]) -> FileSlices:
        """The slices of these numbers, in their order."""

    def filter(self, keep: pa.BooleanArray) -> FileSlices:
        """The slices whose flag is true."""

    def with_logs(self) -> FileSlices:
        """The slices with log files."""

    def partitions(self) -> list[str]:
        """Paths of the partitions with a slice, sorted."""

    def totals(self) -> tuple[int, int, int, int]:
        """Number and bytes of base files, number and bytes of log files."""

    def in_groups(self, keys: Sequence[tuple[str, str]]) -> pa.BooleanArray:
        """Whether each slice is of one of these groups."""

    def in_partitions(self, paths: Sequence[str]) -> pa.BooleanArray:
        """Whether each slice is in one of these partitions."""

    def have_logs(self) -> pa.BooleanArray:
        """Whether each slice has log files."""

    def file_ids(self) -> pa.StringArray:
        """The file id of each slice."""

    def files(self) -> pa.RecordBatch:
        """All files of the slices: columns slice (its number), partition, name."""

    def any_file(self, of_files: pa.BooleanArray) -> pa.BooleanArray:
        """Whether each slice has a file whose flag is true, of the rows of `files`."""

    def sizes(self) -> pa.RecordBatch:
        """Columns partition (a dictionary), base_size (null without base file), logs (their
        number), log_size.
        """

    def rows(self, start: int, end: int) -> pa.RecordBatch:
        """Columns partition, file_id, base_instant, base_file, base_size, log_files, log_size."""

@final
class LookupCache:
    """What look-ups of record keys in a table keep in memory, for all of its snapshots."""

    def __new__(cls, max_bytes: int) -> LookupCache:
        """max_bytes: about how much is kept at most."""

    @property
    def bytes(self) -> int:
        """How much is kept, by estimate."""

@final
class KeyReader:
    """Reads the rows of record keys from one snapshot of a table that stores its keys."""

    def __new__(
        cls, cache: LookupCache, output: pa.Schema, index: MetadataPartition | None = None
    ) -> KeyReader:
        """A reader of slices that are added to it.

        output: the columns of the rows.
        index: the record index of the snapshot.
        """

    def find(
        self, keys: Sequence[str], threads: int, *, by_slice: bool = False
    ) -> tuple[pa.RecordBatch | None, list[tuple[str, str]] | None, bool]:
        """The rows of keys that the index locates, in the order of the keys.

        by_slice: in the order of the file slices and of their rows instead.

        Partition path and file id of slices that are to be added first, and then no rows; None if
        the index cannot be read. Whether the index was read from storage.
        threads: how many slices are read at a time.
        """

    def unknown(self, places: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Those of the slices that were not added yet."""

    @overload
    def add(self, partition: str, file_id: str) -> None: ...
    @overload
    def add(
        self,
        partition: str,
        file_id: str,
        store: Store | None = None,
        from_path: pa.RecordBatch | None = None,
        **spec: Unpack[SliceSpec],
    ) -> None:
        """Adds a slice. Without a store it has no rows.

        from_path: one row of the columns whose values are those of the partition path.
        spec: as in `read_slice`; its columns include `_hoodie_record_key`.
        """

    def read(
        self, keys: Sequence[str], places: Sequence[tuple[str, str]], threads: int
    ) -> pa.RecordBatch:
        """The rows of slices that have one of the keys, in the order of the keys."""

@final
class MetadataPartition:
    """One partition of the metadata table: records by key, merged by the payload's rules.

    Reading a damaged file raises `CorruptTable`.
    """

    def __new__(
        cls,
        store: Store,
        groups: Sequence[tuple[str | None, Sequence[str]]],
        *,
        valid_instants: Sequence[str] | None = None,
        timeline_start: str | None = None,
    ) -> MetadataPartition:
        """`groups`: base file and log files (oldest first) of every file group by file id, since
        the hash of a key counts them. `valid_instants`, `timeline_start`: as for `read_slice`.
        """

    def keeping(self, max_bytes: int) -> MetadataPartition:
        """The same, which keeps up to about that much of what it reads of keys in memory."""

    def files(self, keys: Sequence[str] | None = None) -> pa.RecordBatch:
        """Of the `files` partition: columns partition (the key), name, size, is_deleted.

        Keys are partition paths, `.` for "", and `__all_partitions__`, whose names are the
        partitions.
        """

    def locations(self, keys: Sequence[str] | None = None) -> pa.RecordBatch:
        """Of a record index: columns key, partition, file_id, instant (epoch milliseconds).

        Keys that it lacks are left out. None: all.
        """

    def key_locations(self, keys: Any) -> tuple[pa.Int64Array, list[tuple[str, str]]]:
        """Of a record index of one file group, which all of these keys hash to.

        Returns for each key the number of its location, null if the index lacks it, and the
        locations: partition path and file id.
        """

    def secondary(
        self, values: Sequence[str] | None = None, *, hashed_by_value: bool
    ) -> pa.RecordBatch:
        """Of a secondary index: columns value, record_key. None: all entries.

        hashed_by_value: the hash of keys is over the value alone (index version 2).
        """

    def stats(
        self,
        column: str,
        value_type: pa.DataType,
        partitions: Any,
        files: Any | None = None,
        *,
        of_values: bool = False,
    ) -> pa.RecordBatch:
        """Of statistics: one row for each of `files` (names) in `partitions`, else each partition.

        of_values: all values were looked at, and not the footers of files, which may lack some.

        Columns min, max (of value_type, null where not known for certain), only_nulls, null_count,
        value_count (nulls included).
        """

    def all_stats(self, column: str, value_type: pa.DataType) -> pa.RecordBatch:
        """All statistics of a column: file_name, then the columns of `stats`."""

    def known_stats(
        self,
        files: Sequence[tuple[str, str]],
        columns: pa.Schema,
        kept: KeptStats | None = None,
    ) -> KnownStats:
        """Of `column_stats`: what it has of the columns of files, given as data partition and path.

        Each file of the index is read once, so ask for all files together. kept: of these columns;
        files that it has are not looked up, and others are added.
        """

    def may_contain(self, partitions: Any, files: Any, keys: Sequence[str]) -> pa.Array:
        """Of bloom filters: whether each file may hold one of the keys, null without a filter."""

def write_hfile(keys: Sequence[str], values: Sequence[bytes], schema: str) -> bytes:
    """The bytes of an HFile as Hudi 1.1 and later write it: keys rising, values of an Avro schema.

    Raises `SchemaMismatch` for keys that do not rise in byte order, or are too long.
    """

def possible_bucket_ids(keys: Sequence[str], fields: Sequence[str], buckets: int) -> list[int]:
    """The buckets in which records of these keys can be (simple bucket index).

    fields: those of the hash; none for all of the key's.
    """

def bucket_numbers(keys: Any, fields: Sequence[str], buckets: int, *, scan: bool) -> pa.Array[Any]:
    """The bucket number of each record key (simple bucket index); null for null.

    keys: text. fields: the key fields that are hashed, none for all. scan: field values are cut out
    of keys as Hudi 1.x does (else: as 0.15.0).
    """

def consistent_hashes(keys: Any, fields: Sequence[str], *, scan: bool) -> pa.Array[Any]:
    """The consistent hash of each record key. Arguments are those of `bucket_numbers`."""

def spark_hashes(values: Any) -> pa.Array[Any]:
    """The hash of each value in Spark SQL, `hash(x)`, which is 42 for null.

    values: int32, int64 or text.
    """

def initial_hash_nodes(partition: str, buckets: int) -> list[tuple[int, str]]:
    """Last hash and file id prefix of each hash node that a partition starts with."""

def text_hash(text: str) -> int:
    """The 64-bit xxHash of a text with Hudi's seed (`HashID.Size.BITS_64`)."""

def json_shape(
    text: pa.Array[Any], *, apart: Sequence[str], most_depth: int, most_names: int
) -> tuple[int, int]:
    """How deep JSON is nested, and how many different names it has, up to where either is too much.

    text: one value of large_binary. apart: columns whose own names are not counted.
    """

def metadata_groups(keys: Any, groups: int) -> pa.Array[Any]:
    """The number of the file group that each key hashes to, among those of a metadata partition."""

def scatter(rows: pa.Array[Any], values: pa.Array[Any], length: int) -> pa.Int64Array:
    """Each value at its row, null elsewhere; of several values of a row the last. All int64."""

def footer_candidates(store: Store, path: str, keys: Any) -> pa.Array[Any]:
    """For each key whether a base file may hold it, by filter and key range in its footer.

    False is certain. A file that has neither may hold anything.
    """

def filter_candidates(
    filters: MetadataPartition, partition: str, file: str, keys: Any
) -> pa.Array[Any] | None:
    """The same by the metadata table's `bloom_filters`; None where it has no filter of the file."""

def possible_consistent_hashes(keys: Sequence[str], fields: Sequence[str]) -> list[int]:
    """The hashes of these keys, by which a consistent-hashing index finds their nodes."""

def base_file_schema(store: Store, path: str) -> tuple[str | None, pa.Schema]:
    """A base file's Avro schema (`parquet.avro.schema`, `orc.avro.schema`; None where absent) and
    its Arrow schema.
    """

def base_file_rows(store: Store, path: str) -> int:
    """How many rows a base file's footer says that it has."""

def verify_base_file(store: Store, path: str) -> str:
    """Compares a base file with its checksums. What these cover: "whole", all bytes; "pages", the
    contents of all pages; "partial", less.
    """

def verify_log_file(store: Store, path: str) -> tuple[str, int | None]:
    """Compares a log file with its checksums. What these cover, "whole" or "partial", and the
    offset of the first block that readers pass over, None without any.
    """

def verify_hfile(store: Store, path: str) -> str:
    """Compares an HFile with its checksums. What these cover: "whole" or "partial"."""

def columns_for_spark(store: Store, path: str, told: Any) -> pa.Schema:
    """The columns of a Parquet base file that Spark's own reader gives with the same types and
    values: no nested ones, none of another calendar, codec or encoding than Spark 3.5 reads.

    told: one row with the values that all rows are to have in its columns. Such a column is left
        out unless statistics show that it has that value in all rows.
    """

def has_partial_records(store: Store, logs: Sequence[str]) -> bool:
    """Whether any block of these log files holds records of some columns only."""

def log_blocks(store: Store, path: str) -> list[dict[str, Any]]:
    """The blocks of a log file: type, offset, size, content_offset, content_size, header."""

def log_records(store: Store, path: str) -> list[str]:
    """The records of a log file's Avro blocks, each as JSON text with unions unwrapped.

    For log files that hold metadata, such as archived timelines; rows are read by `read_slice`.
    Corrupt blocks are passed over.
    """

def archive_block(schema: str, records: str) -> bytes:
    """The bytes of a log block of archived instants: a JSON array of records of an Avro schema."""

@final
class MetadataRecorder:
    """Makes records of one metadata table, as record rows: columns route (partition and number of
    the file group that the key hashes to, as `files/0`), key, and value (Avro, null to delete).
    """

    def __new__(cls, avro_schema: str, groups: Mapping[str, int]) -> MetadataRecorder:
        """`avro_schema`: of the records, with meta fields. `groups`: for each partition of the
        metadata table the number of its file groups.
        """

    def files(
        self, entries: Sequence[tuple[str, str, int, bool]], *, keys: Sequence[str] = ...
    ) -> pa.RecordBatch:
        """Of `files`: entries of key, name, size in bytes, and whether it is gone.

        keys: those that have a record also without entries.
        """

    def file_facts(
        self,
        store: Store,
        partition: str,
        files: Sequence[_WrittenFile],
        *,
        columns: pa.Schema,
        value_types: bool,
        partition_stats: bool,
        bloom_filters: bool,
        instant: str,
        rest: tuple[Sequence[_WrittenFile], KnownStats] | None = None,
    ) -> pa.RecordBatch:
        """Of `column_stats`, `partition_stats` and `bloom_filters`, for files of one data
        partition.

        columns: those with statistics, none for no statistics; value_types: the form of index
        version 2; rest: the files of the partition that stay, and what `column_stats` had of these
        columns of them, for bounds of the partition that are tight. Raises `CorruptTable` for a
        damaged file.
        """

    def forget_files(
        self,
        index: str,
        partition: str,
        names: Sequence[str],
        *,
        columns: Sequence[str],
        filters: bool,
    ) -> pa.RecordBatch:
        """Takes away what a partition of the metadata table says of files that are gone.

        partition: of the data, names: of its files; columns: those with statistics there, filters:
        whether it has bloom filters.
        """

    def locations(
        self,
        partition: str,
        file_id: str,
        instant_ms: int,
        *,
        added: Any,
        removed: Any,
        groups: tuple[int, int] | None = None,
    ) -> pa.RecordBatch:
        """Of `record_index`: keys that came to a file group, and keys that left the table.

        groups: where the index is one by data partition, number of this one's first file group, and
        how many it has.
        """

    def expression_stats(
        self,
        index: str,
        column: str,
        partition: str,
        files: pa.RecordBatch,
        *,
        value_types: bool,
        tight: bool,
    ) -> pa.RecordBatch:
        """Of an `expr_index_…` with statistics, for files of one data partition, and of that.

        files: name, size in bytes, nulls, values (not null), min and max; a row for each file with
        rows. value_types: index version 2. tight: the files are all that the partition holds, else
        readers widen by them what they knew of it.
        """

    def expression_filter(
        self,
        index: str,
        partition: str,
        name: str,
        instant: str,
        values: Any,
        *,
        simple: bool,
        entries: int,
        fpp: float,
        max_entries: int,
        passes_all: bool,
    ) -> pa.RecordBatch:
        """Of an `expr_index_…` with bloom filters: that of one file, over values as text.

        simple: SIMPLE, else DYNAMIC_V0. passes_all: it lets everything through.
        """

    def secondary(
        self, index: str, *, hashed_by_value: bool, before: Any | None, after: Any | None
    ) -> pa.RecordBatch:
        """Of a `secondary_index_…`: what differs between the rows of a file group before and after.

        before, after: streams of record key and value (text or whole number), None for no rows.
        hashed_by_value: index version 2.
        """

def write_metadata_base(store: Store, path: str, rows: Any, *, avro_schema: str) -> BaseFile:
    """Writes a base file of the metadata table, an HFile, with the record rows of one file group.

    Raises `CorruptTable` for keys that are too long.
    """

def write_metadata_log(
    store: Store,
    path: str,
    rows: Any | None = None,
    *,
    instant: str,
    avro_schema: str,
    partition: str,
) -> LogFile:
    """Writes a log file of the metadata table with the record rows of one file group.

    Of rows with one key a record beats a deletion. Without rows it has an empty delete block.
    """

def compact_metadata_group(group: MetadataPartition, path: str, *, avro_schema: str) -> BaseFile:
    """Writes the merged records of a file group of the metadata table as a base file (HFile).

    group: opened by itself; the file goes to its store. Raises `CorruptTable` for damaged files,
    and for bounds of a column that do not compare.
    """

def statistics_gaps(
    store: Store,
    partition: str,
    files: Sequence[_WrittenFile],
    *,
    columns: pa.Schema,
    of_files: MetadataPartition,
    whole: MetadataPartition | None = None,
) -> pa.RecordBatch:
    """Where statistics of files say too little, or nothing.

    Of a skeleton only too little: Hudi has none of its source's columns. Columns file ("" for the
    partition's own statistics, by `whole`), column, expected, found (null where there are none).
    Footers are read, and the values of floating columns.
    """
