"""Minimum and maximum of a column: from column statistics if they are exact, else from its rows.

Statistics are exact for base files without log files, of types whose bounds are never truncated and
cover all values: integers, dates, times in microseconds and decimals. Strings may be truncated, NaN
is in no footer, log files replace rows, and a renamed column has statistics by another name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as at

from pyhudi.config.metadata_names import COLUMN_STATS
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.metadata.fallback_reader import MetadataAccess, OutdatedError
from pyhudi.metadata.pruning_context import PRUNING_FALLBACK, PruningContext
from pyhudi.slices.file_slice import BaseFile
from pyhudi.slices.read_tasks import ReadTask, ScanRequest
from pyhudi.slices.row_counts import is_whole_base_file, resolve_path_filter
from pyhudi.table.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc

Bounds = tuple[Any, Any]


def bounds_from_statistics(
    table: TableSnapshot, request: ScanRequest, tasks: Sequence[ReadTask]
) -> tuple[pa.Array[Any], list[ReadTask]]:
    """Return bounds that statistics have for the request's only column, and tasks left to read.

    Filters that the partition path decides are removed from those tasks.
    """
    (column,) = request.output
    data_type = table.columns.field(column).type
    remaining = [task for task in map(resolve_path_filter, tasks) if task is not None]
    nothing = pa.array([], data_type)
    access = MetadataAccess(table.storage, table.config, table.timeline, table.options)
    context = PruningContext(table, request, access)
    usable = _has_exact_bounds(data_type) and column not in context.converted_columns
    if not (usable and access.has(COLUMN_STATS) and context.has_stable_names):
        return nothing, remaining
    bases = [_complete_base(task) for task in remaining]
    complete_bases = [base for base in bases if base is not None]
    stats = _statistics(access, column, data_type, complete_bases)
    if stats is None:
        return nothing, remaining
    sure = pc.and_(stats["min"].is_valid(), stats["max"].is_valid())
    with_bounds = {
        base.path for base, is_sure in zip(complete_bases, sure.to_pylist(), strict=True) if is_sure
    }
    unread = [
        task
        for task, base in zip(remaining, bases, strict=True)
        if base is None or base.path not in with_bounds
    ]
    return pa.concat_arrays([stats["min"].filter(sure), stats["max"].filter(sure)]), unread


def bounds_of(data_type: pa.DataType, arrays: Iterable[pa.Array[Any]]) -> Bounds:
    """Return minimum and maximum of all values; None and None if all are null.

    Raises `ConfigError` for a type without order, `UnsupportedTableFeature` for a date or time
    beyond those of Python, which end with the year 9999.
    """
    ends: list[Any] = []
    for array in arrays:
        try:
            bounds = pc.min_max(array)
        except pa.ArrowNotImplementedError as error:
            raise ConfigError(f"values of type {data_type} have no order") from error
        ends += [bounds["min"], bounds["max"]]
    values = [value for value in ends if value.is_valid]
    if not values:
        return None, None
    bounds = pc.min_max(pa.array(values, data_type))
    return _python_value(bounds["min"]), _python_value(bounds["max"])


def _python_value(value: pa.Scalar[Any]) -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError) as error:
        # Not as Arrow's scalar, which cannot even be printed.
        msg = f"{value.cast(pa.string())} as a bound: Python has no such {value.type}"
        raise UnsupportedTableFeature(msg, hint="Use polars or DuckDB.") from error


def _statistics(
    access: MetadataAccess, column: str, data_type: pa.DataType, bases: Sequence[BaseFile]
) -> pa.RecordBatch | None:
    """Return the statistics of the column in each file, None if they cannot be read."""
    partitions = pa.array([base.partition for base in bases], pa.string())
    names = pa.array([base.name for base in bases], pa.string())
    try:
        return access.use(
            PRUNING_FALLBACK,
            lambda table: table.partition(COLUMN_STATS).stats(column, data_type, partitions, names),
        )
    except OutdatedError:
        return None


def _has_exact_bounds(data_type: pa.DataType) -> bool:
    micros = at.is_timestamp(data_type) and data_type.unit == "us"
    is_integral = at.is_int32(data_type) or at.is_int64(data_type) or at.is_date32(data_type)
    return bool(is_integral or micros or at.is_decimal128(data_type))


def _complete_base(task: ReadTask) -> BaseFile | None:
    base = task.slice.base
    return base if base is not None and is_whole_base_file(task) and base.source is None else None
