"""`expr_index_…`: bounds, or a bloom filter, of an expression's values in each file.

Every file has its own records, also a log file. Rules: `SparkMetadataWriterUtils` (Hudi 1.0.2 and
1.2.0).

Values are used as far as they are certain without Spark. Arrow computes most functions as Spark
does, with two exceptions: the string of a time depends on a session's time zone, which is not
recorded, and the case of strings that are not ASCII depends on the Java release. Then bounds are
wide enough for every case, and filters match everything: no row is missed, less is pruned. Other
functions are not supported. Functions: `HoodieSparkExpressionIndex`,
`ExpressionIndexSparkFunctions` (Hudi 1.0.2 and 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from pyhudi.config.metadata_names import BLOOM_FILTERS, COLUMN_STATS
from pyhudi.config.table_config import TableConfig
from pyhudi.config.write_options import WriteOptions
from pyhudi.metadata.changed_slices import read_columns, split_by_file
from pyhudi.metadata.expression_predicates import (
    DEFAULT_FORMAT,
    conjuncts_for_index,
    unixtime_bounds,
)
from pyhudi.metadata.index_definitions import Definitions, IndexDefinition, new_definition
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.initial_records import InitialPartition, Source
from pyhudi.metadata.partition_types.base import (
    Change,
    CleanChange,
    DefinitionContext,
    MetadataPartitionType,
    check_log_support,
)
from pyhudi.metadata.partition_types.file_stats import DeletedFilesTask, find_removed_files
from pyhudi.metadata.pruning_context import PruningContext, SliceLookup
from pyhudi.metadata.record_tasks import RecordTask, RecordTaskContext
from pyhudi.metadata.slice_pruning import slices_in_filters, slices_within_bounds
from pyhudi.schema.key_predicates import find_allowed_values
from pyhudi.slices.read import open_slice
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.storage.storage import Storage
from pyhudi.table.participants import Clean

_SIMPLE = "SIMPLE"
_DYNAMIC = "DYNAMIC_V0"

_FILTER_OPTIONS = frozenset({"filtertype", "numentries", "fpp", "maxentries"})


@dataclass(frozen=True)
class FilterOptions:
    """Type and size of the bloom filters of an expression index, from its definition's options.

    Names and meanings: `HoodieExpressionIndex.BLOOM_FILTER_CONFIG_MAPPING` (Hudi 1.2.0); the
    defaults are those of a base file's filter.
    """

    simple: bool = False
    """Whether the type is SIMPLE, else DYNAMIC_V0."""
    entries: int = WriteOptions.bloom_entries
    fpp: float = WriteOptions.bloom_fpp
    max_entries: int = WriteOptions.bloom_max_entries

    @classmethod
    def of(cls, options: Mapping[str, str]) -> FilterOptions:
        """Read options that `find_unsupported` accepts."""
        return cls(
            simple=options.get("filtertype", _DYNAMIC).upper() == _SIMPLE,
            entries=int(options.get("numentries", cls.entries)),
            fpp=float(options.get("fpp", cls.fpp)),
            max_entries=int(options.get("maxentries", cls.max_entries)),
        )

    @staticmethod
    def find_unsupported(options: Mapping[str, str]) -> str | None:
        """Return what is wrong with the options of a filter; None if they are valid."""
        filter_type = options.get("filtertype", _DYNAMIC)
        if filter_type.upper() not in (_SIMPLE, _DYNAMIC):
            return f"its filtertype is {filter_type}"
        for name in ("numentries", "maxentries"):
            count = options.get(name, "1")
            if not (count.isascii() and count.isdecimal() and 0 < int(count) < 1 << 31):
                return f"its {name} is {count}"
        stored_rate = options.get("fpp", "0.1")
        try:
            rate = float(stored_rate)
        except ValueError:
            rate = 0.0
        return None if 0 < rate < 1 else f"its fpp is {stored_rate}"


@dataclass(frozen=True)
class ExpressionTask(RecordTask):
    """The files of one data partition in one index."""

    definition: IndexDefinition
    partition: str
    files: tuple[tuple[str, int, ReadTask], ...]
    """Name, bytes, and the task that reads the column of this file only."""
    instant: str
    tight: bool
    """The files are all files of the partition."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield a filter for each file, or bounds of each file and of the partition."""
        yield from (_filters if self.definition.index_type == BLOOM_FILTERS else _statistics)(self)


class ExpressionIndex(MetadataPartitionType):
    """One index for each function of a column."""

    name = "expr_index_"
    lookup_cost = 4
    has_names = True
    needs_parquet = True
    needs_definitions = True
    depends_on_column_names = True

    def define(self, storage: Storage, config: TableConfig, request: IndexRequest) -> Definitions:
        name, function = self.name + request.name_for(config), (request.function or "").lower()
        options = {"expr": function, **(request.options or {})}
        return new_definition(config, name, request.index_type, function, request.columns, options)

    def find_unsupported(self, name: str, table: DefinitionContext) -> str | None:
        """Return why values would be uncertain without Spark, or why Hudi's writers would fail."""
        definition = table.definitions.get(name)
        if definition is None:
            return "the index definitions do not contain it"
        if definition.index_type not in (COLUMN_STATS, BLOOM_FILTERS):
            return f"its type is {definition.index_type}"
        if len(definition.columns) != 1 or definition.columns[0] not in table.schema.names:
            return f"it is of {', '.join(definition.columns)}, which is not a column"
        reason = find_unsupported_value(definition, table.schema.field(definition.columns[0]).type)
        if reason is None and definition.index_type == BLOOM_FILTERS:
            reason = FilterOptions.find_unsupported(definition.options)
            if table.config.is_merge_on_read:
                # HoodieMetadataPayload.createBloomFilterMetadataRecord takes base files only.
                reason = reason or "Hudi's writers fail on a log file under such bloom filters"
        return reason or check_log_support(table.config)

    def initial(self, source: Source, name: str) -> InitialPartition:
        """Return records of the newest slices' files (`initializeExpressionIndexPartition`)."""
        groups = source.options.expression_groups
        return InitialPartition(name, groups, _tasks(source, name, groups))

    def catch_up(
        self, before: Source, now: Source, name: str, groups: Sequence[FileGroup]
    ) -> Sequence[RecordTask]:
        """Return records of the files that were added, and remove those of deleted ones."""
        indexed_files = {
            (slice_.partition, file)
            for slice_ in before.slices
            for file, _, _ in split_by_file(slice_)
        }
        tasks: list[RecordTask] = [*_tasks(now, name, len(groups), indexed_files)]
        removed, definition = find_removed_files(before, now), now.definitions[name]
        if removed is not None:
            tasks.append(_forget(now.task_context({name: len(groups)}), definition, removed))
        return tasks

    def on_commit(self, change: Change, name: str) -> Iterator[ExpressionTask]:
        """Return records of the commit's files, one task for each partition."""
        definition = change.definitions.get(name)
        if definition is None:
            return
        for path, files in change.rows.files.items():
            reads = tuple(
                (file, size, change.rows.read(file_slice, definition.columns))
                for file, size, file_slice in files
            )
            yield ExpressionTask(
                change.task_context, definition, path, reads, change.instant, tight=False
            )

    def on_clean(self, cleaned: CleanChange, name: str) -> Iterator[DeletedFilesTask]:
        definition = cleaned.definitions.get(name)
        if definition is not None:
            yield _forget(cleaned.task_context, definition, cleaned.clean)

    def lookups(self, context: PruningContext, name: str) -> Iterator[tuple[str, SliceLookup]]:
        definition = context.definitions.get(name)
        if definition is None or not context.has_stable_names:
            return
        tests = (
            test
            for stored_conjuncts in context.stored_conjuncts
            for test in conjuncts_for_index(definition, stored_conjuncts)
        )
        for conjunct in tests:
            if definition.index_type == COLUMN_STATS:
                look = partial(slices_within_bounds, conjunct=conjunct, partition=name)
                yield name, context.without_custom_merges(look)
            elif definition.index_type == BLOOM_FILTERS:
                values = find_allowed_values([conjunct], conjunct[0])
                if values is not None:
                    yield name, partial(slices_in_filters, keys=values, partition=name)


def _tasks(
    source: Source, name: str, groups: int, indexed_files: Collection[tuple[str, str]] = ()
) -> list[ExpressionTask]:
    """Return records of the newest slices' files, without those that the index has."""
    definition = source.definitions[name]
    files: dict[str, list[tuple[str, int, ReadTask]]] = {}
    for slice_ in source.slices:
        for file, size, file_slice in split_by_file(slice_):
            if (slice_.partition, file) not in indexed_files:
                read = read_columns(source.table, file_slice, definition.columns)
                files.setdefault(slice_.partition, []).append((file, size, read))
    task_context, instant = source.task_context({name: groups}), source.last_instant
    return [
        ExpressionTask(
            task_context, definition, path, tuple(slice_files), instant, tight=not indexed_files
        )
        for path, slice_files in files.items()
    ]


def _forget(
    task_context: RecordTaskContext, definition: IndexDefinition, clean: Clean
) -> DeletedFilesTask:
    columns = definition.columns if definition.index_type == COLUMN_STATS else ()
    filters = definition.index_type == BLOOM_FILTERS
    return DeletedFilesTask(task_context, definition.name, clean, tuple(columns), filters)


def _filters(task: ExpressionTask) -> Iterator[pa.RecordBatch]:
    """Yield a filter for each file with rows."""
    options = FilterOptions.of(task.definition.options)
    for name, _, read in task.files:
        values = filter_values(task.definition, open_slice(read))
        if values is None:
            continue
        yield task.task_context.record_builder().expression_filter(
            task.definition.name,
            task.partition,
            name,
            task.instant,
            values.strings,
            simple=options.simple,
            entries=options.entries,
            fpp=options.fpp,
            max_entries=options.max_entries,
            passes_all=values.is_incomplete,
        )


def _statistics(task: ExpressionTask) -> Iterator[pa.RecordBatch]:
    """Yield the statistics of each file with rows, and of the partition."""
    read = (
        (name, size, value_bounds(task.definition, open_slice(read)))
        for name, size, read in task.files
    )
    stats = [(name, size, bounds) for name, size, bounds in read if bounds is not None]
    if not stats:
        return
    yield task.task_context.record_builder().expression_stats(
        task.definition.name,
        task.definition.columns[0],
        task.partition,
        _batch(stats),
        value_types=task.definition.version > 1,
        tight=task.tight,
    )


def _batch(stats: list[tuple[str, int, Bounds]]) -> pa.RecordBatch:
    data_type = stats[0][2].data_type
    columns: dict[str, pa.Array[Any]] = {
        "name": pa.array([name for name, _, _ in stats], pa.string()),
        "size": pa.array([size for _, size, _ in stats], pa.int64()),
        "nulls": pa.array([bounds.nulls for _, _, bounds in stats], pa.int64()),
        "values": pa.array([bounds.values for _, _, bounds in stats], pa.int64()),
        "min": pa.array([bounds.min for _, _, bounds in stats], data_type),
        "max": pa.array([bounds.max for _, _, bounds in stats], data_type),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


# --- values of expressions ------------------------------------------------------------------------


_FROM_UNIXTIME = "from_unixtime"
_MAX_CHARACTER = "\U0010ffff"
_MAX_GROWTH = 3
"""Maximum number of characters that one can become in another case."""
_LONGEST_TIME = 64
"""Maximum length of a time as a string."""

_Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Bounds:
    """Bounds of an expression's values in one file."""

    min: Any
    max: Any
    nulls: int
    values: int
    """The number of values that are not null."""
    data_type: pa.DataType


@dataclass(frozen=True)
class FilterValues:
    """The values of one file as strings."""

    strings: pa.Array[Any]
    is_incomplete: bool
    """Whether the file has values that are not among `strings`."""


def _date_part(part: _Function, years: int = 0) -> _Function:
    """Return the function for dates in 400 years, after which all parts but the year repeat.

    Arrow counts years in 16 bits. years: what the part grows by in that time.
    """

    def of_dates(dates: Any) -> Any:
        days = dates.cast(pa.int32()).cast(pa.int64())
        cycles = pc.floor(pc.divide(days.cast(pa.float64()), _DAYS_OF_400_YEARS)).cast(pa.int64())
        rest = pc.subtract(days, pc.multiply(cycles, _DAYS_OF_400_YEARS))
        parts = part(rest.cast(pa.int32()).cast(pa.date32()))
        return pc.add(parts, pc.multiply(cycles, years)).cast(pa.int32())

    return of_dates


_DAYS_OF_400_YEARS = 146_097


_CASE_FUNCTIONS: Mapping[str, _Function] = {"lower": pc.ascii_lower, "upper": pc.ascii_upper}
_STRING_FUNCTIONS: Mapping[str, _Function] = {
    "length": pc.utf8_length,
    "trim": lambda strings: pc.utf8_trim(strings, " "),
    "ltrim": lambda strings: pc.utf8_ltrim(strings, " "),
    "rtrim": lambda strings: pc.utf8_rtrim(strings, " "),
}
_DATE_FUNCTIONS: Mapping[str, _Function] = {
    "year": _date_part(pc.year, 400),
    "month": _date_part(pc.month),
    "day": _date_part(pc.day),
}
_EXACT_FUNCTIONS: Mapping[str, _Function] = {
    **_STRING_FUNCTIONS,
    **_DATE_FUNCTIONS,
    "identity": lambda column: column,
}


def find_unsupported_value(definition: IndexDefinition, data_type: pa.DataType) -> str | None:
    """Return why expressions over a column of that type are not supported; None if they are."""
    if _is_supported(definition, data_type):
        return None
    return f"it is of the function {definition.function} over {data_type}"


def _is_supported(definition: IndexDefinition, data_type: pa.DataType) -> bool:
    is_string = bool(at.is_string(data_type))
    is_integer = bool(at.is_int32(data_type) or at.is_int64(data_type))
    has_filters = definition.index_type == BLOOM_FILTERS
    ignored = {"expr", *(_FILTER_OPTIONS if has_filters else ())}
    function, options = definition.function, definition.options.keys() - ignored
    if function == _FROM_UNIXTIME:
        pattern = definition.options.get("format", DEFAULT_FORMAT)
        is_monotonic = unixtime_bounds(0, 0, pattern) is not None
        return is_integer and is_monotonic and options <= {"format"} and not has_filters
    if options:
        return False
    if function == "identity":
        return is_string or is_integer
    return (is_string and function in {**_STRING_FUNCTIONS, **_CASE_FUNCTIONS}) or (
        bool(at.is_date32(data_type)) and function in _DATE_FUNCTIONS
    )


def value_bounds(definition: IndexDefinition, batches: Iterable[pa.RecordBatch]) -> Bounds | None:
    """Return bounds over a file's rows; None without rows. batches: of the source column."""
    parts: list[Bounds] = [
        _bounds(definition, batch.column(0)) for batch in batches if batch.num_rows
    ]
    if not parts:
        return None
    lows = [part.min for part in parts if part.min is not None]
    highs = [part.max for part in parts if part.max is not None]
    return Bounds(
        min(lows, default=None),
        max(highs, default=None),
        sum(part.nulls for part in parts),
        sum(part.values for part in parts),
        parts[0].data_type,
    )


def _bounds(definition: IndexDefinition, column: pa.Array[Any]) -> Bounds:
    function = definition.function
    nulls, values = column.null_count, len(column) - column.null_count
    if function in _CASE_FUNCTIONS:
        low, high = _case_bounds(_CASE_FUNCTIONS[function], column)
        return Bounds(low, high, nulls, values, pa.string())
    if function == _FROM_UNIXTIME:
        extremes = pc.min_max(column).as_py()
        pattern = definition.options.get("format", DEFAULT_FORMAT)
        low, high = _time_bounds(extremes["min"], extremes["max"], pattern)
        return Bounds(low, high, nulls, values, pa.string())
    computed = _EXACT_FUNCTIONS[function](column)
    extremes = pc.min_max(computed).as_py()
    return Bounds(extremes["min"], extremes["max"], nulls, values, computed.type)


def _case_bounds(function: _Function, column: pa.Array[Any]) -> tuple[str | None, str | None]:
    ascii_values, non_ascii = _split_by_ascii(column)
    extremes = pc.min_max(function(ascii_values)).as_py()
    if not len(non_ascii):
        return extremes["min"], extremes["max"]
    longest = pc.max(pc.utf8_length(non_ascii)).as_py()
    return "", max(extremes["max"] or "", _MAX_CHARACTER * (longest * _MAX_GROWTH))


def _split_by_ascii(column: pa.Array[Any]) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Return the values in ASCII, and the others; no nulls."""
    values = column.drop_null()
    is_ascii: Any = pc.string_is_ascii(values)
    return values.filter(is_ascii), values.filter(pc.invert(is_ascii))


def _time_bounds(low: int | None, high: int | None, pattern: str) -> tuple[str | None, str | None]:
    if low is None or high is None:
        return None, None
    return unixtime_bounds(low, high, pattern) or ("", _MAX_CHARACTER * _LONGEST_TIME)


def filter_values(
    definition: IndexDefinition, batches: Iterable[pa.RecordBatch]
) -> FilterValues | None:
    """Return the distinct values of a file's rows; None without rows."""
    parts = [
        _filter_values(definition.function, batch.column(0)) for batch in batches if batch.num_rows
    ]
    if not parts:
        return None
    strings = pa.concat_arrays([part.strings for part in parts])
    return FilterValues(strings, any(part.is_incomplete for part in parts))


def _filter_values(function: str, column: pa.Array[Any]) -> FilterValues:
    if function in _CASE_FUNCTIONS:
        ascii_values, non_ascii = _split_by_ascii(column.unique())
        return FilterValues(
            _CASE_FUNCTIONS[function](ascii_values).unique(), is_incomplete=len(non_ascii) > 0
        )
    computed = _EXACT_FUNCTIONS[function](column.unique()).drop_null().unique()
    return FilterValues(computed.cast(pa.string()), is_incomplete=False)
