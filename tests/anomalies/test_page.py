"""The page of anomalies names each scenario and each measured mode once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.anomalies import page, results
from tests.anomalies.beside_hudi import LATE_NAMES, MODES
from tests.anomalies.modes import BUCKETS, LOCAL_MODES
from tests.anomalies.scenarios import SCENARIOS

TEXT = (Path(__file__).parents[2] / "docs/explanation/anomalies.md").read_text(encoding="utf-8")


def test_rows_are_the_scenarios() -> None:
    assert [*page.ROWS] == [scenario.name for scenario in SCENARIOS]
    assert [*page.BESIDE] == [f"{name}, Hudi last" for name in LATE_NAMES]


def test_links_lead_to_sections_of_the_page() -> None:
    sections = {
        heading.lower().replace(" ", "-") for heading in re.findall("^## (.*)$", TEXT, re.MULTILINE)
    }
    anchors = {anchor for _, anchor in (*page.ROWS.values(), *page.BESIDE.values()) if anchor}
    assert anchors <= sections


def test_results_have_one_column_for_each_mode() -> None:
    beside = [f"hudi-{release}-{mode}" for release, mode in MODES.items()]
    modes = sorted(results.load())
    assert modes == sorted([*map(str, (*LOCAL_MODES, *BUCKETS)), *beside])
    for mode in modes:
        assert [has_mode(mode) for has_mode in page.COLUMNS.values()].count(True) == 1


@pytest.mark.parametrize(
    ("outcomes", "text"),
    [
        ({}, "\u2013"),
        ({"a-v9-cow": "prevented", "a-v6-mor": "prevented"}, "prevented"),
        (
            {"a-v9-cow": "prevented", "a-v9-mor": "possible"},
            "**possible**: merge-on-read; prevented: copy-on-write",
        ),
        (
            {"a-v9-mor": "prevented", "a-v8-mor-bucket": "prevented", "a-v6-mor": "refused"},
            "prevented: version 9, version 8; refused: version 6",
        ),
    ],
)
def test_cell_says_where_outcomes_differ(outcomes: dict[str, str], text: str) -> None:
    assert page.cell(outcomes) == text
