"""The merge rules of two records of one key, derived from a table's properties.

Tables before version 9 store a payload class, a strategy id, or neither, and the merge mode follows
from them; version 9 stores the mode. The Rust core merges. The rules are those of Hudi 1.2.0
(`HoodieTableConfig.inferMergingConfigsForPreV9Table`), also where the release that wrote a table
merges it differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from pyhudi.config.column_rules import RULES_STRATEGY, ColumnRules, parse_payload
from pyhudi.config.table_version import TableVersion
from pyhudi.errors import UnsupportedTableFeature

BuiltInMode = Literal["COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"]
"""The modes whose rules are in the Rust core."""

MergeMode = Literal["COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING", "CUSTOM"]

MERGE_MODE = "hoodie.record.merge.mode"
PAYLOAD_CLASS = "hoodie.compaction.payload.class"
STRATEGY_ID = "hoodie.record.merge.strategy.id"
OLD_STRATEGY_ID = "hoodie.compaction.record.merger.strategy"
PARTIAL_UPDATE_MODE = "hoodie.table.partial.update.mode"
MERGE_PROPERTY = "hoodie.record.merge.property."
DELETE_FIELD = "hoodie.payload.delete.field"
DELETE_MARKER = "hoodie.payload.delete.marker"

EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME_STRATEGY = "ce9acb64-bde0-424c-9b91-f6ebba25356d"

_MODEL = "org.apache.hudi.common.model."
EVENT_TIME_PAYLOAD = _MODEL + "DefaultHoodieRecordPayload"
COMMIT_TIME_PAYLOAD = _MODEL + "OverwriteWithLatestAvroPayload"
AWS_DMS_PAYLOAD = _MODEL + "AWSDmsAvroPayload"
DEBEZIUM_PAYLOADS = (
    _MODEL + "debezium.MySqlDebeziumAvroPayload",
    _MODEL + "debezium.PostgresDebeziumAvroPayload",
)

_MODE_OF_PAYLOAD: dict[str, MergeMode] = {
    EVENT_TIME_PAYLOAD: "EVENT_TIME_ORDERING",
    _MODEL + "EventTimeAvroPayload": "EVENT_TIME_ORDERING",
    COMMIT_TIME_PAYLOAD: "COMMIT_TIME_ORDERING",
    # The last commit wins; the delete marker is a separate rule.
    AWS_DMS_PAYLOAD: "COMMIT_TIME_ORDERING",
}
_MODE_OF_STRATEGY: dict[str, MergeMode] = {
    EVENT_TIME_STRATEGY: "EVENT_TIME_ORDERING",
    COMMIT_TIME_STRATEGY: "COMMIT_TIME_ORDERING",
}
_DELETE_RULE_OF_PAYLOAD = {
    AWS_DMS_PAYLOAD: ("Op", "D"),
    **dict.fromkeys(DEBEZIUM_PAYLOADS, ("_change_operation_type", "d")),
}
"""Delete field and marker that a class implies before version 9. Its name ignores case."""
_MODES = ("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING", "CUSTOM")


@dataclass(frozen=True)
class MergeConfig:
    """The merge rules of a table."""

    mode: MergeMode
    payload_class: str | None = None
    """The stored class, with the package of Hudi's first years renamed; None if none is stored."""
    strategy_id: str | None = None
    partial_update_mode: str | None = None
    """IGNORE_DEFAULTS or FILL_UNAVAILABLE."""
    delete_field: str | None = None
    """Column that marks deletes, with `delete_marker` as the text of its value; both or neither."""
    delete_marker: str | None = None
    column_rules: ColumnRules = ()
    """Columns whose values a rule combines, in mode CUSTOM."""
    marked_in_any_case: bool = False
    """Whether the marker of written rows is compared case-insensitively."""

    @property
    def combined_columns(self) -> tuple[str, ...]:
        """The names of the columns with a rule."""
        return tuple(name for name, _ in self.column_rules)


def merge_config(
    properties: Mapping[str, str], version: TableVersion, *, has_ordering: bool
) -> MergeConfig:
    """Return the merge rules of a table with these properties.

    Raises `UnsupportedTableFeature` for an unknown mode or merge rule, or a delete field without a
    marker.
    """
    payload = _payload_class(properties)
    strategy = properties.get(STRATEGY_ID) or properties.get(OLD_STRATEGY_ID) or None
    stored = _mode_from_property(properties)
    if version.merge_inferred:
        mode = _infer_mode(version, stored, payload, strategy, has_ordering=has_ordering)
    else:
        mode = stored or _mode_of_ordering(has_ordering=has_ordering)
    is_ruled = (mode, strategy) == ("CUSTOM", RULES_STRATEGY)
    implied = _DELETE_RULE_OF_PAYLOAD.get(payload or "") if version.merge_inferred else None
    field, marker = delete_rule(properties) or implied or (None, None)
    return MergeConfig(
        mode=mode,
        payload_class=payload,
        strategy_id=strategy,
        partial_update_mode=_partial_update_mode(properties, version),
        delete_field=field,
        delete_marker=marker,
        column_rules=parse_payload(payload or "") if is_ruled else (),
        marked_in_any_case=implied == (field, marker),
    )


def mode_of_payload(payload: str) -> MergeMode:
    """Return the mode that Hudi infers from a payload class.

    Source: `inferRecordMergeModeFromPayloadClass`.
    """
    mode = _MODE_OF_PAYLOAD.get(payload, "CUSTOM")
    return "CUSTOM" if payload == AWS_DMS_PAYLOAD else mode


def find_unsupported_property(merge: MergeConfig) -> str | None:
    """Return the property that prevents merging of a table's records, or None.

    It matters only if records are merged: copy-on-write tables are read without merging.
    """
    if merge.partial_update_mode is not None:
        return f"{PARTIAL_UPDATE_MODE}={merge.partial_update_mode}"
    if merge.mode != "CUSTOM":
        return None
    if merge.payload_class is not None:
        return f"{PAYLOAD_CLASS}={merge.payload_class}"
    if merge.strategy_id is not None:
        return f"{STRATEGY_ID}={merge.strategy_id}"
    return f"{MERGE_MODE}={merge.mode}"


def _payload_class(properties: Mapping[str, str]) -> str | None:
    name = properties.get(PAYLOAD_CLASS, "").replace("com.uber.hoodie", "org.apache.hudi")
    return name or None


def _mode_from_property(properties: Mapping[str, str]) -> MergeMode | None:
    mode = properties.get(MERGE_MODE, "").upper()
    if not mode:
        return None
    if mode not in _MODES:
        msg = f"{MERGE_MODE} is {mode}; pyhudi supports {', '.join(_MODES)}"
        raise UnsupportedTableFeature(msg)
    return cast("MergeMode", mode)


def _infer_mode(
    version: TableVersion,
    stored: MergeMode | None,
    payload: str | None,
    strategy: str | None,
    *,
    has_ordering: bool,
) -> MergeMode:
    """Return the mode of a table before version 9.

    A table that Spark created with Hudi 0.15.0 and an ordering field, but without a payload, has
    OverwriteWithLatestAvroPayload together with the event-time strategy id. The payload wins then.
    """
    of_payload = None if payload is None else _MODE_OF_PAYLOAD.get(payload, "CUSTOM")
    of_strategy = None if strategy is None else _MODE_OF_STRATEGY.get(strategy, "CUSTOM")
    if version.payload_outranks_strategy:
        mode = of_payload or of_strategy or stored
    else:
        mode = stored or of_strategy or of_payload
        if mode == "CUSTOM" and payload == AWS_DMS_PAYLOAD:
            mode = of_payload
    return mode or _mode_of_ordering(has_ordering=has_ordering)


def _mode_of_ordering(*, has_ordering: bool) -> MergeMode:
    return "EVENT_TIME_ORDERING" if has_ordering else "COMMIT_TIME_ORDERING"


def _partial_update_mode(properties: Mapping[str, str], version: TableVersion) -> str | None:
    """Return the partial update mode; versions before 9 ignore the property."""
    mode = properties.get(PARTIAL_UPDATE_MODE, "").upper()
    return None if version.merge_inferred or mode in {"", "NONE"} else mode


def delete_rule(properties: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the column that marks deletes and the text of its value; None without a rule.

    Raises `UnsupportedTableFeature` if only one of them is set.
    """
    field, marker = (
        properties.get(MERGE_PROPERTY + key) or properties.get(key)
        for key in (DELETE_FIELD, DELETE_MARKER)
    )
    if field and marker:
        return field, marker
    if field or marker:
        msg = f"{DELETE_FIELD} and {DELETE_MARKER} are not both set"
        raise UnsupportedTableFeature(msg, hint="Set both properties, or remove the one.")
    return None
