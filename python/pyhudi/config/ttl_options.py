"""The options of partitions that expire, read once, as Hudi names them (`HoodieTTLConfig`)."""

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
"""Every option that `TtlOptions.of` reads."""

BY_TIME = "keep_by_time"
BY_CREATION = "keep_by_creation_time"


@dataclass(frozen=True)
class TtlOptions:
    """Which partitions are too old."""

    inline: bool = False
    """Looked at after each commit."""
    by_creation: bool = False
    """By when they were made, else by when they were written to last."""
    days: int = 0
    """Older ones go; 0 for none."""
    selected: tuple[str, ...] = ()
    """Paths of those that are looked at; none for all."""
    most: int = 1000
    """Partitions that go at once."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> TtlOptions:
        """From `hoodie.…` options.

        Raises `ConfigError` for a value that is none, `UnsupportedTableFeature` for a strategy of
        the user's own.
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
