"""Catalogs: tables by name in a Hive metastore, AWS Glue or Apache Polaris.

`protocol` defines a catalog; `hive`, `glue` and `polaris` implement it. `registration` defines an
entry of a table, and `table_sync` updates the entry and its partitions, as Hudi's sync does.
`config_file` finds configured catalogs, and `named_table` is a table by its name in one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.lazy_names import lazy_names

if TYPE_CHECKING:
    from pyhudi.catalog.glue import GlueCatalog
    from pyhudi.catalog.hive import HiveCatalog
    from pyhudi.catalog.polaris import PolarisCatalog
    from pyhudi.catalog.protocol import (
        Catalog,
        CatalogPartition,
        CatalogTable,
        Column,
        NamespaceCatalog,
    )
    from pyhudi.catalog.table_sync import SyncResult

__all__ = [
    "Catalog",
    "CatalogPartition",
    "CatalogTable",
    "Column",
    "GlueCatalog",
    "HiveCatalog",
    "NamespaceCatalog",
    "PolarisCatalog",
    "SyncResult",
]

_MODULES = {
    "Catalog": "protocol",
    "CatalogPartition": "protocol",
    "CatalogTable": "protocol",
    "Column": "protocol",
    "GlueCatalog": "glue",
    "HiveCatalog": "hive",
    "NamespaceCatalog": "protocol",
    "PolarisCatalog": "polaris",
    "SyncResult": "table_sync",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)
