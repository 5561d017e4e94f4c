"""What a step between two table versions changes in `hoodie.properties`. Pure.

Sources: `SevenToEightUpgradeHandler`, `EightToNineUpgradeHandler`, `NineToEightDowngradeHandler`,
`EightToSevenDowngradeHandler` (Hudi 1.2.0). Where those leave properties behind that the older
release would misread, such as the folder of its archive, they are put right here.
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
"""Strategy ids that stand for no merger of somebody's own."""

_MODEL = "org.apache.hudi.common.model."
MYSQL_PAYLOAD = merging.DEBEZIUM_PAYLOADS[0]
_DMS = {merging.DELETE_FIELD: "Op", merging.DELETE_MARKER: "D"}
_DEBEZIUM = {
    merging.DELETE_FIELD: "_change_operation_type",
    merging.DELETE_MARKER: "d",
}

# Payload class: merge mode, partial update mode, merge properties, ordering fields it brings. Two
# bring no mode: the stored one stays, with the id of a merger of somebody's own.
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
    """All properties of the table once it has the target version, the checksum left out."""
    found = dict(properties)
    for step in steps(int(found[names.TABLE_VERSION]), target):
        change = _CHANGES.get(step)
        found = change(found) if change else found
        found[names.TABLE_VERSION] = str(step[1])
        found[names.LAYOUT_VERSION] = str(table_version(step[1]).layout.version)
    return found


def steps(start: int, target: int) -> list[tuple[int, int]]:
    """The steps from one version to another, each between neighbours."""
    between = [code for code in VERSIONS if min(start, target) <= code <= max(start, target)]
    if target < start:
        between.reverse()
    return list(itertools.pairwise(between))


def _six_to_eight(properties: Properties) -> dict[str, str]:
    found = dict(properties)
    config = TableConfig(found)
    mode, payload, strategy = _merge_rules(config)
    found.update(
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
    found.setdefault(INITIAL_VERSION, found[names.TABLE_VERSION])
    found.pop(merging.OLD_STRATEGY_ID, None)
    if config.ordering_fields:
        found.setdefault(names.PRECOMBINE_FIELD, ",".join(config.ordering_fields))
    index = bootstrap_index(found)
    if index is not None:
        found[names.BOOTSTRAP_INDEX_CLASS], found[names.BOOTSTRAP_INDEX_TYPE] = index
    return found


def _merge_rules(config: TableConfig) -> tuple[str, str, str]:
    """Mode, payload class and strategy id from version 8 on.

    A merge-on-read table with an ordering field goes by event time, whatever its payload class, and
    a copy-on-write table where no class is stored, as Hudi 0.15 leaves it.
    """
    payload = config.merge.payload_class or _class_of(config.merge.mode)
    if payload not in _KEEP_THEIR_CLASS:
        return "CUSTOM", payload, PAYLOAD_STRATEGY
    if payload != merging.COMMIT_TIME_PAYLOAD:
        # Hudi 1.0 takes no other class beside that id.
        return "EVENT_TIME_ORDERING", merging.EVENT_TIME_PAYLOAD, merging.EVENT_TIME_STRATEGY
    if config.is_merge_on_read and config.ordering_fields:
        return "EVENT_TIME_ORDERING", merging.EVENT_TIME_PAYLOAD, merging.EVENT_TIME_STRATEGY
    return "COMMIT_TIME_ORDERING", payload, merging.COMMIT_TIME_STRATEGY


def _class_of(mode: merging.MergeMode) -> str:
    """The payload class that stands for a mode."""
    if mode == "EVENT_TIME_ORDERING":
        return merging.EVENT_TIME_PAYLOAD
    return merging.COMMIT_TIME_PAYLOAD


def _eight_to_nine(properties: Properties) -> dict[str, str]:
    found = dict(properties)
    found[merging.MERGE_MODE] = TableConfig(properties).merge.mode
    ordering = found.pop(names.PRECOMBINE_FIELD, None) or found.get(names.ORDERING_FIELDS)
    if ordering:
        found[names.ORDERING_FIELDS] = ordering
    payload = found.get(merging.PAYLOAD_CLASS, "").replace("com.uber.hoodie", "org.apache.hudi")
    if payload in _OF_PAYLOAD:
        mode, partial, _, forced = _OF_PAYLOAD[payload]
        found.pop(merging.PAYLOAD_CLASS)
        found[LEGACY_PAYLOAD] = payload
        if mode:
            found[merging.MERGE_MODE] = mode
        if partial:
            found[merging.PARTIAL_UPDATE_MODE] = partial
        if forced:
            found[names.ORDERING_FIELDS] = forced
        found.update(_properties_of_payload(payload))
        for name in (merging.DELETE_FIELD, merging.DELETE_MARKER):
            if name in found:
                found[merging.MERGE_PROPERTY + name] = found[name]
    if found[merging.MERGE_MODE] != "CUSTOM":
        found.pop(merging.STRATEGY_ID, None)
    return found


def _nine_to_eight(properties: Properties) -> dict[str, str]:
    mode = TableConfig(properties).merge.mode
    found = dict(properties)
    found.pop(merging.PARTIAL_UPDATE_MODE, None)
    payload = found.pop(LEGACY_PAYLOAD, None)
    brought = _properties_of_payload(payload)
    if brought.items() <= found.items():
        found = {name: value for name, value in found.items() if name not in brought}
    if payload is not None and payload not in _KEEP_THEIR_CLASS:
        found[merging.MERGE_MODE] = "CUSTOM"
        found[merging.PAYLOAD_CLASS] = payload
        found[merging.STRATEGY_ID] = PAYLOAD_STRATEGY
    elif mode == "CUSTOM":
        if payload:
            found[merging.PAYLOAD_CLASS] = payload
    else:
        by_event = mode == "EVENT_TIME_ORDERING"
        found[merging.MERGE_MODE] = mode
        found[merging.PAYLOAD_CLASS] = payload or _class_of(mode)
        found[merging.STRATEGY_ID] = (
            merging.EVENT_TIME_STRATEGY if by_event else merging.COMMIT_TIME_STRATEGY
        )
    ordering = found.pop(names.ORDERING_FIELDS, None)
    if payload == MYSQL_PAYLOAD:
        ordering = "_event_seq"
    if ordering:
        found[names.PRECOMBINE_FIELD] = ordering
    found.pop(names.TABLE_FORMAT, None)
    return found


def rules_of_payload(payload: str) -> dict[str, str]:
    """The merge rules of a new table of version 9 with a payload class.

    As `HoodieTableConfig.inferMergingConfigsForV9TableCreation` (1.2.0) has them.
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
    """The ordering fields that a payload class brings into version 9; none where it brings none."""
    known = _OF_PAYLOAD.get(payload)
    forced = known[3] if known else None
    return tuple(forced.split(",")) if forced else ()


def partial_mode(payload: str | None) -> str | None:
    """The partial update mode that a payload class stands for, None for none."""
    known = _OF_PAYLOAD.get(payload or "")
    return known[1] if known else None


def _properties_of_payload(payload: str | None) -> Properties:
    """Merge properties that a payload class brings; what a table has else is its own, and stays."""
    known = _OF_PAYLOAD.get(payload or "")
    return {merging.MERGE_PROPERTY + k: v for k, v in known[2].items()} if known else {}


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
    found = {k: v for k, v in properties.items() if k not in dropped}
    found[names.ARCHIVE_FOLDER] = "archived"
    generator = names.KEY_GENERATOR_CLASSES.get(config.key_generator)
    if generator:
        found.setdefault(names.KEY_GENERATOR_CLASS, generator)
    if names.PARTITION_FIELDS in found:
        # Hudi 0.15 takes the type of a custom key generator's field for a part of its name.
        found[names.PARTITION_FIELDS] = ",".join(config.partition_fields)
    index = bootstrap_index(properties)
    if index is not None:
        found[names.BOOTSTRAP_INDEX_CLASS], _ = index
    if config.ordering_fields:
        found[names.PRECOMBINE_FIELD] = ",".join(config.ordering_fields)
    if config.merge.mode != "CUSTOM":
        found.setdefault(merging.PAYLOAD_CLASS, _class_of(config.merge.mode))
    found[merging.OLD_STRATEGY_ID] = config.merge.strategy_id or merging.EVENT_TIME_STRATEGY
    return found


_CHANGES: Mapping[tuple[int, int], Callable[[Properties], dict[str, str]]] = {
    (6, 8): _six_to_eight,
    (8, 9): _eight_to_nine,
    (9, 8): _nine_to_eight,
    (8, 6): _eight_to_six,
}
"""The other steps change the numbers alone."""
