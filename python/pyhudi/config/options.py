"""The `hoodie.…` options of a table handle. Each is documented where it is read."""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.config.archive_options import ARCHIVE_OPTIONS, ArchiveOptions
from pyhudi.config.argument_checks import is_whole
from pyhudi.config.bucket_resize_options import RESIZE_OPTIONS, ResizeOptions
from pyhudi.config.catalog_sync_options import SYNC_OPTIONS, SyncOptions
from pyhudi.config.clean_options import CLEAN_OPTIONS, CleanOptions
from pyhudi.config.clustering_options import CLUSTERING_OPTIONS, ClusteringOptions
from pyhudi.config.compaction_options import COMPACTION_OPTIONS, CompactionOptions
from pyhudi.config.extra_metadata import COMMIT_METADATA_PREFIX
from pyhudi.config.index_options import BUCKET_FIELDS, BUCKETS
from pyhudi.config.lock_options import LOCK_OPTIONS, LockOptions
from pyhudi.config.log_compaction_options import LOG_COMPACTION_OPTIONS, LogCompactionOptions
from pyhudi.config.merge_mode import (
    DELETE_FIELD,
    DELETE_MARKER,
    MERGE_MODE,
    MERGE_PROPERTY,
    PARTIAL_UPDATE_MODE,
    PAYLOAD_CLASS,
)
from pyhudi.config.metadata_options import METADATA_ENABLE, METADATA_OPTIONS, MetadataOptions
from pyhudi.config.metadata_service_options import SERVICE_OPTIONS, SERVICES_ENABLED, ServiceOptions
from pyhudi.config.option_parsing import parse_bool
from pyhudi.config.properties import DATABASE_NAME, TABLE_NAME
from pyhudi.config.property_names import (
    BASE_FILE_FORMAT,
    CDC_ENABLED,
    CDC_MODE,
    HIVE_STYLE,
    KEY_GENERATOR_TYPE,
    META_FIELDS,
    SLASH_DATES,
    TIMEZONE,
    URL_ENCODE,
)
from pyhudi.config.ttl_options import TTL_OPTIONS, TtlOptions
from pyhudi.config.unknown_options import option_error
from pyhudi.config.version_properties import UNAVAILABLE
from pyhudi.config.write_options import WRITE_OPTIONS, WriteOptions
from pyhudi.errors import ConfigError

DATA_SKIPPING = "hoodie.enable.data.skipping"
"""Whether indexes prune files; true by default."""
CHECK_SIZES = "pyhudi.read.check.file.sizes"
"""Whether a data file whose size differs from the written one is an error; true by default."""

READ_OPTIONS = (METADATA_ENABLE, DATA_SKIPPING, BUCKETS, BUCKET_FIELDS, CHECK_SIZES)

KNOWN_OPTIONS = frozenset(
    (
        *WRITE_OPTIONS,
        *READ_OPTIONS,
        *METADATA_OPTIONS,
        *SERVICE_OPTIONS,
        *LOCK_OPTIONS,
        *COMPACTION_OPTIONS,
        *LOG_COMPACTION_OPTIONS,
        *TTL_OPTIONS,
        *CLUSTERING_OPTIONS,
        *RESIZE_OPTIONS,
        *CLEAN_OPTIONS,
        *ARCHIVE_OPTIONS,
        *SYNC_OPTIONS,
        DELETE_FIELD,
        DELETE_MARKER,
    )
)
"""Names and meanings are Hudi's, except those that begin with `pyhudi`."""

WRITE_MERGE_MODE = "hoodie.write.record.merge.mode"
WRITE_PAYLOAD_CLASS = "hoodie.datasource.write.payload.class"
MERGE_PROPERTIES = tuple(
    MERGE_PROPERTY + name for name in (DELETE_FIELD, DELETE_MARKER, UNAVAILABLE)
)
CREATE_OPTIONS = (
    TABLE_NAME,
    DATABASE_NAME,
    HIVE_STYLE,
    URL_ENCODE,
    SLASH_DATES,
    KEY_GENERATOR_TYPE,
    TIMEZONE,
    META_FIELDS,
    MERGE_MODE,
    WRITE_MERGE_MODE,
    PAYLOAD_CLASS,
    WRITE_PAYLOAD_CLASS,
    PARTIAL_UPDATE_MODE,
    *MERGE_PROPERTIES,
    CDC_ENABLED,
    CDC_MODE,
    BASE_FILE_FORMAT,
)
"""Additional options of `create_table`: the table stores them, or what follows from them."""

_SWITCHES = (METADATA_ENABLE, DATA_SKIPPING, CHECK_SIZES, SERVICES_ENABLED)


def check_options(
    options: Mapping[str, object] | None, *, creating: bool = False
) -> dict[str, str]:
    """Return the options as text. Raises `ConfigError` for an unknown option or an invalid value.

    creating: also accept options of a new table.
    """
    checked = {}
    for name, value in (options or {}).items():
        if not (is_handle_option(name) or (creating and name in CREATE_OPTIONS)):
            raise option_error(name, KNOWN_OPTIONS, CREATE_OPTIONS)
        checked[name] = str(value).lower() if isinstance(value, bool) else str(value)
        if not is_whole(name) or not is_whole(checked[name]):
            msg = f"{name!a} is {value!a}: it contains half of a surrogate pair"
            raise ConfigError(msg)
    if bool(checked.get(DELETE_FIELD)) != bool(checked.get(DELETE_MARKER)):
        msg = f"only one of {DELETE_FIELD} and {DELETE_MARKER} is given"
        raise ConfigError(msg, hint="Give both: the column, and the text that marks deletes.")
    for name in _SWITCHES:
        parse_bool(checked, name, default=True)
    WriteOptions.of(checked)
    MetadataOptions.of(checked)
    ServiceOptions.of(checked)
    LockOptions.of(checked)
    CompactionOptions.of(checked)
    LogCompactionOptions.of(checked)
    TtlOptions.of(checked)
    ClusteringOptions.of(checked)
    ResizeOptions.of(checked)
    CleanOptions.of(checked)
    ArchiveOptions.of(checked)
    SyncOptions.of(checked)
    return checked


def is_handle_option(name: str) -> bool:
    """Return whether a table handle accepts an option of this name."""
    return name in KNOWN_OPTIONS or name.startswith(COMMIT_METADATA_PREFIX)
