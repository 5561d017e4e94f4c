"""Checks of the arguments of public calls, by their annotations."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest

import pyhudi
from pyhudi.config import argument_checks as arg
from pyhudi.errors import ConfigError


@arg.check_arguments(key=arg.check_ordered_names)
def call(
    columns: Sequence[str] | None = None,
    *,
    key: str | Sequence[str] | None = None,
    options: Mapping[str, object] | None = None,
    layout: Literal["linear", "zorder"] | None = None,
    limit: int = 0,
    commit_id: str | None = None,
    where: Any = None,
) -> dict[str, Any]:
    return locals()


@pytest.mark.parametrize(
    "arguments",
    [
        {"columns": "id"},
        {"columns": [1]},
        {"key": {"a", "b"}},
        {"options": ["a"]},
        {"layout": 1},
        {"limit": None},
        {"limit": True},
        {"commit_id": ""},
    ],
)
def test_check_arguments_names_the_wrong_argument(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"^{next(iter(arguments))} "):
        call(**arguments)


def test_check_arguments_accepts_values_of_the_annotations() -> None:
    arguments: dict[str, Any] = {
        "columns": ["id"],
        "key": "id",
        "options": {"a": 1},
        "layout": None,
        "limit": 5,
        "commit_id": "x",
        "where": object(),
    }
    assert call(**arguments) == arguments


def test_check_arguments_knows_all_annotations_of_public_methods() -> None:
    """An annotation that `check_arguments` does not know would leave its argument unchecked."""
    calls: list[Any] = [
        pyhudi.create_table,
        pyhudi.open_table,
        pyhudi.drop_table,
        pyhudi.table_exists,
    ]
    calls += [pyhudi.show, pyhudi.register_merger]
    for owner in (
        pyhudi.HudiTable,
        pyhudi.Scan,
        pyhudi.Merge,
        pyhudi.GroupWriter,
        pyhudi.TableTransaction,
    ):
        calls += [method for _, method in inspect.getmembers(owner, inspect.isfunction)]
    unchecked = set()
    for public in (each for each in calls if each.__code__.co_name == "checking"):
        signature = inspect.signature(public)
        checks = arg._checks_of(signature, {})
        unchecked |= {
            str(parameter.annotation).removesuffix(" | None")
            for name, parameter in signature.parameters.items()
            if name not in checks and parameter.annotation is not inspect.Parameter.empty
        }
    # Their functions pass checks of their own.
    own = {
        "PartitionBy",
        "Validator",
        "str | ColumnTransform",
        "str | os.PathLike[str] | HudiTable",
    }
    assert unchecked <= {"Any", "Merger", "Moment", "float | str", "str | pc.Expression", *own}
