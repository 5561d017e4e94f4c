"""Makes the table with a record index of the read benchmark, with Apache Hudi itself.

pyhudi reads record indexes but does not write them. The rows come in several commits of inserts,
so that the table has many file groups; keys that came together lie in few of them.
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
from generate import write_delta
from spark_reads import RELEASE, HudiOracle

_COMMITS = 4
_LAST = 0.01
"""Share of the rows that the last commit brings."""
_KEYS = 1000
_OPTIONS = {
    "hoodie.table.name": "indexed",
    "hoodie.datasource.write.recordkey.field": rows.KEY,
    "hoodie.datasource.write.partitionpath.field": rows.PARTITION,
    "hoodie.datasource.write.precombine.field": rows.ORDERING,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "4",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.bulkinsert.shuffle.parallelism": "4",
    "hoodie.bulkinsert.sort.mode": "PARTITION_SORT",
}


def main() -> None:
    """Parses the arguments and makes the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for the table; emptied first")
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--version", type=int, default=9)
    parser.add_argument("--codec", default="gzip", help="of the base files")
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    ids = rows.numbers(given.rows)
    data = rows.make_rows(ids, pa.repeat(pa.scalar(1_000_000, pa.int64()), given.rows), 1)
    _write(given, data)
    write_delta(given.folder / "delta", data, given.codec)
    wanted = {
        "recent": ids.slice(given.rows - 2 * _KEYS, _KEYS),
        "spread": rows.pick(given.rows, 1.0, 5).slice(0, _KEYS),
    }
    keys = {name: rows.keys(some.cast(pa.uint64())) for name, some in wanted.items()}
    expected = {"snapshot": rows.sums(data)}
    for name, some in keys.items():
        expected[name] = rows.sums(data.filter(pc.is_in(data.column(rows.KEY), value_set=some)))
    noted = {name: some.to_pylist() for name, some in keys.items()}
    (given.folder / "keys.json").write_text(json.dumps(noted) + "\n")
    (given.folder / "expected.json").write_text(json.dumps(expected, indent=2) + "\n")


def _write(given: argparse.Namespace, data: pa.Table) -> None:
    """Commits of equal size, and a small last one."""
    options = {
        **_OPTIONS,
        "hoodie.write.table.version": str(given.version),
        "hoodie.parquet.compression.codec": given.codec,
    }
    last = int(given.rows * _LAST)
    step = -(-(given.rows - last) // _COMMITS)
    starts = [*range(0, given.rows - last, step), given.rows - last]
    ends = [*starts[1:], given.rows]
    source = given.folder.resolve() / "source.parquet"
    with HudiOracle(RELEASE, memory="5g") as hudi:
        for start, end in zip(starts, ends, strict=True):
            pq.write_table(data.slice(start, end - start), source)
            hudi.write(
                source.with_name("table"), input=source, operation="bulk_insert", options=options
            )
    source.unlink()


if __name__ == "__main__":
    main()
