"""A scan as a `pyarrow.dataset.Dataset`, for engines that hand columns and filters to one.

DuckDB, DataFusion and polars know the class by name and call its `scanner`, or those of its
fragments. What they ask for goes into the scan; pyarrow gets the rows that come of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
import pyarrow.fs as pafs

from pyhudi.api.outputs import Outputs
from pyhudi.api.scan_pushdown import push_into_scan, push_into_split, with_filter
from pyhudi.api.splits import Split
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.schema.arrow_expression_parser import condition_of, fields_of, tree_of
from pyhudi.schema.predicate_parser import parse_where, where_of
from pyhudi.schema.predicates import Where, column_type

if TYPE_CHECKING:
    from pyhudi.api.scan import Scan

Columns = Sequence[str] | Mapping[str, pc.Expression] | None
"""Names, or what to compute, by name; None for all columns."""

_TAKE_SCANNER = "pyhudi reads this dataset by its scanner() alone"


class HudiDataset(pds.UnionDataset):  # type: ignore[misc]  # pyarrow ships no types
    """The rows of a scan as a dataset of pyarrow. Made by `Scan.to_dataset`.

    A filter is a `pyarrow.compute.Expression` and means what it means to pyarrow. Hints on how to
    read files (batch_readahead and the like) are taken and not followed. What pyarrow's own code
    does with a dataset past `scanner`, as a union with others, fails.
    """

    def __init__(
        self, scan: Scan, *, kept: pc.Expression | None = None, sql_floats: bool = False
    ) -> None:
        """The rows of a scan, as far as a filter keeps them.

        kept: the filter. sql_floats: filters compare floating numbers as SQL does; see
        `predicate_floats.py`.
        """
        # To pyarrow's C++ code the dataset is one file that is not there: an error, where it would
        # otherwise find no rows, or nothing where it points to.
        files, form = pafs.LocalFileSystem(), pds.IpcFileFormat()
        fragment = form.make_fragment(f"/{_TAKE_SCANNER}", files)
        absent = pds.FileSystemDataset([fragment], scan.schema, form, files)
        super().__init__(scan.schema, [absent])
        self._scan = scan
        self._kept = kept
        self._sql_floats = sql_floats

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (self._scan, self._kept, self._sql_floats)

    def __repr__(self) -> str:
        return f"<HudiDataset of {self._scan!r}>"

    def scanner(
        self,
        columns: Columns = None,
        filter: pc.Expression | None = None,  # noqa: A002 - pyarrow's name for it
        batch_size: int | None = None,
        **_hints: Any,
    ) -> pds.Scanner:
        """The wanted rows, to be read once; nothing is read before."""
        wanted = _both(self._kept, filter)
        return _scanner(self._scan, columns, wanted, batch_size, sql_floats=self._sql_floats)

    def filter(self, expression: pc.Expression) -> HudiDataset:
        """The dataset of the rows that a filter keeps."""
        wanted = _both(self._kept, expression)
        _where(wanted, self.schema, sql_floats=self._sql_floats)
        return HudiDataset(self._scan, kept=wanted, sql_floats=self._sql_floats)

    def count_rows(
        self,
        filter: pc.Expression | None = None,  # noqa: A002
        **_hints: Any,
    ) -> int:
        """How many rows there are; only columns that matter for it are read."""
        count: int = self.scanner([], filter).count_rows()
        return count

    def get_fragments(
        self,
        filter: pc.Expression | None = None,  # noqa: A002
    ) -> Iterator[HudiFragment]:
        """One part a file slice, those left out that cannot hold a row that a filter keeps."""
        if self._scan.request.limit is not None:
            yield HudiFragment(self._scan, self._kept, sql_floats=self._sql_floats)
            return
        wanted = _both(self._kept, filter)
        where = _where(wanted, self.schema, sql_floats=self._sql_floats)
        for part in push_into_scan(self._scan, self.schema.names, where).splits():
            # What a fragment gives is not filtered until its scanner is asked for that.
            whole = with_filter(part, self.schema.names, self._scan.request.where)
            yield HudiFragment(whole, self._kept, sql_floats=self._sql_floats)

    def sort_by(self, sorting: Any, **options: Any) -> pds.InMemoryDataset:
        """All rows in an order, in memory."""
        return pds.InMemoryDataset(self.to_table().sort_by(sorting, **options))

    def join(self, *_arguments: Any, **_more: Any) -> Any:
        """Refused."""
        raise ConfigError("a HudiDataset cannot be joined", hint="Join its to_table().")

    join_asof = join

    def replace_schema(self, schema: pa.Schema) -> Any:
        """Refused; pyarrow asks for it where the dataset is to be part of another."""
        raise ConfigError(
            f"a HudiDataset keeps its schema and cannot be part of another dataset: {schema.names}",
            hint="Take its to_table(), or its scanner().to_reader().",
        )


class HudiFragment:
    """A part of a `HudiDataset`, as far as engines use one: it has the schema and scanners."""

    def __init__(self, rows: Scan | Split, kept: pc.Expression | None, *, sql_floats: bool) -> None:
        self._rows = rows
        self._kept = kept
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
        """The wanted rows, to be read once; nothing is read before."""
        if schema is not None and not schema.equals(self.physical_schema):
            raise ConfigError("a part of a HudiDataset has the dataset's schema and no other")
        wanted = _both(self._kept, filter)
        return _scanner(self._rows, columns, wanted, batch_size, sql_floats=self._sql_floats)

    def to_table(self, **wanted: Any) -> pa.Table:
        """The wanted rows, in memory."""
        return self.scanner(**wanted).to_table()

    def to_batches(self, **wanted: Any) -> Iterator[pa.RecordBatch]:
        """The wanted rows, a batch at a time."""
        batches: Iterator[pa.RecordBatch] = self.scanner(**wanted).to_batches()
        return batches


def _remade(scan: Scan, kept: pc.Expression | None, sql_floats: bool) -> HudiDataset:
    return HudiDataset(scan, kept=kept, sql_floats=sql_floats)


def _both(one: pc.Expression | None, other: pc.Expression | None) -> pc.Expression | None:
    if one is None or other is None:
        return one if other is None else other
    return one & other


def _where(wanted: pc.Expression | None, schema: pa.Schema, *, sql_floats: bool) -> Where | None:
    if wanted is None:
        return None
    where = parse_where(wanted, schema)
    floats = [name for name in where.columns if pa.types.is_floating(schema.field(name).type)]
    if not sql_floats or not floats:
        return where
    tree = tree_of(wanted)
    condition = None if tree is None else condition_of(tree, schema)
    if condition is None:
        raise UnsupportedTableFeature(
            f"the filter {wanted} cannot compare {', '.join(floats)} as SQL does",
            hint="Filter in the engine, for example on the result of a subquery.",
        )
    return where_of(condition, schema)


def _scanner(
    rows: Scan | Split,
    columns: Columns,
    wanted: pc.Expression | None,
    batch_size: int | None,
    *,
    sql_floats: bool,
) -> pds.Scanner:
    schema = rows.schema
    where = _where(wanted, schema, sql_floats=sql_floats)
    names = _names(columns, schema)
    late = None
    if where is not None and not isinstance(rows, Split) and rows.request.limit is not None:
        # A limit counts before a filter that comes after it.
        late, names, where = where.expression, [*names, *where.columns], None
    read = list(dict.fromkeys(names)) or [_narrowest(where, schema)]
    narrow: Outputs
    if isinstance(rows, Split):
        narrow = push_into_split(rows, read, where)
    else:
        narrow = push_into_scan(rows, read, where)
    batches = pa.RecordBatchReader.from_batches(narrow.schema, _when_asked(narrow, batch_size))
    return pds.Scanner.from_batches(batches, columns=columns, filter=late)


def _names(columns: Columns, schema: pa.Schema) -> list[str]:
    """The columns to read; all of them where it is not sure which."""
    if columns is None:
        return list(schema.names)
    if isinstance(columns, Mapping):
        trees = [tree_of(expression) for expression in columns.values()]
        if any(tree is None for tree in trees):
            return list(schema.names)
        found = set().union(*(fields_of(tree) for tree in trees if tree is not None))
    else:
        for name in columns:
            column_type((name,), schema)
        found = set(columns)
    return [name for name in schema.names if name in found]


def _narrowest(where: Where | None, schema: pa.Schema) -> str:
    """A column to count rows by: one that is read in any case, else one of few bytes."""
    if where is not None and where.columns:
        return where.columns[0]
    return str(min(schema, key=lambda field: _width(field.type)).name)


def _width(kind: pa.DataType) -> int:
    try:
        return int(kind.bit_width)
    except ValueError:
        return 1 << 20


def _when_asked(rows: Outputs, batch_size: int | None) -> Iterator[pa.RecordBatch]:
    """The batches, cut to at most so many rows; nothing is planned before the first is wanted."""
    for batch in rows.to_reader():
        size = batch_size or batch.num_rows
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size)
