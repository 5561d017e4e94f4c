"""Filters over golden tables: with all indexes the rows are those of a filtered full scan."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.metadata.expression_predicates import conjuncts_for_index
from pyhudi.metadata.fallback_reader import MetadataAccess
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.slice_pruning import slices_within_bounds
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.slices.file_system_view import FileSystemView
from tests.helpers.refused import REFUSED
from tests.helpers.rows import canonical_rows
from tests.helpers.tables import GoldenTables, facts, names, unpack

pytestmark = pytest.mark.slow

NO_METADATA = {"hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}
ROUNDS = 12
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


def readable() -> list[str]:
    """Tables with rows that pyhudi reads."""
    return [name for name in names() if name not in REFUSED and _has_rows(name)]


def _has_rows(name: str) -> bool:
    return bool(facts(name)["expected"].get("snapshot", {}).get("count"))


def comparable(kind: pa.DataType) -> bool:
    return bool(
        at.is_primitive(kind) or at.is_string(kind) or at.is_decimal(kind) or at.is_boolean(kind)
    ) and not at.is_time(kind)


def filters(rows: pa.Table, chance: random.Random) -> Iterator[list[tuple[str, str, Any]]]:
    """Conjunctions of one or two conditions with values at, between and beyond those there."""
    columns = [field.name for field in rows.schema if comparable(field.type)]
    for _ in range(ROUNDS):
        yield [condition(rows, chance.choice(columns), chance) for _ in range(chance.randint(1, 2))]


def condition(rows: pa.Table, column: str, chance: random.Random) -> tuple[str, str, Any]:
    # NaN is a value that no condition finds.
    there = [one for one in rows[column].to_pylist() if one is not None and str(one) != "nan"]
    values = there or [_any_value(rows.schema.field(column).type)]
    if chance.random() < 0.3:
        return (column, "in", [_near(chance.choice(values), chance) for _ in range(2)])
    return (column, chance.choice(COMPARISONS), _near(chance.choice(values), chance))


def _near(value: Any, chance: random.Random) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 30:
        return value + chance.choice((-1, 0, 0, 1))
    if isinstance(value, str) and chance.random() < 0.3:
        return value + chance.choice(("", "a", "0"))
    return value


def _any_value(kind: pa.DataType) -> Any:
    return "a" if at.is_string(kind) else pa.scalar(0).cast(pa.int32()).cast(kind).as_py()


def as_lines(table: pa.Table) -> list[str]:
    return sorted(canonical_rows(table))


def whole(table: HudiTable) -> pa.Table:
    return table.scan(meta_fields=True).to_arrow()


REINITIALISED = "v6_mor_downgraded_from_9"
"""Its column statistics were made anew by the downgrade; older commits name files that are gone."""


@pytest.mark.parametrize("name", readable())
@pytest.mark.filterwarnings(
    f"ignore:.*{REINITIALISED}.*is missing:pyhudi.errors.MetadataTableWarning"
)
def test_filtered_rows_are_those_of_a_full_scan(name: str, golden: GoldenTables) -> None:
    base = str(golden.unpack(name))
    plain, indexed = pyhudi.open_table(base, options=NO_METADATA), pyhudi.open_table(base)
    rows = whole(plain)
    chance = random.Random(name)  # noqa: S311 - a repeatable choice of filters
    for where in filters(rows, chance):
        expression = parse_where(where, rows.schema).expression
        expected = as_lines(rows.filter(expression))
        assert as_lines(indexed.scan(where=where, meta_fields=True).to_arrow()) == expected, where


KEY_TABLES = {
    "v6_cow_record_index": "record_index",
    "v9_cow_record_index": "record_index",
    "v9_mor_record_index": "record_index",
    "v9_mor_partitioned_record_index": "record_index",
    "v8_mor_secondary_index": "record_index",
    "v6_mor_bucket": "bucket index",
    "v9_mor_bucket": "bucket index",
    "v6_mor_bucket_two_fields": "bucket index",
    "v6_mor_consistent": "bucket index (consistent hashing)",
    "v8_mor_consistent": "bucket index (consistent hashing)",
    "v9_mor_consistent": "bucket index (consistent hashing)",
    "v9_cow_all_stats": "record_index",
}
BUCKETS = {"hoodie.bucket.index.num.buckets": "4"}


@pytest.mark.parametrize("name", KEY_TABLES)
def test_record_index_lookup_finds_every_key(name: str, golden: GoldenTables) -> None:
    index = KEY_TABLES[name]
    options = BUCKETS if index == "bucket index" else None
    table = pyhudi.open_table(str(golden.unpack(name)), options=options)
    rows = whole(table)
    fields = table.config.record_key_fields
    used = fewer = 0
    for row in rows.select(list(fields)).to_pylist():
        scan = table.scan(where=[(field, "=", row[field]) for field in fields])
        assert scan.count() == 1, row
        steps = [step for step in scan.explain().steps if step.index == index]
        # The record index tells of partitions, and then of their slices.
        used += bool(steps)
        fewer += sum(len(step.slices) + len(step.partitions) for step in steps)
    assert used == rows.num_rows
    assert fewer


def test_bloom_filter_lookup_finds_every_key(tmp_path: Path) -> None:
    """They are asked where there is no record index."""
    base = unpack("v9_cow_all_stats", tmp_path)
    properties = base / ".hoodie/hoodie.properties"
    text = properties.read_text()
    assert ",record_index" in text
    properties.write_text(text.replace(",record_index", ""))
    table = pyhudi.open_table(str(base))
    for key in whole(table)["id"].to_pylist():
        scan = table.scan(where=[("id", "=", key)])
        assert scan.count() == 1, key
        assert "bloom_filters" in [step.index for step in scan.explain().steps]


@pytest.mark.parametrize("name", ["v8_mor_secondary_index", "v9_mor_secondary_index"])
def test_secondary_index_lookup_finds_every_value(name: str, golden: GoldenTables) -> None:
    table = pyhudi.open_table(str(golden.unpack(name)))
    values = whole(table)["name"].to_pylist()
    fewer = 0
    for value in {one for one in values if one is not None}:
        scan = table.scan(where=[("name", "=", value)])
        assert scan.count() == values.count(value), value
        fewer += table.scan().plan().num_rows - scan.plan().num_rows
    assert fewer > 0


@pytest.mark.parametrize("name", ["v8_cow_expression_index", "v9_cow_expression_index"])
def test_expression_index_on_days_keeps_every_second(name: str, golden: GoldenTables) -> None:
    table = pyhudi.open_table(str(golden.unpack(name)))
    seconds = whole(table)["ts"].to_pylist()
    for second in seconds:
        for op in ("=", "<=", ">="):
            scan = table.scan(where=[("ts", op, second)])
            assert ("expr_index_idx_day" in str(scan.explain())) == (op == "=")
            expected = {"=": seconds.count(second), "<=": sum(s <= second for s in seconds)}
            assert scan.count() == expected.get(op, sum(s >= second for s in seconds))


def test_expression_index_prunes_files_alone(golden: GoldenTables) -> None:
    table = pyhudi.open_table(str(golden.unpack("v9_cow_expression_index")))
    greatest = max(whole(table)["ts"].to_pylist())
    state, where = table.state, parse_where([("ts", "=", greatest + 10**7)], table.schema)
    access = MetadataAccess(state.storage, state.config, state.timeline, {})
    view = FileSystemView(state.storage, state.config, state.timeline)

    def look(metadata: MetadataTable) -> list[bool | None]:
        index = metadata.definitions["expr_index_idx_day"]
        above, _ = conjuncts_for_index(index, where.conjuncts[0])
        kept: list[bool | None] = slices_within_bounds(
            metadata, view.slices(), above, index.name
        ).to_pylist()
        return kept

    assert access.use("", look) == [False] * len(view.slices())


def bounds_filters(rows: pa.Table) -> Iterator[tuple[str, str, Any]]:
    for field in rows.schema:
        if at.is_primitive(field.type) or at.is_string(field.type):
            lowest = pc.min(rows[field.name])
            if lowest.is_valid and not at.is_time(field.type):
                yield field.name, "<", lowest.as_py()


@pytest.mark.parametrize("name", ["v6_cow_all_stats", "v9_cow_all_stats"])
def test_statistics_leave_files_out(name: str, golden: GoldenTables) -> None:
    table = pyhudi.open_table(str(golden.unpack(name)))
    for where in bounds_filters(whole(table).select(["id", "name", "age", "ts"])):
        scan = table.scan(where=[where])
        assert scan.plan().num_rows == 0, where
        assert "stats" in str(scan.explain()), where


def test_explain_shows_pruned_files_and_reasons(golden: GoldenTables) -> None:
    table = pyhudi.open_table(str(golden.unpack("v9_cow_all_stats")))
    key = whole(table)["id"][0].as_py()
    explanation = table.scan(where=[("id", "=", key)]).explain()
    assert explanation.slices == 1
    assert "by the metadata table" in str(explanation)
    assert explanation.pruned.num_rows > 0
    assert set(explanation.pruned["pruned_by"].to_pylist()) <= {
        step.index for step in explanation.steps
    }
