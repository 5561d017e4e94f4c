"""The least and greatest value of a column: by column statistics where those are exact, else read.

Statistics are exact for base files without log files, of types whose bounds no writer cuts and no
value escapes: whole numbers, dates, times in microseconds and decimals. Text may be cut, NaN is in
no footer, log files replace rows, and a renamed column has statistics by another name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as at

from pyhudi.config.metadata_names import COLUMN_STATS
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.metadata.fallback_reader import MetadataAccess, OutdatedError
from pyhudi.metadata.pruning_context import INSTEAD, PruningContext
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
    """Bounds that statistics tell of the only column of the request; the tasks that are to be read.

    Those have no filter any more that their partition answers.
    """
    (column,) = request.output
    kind = table.columns.field(column).type
    left = [task for task in map(resolve_path_filter, tasks) if task is not None]
    nothing = pa.array([], kind)
    access = MetadataAccess(table.storage, table.config, table.timeline, table.options)
    question = PruningContext(table, request, access)
    usable = _has_exact_bounds(kind) and column not in question.converted_columns
    if not (usable and access.has(COLUMN_STATS) and question.bounds_hold):
        return nothing, left
    bases = [_whole_base(task) for task in left]
    known = [base for base in bases if base is not None]
    stats = _statistics(access, column, kind, known)
    if stats is None:
        return nothing, left
    sure = pc.and_(stats["min"].is_valid(), stats["max"].is_valid())
    told = {base.path for base, is_sure in zip(known, sure.to_pylist(), strict=True) if is_sure}
    rest = [
        task
        for task, base in zip(left, bases, strict=True)
        if base is None or base.path not in told
    ]
    return pa.concat_arrays([stats["min"].filter(sure), stats["max"].filter(sure)]), rest


def bounds_of(kind: pa.DataType, arrays: Iterable[pa.Array[Any]]) -> Bounds:
    """The least and greatest of all values; None and None where there is none but nulls.

    Raises `ConfigError` for a type that has no order, `UnsupportedTableFeature` for a date or time
    beyond those of Python, which end with the year 9999.
    """
    found: list[Any] = []
    for array in arrays:
        try:
            one = pc.min_max(array)
        except pa.ArrowNotImplementedError as error:
            raise ConfigError(f"values of type {kind} have no order") from error
        found += [one["min"], one["max"]]
    values = [value for value in found if value.is_valid]
    if not values:
        return None, None
    one = pc.min_max(pa.array(values, kind))
    return _of_python(one["min"]), _of_python(one["max"])


def _of_python(value: pa.Scalar[Any]) -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError) as error:
        # Not as Arrow's scalar, which cannot even be printed.
        msg = f"{value.cast(pa.string())} as a bound: Python has no such {value.type}"
        raise UnsupportedTableFeature(msg, hint="Use polars or DuckDB.") from error


def _statistics(
    access: MetadataAccess, column: str, kind: pa.DataType, bases: Sequence[BaseFile]
) -> pa.RecordBatch | None:
    """Of the column in each file, None where the metadata table cannot be read."""
    partitions = pa.array([base.partition for base in bases], pa.string())
    names = pa.array([base.name for base in bases], pa.string())
    try:
        return access.use(
            INSTEAD,
            lambda table: table.partition(COLUMN_STATS).stats(column, kind, partitions, names),
        )
    except OutdatedError:
        return None


def _has_exact_bounds(kind: pa.DataType) -> bool:
    micros = at.is_timestamp(kind) and kind.unit == "us"
    whole = at.is_int32(kind) or at.is_int64(kind) or at.is_date32(kind)
    return bool(whole or micros or at.is_decimal128(kind))


def _whole_base(task: ReadTask) -> BaseFile | None:
    base = task.slice.base
    return base if base is not None and is_whole_base_file(task) and base.source is None else None
