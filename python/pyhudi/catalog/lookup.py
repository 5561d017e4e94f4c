"""Finds the location of a table by its name in a catalog."""

from __future__ import annotations

from pyhudi.catalog.protocol import Catalog
from pyhudi.catalog.registration import (
    INPUT_FORMAT,
    PROVIDER,
    READ_OPTIMIZED,
    REALTIME_INPUT_FORMAT,
)
from pyhudi.errors import ConfigError, TableNotFound
from pyhudi.storage.options import mask_credentials

_SUFFIX = "_ro"


def location_in(catalog: Catalog, name: str) -> str:
    """Return the location of `database.table`, or of `table` in the database "default".

    Raises `TableNotFound` if the catalog has no Hudi table of this name, and `ConfigError` for a
    table whose readers see base files only: a handle would read other rows.
    """
    database, _, table = name.rpartition(".")
    entry = catalog.get_table(database or "default", table)
    if entry is None:
        raise TableNotFound(f"{catalog!r} has no table {name!r}")
    if (
        entry.parameters.get(PROVIDER, "").lower() != "hudi"
        and entry.input_format not in (INPUT_FORMAT, REALTIME_INPUT_FORMAT)
    ) or not entry.location:
        raise TableNotFound(f"{name!r} in {catalog!r} is not a Hudi table")
    if entry.serde_parameters.get(READ_OPTIMIZED, "").lower() == "true":
        raise ConfigError(
            f"{name!r} is a read-optimized view, without the records in log files",
            hint=f"Open {name.removesuffix(_SUFFIX)!r} and read by scan(read_optimized=True), or "
            f"open {mask_credentials(entry.location)}.",
        )
    # Hadoop writes a local file's URI with one slash.
    if entry.location.startswith("file:") and not entry.location.startswith("file://"):
        return entry.location.removeprefix("file:")
    return entry.location
