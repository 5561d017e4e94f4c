"""The options of partitions that expire, read once, with Hudi's names (`HoodieTTLConfig`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.option_parsing import parse_bool, parse_enum, parse_int
from pyhudi.errors import UnsupportedTableFeature

INLINE = "hoodie.partition.ttl.inline"
BY = "hoodie.partition.ttl.management.strategy.type"
CLASS = "hoodie.partition.ttl.strategy.class"
DAYS = "hoodie.partition.ttl.strategy.days.retain"
SELECTED = "hoodie.partition.ttl.strategy.partition.selected"
MOST = "hoodie.partition.ttl.strategy.max.delete.partitions"
TTL_OPTIONS = (INLINE, BY, CLASS, DAYS, SELECTED, MOST)
"""All options that `TtlOptions.of` reads."""

BY_TIME = "keep_by_time"
BY_CREATION = "keep_by_creation_time"


@dataclass(frozen=True)
class TtlOptions:
    """Which partitions are too old."""

    inline: bool = False
    """Expire partitions after each commit."""
    by_creation: bool = False
    """Use the time of a partition's creation, else that of its last write."""
    days: int = 0
    """Maximum age; 0 for no limit."""
    selected: tuple[str, ...] = ()
    """Paths of the partitions to check; empty for all."""
    most: int = 1000
    """Maximum number of partitions that one run drops."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> TtlOptions:
        """Read the options from `hoodie.…` names.

        Raises `ConfigError` for an invalid value, `UnsupportedTableFeature` for a custom strategy.
        """
        if options.get(CLASS):
            msg = f"{CLASS} is {options[CLASS]}, which pyhudi does not support"
            raise UnsupportedTableFeature(
                msg, hint=f"{BY} is KEEP_BY_TIME or KEEP_BY_CREATION_TIME."
            )
        days = options.get(DAYS, "0").strip()
        selected = options.get(SELECTED, "").split(",")
        return cls(
            parse_bool(options, INLINE, default=cls.inline),
            parse_enum(options, BY, (BY_TIME, BY_CREATION), BY_TIME) == BY_CREATION,
            0 if days == "-1" else parse_int({DAYS: days}, DAYS, default=0, least=0),
            tuple(path.strip() for path in selected if path.strip()),
            parse_int(options, MOST, default=cls.most),
        )
