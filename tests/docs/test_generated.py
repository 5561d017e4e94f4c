"""Generated sections of the reference pages say what the code says (`scripts/generate_docs.py`)."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from pyhudi.config.option_parsing import as_tuple

ROOT = Path(__file__).parents[2]
GENERATOR: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "generate_docs.py"))
PAGES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if GENERATOR["SECTION"].search(page.read_text(encoding="utf-8"))
]


def test_generated_sections_cover_all_generators() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    named = [match["name"] for text in texts for match in GENERATOR["SECTION"].finditer(text)]
    assert sorted(named) == sorted(GENERATOR["GENERATORS"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_sections_are_current(page: Path) -> None:
    """Run `python scripts/generate_docs.py` if this fails."""
    text = page.read_text(encoding="utf-8")
    assert GENERATOR["generate"](text) == text


def test_spark_options_section_names_every_option() -> None:
    options = runpy.run_path(str(GENERATOR["OPTION_TABLE"]))["OPTIONS"]
    section = GENERATOR["spark_options"]()
    names = [name for option in options for name in as_tuple(option.names)]
    assert [name for name in names if f"`{name}`" not in section] == []
