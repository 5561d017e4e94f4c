"""Rows that break a rule of the table, and go to another table so that the others are committed.

The rows are stored under the lock, right before the commit of the rest. So another writer's commit
does not make them be stored twice, and a crash leaves either both commits, or rejected rows with
the id of a write that can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.extra_metadata import ROWS_REJECTED
from pyhudi.engine.spill import Spill
from pyhudi.input.conform import conform, data_schema
from pyhudi.table.participants import Commit, CommitParticipant
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.write.write_context import WriteContext

REASON, INSTANT = "_rejected_reason", "_rejected_instant"
"""Columns of rejected rows, after the table's own."""
_IN_MEMORY = 1024 * 1024

StoreRows = Callable[[pa.RecordBatchReader, str], object]
"""Stores the rows in another table, once for an identity of rows and rules."""


@dataclass
class RejectedRows(CommitParticipant):
    """The rejected rows of one write, which may run several times."""

    store: StoreRows
    count: int = 0
    _spill: Spill | None = None
    _stored: set[str] = field(default_factory=set)

    def begin(self, context: WriteContext) -> None:
        """Forget the rows of an earlier attempt."""
        self.close()
        columns = [*_nullable(data_schema(context.schema.arrow)), pa.field(REASON, pa.string())]
        self._spill, self.count = Spill(pa.schema(columns), _IN_MEMORY), 0

    def split(self, context: WriteContext, data: pa.Table, mode: str) -> pa.Table:
        """Return the rows that satisfy all rules, in the table's types; keep the others.

        Raises `SchemaMismatch` as `conform` does, except for nulls in required columns.
        """
        _, rows = context.evolve(data, mode)
        schema, rules = data_schema(context.schema.arrow), context.row_rules
        computed = rules.columns_to_compute(rows.column_names, ())
        rows = conform(rows, _nullable(schema), rules=rules, check=False)
        reasons: Any = pa.chunked_array([pa.nulls(rows.num_rows, pa.string())])
        for violating, reason in (
            *_missing_values(rows, schema),
            *rules.find_violations(rows, computed),
        ):
            is_first = pc.and_(violating, pc.is_null(reasons))
            reasons = pc.if_else(is_first, pa.scalar(reason), reasons)
        rejected = pc.is_valid(reasons)
        if not pc.any(rejected).as_py():
            return rows.cast(schema)
        bad = rows.append_column(REASON, reasons).filter(rejected)
        if self._spill is None:
            raise AssertionError
        for batch in bad.cast(self._spill.schema).to_batches():
            self._spill.add(batch)
        self.count += bad.num_rows
        return rows.filter(pc.invert(rejected)).cast(schema)

    @property
    def needs_commit(self) -> bool:
        """See `CommitParticipant`."""
        return self.count > 0

    def validate(self, table: TableSnapshot, commit: Commit) -> None:
        """Store the rows, unless an attempt with the same rules has stored them."""
        identity = "|".join(
            value for name, value in sorted(table.config.properties.items()) if "pyhudi." in name
        )
        if self.count and identity not in self._stored:
            self.store(self._reader(commit.instant), identity)
            self._stored.add(identity)

    def before_complete(self, table: TableSnapshot, commit: Commit) -> Mapping[str, str]:  # noqa: ARG002
        """Record the number of rejected rows."""
        return {ROWS_REJECTED: str(self.count)} if self.count else {}

    def _reader(self, instant: str) -> pa.RecordBatchReader:
        spill = self._spill
        if spill is None:
            raise AssertionError
        schema = spill.schema.append(pa.field(INSTANT, pa.string()))

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in spill.read():
                instants = pa.repeat(pa.scalar(instant), batch.num_rows)
                yield pa.RecordBatch.from_arrays([*batch.columns, instants], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def close(self) -> None:
        """Release memory and local files."""
        if self._spill is not None:
            self._spill.close()
            self._spill = None


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])


def _missing_values(rows: pa.Table, schema: pa.Schema) -> Iterator[tuple[Any, str]]:
    """Yield for each required column which rows have no value, and the reason."""
    for field_ in schema:
        if not field_.nullable and rows.column(field_.name).null_count:
            reason = f"column {field_.name!r} is null, but the table requires a value"
            yield pc.is_null(rows.column(field_.name)), reason
