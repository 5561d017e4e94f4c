"""The `hoodie.…` options of a table handle. Each is declared once, with its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.argument_checks import is_whole
from pyhudi.config.catalog_sync_options import SyncOptions
from pyhudi.config.clustering_options import ClusteringOptions, ResizeOptions
from pyhudi.config.column_rules import MERGE_RULES
from pyhudi.config.compaction_options import CompactionOptions, LogCompactionOptions
from pyhudi.config.extra_metadata import COMMIT_METADATA_PREFIX
from pyhudi.config.index_options import IndexOptions
from pyhudi.config.lock_options import MODE, ConcurrencyMode, LockOptions, mode_of
from pyhudi.config.merge_mode import (
    DELETE_FIELD,
    DELETE_MARKER,
    MERGE_MODE,
    MERGE_PROPERTY,
    PARTIAL_UPDATE_MODE,
    PAYLOAD_CLASS,
    delete_rule,
)
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.config.metastore_options import MetastoreOptions
from pyhudi.config.option_parsing import (
    OptionGroup,
    choice,
    custom,
    flag,
    option,
    option_names,
    text,
)
from pyhudi.config.property_names import (
    BASE_FILE_FORMAT,
    CDC_ENABLED,
    CDC_MODE,
    HIVE_STYLE,
    KEY_GENERATOR_TYPE,
    META_FIELDS,
    PARTITION_SPEC,
    SLASH_DATES,
    TIMEZONE,
    URL_ENCODE,
)
from pyhudi.config.retention_options import ArchiveOptions, CleanOptions, HistoryOptions, TtlOptions
from pyhudi.config.timestamp_keygen_options import TIME_KEYS
from pyhudi.config.unknown_options import option_error
from pyhudi.config.version_properties import UNAVAILABLE
from pyhudi.config.write_options import OrcOptions, WriteOptions
from pyhudi.errors import ConfigError
from pyhudi.storage.properties import DATABASE_NAME, TABLE_NAME

CHECK_SIZES = "pyhudi.read.check.file.sizes"


@dataclass(frozen=True)
class ReadOptions(OptionGroup):
    """How files are read."""

    data_skipping: bool = flag("hoodie.enable.data.skipping", "skip files by indexes", default=True)
    check_sizes: bool = flag(
        CHECK_SIZES, "raise an error if files are missing or their sizes differ", default=True
    )


SERVICES_MODE = "pyhudi.table.services.mode"
_INLINE, _BACKGROUND = "inline", "background"


def _check_services_have_lock(options: Mapping[str, str]) -> None:
    if SERVICES_MODE not in options or mode_of(options) is not ConcurrencyMode.SINGLE_WRITER:
        return
    if ServiceOptions.of(options).in_background:
        msg = f"{SERVICES_MODE} is {_BACKGROUND}, but {MODE} allows one writer only"
        raise ConfigError(msg, hint=f"Services next to commits need a lock: leave {MODE} out.")


@dataclass(frozen=True)
class ServiceOptions(OptionGroup):
    """Whether services run at all, and where."""

    enabled: bool = flag(
        "hoodie.table.services.enabled", "run services after commits", default=True
    )
    mode: str = choice(
        SERVICES_MODE,
        f"`{_BACKGROUND}`: commits do not wait for the services after them, which "
        "[a thread](../how-to/maintain.md#run-services-in-the-background) runs",
        (_INLINE, _BACKGROUND),
        default=_INLINE,
    )

    @property
    def in_background(self) -> bool:
        """Whether a thread runs the services."""
        return self.enabled and self.mode == _BACKGROUND


GROUPS = (
    ReadOptions,
    WriteOptions,
    OrcOptions,
    IndexOptions,
    MetadataOptions,
    LockOptions,
    ServiceOptions,
    CompactionOptions,
    LogCompactionOptions,
    TtlOptions,
    ClusteringOptions,
    ResizeOptions,
    CleanOptions,
    ArchiveOptions,
    HistoryOptions,
    SyncOptions,
    MetastoreOptions,
)
"""All groups of options of a handle. Names and meanings are Hudi's, except those that begin with
`pyhudi`."""

TIME_PARTITIONS = (
    option(
        PARTITION_SPEC,
        "types of partition columns for tables of Hudi 0.15: `city:simple,at:timestamp`",
        default="stored in the table",
    ),
    *TIME_KEYS,
)
DELETE_RULE = (
    option(
        (DELETE_FIELD, DELETE_MARKER),
        "the column and the value that mark a delete. Also for `open_table`",
    ),
)

WRITE_MERGE_MODE = "hoodie.write.record.merge.mode"
WRITE_PAYLOAD_CLASS = "hoodie.datasource.write.payload.class"
MERGE_PROPERTIES = tuple(
    MERGE_PROPERTY + name for name in (DELETE_FIELD, DELETE_MARKER, UNAVAILABLE)
)


def _payload(options: Mapping[str, str]) -> str:
    values = {
        name: options[name] for name in (PAYLOAD_CLASS, WRITE_PAYLOAD_CLASS) if options.get(name)
    }
    if len(set(values.values())) > 1:
        msg = " and ".join(f"{name} is {value!r}" for name, value in values.items())
        raise ConfigError(msg, hint="Both options mean the same: set only one.")
    return next(iter(values.values()), "")


@dataclass(frozen=True)
class CreateOptions(OptionGroup):
    """Additional options of `create_table`: the table stores them, or what follows from them."""

    name: str = text(TABLE_NAME, "the table's name", displayed="the last part of the location")
    database: str = text(DATABASE_NAME, "the database's name")
    file_format: str = text(
        BASE_FILE_FORMAT, "or [ORC](../how-to/write-orc.md)", displayed="PARQUET"
    )
    generator: str = text(
        KEY_GENERATOR_TYPE,
        "the [key generator](keys-and-partitions.md#key-generators)",
        displayed="from the columns",
    )
    timezone: str | None = custom(
        lambda options: options.get(TIMEZONE),
        option(TIMEZONE, "the time zone of the timeline's instants", default="UTC"),
    )
    hive_style: bool = flag(HIVE_STYLE, "directories are named `city=lisbon`", default=False)
    url_encode: bool = flag(
        URL_ENCODE, "special characters in partition paths are encoded", default=False
    )
    slash_dates: bool | None = flag(
        SLASH_DATES,
        "dates become nested directories: `2024/02/29`. Also for `open_table`",
        default=None,
        displayed="false",
    )
    meta_fields: bool = flag(
        META_FIELDS,
        "store the [meta columns](keys-and-partitions.md#tables-without-meta-columns)",
        default=True,
    )
    merge_mode: str | None = custom(
        lambda options: options.get(WRITE_MERGE_MODE) or options.get(MERGE_MODE),
        option(
            (MERGE_MODE, WRITE_MERGE_MODE),
            "the [merge mode](../explanation/merge-modes.md)",
            default="from `order_by`",
        ),
    )
    merge_rules: str = text(
        MERGE_RULES, "[merge rules](../how-to/merge-rules.md): `clicks:sum,tags:union`"
    )
    payload: str = custom(_payload, option((PAYLOAD_CLASS, WRITE_PAYLOAD_CLASS), "a payload class"))
    partial_update_mode: str = text(PARTIAL_UPDATE_MODE, "`IGNORE_DEFAULTS`, `FILL_UNAVAILABLE`")
    unavailable: str = text(MERGE_PROPERTIES[2], "the marker of `FILL_UNAVAILABLE`")
    deletes: tuple[str, str] | None = custom(
        delete_rule, option(MERGE_PROPERTIES[:2], f"as `{DELETE_FIELD}` and `{DELETE_MARKER}`")
    )
    change_logs: bool = flag(
        CDC_ENABLED,
        "write change logs for "
        "[change data capture](../how-to/create-tables.md#record-changes-for-change-data-capture)",
        default=False,
    )
    change_log_mode: str | None = custom(
        lambda options: options.get(CDC_MODE),
        option(CDC_MODE, "or `DATA_BEFORE`, `OP_KEY_ONLY`", default="DATA_BEFORE_AFTER"),
    )


KNOWN_OPTIONS = frozenset(
    (
        *(name for group in GROUPS for name in option_names(group)),
        *(name for each in (*TIME_PARTITIONS, *DELETE_RULE) for name in each.names),
        SLASH_DATES,
    )
)
CREATE_OPTIONS = option_names(CreateOptions)


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
            raise ConfigError(f"{name!a} is {value!a}: it contains half of a surrogate pair")
    if bool(checked.get(DELETE_FIELD)) != bool(checked.get(DELETE_MARKER)):
        msg = f"only one of {DELETE_FIELD} and {DELETE_MARKER} is given"
        raise ConfigError(msg, hint="Give both: the column, and the text that marks deletes.")
    for group in GROUPS if checked else ():  # The defaults are valid.
        group.of(checked)
    _check_services_have_lock(checked)
    return checked


def is_handle_option(name: str) -> bool:
    """Return whether a table handle accepts an option of this name."""
    return name in KNOWN_OPTIONS or name.startswith(COMMIT_METADATA_PREFIX)
