"""What the documents show works: Python blocks run, links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers.tables import unpack

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/**/*.md")])
BLOCK = re.compile(r"^```python(?P<tag>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = ("spark", "bucket", "hdfs", "engine")
LINK = re.compile(r"\]\((?!https?://|#)(?P<path>[^)#\s]+)")


def blocks(page: Path) -> list[str]:
    """The page's Python blocks, but those that want a session, a server or another engine."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [match["code"] for match in found if match["tag"].strip() not in ELSEWHERE]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name
)
def test_python_blocks_run_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # What the pages read but pyhudi cannot write.
    unpack("v9_cow_cdc_data_before_after", tmp_path).rename(tmp_path / "people")
    names: dict[str, object] = {"__name__": "snippet"}
    for code in blocks(page):
        exec(compile(code, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
