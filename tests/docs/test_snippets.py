"""The documents are right: Python blocks run and print what is shown, links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers.snippets import Snippet, assert_output, read_snippets
from tests.helpers.tables import unpack

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/**/*.md")])
ELSEWHERE = ("spark", "bucket", "hdfs", "engine", "dbt", "broker", "polaris")
LINK = re.compile(r"\]\((?!https?://|#)(?P<path>[^)#\s]+)")


def blocks(page: Path) -> list[Snippet]:
    """Return the page's Python blocks, but those that need a session, a server or an engine."""
    return read_snippets(page, without=ELSEWHERE)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name
)
def test_python_blocks_print_the_output_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # What the pages read but pyhudi cannot write.
    unpack("v9_cow_cdc_data_before_after", tmp_path).rename(tmp_path / "people")
    names: dict[str, object] = {"__name__": "snippet"}
    for snippet in blocks(page):
        snippet.run(page, names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_assert_output_compares_all_but_times() -> None:
    assert_output("commit 20261129003343473\n1 row\n", "commit 20260101000000000\n1 row\n")
    with pytest.raises(AssertionError, match="the page shows"):
        assert_output("commit 20261129003343473\n2 rows\n", "commit 20260101000000000\n1 row\n")
    with pytest.raises(AssertionError, match="the page shows"):
        assert_output("id  fare\nt1  6.5\n", "id  fare\nt1   6.5\n")
