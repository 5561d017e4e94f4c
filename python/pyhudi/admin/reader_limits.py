"""The limits of engines that read Hudi tables, by the feature of a table that meets them.

The page `docs/reference/readers.md` and `Inspect.readers` have their content from here. A limit is
a measurement of this project (`tests/compat/test_hudi_rs.py`, `tests/other_engines`, and the tests
against Apache Hudi), or a statement of the engine's documentation; `source` says which. Without
either, the answer is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Answer = Literal["yes", "partly", "unknown", "wrong", "no"]
ANSWERS: tuple[Answer, ...] = ("yes", "partly", "unknown", "wrong", "no")
"""The answers, the worst one last. partly: the rows are right, with a limit. wrong: the engine
returns other rows without an error. no: it raises an error."""

FEATURES = {
    "old_version": "version 4 or 5",
    "version_8": "version 8",
    "version_9": "version 9",
    "merge_on_read": "merge-on-read",
    "log_files": "log files in the current file slices",
    "replaced_files": "files that a clustering or an overwrite replaced, not yet cleaned",
    "planned_compaction": "a pending compaction, version 6",
    "consistent_hashing": "consistent hashing, version 8 or 9",
    "typed_partitions": "a custom key generator, version 8 or 9",
    "timestamp_partitions": "a timestamp key generator",
    "plain_partitions": "partition directories without column names (not Hive-style)",
    "no_partitions": "no partitions",
    "dropped_partition_columns": "partition columns left out of the files",
    "no_meta_columns_6": "log files without meta columns (virtual keys), version 6",
    "no_meta_columns_8": "log files without meta columns (virtual keys), version 8",
    "several_orderings": "several ordering columns",
    "payload": "a payload class with rules of its own, merge-on-read, version 6 or 8",
    "debezium": "PostgresDebeziumAvroPayload, merge-on-read, version 9",
    "schema_history": "columns that `alter` or schema on read changed",
    "timestamps": "timestamps",
    "local_timestamps": "timestamps without a time zone",
    "vectors": "VECTOR columns",
    "blobs": "BLOB columns",
    "variants": "VARIANT columns",
    "orc_copy_on_write": "ORC base files, copy-on-write",
    "orc_merge_on_read": "ORC base files, merge-on-read",
    "bootstrap": "bootstrapped",
    "column_stats": "column statistics in the metadata table",
    "not_on_s3": "a location that is not on S3",
    "not_on_gcs": "a location that is not on Google Cloud Storage",
    "any": "any table",
}
"""Features of a table that matter to engines: name and description."""

SPARK_0, SPARK_1, SPARK_12 = "Spark, Hudi 0.15.0", "Spark, Hudi 1.0.2", "Spark, Hudi 1.2.0"
HIVE = "Hive, Hudi's input formats"
RS_5, RS_6 = "hudi-rs 0.5", "hudi-rs 0.6"
ATHENA, TRINO, BIGQUERY = "Athena", "Trino", "BigQuery"
DAFT, CLICKHOUSE = "Daft 0.7", "ClickHouse 26.9"

NEEDS = {
    SPARK_0: "",
    SPARK_1: "",
    SPARK_12: "",
    HIVE: "Register the table: table.sync(HiveCatalog(…)).",
    RS_5: "",
    RS_6: "",
    ATHENA: "Register the table: table.sync(GlueCatalog(…)).",
    TRINO: "Register the table: table.sync(HiveCatalog(…)), or of GlueCatalog.",
    BIGQUERY: "Run Hudi's BigQuerySyncTool after each commit; pyhudi has no such sync.",
    DAFT: "",
    CLICKHOUSE: "",
}
"""Conditions of each engine before it reads a table; "" for none."""
ENGINES = tuple(NEEDS)

_SPARKS = (SPARK_0, SPARK_1, SPARK_12)
_OTHERS = (HIVE, RS_5, ATHENA, TRINO, BIGQUERY, DAFT, CLICKHOUSE)

_HUDI = "measured with Apache Hudi on Spark 3.5"
_HIVE = "measured with the input formats of Hudi 1.2.0 and Hive 2.3's SerDe"
_RS = "measured with hudi 0.5.0 of PyPI"
_DAFT = "measured with Daft 0.7.26"
_CLICKHOUSE = "measured with chdb 4.4.0 (ClickHouse 26.9)"
_ATHENA_DOCS = (
    "docs.aws.amazon.com/athena/latest/ug/"
    "querying-hudi-in-athena-considerations-and-limitations.html"
)
_TRINO_DOCS = "trino.io/docs/current/connector/hudi.html"
_BIGQUERY_DOCS = "hudi.apache.org/docs/gcp_bigquery"
_CLICKHOUSE_DOCS = "clickhouse.com/docs/engines/table-engines/integrations/hudi"
_CATALOGS = "docs/how-to/catalogs.md"
_NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Limit:
    """The meaning of a feature of a table for an engine."""

    engine: str
    feature: str
    """A name of `FEATURES`."""
    answer: Answer
    """The answer for a table with this feature; yes if the limit is only a remark."""
    effect: str
    """Rows or error that you get."""
    change: str = ""
    """Advice; "" if no change of the table helps."""
    source: str = ""


def _same(engines: tuple[str, ...], *limit: str) -> tuple[Limit, ...]:
    return tuple(Limit(engine, *limit) for engine in engines)  # type: ignore[arg-type]


_DOWNGRADE_6 = "Write version 6: create_table(version=6), or table.downgrade(6)."
_DOWNGRADE_8 = "Write version 8: create_table(version=8), or table.downgrade(8)."
_COMPACT = "Run table.compact()."
_CLEAN = "Run table.clean() when no reader needs the older files any more."
_WITH_ZONE = 'Store timestamps with a zone: pyarrow.timestamp("us", "UTC").'
_PARQUET = "Use Parquet base files."

LIMITS: tuple[Limit, ...] = (
    # --- Spark ---
    *_same(_SPARKS, "old_version", "unknown", _NOT_MEASURED, "Run table.upgrade()."),
    Limit(SPARK_0, "version_8", "no", "IllegalArgumentException", _DOWNGRADE_6, _HUDI),
    Limit(SPARK_0, "version_9", "no", "IllegalArgumentException", _DOWNGRADE_6, _HUDI),
    Limit(SPARK_1, "version_9", "no", "refuses the table version", _DOWNGRADE_8, _HUDI),
    Limit(
        SPARK_0,
        "timestamp_partitions",
        "partly",
        "the partition column has the text of the directory, 1.2.0 has the stored value as text",
        "",
        "docs/reference/hudi-differences.md",
    ),
    Limit(SPARK_0, "local_timestamps", "no", "the query fails", _WITH_ZONE, _HUDI),
    Limit(
        SPARK_1,
        "local_timestamps",
        "wrong",
        "a timestamp without a zone is a number",
        _WITH_ZONE,
        _HUDI,
    ),
    *_same(
        _SPARKS,
        "schema_history",
        "partly",
        "renamed columns are null unless the read has schema on read",
        "Read with hoodie.schema.on.read.enable=true.",
        _HUDI,
    ),
    *_same(
        (SPARK_0, SPARK_1),
        "vectors",
        "partly",
        "a VECTOR is bytes",
        "Read with Hudi 1.2.",
        "docs/reference/vector-blob-variant.md",
    ),
    *_same((SPARK_0, SPARK_1), "blobs", "unknown", _NOT_MEASURED),
    *_same(
        _SPARKS, "variants", "unknown", "not measured: it needs Hudi for Spark 4, which has VARIANT"
    ),
    Limit(SPARK_1, "no_meta_columns_6", "no", "the query fails", _COMPACT, _HUDI),
    *_same(
        (SPARK_1, SPARK_12),
        "no_meta_columns_8",
        "no",
        "does not read the log files",
        _COMPACT,
        "docs/reference/unsupported-writes.md",
    ),
    Limit(
        SPARK_0,
        "orc_copy_on_write",
        "partly",
        "reads a table after one write",
        _PARQUET,
        "docs/reference/hudi-compatibility.md",
    ),
    *_same(
        (SPARK_1, SPARK_12),
        "orc_copy_on_write",
        "no",
        "does not read ORC",
        _PARQUET,
        "docs/reference/hudi-compatibility.md",
    ),
    *_same(
        (SPARK_0, SPARK_1),
        "orc_merge_on_read",
        "no",
        "does not read ORC",
        _PARQUET,
        "docs/reference/hudi-compatibility.md",
    ),
    Limit(
        SPARK_12,
        "orc_merge_on_read",
        "partly",
        "read-optimized queries fail",
        _PARQUET,
        "docs/reference/hudi-differences.md",
    ),
    *_same(
        _SPARKS,
        "column_stats",
        "yes",
        "some filters lose rows, such as those on columns with NaN",
        "Read with hoodie.enable.data.skipping=false.",
        "docs/reference/hudi-data-skipping.md",
    ),
    # --- Hive ---
    *_same((HIVE,), "old_version", "unknown", _NOT_MEASURED),
    Limit(HIVE, "version_8", "partly", "needs the bundle of Hudi 1.0 or later", "", _CATALOGS),
    Limit(HIVE, "version_9", "partly", "needs the bundle of Hudi 1.1 or later", "", _CATALOGS),
    Limit(
        HIVE,
        "log_files",
        "partly",
        "the view that ends in _ro has the rows of base files only",
        "Query the view without _ro.",
        _HIVE,
    ),
    Limit(
        HIVE,
        "timestamps",
        "partly",
        "a timestamp is a bigint, and the views that merge log files fail on it",
        "Sync with hoodie.datasource.hive_sync.support_timestamp=true: milliseconds.",
        _HIVE,
    ),
    *_same((HIVE,), "orc_copy_on_write", "unknown", _NOT_MEASURED),
    *_same((HIVE,), "orc_merge_on_read", "unknown", _NOT_MEASURED),
    # --- hudi-rs ---
    Limit(RS_6, "any", "unknown", "not measured: PyPI has no such release yet"),
    Limit(RS_5, "old_version", "no", "refuses the table version", "Run table.upgrade().", _RS),
    Limit(
        RS_5,
        "planned_compaction",
        "wrong",
        "loses what was written after the compaction was planned",
        "Run table.compact(schedule=False), which executes the plan.",
        _RS,
    ),
    Limit(RS_5, "consistent_hashing", "wrong", "returns no rows", "", _RS),
    Limit(
        RS_5,
        "typed_partitions",
        "no",
        "takes the type of the partition column, as in city:simple, for a part of its name",
        "",
        _RS,
    ),
    Limit(
        RS_5,
        "timestamp_partitions",
        "partly",
        "the partition column has the stored value, not text as in Hudi 1.2.0",
        "",
        _RS,
    ),
    Limit(RS_5, "dropped_partition_columns", "no", "refuses the table", "", _RS),
    Limit(RS_5, "several_orderings", "no", "refuses the table", "Use one ordering column.", _RS),
    Limit(RS_5, "payload", "no", "refuses to merge log files", _COMPACT, _RS),
    Limit(RS_5, "debezium", "wrong", "merges log files by another rule", _COMPACT, _RS),
    Limit(RS_5, "schema_history", "wrong", "renamed columns are null", "", _RS),
    Limit(RS_5, "local_timestamps", "no", '"not yet implemented"', _WITH_ZONE, _RS),
    Limit(RS_5, "vectors", "wrong", "a VECTOR has other values", "", _RS),
    Limit(RS_5, "blobs", "partly", "fails on log files", _COMPACT, _RS),
    Limit(RS_5, "variants", "partly", "fails on shredded files", "", _RS),
    *_same((RS_5,), "orc_copy_on_write", "no", "does not read ORC", _PARQUET, _RS),
    *_same((RS_5,), "orc_merge_on_read", "no", "does not read ORC", _PARQUET, _RS),
    Limit(RS_5, "bootstrap", "wrong", "the columns of the source are null", "", _RS),
    # --- Athena ---
    Limit(ATHENA, "not_on_s3", "no", "reads tables on S3", "Copy the table to S3.", _ATHENA_DOCS),
    *_same(
        (ATHENA,),
        "version_8",
        "unknown",
        "supports Hudi 0.14.0 and 0.15.0, and guarantees nothing for tables of later releases",
        _DOWNGRADE_6,
        _ATHENA_DOCS,
    ),
    *_same(
        (ATHENA,),
        "version_9",
        "unknown",
        "supports Hudi 0.14.0 and 0.15.0, and guarantees nothing for tables of later releases",
        _DOWNGRADE_6,
        _ATHENA_DOCS,
    ),
    Limit(
        ATHENA,
        "log_files",
        "partly",
        "read-optimized queries have the rows of base files only",
        "Query the view without _ro, or run table.compact().",
        _ATHENA_DOCS,
    ),
    Limit(
        ATHENA,
        "bootstrap",
        "partly",
        "the connector 0.15.0 does not read bootstrapped tables",
        "Use the connector 0.14.0, the default.",
        _ATHENA_DOCS,
    ),
    # --- Trino ---
    *_same((TRINO,), "version_8", "unknown", _NOT_MEASURED, _DOWNGRADE_6),
    *_same((TRINO,), "version_9", "unknown", _NOT_MEASURED, _DOWNGRADE_6),
    Limit(
        TRINO,
        "log_files",
        "partly",
        "returns the rows of base files only (read-optimized queries)",
        _COMPACT,
        _TRINO_DOCS,
    ),
    *_same((TRINO,), "orc_copy_on_write", "no", "needs Parquet files", _PARQUET, _TRINO_DOCS),
    *_same((TRINO,), "orc_merge_on_read", "no", "needs Parquet files", _PARQUET, _TRINO_DOCS),
    # --- BigQuery ---
    Limit(
        BIGQUERY,
        "not_on_gcs",
        "no",
        "reads external tables on Google Cloud Storage",
        "Copy the table to a bucket of Google Cloud Storage.",
        _BIGQUERY_DOCS,
    ),
    Limit(
        BIGQUERY,
        "plain_partitions",
        "no",
        "works for Hive-style partitions only",
        "Create the table with hoodie.datasource.write.hive_style_partitioning=true.",
        _BIGQUERY_DOCS,
    ),
    Limit(BIGQUERY, "no_partitions", "unknown", "documented for partitioned tables"),
    Limit(BIGQUERY, "version_8", "unknown", "not measured: needs the sync tool of Hudi 1.0"),
    Limit(BIGQUERY, "version_9", "unknown", "not measured: needs the sync tool of Hudi 1.1"),
    Limit(
        BIGQUERY,
        "log_files",
        "partly",
        "returns the rows of base files only",
        _COMPACT,
        _BIGQUERY_DOCS,
    ),
    # --- Daft ---
    *_same((DAFT,), "version_8", "no", "reads versions 5 and 6", _DOWNGRADE_6, _DAFT),
    *_same((DAFT,), "version_9", "no", "reads versions 5 and 6", _DOWNGRADE_6, _DAFT),
    Limit(DAFT, "merge_on_read", "no", "reads copy-on-write tables", "", _DAFT),
    Limit(
        DAFT, "replaced_files", "wrong", "returns the rows of replaced files, too", _CLEAN, _DAFT
    ),
    Limit(
        DAFT,
        "schema_history",
        "wrong",
        "renamed columns are null; fails on files without an added column",
        "Run table.cluster(), which rewrites the files, then table.clean().",
        _DAFT,
    ),
    Limit(
        DAFT,
        "timestamp_partitions",
        "partly",
        "the partition column has the stored value, not text as in Hudi 1.2.0",
        "",
        _DAFT,
    ),
    *_same((DAFT,), "orc_copy_on_write", "no", "does not read ORC", _PARQUET, _DAFT),
    # --- ClickHouse ---
    Limit(
        CLICKHOUSE,
        "not_on_s3",
        "no",
        "reads tables on S3",
        "Copy the table to S3.",
        _CLICKHOUSE_DOCS,
    ),
    Limit(
        CLICKHOUSE,
        "log_files",
        "wrong",
        "ignores log files: rows are older, deleted rows are there, new columns are not",
        _COMPACT,
        _CLICKHOUSE,
    ),
    Limit(
        CLICKHOUSE,
        "replaced_files",
        "wrong",
        "returns the rows of replaced files, too",
        _CLEAN,
        _CLICKHOUSE,
    ),
    Limit(CLICKHOUSE, "schema_history", "wrong", "renamed columns are null", "", _CLICKHOUSE),
    Limit(
        CLICKHOUSE,
        "timestamp_partitions",
        "partly",
        "the partition column has the stored value, not text as in Hudi 1.2.0",
        "",
        _CLICKHOUSE,
    ),
    Limit(
        CLICKHOUSE,
        "local_timestamps",
        "partly",
        "a timestamp without a zone gets the zone UTC",
        "",
        _CLICKHOUSE,
    ),
    *_same((CLICKHOUSE,), "orc_copy_on_write", "no", "does not read ORC", _PARQUET, _CLICKHOUSE),
    *_same((CLICKHOUSE,), "orc_merge_on_read", "no", "does not read ORC", _PARQUET, _CLICKHOUSE),
    # --- unknown ---
    *_same((ATHENA, TRINO, BIGQUERY, CLICKHOUSE), "old_version", "unknown", _NOT_MEASURED),
    *_same((ATHENA, BIGQUERY), "orc_copy_on_write", "unknown", _NOT_MEASURED),
    *_same((ATHENA, BIGQUERY), "orc_merge_on_read", "unknown", _NOT_MEASURED),
    *_same(
        (DAFT, CLICKHOUSE, HIVE, ATHENA, TRINO, BIGQUERY),
        "dropped_partition_columns",
        "unknown",
        _NOT_MEASURED,
    ),
    *_same((HIVE, ATHENA, TRINO, BIGQUERY), "schema_history", "unknown", _NOT_MEASURED),
    *_same((HIVE, ATHENA, TRINO, BIGQUERY), "local_timestamps", "unknown", _NOT_MEASURED),
    *_same((TRINO, BIGQUERY, DAFT, CLICKHOUSE), "bootstrap", "unknown", _NOT_MEASURED),
    *(
        limit
        for feature in ("vectors", "blobs", "variants")
        for limit in _same(
            (HIVE, ATHENA, TRINO, BIGQUERY, DAFT, CLICKHOUSE), feature, "unknown", _NOT_MEASURED
        )
    ),
)
"""All limits, by engine."""


def limits_of(engine: str) -> Iterator[Limit]:
    """Yield the limits of an engine, in the order of the features."""
    order = list(FEATURES)
    own = (limit for limit in LIMITS if limit.engine == engine)
    yield from sorted(own, key=lambda limit: order.index(limit.feature))
