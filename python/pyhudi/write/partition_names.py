"""Partition paths that file systems have and Apache Hudi does not: no rows are added there.

Tables that have such a partition stay readable, and its rows can be changed.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyhudi.config.metadata_names import ALL_PARTITIONS
from pyhudi.config.property_names import URL_ENCODE
from pyhudi.errors import SchemaMismatch


def check_names(paths: Iterable[str]) -> None:
    """Raises `SchemaMismatch` for a partition that Hudi cannot have."""
    for path in paths:
        if path == ALL_PARTITIONS:
            msg = f"the partition {path!r} has the name of the metadata table's list of partitions"
            raise SchemaMismatch(msg, hint="Have another value there.")
        # `StoragePath(StoragePath, String)` takes what is before it for a URI's scheme (1.2.0).
        if ":" in path.split("/")[0]:
            msg = f"Apache Hudi cannot read the partition {path!r}, whose first folder has a colon"
            raise SchemaMismatch(msg, hint=f"Make the table with {URL_ENCODE}=true.")
