"""The effect of each option of Hudi's own Spark data source in pyhudi.

`hudi_options.py` uses it, docs/reference/spark-options.md shows it. Names are
those of Hudi 0.15.0 to 1.2.0 (`DataSourceOptions`, `HoodieWriteConfig`, ...).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyhudi.config.option_parsing import Names, as_tuple
from pyhudi.config.options import CREATE_OPTIONS, is_handle_option
from pyhudi.config.unknown_options import ARGUMENTS

Side = Literal["read", "write", "both"]
Fate = Literal["translated", "ignored", "refused"]


@dataclass(frozen=True)
class HudiOption:
    """Options with one meaning, or families of them."""

    names: Names
    """Names of options; with `*` at the end, the prefix of a family."""
    side: Side
    """Side on which it has an effect; on the other side it is ignored, as in Hudi."""
    fate: Fate
    note: str
    """Its translation, the reason why it is ignored, or an alternative."""
    harmless: tuple[str, ...] = ()
    """Values that request what pyhudi does anyway: with them an unsupported option is ignored."""
    of_sync: bool = False
    """Whether it is an option of catalogs: an error if a catalog is configured, since pyhudi would
    ignore it."""


_OFF = ("false",)


def _translate(names: Names, note: str, side: Side = "write") -> HudiOption:
    return HudiOption(names, side, "translated", note)


def _ignore(
    names: Names,
    note: str,
    harmless: tuple[str, ...] = (),
    side: Side = "write",
    *,
    of_sync: bool = False,
) -> HudiOption:
    return HudiOption(names, side, "ignored", note, harmless, of_sync)


def _refuse(
    names: Names, note: str, harmless: tuple[str, ...] = (), side: Side = "write"
) -> HudiOption:
    return HudiOption(names, side, "refused", note, harmless)


OPTIONS: tuple[HudiOption, ...] = (
    *(_translate(names, f"`{argument}` of `{call}`") for names, call, argument in ARGUMENTS),
    _translate("hoodie.datasource.write.table.name", "`hoodie.table.name`"),
    _translate(
        ("hoodie.datasource.write.keygenerator.class", "hoodie.table.keygenerator.class"),
        "`hoodie.table.keygenerator.type`, for Hudi's own classes",
    ),
    _translate("hoodie.datasource.write.keygenerator.type", "`hoodie.table.keygenerator.type`"),
    _translate(
        ("hoodie.datasource.write.payload.class", "hoodie.compaction.payload.class"),
        "the merge mode, for OverwriteWithLatestAvroPayload and DefaultHoodieRecordPayload",
    ),
    _translate("hoodie.datasource.write.operation", "the operation of the write"),
    _translate(
        "hoodie.datasource.write.partitions.to.delete",
        "the partitions of `delete_partitions`; `*` matches any string, `%2A` a literal `*`",
    ),
    _translate(
        ("hoodie.datasource.write.reconcile.schema", "hoodie.write.set.null.for.missing.columns"),
        "`true`: columns that are missing in the data become null",
    ),
    _refuse(
        "hoodie.datasource.write.insert.drop.duplicates",
        "use upsert, or set `hoodie.datasource.insert.dup.policy=drop` with a record index",
        _OFF,
    ),
    _refuse(
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop",
        "drop columns with `alter` of the table",
        _OFF,
    ),
    _refuse(
        "hoodie.datasource.write.commitmeta.key.prefix",
        "name the options for the commit with the prefix `_`, Hudi's default",
        ("_",),
    ),
    _refuse(
        "hoodie.datasource.write.drop.partition.columns",
        "leave it out: files keep the partition columns",
        _OFF,
    ),
    _refuse(
        (
            "hoodie.datasource.write.record.merger.*",
            "hoodie.write.record.merge.custom.*",
            "hoodie.write.record.merge.strategy.id",
        ),
        "use `pyhudi.register_merger` in place of a Java merger",
    ),
    _refuse(
        "hoodie.datasource.write.secondarykey.column",
        "create a secondary index with `create_index` of the table",
    ),
    _refuse(
        "hoodie.datasource.overwrite.mode",
        "choose the operation `insert_overwrite` or `insert_overwrite_table`",
    ),
    _refuse(
        "hoodie.datasource.write.streaming.*",
        "write streams with `pyhudi.spark.sink`, or with the format `pyhudi`, which accepts the "
        "identifier",
    ),
    _refuse(
        "hoodie.bulkinsert.user.defined.partitioner.class",
        "sort the DataFrame, or set `hoodie.bulkinsert.sort.mode`",
    ),
    _ignore(
        "hoodie.datasource.write.row.writer.enable",
        "there is one writer, which writes Arrow batches",
    ),
    _refuse(
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
        "leave it out: keys contain timestamps in Hudi's default format",
        _OFF,
    ),
    _ignore(
        ("hoodie.avro.schema.validate", "hoodie.avro.schema.*"), "the schema is always checked"
    ),
    _refuse("hoodie.base.path", "pass the location as the argument `path`", side="both"),
    _refuse(
        "hoodie.base.file.format",
        "set `hoodie.table.base.file.format` for a new table",
        ("parquet",),
    ),
    _ignore(
        "hoodie.datasource.compaction.async.enable",
        "it is for streams; `maintain` of the table runs services while writers are active",
    ),
    _translate("hoodie.datasource.clustering.inline.enable", "`hoodie.clustering.inline`"),
    _refuse(
        ("hoodie.datasource.clustering.async.enable", "hoodie.clustering.async.enabled"),
        "run `maintain` or `cluster` of the table in another process",
        _OFF,
    ),
    _refuse("hoodie.clean.async*", "call `clean` of the table", _OFF),
    _refuse("hoodie.archive.async", "call `archive` of the table", _OFF),
    _ignore(
        "hoodie.datasource.hive_sync.bucket_sync_spec",
        "it belongs to `bucket_sync`, which is not supported",
    ),
    _ignore(
        "hoodie.datasource.meta.sync.glue.partition_index_fields",
        "it belongs to `partition_index_fields.enable`, which is not supported",
    ),
    _ignore(
        (
            "hoodie.datasource.meta.sync.glue.all_partitions_read_parallelism",
            "hoodie.datasource.meta.sync.glue.changed_partitions_read_parallelism",
            "hoodie.datasource.meta.sync.glue.partition_change_parallelism",
        ),
        "it changes no partition",
    ),
    _ignore(
        "hoodie.meta_sync.global.replicate.timestamp",
        "it belongs to a tool for several metastores, which is not supported",
    ),
    _ignore(
        (
            "hoodie.datasource.hive_sync.assume_date_partitioning",
            "hoodie.datasource.hive_sync.use_pre_apache_input_format",
            "hoodie.datasource.meta.sync.glue.recreate_table_on_error",
        ),
        "if no catalog sync is enabled; otherwise an error",
        _OFF,
        of_sync=True,
    ),
    _ignore(
        (
            "hoodie.datasource.hive_sync.*",
            "hoodie.datasource.meta.sync.*",
            "hoodie.datasource.meta_sync.*",
            "hoodie.meta.sync.*",
            "hoodie.meta_sync.*",
            "hoodie.datasource.partition_extractor_class",
        ),
        "if no catalog sync is enabled; otherwise an error",
        of_sync=True,
    ),
    _ignore(
        (
            "hoodie.upsert.shuffle.parallelism",
            "hoodie.insert.shuffle.parallelism",
            "hoodie.bulkinsert.shuffle.parallelism",
            "hoodie.delete.shuffle.parallelism",
            "hoodie.finalize.write.parallelism",
            "hoodie.rollback.parallelism",
        ),
        "`spark.sql.shuffle.partitions` sets the number of tasks of a shuffle",
    ),
    _ignore(
        "hoodie.file.listing.parallelism",
        "`spark.sql.shuffle.partitions` sets the number of tasks of a shuffle",
        side="both",
    ),
    _ignore(
        (
            "hoodie.markers.delete.parallelism",
            "hoodie.simple.index.parallelism",
            "hoodie.global.simple.index.parallelism",
            "hoodie.bloom.index.parallelism",
        ),
        "`spark.sql.shuffle.partitions` sets the number of tasks of a shuffle",
    ),
    _ignore(
        ("hoodie.memory.*", "hoodie.common.spillable.*", "hoodie.common.diskmap.*"),
        "`memory_limit` sets the memory of a task",
        side="both",
    ),
    _ignore(
        ("hoodie.embed.timeline.*", "hoodie.filesystem.view.*"),
        "there is no timeline server",
        side="both",
    ),
    _ignore("hoodie.write.markers.type", "markers are always files"),
    _ignore(
        (
            "hoodie.write.executor.*",
            "hoodie.write.buffer.*",
            "hoodie.write.status.storage.level",
            "hoodie.write.tagged.record.storage.level",
        ),
        "pyhudi has no such buffers",
    ),
    _ignore("hoodie.spark.*", "pyhudi has no such buffers", side="both"),
    _ignore("hoodie.parquet.compression.ratio", "sizes are measured"),
    _ignore("hoodie.parquet.writelegacyformat.enabled", "the layout is that of Hudi"),
    _ignore("hoodie.parquet.outputtimestamptype", "the schema decides"),
    _refuse(
        "hoodie.client.heartbeat.interval_in_ms",
        "leave it out: all writers of a table must use Hudi's default heartbeats",
        ("60000",),
    ),
    _refuse(
        "hoodie.client.heartbeat.tolerable.misses",
        "leave it out: all writers of a table must use Hudi's default heartbeats",
        ("2",),
    ),
    _refuse("hoodie.metrics.on", "leave it out: pyhudi sends no metrics", _OFF),
    _ignore("hoodie.metrics.*", "pyhudi sends no metrics"),
    _refuse("hoodie.write.commit.callback.on", "notify your services after `write` returns", _OFF),
    _ignore("hoodie.write.commit.callback.*", "pyhudi calls no callback"),
    _ignore("hoodie.write.auto.upgrade", "only `upgrade` of the table changes its version"),
    _ignore("hoodie.auto.adjust.lock.configs", "pyhudi uses the storage lock"),
    _refuse("hoodie.errortable.*", "use `set_aside` of `write` for rows without a key"),
    _refuse("hoodie.precommit.*", "call `check` of the table, or run a query"),
    _refuse("hoodie.bootstrap.*", "bootstrap with Apache Hudi"),
    _refuse(("hoodie.deltastreamer.*", "hoodie.streamer.*"), "run the streamer of Apache Hudi"),
    _refuse("hoodie.sql.*", "set `hoodie.datasource.write.operation`"),
    _translate(
        "hoodie.datasource.query.type", "`snapshot`, `read_optimized` or `incremental`", side="read"
    ),
    _translate(
        "hoodie.datasource.view.type",
        "if no query type is set: `read_optimized` and `realtime` are snapshots, as in Hudi; "
        "`incremental` is incremental",
        side="read",
    ),
    _translate(
        "hoodie.datasource.query.incremental.format",
        "`cdc`: `HudiTable.changes` with images as JSON; `latest_state`: `HudiTable.incremental`",
        side="read",
    ),
    _translate("as.of.instant", "`as_of`", side="read"),
    _translate(
        "hoodie.datasource.read.begin.instanttime",
        "`start`: [a point in time](#range-bounds)",
        side="read",
    ),
    _translate(
        "hoodie.datasource.read.end.instanttime",
        "`end`: [a point in time](#range-bounds)",
        side="read",
    ),
    _translate(
        "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
        "`fallback_full_scan`",
        side="read",
    ),
    _translate(
        "hoodie.read.timeline.holes.resolution.policy",
        "`hollow_commits`: FAIL, BLOCK or USE_TRANSITION_TIME",
        side="read",
    ),
    _refuse(
        "hoodie.datasource.merge.type",
        "use `read_optimized` to read base files only: log records are always merged",
        ("payload_combine",),
        side="read",
    ),
    _refuse(
        "hoodie.realtime.merge.skip",
        "use `read_optimized` to read base files only: log records are always merged",
        _OFF,
        side="read",
    ),
    _refuse(
        ("hoodie.datasource.read.paths", "hoodie.datasource.read.incr.path.glob"),
        "filter by partition columns instead",
        side="read",
    ),
    _refuse("hoodie.datasource.read.incr.filters", "use `where`", side="read"),
    _refuse(
        "hoodie.datasource.read.schema.use.end.instanttime",
        "leave it out: rows have the table's current columns",
        _OFF,
        side="read",
    ),
    _refuse(
        "hoodie.datasource.read.extract.partition.values.from.path",
        "leave it out: partition columns have the values that Hudi reads by default",
        _OFF,
        side="read",
    ),
    _refuse(
        ("hoodie.datasource.read.streaming.*", "hoodie.datasource.streaming.*"),
        'use `readStream.format("pyhudi")`',
        side="read",
    ),
    _refuse(
        "hoodie.datasource.read.table.valued.function.*",
        "use `pyhudi.spark.register_procedures`, or `inspect` of the table",
        side="read",
    ),
    _refuse(
        "hoodie.datasource.read.create.filesystem.relation",
        "use `pyhudi.spark.register_procedures`, or `inspect` of the table",
        _OFF,
        side="read",
    ),
    _translate(
        "hoodie.datasource.read.incr.table.version",
        "accepted if that version's ranges use the same times as the table's",
        side="read",
    ),
    _ignore("hoodie.datasource.read.incr.skip_compact", "compactions add no rows", side="read"),
    _ignore("hoodie.datasource.read.incr.skip_cluster", "clusterings add no rows", side="read"),
    _ignore(
        (
            "hoodie.datasource.read.file.index.*",
            "hoodie.datasource.read.use.new.parquet.file.format",
            "hoodie.datasource.read.partition.value.extractor.enabled",
            "hoodie.file.index.enable",
            "hoodie.file.group.reader.enabled",
        ),
        "there is one way to find files",
        side="read",
    ),
    _ignore(
        ("hoodie.bucket.index.query.pruning", "hoodie.merge.use.record.positions"),
        "always done if possible",
        side="read",
    ),
    _ignore(
        "hoodie.schema.on.read.enable",
        "pyhudi applies the schema history of an altered table automatically",
        side="both",
    ),
)
"""The first entry that matches a name counts. Options of `KNOWN_OPTIONS` and `CREATE_OPTIONS` of
`pyhudi.config.options` that are not listed are used under their own names."""

_BY_NAME = {name: option for option in OPTIONS for name in as_tuple(option.names)}
_FAMILIES = {name[:-1]: option for name, option in _BY_NAME.items() if name.endswith("*")}


def decision(name: str) -> HudiOption | None:
    """Return what happens to an option; None for one that is used unchanged, or is unknown."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    if is_handle_option(name) or name in CREATE_OPTIONS:
        return None
    return next((option for prefix, option in _FAMILIES.items() if name.startswith(prefix)), None)
