"""What keeps pyhudi from writing to a table, found before anything is written.

Each refusal names the property or the thing on the timeline. Reading has fewer demands; those are
`TableConfig.check_readable`'s.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyhudi.config import unsupported_merge
from pyhudi.errors import CommitConflict, SchemaMismatch, UnsupportedTableFeature
from pyhudi.internal_schema import is_evolved
from pyhudi.keys import supported_generator
from pyhudi.timeline.instants import RESTORE

if TYPE_CHECKING:
    import pyarrow as pa

    from pyhudi.config import TableConfig
    from pyhudi.storage import Storage
    from pyhudi.timeline import Timeline

_WITH_HUDI = "Write to this table with Apache Hudi."
_METADATA_HINT = (
    "Turn the metadata table off with Apache Hudi first: write with hoodie.metadata.enable=false."
)
_BUCKET_FOLDER = ".hoodie/.bucket_index"

# A random file id looks like a bucket's once in thirty million times.
_BUCKET_FILE_ID = re.compile(r"000\d{5}-")


def check_writable(storage: Storage, config: TableConfig, timeline: Timeline) -> None:
    """Raises `UnsupportedTableFeature` for a table that pyhudi must not write to.

    Raises `CommitConflict` while a restore is pending.
    """
    check_config(config)
    if storage.list(_BUCKET_FOLDER):
        msg = f"hoodie.index.type is BUCKET: the table has {_BUCKET_FOLDER}"
        raise UnsupportedTableFeature(msg, hint=_WITH_HUDI)
    check_schema_on_read(storage, timeline)
    check_not_bucketed(_last_written_file_ids(timeline))
    restores = timeline.pending(RESTORE)
    if restores:
        msg = f"the restore {restores[0].requested} is pending"
        raise CommitConflict(msg, hint="Complete the restore with Apache Hudi first.")


def check_config(config: TableConfig) -> None:
    """The part of `check_writable` that the properties alone decide."""
    config.check_readable()
    if not config.version.writable:
        msg = f"hoodie.table.version is {config.version.code}: pyhudi reads such tables only"
        raise UnsupportedTableFeature(msg, hint="table.upgrade() makes it a newer one.")
    for key in ("hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight"):
        value = config.properties.get(key, "").strip()
        if value:
            msg = f"{key} is {value}: pyhudi cannot keep a metadata table up to date"
            raise UnsupportedTableFeature(msg, hint=_METADATA_HINT)
    for key, value in _unsupported(config).items():
        msg = f"{key} is {value}: pyhudi does not write to such tables"
        raise UnsupportedTableFeature(msg, hint=_WITH_HUDI)
    merge = unsupported_merge(config)
    if merge is not None:
        msg = f"{merge}: pyhudi does not merge records that way"
        raise UnsupportedTableFeature(msg, hint=_WITH_HUDI)
    supported_generator(config)


def _unsupported(config: TableConfig) -> dict[str, str]:
    tests = {
        "hoodie.table.cdc.enabled": config.cdc_enabled,
        "hoodie.datasource.write.drop.partition.columns": config.drop_partition_columns,
        "hoodie.datasource.write.slash.separated.date.partitioning": config.slash_separated_dates,
        "hoodie.partition.metafile.use.base.format": _is_true(
            config, "hoodie.partition.metafile.use.base.format"
        ),
        "hoodie.allow.operation.metadata.field": _is_true(
            config, "hoodie.allow.operation.metadata.field"
        ),
    }
    found = {key: "true" for key, is_set in tests.items() if is_set}
    if config.bootstrap_path is not None:
        found["hoodie.bootstrap.base.path"] = config.bootstrap_path
    if not config.populate_meta_fields:
        found["hoodie.populate.meta.fields"] = "false"
    return found


def _is_true(config: TableConfig, key: str) -> bool:
    return config.properties.get(key, "").strip().lower() == "true"


def check_schema_on_read(storage: Storage, timeline: Timeline) -> None:
    """Refuses a table whose columns have ids."""
    if is_evolved(storage, timeline):
        msg = "hoodie.schema.on.read.enable: the table's columns were evolved by id"
        raise UnsupportedTableFeature(msg, hint=_WITH_HUDI)


def _last_written_file_ids(timeline: Timeline) -> list[str]:
    """File ids of the newest commit that wrote any."""
    for instant in reversed(timeline.commits):
        stats = timeline.commit_metadata(instant).write_stats
        if stats:
            return [stat.file_id for stat in stats]
    return []


def check_not_bucketed(file_ids: Sequence[str]) -> None:
    """Refuses a table whose file ids are all bucket numbers.

    Nothing else on storage tells of a simple bucket index.
    """
    if file_ids and all(_BUCKET_FILE_ID.match(file_id) for file_id in file_ids):
        msg = f"hoodie.index.type is BUCKET: file ids such as {file_ids[0]} are bucket numbers"
        raise UnsupportedTableFeature(msg, hint=_WITH_HUDI)


def check_known_columns(names: Sequence[str], schema: pa.Schema) -> None:
    """Raises `SchemaMismatch` naming the columns that the table does not have."""
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        msg = f"the table has no column {', '.join(repr(name) for name in unknown)}"
        raise SchemaMismatch(msg)
