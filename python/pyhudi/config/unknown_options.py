"""Errors for a `hoodie.…` option that pyhudi does not have.

An option without effect would be worse than none, so pyhudi raises an error: with the similar name,
with the argument that has the same meaning, or with the part of Apache Hudi that pyhudi does not
have.
"""

from __future__ import annotations

from collections.abc import Collection

from pyhudi.config.option_parsing import Names, as_tuple
from pyhudi.errors import ConfigError, HudiError, UnsupportedTableFeature
from pyhudi.suggestions import did_you_mean

_NEAR = 0.9
"""Minimum share of common letters at which a name counts as a misspelling of another."""

ARGUMENTS: tuple[tuple[Names, str, str], ...] = (
    (
        ("hoodie.datasource.write.recordkey.field", "hoodie.table.recordkey.fields"),
        "create_table",
        "key",
    ),
    (
        ("hoodie.datasource.write.partitionpath.field", "hoodie.table.partition.fields"),
        "create_table",
        "partition_by",
    ),
    (
        (
            "hoodie.datasource.write.precombine.field",
            "hoodie.table.ordering.fields",
            "hoodie.table.precombine.field",
        ),
        "create_table",
        "order_by",
    ),
    (
        (
            "hoodie.datasource.write.table.type",
            "hoodie.datasource.write.storage.type",
            "hoodie.table.type",
        ),
        "create_table",
        "type",
    ),
    (("hoodie.write.table.version", "hoodie.table.version"), "create_table", "version"),
    ("hoodie.bulkinsert.sort.mode", "bulk_insert", "sort"),
    ("hoodie.bulkinsert.user.defined.partitioner.sort.columns", "bulk_insert", "sort_columns"),
)
"""Write options of Apache Hudi that are arguments in pyhudi: names, method, argument."""

_EQUIVALENTS: dict[Names, str] = {
    **{names: f"{call} takes it as `{argument}`." for names, call, argument in ARGUMENTS},
    ("hoodie.write.table.version", "hoodie.table.version"): (
        "create_table takes it as `version`; upgrade and downgrade change it."
    ),
    "hoodie.datasource.write.table.name": "create_table takes hoodie.table.name.",
    (
        "hoodie.datasource.write.keygenerator.class",
        "hoodie.datasource.write.keygenerator.type",
        "hoodie.table.keygenerator.class",
    ): "create_table takes hoodie.table.keygenerator.type.",
    ("hoodie.client.heartbeat.interval_in_ms", "hoodie.client.heartbeat.tolerable.misses"): (
        "A writer counts as failed after two minutes without a heartbeat. That is Apache Hudi's "
        "default, and all writers of the table must use it."
    ),
    "hoodie.datasource.write.operation": "Each operation is a method of the table.",
    "hoodie.datasource.write.reconcile.schema": 'Pass schema_mode="merge" to the method.',
    "hoodie.schema.on.read.enable": "A table that `alter` has changed needs no option.",
    "hoodie.datasource.query.type": "Use scan, incremental or changes.",
    "as.of.instant": "scan takes it as `as_of`.",
    (
        "hoodie.archive.merge.enable",
        "hoodie.archive.merge.files.batch.size",
        "hoodie.archive.merge.small.file.limit.bytes",
    ): (
        "Apache Hudi 1 merges no archive logs any more; the archive of tables from version 8 on is "
        "merged by hoodie.timeline.compaction.batch.size."
    ),
    "hoodie.datasource.read.begin.instanttime": "incremental takes it as `start`.",
    "hoodie.datasource.read.end.instanttime": "incremental takes it as `end`.",
    "hoodie.datasource.read.incr.fallback.fulltablescan.enable": (
        "incremental takes it as `fallback_full_scan`."
    ),
}
"""Options of Apache Hudi, and their equivalent in pyhudi."""
_HINTS = {name: hint for names, hint in _EQUIVALENTS.items() for name in as_tuple(names)}

_PARTS = {
    "compaction of data tables": (
        "hoodie.compact.",
        "hoodie.compaction.",
        "hoodie.log.compaction.",
        "hoodie.datasource.compaction.",
    ),
    "compaction by time": ("hoodie.metadata.compact.max.delta.seconds",),
    "clustering": ("hoodie.clustering.", "hoodie.datasource.clustering.", "hoodie.layout."),
    "cleaning of data tables": ("hoodie.clean.", "hoodie.cleaner."),
    "archiving of data tables": ("hoodie.archive.", "hoodie.commits.archival."),
    "rollback settings": ("hoodie.rollback.",),
    "locks and concurrency control": (
        "hoodie.write.lock.",
        "hoodie.write.concurrency.",
        "hoodie.optimistic.",
    ),
    "synchronisation with catalogs": (
        "hoodie.datasource.hive_sync.",
        "hoodie.datasource.meta.sync.",
        "hoodie.datasource.meta_sync.",
        "hoodie.meta.sync.",
        "hoodie.meta_sync.",
    ),
    "metrics": ("hoodie.metrics.",),
    "timeline and metadata servers": (
        "hoodie.embed.timeline.",
        "hoodie.filesystem.",
        "hoodie.metaserver.",
        "hoodie.table.service.",
    ),
    "streamer": ("hoodie.deltastreamer.", "hoodie.streamer."),
    "error tables": ("hoodie.errortable.",),
    "memory settings": ("hoodie.memory.", "hoodie.common.spillable."),
    "base files other than Parquet": ("hoodie.hfile.", "hoodie.lance."),
    "validators": ("hoodie.precommit.", "hoodie.prewrite."),
    "bootstrapping": ("hoodie.bootstrap.",),
    "Spark data source": ("hoodie.datasource.read.", "hoodie.spark.", "hoodie.sql."),
    "parallelism of shuffles": (
        "hoodie.upsert.shuffle.",
        "hoodie.insert.shuffle.",
        "hoodie.bulkinsert.shuffle.",
        "hoodie.delete.shuffle.",
    ),
}
"""Parts of Apache Hudi without options in pyhudi, and the prefixes of their names."""

_MERGING = (
    "hoodie.payload.",
    "hoodie.compaction.payload.",
    "hoodie.compaction.record.merger.",
    "hoodie.record.merge.",
    "hoodie.write.record.merge.",
    "hoodie.write.partial.update.",
    "hoodie.table.partial.update.",
    "hoodie.table.legacy.payload.",
    "hoodie.datasource.write.payload.",
    "hoodie.datasource.write.record.merger.",
)
"""Prefixes of options about the winner among records of a key: without them rows are wrong."""


def option_error(
    name: str, supported: Collection[str], at_creation: Collection[str] = ()
) -> HudiError:
    """Return the error for an unknown option.

    at_creation: options that only the creation of a table accepts.
    """
    if name in at_creation:
        return ConfigError(
            f"the option {name!r} is set when a table is created",
            hint="Pass it to create_table.",
        )
    if name in _HINTS:
        return ConfigError(f"pyhudi has no option {name!r}", hint=_HINTS[name])
    if name.startswith(_MERGING):
        return UnsupportedTableFeature(
            f"the option {name!r} sets how records are merged; pyhudi does not support it",
            hint="Write to the table with Apache Hudi, or give create_table another of "
            "hoodie.compaction.payload.class, hoodie.record.merge.mode, "
            "hoodie.table.partial.update.mode, and hoodie.payload.delete.field with .marker.",
        )
    full = name if name.startswith("hoodie.") else f"hoodie.{name}"
    meant = did_you_mean(full, sorted({*supported, *at_creation}), similarity=_NEAR)
    if meant:
        return ConfigError(f"the option {name!r} is unknown", hint=meant)
    for part, prefixes in _PARTS.items():
        if name.startswith(prefixes):
            return ConfigError(
                f"the option {name!r} belongs to Apache Hudi's {part}; pyhudi has no such option",
                hint="Leave it out: it would have no effect.",
            )
    if name.startswith("hoodie."):
        return ConfigError(
            f"pyhudi has no option {name!r}, whether or not Apache Hudi has one",
            hint="Leave it out: it would have no effect.",
        )
    return ConfigError(
        f"the option {name!r} is unknown", hint="Names of options begin with hoodie."
    )
