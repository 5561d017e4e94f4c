"""Changes are what Hudi's change queries give; a diff leads from one moment to another."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.api.changes import table_as_of
from pyhudi.api.scan import new_scan
from pyhudi.errors import HistoryUnavailable
from tests.helpers.rows import canonical, canonical_rows, difference, encode_table
from tests.helpers.tables import GoldenTables, cases, unpack

pytestmark = pytest.mark.slow

OPS = {"i", "u", "d"}


CAPTURED = sorted({case.table for case in cases() if case.kind == "cdc"})
"""Tables with change data capture. What Hudi makes of their changes: `test_golden.py`."""


@pytest.mark.parametrize("name", CAPTURED)
def test_structs_say_the_same_as_texts(name: str, golden: GoldenTables) -> None:
    table = pyhudi.open_table(golden.unpack(name))
    structs, texts = table.changes().to_arrow(), table.changes(images="json").to_arrow()
    assert structs.schema == table.changes().schema
    assert structs.schema.field("after").type == pa.struct(list(table.schema))
    for side in ("before", "after"):
        rows = [json.loads(text) if text else None for text in texts[side].to_pylist()]
        for struct, text in zip(structs[side].to_pylist(), rows, strict=True):
            plain = struct and {k: float(v) if k == "amount" else v for k, v in struct.items()}
            assert plain == text


def test_decimals_are_values_in_structs_and_numbers_in_text(golden: GoldenTables) -> None:
    table = pyhudi.open_table(golden.unpack("v6_cow_cdc_op_key_only"))
    kind = table.changes().schema.field("after").type.field("amount").type
    assert kind == pa.decimal128(10, 2)
    texts = table.changes(images="json", where="op = 'i'", limit=1).to_arrow()["after"].to_pylist()
    assert '"amount":16.32' in texts[0] or '"amount":3182.60' in texts[0]


LOGGED_WITHOUT_CAPTURE = (
    "v6_mor_bucket",
    "v6_mor_compaction",
    "v6_mor_log_compaction",
    "v6_mor_null_ordering",
    "v6_mor_parquet_log",
    "v6_mor_rollback",
    "v6_mor_uncommitted_rolled_back",
)
"""Merge-on-read tables whose commits only append logs, and tell the slice they appended to."""


@pytest.mark.parametrize("name", sorted({*CAPTURED, *LOGGED_WITHOUT_CAPTURE}))
def test_changes_lead_from_one_commit_to_the_next(name: str, tmp_path: Path) -> None:
    base = unpack(name, tmp_path)
    with (base / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("\nhoodie.table.cdc.enabled=true\n")
    table = pyhudi.open_table(base)
    ends = range_ends(table)
    for (a, begin), (b, end) in itertools.pairwise(ends.items()):
        rows = encoded(table.changes(begin, end).to_arrow())
        old = Counter(row["before"] for row in rows if row["before"])
        new = Counter(row["after"] for row in rows if row["after"])
        before = Counter(rows_as_of(table, a))
        assert not old - before, (a, b)
        assert difference((before - old + new).elements(), rows_as_of(table, b)) is None, (a, b)


def range_ends(table: HudiTable) -> dict[str, str]:
    """What a range names each commit by: its requested or, from version 8 on, completion time."""
    by_completion = table.config.version.incremental_by_completion_time
    commits = table.state.timeline.commits
    return {
        one.requested: (one.completed or "") if by_completion else one.requested for one in commits
    }


DIFFED = (
    "v6_cow_archived",
    "v6_cow_auto_keys",
    "v6_cow_clustering",
    "v6_cow_custom_key",
    "v6_cow_duplicates",
    "v6_cow_evolution",
    "v6_cow_global_bloom",
    "v6_cow_millis",
    "v6_cow_no_partition_columns",
    "v6_cow_overwrite_table",
    "v6_cow_overwrites",
    "v6_cow_restore",
    "v6_cow_timestamp_key",
    "v6_cow_urlencode",
    "v6_cow_virtual_keys",
    "v6_mor_all_types",
    "v6_mor_bucket_two_fields",
    "v6_mor_compaction",
    "v6_mor_failed_rolled_back",
    "v6_mor_hfile_log",
    "v6_mor_log_compaction",
    "v6_mor_parquet_log",
    "v6_mor_payload_delete_marker",
    "v6_mor_restore",
    "v6_mor_rollback",
    "v6_mor_uncommitted_rolled_back",
    "v6_mor_virtual_keys",
    "v6by12_mor_event_time",
    "v8_cow_clustering",
    "v8_cow_nonpart",
    "v8_cow_overwrites",
    "v8_cow_restore",
    "v8_mor_compaction",
    "v8_mor_consistent",
    "v8_mor_event_time",
    "v8_mor_evolution",
    "v8_mor_failed_rolled_back",
    "v8_mor_global_simple",
    "v9_cow_all_types",
    "v9_cow_clustering",
    "v9_cow_duplicates",
    "v9_cow_overwrites",
    "v9_mor_clustering",
    "v9_mor_compaction",
    "v9_mor_event_time",
    "v9_mor_log_compaction",
    "v9_mor_overwrite_table",
    "v9_mor_restore",
    "v9_mor_rollback",
    "v9_mor_two_orderings",
    "v9_mor_upgraded_from_6",
    "v9_mor_virtual_keys",
)
REPEATED_KEYS = ("duplicates", "millis")


def moments(table: HudiTable) -> list[str]:
    """Requested times of the commits on the active timeline."""
    timeline = table.inspect.timeline().to_pylist()
    actions = {"commit", "deltacommit", "replacecommit"}
    done = (one for one in timeline if one["state"] == "COMPLETED" and one["action"] in actions)
    return [one["requested"] for one in done]


def rows_as_of(table: HudiTable, moment: str) -> list[str]:
    """The table's rows at a moment, with the columns that it has now."""
    state = table_as_of(table.state, moment)
    scan = new_scan(
        state,
        table.engine,
        columns=None,
        where=None,
        limit=None,
        read_optimized=False,
        meta_fields=False,
    )
    return canonical_rows(scan.to_arrow())


def encoded(changes: pa.Table) -> list[dict[str, Any]]:
    """Change rows with images as canonical text."""
    rows = encode_table(changes)
    return [
        {**row, **{s: row[s] and canonical(row[s]) for s in ("before", "after")}} for row in rows
    ]


@pytest.mark.parametrize("name", DIFFED)
def test_diff_transforms_one_snapshot_into_another(name: str, golden: GoldenTables) -> None:
    table = pyhudi.open_table(golden.unpack(name))
    states = {}
    for time in moments(table):
        # Where files of a time were cleaned, it cannot be compared with.
        with contextlib.suppress(HistoryUnavailable):
            states[time] = rows_as_of(table, time)
    times = list(states)
    assert times
    for a, b in itertools.product(times, times):
        rows = encoded(table.diff(a, b).to_arrow())
        old = Counter(row["before"] for row in rows if row["before"])
        new = Counter(row["after"] for row in rows if row["after"])
        assert not old - Counter(states[a]), (a, b)
        assert difference((Counter(states[a]) - old + new).elements(), states[b]) is None, (a, b)
        assert a != b or not rows
        for row in rows:
            check_row(row, table.schema.names)
        if not any(word in name for word in REPEATED_KEYS):
            assert not keys_of(table, rows, "d") & keys_of(table, rows, "i"), (a, b)


def check_row(row: Mapping[str, Any], columns: Sequence[str]) -> None:
    """What holds for every row of a diff."""
    assert row["op"] in OPS
    assert (row["before"] is None, row["after"] is None) == (row["op"] == "i", row["op"] == "d")
    if row["op"] != "u":
        assert row["changed"] is None
        return
    before, after = json.loads(row["before"]), json.loads(row["after"])
    assert row["changed"] == [n for n in columns if before[n] != after[n]] != []


def keys_of(table: HudiTable, rows: list[dict[str, Any]], op: str) -> set[tuple[Any, ...]]:
    """Record keys of the rows of one kind; of tables with generated keys there are none."""
    if not table.config.record_key_fields:
        return set()
    images = (json.loads(row["before"] or row["after"]) for row in rows if row["op"] == op)
    return {tuple(one[name] for name in table.config.record_key_fields) for one in images}
