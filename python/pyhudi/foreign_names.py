"""Names that tables and rows have in other libraries: an error says what to write in pyhudi.

The libraries are those of Delta Lake, Iceberg, Paimon, Lance, pandas, polars and Spark. A name that
no library has raises Python's own error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Equivalents: TypeAlias = Mapping[tuple[str, ...], str]
"""Names of other libraries, and the sentence that says what to write."""

_READ: Equivalents = {
    ("to_pyarrow_table", "to_pyarrow", "to_table", "arrow", "collect", "read"): (
        "Write {rows}.to_arrow()."
    ),
    ("toPandas", "to_df", "df"): "Write {rows}.to_pandas().",
    ("to_batches", "to_record_batch_reader", "to_arrow_batch_reader", "iter_batches"): (
        "Write {rows}.to_reader()."
    ),
    ("to_pylist", "to_list", "to_dicts", "fetchall", "rows", "iterrows", "to_dict"): (
        "Write {rows}.to_arrow().to_pylist(), or read batches from {rows}.to_reader()."
    ),
    ("num_rows", "count_rows", "shape"): "Write {rows}.count(), or len({rows}).",
    ("columns", "column_names", "dtypes"): "Write {rows}.schema, such as {rows}.schema.names.",
    ("limit", "take", "tail", "sample", "display"): (
        "Write {rows}.head(n), or pass limit=n to table.scan()."
    ),
    (
        "sort_values",
        "sort",
        "order_by",
        "orderBy",
        "groupby",
        "group_by",
        "groupBy",
        "join",
        "agg",
    ): ("Read the rows into a library that does it, for example by table.scan().to_polars_lazy()."),
    ("query", "register", "createOrReplaceTempView", "createTempView"): (
        'Write table.sql("SELECT ... FROM t").'
    ),
    ("to_parquet", "write_parquet", "to_csv", "write_csv", "to_json", "sink_parquet"): (
        "Write {rows}.to_arrow() with pyarrow, or run `pyhudi export`."
    ),
    ("to_ray", "to_dask", "to_daft", "to_torch"): (
        "Split the rows by table.scan().splits(): see docs/how-to/ray-dask-daft.md."
    ),
    ("iloc", "loc", "at", "iat"): (
        'Write table.get(keys) for rows of these keys, or table.scan(where="…").'
    ),
    ("plan_files",): "Write table.scan().plan().",
}
_TABLE: Equivalents = {
    **_READ,
    ("to_pyarrow_dataset",): "Write table.scan().to_dataset().",
    ("lazy", "to_polars_lazy", "to_lazy"): "Write table.scan().to_polars_lazy().",
    ("to_duckdb",): 'Write table.scan().to_duckdb(connection, "t").',
    ("to_spark", "toDF"): "Write table.scan().to_spark(), on a table opened with a SparkEngine.",
    ("splits", "new_read_builder"): "Write table.scan().splits().",
    ("nearest", "search", "vector_search"): "Write table.scan().nearest(column, vector, k).",
    ("filter", "where", "select", "project", "with_columns", "scanner"): (
        'Write table.scan(columns=[…], where="fare > 10").'
    ),
    ("describe", "info", "detail", "metadata", "protocol", "stats"): (
        "Write table.config, table.inspect.health(), or pyhudi.show(table)."
    ),
    # --- writes ---
    ("append", "add", "write", "save"): (
        "Write table.insert(rows), or table.upsert(rows) to replace rows that have the same key."
    ),
    ("merge_insert",): "Write table.upsert(rows), or table.merge(rows).",
    ("new_batch_write_builder", "new_stream_write_builder"): (
        "Write table.upsert(rows), or table.writer() for many small batches."
    ),
    ("dynamic_partition_overwrite", "insert_overwrite"): (
        "Write table.overwrite_partitions(rows)."
    ),
    ("delete_rows",): ("Write table.delete(where), or table.delete_keys(keys)."),
    ("truncate",): 'Write table.delete("true").',
    ("deduplicate", "drop_duplicates", "distinct", "unique"): (
        "An upsert keeps keys unique. table.check(deep=True) finds duplicate keys; "
        "table.overwrite(rows) replaces all rows."
    ),
    ("drop", "drop_table"): (
        "Write pyhudi.drop_table(path) for the table, "
        "table.alter().drop_column(name).execute() for a column."
    ),
    ("drop_partitions",): "Write table.delete_partitions(partitions).",
    # --- columns and properties ---
    ("add_column", "add_columns", "rename_column", "rename", "alter_columns", "update_schema"): (
        "Write table.alter().add_column(name, type).execute(), or .rename_column(old, new)."
    ),
    ("drop_column", "drop_columns"): "Write table.alter().drop_column(name).execute().",
    ("set_table_properties", "update_properties"): ("Write table.set_properties({…})."),
    ("table_properties", "configuration"): "Write table.properties.",
    ("update_spec", "spec", "specs", "partition_columns", "partition_cols"): (
        "Write table.config.partition_fields; the partition columns of a table never change."
    ),
    ("primary_key", "record_key"): ("Write table.config.record_key_fields."),
    ("location", "path", "table_uri", "base_path"): "Write table.uri.",
    # --- history ---
    ("checkout", "load_as_version", "time_travel", "snapshot_by_id"): (
        "Write table.scan(as_of=instant), or pyhudi.open_table(path, as_of=instant)."
    ),
    ("versions", "snapshots", "list_versions"): "Write table.history().",
    ("latest_version", "current_snapshot"): ("Write table.history(1)."),
    ("rollback_to", "rollback_to_snapshot"): ("Write table.restore(instant)."),
    ("create_tag", "tag", "tags", "create_branch", "branches", "refs", "manage_snapshots"): (
        "Write table.savepoint(…) to keep a version; Hudi has no branches."
    ),
    ("load_cdf", "cdf", "incremental_append_scan"): (
        "Write table.changes(start=…), or table.incremental(start=…) for changed rows."
    ),
    ("update_incremental", "reload", "load_latest", "checkout_latest"): "Write table.refresh().",
    # --- services ---
    (
        "vacuum",
        "cleanup_old_versions",
        "expire_snapshots",
        "remove_orphan_files",
        "delete_orphan_files",
        "cleanup",
    ): "Write table.clean(); table.check(repair=True) removes orphaned files.",
    ("optimize", "zorder", "z_order", "compact_files", "rewrite_data_files"): (
        'Write table.cluster(), such as table.cluster(sort_by=["city"], layout="zorder"). '
        "table.compact() merges log files."
    ),
    ("repair",): "Write table.check(repair=True).",
    ("maintenance",): "Write table.maintain().",
    ("create_checkpoint", "checkpoint", "cleanup_metadata", "rewrite_manifests"): (
        "Leave it out: commits maintain the metadata table and archive old instants."
    ),
    ("create_scalar_index",): "Write table.create_index(…).",
    ("list_indices", "indexes", "indices", "list_indexes"): (
        "Write table.config.metadata_partitions."
    ),
    ("files", "file_uris", "partitions", "timeline", "commits", "get_add_actions", "data_files"): (
        "Write table.inspect.files(), .partitions(), .timeline() or .commits()."
    ),
    ("close",): "Leave it out: a handle holds nothing open.",
}
_SCAN: Equivalents = {
    **_READ,
    ("filter", "where", "select", "project", "with_columns", "scanner"): (
        'Pass columns and where to the table: table.scan(columns=[…], where="fare > 10").'
    ),
    ("to_lazy", "lazy"): "Write scan.to_polars_lazy().",
    ("to_pyarrow_dataset",): "Write scan.to_dataset().",
    ("toDF",): "Write scan.to_spark(), on a table opened with a SparkEngine.",
    ("as_of",): "Write table.scan(as_of=instant).",
}


def _sentences(equivalents: Equivalents, rows: str) -> dict[str, str]:
    return {
        name: sentence.replace("{rows}", rows)
        for names, sentence in equivalents.items()
        for name in names
    }


NAMES = {
    "HudiTable": _sentences(_TABLE, "table"),
    "Scan": _sentences(_SCAN, "scan"),
    "Changes": _sentences(_READ, "changes"),
    "Diff": _sentences(_READ, "diff"),
}
"""Sentences that say what to write, by class of pyhudi and by name."""


def attribute_hint(owner: type, name: str) -> str | None:
    """Return what to write in place of a name of another library; None for an unknown one."""
    return next(
        (NAMES[each.__name__].get(name) for each in owner.__mro__ if each.__name__ in NAMES), None
    )
