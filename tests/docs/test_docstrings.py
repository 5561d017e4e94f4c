"""The public names say what they take, give and raise, in the sections of one style."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import pyhudi
from pyhudi.api.alter_builder import Alter
from pyhudi.api.inspect import Inspect

MADE_BY_USERS = {pyhudi.LocalEngine}
REACHED = {"Alter": Alter, "Inspect": Inspect}
"""What users hold without a name in `pyhudi`."""
SECTION = re.compile(r"^(Args|Returns|Raises):\n((?:(?: {4}.*)?\n?)*)", re.MULTILINE)
ENTRY = re.compile(r"^ {4}(\w+): \S", re.MULTILINE)


class Documented(NamedTuple):
    """A function or method and where its sections stand."""

    function: Callable[..., Any]
    holder: Any
    """What has the docstring: the function, or the class that it constructs."""

    @property
    def sections(self) -> dict[str, str]:
        return dict(SECTION.findall(inspect.getdoc(self.holder) or ""))

    def entries(self, section: str) -> list[str]:
        return ENTRY.findall(self.sections.get(section, ""))


def documented() -> Iterator[Any]:
    exported = {name: getattr(pyhudi, name) for name in pyhudi.__all__}
    for name, value in {**exported, **REACHED}.items():
        if inspect.isfunction(value):
            yield pytest.param(Documented(value, value), id=name)
        if not inspect.isclass(value):
            continue
        if value in MADE_BY_USERS:
            yield pytest.param(Documented(value.__init__, value), id=name)
        for method, function in inspect.getmembers(value, inspect.isfunction):
            if function.__module__.startswith("pyhudi.") and not method.startswith("_"):
                yield pytest.param(Documented(function, function), id=f"{name}.{method}")


def raised(function: Callable[..., Any]) -> set[str]:
    """The errors that its own lines raise, and that of arguments that are checked beforehand."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    calls = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    names = {ast.unparse(call.func) for call in calls if isinstance(call, ast.Call)}
    return names | ({"ConfigError"} if function.__code__.co_name == "checking" else set())


@pytest.mark.parametrize("public", list(documented()))
def test_docstrings_describe_every_argument(public: Documented) -> None:
    parameters = [name for name in inspect.signature(public.function).parameters if name != "self"]
    assert public.entries("Args") == parameters


@pytest.mark.parametrize("public", list(documented()))
def test_docstrings_describe_return_values(public: Documented) -> None:
    given = inspect.signature(public.function).return_annotation
    assert ("Returns" in public.sections) is (given not in ("None", None))


@pytest.mark.parametrize("public", list(documented()))
def test_errors_are_described_by_names_that_there_are(public: Documented) -> None:
    described = public.entries("Raises")
    assert raised(public.function) <= set(described)
    assert [name for name in described if not hasattr(pyhudi, name)] == []


def test_docstring_walk_finds_public_names() -> None:
    found = {str(parameter.id) for parameter in documented()}
    assert found > {
        "open_table",
        "create_table",
        "HudiTable.upsert",
        "Scan.to_arrow",
        "Merge.execute",
    }
