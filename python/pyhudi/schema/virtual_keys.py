"""Virtual keys: tables whose rows have no stored key (`hoodie.populate.meta.fields=false`).

Their files have the meta columns, all null, and no bloom filter; key columns identify a record.
Hudi supports less for them (`HoodieTableMetaClient.validateTableProperties`, `HoodieIndexUtils`,
Hudi 1.2.0), and pyhudi supports a little less than Hudi.
"""

from __future__ import annotations

import pyarrow as pa

from pyhudi import _native
from pyhudi.config.metadata_names import BLOOM_FILTERS, RECORD_INDEX
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.input.type_tests import is_text
from pyhudi.schema.key_generator import COMPLEX, NON_PARTITION, check_key_generator
from pyhudi.schema.key_generator import SIMPLE as SIMPLE_KEYS
from pyhudi.schema.table_schema import TableSchema, field_at

VIRTUAL = "hoodie.populate.meta.fields is false"
_HINT = "Write to this table with Apache Hudi."


def virtual_keys(config: TableConfig) -> tuple[str, ...]:
    """Return the key columns of a table without stored keys; empty for other tables."""
    return () if config.populate_meta_fields else config.record_key_fields


def check_virtual_keys(config: TableConfig) -> None:
    """Refuse a table without stored keys that pyhudi cannot write to.

    Raises `UnsupportedTableFeature`.
    """
    if config.populate_meta_fields:
        return
    keys, generator = config.record_key_fields, check_key_generator(config)
    stored = [name for name in (RECORD_INDEX, BLOOM_FILTERS) if name in config.metadata_partitions]
    problem = ""
    if not keys:
        problem = "hoodie.table.recordkey.fields is not set"
    elif generator not in (SIMPLE_KEYS, COMPLEX, NON_PARTITION):
        problem = f"the key generator is {generator}"
    elif generator == COMPLEX and len(keys) == 1:
        # Stored rows do not show whether a delete's key is `k` or `id:k`.
        problem = "the key generator is COMPLEX with one key field"
    elif config.is_merge_on_read and len(keys) > config.version.virtual_log_keys:
        problem = (
            f"hoodie.table.recordkey.fields is {','.join(keys)}: Hudi of table version "
            f"{config.version.code} does not read log files of such a table"
        )
    elif stored:
        problem = f"hoodie.table.metadata.partitions has {stored[0]}"
    elif config.cdc_enabled:
        problem = "hoodie.table.cdc.enabled is true"
    if problem:
        raise UnsupportedTableFeature(f"{VIRTUAL} and {problem}", hint=_HINT)


def check_virtual_types(config: TableConfig, schema: pa.Schema) -> None:
    """Refuse key columns by which Hudi cannot merge log files. Raises as `check_virtual_keys`."""
    if not config.is_merge_on_read or config.version.virtual_logs_of_any_type:
        return
    for name in virtual_keys(config):
        field = field_at(schema, name)
        if field is not None and not is_text(field.type):
            msg = (
                f"{VIRTUAL} and the record key field {name} is {field.type}: Hudi of table version "
                f"{config.version.code} reads log files of such a table by string keys only"
            )
            raise UnsupportedTableFeature(msg, hint=_HINT)


def file_schema(schema: TableSchema, config: TableConfig) -> pa.Schema:
    """Return the table's columns as its files have them, meta columns first, null or not."""
    if config.populate_meta_fields:
        return schema.arrow
    return _native.arrow_schema(_native.with_meta_fields(schema.avro))
