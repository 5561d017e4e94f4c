"""The options of partitions that expire, read once, with Hudi's names (`HoodieTTLConfig`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.option_parsing import (
    OptionGroup,
    checked,
    flag,
    integer,
    name_list,
    option,
    parse_enum,
    parse_int,
    parsed,
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
        "hoodie.partition.ttl.inline",
        default=False,
        meaning="drop expired partitions after commits",
    )
    by_creation: bool = parsed(
        _by_creation,
        option(
            BY,
            default="KEEP_BY_TIME",
            meaning="the age begins at a partition's last write; `KEEP_BY_CREATION_TIME`: at its "
            "creation",
        ),
        default=False,
    )
    days: int = parsed(
        _days, option(DAYS, default=0, meaning="days to retain; 0: forever"), default=0
    )
    selected: tuple[str, ...] = name_list(
        "hoodie.partition.ttl.strategy.partition.selected",
        shown="all partitions",
        meaning="partition paths",
    )
    most: int = integer(
        "hoodie.partition.ttl.strategy.max.delete.partitions",
        default=1000,
        meaning="maximum per commit",
    )
    strategy: None = checked(_check_class, option(CLASS, meaning="a class raises an error"))
