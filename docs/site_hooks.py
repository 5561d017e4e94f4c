"""What the site (`make docs`) does to the pages beyond rendering them; they stay plain Markdown.

Some pages are at the top of the repository and not in docs/. Links to them, and theirs into docs/,
are written for the repository; here they become links within the site.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

TOP = Path(__file__).parents[1]
ABOVE = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")
FENCE = re.compile(r"^```python [a-z]+$", re.MULTILINE)
"""A block with a tag for the tests, which the renderer does not know."""
OPTION = re.compile(r"(?<=<code>)[\w-]+(?:\.[\w-]+){2,}(?=</code>)")
"""The name of an option, such as `hoodie.table.name`."""


def decisions() -> list[str]:
    """The pages about decisions, the oldest first: the navigation lists them by itself."""
    return sorted(f"decisions/{page.name}" for page in TOP.glob("docs/decisions/*.md"))


def on_config(config: Any) -> Any:
    """Ends the navigation's last section with the decisions."""
    [pages] = config.nav[-1].values()
    pages.append({"Decisions": decisions()})
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Takes the pages in that stand above docs/."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - in the site's environment alone

    for name in ABOVE:
        files.append(File.generated(config, name, abs_src_path=str(TOP / name)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Turns links across the edge of docs/ into links within the site."""
    for name in ABOVE:
        markdown = markdown.replace(f"](../{name}", f"]({name}")
        markdown = markdown.replace(f"](../../{name}", f"](../{name}")
    if page.file.src_uri in ABOVE:
        markdown = markdown.replace("](docs/", "](")
    return FENCE.sub("```python", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Lets long names of options break after a dot, so that their tables fit on a page."""
    return OPTION.sub(lambda name: name[0].replace(".", ".<wbr>"), html)
