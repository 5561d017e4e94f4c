"""A scan as a source of polars queries: columns, filters and row limits go into the scan.

polars plans a query before it requests rows. polars' own filter expression is applied again here,
so the scan may use only a part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from pyhudi.api.polars_predicates import terms_implied_by
from pyhudi.api.scan_pushdown import push_into_scan
from pyhudi.errors import ConfigError
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.predicates import Where

if TYPE_CHECKING:
    from pyhudi.api.scan import Scan


_LEAST = (1, 22)
"""Earlier releases lose filters that they cannot push down, so that queries return other rows."""


def lazy_frame(scan: Scan) -> pl.LazyFrame:
    """Return the rows of a scan as a LazyFrame; each query reads again.

    Raises `ConfigError` for an old polars.
    """
    check_release(pl.__version__)
    schema = _frame(scan.schema.empty_table()).schema

    def source(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        _batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        columns = list(schema) if with_columns is None else with_columns
        return _frames(scan, columns, predicate, n_rows)

    return register_io_source(source, schema=schema)


def check_release(version: str) -> None:
    """Raise `ConfigError` for a polars release that returns wrong rows."""
    if tuple(int(part) for part in version.split(".")[:2]) < _LEAST:
        raise ConfigError(
            f"polars {version} loses filters of lazy queries over this source",
            hint="Use polars 1.22 or later, or to_polars().",
        )


def _frames(
    scan: Scan, columns: list[str], predicate: pl.Expr | None, n_rows: int | None
) -> Iterator[pl.DataFrame]:
    """Yield at least one frame, because releases before 1.30 fail without one.

    n_rows: rows of the scan; the predicate is applied to these.
    """
    filter_columns = [] if predicate is None else predicate.meta.root_names()
    read = list(dict.fromkeys((*columns, *filter_columns))) or scan.schema.names[:1]
    where = None
    if predicate is not None and n_rows is None and scan.request.limit is None:
        where = _where(predicate, scan.schema)
    rows = push_into_scan(scan, read, where, n_rows)
    empty = True
    for batch in rows.to_reader():
        yield _select(pa.Table.from_batches([batch]), columns, predicate)
        empty = False
    if empty:
        yield _select(rows.schema.empty_table(), columns, predicate)


def _where(predicate: pl.Expr, schema: pa.Schema) -> Where | None:
    terms = terms_implied_by(predicate, _frame(schema.empty_table()).schema)
    return parse_where(terms, schema) if terms else None


def _select(rows: pa.Table, columns: list[str], predicate: pl.Expr | None) -> pl.DataFrame:
    frame = _frame(rows)
    return (frame if predicate is None else frame.filter(predicate)).select(columns)


def _frame(rows: pa.Table) -> pl.DataFrame:
    return cast("pl.DataFrame", pl.from_arrow(rows))
