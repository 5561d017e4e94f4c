"""Code that the documents show, and the output that they show below it."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path

_BLOCK = re.compile(
    r"^```python(?P<tag>[^\n]*)\n(?P<code>.*?)^```$(?:\n\n^```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
_TIME = re.compile(r"\b20\d\d-?\d\d-?\d\d[ T]?\d\d:?\d\d:?\d\d\.?\d{3}\b")
"""Instants and timestamps, which differ from run to run but in their length."""


@dataclass(frozen=True)
class Snippet:
    """A Python block of a page.

    Attributes:
        tag: what the block needs, such as "bucket" or "spark"; "" for nothing.
        code: the block.
        output: the text block below it, None without one.
    """

    tag: str
    code: str
    output: str | None

    def run(self, page: Path, names: dict[str, object]) -> None:
        """Run the block in `names` and compare what it prints with what the page shows."""
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(self.code, str(page), "exec"), names)
        if self.output is not None:
            assert_output(printed.getvalue(), self.output)


def assert_output(printed: str, shown: str) -> None:
    """Compare output with a page, where `...` stands for any text and times for any times."""
    want, got = (_TIME.sub("<time>", text).rstrip() for text in (shown, printed))
    matches = OutputChecker().check_output(want, got, ELLIPSIS)
    assert matches, f"the page shows\n{want}\nthe code prints\n{got}"


def read_snippets(page: Path, without: Sequence[str] = ()) -> list[Snippet]:
    """Return a page's Python blocks in their order, without those of some tags."""
    blocks = _BLOCK.finditer(page.read_text(encoding="utf-8"))
    snippets = [Snippet(block["tag"].strip(), block["code"], block["output"]) for block in blocks]
    return [snippet for snippet in snippets if snippet.tag not in without]


def snippets(page: Path, tag: str) -> list[str]:
    """Return a page's Python blocks with a tag, which names what they need, such as a bucket."""
    return [snippet.code for snippet in read_snippets(page) if snippet.tag == tag]
