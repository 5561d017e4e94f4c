"""The properties of a new metadata table, for each version of its data table.

They are those that the matching release writes (`HoodieBackedTableMetadataWriter`, 0.15.0, 1.0.2
and 1.2.0).
"""

from __future__ import annotations

from pyhudi.config import merge_mode as merging
from pyhudi.config import property_names as names
from pyhudi.config.properties import CHECKSUM, TABLE_NAME, checksum
from pyhudi.config.table_config import TableConfig
from pyhudi.config.table_version import TableVersion

_KEY_GENERATOR = "HOODIE_TABLE_METADATA"
_PAYLOAD = "org.apache.hudi.metadata.HoodieMetadataPayload"
_PAYLOAD_STRATEGY = "00000000-0000-0000-0000-000000000000"


def own_config(data: TableConfig) -> TableConfig:
    """Return the configuration of a data table's metadata table."""
    version = data.version
    properties = {
        TABLE_NAME: f"{data.name}_metadata",
        names.TABLE_TYPE: "MERGE_ON_READ",
        names.TABLE_VERSION: str(version.code),
        names.LAYOUT_VERSION: str(version.layout.version),
        names.BASE_FILE_FORMAT: "HFILE",
        names.RECORD_KEY_FIELDS: "key",
        names.META_FIELDS: "false",
        names.DROP_PARTITION_COLUMNS: "false",
        merging.PAYLOAD_CLASS: _PAYLOAD,
        **_by_version(version),
    }
    return TableConfig({**properties, CHECKSUM: checksum(properties)})


def _by_version(version: TableVersion) -> dict[str, str]:
    if version.writes_old_property_names:
        return {
            names.ARCHIVE_FOLDER: "archived",
            names.KEY_GENERATOR_CLASS: names.KEY_GENERATOR_CLASSES[_KEY_GENERATOR],
            merging.OLD_STRATEGY_ID: merging.EVENT_TIME_STRATEGY,
        }
    return {
        "hoodie.table.initial.version": str(version.code),
        names.TIMELINE_PATH: "timeline",
        names.HISTORY_PATH: "history",
        names.ARCHIVE_FOLDER: "history",
        names.KEY_GENERATOR_TYPE: _KEY_GENERATOR,
        merging.MERGE_MODE: "CUSTOM",
        merging.STRATEGY_ID: _PAYLOAD_STRATEGY,
    }
