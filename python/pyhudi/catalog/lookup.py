"""Where a table lies that is asked for by its name in a catalog."""

from __future__ import annotations

from pyhudi.catalog.protocol import Catalog
from pyhudi.catalog.registration import (
    INPUT_FORMAT,
    PROVIDER,
    READ_OPTIMIZED,
    REALTIME_INPUT_FORMAT,
)
from pyhudi.errors import ConfigError, TableNotFound
from pyhudi.storage.credentials import mask_credentials

_SUFFIX = "_ro"


def location_in(catalog: Catalog, name: str) -> str:
    """The location of `database.table`, or of `table` in the database "default".

    Raises `TableNotFound` where the catalog has no table of Hudi's by that name, and `ConfigError`
    for one whose readers see base files alone: a handle would show other rows.
    """
    database, _, table = name.rpartition(".")
    found = catalog.get_table(database or "default", table)
    if found is None:
        raise TableNotFound(f"{catalog!r} has no table {name!r}")
    if (
        found.parameters.get(PROVIDER, "").lower() != "hudi"
        and found.input_format not in (INPUT_FORMAT, REALTIME_INPUT_FORMAT)
    ) or not found.location:
        raise TableNotFound(f"{name!r} in {catalog!r} is not a Hudi table")
    if found.serde_parameters.get(READ_OPTIMIZED, "").lower() == "true":
        raise ConfigError(
            f"{name!r} is a read-optimized view, without the records in log files",
            hint=f"Open {name.removesuffix(_SUFFIX)!r} and read by scan(read_optimized=True), or "
            f"open {mask_credentials(found.location)}.",
        )
    # Hadoop writes a local file's URI with one slash.
    if found.location.startswith("file:") and not found.location.startswith("file://"):
        return found.location.removeprefix("file:")
    return found.location
