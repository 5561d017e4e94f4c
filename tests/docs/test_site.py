"""The site of `make docs` has every page, and pages that name code name code that exists."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

import pyhudi
from pyhudi import errors
from pyhudi.api.inspect import Inspect
from pyhudi.cli import main
from tests.docs.test_snippets import blocks

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAV_PAGE = re.compile(r"^ +- [^:#]+: (?P<page>\S+\.md)$", re.MULTILINE)
CLASS = re.compile(r"^\| `(?P<name>\w+)` \|", re.MULTILINE)
SHELL = re.compile(r"^```bash\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
HERE = re.compile(r"`(?:table)?\.(?P<name>\w+)")
PROPERTY = re.compile(r"hoodie\.[\w.]+\w")
MESSAGE = re.compile(r"^```text\n(?P<name>\w+): (?P<text>[^\n]+)\n```$", re.MULTILINE)
CALL = re.compile(r"`(?:table\.|pyhudi\.)?(?P<name>[a-z_]+)\(")
REFERENCE = re.compile(r"^::: (?P<home>pyhudi[\w.]*)$", re.MULTILINE)


def hooks() -> ModuleType:
    """What `make docs` adds to the pages, imported from where it stands."""
    spec = importlib.util.spec_from_file_location("site_hooks", DOCS / "site_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_navigation_names_every_page_once() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    named = [match["page"] for match in NAV_PAGE.finditer(nav)]
    assert len(named) == nav.count(".md")
    above = list(hooks().ABOVE)
    there = [str(page.relative_to(DOCS)) for page in DOCS.glob("**/*.md")]
    assert sorted(named + hooks().decisions()) == sorted(there + above)
    assert all((ROOT / name).is_file() for name in above)


def test_links_across_the_edge_of_the_pages_become_links_within_the_site() -> None:
    class Page:
        class file:  # noqa: N801 - as the builder calls it
            src_uri = "ARCHITECTURE.md"

    shown = hooks().on_page_markdown("[a](docs/x.md) [b](../CONTRIBUTING.md#c)", page=Page)
    assert shown == "[a](x.md) [b](CONTRIBUTING.md#c)"
    Page.file.src_uri = "index.md"
    text = "[a](../ARCHITECTURE.md)\n```python spark\nf()\n```\n"
    assert hooks().on_page_markdown(text, page=Page) == (
        "[a](ARCHITECTURE.md)\n```python\nf()\n```\n"
    )


def test_boxes_hold_text_and_not_code() -> None:
    box = re.compile(r"^(?:!!!|\?\?\?) .*\n {5,}\S.*$", re.MULTILINE)
    pages = {page.name: page.read_text(encoding="utf-8") for page in DOCS.glob("**/*.md")}
    assert {name: box.findall(text) for name, text in pages.items() if box.search(text)} == {}


def test_names_of_options_break_after_a_dot() -> None:
    html = "<td><code>hoodie.table.name</code>, <code>a.py</code></td>"
    shown = hooks().on_page_content(html)
    assert shown == "<td><code>hoodie.<wbr>table.<wbr>name</code>, <code>a.py</code></td>"


def test_errors_page_names_every_error_class() -> None:
    named = CLASS.findall((DOCS / "reference" / "errors.md").read_text(encoding="utf-8"))
    there = [name for name, _ in inspect.getmembers(errors, inspect.isclass)]
    assert sorted(named) == there


def properties_in_errors(module: ast.Module) -> set[str]:
    """The properties that the module's texts of UnsupportedTableFeature name."""
    values = {
        target.id: node.value.value
        for node in ast.walk(module)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    raised = [
        part
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("UnsupportedTableFeature")
        for part in ast.walk(node.args[0])
    ]
    texts = [part.value for part in raised if isinstance(part, ast.Constant)]
    texts += [values.get(part.id, "") for part in raised if isinstance(part, ast.Name)]
    return {name for text in texts for name in PROPERTY.findall(str(text))}


def test_unsupported_pages_name_properties_of_errors() -> None:
    files = [*DOCS.glob("reference/unsupported-*.md"), DOCS / "reference" / "spark-options.md"]
    pages = "".join(file.read_text(encoding="utf-8") for file in files)
    modules = [
        ast.parse(file.read_text(encoding="utf-8"))
        for file in (ROOT / "python" / "pyhudi").rglob("*.py")
    ]
    named = set().union(*map(properties_in_errors, modules))
    assert len(named) > 10
    assert sorted(name for name in named if name not in pages) == []


def test_unsupported_pages_advise_calls_that_exist() -> None:
    pages = [file.read_text(encoding="utf-8") for file in DOCS.glob("reference/unsupported-*.md")]
    rows = [line for page in pages for line in page.splitlines() if line.startswith("| ")]
    advice = [re.split(r" \| ", line.strip("| "))[-1] for line in rows]
    calls = {name for text in advice for name in CALL.findall(text)}
    assert len(calls) >= 8
    assert calls <= {*dir(pyhudi.HudiTable), *dir(pyhudi)}


def source_strings() -> set[str]:
    """Return the string constants of the package, and the constant parts of its f-strings."""
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in ROOT.glob("python/**/*.py"))
    nodes = (node for tree in trees for node in ast.walk(tree))
    return {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_troubleshooting_page_shows_messages_of_the_source() -> None:
    page = (DOCS / "how-to" / "troubleshooting.md").read_text(encoding="utf-8")
    messages = [(match["name"], match["text"]) for match in MESSAGE.finditer(page)]
    assert len(messages) >= 15
    assert {name for name, _ in messages} <= {name for name, _ in inspect.getmembers(errors)}
    source = "\n".join(source_strings())
    parts = [part.strip() for _, text in messages for part in text.split("…")]
    assert [part for part in parts if part not in source] == []


def test_reference_has_every_public_name() -> None:
    pages = [page.read_text(encoding="utf-8") for page in DOCS.glob("reference/*.md")]
    homes = [home for page in pages for home in REFERENCE.findall(page)]
    for name in set(pyhudi.__all__) - {"__version__"}:
        value = getattr(pyhudi, name)
        assert {f"{value.__module__}.{name}", value.__module__} & set(homes), name


def test_coming_from_page_names_existing_methods() -> None:
    lines = (DOCS / "explanation" / "coming-from.md").read_text(encoding="utf-8").splitlines()
    cells = [line.split(" | ")[2] for line in lines if line.startswith("| ")]
    named = {match["name"] for cell in cells for match in HERE.finditer(cell)}
    known = {*dir(pyhudi.HudiTable), *dir(pyhudi.Scan), *dir(Inspect)}
    assert {"upsert", "scan", "to_pandas", "compact"} < named <= known


def test_first_table_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = DOCS / "tutorials" / "first-table.md"
    names: dict[str, object] = {"__name__": "snippet"}
    for snippet in blocks(page):
        snippet.run(page, names)
    found = SHELL.findall(page.read_text(encoding="utf-8"))
    lines = [shlex.split(line) for code in found for line in code.splitlines()]
    assert len(lines) >= 3
    for program, *words in lines:
        assert (program, main(words)) == ("pyhudi", 0), capsys.readouterr().err


def test_boxes_are_no_code_blocks() -> None:
    """A box's text has four spaces before it; with eight, the site shows it as code."""
    pages = {page.name: page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md")}
    boxes = re.compile(r"^!!! .*\n(?!    \S)", re.MULTILINE)
    assert [name for name, text in pages.items() if boxes.search(text)] == []
