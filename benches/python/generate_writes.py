"""Makes the input of the write benchmark: the rows of each step, and what must stand after it.

A step is one commit: all rows, updates of a share of them with some new rows among them, deletes.
A fifth of the updates are late, so that the stored row wins. `expected.json` beside the inputs has
the sums (`rows.py`) of a right table after every step, worked out from the inputs.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import rows
from write_cases import STEPS, Step

_FIRST_TS = 1_000_000
_LATE_TS = 999_000
_LATE = 0.2
"""Share of the updates."""
_NUMBER = "number"
_ORDER = "order"


def main() -> None:
    """Parses the arguments and writes the inputs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for the inputs; emptied first")
    parser.add_argument("--rows", type=int, required=True)
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    standing: pa.Table | None = None
    expected = {}
    for number, (name, step) in enumerate(STEPS.items(), start=1):
        ids = _ids(step, given.rows, number)
        data = rows.make_rows(ids, _times(step, number, len(ids)), number)
        pq.write_table(data, given.folder / f"{name}.parquet", compression="snappy")
        standing = _after(standing, step, data, ids, number)
        expected[name] = rows.sums(standing.select(rows.SCHEMA.names))
    # Last: with it, the folder is known to be whole.
    (given.folder / "expected.json").write_text(json.dumps(expected, indent=2) + "\n")


def _ids(step: Step, count: int, number: int) -> pa.UInt64Array:
    """The numbers that the rows' keys are made of: a share of the first rows', and new ones."""
    if step.share == 1:
        return rows.numbers(count)
    ids = rows.pick(count, step.share, number).cast(pa.uint64())
    new = int(count * step.new)
    if not new:
        return ids
    fresh = pc.add(rows.numbers(new), pa.scalar(count * number, pa.uint64()))
    both = pa.concat_arrays([ids, fresh])
    return both.take(pc.sort_indices(pc.random(len(both), initializer=number)))


def _times(step: Step, number: int, count: int) -> pa.Int64Array:
    late = _LATE if step.verb == "upsert" else 0.0
    return rows.late_or(number * _FIRST_TS, _LATE_TS, late, count, number + 100)


def _after(
    standing: pa.Table | None, step: Step, data: pa.Table, ids: pa.UInt64Array, number: int
) -> pa.Table:
    """The rows that stand after a step: of each key the greatest event time."""
    order = pc.add(pc.multiply(data.column(rows.ORDERING), 1000), number)
    given = data.append_column(_NUMBER, pa.chunked_array([ids])).append_column(_ORDER, order)
    if standing is None:
        return given
    if step.verb == "delete":
        gone = pc.is_in(standing.column(_NUMBER), value_set=ids)
        return standing.filter(pc.invert(gone))
    both = pa.concat_tables([standing, given])
    newest = both.select([_NUMBER, _ORDER]).group_by(_NUMBER).aggregate([(_ORDER, "max")])
    newest = newest.rename_columns([_NUMBER, _ORDER])
    return both.join(newest, [_NUMBER, _ORDER], join_type="inner")


if __name__ == "__main__":
    main()
