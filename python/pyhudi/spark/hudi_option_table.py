"""What pyhudi does with each option of Hudi's own Spark data source: data, and `decision`.

`hudi_options.py` uses it, docs/spark-options.md shows it, and a test compares the two. Names are
those of Hudi 0.15.0 to 1.2.0 (`DataSourceOptions`, `HoodieWriteConfig`, ...).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyhudi.config.options import CREATE_OPTIONS, is_handle_option

Side = Literal["read", "write", "both"]
Fate = Literal["translated", "ignored", "refused"]


@dataclass(frozen=True)
class HudiOption:
    """One option, or a family of them."""

    name: str
    """Name of the option; with `*` at the end, the prefix of a family."""
    side: Side
    """Side on which it has an effect; on the other side it is ignored, as in Hudi."""
    fate: Fate
    note: str
    """Its translation, the reason why it is ignored, or an alternative."""
    harmless: tuple[str, ...] = ()
    """Values that request what pyhudi does anyway: with them a refused option is ignored."""
    of_sync: bool = False
    """Whether it is an option of catalogs: an error if a catalog is configured, since pyhudi would
    ignore it."""


_OFF = ("false",)
_WRITE = "hoodie.datasource.write."
_READ = "hoodie.datasource.read."
_HIVE = "hoodie.datasource.hive_sync."
_GLUE = "hoodie.datasource.meta.sync.glue."


def _of_catalogs(name: str, note: str = "as above", harmless: tuple[str, ...] = ()) -> HudiOption:
    return HudiOption(name, "write", "ignored", note, harmless, of_sync=True)


OPTIONS: tuple[HudiOption, ...] = (
    # --- what a table is
    HudiOption(_WRITE + "recordkey.field", "write", "translated", "`key` of `create_table`"),
    HudiOption("hoodie.table.recordkey.fields", "write", "translated", "the same"),
    HudiOption(
        _WRITE + "partitionpath.field", "write", "translated", "`partition_by` of `create_table`"
    ),
    HudiOption("hoodie.table.partition.fields", "write", "translated", "the same"),
    HudiOption(_WRITE + "precombine.field", "write", "translated", "`order_by` of `create_table`"),
    HudiOption("hoodie.table.ordering.fields", "write", "translated", "the same"),
    HudiOption("hoodie.table.precombine.field", "write", "translated", "the same"),
    HudiOption(_WRITE + "table.type", "write", "translated", "`type` of `create_table`"),
    HudiOption(_WRITE + "storage.type", "write", "translated", "the same"),
    HudiOption("hoodie.table.type", "write", "translated", "the same"),
    HudiOption("hoodie.write.table.version", "write", "translated", "`version` of `create_table`"),
    HudiOption("hoodie.table.version", "write", "translated", "the same"),
    HudiOption(_WRITE + "table.name", "write", "translated", "`hoodie.table.name`"),
    HudiOption(
        _WRITE + "keygenerator.class",
        "write",
        "translated",
        "`hoodie.table.keygenerator.type`, for Hudi's own classes",
    ),
    HudiOption("hoodie.table.keygenerator.class", "write", "translated", "the same"),
    HudiOption(
        _WRITE + "keygenerator.type", "write", "translated", "`hoodie.table.keygenerator.type`"
    ),
    HudiOption(
        _WRITE + "payload.class",
        "write",
        "translated",
        "the merge mode, for OverwriteWithLatestAvroPayload and DefaultHoodieRecordPayload",
    ),
    HudiOption("hoodie.compaction.payload.class", "write", "translated", "the same"),
    # --- what a write does
    HudiOption(_WRITE + "operation", "write", "translated", "the operation of the write"),
    HudiOption(
        _WRITE + "partitions.to.delete",
        "write",
        "translated",
        "the partitions of `delete_partitions`; `*` matches any string, `%2A` a literal `*`",
    ),
    HudiOption(
        _WRITE + "reconcile.schema",
        "write",
        "translated",
        "`true`: columns that are missing in the data become null",
    ),
    HudiOption("hoodie.write.set.null.for.missing.columns", "write", "translated", "the same"),
    HudiOption("hoodie.bulkinsert.sort.mode", "write", "translated", "`sort` of `bulk_insert`"),
    HudiOption(
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
        "write",
        "translated",
        "`sort_columns` of `bulk_insert`",
    ),
    HudiOption(
        _WRITE + "insert.drop.duplicates",
        "write",
        "refused",
        "use upsert, or set `hoodie.datasource.insert.dup.policy=drop` with a record index",
        _OFF,
    ),
    HudiOption(
        _WRITE + "schema.allow.auto.evolution.column.drop",
        "write",
        "refused",
        "drop columns with `alter` of the table",
        _OFF,
    ),
    HudiOption(
        _WRITE + "commitmeta.key.prefix",
        "write",
        "refused",
        "name the options for the commit with the prefix `_`, Hudi's default",
        ("_",),
    ),
    HudiOption(
        _WRITE + "drop.partition.columns",
        "write",
        "refused",
        "leave it out: files keep the partition columns",
        _OFF,
    ),
    HudiOption(
        _WRITE + "record.merger.*",
        "write",
        "refused",
        "use `pyhudi.register_merger` in place of a Java merger",
    ),
    HudiOption("hoodie.write.record.merge.custom.*", "write", "refused", "as above"),
    HudiOption("hoodie.write.record.merge.strategy.id", "write", "refused", "as above"),
    HudiOption(
        _WRITE + "secondarykey.column",
        "write",
        "refused",
        "create a secondary index with `create_index` of the table",
    ),
    HudiOption(
        "hoodie.datasource.overwrite.mode",
        "write",
        "refused",
        "choose the operation `insert_overwrite` or `insert_overwrite_table`",
    ),
    HudiOption(
        _WRITE + "streaming.*",
        "write",
        "refused",
        "write streams with `pyhudi.spark.sink`",
    ),
    HudiOption(
        "hoodie.bulkinsert.user.defined.partitioner.class",
        "write",
        "refused",
        "sort the DataFrame, or set `hoodie.bulkinsert.sort.mode`",
    ),
    HudiOption(
        _WRITE + "row.writer.enable",
        "write",
        "ignored",
        "there is one writer, which writes Arrow batches",
    ),
    HudiOption(
        _WRITE + "keygenerator.consistent.logical.timestamp.enabled",
        "write",
        "refused",
        "leave it out: keys contain timestamps in Hudi's default format",
        _OFF,
    ),
    HudiOption("hoodie.avro.schema.validate", "write", "ignored", "the schema is always checked"),
    HudiOption("hoodie.avro.schema.*", "write", "ignored", "as above"),
    HudiOption("hoodie.base.path", "both", "refused", "pass the location as the argument `path`"),
    HudiOption(
        "hoodie.base.file.format",
        "write",
        "refused",
        "set `hoodie.table.base.file.format` for a new table",
        ("parquet",),
    ),
    # --- services
    HudiOption(
        "hoodie.datasource.compaction.async.enable",
        "write",
        "ignored",
        "it is for streams; `maintain` of the table runs services while writers are active",
    ),
    HudiOption(
        "hoodie.datasource.clustering.inline.enable",
        "write",
        "translated",
        "`hoodie.clustering.inline`",
    ),
    HudiOption(
        "hoodie.datasource.clustering.async.enable",
        "write",
        "refused",
        "run `maintain` or `cluster` of the table in another process",
        _OFF,
    ),
    HudiOption("hoodie.clustering.async.enabled", "write", "refused", "as above", _OFF),
    HudiOption("hoodie.clean.async*", "write", "refused", "call `clean` of the table", _OFF),
    HudiOption("hoodie.archive.async", "write", "refused", "call `archive` of the table", _OFF),
    # --- catalogs: what a table's handle takes of them is not here
    HudiOption(
        _HIVE + "bucket_sync_spec",
        "write",
        "ignored",
        "it belongs to `bucket_sync`, which is not supported",
    ),
    HudiOption(
        _GLUE + "partition_index_fields",
        "write",
        "ignored",
        "it belongs to `partition_index_fields.enable`, which is not supported",
    ),
    HudiOption(
        _GLUE + "all_partitions_read_parallelism", "write", "ignored", "it changes no partition"
    ),
    HudiOption(_GLUE + "changed_partitions_read_parallelism", "write", "ignored", "as above"),
    HudiOption(_GLUE + "partition_change_parallelism", "write", "ignored", "as above"),
    HudiOption(
        "hoodie.meta_sync.global.replicate.timestamp",
        "write",
        "ignored",
        "it belongs to a tool for several metastores, which is not supported",
    ),
    _of_catalogs(
        _HIVE + "assume_date_partitioning",
        "if no catalog sync is enabled; otherwise an error",
        _OFF,
    ),
    _of_catalogs(_HIVE + "use_pre_apache_input_format", harmless=_OFF),
    _of_catalogs(_GLUE + "recreate_table_on_error", harmless=_OFF),
    _of_catalogs(_HIVE + "*"),
    _of_catalogs("hoodie.datasource.meta.sync.*"),
    _of_catalogs("hoodie.datasource.meta_sync.*"),
    _of_catalogs("hoodie.meta.sync.*"),
    _of_catalogs("hoodie.meta_sync.*"),
    _of_catalogs("hoodie.datasource.partition_extractor_class"),
    # --- what the JVM needs
    HudiOption(
        "hoodie.upsert.shuffle.parallelism",
        "write",
        "ignored",
        "`spark.sql.shuffle.partitions` sets the number of tasks of a shuffle",
    ),
    HudiOption("hoodie.insert.shuffle.parallelism", "write", "ignored", "as above"),
    HudiOption("hoodie.bulkinsert.shuffle.parallelism", "write", "ignored", "as above"),
    HudiOption("hoodie.delete.shuffle.parallelism", "write", "ignored", "as above"),
    HudiOption("hoodie.finalize.write.parallelism", "write", "ignored", "as above"),
    HudiOption("hoodie.rollback.parallelism", "write", "ignored", "as above"),
    HudiOption("hoodie.file.listing.parallelism", "both", "ignored", "as above"),
    HudiOption("hoodie.markers.delete.parallelism", "write", "ignored", "as above"),
    HudiOption("hoodie.simple.index.parallelism", "write", "ignored", "as above"),
    HudiOption("hoodie.global.simple.index.parallelism", "write", "ignored", "as above"),
    HudiOption("hoodie.bloom.index.parallelism", "write", "ignored", "as above"),
    HudiOption("hoodie.memory.*", "both", "ignored", "`memory_limit` sets the memory of a task"),
    HudiOption("hoodie.common.spillable.*", "both", "ignored", "as above"),
    HudiOption("hoodie.common.diskmap.*", "both", "ignored", "as above"),
    HudiOption("hoodie.embed.timeline.*", "both", "ignored", "there is no timeline server"),
    HudiOption("hoodie.filesystem.view.*", "both", "ignored", "as above"),
    HudiOption("hoodie.write.markers.type", "write", "ignored", "markers are always files"),
    HudiOption("hoodie.write.executor.*", "write", "ignored", "pyhudi has no such buffers"),
    HudiOption("hoodie.write.buffer.*", "write", "ignored", "as above"),
    HudiOption("hoodie.write.status.storage.level", "write", "ignored", "as above"),
    HudiOption("hoodie.write.tagged.record.storage.level", "write", "ignored", "as above"),
    HudiOption("hoodie.spark.*", "both", "ignored", "as above"),
    HudiOption("hoodie.parquet.compression.ratio", "write", "ignored", "sizes are measured"),
    HudiOption(
        "hoodie.parquet.writelegacyformat.enabled", "write", "ignored", "the layout is that of Hudi"
    ),
    HudiOption("hoodie.parquet.outputtimestamptype", "write", "ignored", "the schema decides"),
    HudiOption(
        "hoodie.client.heartbeat.interval_in_ms",
        "write",
        "refused",
        "leave it out: all writers of a table must use Hudi's default heartbeats",
        ("60000",),
    ),
    HudiOption("hoodie.client.heartbeat.tolerable.misses", "write", "refused", "as above", ("2",)),
    HudiOption(
        "hoodie.metrics.on", "write", "refused", "leave it out: pyhudi sends no metrics", _OFF
    ),
    HudiOption("hoodie.metrics.*", "write", "ignored", "pyhudi sends no metrics"),
    HudiOption(
        "hoodie.write.commit.callback.on",
        "write",
        "refused",
        "notify your services after `write` returns",
        _OFF,
    ),
    HudiOption("hoodie.write.commit.callback.*", "write", "ignored", "pyhudi calls no callback"),
    HudiOption(
        "hoodie.write.auto.upgrade",
        "write",
        "ignored",
        "only `upgrade` of the table changes its version",
    ),
    HudiOption(
        "hoodie.auto.adjust.lock.configs", "write", "ignored", "pyhudi uses the storage lock"
    ),
    HudiOption(
        "hoodie.errortable.*",
        "write",
        "refused",
        "use `set_aside` of `write` for rows without a key",
    ),
    HudiOption(
        "hoodie.precommit.*", "write", "refused", "call `check` of the table, or run a query"
    ),
    HudiOption("hoodie.bootstrap.*", "write", "refused", "bootstrap with Apache Hudi"),
    HudiOption("hoodie.deltastreamer.*", "write", "refused", "run the streamer of Apache Hudi"),
    HudiOption("hoodie.streamer.*", "write", "refused", "as above"),
    HudiOption("hoodie.sql.*", "write", "refused", "set `hoodie.datasource.write.operation`"),
    # --- reading
    HudiOption(
        "hoodie.datasource.query.type",
        "read",
        "translated",
        "`snapshot`, `read_optimized` or `incremental`",
    ),
    HudiOption(
        "hoodie.datasource.view.type",
        "read",
        "translated",
        "if no query type is set: `read_optimized` and `realtime` are snapshots, as in Hudi; "
        "`incremental` is incremental",
    ),
    HudiOption(
        "hoodie.datasource.query.incremental.format",
        "read",
        "translated",
        "`cdc`: `HudiTable.changes` with images as JSON; `latest_state`: `HudiTable.incremental`",
    ),
    HudiOption("as.of.instant", "read", "translated", "`as_of`"),
    HudiOption(
        _READ + "begin.instanttime",
        "read",
        "translated",
        "`start`: [a point in time](#range-bounds)",
    ),
    HudiOption(
        _READ + "end.instanttime",
        "read",
        "translated",
        "`end`: [a point in time](#range-bounds)",
    ),
    HudiOption(
        _READ + "incr.fallback.fulltablescan.enable", "read", "translated", "`fallback_full_scan`"
    ),
    HudiOption(
        "hoodie.read.timeline.holes.resolution.policy",
        "read",
        "translated",
        "`hollow_commits`: FAIL, BLOCK or USE_TRANSITION_TIME",
    ),
    HudiOption(
        "hoodie.datasource.merge.type",
        "read",
        "refused",
        "use `read_optimized` to read base files only: log records are always merged",
        ("payload_combine",),
    ),
    HudiOption("hoodie.realtime.merge.skip", "read", "refused", "as above", _OFF),
    HudiOption(_READ + "paths", "read", "refused", "filter by partition columns instead"),
    HudiOption(_READ + "incr.path.glob", "read", "refused", "as above"),
    HudiOption(_READ + "incr.filters", "read", "refused", "use `where`"),
    HudiOption(
        _READ + "schema.use.end.instanttime",
        "read",
        "refused",
        "leave it out: rows have the table's current columns",
        _OFF,
    ),
    HudiOption(
        _READ + "extract.partition.values.from.path",
        "read",
        "refused",
        "leave it out: partition columns have the values that Hudi reads by default",
        _OFF,
    ),
    HudiOption(_READ + "streaming.*", "read", "refused", 'use `readStream.format("pyhudi")`'),
    HudiOption("hoodie.datasource.streaming.*", "read", "refused", "as above"),
    HudiOption(
        _READ + "table.valued.function.*",
        "read",
        "refused",
        "use `pyhudi.spark.register_procedures`, or `inspect` of the table",
    ),
    HudiOption(_READ + "create.filesystem.relation", "read", "refused", "as above", _OFF),
    HudiOption(
        _READ + "incr.table.version",
        "read",
        "translated",
        "accepted if that version's ranges use the same times as the table's",
    ),
    HudiOption(_READ + "incr.skip_compact", "read", "ignored", "compactions add no rows"),
    HudiOption(_READ + "incr.skip_cluster", "read", "ignored", "clusterings add no rows"),
    HudiOption(_READ + "file.index.*", "read", "ignored", "there is one way to find files"),
    HudiOption(_READ + "use.new.parquet.file.format", "read", "ignored", "as above"),
    HudiOption(_READ + "partition.value.extractor.enabled", "read", "ignored", "as above"),
    HudiOption("hoodie.file.index.enable", "read", "ignored", "as above"),
    HudiOption("hoodie.file.group.reader.enabled", "read", "ignored", "as above"),
    HudiOption("hoodie.bucket.index.query.pruning", "read", "ignored", "always done if possible"),
    HudiOption("hoodie.merge.use.record.positions", "read", "ignored", "as above"),
    HudiOption(
        "hoodie.schema.on.read.enable",
        "both",
        "ignored",
        "pyhudi applies the schema history of an altered table automatically",
    ),
)
"""The first entry that matches a name counts. Options of `KNOWN_OPTIONS` and `CREATE_OPTIONS` of
`pyhudi.config.options` that are not listed are used under their own names."""

_EXACT = {option.name: option for option in OPTIONS if not option.name.endswith("*")}
_FAMILIES = tuple(option for option in OPTIONS if option.name.endswith("*"))


def decision(name: str) -> HudiOption | None:
    """Return what happens to an option; None for one that is used unchanged, or is unknown."""
    if name in _EXACT:
        return _EXACT[name]
    if is_handle_option(name) or name in CREATE_OPTIONS:
        return None
    return next((family for family in _FAMILIES if name.startswith(family.name[:-1])), None)
