"""The option pages name every option that a handle or a new table takes, with its default."""

from __future__ import annotations

import re
from pathlib import Path

from pyhudi.config.file_names import ORC_EXTENSION
from pyhudi.config.options import CREATE_OPTIONS, GROUPS, KNOWN_OPTIONS
from pyhudi.config.write_options import WriteOptions

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGES = ("options.md", "service-options.md")
ROW = re.compile(r"^\| (?P<names>`[^|]+`) \| (?P<default>[^|]+) \|", re.MULTILINE)
MEANT_BY_PRESENCE = {
    "hoodie.metadata.enable",
    "hoodie.metadata.record.level.index.enable",
    "hoodie.index.bloom.num_entries",
    "hoodie.clean.hours.retained",
    "hoodie.cleaner.hours.retained",
    "hoodie.clean.fileversions.retained",
    "hoodie.cleaner.fileversions.retained",
    "hoodie.compact.inline",
    "hoodie.compact.schedule.inline",
    "hoodie.write.lock.provider",
    "hoodie.layout.optimize.strategy",
    "hoodie.time.generator.max_expected_clock_skew_ms",
}
"""Options whose default value, if it is set, means something else than no value."""


def rows() -> list[tuple[str, str]]:
    """The options of the pages, each with what the page shows as its default."""
    pairs: list[tuple[str, str]] = []
    for page in PAGES:
        for match in ROW.finditer((REFERENCE / page).read_text(encoding="utf-8")):
            names = re.findall(r"`([^`]+)`", match["names"])
            pairs += [(name, match["default"]) for name in names]
    return pairs


def parse_all(options: dict[str, str]) -> list[object]:
    """What each group makes of options, for Parquet and for ORC."""
    return [*(group.of(options) for group in GROUPS), WriteOptions.of(options, ORC_EXTENSION)]


def test_options_pages_name_every_option_once() -> None:
    names = [name for name, _ in rows()]
    assert sorted(names) == sorted({*KNOWN_OPTIONS, *CREATE_OPTIONS})


def test_options_pages_show_the_defaults() -> None:
    without = parse_all({})
    checked = 0
    for name, default in rows():
        if default == "\N{EN DASH}" or " " in default or name in MEANT_BY_PRESENCE:
            continue
        assert parse_all({name: default}) == without, (name, default)
        checked += 1
    assert checked > 80
    assert dict(rows()).keys() >= MEANT_BY_PRESENCE
