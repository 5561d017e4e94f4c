"""The options of partitions that expire, read once, with Hudi's names (`HoodieTTLConfig`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.option_parsing import (
    OptionGroup,
    check_only,
    custom,
    flag,
    integer,
    name_list,
    option,
    parse_enum,
    parse_int,
    refusal,
)

BY = "hoodie.partition.ttl.management.strategy.type"
CLASS = "hoodie.partition.ttl.strategy.class"
DAYS = "hoodie.partition.ttl.strategy.days.retain"
BY_TIME = "keep_by_time"
BY_CREATION = "keep_by_creation_time"


def _by_creation(options: Mapping[str, str]) -> bool:
    return parse_enum(options, BY, (BY_TIME, BY_CREATION), BY_TIME) == BY_CREATION


def _days(options: Mapping[str, str]) -> int:
    forever = options.get(DAYS, "").strip() == "-1"
    return 0 if forever else parse_int(options, DAYS, default=0, least=0)


def _check_class(options: Mapping[str, str]) -> None:
    if options.get(CLASS):
        raise refusal(options, CLASS, f"{BY} is KEEP_BY_TIME or KEEP_BY_CREATION_TIME.")


@dataclass(frozen=True)
class TtlOptions(OptionGroup):
    """Which partitions are too old."""

    inline: bool = flag(
        "hoodie.partition.ttl.inline", "drop expired partitions after commits", default=False
    )
    by_creation: bool = custom(
        _by_creation,
        option(
            BY,
            "the age begins at a partition's last write; `KEEP_BY_CREATION_TIME`: at its creation",
            default="KEEP_BY_TIME",
        ),
    )
    days: int = custom(_days, option(DAYS, "days to retain; 0: forever", default=0))
    selected: tuple[str, ...] = name_list(
        "hoodie.partition.ttl.strategy.partition.selected",
        "partition paths",
        shown="all partitions",
    )
    most: int = integer(
        "hoodie.partition.ttl.strategy.max.delete.partitions", "maximum per commit", default=1000
    )
    strategy: None = check_only(_check_class, option(CLASS, "a class raises an error"))
