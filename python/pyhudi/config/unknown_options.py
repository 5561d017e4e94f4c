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

_DATASOURCE = "hoodie.datasource.write."
_TABLE = "hoodie.table."
ARGUMENTS: tuple[tuple[Names, str, str], ...] = (
    ((f"{_DATASOURCE}recordkey.field", f"{_TABLE}recordkey.fields"), "create_table", "key"),
    (
        (f"{_DATASOURCE}partitionpath.field", f"{_TABLE}partition.fields"),
        "create_table",
        "partition_by",
    ),
    (
        (
            f"{_DATASOURCE}precombine.field",
            f"{_TABLE}ordering.fields",
            f"{_TABLE}precombine.field",
        ),
        "create_table",
        "order_by",
    ),
    (
        (f"{_DATASOURCE}table.type", f"{_DATASOURCE}storage.type", f"{_TABLE}type"),
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
    "compaction of data tables": "compact. compaction. log.compaction. datasource.compaction.",
    "compaction by time": "metadata.compact.max.delta.seconds",
    "clustering": "clustering. datasource.clustering. layout.",
    "cleaning of data tables": "clean. cleaner.",
    "archiving of data tables": "archive. commits.archival.",
    "rollback settings": "rollback.",
    "locks and concurrency control": "write.lock. write.concurrency. optimistic.",
    "synchronisation with catalogs": (
        "datasource.hive_sync. datasource.meta.sync. datasource.meta_sync. meta.sync. meta_sync."
    ),
    "metrics": "metrics.",
    "timeline and metadata servers": "embed.timeline. filesystem. metaserver. table.service.",
    "streamer": "deltastreamer. streamer.",
    "error tables": "errortable.",
    "memory settings": "memory. common.spillable.",
    "base files other than Parquet": "hfile. lance.",
    "validators": "precommit. prewrite.",
    "bootstrapping": "bootstrap.",
    "Spark data source": "datasource.read. spark. sql.",
    "parallelism of shuffles": (
        "upsert.shuffle. insert.shuffle. bulkinsert.shuffle. delete.shuffle."
    ),
}
"""Parts of Apache Hudi without options in pyhudi, and prefixes of their names after `hoodie.`."""

_MERGING = (
    "payload. compaction.payload. compaction.record.merger. record.merge. write.record.merge. "
    "write.partial.update. table.partial.update. table.legacy.payload. datasource.write.payload. "
    "datasource.write.record.merger."
)
"""Prefixes of options about the winner among records of a key: without them rows are wrong."""


def _has_prefix(name: str, prefixes: str) -> bool:
    return name.startswith(tuple(f"hoodie.{prefix}" for prefix in prefixes.split()))


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
    if _has_prefix(name, _MERGING):
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
        if _has_prefix(name, prefixes):
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
