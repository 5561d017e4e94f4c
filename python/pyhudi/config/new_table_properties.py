"""The properties of a new table, for each version that pyhudi writes.

They are those that the Hudi release of that version would have stored, so that it can write to the
table: version 6 has the names of 0.15, version 8 both names of the ordering fields, since 1.0 knows
only the old one. `table_config.py` reads properties.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.config import merge_mode as merging
from pyhudi.config import property_names as names
from pyhudi.config.column_rules import MERGE_RULES, RULES_STRATEGY, ColumnRules, rules_payload
from pyhudi.config.merge_mode import MergeMode
from pyhudi.config.table_config import TableConfig, TableType
from pyhudi.config.table_version import TableVersion, table_version
from pyhudi.config.version_properties import (
    PAYLOAD_STRATEGY,
    UNAVAILABLE,
    VERSIONS,
    ordering_of_payload,
    rules_of_payload,
)
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.storage.properties import CHECKSUM, DATABASE_NAME, TABLE_NAME, checksum

_STRATEGIES = {
    "EVENT_TIME_ORDERING": merging.EVENT_TIME_STRATEGY,
    "COMMIT_TIME_ORDERING": merging.COMMIT_TIME_STRATEGY,
    "CUSTOM": PAYLOAD_STRATEGY,
}


@dataclass(frozen=True)
class NewTable:
    """The choices of a caller for a new table."""

    name: str
    table_type: TableType = "COPY_ON_WRITE"
    version: int = 9
    record_key_fields: tuple[str, ...] = ()
    partition_fields: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    """Fields that order records of one key; without them the last commit wins."""
    merge_mode: MergeMode | None = None
    """Merge mode; None for that of the payload class, else event time with ordering fields, else
    commit time."""
    payload: str = ""
    """The payload class; "" for none."""
    partial_update_mode: str = ""
    """Which values of an older record stay in a newer one, from version 9 on; "" for none."""
    unavailable: str = ""
    """The text of values that are not updated, under FILL_UNAVAILABLE."""
    column_rules: ColumnRules = ()
    """Columns whose values a rule combines."""
    deletes: tuple[str, str] | None = None
    """The column that marks deletes, and the text of its value."""
    database: str = ""
    create_schema: str | None = None
    """Avro schema without meta fields."""
    hive_style: bool = False
    url_encode: bool = False
    partition_types: tuple[str, ...] = ()
    """SIMPLE or TIMESTAMP, in any case, for each partition field of a custom key generator; else
    empty."""
    generator: str = ""
    """Type of the key generator; "" for Hudi's choice for these fields."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Additional properties, which take precedence."""

    @property
    def key_generator(self) -> str:
        """Type of the key generator, as in `KeyGenUtils.inferKeyGeneratorType` (1.2.0)."""
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
        """The merge mode, chosen or by default; the payload class is ignored."""
        if self.merge_mode is not None:
            return self.merge_mode
        return "EVENT_TIME_ORDERING" if self.ordering_fields else "COMMIT_TIME_ORDERING"


def new_table_config(new: NewTable) -> TableConfig:
    """Return the configuration of a new table, without a metadata table.

    Raises `ConfigError` for a version that pyhudi does not write, a CUSTOM merge mode without a
    payload class, or choices that do not match; `UnsupportedTableFeature` for rules that tables of
    the version do not have.
    """
    writable = [code for code in VERSIONS if table_version(code).writable]
    if new.version not in writable:
        msg = f"version is {new.version}: pyhudi does not create tables of this version"
        raise ConfigError(msg, hint=f"Choose one of {', '.join(map(str, writable))}.")
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
        **_merge_rules(new, version),
        **_column_rules(new),
        **_optional(new),
        **new.extra,
    }
    config = TableConfig({**properties, CHECKSUM: checksum(properties)})
    if not new.column_rules and new.merge_mode not in (None, config.merge.mode):
        msg = f"{merging.MERGE_MODE} is {new.merge_mode}, and {new.payload} is {config.merge.mode}"
        raise ConfigError(msg, hint="Give the payload class alone.")
    return config


def _key_fields(new: NewTable) -> dict[str, str]:
    """Return the key fields; without them Hudi generates keys, and the property is absent."""
    fields = ",".join(new.record_key_fields)
    return {names.RECORD_KEY_FIELDS: fields} if fields else {}


def _partition_spec(new: NewTable, version: TableVersion) -> str:
    """Return the partition fields, with key generator types, which Hudi 0.15 does not store."""
    if not new.partition_types or version.writes_old_property_names:
        return ",".join(new.partition_fields)
    pairs = zip(new.partition_fields, new.partition_types, strict=True)
    return ",".join(f"{name}:{field_type}" for name, field_type in pairs)


def _check(new: NewTable, version: TableVersion) -> None:
    problem, hint = None, ""
    if not new.name:
        problem = "the table has no name"
    elif new.effective_merge_mode == "CUSTOM" and not new.payload:
        problem = f"{merging.MERGE_MODE} CUSTOM is not supported"
    elif _mode(new, version) == "EVENT_TIME_ORDERING" and not new.ordering_fields:
        problem, hint = "event-time ordering needs an ordering field", "Pass order_by='ts'."
    elif version.merge_inferred and len(new.ordering_fields) > 1:
        problem = f"a table of version {version.code} has at most one ordering field"
    if problem:
        raise ConfigError(problem, hint=hint)
    forced = () if version.merge_inferred else ordering_of_payload(new.payload)
    if forced and new.ordering_fields != forced:
        msg = f"{merging.PAYLOAD_CLASS} is {new.payload}, which orders by {', '.join(forced)}"
        raise ConfigError(msg, hint=f"Pass order_by={list(forced)}.")
    if new.column_rules:
        _check_column_rules(new, version)
    if new.partial_update_mode and version.merge_inferred:
        msg = f"{merging.PARTIAL_UPDATE_MODE}: tables of version {version.code} do not have it"
        raise UnsupportedTableFeature(msg, hint="Create a table of version 9.")


def _check_column_rules(new: NewTable, version: TableVersion) -> None:
    if version.writes_old_property_names:
        msg = f"{MERGE_RULES}: tables of version {version.code} have no merge modes"
        raise UnsupportedTableFeature(msg, hint="Create a table of version 8 or 9.")
    others = {
        merging.MERGE_MODE: new.merge_mode,
        merging.PAYLOAD_CLASS: new.payload,
        merging.PARTIAL_UPDATE_MODE: new.partial_update_mode,
    }
    for name, value in others.items():
        if value:
            msg = f"{name} is {value}, and {MERGE_RULES} is set"
            raise ConfigError(msg, hint="Leave one of them out; order_by orders the records.")


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
    }
    ordering = _ordering(new, names.ORDERING_FIELDS)
    if not version.merge_inferred:
        return {**common, **ordering, names.TABLE_FORMAT: "native"}
    return {**common, **ordering, **_ordering(new, names.PRECOMBINE_FIELD)}


def _old_names(new: NewTable) -> dict[str, str]:
    """Return the properties as Hudi 0.15 stores them."""
    return {
        names.ARCHIVE_FOLDER: "archived",
        names.KEY_GENERATOR_CLASS: names.KEY_GENERATOR_CLASSES[new.key_generator],
        **_ordering(new, names.PRECOMBINE_FIELD),
    }


def _merge_rules(new: NewTable, version: TableVersion) -> dict[str, str]:
    """Return the rules of merging records of one key, and of deletes."""
    if version.merge_inferred:
        # Up to version 8, writers get the delete rule with each write and do not store it.
        return {**_infer_rules(new, version), **_deletes(new, "")}
    if new.payload:
        rules = rules_of_payload(new.payload)
    else:
        rules = {merging.MERGE_MODE: new.effective_merge_mode}
    chosen = _deletes(new, merging.MERGE_PROPERTY)
    if new.partial_update_mode:
        chosen[merging.PARTIAL_UPDATE_MODE] = new.partial_update_mode
    if new.unavailable:
        chosen[merging.MERGE_PROPERTY + UNAVAILABLE] = new.unavailable
    for name, value in chosen.items():
        if rules.get(name, value) != value:
            msg = f"{name} is {value!r}, but {new.payload} has {rules[name]!r}"
            raise ConfigError(msg, hint="Leave one of them out.")
    return {**rules, **chosen}


def _column_rules(new: NewTable) -> dict[str, str]:
    if not new.column_rules:
        return {}
    return {
        merging.MERGE_MODE: "CUSTOM",
        merging.STRATEGY_ID: RULES_STRATEGY,
        merging.PAYLOAD_CLASS: rules_payload(new.column_rules),
    }


def _infer_rules(new: NewTable, version: TableVersion) -> dict[str, str]:
    payload = new.payload or _payload(new)
    if version.writes_old_property_names:
        # Hudi 0.15 has one strategy id, also with the payload of commit time.
        return {
            merging.PAYLOAD_CLASS: payload,
            merging.OLD_STRATEGY_ID: merging.EVENT_TIME_STRATEGY,
        }
    mode = merging.mode_of_payload(payload)
    return {
        merging.MERGE_MODE: mode,
        merging.STRATEGY_ID: _STRATEGIES[mode],
        merging.PAYLOAD_CLASS: payload,
    }


def _deletes(new: NewTable, prefix: str) -> dict[str, str]:
    if new.deletes is None:
        return {}
    field, marker = new.deletes
    return {prefix + merging.DELETE_FIELD: field, prefix + merging.DELETE_MARKER: marker}


def _mode(new: NewTable, version: TableVersion) -> str:
    """Return the mode that applies when records are merged."""
    if not new.payload:
        return new.effective_merge_mode
    if version.merge_inferred:
        return merging.mode_of_payload(new.payload)
    return rules_of_payload(new.payload)[merging.MERGE_MODE]


def _optional(new: NewTable) -> dict[str, str]:
    optional = {DATABASE_NAME: new.database, names.CREATE_SCHEMA: new.create_schema or ""}
    return {key: value for key, value in optional.items() if value}


def _ordering(new: NewTable, key: str) -> dict[str, str]:
    return {key: ",".join(new.ordering_fields)} if new.ordering_fields else {}


def _payload(new: NewTable) -> str:
    by_event = new.effective_merge_mode == "EVENT_TIME_ORDERING"
    return merging.EVENT_TIME_PAYLOAD if by_event else merging.COMMIT_TIME_PAYLOAD


def _text(*, flag: bool) -> str:
    return "true" if flag else "false"
