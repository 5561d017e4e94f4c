"""A scan as a `pyarrow.dataset.Dataset`, for engines that push columns and filters into datasets.

DuckDB, DataFusion and polars check for the class by name and call its `scanner`, or those of its
fragments. Columns and filters go into the scan; pyarrow gets the resulting rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
import pyarrow.fs as pafs

from pyhudi.api.outputs import Outputs
from pyhudi.api.splits import Split, push_into_scan, push_into_split, with_filter
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.schema.arrow_expression_parser import condition_of, fields_of, tree_of
from pyhudi.schema.predicate_parser import parse_where, where_of
from pyhudi.schema.predicates import Where, column_type

if TYPE_CHECKING:
    from pyhudi.api.scan import Scan

Columns = Sequence[str] | Mapping[str, pc.Expression] | None
"""Column names, or expressions by name; None for all columns."""

_TAKE_SCANNER = "pyhudi reads this dataset by its scanner() alone"


class HudiDataset(pds.UnionDataset):  # type: ignore[misc]  # pyarrow ships no types
    """The rows of a scan as a dataset of pyarrow, made by `Scan.to_dataset`.

    A filter is a `pyarrow.compute.Expression` and has pyarrow's meaning. Hints on how to read files
    (batch_readahead and others) are accepted and ignored. Operations of pyarrow that bypass
    `scanner`, such as a union with other datasets, fail.
    """

    def __init__(
        self, scan: Scan, *, row_filter: pc.Expression | None = None, sql_floats: bool = False
    ) -> None:
        """Wrap the rows of a scan that a filter keeps.

        row_filter: the filter. sql_floats: filters compare floating-point numbers as SQL does; see
        `predicate_comparisons.py`.
        """
        # For pyarrow's C++ code the dataset is one missing file, so that it raises an error.
        # Otherwise it would find no rows, or dereference a null pointer.
        files, ipc = pafs.LocalFileSystem(), pds.IpcFileFormat()
        fragment = ipc.make_fragment(f"/{_TAKE_SCANNER}", files)
        absent = pds.FileSystemDataset([fragment], scan.schema, ipc, files)
        super().__init__(scan.schema, [absent])
        self._scan = scan
        self._row_filter = row_filter
        self._sql_floats = sql_floats

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._scan, self._row_filter, self._sql_floats)

    def __repr__(self) -> str:
        return f"<HudiDataset of {self._scan!r}>"

    def scanner(
        self,
        columns: Columns = None,
        filter: pc.Expression | None = None,  # noqa: A002 - pyarrow's name for it
        batch_size: int | None = None,
        **_hints: Any,
    ) -> pds.Scanner:
        """Return a scanner that reads the requested rows once; nothing is read before."""
        both = _combine_filters(self._row_filter, filter)
        return _scanner(self._scan, columns, both, batch_size, sql_floats=self._sql_floats)

    def filter(self, expression: pc.Expression) -> HudiDataset:
        """Return the dataset of the rows that a filter keeps."""
        both = _combine_filters(self._row_filter, expression)
        _where(both, self.schema, sql_floats=self._sql_floats)
        return HudiDataset(self._scan, row_filter=both, sql_floats=self._sql_floats)

    def count_rows(
        self,
        filter: pc.Expression | None = None,  # noqa: A002
        **_hints: Any,
    ) -> int:
        """Count the rows; only the columns of the filter are read."""
        count: int = self.scanner([], filter).count_rows()
        return count

    def get_fragments(
        self,
        filter: pc.Expression | None = None,  # noqa: A002
    ) -> Iterator[HudiFragment]:
        """Return a fragment for each file slice that can hold a row that the filter keeps."""
        if self._scan.request.limit is not None:
            yield HudiFragment(self._scan, self._row_filter, sql_floats=self._sql_floats)
            return
        both = _combine_filters(self._row_filter, filter)
        where = _where(both, self.schema, sql_floats=self._sql_floats)
        for part in push_into_scan(self._scan, self.schema.names, where).splits():
            # A fragment's rows are not filtered until its scanner gets the filter.
            whole = with_filter(part, self.schema.names, self._scan.request.where)
            yield HudiFragment(whole, self._row_filter, sql_floats=self._sql_floats)

    def sort_by(self, sorting: Any, **options: Any) -> pds.InMemoryDataset:
        """Return all rows in an order, in memory."""
        return pds.InMemoryDataset(self.to_table().sort_by(sorting, **options))

    def join(self, *_arguments: Any, **_more: Any) -> Any:
        """Raise `ConfigError`: joins are not supported."""
        raise ConfigError("a HudiDataset cannot be joined", hint="Join its to_table().")

    join_asof = join

    def replace_schema(self, schema: pa.Schema) -> Any:
        """Raise `ConfigError`; pyarrow calls this to make the dataset part of another."""
        raise ConfigError(
            f"a HudiDataset keeps its schema and cannot be part of another dataset: {schema.names}",
            hint="Take its to_table(), or its scanner().to_reader().",
        )


class HudiFragment:
    """A part of a `HudiDataset`, with what engines use of one: schema and scanners."""

    def __init__(
        self, rows: Scan | Split, row_filter: pc.Expression | None, *, sql_floats: bool
    ) -> None:
        self._rows = rows
        self._row_filter = row_filter
        self._sql_floats = sql_floats

    @property
    def physical_schema(self) -> pa.Schema:
        """The columns."""
        return self._rows.schema

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Columns = None,
        filter: pc.Expression | None = None,  # noqa: A002 - pyarrow's name for it
        batch_size: int | None = None,
        **_hints: Any,
    ) -> pds.Scanner:
        """Return a scanner that reads the requested rows once; nothing is read before."""
        if schema is not None and not schema.equals(self.physical_schema):
            raise ConfigError("a part of a HudiDataset has the dataset's schema and no other")
        both = _combine_filters(self._row_filter, filter)
        return _scanner(self._rows, columns, both, batch_size, sql_floats=self._sql_floats)

    def to_table(self, **request: Any) -> pa.Table:
        """Return the requested rows, in memory."""
        return self.scanner(**request).to_table()

    def to_batches(self, **request: Any) -> Iterator[pa.RecordBatch]:
        """Return the requested rows, batch by batch."""
        batches: Iterator[pa.RecordBatch] = self.scanner(**request).to_batches()
        return batches


def _rebuild(scan: Scan, row_filter: pc.Expression | None, sql_floats: bool) -> HudiDataset:
    return HudiDataset(scan, row_filter=row_filter, sql_floats=sql_floats)


def _combine_filters(
    first: pc.Expression | None, second: pc.Expression | None
) -> pc.Expression | None:
    if first is None or second is None:
        return first if second is None else second
    return first & second


def _where(
    expression: pc.Expression | None, schema: pa.Schema, *, sql_floats: bool
) -> Where | None:
    if expression is None:
        return None
    where = parse_where(expression, schema)
    floats = [name for name in where.columns if pa.types.is_floating(schema.field(name).type)]
    if not sql_floats or not floats:
        return where
    tree = tree_of(expression)
    condition = None if tree is None else condition_of(tree, schema)
    if condition is None:
        raise UnsupportedTableFeature(
            f"the filter {expression} cannot compare {', '.join(floats)} as SQL does",
            hint="Filter in the engine, for example on the result of a subquery.",
        )
    return where_of(condition, schema)


def _scanner(
    rows: Scan | Split,
    columns: Columns,
    expression: pc.Expression | None,
    batch_size: int | None,
    *,
    sql_floats: bool,
) -> pds.Scanner:
    schema = rows.schema
    where = _where(expression, schema, sql_floats=sql_floats)
    names = _names(columns, schema)
    late_filter = None
    if where is not None and not isinstance(rows, Split) and rows.request.limit is not None:
        # The limit applies before the filter, which is a later step.
        late_filter, names, where = where.expression, [*names, *where.columns], None
    read = list(dict.fromkeys(names)) or [_cheapest_column(where, schema)]
    narrow: Outputs
    if isinstance(rows, Split):
        narrow = push_into_split(rows, read, where)
    else:
        narrow = push_into_scan(rows, read, where)
    batches = pa.RecordBatchReader.from_batches(narrow.schema, _read_lazily(narrow, batch_size))
    return pds.Scanner.from_batches(batches, columns=columns, filter=late_filter)


def _names(columns: Columns, schema: pa.Schema) -> list[str]:
    """Return the columns to read; all of them if the expressions cannot be parsed."""
    if columns is None:
        return list(schema.names)
    if isinstance(columns, Mapping):
        trees = [tree_of(expression) for expression in columns.values()]
        if any(tree is None for tree in trees):
            return list(schema.names)
        requested = set().union(*(fields_of(tree) for tree in trees if tree is not None))
    else:
        for name in columns:
            column_type((name,), schema)
        requested = set(columns)
    return [name for name in schema.names if name in requested]


def _cheapest_column(where: Where | None, schema: pa.Schema) -> str:
    """Return a column to count rows by: one that is read in any case, otherwise a narrow one."""
    if where is not None and where.columns:
        return where.columns[0]
    return str(min(schema, key=lambda field: _width(field.type)).name)


def _width(data_type: pa.DataType) -> int:
    try:
        return int(data_type.bit_width)
    except ValueError:
        return 1 << 20


def _read_lazily(rows: Outputs, batch_size: int | None) -> Iterator[pa.RecordBatch]:
    """Yield batches of at most `batch_size` rows; planning waits for the first request."""
    for batch in rows.to_reader():
        size = batch_size or batch.num_rows
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size)
