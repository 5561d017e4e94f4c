"""Which metadata tables pyhudi keeps up to date, found out before anything is written."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.config.metadata_names import FILES, not_kept
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.metadata.definitions import index_definitions
from pyhudi.metadata.kinds.protocol import Known
from pyhudi.metadata.kinds.registry import kind_of, kinds_of
from pyhudi.storage.storage import Storage

_PARTITIONS = "hoodie.table.metadata.partitions"
_INFLIGHT = "hoodie.table.metadata.partitions.inflight"


def check_partitions(config: TableConfig) -> None:
    """Raises `UnsupportedTableFeature` for a partition that pyhudi cannot maintain."""
    check_not_building(config)
    listed = config.metadata_partitions
    for name in listed:
        kind = kind_of(name)
        if kind is None:
            raise not_kept(name, "pyhudi cannot keep this index up to date")
        if kind.needs is not None and kind.needs not in listed:
            raise not_kept(name, f"without {kind.needs}")
    if listed and FILES not in listed:
        raise not_kept(",".join(listed), f"without {FILES}")


def check_not_building(config: TableConfig) -> None:
    """Raises `UnsupportedTableFeature` while another writer builds an index."""
    building = config.properties.get(_INFLIGHT, "").strip()
    if building:
        msg = f"{_INFLIGHT} is {building}: another writer is building an index"
        raise UnsupportedTableFeature(msg, hint="Complete the indexing with Apache Hudi first.")


def check_replaceable(config: TableConfig) -> None:
    """Raises `UnsupportedTableFeature` where file groups cannot be replaced."""
    for kind, name in kinds_of(config.metadata_partitions):
        if kind.bars_replacing:
            msg = f"{_PARTITIONS} has {name}: file groups are not replaced under it"
            raise UnsupportedTableFeature(msg, hint="Drop the index first.")


def check_indexes(storage: Storage, config: TableConfig, schema: pa.Schema) -> None:
    """The part of `check_partitions` that index definitions decide.

    schema: the table's, with meta fields.
    """
    if not config.metadata_partitions:
        return
    known = Known(config, index_definitions(storage, config), schema)
    for name in config.metadata_partitions:
        check_index(name, known)


def check_index(name: str, table: Known) -> None:
    """Raises `UnsupportedTableFeature` for a partition that cannot be made or kept."""
    kind = kind_of(name)
    reason = None if kind is None else kind.refusal(name, table)
    if reason:
        raise not_kept(name, reason)
