"""Code that the documents show."""

from __future__ import annotations

import re
from pathlib import Path


def snippets(page: Path, tag: str) -> list[str]:
    """A page's Python blocks with a tag, which says what they want, such as a bucket."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```python {tag}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
