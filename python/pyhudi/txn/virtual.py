"""Virtual keys: tables whose rows have no stored key (`hoodie.populate.meta.fields=false`).

Their files have Hudi's own columns, all null, and no bloom filter; a record is known by its key
columns. What Hudi permits there is less than elsewhere (`HoodieTableMetaClient.
validateTableProperties`, `HoodieIndexUtils`, Hudi 1.2.0), and pyhudi refuses some more by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi import _native
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.index.options import BUCKET, INDEX_TYPE, SIMPLE
from pyhudi.keys import COMPLEX, NON_PARTITION, supported_generator
from pyhudi.keys import SIMPLE as SIMPLE_KEYS
from pyhudi.metadata.table import BLOOM_FILTERS, RECORD_INDEX

if TYPE_CHECKING:
    import pyarrow as pa

    from pyhudi.config import TableConfig
    from pyhudi.index.choice import IndexChoice
    from pyhudi.schema import TableSchema
    from pyhudi.txn.options import WriteOptions

_WITH = "hoodie.populate.meta.fields is false"
_HINT = "Write to this table with Apache Hudi."


def virtual_keys(config: TableConfig) -> tuple[str, ...]:
    """The columns that make the key of rows without a stored one; none in other tables."""
    return () if config.populate_meta_fields else config.record_key_fields


def check_virtual_keys(config: TableConfig) -> None:
    """Refuses a table without stored keys that pyhudi cannot write to.

    Raises `UnsupportedTableFeature`.
    """
    if config.populate_meta_fields:
        return
    keys, generator = config.record_key_fields, supported_generator(config)
    stored = [name for name in (RECORD_INDEX, BLOOM_FILTERS) if name in config.metadata_partitions]
    problem = ""
    if not keys:
        problem = "hoodie.table.recordkey.fields is not set"
    elif generator not in (SIMPLE_KEYS, COMPLEX, NON_PARTITION):
        problem = f"the key generator is {generator}"
    elif generator == COMPLEX and len(keys) == 1:
        # Whether a delete's key is `k` or `id:k` could not be told from what is stored.
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
        msg = f"{_WITH} and {problem}"
        raise UnsupportedTableFeature(msg, hint=_HINT)


def check_virtual_writes(config: TableConfig, index: IndexChoice, options: WriteOptions) -> None:
    """Refuses ways of writing that need stored keys. Raises `UnsupportedTableFeature`."""
    if config.populate_meta_fields:
        return
    if index.kind not in (SIMPLE, BUCKET) or index.consistent:
        msg = f"{_WITH}: {INDEX_TYPE} {index.kind} needs stored keys"
        raise UnsupportedTableFeature(msg, hint="Use SIMPLE, or BUCKET with the engine SIMPLE.")
    if config.is_merge_on_read and options.log_blocks == "hfile":
        msg = f"{_WITH}: hoodie.logfile.data.block.format hfile needs stored keys"
        raise UnsupportedTableFeature(msg, hint="Write Avro or Parquet blocks.")


def stored_schema(schema: TableSchema, config: TableConfig) -> pa.Schema:
    """The table's columns as its files hold them, Hudi's own first, null or not."""
    if config.populate_meta_fields:
        return schema.arrow
    return _native.arrow_schema(_native.with_meta_fields(schema.avro))
