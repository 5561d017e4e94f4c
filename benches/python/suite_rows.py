"""The rows of the suites: made from keys and versions alone, so that right answers are computed.

`LineItems` has the columns of TPC-H's line items, one integer key, and an ordering column; prices
are integers in cents, so that sums are exact in any order of rows. `Records` has those of YCSB: a
key and ten fields of 100 characters. `Events` is a stream of small rows.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Keys = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.uint64]
Condition = tuple[str, str, Any]
"""Column, comparison, value."""

_STEP = np.uint64(0x9E3779B97F4A7C15)


def mix(keys: npt.NDArray[Any], version: Any, salt: int) -> Numbers:
    """Spread numbers that follow from key, version and salt (splitmix64)."""
    with np.errstate(over="ignore"):
        state = keys.astype(np.uint64) * np.uint64(0xD1342543DE82EF95)
        state += np.asarray(version, np.uint64) * np.uint64(0xDA942042E4DD58B5)
        state += np.uint64(salt + 1) * _STEP
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(state ^ (state >> np.uint64(31)), np.uint64)


@dataclass(frozen=True)
class Layout:
    """What a table format has to know of rows."""

    schema: pa.Schema
    key: str
    order: str | None = None
    partition: str | None = None


@dataclass(frozen=True)
class Query:
    """Sums of integer columns or of their products, for the rows that fulfil all conditions."""

    name: str
    sums: tuple[tuple[str, ...], ...]
    where: tuple[Condition, ...] = ()
    group: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The columns that a reader must return."""
        names = [*self.group, *(name for product in self.sums for name in product)]
        return list(dict.fromkeys(names))

    def answer(self, batches: Iterable[pa.RecordBatch]) -> list[tuple[Any, ...]]:
        """Groups, number of rows, sums: of rows that a reader has filtered."""
        parts = []
        for batch in batches:
            columns = [batch.column(name) for name in self.group]
            columns += [_product(batch, product) for product in self.sums]
            parts.append(pa.table(columns, names=[f"c{at}" for at in range(len(columns))]))
        if not parts:
            return []
        groups = [f"c{at}" for at in range(len(self.group))]
        sums = [f"c{len(groups) + at}" for at in range(len(self.sums))]
        asked: list[Any] = [([], "count_all"), *((name, "sum") for name in sums)]
        table = pa.concat_tables(parts).group_by(groups).aggregate(asked)
        names = [*groups, "count_all", *(f"{name}_sum" for name in sums)]
        return sorted(zip(*(table.column(name).to_pylist() for name in names), strict=True))

    def sql(self) -> str:
        """The query for Spark; `{table}` is the table."""
        sums = [f"sum(cast({' as bigint) * cast('.join(part)} as bigint))" for part in self.sums]
        named = [f"{text} as s{at}" for at, text in enumerate(sums)]
        columns = ", ".join([*self.group, "count(*) as n", *named])
        where = f" where {sql_filter(self.where)}" if self.where else ""
        group = f" group by {', '.join(self.group)}" if self.group else ""
        return f"select {columns} from {{table}}{where}{group}"


def sql_filter(where: Sequence[Condition]) -> str:
    """Conditions in SQL."""
    return " and ".join(f"{name} {test} {_literal(value)}" for name, test, value in where)


def arrow_filter(where: Sequence[Condition]) -> pc.Expression | None:
    """Conditions as an expression of pyarrow."""
    found = None
    for name, test, value in where:
        column = pc.field(name)
        tests = {"=": "__eq__", ">=": "__ge__", "<=": "__le__", "<": "__lt__", ">": "__gt__"}
        each = column.isin(value) if test == "in" else getattr(column, tests[test])(value)
        found = each if found is None else found & each
    return found


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"({', '.join(map(_literal, value))})"
    return f"'{value}'" if isinstance(value, str | datetime.date) else str(value)


def _product(batch: pa.RecordBatch, names: tuple[str, ...]) -> Any:
    product = batch.column(names[0]).cast(pa.int64())
    for name in names[1:]:
        product = pc.multiply(product, batch.column(name).cast(pa.int64()))
    return product


# --- TPC-H's line items ---------------------------------------------------------------------------


class LineItems:
    """Rows like those of TPC-H's largest table."""

    layout = Layout(
        pa.schema(
            [
                ("l_key", pa.int64()),
                ("l_version", pa.int64()),
                ("l_orderkey", pa.int64()),
                ("l_partkey", pa.int64()),
                ("l_suppkey", pa.int64()),
                ("l_linenumber", pa.int32()),
                ("l_quantity", pa.int64()),
                ("l_extendedprice", pa.int64()),
                ("l_discount", pa.int64()),
                ("l_tax", pa.int64()),
                ("l_returnflag", pa.string()),
                ("l_linestatus", pa.string()),
                ("l_shipdate", pa.date32()),
                ("l_commitdate", pa.date32()),
                ("l_receiptdate", pa.date32()),
                ("l_shipinstruct", pa.string()),
                ("l_shipmode", pa.string()),
                ("l_comment", pa.string()),
            ]
        ),
        key="l_key",
        order="l_version",
    )
    check = Query(
        "all",
        (("l_key",), ("l_version", "l_key"), ("l_extendedprice", "l_tax"), ("l_suppkey",)),
    )
    """Touches every row, with values weighed by others of the row."""
    queries = (
        Query(
            "Q1",
            (("l_quantity",), ("l_extendedprice",), ("l_extendedprice", "l_discount")),
            (("l_shipdate", "<=", datetime.date(1998, 9, 2)),),
            ("l_returnflag", "l_linestatus"),
        ),
        Query(
            "Q6",
            (("l_extendedprice", "l_discount"),),
            (
                ("l_shipdate", ">=", datetime.date(1994, 1, 1)),
                ("l_shipdate", "<", datetime.date(1995, 1, 1)),
                ("l_discount", ">=", 5),
                ("l_discount", "<=", 7),
                ("l_quantity", "<", 24),
            ),
        ),
    )
    _texts: ClassVar[dict[str, tuple[str, ...]]] = {
        "l_returnflag": ("A", "N", "R"),
        "l_linestatus": ("F", "O"),
        "l_shipinstruct": ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN"),
        "l_shipmode": ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"),
    }

    @classmethod
    def rows(cls, keys: Keys, version: Any) -> pa.Table:
        """The rows of keys in one version, or in one for each."""
        versions = np.broadcast_to(np.asarray(version, np.int64), keys.shape)

        def draw(salt: int, low: int, high: int) -> Keys:
            return (mix(keys, versions, salt) % np.uint64(high - low)).astype(np.int64) + low

        # 1992-01-01 and the 2,526 days in which orders come.
        shipped = draw(5, 8035, 8035 + 2526)
        columns: dict[str, Any] = {
            "l_key": keys,
            "l_version": versions,
            "l_orderkey": keys // 4,
            "l_partkey": draw(1, 1, 200_001),
            "l_suppkey": draw(2, 1, 10_001),
            "l_linenumber": (keys % 4).astype(np.int32),
            "l_quantity": draw(3, 1, 51),
            "l_extendedprice": draw(4, 90_000, 10_500_000),
            "l_discount": draw(6, 0, 11),
            "l_tax": draw(7, 0, 9),
            "l_shipdate": _dates(shipped),
            "l_commitdate": _dates(shipped + draw(8, -60, 60)),
            "l_receiptdate": _dates(shipped + draw(9, 1, 31)),
            "l_comment": pc.binary_join_element_wise(
                "carefully final", pa.array(draw(10, 0, 10**9)).cast(pa.string()), " "
            ),
        }
        for salt, (name, texts) in enumerate(cls._texts.items(), start=11):
            columns[name] = pa.array(texts).take(pa.array(draw(salt, 0, len(texts))))
        schema = cls.layout.schema
        return pa.table([pa.array(columns[name]) for name in schema.names], schema=schema)


def _dates(days: Keys) -> pa.Array:
    return pa.array(days.astype(np.int32)).cast(pa.date32())


# --- YCSB and streams -----------------------------------------------------------------------------


class Records:
    """Rows as YCSB's: a key and ten fields of 100 characters."""

    fields = 10
    layout = Layout(
        pa.schema(
            [
                ("id", pa.string()),
                ("version", pa.int64()),
                *((f"field{number}", pa.string()) for number in range(10)),
            ]
        ),
        key="id",
        order="version",
    )

    @staticmethod
    def ids(keys: Keys) -> list[str]:
        """Strings in the order of the keys."""
        return [f"user{key:012}" for key in keys.tolist()]

    @classmethod
    def rows(cls, keys: Keys, version: Any) -> pa.Table:
        """The rows of keys in one version, or in one for each."""
        versions = np.broadcast_to(np.asarray(version, np.int64), keys.shape)
        columns: list[Any] = [pa.array(cls.ids(keys)), pa.array(versions)]
        for number in range(cls.fields):
            words = [
                pc.utf8_lpad(pa.array(mix(keys, versions, salt)).cast(pa.string()), 20, "-")
                for salt in range(5 * number, 5 * number + 5)
            ]
            columns.append(pc.binary_join_element_wise(*words, ""))
        return pa.table(columns, schema=cls.layout.schema)


class Events:
    """Small rows that come as a stream."""

    layout = Layout(
        pa.schema(
            [("id", pa.int64()), ("at", pa.int64()), ("sensor", pa.string()), ("v", pa.int64())]
        ),
        key="id",
    )
    check = Query("all", (("id",), ("at", "id"), ("v",)))

    @classmethod
    def rows(cls, keys: Keys, version: Any = 0) -> pa.Table:
        """The events of numbers."""
        sensors = pa.array((mix(keys, version, 1) % np.uint64(1000)).astype(np.int64))
        columns = [
            pa.array(keys),
            pa.array(1_700_000_000_000 + keys * 1000),
            pc.binary_join_element_wise("sensor", sensors.cast(pa.string()), "-"),
            pa.array((mix(keys, version, 2) % np.uint64(1_000_000)).astype(np.int64)),
        ]
        return pa.table(columns, schema=cls.layout.schema)


# --- what must stand ------------------------------------------------------------------------------


@dataclass
class Expected:
    """The version of each key that a right table has."""

    source: type[LineItems | Records | Events]
    versions: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """By key; 0 where there is no row."""

    def put(self, keys: Keys, version: int) -> None:
        """Note rows that were written."""
        end = int(keys.max()) + 1
        if end > len(self.versions):
            longer = np.zeros(max(end, 2 * len(self.versions)), np.int64)
            longer[: len(self.versions)] = self.versions
            self.versions = longer
        self.versions[keys] = version

    def remove(self, keys: Keys) -> None:
        """Note keys that were deleted."""
        self.versions[keys] = 0

    @property
    def keys(self) -> Keys:
        """The keys that have a row."""
        return np.flatnonzero(self.versions)

    def rows(self, keys: Keys) -> pa.Table:
        """The rows of some keys, in their order, without keys that have none."""
        keys = keys[keys < len(self.versions)]
        keys = keys[self.versions[keys] > 0]
        return self.source.rows(keys, self.versions[keys])

    def answer(self, query: Query) -> list[tuple[Any, ...]]:
        """The right answer to a query."""
        keys = self.keys
        answers = []
        for first in range(0, max(len(keys), 1), 1 << 20):
            rows = self.rows(keys[first : first + (1 << 20)])
            test = arrow_filter(query.where)
            rows = (rows if test is None else rows.filter(test)).select(query.columns)
            answers += query.answer(rows.to_batches())
        width = len(query.group)
        total: dict[tuple[Any, ...], list[int]] = {}
        for group in answers:
            sums = total.setdefault(group[:width], [0] * (len(group) - width))
            total[group[:width]] = [a + b for a, b in zip(sums, group[width:], strict=True)]
        return sorted((*group, *sums) for group, sums in total.items())
