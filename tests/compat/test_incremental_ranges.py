"""Every range of a table whose log files Apache Hudi and pyhudi have merged, read by both."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.actions import LOG_COMPACTION
from pyhudi.timeline.named_instants import PlainTime
from tests.compat.test_alternating_writers import hudi_options
from tests.helpers.both_readers import INCLUSIVE, NEWEST, NO_FALLBACK
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.rows import canonical, difference, encode_table

MERGING = {
    "hoodie.log.compaction.enable": "true",
    "hoodie.log.compaction.inline": "true",
    "hoodie.log.compaction.blocks.threshold": "3",
}
PAYLOAD = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
DDL = "id string, city string, ts bigint, v bigint"
SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("v", pa.int64())]
)
LATE = 1
Row = dict[str, Any]


def rows(ids: list[int], ts: int, v: int) -> list[Row]:
    return [{"id": f"k{n}", "city": "ab"[n % 2], "ts": ts, "v": v} for n in ids]


@pytest.mark.parametrize("hudi", ["0.15.0", "1.0.2", NEWEST], indirect=True)
@pytest.mark.timeout(900)
def test_incremental_range_matches_hudi(tmp_path: Path, hudi: HudiOracle) -> None:
    base = tmp_path / "trips"
    plain = hudi_options("mor", partitioned=True) | {
        "hoodie.datasource.write.payload.class": PAYLOAD,
        "hoodie.compact.inline": "false",
        "hoodie.clean.automatic": "false",
    }

    def write(ids: list[int], ts: int, v: int, operation: str = "upsert", **more: str) -> None:
        mode = "append" if base.exists() else "overwrite"
        batch, options = rows(ids, ts, v), {**plain, **more}
        hudi.write(base, rows=batch, schema=DDL, operation=operation, options=options, mode=mode)

    write([*range(8)], 2, 1, "insert")
    write([0, 1, 2, 5], 3, 2)
    write([2, 3], 4, 3, **MERGING)
    write([4], 5, 4, "delete", **MERGING)
    write([0, 6], LATE, 5, **MERGING)
    pyhudi.open_table(base).upsert(pa.Table.from_pylist(rows([1, 2, 3], 7, 6), SCHEMA))
    write([0, 1, 2, 7], 8, 7)
    assert pyhudi.open_table(base).log_compact(min_log_files=2).instants
    write([1, 2], LATE, 8)

    table = pyhudi.open_table(base)
    timeline = table.state.timeline
    merges = [
        commit
        for commit in timeline.commits
        if any(file.action == LOG_COMPACTION for file in timeline.files(commit))
    ]
    assert len(merges) > 1
    times = sorted(
        (commit.completed if table.version >= 8 else commit.requested) or ""
        for commit in timeline.commits
    )
    compared = 0
    for start, end in itertools.combinations(("000", *times), 2):
        begin = str(int(start) + 1) if hudi.hudi == INCLUSIVE else start
        answer = hudi.read(
            base, query="incremental", begin=begin, end=end, meta=True, options=NO_FALLBACK
        )
        theirs: list[Row] = answer["rows"]
        found = table.incremental(start, end, meta_fields=True, fallback_full_scan=False).to_arrow()
        ours = encode_table(found, list(theirs[0]) if theirs else None)
        if hudi.hudi != NEWEST:
            # There rows of the range lose to older ones that a log compaction repeats.
            ours, theirs = ([row for row in of if row["ts"] != LATE] for of in (ours, theirs))
        how = difference(map(canonical, ours), map(canonical, theirs))
        assert how is None, f"{start} to {end}: {how}"
        compared += bool(theirs)
    assert compared > 2 * len(times)


@pytest.mark.parametrize("hudi", ["0.15.0", NEWEST], indirect=True)
def test_hudi_takes_bounds_for_points_in_time(tmp_path: Path, hudi: HudiOracle) -> None:
    """So do its options on Spark; everywhere else either time of a commit means that commit."""
    table = pyhudi.create_table(
        tmp_path / "t",
        SCHEMA,
        key="id",
        version=6 if hudi.hudi == "0.15.0" else 9,
        options={"hoodie.table.cdc.enabled": "true"},
    )
    results = [table.upsert(pa.Table.from_pylist(rows([n], n, n), SCHEMA)) for n in range(3)]

    def keys(begin: str, end: str, query: str) -> list[str]:
        read = hudi.read(tmp_path / "t", query=query, begin=begin, end=end, options=NO_FALLBACK)
        found = (
            row if query == "incremental" else json.loads(row["after"]) for row in read["rows"]
        )
        return sorted(row["id"] for row in found)

    def ours(begin: str, end: str) -> list[str]:
        return sorted(table.incremental(begin, end).to_arrow()["id"].to_pylist())

    first, _, last = ((result.instant, result.completion) for result in results)
    for begin, end in itertools.product(first, last):
        theirs = keys(begin, end, "incremental")
        assert ours(PlainTime(begin), PlainTime(end)) == theirs
        assert ours(begin, end) == ["k1", "k2"]
        # Ranges of changes have requested times in all versions.
        assert keys(begin, end, "cdc") == ["k1", "k2"]
        assert table.changes(begin, end).count() == 2
    if table.version == 9:
        assert keys(first[0], last[0], "incremental") == ["k0", "k1"]
