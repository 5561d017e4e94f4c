"""Which golden reads pyhudi refuses, and the property or feature that its error names.

A key is a table's name (every read of it) or `<table>-<kind>`. A read that is refused without
being listed fails the tests, and so does a listed one that is read.
"""

from __future__ import annotations

_SCHEMA_ON_READ = "hoodie.schema.on.read.enable"

REFUSED: dict[str, str] = {
    "v6_cow_schema_on_read": _SCHEMA_ON_READ,
    "v6_mor_schema_on_read": _SCHEMA_ON_READ,
    "v9_cow_schema_on_read": _SCHEMA_ON_READ,
    "v9_mor_schema_on_read": _SCHEMA_ON_READ,
}


def refusal(table: str, kind: str) -> str | None:
    """What the error must name, None for a read that must succeed."""
    return REFUSED.get(f"{table}-{kind}", REFUSED.get(table))
