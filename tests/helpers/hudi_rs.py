"""PyPI's `hudi` (hudi-rs) as a reader, and the golden reads that release 0.5.0 gets wrong.

A read that fails without being listed fails the tests, and so does a listed one that is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

import hudi
import pyarrow as pa

READ_OPTIMIZED = {"hoodie.read.use.read_optimized.mode": "true"}


def read(uri: str, options: hudi.HudiReadOptions | None = None) -> pa.Table:
    """Rows as `hudi` returns them; a table without columns if it returns no batch."""
    table = hudi.HudiTableBuilder.from_base_uri(uri).build()
    batches = [pa.Table.from_batches([batch]) for batch in table.read(options)]
    return pa.concat_tables(batches, promote_options="permissive") if batches else pa.table({})


@dataclass(frozen=True)
class Defect:
    """A feature of tables that `hudi` refuses, or reads wrongly."""

    reason: str
    error: str
    """Part of the message; "" for other rows without an error."""
    reads: tuple[str, ...]
    """Patterns of the names of golden reads."""


_NO_MERGER = ("aws_dms", "mysql_debezium", "overwrite_non_default", "partial_update")

DEFECTS = (
    Defect("version 4 or 5", "Only support table version 6, 8, and 9", ("v[45]_*",)),
    Defect(
        "ORC base files",
        "Config value 'ORC' is not supported",
        ("*_orc-snapshot", "*_orc_types-snapshot"),
    ),
    Defect("ORC base files beside Parquet files are left out", "", ("v9_mor_formats-snapshot",)),
    Defect(
        "partition columns left out of the files",
        "drop.partition.columns` is disabled",
        ("v9_cow_dropped_*", "*_cow_no_partition_columns-*"),
    ),
    Defect(
        "a custom key generator, version 9",
        r"`city\:SIMPLE` declared in `hoodie.table.partition.fields` is not present",
        ("v9_cow_by_custom-*",),
    ),
    Defect(
        "a timestamp key generator: the partition column has the stored value",
        "",
        ("v6_cow_timestamp_key-*", "v9_cow_by_ts_*", "v9_cow_by_slash_dates-*"),
    ),
    Defect(
        "an empty text as the value of a partition column, which Hudi reads as null",
        "",
        ("v6_cow_urlencode-*", "v9_cow_by_encoded_levels-*", "v9_cow_by_odd_texts_hive-*"),
    ),
    Defect(
        "a payload class with rules of its own, version 6",
        "merges with a merger of its own",
        (
            *(f"v6_mor_payload_{name}-snapshot" for name in _NO_MERGER),
            "v6_mor_payload_postgres_debezium-snapshot",
        ),
    ),
    Defect(
        "PostgresDebeziumAvroPayload, version 9: the rows of another rule",
        "",
        ("v9_mor_payload_postgres_debezium-snapshot",),
    ),
    Defect(
        "several ordering columns",
        "Multiple ordering fields",
        ("v9_mor_two_orderings-*", "v9_mor_payload_mysql_debezium-*"),
    ),
    Defect(
        "log files from before the type of a column became wider",
        "has type Int64 but the table schema expects Float64",
        ("v?_mor_evolution-snapshot",),
    ),
    Defect(
        "schema on read with other types in log files",
        "incompatible with target",
        ("v9_mor_schema_on_read_types-snapshot",),
    ),
    Defect(
        "schema on read: renamed columns are null",
        "",
        ("v?_mor_schema_on_read-*", "v?_mor_schema_on_read_nested-*"),
    ),
    Defect("timestamps without a zone", "not yet implemented", ("v9_mor_local_timestamps-*",)),
    Defect("INT96 timestamps after 2262", "", ("v6_cow_int96-*",)),
    Defect("BLOB columns in log files", "column 'content' type", ("v9_mor_blob*-snapshot",)),
    Defect("shredded VARIANT columns", "Found unmasked nulls", ("*_variant_shredded-*",)),
    Defect(
        "VECTOR columns have other values",
        "",
        (
            "v8by12_mor_vector-*",
            "v9_cow_vector-*",
            "v9_cow_vector_rows-*",
            "v9_mor_vector-*",
            "v9_mor_vector_parquet_log-*",
            "v9_mor_vector_sql-*",
        ),
    ),
    Defect("bootstrapped: columns of the source are null", "", ("v?_*_bootstrap_*",)),
    Defect("consistent hashing, version 8 or 9: no rows", "", ("v[89]_mor_consistent-snapshot",)),
    Defect(
        "a pending compaction, version 6: later rows are lost",
        "",
        ("v6by14_mor_compaction-snapshot",),
    ),
)
"""Each read has the first one that names it."""


def defect(read_name: str) -> Defect | None:
    """The defect that a golden read meets, None if `hudi` reads it as Hudi does."""
    return next(_named(read_name), None)


def _named(read_name: str) -> Iterator[Defect]:
    for each in DEFECTS:
        if any(fnmatchcase(read_name, pattern) for pattern in each.reads):
            yield each
