"""The changes in `hoodie.properties` between two table versions, without I/O.

Sources: `SevenToEightUpgradeHandler`, `EightToNineUpgradeHandler`, `NineToEightDowngradeHandler`,
`EightToSevenDowngradeHandler` (Hudi 1.2.0). If those leave properties behind that the older release
would misread, such as the directory of its archive, they are corrected here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from pyhudi.config import merge_mode as merging
from pyhudi.config import property_names as names
from pyhudi.config.bootstrap import bootstrap_index
from pyhudi.config.table_config import TableConfig
from pyhudi.config.table_version import table_version

Properties = Mapping[str, str]

VERSIONS = (4, 5, 6, 8, 9)

INITIAL_VERSION = "hoodie.table.initial.version"
LEGACY_PAYLOAD = "hoodie.table.legacy.payload.class"
PAYLOAD_STRATEGY = "00000000-0000-0000-0000-000000000000"
UNAVAILABLE = "hoodie.write.partial.update.unavailable.value"

BUILT_IN_STRATEGIES = (
    merging.EVENT_TIME_STRATEGY,
    merging.COMMIT_TIME_STRATEGY,
    PAYLOAD_STRATEGY,
)
"""Strategy ids that do not belong to a custom merger."""

_MODEL = "org.apache.hudi.common.model."
MYSQL_PAYLOAD = merging.DEBEZIUM_PAYLOADS[0]
_DMS = {merging.DELETE_FIELD: "Op", merging.DELETE_MARKER: "D"}
_DEBEZIUM = {
    merging.DELETE_FIELD: "_change_operation_type",
    merging.DELETE_MARKER: "d",
}

# Payload class: merge mode, partial update mode, merge properties, and the ordering fields that it
# sets. Two classes set no mode: the stored one stays, with the id of a custom merger.
_OF_PAYLOAD: Mapping[str, tuple[str | None, str | None, Properties, str | None]] = {
    merging.EVENT_TIME_PAYLOAD: (None, None, {}, None),
    _MODEL + "EventTimeAvroPayload": ("EVENT_TIME_ORDERING", None, {}, None),
    merging.COMMIT_TIME_PAYLOAD: (None, None, {}, None),
    _MODEL + "OverwriteNonDefaultsWithLatestAvroPayload": (
        "COMMIT_TIME_ORDERING",
        "IGNORE_DEFAULTS",
        {},
        None,
    ),
    _MODEL + "PartialUpdateAvroPayload": ("EVENT_TIME_ORDERING", "IGNORE_DEFAULTS", {}, None),
    _MODEL + "AWSDmsAvroPayload": ("COMMIT_TIME_ORDERING", None, _DMS, None),
    _MODEL + "debezium.PostgresDebeziumAvroPayload": (
        "EVENT_TIME_ORDERING",
        "FILL_UNAVAILABLE",
        {UNAVAILABLE: "__debezium_unavailable_value", **_DEBEZIUM},
        "_event_lsn",
    ),
    MYSQL_PAYLOAD: (
        "EVENT_TIME_ORDERING",
        None,
        _DEBEZIUM,
        "_event_bin_file,_event_pos",
    ),
}
_KEEP_THEIR_CLASS = (
    merging.EVENT_TIME_PAYLOAD,
    _MODEL + "EventTimeAvroPayload",
    merging.COMMIT_TIME_PAYLOAD,
)


def convert_properties(properties: Properties, target: int) -> dict[str, str]:
    """Return all properties of the table at the target version, without the checksum."""
    converted = dict(properties)
    for step in steps(int(converted[names.TABLE_VERSION]), target):
        change = _CHANGES.get(step)
        converted = change(converted) if change else converted
        converted[names.TABLE_VERSION] = str(step[1])
        converted[names.LAYOUT_VERSION] = str(table_version(step[1]).layout.version)
    return converted


def steps(start: int, target: int) -> list[tuple[int, int]]:
    """Return the steps from one version to another, each between adjacent versions."""
    between = [code for code in VERSIONS if min(start, target) <= code <= max(start, target)]
    if target < start:
        between.reverse()
    return list(itertools.pairwise(between))


def _six_to_eight(properties: Properties) -> dict[str, str]:
    converted = dict(properties)
    config = TableConfig(converted)
    mode, payload, strategy = _merge_rules(config)
    converted.update(
        {
            names.TIMELINE_PATH: "timeline",
            names.HISTORY_PATH: "history",
            names.ARCHIVE_FOLDER: "history",
            names.KEY_GENERATOR_TYPE: config.key_generator,
            merging.MERGE_MODE: mode,
            merging.PAYLOAD_CLASS: payload,
            merging.STRATEGY_ID: strategy,
        }
    )
    converted.setdefault(INITIAL_VERSION, converted[names.TABLE_VERSION])
    converted.pop(merging.OLD_STRATEGY_ID, None)
    if config.ordering_fields:
        converted.setdefault(names.PRECOMBINE_FIELD, ",".join(config.ordering_fields))
    index = bootstrap_index(converted)
    if index is not None:
        converted[names.BOOTSTRAP_INDEX_CLASS], converted[names.BOOTSTRAP_INDEX_TYPE] = index
    return converted


def _merge_rules(config: TableConfig) -> tuple[str, str, str]:
    """Return mode, payload class and strategy id from version 8 on.

    A merge-on-read table with an ordering field uses event time, whatever its payload class, and so
    does a copy-on-write table that stores no class, as Hudi 0.15 leaves it.
    """
    payload = config.merge.payload_class or _class_of(config.merge.mode)
    if payload not in _KEEP_THEIR_CLASS:
        return "CUSTOM", payload, PAYLOAD_STRATEGY
    if payload != merging.COMMIT_TIME_PAYLOAD:
        # Hudi 1.0 accepts no other class with that id.
        return "EVENT_TIME_ORDERING", merging.EVENT_TIME_PAYLOAD, merging.EVENT_TIME_STRATEGY
    if config.is_merge_on_read and config.ordering_fields:
        return "EVENT_TIME_ORDERING", merging.EVENT_TIME_PAYLOAD, merging.EVENT_TIME_STRATEGY
    return "COMMIT_TIME_ORDERING", payload, merging.COMMIT_TIME_STRATEGY


def _class_of(mode: merging.MergeMode) -> str:
    """Return the payload class that is equivalent to a mode."""
    if mode == "EVENT_TIME_ORDERING":
        return merging.EVENT_TIME_PAYLOAD
    return merging.COMMIT_TIME_PAYLOAD


def _eight_to_nine(properties: Properties) -> dict[str, str]:
    converted = dict(properties)
    converted[merging.MERGE_MODE] = TableConfig(properties).merge.mode
    ordering = converted.pop(names.PRECOMBINE_FIELD, None) or converted.get(names.ORDERING_FIELDS)
    if ordering:
        converted[names.ORDERING_FIELDS] = ordering
    payload = converted.get(merging.PAYLOAD_CLASS, "").replace("com.uber.hoodie", "org.apache.hudi")
    if payload in _OF_PAYLOAD:
        mode, partial, _, forced = _OF_PAYLOAD[payload]
        converted.pop(merging.PAYLOAD_CLASS)
        converted[LEGACY_PAYLOAD] = payload
        if mode:
            converted[merging.MERGE_MODE] = mode
        if partial:
            converted[merging.PARTIAL_UPDATE_MODE] = partial
        if forced:
            converted[names.ORDERING_FIELDS] = forced
        converted.update(_properties_of_payload(payload))
        for name in (merging.DELETE_FIELD, merging.DELETE_MARKER):
            if name in converted:
                converted[merging.MERGE_PROPERTY + name] = converted[name]
    if converted[merging.MERGE_MODE] != "CUSTOM":
        converted.pop(merging.STRATEGY_ID, None)
    return converted


def _nine_to_eight(properties: Properties) -> dict[str, str]:
    mode = TableConfig(properties).merge.mode
    converted = dict(properties)
    converted.pop(merging.PARTIAL_UPDATE_MODE, None)
    payload = converted.pop(LEGACY_PAYLOAD, None)
    implied = _properties_of_payload(payload)
    if implied.items() <= converted.items():
        converted = {name: value for name, value in converted.items() if name not in implied}
    if payload is not None and payload not in _KEEP_THEIR_CLASS:
        converted[merging.MERGE_MODE] = "CUSTOM"
        converted[merging.PAYLOAD_CLASS] = payload
        converted[merging.STRATEGY_ID] = PAYLOAD_STRATEGY
    elif mode == "CUSTOM":
        if payload:
            converted[merging.PAYLOAD_CLASS] = payload
    else:
        by_event = mode == "EVENT_TIME_ORDERING"
        converted[merging.MERGE_MODE] = mode
        converted[merging.PAYLOAD_CLASS] = payload or _class_of(mode)
        converted[merging.STRATEGY_ID] = (
            merging.EVENT_TIME_STRATEGY if by_event else merging.COMMIT_TIME_STRATEGY
        )
    ordering = converted.pop(names.ORDERING_FIELDS, None)
    if payload == MYSQL_PAYLOAD:
        ordering = "_event_seq"
    if ordering:
        converted[names.PRECOMBINE_FIELD] = ordering
    converted.pop(names.TABLE_FORMAT, None)
    return converted


def rules_of_payload(payload: str) -> dict[str, str]:
    """Return the merge rules of a new table of version 9 with a payload class.

    They follow `HoodieTableConfig.inferMergingConfigsForV9TableCreation` (1.2.0).
    """
    if payload not in _OF_PAYLOAD:
        return {
            merging.MERGE_MODE: "CUSTOM",
            merging.PAYLOAD_CLASS: payload,
            merging.STRATEGY_ID: PAYLOAD_STRATEGY,
        }
    mode, partial, _, _ = _OF_PAYLOAD[payload]
    return {
        merging.MERGE_MODE: mode or merging.mode_of_payload(payload),
        LEGACY_PAYLOAD: payload,
        **({merging.PARTIAL_UPDATE_MODE: partial} if partial else {}),
        **_properties_of_payload(payload),
    }


def ordering_of_payload(payload: str) -> tuple[str, ...]:
    """Return the ordering fields that a payload class sets from version 9 on; empty if none."""
    rules = _OF_PAYLOAD.get(payload)
    forced = rules[3] if rules else None
    return tuple(forced.split(",")) if forced else ()


def partial_mode(payload: str | None) -> str | None:
    """Return the partial update mode that a payload class implies, None if none."""
    rules = _OF_PAYLOAD.get(payload or "")
    return rules[1] if rules else None


def _properties_of_payload(payload: str | None) -> Properties:
    """Return merge properties that a payload class sets; other properties are the table's own."""
    rules = _OF_PAYLOAD.get(payload or "")
    return {merging.MERGE_PROPERTY + k: v for k, v in rules[2].items()} if rules else {}


def _eight_to_six(properties: Properties) -> dict[str, str]:
    config = TableConfig(properties)
    dropped = (
        names.TIMELINE_PATH,
        names.HISTORY_PATH,
        names.KEY_GENERATOR_TYPE,
        names.ORDERING_FIELDS,
        names.SEVERAL_FORMATS,
        names.BOOTSTRAP_INDEX_TYPE,
        INITIAL_VERSION,
        merging.MERGE_MODE,
        merging.STRATEGY_ID,
    )
    converted = {k: v for k, v in properties.items() if k not in dropped}
    converted[names.ARCHIVE_FOLDER] = "archived"
    generator = names.KEY_GENERATOR_CLASSES.get(config.key_generator)
    if generator:
        converted.setdefault(names.KEY_GENERATOR_CLASS, generator)
    if names.PARTITION_FIELDS in converted:
        # Hudi 0.15 reads the type of a custom key generator's field as a part of its name.
        converted[names.PARTITION_FIELDS] = ",".join(config.partition_fields)
    index = bootstrap_index(properties)
    if index is not None:
        converted[names.BOOTSTRAP_INDEX_CLASS], _ = index
    if config.ordering_fields:
        converted[names.PRECOMBINE_FIELD] = ",".join(config.ordering_fields)
    if config.merge.mode != "CUSTOM":
        converted.setdefault(merging.PAYLOAD_CLASS, _class_of(config.merge.mode))
    converted[merging.OLD_STRATEGY_ID] = config.merge.strategy_id or merging.EVENT_TIME_STRATEGY
    return converted


_CHANGES: Mapping[tuple[int, int], Callable[[Properties], dict[str, str]]] = {
    (6, 8): _six_to_eight,
    (8, 9): _eight_to_nine,
    (9, 8): _nine_to_eight,
    (8, 6): _eight_to_six,
}
"""The other steps change only the version numbers."""
