"""Nearest-neighbor search over a VECTOR column: each row of a scan is measured.

The Rust core computes the distances and selects rows within a batch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.input.python_objects import as_numpy, is_tensor
from pyhudi.input.vectors import is_vector

if TYPE_CHECKING:
    from pyhudi.api.scan import Scan

DISTANCE = "_hudi_distance"
"""The name of the column in Hudi's `hudi_vector_search`."""
METRICS = ("l2", "cosine", "dot")


def nearest_rows(scan: Scan, column: str, vector: Any, k: int, metric: str) -> pa.Table:
    """Return the rows of a scan with the nearest vectors; see `Scan.nearest`."""
    query = _query(scan, column, vector)
    if metric not in METRICS:
        msg = f"metric is {metric!r}"
        raise ConfigError(msg, hint='Give "l2", "cosine" or "dot".')
    if k < 1:
        raise ConfigError(f"k is {k}", hint="Give an integer of at least 1.")
    if scan.request.limit is not None:
        raise ConfigError("limit and nearest cannot be combined", hint="Give k alone.")
    output = scan.request.output
    if DISTANCE in output:
        msg = f"the scan has a column {DISTANCE!r}, the name of the column of distances"
        raise ConfigError(msg, hint="Choose other columns.")
    if column not in output:
        request = replace(scan.request, output=(*output, column))
        scan = replace(scan, request=request)
    return _search(scan, column, query, k, metric).select([*output, DISTANCE])


def _query(scan: Scan, column: str, vector: Any) -> list[float]:
    columns = scan.shown
    if column not in columns.names:
        raise SchemaMismatch(f"the table has no column {column!r}")
    field = columns.field(column)
    if not is_vector(field):
        msg = f"column {column!r} is {field.type}, not VECTOR"
        raise SchemaMismatch(msg, hint="Name a column of the type pyhudi.vector(…).")
    values = as_numpy(vector) if is_tensor(vector) else vector
    try:
        query = pa.array(values, pa.float64(), from_pandas=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        msg = f"the vector to search by is not a list of numbers: {error}"
        raise SchemaMismatch(msg) from error
    if query.null_count or len(query) != field.type.list_size:
        size = field.type.list_size
        msg = f"the vector to search by has {len(query)} numbers, column {column!r} has {size}"
        raise SchemaMismatch(msg, hint=f"Give {size} numbers, none of them null.")
    return list(query.to_pylist())


def _search(scan: Scan, column: str, query: list[float], k: int, metric: str) -> pa.Table:
    from pyhudi import _native  # noqa: PLC0415 - planning needs no core

    schema = scan.schema.append(pa.field(DISTANCE, pa.float64(), nullable=False))
    nearest = schema.empty_table()
    within = None
    for batch in scan.to_reader():
        rows, distances = _native.nearest_rows(
            batch.column(column), query, k, metric=metric, within=within
        )
        if not len(rows):
            continue
        matches = pa.Table.from_batches([batch.take(rows)])
        matches = matches.append_column(schema.field(DISTANCE), distances)
        both = pa.concat_tables([nearest, matches.cast(schema)])
        # NaN sorts after all numbers, as in Spark.
        order = pc.sort_indices(both.column(DISTANCE))
        nearest = both.take(order[:k]).combine_chunks()
        if nearest.num_rows == k:
            within = nearest.column(DISTANCE)[-1].as_py()
    return nearest
