"""Catalogs: tables by name in a Hive metastore or AWS Glue, updated as Hudi's sync does.

`protocol` defines a catalog, `hive` and `glue` implement it; `columns` and `registration` define a
table's entry, `partitions` its partitions, and `sync` updates a catalog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyhudi.catalog.glue import GlueCatalog
    from pyhudi.catalog.hive import HiveCatalog
    from pyhudi.catalog.protocol import Catalog, CatalogPartition, CatalogTable, Column
    from pyhudi.catalog.sync import SyncResult

__all__ = [
    "Catalog",
    "CatalogPartition",
    "CatalogTable",
    "Column",
    "GlueCatalog",
    "HiveCatalog",
    "SyncResult",
]

_HOMES = {
    "Catalog": "protocol",
    "CatalogPartition": "protocol",
    "CatalogTable": "protocol",
    "Column": "protocol",
    "GlueCatalog": "glue",
    "HiveCatalog": "hive",
    "SyncResult": "sync",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pyhudi.catalog' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only for this

    return getattr(import_module(f"pyhudi.catalog.{_HOMES[name]}"), name)
