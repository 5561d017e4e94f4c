"""Rules that hold for every table, whatever it stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.formatting import count_text
from pyhudi.testing.comparison import comparable_rows
from pyhudi.testing.table_layout import check_table

if TYPE_CHECKING:
    from pyhudi import HudiTable

_KEY = "_hoodie_record_key"
_PARTITION = "_hoodie_partition_path"
_LOOKUPS = 20


def check_invariants(table: HudiTable, *, unique_keys: bool = True) -> None:
    """Raise `AssertionError` if a table breaks a rule that holds for every table.

    - `table.check(deep=True)` finds nothing.
    - `count` is the number of rows of a scan.
    - No key is in a partition twice.
    - The rows are the same with the metadata table and without it.
    - An incremental read from the start returns the current rows.
    - Filters on each column find as many rows as the column has such values.
    - `get` finds rows by their keys.

    Args:
        table: the table, which is reloaded.
        unique_keys: False if the table may have duplicate keys, as after inserts of existing keys.

    Raises:
        AssertionError: with a line for each broken rule.
        HudiError: the table cannot be read, or the argument is no table.
    """
    check_table(table)
    table.refresh()
    problems = list(_problems(table, unique_keys=unique_keys))
    if problems:
        raise AssertionError("\n".join([f"{table.uri} breaks invariants:", *problems]))


def _problems(table: HudiTable, *, unique_keys: bool) -> Iterator[str]:
    for finding in table.check(deep=True).findings:
        yield f"  check: {finding}"
    rows = table.to_arrow()
    expected = comparable_rows(rows)
    if table.count() != rows.num_rows:
        yield f"  count() is {table.count()}, a scan has {count_text(rows.num_rows, 'row')}"
    plain_options = {**table.options, "hoodie.metadata.enable": "false"}
    plain = type(table)(table.storage, table.engine, plain_options)
    yield from _difference("without the metadata table", plain.to_arrow(), expected)
    yield from _filter_problems(table, rows)
    if not table.config.populate_meta_fields:
        return
    # Incremental queries return encoded partition paths as they are, as Hudi 1.2.0 does.
    encoded = table.config.partition_fields if table.config.url_encode else ()
    columns = [name for name in rows.column_names if name not in encoded]
    changed = table.incremental(columns=columns, fallback_full_scan=True).to_arrow()
    current = comparable_rows(rows.select(columns))
    yield from _difference("read incrementally from the start", changed, current)
    if unique_keys:
        yield from _key_problems(table)


def _key_problems(table: HudiTable) -> Iterator[str]:
    keys = table.scan([_KEY, _PARTITION]).to_arrow()
    counts = keys.group_by([_KEY, _PARTITION]).aggregate([([], "count_all")])
    for row in counts.filter(pc.field("count_all") > 1).slice(0, _LOOKUPS).to_pylist():
        yield f"  key {row[_KEY]!r} is {row['count_all']} times in {row[_PARTITION]!r}"
    fields = [*table.config.record_key_fields, *table.config.partition_fields]
    if set(fields) <= set(table.schema.names) and table.config.record_key_fields:
        some = table.to_arrow().slice(0, _LOOKUPS)
        yield from _difference(
            f"looked up by {count_text(some.num_rows, 'key')}",
            table.get(some.select(fields)),
            comparable_rows(some),
        )


def _filter_problems(table: HudiTable, rows: pa.Table) -> Iterator[str]:
    for name in rows.column_names:
        column = rows.column(name)
        if pa.types.is_nested(column.type):
            continue
        filters = {f"{name} is null": (pc.field(name).is_null(), column.null_count)}
        if pa.types.is_integer(column.type) or pa.types.is_string(column.type):
            bounds = pc.min_max(column)
            for bound in (bounds["min"], bounds["max"]):
                if bound.is_valid:
                    count = pc.sum(pc.equal(column, bound)).as_py()
                    filters[f"{name} == {bound}"] = (pc.field(name) == bound, count)
        for text, (where, expected) in filters.items():
            count = table.count(where)
            if count != expected:
                found = count_text(count, "row")
                yield f"  {found} by the filter {text}, a scan has {expected}"


def _difference(kind: str, rows: pa.Table, expected: list[str]) -> Iterator[str]:
    stored = comparable_rows(rows)
    if stored != expected:
        extra = [row for row in stored if row not in expected]
        missing = [row for row in expected if row not in stored]
        counts = f"{count_text(len(stored), 'row')}, a scan has {len(expected)}"
        yield f"  {kind}: {counts}; missing {missing[:3]}, extra {extra[:3]}"
