"""The text of single options."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.option_parsing import (
    choice,
    decimal,
    flag,
    integer,
    number,
    option_names,
    parse_bool,
    parse_enum,
    parse_fields,
    parse_int,
)
from pyhudi.errors import ConfigError


def test_option_aliases_use_first_name_present() -> None:
    options = {"new": " TRUE ", "old": "false"}
    assert parse_bool(options, "newest", "new", "old", default=None) is True
    assert parse_bool(options, "old", "new", default=None) is False
    assert parse_bool(options, "other", default=None) is None


def test_numbers_and_choices() -> None:
    assert parse_int({"n": " 12 "}, "n", default=3) == 12
    assert parse_int({}, "n", default=3) == 3
    assert parse_int({"n": "0"}, "n", default=3, least=0) == 0
    assert number({"x": "1e-9"}, "x", lambda value: value > 0, "above 0", 1.0) == 1e-9
    assert parse_enum({"c": "sNaPpY"}, "c", ("gzip", "SNAPPY"), "gzip") == "SNAPPY"
    assert parse_enum({}, "c", ("gzip", "SNAPPY"), "gzip") == "gzip"


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (lambda options: parse_bool(options, "o", default=True), "yes"),
        (lambda options: parse_int(options, "o", default=1), "0"),
        (lambda options: parse_int(options, "o", default=1, least=0), "-1"),
        (lambda options: parse_int(options, "o", default=1, most=9), "10"),
        (lambda options: parse_int(options, "o", default=1), "1.5"),
        (lambda options: number(options, "o", lambda value: value > 0, "above 0", 1.0), "nan"),
        (lambda options: number(options, "o", lambda value: value > 0, "above 0", 1.0), "much"),
        (lambda options: parse_enum(options, "o", ("a", "b"), "a"), "c"),
    ],
)
def test_anything_else_is_refused_with_name_and_text(
    read: Callable[[dict[str, str]], Any], text: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"o is {text!r}")):
        read({"o": text})


@dataclass(frozen=True)
class Declared:
    derived: str = "no option"
    switch: bool | None = flag("s", "old.s", default=None)
    count: int = integer("i", default=3, least=2, most=9)
    share: float = decimal("x", lambda value: 0 < value < 1, "between 0 and 1", default=0.5)
    codec: str = choice("c", ("gzip", "SNAPPY"), default="gzip")


def test_declared_fields_give_names_defaults_and_values() -> None:
    assert option_names(Declared) == ("s", "old.s", "i", "x", "c")
    assert Declared(**parse_fields(Declared, {})) == Declared()
    given = {"old.s": "true", "i": "9", "x": "0.1", "c": "snappy", "other": "1"}
    values = {"switch": True, "count": 9, "share": 0.1, "codec": "SNAPPY"}
    assert parse_fields(Declared, given) == values
    for name, text in (("s", "yes"), ("i", "10"), ("i", "1"), ("x", "1"), ("c", "rar")):
        with pytest.raises(ConfigError, match=re.escape(f"{name} is {text!r}")):
            parse_fields(Declared, {name: text})


@pytest.mark.parametrize("name", ["hoodie.metadata.enable", "hoodie.enable.data.skipping"])
@pytest.mark.parametrize(("text", "tasks"), [(" TRUE ", 1), ("true\t", 1), (" False", 2)])
def test_blanks_around_a_switch_mean_nothing(
    tmp_path: Path, name: str, text: str, tasks: int
) -> None:
    rows = pa.table({"id": ["a", "b"], "city": ["x", "y"], "v": [1, 2]})
    pyhudi.create_table(tmp_path, rows, key="id", partition_by="city")
    table = pyhudi.open_table(tmp_path, options={name: text})
    assert len(table.scan(where="v = 2").tasks) == tasks


def test_index_type_only_hudi_has_is_read_only(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"]})
    pyhudi.create_table(tmp_path, rows, key="id")
    table = pyhudi.open_table(tmp_path, options={"hoodie.index.type": " hbase "})
    assert table.count() == 1
    with pytest.raises(ConfigError, match="'HBASE'"):
        table.upsert(rows)
