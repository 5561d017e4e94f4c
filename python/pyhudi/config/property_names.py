"""Names of the properties in `hoodie.properties`, and Hudi's key generators by type.

`table_config.py` has defaults and meanings; `merge_mode.py` has the names of merge rules. Source:
Hudi 1.2.0 `HoodieTableConfig`, `KeyGeneratorType`.
"""

from __future__ import annotations

TABLE_TYPE = "hoodie.table.type"
TABLE_VERSION = "hoodie.table.version"
LAYOUT_VERSION = "hoodie.timeline.layout.version"
TIMELINE_PATH = "hoodie.timeline.path"
HISTORY_PATH = "hoodie.timeline.history.path"
ARCHIVE_FOLDER = "hoodie.archivelog.folder"
TIMEZONE = "hoodie.table.timeline.timezone"
RECORD_KEY_FIELDS = "hoodie.table.recordkey.fields"
PARTITION_FIELDS = "hoodie.table.partition.fields"
ORDERING_FIELDS = "hoodie.table.ordering.fields"
PRECOMBINE_FIELD = "hoodie.table.precombine.field"
KEY_GENERATOR_CLASS = "hoodie.table.keygenerator.class"
KEY_GENERATOR_TYPE = "hoodie.table.keygenerator.type"
CREATE_SCHEMA = "hoodie.table.create.schema"
HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
SLASH_DATES = "hoodie.datasource.write.slash.separated.date.partitioning"
DROP_PARTITION_COLUMNS = "hoodie.datasource.write.drop.partition.columns"
META_FIELDS = "hoodie.populate.meta.fields"
BASE_FILE_FORMAT = "hoodie.table.base.file.format"
LOG_FILE_FORMAT = "hoodie.table.log.file.format"
SEVERAL_FORMATS = "hoodie.table.multiple.base.file.formats.enable"
TABLE_FORMAT = "hoodie.table.format"
BOOTSTRAP_PATH = "hoodie.bootstrap.base.path"
BOOTSTRAP_INDEX_ENABLE = "hoodie.bootstrap.index.enable"
BOOTSTRAP_INDEX_CLASS = "hoodie.bootstrap.index.class"
BOOTSTRAP_INDEX_TYPE = "hoodie.bootstrap.index.type"
METADATA_PARTITIONS = "hoodie.table.metadata.partitions"
METADATA_PARTITIONS_INFLIGHT = "hoodie.table.metadata.partitions.inflight"
CDC_ENABLED = "hoodie.table.cdc.enabled"
CDC_MODE = "hoodie.table.cdc.supplemental.logging.mode"

_KEYGEN = "org.apache.hudi.keygen."
_SQL = "org.apache.spark.sql.hudi.command."
KEY_GENERATOR_CLASSES = {
    "SIMPLE": _KEYGEN + "SimpleKeyGenerator",
    "SIMPLE_AVRO": _KEYGEN + "SimpleAvroKeyGenerator",
    "COMPLEX": _KEYGEN + "ComplexKeyGenerator",
    "COMPLEX_AVRO": _KEYGEN + "ComplexAvroKeyGenerator",
    "TIMESTAMP": _KEYGEN + "TimestampBasedKeyGenerator",
    "TIMESTAMP_AVRO": _KEYGEN + "TimestampBasedAvroKeyGenerator",
    "CUSTOM": _KEYGEN + "CustomKeyGenerator",
    "CUSTOM_AVRO": _KEYGEN + "CustomAvroKeyGenerator",
    "NON_PARTITION": _KEYGEN + "NonpartitionedKeyGenerator",
    "NON_PARTITION_AVRO": _KEYGEN + "NonpartitionedAvroKeyGenerator",
    "GLOBAL_DELETE": _KEYGEN + "GlobalDeleteKeyGenerator",
    "GLOBAL_DELETE_AVRO": _KEYGEN + "GlobalAvroDeleteKeyGenerator",
    "AUTO_RECORD": _KEYGEN + "AutoRecordGenWrapperKeyGenerator",
    "AUTO_RECORD_AVRO": _KEYGEN + "AutoRecordGenWrapperAvroKeyGenerator",
    "HOODIE_TABLE_METADATA": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
    "SPARK_SQL": _SQL + "SqlKeyGenerator",
    "SPARK_SQL_UUID": _SQL + "UuidKeyGenerator",
    "SPARK_SQL_MERGE_INTO": _SQL + "MergeIntoKeyGenerator",
}
"""Class of each key generator type (`KeyGeneratorType`, Hudi 1.2.0)."""

KEY_GENERATOR_TYPES = {
    name: generator_type for generator_type, name in KEY_GENERATOR_CLASSES.items()
}
"""Type of each key generator class."""


PARTITION_SPEC = "hoodie.datasource.write.partitionpath.field"
"""Option with the types of a custom key generator's fields, which version 6 does not store."""


PENDING_OPERATION = "pyhudi.unfinished"
"""Property of a pending operation. It does not begin with `hoodie.`, so no Hudi release reads
it."""

CONSTRAINTS = "pyhudi.constraints"
"""Property with the conditions that rows must satisfy, by name, as JSON."""

GENERATED_COLUMNS = "pyhudi.generated.columns"
"""Property with the SQL expressions of generated columns, by name, as JSON."""

KEYS = "pyhudi.keys"
"""Also in the extra metadata of commits: what is known of the table's keys after the commit.

In the table's properties: a commit's instant, and what was counted after it.
"""
