"""Partition paths that Apache Hudi does not support: no rows are added there.

A table with one of these partitions stays readable, and its rows can be changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyhudi.config.metadata_names import ALL_PARTITIONS
from pyhudi.config.property_names import URL_ENCODE
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import SchemaMismatch

_ESCAPED = re.compile("%[0-9A-Fa-f]{2}")


def check_names(paths: Iterable[str], config: TableConfig) -> None:
    """Raise `SchemaMismatch` for a partition path that Hudi does not support."""
    for path in paths:
        if path == ALL_PARTITIONS:
            msg = f"the partition {path!r} has the name of the metadata table's list of partitions"
            raise SchemaMismatch(msg, hint="Use another partition value.")
        fault = _fault(path, config)
        if fault:
            msg = f"Apache Hudi cannot read the partition {path!r}, {fault}"
            raise SchemaMismatch(msg, hint=f"Create the table with {URL_ENCODE}=true.")


def _fault(path: str, config: TableConfig) -> str:
    """Return what Hudi misreads in the path; "" if it reads the path's values.

    `HoodieSparkUtils.parsePartitionPath` (1.2.0) splits a path with as many directories as the
    table has partition columns.
    """
    folders = path.split("/")
    # `StoragePath(StoragePath, String)` takes the part before it for a URI's scheme.
    if ":" in folders[0]:
        return "whose first directory has a colon"
    if config.url_encode:
        return ""
    fields = config.partition_fields
    is_split = len(folders) == len(fields)
    if is_split and not config.hive_style and "=" in path:
        return "in which it takes the part before the equals sign for a column name"
    if len(fields) == 1 and not config.hive_style and path.startswith(f"{fields[0]}="):
        return f"from which it strips {fields[0]}="
    if is_split and _ESCAPED.search(path):
        return "in which it takes a percent sign and two digits for another character"
    return ""
