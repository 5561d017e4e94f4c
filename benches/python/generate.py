"""Makes the table of the merge-on-read benchmark with pyhudi, and notes what is in it.

The table has base files of every row's first version, and log files of updates (a fifth of them
late, so that the base row wins) and deletes. `expected.json` beside it has the sums (`rows.py`)
that a right reader's rows must have, worked out from what was written, not by reading.
"""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import rows

import pyhudi

TABLE = "table"
EXPECTED = "expected.json"

_FIRST_TS = 1_000_000
_LATE_TS = 999_000
_LATE_SHARE = 0.2
_DELETED_SHARE = 0.02


@dataclass(frozen=True)
class Upsert:
    """One commit into the log files. Shares are of the table's first rows."""

    updated: float
    new: float
    seed: int


_UPSERTS = (Upsert(0.10, 0.005, 11), Upsert(0.06, 0.003, 12), Upsert(0.04, 0.002, 13))
_DELETE_SEED = 14


@dataclass(frozen=True)
class Generation:
    """The rows of one commit, and the numbers that their keys are made of."""

    ids: pa.UInt64Array
    data: pa.Table


def main() -> None:
    """Parses the arguments and makes the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for the table; emptied first")
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--version", type=int, default=9, help="table version: 8 or 9")
    parser.add_argument("--codec", default="gzip", help="of the base files")
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    expected = make_table(given.folder / TABLE, given.rows, given.version, given.codec)
    # Last: with it, the folder is known to be whole.
    (given.folder / EXPECTED).write_text(json.dumps(expected, indent=2) + "\n")


def make_table(path: Path, count: int, version: int, codec: str) -> dict[str, dict[str, int]]:
    """Writes the table; the sums of its rows, and of its base files' rows."""
    generations = _generations(count)
    first, *updates = generations
    table = pyhudi.create_table(
        str(path),
        rows.SCHEMA,
        key=rows.KEY,
        partition_by=rows.PARTITION,
        order_by=rows.ORDERING,
        type="mor",
        version=version,
        options={
            "hoodie.parquet.compression.codec": codec,
            # One large file a partition, and no rewriting of it by new rows: updates stay in logs.
            "hoodie.copyonwrite.record.size.estimate": "100",
            "hoodie.parquet.small.file.limit": "0",
        },
    )
    table.insert(first.data)
    for update in updates:
        table.upsert(update.data)
    deleted = rows.pick(count, _DELETED_SHARE, _DELETE_SEED)
    cities = first.data.column(rows.PARTITION).take(deleted)
    table.delete_keys(pa.table({rows.KEY: rows.keys(deleted), rows.PARTITION: cities}))
    return {
        "snapshot": rows.sums(_snapshot(generations, deleted)),
        "base files": rows.sums(_first_versions(generations, count)),
    }


def _generations(count: int) -> list[Generation]:
    ids = rows.numbers(count)
    found = [Generation(ids, rows.make_rows(ids, _constant(_FIRST_TS, count), 1))]
    next_id = count
    for number, upsert in enumerate(_UPSERTS, start=2):
        known = rows.pick(count, upsert.updated, upsert.seed)
        new = int(count * upsert.new)
        fresh = pc.add(rows.numbers(new), pa.scalar(next_id, pa.uint64()))
        ids = pa.concat_arrays([known.cast(pa.uint64()), fresh])
        now = number * _FIRST_TS
        ts = rows.late_or(now, _LATE_TS, _LATE_SHARE, len(ids), upsert.seed + 100)
        found.append(Generation(ids, rows.make_rows(ids, ts, number)))
        next_id += new
    return found


def _constant(value: int, count: int) -> pa.Int64Array:
    return pa.repeat(pa.scalar(value, pa.int64()), count)


def _snapshot(generations: list[Generation], deleted: pa.Array) -> pa.Table:
    """The greatest event time of each id, of equals the latest written, without the deleted."""
    tagged = pa.concat_tables(
        generation.data.append_column("number", pa.chunked_array([generation.ids])).append_column(
            "commit", _constant(commit, len(generation.ids))
        )
        for commit, generation in enumerate(generations)
    )
    order = pc.add(pc.multiply(tagged.column(rows.ORDERING), 1000), tagged.column("commit"))
    tagged = tagged.append_column("order", order)
    newest = tagged.select(["number", "order"]).group_by("number").aggregate([("order", "max")])
    kept = tagged.join(newest, ["number", "order"], ["number", "order_max"], join_type="inner")
    gone = pc.is_in(kept.column("number"), value_set=deleted.cast(pa.uint64()))
    return kept.filter(pc.invert(gone)).select(rows.SCHEMA.names)


def _first_versions(generations: list[Generation], count: int) -> pa.Table:
    """What is in base files: all first rows, and the rows that were new in later commits."""
    first, *updates = generations
    new = (
        update.data.filter(pc.greater_equal(update.ids, pa.scalar(count, pa.uint64())))
        for update in updates
    )
    return pa.concat_tables([first.data, *new])


if __name__ == "__main__":
    main()
