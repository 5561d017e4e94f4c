"""Parses Hudi's own options map for one write or one query. No table or DataFrame is used here.

`hudi_option_table.py` says what happens to each option; this module parses the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from pyhudi.config import argument_checks as arg
from pyhudi.config.catalog_sync_options import ENABLE, HIVE_ENABLE
from pyhudi.config.index_options import INDEX_TYPE
from pyhudi.config.merge_mode import COMMIT_TIME_PAYLOAD, EVENT_TIME_PAYLOAD, MERGE_MODE
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.config.option_parsing import parse_bool, parse_enum, parse_int
from pyhudi.config.options import (
    CREATE_OPTIONS,
    KNOWN_OPTIONS,
    WRITE_MERGE_MODE,
    check_options,
    is_handle_option,
)
from pyhudi.config.property_names import (
    KEY_GENERATOR_TYPE,
    KEY_GENERATOR_TYPES,
    PARTITION_SPEC,
)
from pyhudi.config.unknown_options import option_error
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.query.commit_range import HollowCommits
from pyhudi.schema.key_generator import CUSTOM
from pyhudi.spark.hudi_option_table import HudiOption, Side, decision
from pyhudi.storage.properties import TABLE_NAME
from pyhudi.timeline.named_instants import PlainTime
from pyhudi.write.sort_modes import SortMode

Value = TypeVar("Value")

OPERATION = "hoodie.datasource.write.operation"
TO_DELETE = "hoodie.datasource.write.partitions.to.delete"
_WRITE = "hoodie.datasource.write."
_READ = "hoodie.datasource.read."
RANGE_VERSION = _READ + "incr.table.version"
_KEYS = (_WRITE + "recordkey.field", "hoodie.table.recordkey.fields")
_PARTITIONS = (PARTITION_SPEC, "hoodie.table.partition.fields")
_ORDERING = (
    "hoodie.table.ordering.fields",
    _WRITE + "precombine.field",
    "hoodie.table.precombine.field",
)
_TYPE = (_WRITE + "table.type", _WRITE + "storage.type", "hoodie.table.type")
_VERSION = ("hoodie.write.table.version", "hoodie.table.version")
_NAME = (TABLE_NAME, _WRITE + "table.name")
_CLASS = (_WRITE + "keygenerator.class", "hoodie.table.keygenerator.class")
_GENERATOR = (KEY_GENERATOR_TYPE, _WRITE + "keygenerator.type")
_PAYLOAD = (_WRITE + "payload.class", "hoodie.compaction.payload.class")
_MODES = (WRITE_MERGE_MODE, MERGE_MODE)
_CLUSTERING = ("hoodie.clustering.inline", "hoodie.datasource.clustering.inline.enable")
_NULLS = (_WRITE + "reconcile.schema", "hoodie.write.set.null.for.missing.columns")
_TYPES = {"COPY_ON_WRITE": "cow", "MERGE_ON_READ": "mor"}
_MODE_OF_PAYLOAD = {
    COMMIT_TIME_PAYLOAD: "COMMIT_TIME_ORDERING",
    EVENT_TIME_PAYLOAD: "EVENT_TIME_ORDERING",
}

HUDIS_INDEX = "SIMPLE"
"""Index of Hudi on Spark if no option names one (`HoodieIndexConfig.getDefaultIndexType`,
1.2.0)."""

OPERATIONS = (
    "upsert",
    "insert",
    "bulk_insert",
    "delete",
    "insert_overwrite",
    "insert_overwrite_table",
    "delete_partition",
)
_SORTS = {"NONE": "none", "GLOBAL_SORT": "global", "PARTITION_SORT": "partition"}


@dataclass(frozen=True)
class WriteRequest:
    """The settings of a write in an options map; None for what it does not set."""

    operation: str | None
    key: tuple[str, ...] | None
    partition_by: tuple[str, ...] | None
    """Partition columns, with types as in a custom key generator."""
    order_by: tuple[str, ...] | None
    type: str | None
    """Table type, "cow" or "mor"."""
    version: int | None
    nulls_for_missing: bool
    """Whether the data may leave out columns."""
    sort: SortMode
    sort_columns: tuple[str, ...]
    delete: tuple[str, ...]
    """Partition paths of the operation "delete_partition"."""
    table_options: Mapping[str, str]
    """Options that define a new table."""
    handle: Mapping[str, str]
    """Options of a table's handle."""
    named: frozenset[str]
    """Names of all options of the map."""

    @classmethod
    def of(cls, hudi_options: Mapping[str, object]) -> WriteRequest:
        """Parse an options map.

        Raises `ConfigError` and `UnsupportedTableFeature` naming the option.
        """
        options = check_hudi_options(hudi_options, "write")
        handle_options = {name: value for name, value in options.items() if _is_own_option(name)}
        table_options = {
            name: handle_options.pop(name) for name in CREATE_OPTIONS if name in handle_options
        }
        table_options.update(_create_options(options))
        inline = _agree_on_value(options, _read(options, _CLUSTERING, _is_enabled))
        if inline is not None:
            handle_options[_CLUSTERING[0]] = str(inline).lower()
        partition_by = _columns(options, _PARTITIONS)
        if partition_by is None or not any(":" in column for column in partition_by):
            handle_options.pop(PARTITION_SPEC, None)
            if table_options.get(KEY_GENERATOR_TYPE, "").upper() == CUSTOM and partition_by:
                raise ConfigError(
                    f"{PARTITION_SPEC} is {','.join(partition_by)!r}",
                    hint="A custom key generator needs types: field:simple,field:timestamp.",
                )
        check_options({**table_options, **handle_options}, creating=True)
        return cls(
            operation=_operation(options),
            key=_columns(options, _KEYS),
            partition_by=partition_by,
            order_by=_columns(options, _ORDERING),
            type=_table_type(options),
            version=_version(options),
            nulls_for_missing=any(parse_bool(options, name, default=False) for name in _NULLS),
            sort=_sort(options),
            sort_columns=_columns(
                options, ("hoodie.bulkinsert.user.defined.partitioner.sort.columns",)
            )
            or (),
            delete=_columns(options, (TO_DELETE,)) or (),
            table_options=table_options,
            handle=handle_options,
            named=frozenset(hudi_options),
        )

    @property
    def for_new(self) -> Mapping[str, str]:
        """Options of the handle of a new table, with Hudi's default index."""
        return {INDEX_TYPE: HUDIS_INDEX, **self.handle}

    @property
    def requests_record_index(self) -> bool:
        """Whether an option requests a record index; Hudi removes one that no option requests."""
        return MetadataOptions.of(self.handle).record_index is True


@dataclass(frozen=True)
class ReadRequest:
    """The settings of a query in an options map."""

    query: str
    """Query type: "snapshot", "read_optimized", "incremental" or "cdc"."""
    as_of: str | None = None
    start: str | None = None
    end: str | None = None
    hollow_commits: HollowCommits = "fail"
    fallback_full_scan: bool | None = None
    version: int | None = None
    """Table version whose times an incremental query uses."""
    handle: Mapping[str, str] = field(default_factory=dict)
    """Options of a table's handle."""

    @classmethod
    def of(cls, hudi_options: Mapping[str, object]) -> ReadRequest:
        """Parse an options map.

        Raises `ConfigError` and `UnsupportedTableFeature` naming the option.
        """
        options = check_hudi_options(hudi_options, "read")
        query = _query(options)
        ranged = query in ("incremental", "cdc")
        start, end = (options.get(f"{_READ}{side}.instanttime") for side in ("begin", "end"))
        as_of = options.get("as.of.instant")
        if ranged and (start is None or as_of is not None):
            name = f"{_READ}begin.instanttime" if start is None else "as.of.instant"
            relation = "needs" if start is None else "does not support"
            raise ConfigError(f"a query of the type {query!r} {relation} {name}")
        return cls(
            query=query,
            as_of=None if as_of is None else PlainTime(as_of),
            # As in Hudi, a snapshot query ignores a range that is a default of its session.
            start=_bound(query, start),
            end=_bound(query, end),
            hollow_commits=_hollow_commits(options),
            fallback_full_scan=parse_bool(
                options, f"{_READ}incr.fallback.fulltablescan.enable", default=None
            ),
            version=_range_version(options),
            handle={
                name: text
                for name, text in options.items()
                if is_handle_option(name) and name != PARTITION_SPEC and decision(name) is None
            },
        )


def _bound(query: str, time: str | None) -> str | None:
    """Return a bound of a range.

    Bounds of an incremental query are points in time, as in Hudi 1.2.0. So from table version 8 on,
    a range that begins at a commit's requested time includes its rows, because it completes later
    (`IncrementalQueryAnalyzer`). Ranges of changes have requested times there.
    """
    if time is None or query not in ("incremental", "cdc"):
        return None
    return PlainTime(time) if query == "incremental" else time


def check_hudi_options(hudi_options: Mapping[str, object], side: Side) -> dict[str, str]:
    """Return the options as text, without those that are ignored.

    Raises `UnsupportedTableFeature` for an unsupported option, `ConfigError` for an unknown one, or
    one without a value.
    """
    arg.by_name("hudi_options", hudi_options)
    values = {name: _as_text(name, value) for name, value in hudi_options.items()}
    synced = side == "write" and any(_is_enabled(values, name) for name in (ENABLE, HIVE_ENABLE))
    options = {}
    for name, text in values.items():
        entry = decision(name)
        if entry is None or (synced and entry.of_sync and not _is_harmless(entry, text)):
            if not _is_own_option(name):
                raise option_error(name, KNOWN_OPTIONS, CREATE_OPTIONS)
            options[name] = text
        elif entry.side in (side, "both") and _is_translated(entry, name, text):
            options[name] = text
    return options


def _as_text(name: str, value: object) -> str:
    if value is None:
        raise ConfigError(f"the option {name} is None", hint="Leave it out, or give it a value.")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_translated(option: HudiOption, name: str, text: str) -> bool:
    if option.fate == "refused" and not _is_harmless(option, text):
        raise UnsupportedTableFeature(
            f"{name} is {text!r}, which pyhudi does not support",
            hint=f"{option.note[:1].upper()}{option.note[1:]}.",
        )
    return option.fate == "translated"


def _is_harmless(option: HudiOption, text: str) -> bool:
    return text.strip().lower() in option.harmless


def _is_own_option(name: str) -> bool:
    return is_handle_option(name) or name in CREATE_OPTIONS


def _read(
    options: Mapping[str, str],
    names: tuple[str, ...],
    parse: Callable[[Mapping[str, str], str], Value],
) -> dict[str, Value]:
    """Return the parsed values of the options that are set, by name."""
    return {name: parse(options, name) for name in names if name in options}


def _agree_on_value(options: Mapping[str, str], values: Mapping[str, Value]) -> Value | None:
    """Return the value of options with the same meaning; None if none is set.

    Raises `ConfigError` for two different values, because choosing one would be a guess.
    """
    first = next(iter(values), None)
    if first is None:
        return None
    for name, value in values.items():
        if value != values[first]:
            raise ConfigError(
                f"{first} is {options[first]!r} and {name} is {options[name]!r}",
                hint="Both options mean the same: set only one.",
            )
    return values[first]


def _text(options: Mapping[str, str], name: str) -> str:
    return options[name].strip()


def _is_enabled(options: Mapping[str, str], name: str) -> bool:
    return parse_bool(options, name, default=False)


def _columns(options: Mapping[str, str], names: tuple[str, ...]) -> tuple[str, ...] | None:
    return _agree_on_value(options, _read(options, names, _parse_list))


def _parse_list(options: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in options[name].split(",") if part.strip())


def _operation(options: Mapping[str, str]) -> str | None:
    if OPERATION not in options:
        return None
    text = options[OPERATION].strip().lower()
    if text not in OPERATIONS:
        raise UnsupportedTableFeature(
            f"{OPERATION} is {text!r}, which does not write a DataFrame",
            hint=f"Choose one of {', '.join(OPERATIONS)}; table services, such as compact and "
            "cluster, are methods of the table.",
        )
    return text


def _table_type(options: Mapping[str, str]) -> str | None:
    def parse(options: Mapping[str, str], name: str) -> str:
        return _TYPES[parse_enum(options, name, tuple(_TYPES), "")]

    return _agree_on_value(options, _read(options, _TYPE, parse))


def _version(options: Mapping[str, str]) -> int | None:
    return _agree_on_value(options, _read(options, _VERSION, partial(parse_int, default=0)))


def _sort(options: Mapping[str, str]) -> SortMode:
    name = "hoodie.bulkinsert.sort.mode"
    if options.get(name, "NONE").strip().upper() not in _SORTS:
        raise UnsupportedTableFeature(
            f"{name} is {options[name]!r}", hint=f"One of {', '.join(_SORTS)}."
        )
    return cast("SortMode", _SORTS[options.get(name, "NONE").strip().upper()])


def _create_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return options of `create_table` that other options imply."""
    generators = _read(options, _GENERATOR, _generator) | _read(options, _CLASS, _of_class)
    modes = _read(options, _MODES, _mode) | _read(options, _PAYLOAD, _of_payload)
    created = {
        TABLE_NAME: _agree_on_value(options, _read(options, _NAME, _text)),
        KEY_GENERATOR_TYPE: _agree_on_value(options, generators),
        MERGE_MODE: _agree_on_value(options, modes),
    }
    return {name: text for name, text in created.items() if text is not None}


def _generator(options: Mapping[str, str], name: str) -> str:
    return _text(options, name).upper().removesuffix("_AVRO")


def _of_class(options: Mapping[str, str], name: str) -> str:
    class_name = _text(options, name)
    if class_name not in KEY_GENERATOR_TYPES:
        raise UnsupportedTableFeature(
            f"{name} is {class_name!r}, which is not one of Hudi's",
            hint="pyhudi runs no Java, so it has no custom key generators.",
        )
    return KEY_GENERATOR_TYPES[class_name].removesuffix("_AVRO")


def _mode(options: Mapping[str, str], name: str) -> str:
    return _text(options, name).upper()


def _of_payload(options: Mapping[str, str], name: str) -> str:
    payload = _text(options, name)
    if payload not in _MODE_OF_PAYLOAD:
        raise UnsupportedTableFeature(
            f"{name} is {payload!r}, which pyhudi cannot set for a new table",
            hint=f"Choose one of {', '.join(_MODE_OF_PAYLOAD)}, or leave it out: a table keeps "
            "the payload class it has.",
        )
    return _MODE_OF_PAYLOAD[payload]


_QUERY = "hoodie.datasource.query.type"
_VIEW = "hoodie.datasource.view.type"
_QUERY_OF_VIEW = {
    "read_optimized": "snapshot",
    "incremental": "incremental",
    "realtime": "snapshot",
}
"""The mapping of `DataSourceOptionsHelper.viewTypeValueMap`, 1.2.0."""


def _query(options: Mapping[str, str]) -> str:
    if _QUERY in options or _VIEW not in options:
        query = parse_enum(
            options, _QUERY, ("snapshot", "read_optimized", "incremental"), "snapshot"
        )
    else:
        query = _QUERY_OF_VIEW[parse_enum(options, _VIEW, tuple(_QUERY_OF_VIEW), "")]
    change_format = parse_enum(
        options,
        "hoodie.datasource.query.incremental.format",
        ("latest_state", "cdc"),
        "latest_state",
    )
    return "cdc" if query == "incremental" and change_format == "cdc" else query


def _range_version(options: Mapping[str, str]) -> int | None:
    if RANGE_VERSION not in options:
        return None
    return int(parse_enum(options, RANGE_VERSION, ("4", "5", "6", "8", "9"), ""))


_POLICIES = {"FAIL": "fail", "BLOCK": "block", "USE_TRANSITION_TIME": "transition_time"}


def _hollow_commits(options: Mapping[str, str]) -> HollowCommits:
    name = "hoodie.read.timeline.holes.resolution.policy"
    policy: Any = _POLICIES[parse_enum(options, name, tuple(_POLICIES), "FAIL")]
    return cast("HollowCommits", policy)
