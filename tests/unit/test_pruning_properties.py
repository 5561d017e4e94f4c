"""Data skipping over generated tables: a filter returns the same rows with statistics and without.

The same tables come each time. PYHUDI_PRUNING_EXAMPLES in the environment sets how many others run.
"""

from __future__ import annotations

import math
import operator
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import pyhudi

EXAMPLES = int(os.environ.get("PYHUDI_PRUNING_EXAMPLES", "0"))
WITHOUT = {"hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}
INDEXED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "2",
}
OF_PARTITIONS = {"hoodie.metadata.index.partition.stats.enable": "true"}
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MICROS = (0, 1, -1, 999, 1_000_000, -1_000_001, 1_700_000_000_000_000, -13_000_000_000_000_000)
TEXTS = ("", "a", "b", "\u00e9", "\ud7ff", "\ue000", "\uffff", "\U00010000", "a" * 90, "b" * 3000)
FLOATS = (0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf, 1e-40, 16_777_216.0)
NUMBERS = (0, 1, -1, 127, 128, -129, 300, 2**31 - 1, -(2**31))
DECIMALS = ("0", "0.01", "-0.01", "1.27", "1.28", "-1.29", "3.00", "999.99", "-999.99")
BYTES = (b"", b"\0", b"\x7f", b"\x80", b"\xff", b"\xff\0", b"a" * 90, b"\xc3" * 3000)

POOLS: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "flag": (pa.bool_(), (True, False)),
    "small": (pa.int32(), NUMBERS),
    "big": (pa.int64(), (*NUMBERS, 2**63 - 1, -(2**63))),
    "single": (pa.float32(), FLOATS),
    "double": (pa.float64(), FLOATS),
    "text": (pa.string(), TEXTS),
    "raw": (pa.binary(), BYTES),
    "day": (pa.date32(), (date(1970, 1, 1), date(1, 1, 1), date(1582, 10, 14), date(2026, 2, 28))),
    "at": (pa.timestamp("us", "UTC"), [EPOCH + timedelta(microseconds=n) for n in MICROS]),
    "ms": (pa.timestamp("ms", "UTC"), [EPOCH + timedelta(milliseconds=n // 1000) for n in MICROS]),
    "price": (pa.decimal128(5, 2), [Decimal(text) for text in DECIMALS]),
    "wide": (pa.decimal128(38, 2), [Decimal(text) for text in (*DECIMALS, "9" * 36)]),
}
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
Condition = tuple[str, str, Any]


@dataclass(frozen=True)
class Table:
    """The columns of a table, its commits as rows, and filters over it."""

    version: int
    kind: Any
    columns: list[str]
    commits: list[list[dict[str, Any]]]
    filters: list[list[Condition]]

    @property
    def options(self) -> dict[str, str]:
        """Return options with all statistics that the version has."""
        return INDEXED if self.version == 6 else INDEXED | OF_PARTITIONS

    @property
    def schema(self) -> pa.Schema:
        """Return the types of the columns."""
        fields = [("id", pa.string()), ("city", pa.string())]
        return pa.schema([*fields, *((name, POOLS[name][0]) for name in self.columns)])


@st.composite
def conditions(draw: st.DrawFn, columns: Sequence[str]) -> Condition:
    name = draw(st.sampled_from(columns))
    literals = st.sampled_from(POOLS[name][1])
    comparison = draw(st.sampled_from((*COMPARISONS, "in")))
    if comparison == "in":
        return name, comparison, draw(st.lists(literals, min_size=1, max_size=3))
    return name, comparison, draw(literals)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    version, kind = draw(st.sampled_from((6, 8, 9))), draw(st.sampled_from(("cow", "mor")))
    columns = draw(st.lists(st.sampled_from(list(POOLS)), min_size=1, max_size=3, unique=True))
    # Commits of few values, so that bounds leave files out.
    values = {name: st.sampled_from(POOLS[name][1]) for name in columns}
    keys = st.sampled_from([{"id": f"k{n}", "city": ("oslo", "rome")[n % 2]} for n in range(9)])
    columns_of_row = st.fixed_dictionaries({name: st.none() | values[name] for name in columns})
    row = st.builds(operator.or_, keys, columns_of_row)
    commits = draw(st.lists(st.lists(row, min_size=1, max_size=4), min_size=2, max_size=4))
    filters = st.lists(conditions(columns), min_size=1, max_size=2)
    return Table(version, kind, columns, commits, draw(st.lists(filters, min_size=4, max_size=8)))


@settings(
    max_examples=EXAMPLES or 8,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(tables())
@pytest.mark.slow
def test_data_skipping_loses_no_row(table: Table) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pyhudi.create_table(
            folder,
            table.schema,
            key="id",
            partition_by="city",
            type=table.kind,
            version=table.version,
            options=table.options,
        )
        writer = pyhudi.open_table(folder, options=table.options)
        for rows in table.commits:
            unique = {row["id"]: row for row in rows}
            writer.upsert(pa.Table.from_pylist([*unique.values()], table.schema))
        indexed = pyhudi.open_table(folder, options=table.options)
        plain = pyhudi.open_table(folder, options=WITHOUT)
        for conjuncts in table.filters:
            scan = indexed.scan(["id", "city"], where=conjuncts)
            expected = plain.scan(["id", "city"], where=conjuncts)
            assert ids(scan) == ids(expected), conjuncts
            event(f"pruned: {scan.explain().pruned.num_rows > 0}")


def ids(scan: pyhudi.Scan) -> list[tuple[str, str]]:
    rows = scan.to_arrow()
    return sorted(zip(rows["id"].to_pylist(), rows["city"].to_pylist(), strict=True))
