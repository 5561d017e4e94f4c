"""Which record key and partition path a row gets: the rules of a table's key generator.

The strings themselves are made by the Rust core, for whole columns. What is decided here is which
generator a table has, whether pyhudi supports it, and which form its keys have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi import _native
from pyhudi.errors import UnsupportedTableFeature

if TYPE_CHECKING:
    from pyhudi.config import TableConfig

RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"

META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    RECORD_KEY,
    PARTITION_PATH,
    "_hoodie_file_name",
)

SIMPLE = "SIMPLE"
COMPLEX = "COMPLEX"
NON_PARTITION = "NON_PARTITION"


_PLAIN_SINGLE_COMPLEX_KEYS = frozenset({6, 8})
"""Table versions whose first writer (0.15.0, 1.0.2) keeps a single complex key unprefixed."""


@dataclass(frozen=True)
class KeySpec:
    """How the rows of one table get their keys."""

    generator: str
    """SIMPLE, COMPLEX or NON_PARTITION."""
    key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    key_prefixed: bool
    """The key is `field:value,…` (else the plain value of the one field)."""
    hive_style: bool
    url_encode: bool


def supported_generator(config: TableConfig) -> str:
    """The table's key generator, without a trailing `_AVRO`.

    Raises `UnsupportedTableFeature`, naming the property, for a generator that pyhudi does not
    write with, and for a table without record key fields (generated keys).
    """
    if not config.record_key_fields:
        msg = "hoodie.table.recordkey.fields is not set: pyhudi does not generate record keys"
        raise UnsupportedTableFeature(msg, hint="Write to this table with Apache Hudi.")
    generator = config.key_generator.removesuffix("_AVRO")
    fits = {
        SIMPLE: len(config.record_key_fields) == 1 and len(config.partition_fields) == 1,
        COMPLEX: True,
        NON_PARTITION: not config.partition_fields,
    }
    if not fits.get(generator, False):
        msg = (
            f"{_generator_property(config)} is {config.key_generator} with the record key fields "
            f"{', '.join(config.record_key_fields)} and the partition fields "
            f"{', '.join(config.partition_fields) or '(none)'}: pyhudi does not write with that"
        )
        raise UnsupportedTableFeature(msg, hint="Write to this table with Apache Hudi.")
    return generator


def _generator_property(config: TableConfig) -> str:
    named_by_class = "hoodie.table.keygenerator.class"
    return (
        named_by_class if named_by_class in config.properties else "hoodie.table.keygenerator.type"
    )


def key_spec(config: TableConfig, *, existing_key: str | None) -> KeySpec:
    """The rules of a table that has, or has not yet (None), a row with `existing_key`."""
    generator = supported_generator(config)
    return KeySpec(
        generator=generator,
        key_fields=tuple(config.record_key_fields),
        partition_fields=tuple(config.partition_fields),
        key_prefixed=_prefixed(config, generator, existing_key),
        hive_style=config.hive_style,
        url_encode=config.url_encode,
    )


def needs_existing_key(config: TableConfig) -> bool:
    """Whether the form of the keys can only be told from a key that is already in the table.

    A complex generator with one key field writes `id:k1` or `k1`, depending on the Hudi release
    that wrote (0.14.1 to 1.0.2: `k1`).
    """
    return supported_generator(config) == COMPLEX and len(config.record_key_fields) == 1


def _prefixed(config: TableConfig, generator: str, existing_key: str | None) -> bool:
    if len(config.record_key_fields) > 1:
        return True
    if generator != COMPLEX:
        return False
    if existing_key is None:
        return config.version.code not in _PLAIN_SINGLE_COMPLEX_KEYS
    return existing_key.startswith(f"{config.record_key_fields[0]}:")


def add_keys(rows: pa.Table, spec: KeySpec) -> pa.Table:
    """The rows with record key and partition path in front.

    Raises `SchemaMismatch` for a null or empty key.
    """
    return _native.add_keys(
        rows,
        key_fields=spec.key_fields,
        key_prefixed=spec.key_prefixed,
        partition_fields=spec.partition_fields,
        hive_style=spec.hive_style,
        url_encode=spec.url_encode,
    )
