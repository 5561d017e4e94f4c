"""Results of mergers that users register: in the table's types, with unchanged keys.

A value that does not fit its column is an error and never null, because a compaction would keep
what a cast makes of it. `schema/payloads.py` selects the merger of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatch, without_hint
from pyhudi.input.batches import read_batches
from pyhudi.input.exact_casts import cast_computed, cast_exactly
from pyhudi.schema.key_generator import column_at

Merger = Callable[[pa.RecordBatch, pa.RecordBatch], Any]
"""`(older, newer) -> merged`, or `-> (merged, deleted)`; see `register_merger`."""

_WIDEN = (
    "Return values that the column holds: cast them in the merger, or widen the column first with "
    "table.alter."
)
_KEEP = (
    "Return key and partition columns as they are in one of the two records; to change a key, "
    "delete the record and insert it."
)


@dataclass(frozen=True)
class CheckedMerger:
    """A merger whose results are checked. Picklable if the function is."""

    strategy: str
    """The strategy for which the function is registered."""
    function: Merger
    keeps: tuple[str, ...]
    """Columns that must have the older or the newer record's value in each merged row."""
    required: frozenset[str] = frozenset()
    """Columns without nulls."""

    def of(self, schema: pa.Schema) -> CheckedMerger:
        """Return the same for a table with this schema."""
        required = frozenset(field.name for field in schema if not field.nullable)
        return replace(self, required=required)

    def __call__(self, older: pa.RecordBatch, newer: pa.RecordBatch) -> Any:
        """Merge as the function does.

        Raises `SchemaMismatch`, naming the column, for a value that does not fit it, for a missing
        or repeated column, and for a row with another key or partition.
        """
        answer = self.function(older, newer)
        pair = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)  # noqa: PLR2004
        rows, deleted = pair
        merged = self._in_types(rows, newer.schema)
        if merged.num_rows != newer.num_rows:
            msg = f"{self._name} gave {merged.num_rows} rows for {newer.num_rows} pairs"
            raise SchemaMismatch(msg, hint="Return one row for each pair.")
        for path in self.keeps:
            self._check_kept(path, merged, older, newer)
        return merged if deleted is None else (merged, self._mask(deleted))

    @property
    def _name(self) -> str:
        return f"the merger of {self.strategy}"

    def _in_types(self, rows: Any, schema: pa.Schema) -> pa.Table:
        schema_of_rows, batches = read_batches(rows, schema)
        table = pa.Table.from_batches(list(batches), schema_of_rows)
        columns = [self._column(table, field) for field in schema]
        return pa.Table.from_arrays(columns, schema=schema)

    def _column(self, table: pa.Table, field: pa.Field[Any]) -> pa.ChunkedArray[Any]:
        if field.name not in table.column_names:
            msg = f"{self._name} left out the column {field.name!r}"
            raise SchemaMismatch(msg, hint="Return all columns of the batches, in any order.")
        # Arithmetic on floats returns doubles, which are rounded; nothing else changes.
        cast = cast_computed if pa.types.is_floating(field.type) else cast_exactly
        try:
            column = cast(table.column(field.name), field)
        except SchemaMismatch as error:
            raise SchemaMismatch(f"{self._name}: {without_hint(error)}", hint=_WIDEN) from error
        if column.null_count and field.name in self.required:
            msg = f"{self._name} gave null in column {field.name!r}, which is required"
            raise SchemaMismatch(msg, hint="Return a value for each row.")
        return column

    def _mask(self, deleted: Any) -> Any:
        if isinstance(deleted, pa.ChunkedArray):
            return deleted.combine_chunks()
        try:
            return deleted if isinstance(deleted, pa.Array) else pa.array(deleted)
        except (pa.ArrowException, TypeError, ValueError) as error:
            msg = f"{self._name} gave a {type(deleted).__qualname__} for which keys are deleted"
            hint = "Return (merged, deleted) with a boolean array, one value for each pair."
            raise SchemaMismatch(msg, hint=hint) from error

    def _check_kept(
        self, path: str, merged: pa.Table, older: pa.RecordBatch, newer: pa.RecordBatch
    ) -> None:
        root = path if path in merged.column_names else path.split(".", 1)[0]
        if root not in merged.column_names:
            return
        column, *before = (
            column_at(rows if isinstance(rows, pa.Table) else pa.table(rows), path)
            for rows in (merged, newer, older)
        )
        changed = pc.invert(pc.or_(*(_is_same(column, values) for values in before)))
        if pc.any(changed).as_py():
            old, new = (values.filter(changed)[0].as_py() for values in (before[0], column))
            msg = f"{self._name} changed column {path!r} from {old!r} to {new!r}"
            raise SchemaMismatch(msg, hint=_KEEP)


def _is_same(left: pa.ChunkedArray[Any], right: pa.ChunkedArray[Any]) -> Any:
    """Return for each row whether two values are equal, null and NaN included; never null."""
    same = pc.fill_null(pc.equal(left, right), fill_value=False)
    same = pc.or_(same, pc.and_(pc.is_null(left), pc.is_null(right)))
    if pa.types.is_floating(left.type):
        both = pc.and_(pc.is_nan(left), pc.is_nan(right))
        same = pc.or_(same, pc.fill_null(both, fill_value=False))
    return same
