"""The catalogs that a handle's options name, and the sync with all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING

from pyhudi.catalog.catalog_settings import settings_from_json
from pyhudi.catalog.protocol import Catalog, NamespaceCatalog
from pyhudi.catalog.table_sync import SyncResult, sum_results, sync_table
from pyhudi.config.catalog_sync_options import URIS, SyncOptions
from pyhudi.config.metastore_options import MetastoreOptions
from pyhudi.errors import ConfigError
from pyhudi.table.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyhudi.catalog.glue import GlueCatalog
    from pyhudi.catalog.hive import HiveCatalog


def sync_by_options(table: TableSnapshot, options: SyncOptions) -> SyncResult:
    """Sync a table with the catalogs that the options name, or with that of a handle's name.

    Raises what `sync_table` raises, and `ConfigError` for a metastore without an address.
    """
    with ExitStack() as connections:
        catalogs: list[NamespaceCatalog] = (
            [settings_from_json(options.configured).connect(options)]
            if options.configured
            else [
                _hive(options, table.options) if catalog_type == "hive" else _glue(options)
                for catalog_type in options.catalogs
            ]
        )
        for catalog in catalogs:
            connections.callback(catalog.close)
        return sync_all(table, catalogs, options)


def sync_all(table: TableSnapshot, catalogs: Sequence[Catalog], options: SyncOptions) -> SyncResult:
    """Sync a table with each of the catalogs; the result covers all of them."""
    return sum_results([sync_table(table, catalog, options) for catalog in catalogs])


def hive_catalog(uris: str, options: Mapping[str, str]) -> HiveCatalog:
    """Return the catalog of a metastore, to which it connects as the options of a handle say."""
    from pyhudi.catalog.hive import HiveCatalog  # noqa: PLC0415 - only for a metastore

    return HiveCatalog(uris, **asdict(MetastoreOptions.of(options)))


def _hive(options: SyncOptions, handle_options: Mapping[str, str]) -> HiveCatalog:
    if not options.uris:
        raise ConfigError(
            f"the sync with a Hive metastore needs the option {URIS}",
            hint="No hive-site.xml is read. Or give sync a catalog.",
        )
    return hive_catalog(options.uris, handle_options)


def _glue(options: SyncOptions) -> GlueCatalog:
    from pyhudi.catalog.glue import GlueCatalog  # noqa: PLC0415 - only for Glue

    return GlueCatalog(metadata_listing=options.metadata_listing, skip_archive=options.skip_archive)
