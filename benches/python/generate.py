"""Makes the tables of the read benchmark with pyhudi, and notes what is in them.

A table has base files of every row's first version, and log files of updates (some of them late,
so that the base row wins) and deletes. `expected.json` beside it has the sums (`rows.py`) that a
right reader's rows must have, worked out from what was written, not by reading. `delta` beside it
has the same rows in a Delta table. The table with a record index is `generate_indexed.py`'s.
"""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import rows
from cases import CASES, DERIVED, SHAPES, Condition, Shape
from deltalake import WriterProperties, write_deltalake
from parquet_blocks import rewrite_log_files

import pyhudi

_FIRST_TS = 1_000_000
_LATE_TS = 999_000
_SEED = 10


@dataclass(frozen=True)
class Generation:
    """The rows of one commit, and the numbers that their keys are made of."""

    ids: pa.UInt64Array
    data: pa.Table


def main() -> None:
    """Parses the arguments and makes the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for the table; emptied first")
    parser.add_argument("--shape", choices=[*SHAPES, *DERIVED], required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--version", type=int, default=9, help="table version: 8 or 9")
    parser.add_argument("--codec", default="gzip", help="of the base files")
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    if given.shape in DERIVED:
        derive(given.folder, given.folder.with_name(DERIVED[given.shape]), given.codec)
        return
    given.folder.mkdir(parents=True)
    expected = make_table(given.folder, SHAPES[given.shape], given)
    # Last: with it, the folder is known to be whole.
    (given.folder / "expected.json").write_text(json.dumps(expected, indent=2) + "\n")


def derive(folder: Path, origin: Path, codec: str) -> None:
    """A copy of a table with Parquet blocks in its log files."""
    shutil.copytree(origin / "table", folder / "table")
    rewrite_log_files(folder / "table", codec)
    (folder / "delta").symlink_to(origin.resolve() / "delta")
    shutil.copy(origin / "expected.json", folder / "expected.json")


def make_table(folder: Path, shape: Shape, given: argparse.Namespace) -> dict[str, Any]:
    """Writes the table; the sums of its rows by every case, and of its base files' rows."""
    generations = _generations(given.rows, shape)
    first, *updates, last = generations
    table = new_table(folder / "table", given.version, given.codec)
    table.insert(first.data)
    for update in updates:
        table.upsert(update.data)
    deleted = rows.pick(given.rows, shape.deleted, _SEED)
    cities = first.data.column(rows.PARTITION).take(deleted)
    keys = pa.table({rows.KEY: rows.keys(deleted), rows.PARTITION: cities})
    before = table.delete_keys(keys)
    table.upsert(last.data)
    standing = _snapshot(generations, deleted)
    snapshot = standing.select(rows.SCHEMA.names)
    write_delta(folder / "delta", snapshot, given.codec)
    newest = pc.equal(standing.column("commit"), len(generations) - 1)
    base = _first_versions(generations, given.rows)
    where = CASES["d"].where
    return {
        "snapshot": rows.sums(snapshot),
        "base files": rows.sums(base),
        "filtered": rows.sums(filtered(snapshot, where)),
        "base files filtered": rows.sums(filtered(base, where)),
        "last commit": rows.sums(snapshot.filter(newest)),
        "since": {"requested": before.instant, "completed": before.completion},
    }


def new_table(path: Path, version: int, codec: str) -> pyhudi.HudiTable:
    """An empty merge-on-read table that keeps updates in its log files."""
    return pyhudi.create_table(
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
            # By default pyhudi compacts file groups with many log files.
            "hoodie.compact.inline": "false",
            "hoodie.metadata.enable": "false",
        },
    )


def write_delta(path: Path, data: pa.Table, codec: str) -> None:
    """The rows as a Delta table, partitioned and compressed as the Hudi table is."""
    properties = WriterProperties(compression=codec.upper())
    write_deltalake(path, data, partition_by=[rows.PARTITION], writer_properties=properties)


def filtered(data: pa.Table, where: tuple[Condition, ...]) -> pa.Table:
    """The rows that fulfil all conditions."""
    for column, comparison, value in where:
        test = {"=": pc.equal, ">": pc.greater}[comparison]
        data = data.filter(test(data.column(column), value))
    return data


def _generations(count: int, shape: Shape) -> list[Generation]:
    ids = rows.numbers(count)
    found = [Generation(ids, rows.make_rows(ids, _constant(_FIRST_TS, count), 1))]
    next_id = count
    for number, upsert in enumerate(shape.upserts, start=2):
        seed = _SEED + number
        ids = rows.pick(count, upsert.updated, seed).cast(pa.uint64())
        if new := int(count * upsert.new):
            fresh = pc.add(rows.numbers(new), pa.scalar(next_id, pa.uint64()))
            ids = pa.concat_arrays([ids, fresh])
        ts = rows.late_or(number * _FIRST_TS, _LATE_TS, upsert.late, len(ids), seed + 100)
        found.append(Generation(ids, rows.make_rows(ids, ts, number)))
        next_id += new
    return found


def _constant(value: int, count: int) -> pa.Int64Array:
    return pa.repeat(pa.scalar(value, pa.int64()), count)


def _snapshot(generations: list[Generation], deleted: pa.Array) -> pa.Table:
    """The rows that stand, with the number of the commit that each is of.

    Of each id the greatest event time, of equals the latest written, none that was deleted; and all
    of the last commit, which is newer than anything before.
    """
    *earlier, last = generations
    tagged = pa.concat_tables(_tagged(commit, one) for commit, one in enumerate(earlier))
    order = pc.add(pc.multiply(tagged.column(rows.ORDERING), 1000), tagged.column("commit"))
    tagged = tagged.append_column("order", order)
    newest = tagged.select(["number", "order"]).group_by("number").aggregate([("order", "max")])
    kept = tagged.join(newest, ["number", "order"], ["number", "order_max"], join_type="inner")
    gone = pa.concat_arrays([deleted.cast(pa.uint64()), last.ids])
    kept = kept.filter(pc.invert(pc.is_in(kept.column("number"), value_set=gone)))
    ending = _tagged(len(earlier), last)
    return pa.concat_tables([kept.select(ending.column_names), ending])


def _tagged(commit: int, generation: Generation) -> pa.Table:
    numbered = generation.data.append_column("number", pa.chunked_array([generation.ids]))
    return numbered.append_column("commit", _constant(commit, len(generation.ids)))


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
