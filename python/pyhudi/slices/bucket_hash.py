"""Hashing of record keys under a bucket index. The mapping of hashes to file groups is elsewhere.

Only the writer's options determine the hashed fields. The methods of Hudi's releases differ for
few keys. Sources: `BucketIdentifier`, `ConsistentBucketIdentifier` (Hudi 0.15.0, 1.2.0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi import _native
from pyhudi.config.index_options import BUCKET_FIELDS, IndexOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.config.table_version import table_version
from pyhudi.config.version_properties import INITIAL_VERSION, VERSIONS
from pyhudi.errors import ConfigError

_MAX_HASH = 2**31 - 1
_NEVER_SPLIT = [str(code) for code in VERSIONS if not table_version(code).splits_bucket_keys]


@dataclass(frozen=True)
class KeyHash:
    """One hash method."""

    fields: tuple[str, ...]
    scan: bool
    """Field values are parsed from keys as in Hudi 1.x (else: as in 0.15.0)."""

    def buckets(self, keys: pa.Array[Any], count: int) -> pa.Array[Any]:
        """Return the bucket number of each key."""
        return _native.bucket_numbers(keys, self.fields, count, scan=self.scan)

    def hashes(self, keys: pa.Array[Any]) -> pa.Array[Any]:
        """Return a hash of each key, independent of the number of buckets."""
        return self.buckets(keys, _MAX_HASH)

    def consistent_hashes(self, keys: pa.Array[Any]) -> pa.Array[Any]:
        """Return the consistent hash of each key."""
        return _native.consistent_hashes(keys, self.fields, scan=self.scan)


def key_hashes(config: TableConfig, options: IndexOptions) -> tuple[KeyHash, KeyHash]:
    """Return both methods, the one of the table version's release first."""
    fields = hash_fields(config, options)
    first = not config.version.splits_bucket_keys
    return KeyHash(fields, first), KeyHash(fields, not first)


def hash_fields(config: TableConfig, options: IndexOptions) -> tuple[str, ...]:
    """Return the hashed key fields. They have to be named: a plain key may look like fields."""
    return options.bucket_fields or tuple(config.record_key_fields)


def check_hash_fields(config: TableConfig, options: IndexOptions) -> None:
    """Raise `ConfigError` if the options name a field that is not part of the key."""
    unknown = [name for name in options.bucket_fields if name not in config.record_key_fields]
    if unknown:
        raise ConfigError(f"{BUCKET_FIELDS} names {unknown[0]!r}, which is not a record key field")


def may_be_split(config: TableConfig) -> bool:
    """Return whether Hudi 0.15 may have assigned rows: a comma in a field changes its hashes.

    The buckets stay when the table's version is upgraded.
    """
    created = config.properties.get(INITIAL_VERSION)
    return config.version.splits_bucket_keys or created not in _NEVER_SPLIT
