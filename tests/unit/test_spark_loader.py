"""Functions of `pyhudi.spark` that other packages call by name."""

from __future__ import annotations

import ast
from pathlib import Path

import pyhudi

PACKAGE = Path(pyhudi.__file__).parent


def _defined(module: str) -> set[str]:
    """Names at the top of a module of `pyhudi.spark`, without importing PySpark."""
    names: set[str] = set()
    for node in ast.parse((PACKAGE / "spark" / f"{module}.py").read_text("utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.ImportFrom(names=aliases):
                names.update(alias.asname or alias.name for alias in aliases)
    return names


def test_spark_loader_finds_each_function_called_by_name() -> None:
    """mypy does not see the types behind `spark(...)`, so a rename could miss a caller."""
    calls = [
        (str(file.relative_to(PACKAGE)), module, name)
        for file in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Attribute)
        for name in [node.attr]
        if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "spark"
        for module in [ast.literal_eval(node.value.args[0])]
    ]
    assert len(calls) > 5
    assert [call for call in calls if call[2] not in _defined(call[1])] == []


def test_spark_modules_define_private_attributes_they_use() -> None:
    """Frames and groups reach each other through `Any`, so mypy misses a stale name here, too."""
    sparks_own = {"_args", "_dataType", "_explain_string", "_expr", "_fresh_plan_id", "_jc", "_jvm"}
    sparks_own |= {"_jsc", "_jsparkSession", "_name", "_unparsed_identifier", "_value"}
    defined, used = set(sparks_own), set()
    for file in sorted((PACKAGE / "spark").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                    defined.add(name)
                case ast.Attribute(attr=name, ctx=ast.Store()):
                    defined.add(name)
                case ast.Attribute(attr=name) if name.startswith("_") and name[1:2] != "_":
                    used.add((file.name, name))
    assert [pair for pair in sorted(used) if pair[1] not in defined] == []
