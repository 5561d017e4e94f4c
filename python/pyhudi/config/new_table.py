"""The properties of a table that is about to be made, for each version that pyhudi writes.

They are what the Hudi release of that version would have stored, so that it writes on: version 6
with the names that 0.15 knows, version 8 with the old and the new name of the ordering fields,
since 1.0 knows only the old one. Reading properties is `table_config.py`'s part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.config import merge_mode as merging
from pyhudi.config import property_names as names
from pyhudi.config.merge_mode import MergeMode
from pyhudi.config.properties import CHECKSUM, DATABASE_NAME, TABLE_NAME, checksum
from pyhudi.config.table_config import TableConfig, TableType
from pyhudi.config.table_version import TableVersion, table_version
from pyhudi.config.version_steps import VERSIONS
from pyhudi.errors import ConfigError


@dataclass(frozen=True)
class NewTable:
    """What its maker decides about a new table."""

    name: str
    table_type: TableType = "COPY_ON_WRITE"
    version: int = 9
    record_key_fields: tuple[str, ...] = ()
    partition_fields: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    """Order records of one key; without them the last commit wins."""
    merge_mode: MergeMode | None = None
    """None: event time with ordering fields, else commit time."""
    database: str = ""
    create_schema: str | None = None
    """Avro schema without meta fields."""
    hive_style: bool = False
    url_encode: bool = False
    partition_types: tuple[str, ...] = ()
    """SIMPLE or TIMESTAMP for each partition field of a custom key generator; else none."""
    generator: str = ""
    """Type of the key generator; "" for the one that Hudi takes for these fields."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """More properties; they win over those made here."""

    @property
    def key_generator(self) -> str:
        """Type of the key generator, as `KeyGenUtils.inferKeyGeneratorType` (1.2.0) has it."""
        if self.generator:
            return self.generator
        if self.partition_types:
            return "CUSTOM"
        if not self.partition_fields:
            return "NON_PARTITION"
        single = len(self.partition_fields) == 1 and len(self.record_key_fields) <= 1
        return "SIMPLE" if single else "COMPLEX"

    @property
    def effective_merge_mode(self) -> MergeMode:
        """The merge mode, chosen or by default."""
        if self.merge_mode is not None:
            return self.merge_mode
        return "EVENT_TIME_ORDERING" if self.ordering_fields else "COMMIT_TIME_ORDERING"


def new_table_config(new: NewTable) -> TableConfig:
    """The configuration of a new table, without a metadata table.

    Raises `ConfigError` for a version that pyhudi does not write, a CUSTOM merge mode, or choices
    that do not go together.
    """
    able = [code for code in VERSIONS if table_version(code).writable]
    if new.version not in able:
        msg = f"version is {new.version}: no such table can be made"
        raise ConfigError(msg, hint=f"Give one of {', '.join(map(str, able))}.")
    version = table_version(new.version)
    _check(new, version)
    properties = {
        TABLE_NAME: new.name,
        names.TABLE_TYPE: new.table_type,
        names.TABLE_VERSION: str(version.code),
        names.LAYOUT_VERSION: str(version.layout.version),
        names.BASE_FILE_FORMAT: "PARQUET",
        **_key_fields(new),
        names.PARTITION_FIELDS: _partition_spec(new, version),
        names.META_FIELDS: "true",
        names.DROP_PARTITION_COLUMNS: "false",
        names.HIVE_STYLE: _text(flag=new.hive_style),
        names.URL_ENCODE: _text(flag=new.url_encode),
        "hoodie.partition.metafile.use.base.format": "false",
        names.TIMEZONE: "UTC",
        names.CDC_ENABLED: "false",
        **_by_version(new, version),
        **_optional(new),
        **new.extra,
    }
    return TableConfig({**properties, CHECKSUM: checksum(properties)})


def _key_fields(new: NewTable) -> dict[str, str]:
    """Without key fields Hudi generates keys; the property is absent then."""
    fields = ",".join(new.record_key_fields)
    return {names.RECORD_KEY_FIELDS: fields} if fields else {}


def _partition_spec(new: NewTable, version: TableVersion) -> str:
    """With the types of a custom key generator, which Hudi 0.15 does not store."""
    if not new.partition_types or version.writes_old_property_names:
        return ",".join(new.partition_fields)
    pairs = zip(new.partition_fields, new.partition_types, strict=True)
    return ",".join(f"{name}:{kind}" for name, kind in pairs)


def _check(new: NewTable, version: TableVersion) -> None:
    problem = None
    if not new.name:
        problem = "the table has no name"
    elif new.effective_merge_mode == "CUSTOM":
        problem = f"{merging.MERGE_MODE} CUSTOM is not supported"
    elif new.effective_merge_mode == "EVENT_TIME_ORDERING" and not new.ordering_fields:
        problem = "event-time ordering needs an ordering field"
    elif version.merge_inferred and len(new.ordering_fields) > 1:
        problem = f"a table of version {version.code} has at most one ordering field"
    if problem:
        raise ConfigError(problem)


def _by_version(new: NewTable, version: TableVersion) -> dict[str, str]:
    if version.writes_old_property_names:
        return _old_names(new)
    common = {
        "hoodie.table.initial.version": str(version.code),
        names.TIMELINE_PATH: "timeline",
        names.HISTORY_PATH: "history",
        names.ARCHIVE_FOLDER: "history",
        names.KEY_GENERATOR_TYPE: new.key_generator,
        names.SEVERAL_FORMATS: "false",
        merging.MERGE_MODE: new.effective_merge_mode,
    }
    ordering = _ordering(new, names.ORDERING_FIELDS)
    if not version.merge_inferred:
        return {**common, **ordering, names.TABLE_FORMAT: "native"}
    return {
        **common,
        **ordering,
        **_ordering(new, names.PRECOMBINE_FIELD),
        merging.STRATEGY_ID: _strategy(new),
        merging.PAYLOAD_CLASS: _payload(new),
    }


def _old_names(new: NewTable) -> dict[str, str]:
    """Hudi 0.15 knows one strategy id, also beside the payload of commit time."""
    return {
        names.ARCHIVE_FOLDER: "archived",
        names.KEY_GENERATOR_CLASS: names.KEY_GENERATOR_CLASSES[new.key_generator],
        **_ordering(new, names.PRECOMBINE_FIELD),
        merging.PAYLOAD_CLASS: _payload(new),
        merging.OLD_STRATEGY_ID: merging.EVENT_TIME_STRATEGY,
    }


def _optional(new: NewTable) -> dict[str, str]:
    optional = {DATABASE_NAME: new.database, names.CREATE_SCHEMA: new.create_schema or ""}
    return {key: value for key, value in optional.items() if value}


def _ordering(new: NewTable, key: str) -> dict[str, str]:
    return {key: ",".join(new.ordering_fields)} if new.ordering_fields else {}


def _payload(new: NewTable) -> str:
    by_event = new.effective_merge_mode == "EVENT_TIME_ORDERING"
    return merging.EVENT_TIME_PAYLOAD if by_event else merging.COMMIT_TIME_PAYLOAD


def _strategy(new: NewTable) -> str:
    by_event = new.effective_merge_mode == "EVENT_TIME_ORDERING"
    return merging.EVENT_TIME_STRATEGY if by_event else merging.COMMIT_TIME_STRATEGY


def _text(*, flag: bool) -> str:
    return "true" if flag else "false"
