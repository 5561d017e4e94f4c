"""Options maps of Hudi's Spark writer, with what Apache Hudi 1.2.0 makes of them: rows, properties.

`tests/compat/test_options_maps.py` checks that Hudi has these rows;
`tests/spark/test_options_maps.py` writes with the same maps on pyhudi.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

from tests.helpers.pairwise import pairwise

FILE = Path(__file__).parents[1] / "fixtures/options/maps.json"
RELEASE = "1.2.0"

W = "hoodie.datasource.write."
COLUMNS = "id string, n int, p string, day bigint, v bigint, ts bigint"
_DAY = 86_400_000

OPERATIONS = (
    "",
    "insert",
    "bulk_insert",
    "delete",
    "insert_overwrite",
    "insert_overwrite_table",
    "delete_partition",
)
"""Operations of the second write; "" for a map without one."""
INDEXES: dict[str, dict[str, str]] = {
    "": {},
    "global_simple": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "bloom": {"hoodie.index.type": "BLOOM"},
    "global_bloom": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    "record_index": {
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.global.record.level.index.enable": "true",
    },
}
MERGES: dict[str, dict[str, str]] = {
    "": {},
    "ordered": {W + "precombine.field": "ts"},
    "commit_time": {
        "hoodie.table.ordering.fields": "ts",
        "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
    },
    "payload": {
        W + "precombine.field": "ts",
        W + "payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    },
}
KEYS: dict[str, dict[str, str]] = {
    "simple": {W + "recordkey.field": "id", W + "partitionpath.field": "p"},
    "complex": {
        W + "recordkey.field": "id,n",
        W + "partitionpath.field": "p,n",
        W + "hive_style_partitioning": "true",
    },
    "unpartitioned": {W + "recordkey.field": "id"},
    "timestamp": {
        W + "recordkey.field": "id",
        W + "partitionpath.field": "day",
        W + "keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
        "hoodie.keygen.timebased.timezone": "UTC",
    },
    "custom": {
        W + "recordkey.field": "id",
        W + "partitionpath.field": "p:simple,n:simple",
        W + "keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
    },
    "generated": {W + "partitionpath.field": "p"},
}
_PARTITION_TO_DELETE = {W + "partitions.to.delete": "x"}
"""Hudi cannot read the partitions from rows without a key (`AutoRecordGenWrapperKeyGenerator`)."""
TYPES = {"cow": {}, "mor": {W + "table.type": "MERGE_ON_READ"}}


def _is_possible(operation: str, index: str, merge: str, keys: str, table_type: str) -> bool:
    """Return whether a map makes sense: rows without a key of their own cannot be found again."""
    del table_type
    if keys == "generated":
        return operation != "delete" and not index and not merge
    return not (keys == "unpartitioned" and operation == "delete_partition")


@cache
def cases() -> dict[str, dict[str, str]]:
    """Return the maps of the second write by their names, mixed: some of them vary all axes."""
    axes = pairwise(
        OPERATIONS, tuple(INDEXES), tuple(MERGES), tuple(KEYS), tuple(TYPES), allowed=_is_possible
    )
    return {
        "-".join(case): {
            "hoodie.table.name": "trips",
            **({W + "operation": case[0]} if case[0] else {}),
            **INDEXES[case[1]],
            **MERGES[case[2]],
            **KEYS[case[3]],
            **TYPES[case[4]],
            **(
                _PARTITION_TO_DELETE
                if case[0] == "delete_partition" and case[3] == "generated"
                else {}
            ),
        }
        for case in sorted(axes, key=lambda case: crc32(repr(case).encode()))
    }


def writes(options: dict[str, str]) -> list[tuple[list[dict[str, Any]], dict[str, str]]]:
    """Return rows and options of each write: the first one creates the table.

    Rows of the second write have smaller ordering values, other partitions, and keys twice.
    """
    operation = options.get(W + "operation")
    first = [_row("a", "x", 1, 2), _row("a", "x", 2, 1), _row("b", "x", 3, 5)]
    first += [_row("c", "y", 4, 1), _row("d", "z", 5, 1)]
    second = [_row("a", "x", 10, 1), _row("c", "x", 11, 5)]
    if operation != "delete_partition":
        second += [_row("e", "y", 12, 3), _row("e", "y", 13, 2)]
    if operation in ("insert", "bulk_insert") and "RECORD_INDEX" in options.values():
        # Hudi's record index fails on keys that a batch has twice.
        first, second = ([*{row["id"]: row for row in rows}.values()] for rows in (first, second))
    creating = dict(options)
    if operation in ("delete", "delete_partition"):
        del creating[W + "operation"]
    return [(first, creating), (second, options)]


def third_write(options: dict[str, str]) -> list[dict[str, Any]]:
    """Return rows that another engine writes with the same options."""
    rows = [_row("a", "x", 20, 3), _row("d", "z", 21, 9), _row("f", "y", 22, 1)]
    return rows[1:2] if options.get(W + "operation") == "delete_partition" else rows


def _row(key: str, partition: str, v: int, ts: int) -> dict[str, Any]:
    number = "xyz".index(partition)
    return {
        "id": key,
        "n": number,
        "p": partition,
        "day": (20_000 + number) * _DAY,
        "v": v,
        "ts": ts,
    }


def normalize_rows(rows: list[dict[str, Any]], options: dict[str, str], base: Path) -> list[str]:
    """Return a table's rows in a form and order that compare.

    They have keys, partition paths, values and the number of the commit that wrote the row.
    """
    columns = ["_hoodie_partition_path", "id", "v", "ts"]
    if W + "recordkey.field" in options:  # Generated keys differ.
        columns.append("_hoodie_record_key")
    commits = _commits(base)
    return sorted(
        json.dumps(
            {name: row[name] for name in columns}
            | {"commit": commits.index(row["_hoodie_commit_time"]) + 1}
        )
        for row in rows
    )


def _commits(base: Path) -> list[str]:
    """Return the times of a table's writes, the first one first."""
    actions = (".commit", ".deltacommit", ".replacecommit")
    files = (base / ".hoodie/timeline").glob("*_*")  # A completed file has two times.
    return sorted(file.name.partition("_")[0] for file in files if file.suffix in actions)


PROPERTIES = (
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode",
    "hoodie.populate.meta.fields",
    "hoodie.record.merge.mode",
    "hoodie.table.base.file.format",
    "hoodie.table.cdc.enabled",
    "hoodie.table.keygenerator.type",
    "hoodie.table.metadata.partitions",
    "hoodie.table.ordering.fields",
    "hoodie.table.partition.fields",
    "hoodie.table.recordkey.fields",
    "hoodie.table.type",
    "hoodie.table.version",
)
"""Properties of a table that follow from the options and their defaults."""


def properties(base: Path) -> dict[str, str]:
    """Return these properties of a table."""
    lines = (base / ".hoodie/hoodie.properties").read_text().splitlines()
    pairs = dict(line.split("=", 1) for line in lines if "=" in line)
    return {name: pairs.get(name, "").replace("\\", "") for name in PROPERTIES}


@dataclass(frozen=True)
class Recorded:
    """Hudi's result of a map."""

    rows: list[str]
    properties: dict[str, str]


DIFFERENCES: dict[str, dict[tuple[str, int, int], int | None]] = {
    # Hudi writes a row that wins over the incoming one again, under a global index.
    "-global_simple-ordered-complex-mor": {("a", 1, 2): 1},
    # Hudi adds a second file group to the bucket, on which upserts fail.
    "bulk_insert-bucket--simple-cow": {("a", 1, 1): None, ("e", 12, 2): None},
}
"""Rows that pyhudi writes otherwise on purpose, as docs/reference/spark-options.md says.

By key, value and commit of Hudi's row the commit of pyhudi's; None if it has no such row.
"""


def expected_rows(case: str) -> list[str]:
    """Return the rows that pyhudi makes of a map: Hudi's, but for the `DIFFERENCES`."""
    changes = DIFFERENCES.get(case, {})
    rows = [json.loads(row) for row in load()[case].rows]
    for row in rows:
        hudis = (row["id"], row["v"], row["commit"])
        row["commit"] = changes.get(hudis, row["commit"])
    return sorted(json.dumps(row) for row in rows if row["commit"] is not None)


def load() -> dict[str, Recorded]:
    """Return Hudi's results by the names of the maps."""
    return {name: Recorded(**result) for name, result in json.loads(FILE.read_text()).items()}
