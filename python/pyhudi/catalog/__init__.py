"""Catalogs: tables by name in a Hive metastore or AWS Glue, kept up to date as Hudi's sync does.

`protocol` says what a catalog is, `hive` and `glue` are two; `columns` and `registered` say what a
table is there, `partitions` which it has, `sync` brings a catalog up to date.
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
