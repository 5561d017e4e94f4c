"""The text of single options."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.option_parsing import (
    OptionGroup,
    check_only,
    choice,
    custom,
    decimal,
    flag,
    integer,
    list_options,
    name_list,
    number,
    option,
    option_names,
    parse_bool,
    parse_class,
    parse_enum,
    parse_int,
    pattern,
    refusal,
    text,
)
from pyhudi.errors import ConfigError, UnsupportedTableFeature


def test_option_aliases_use_first_name_present() -> None:
    options = {"new": " TRUE ", "old": "false"}
    assert parse_bool(options, "newest", "new", "old", default=None) is True
    assert parse_bool(options, "old", "new", default=None) is False
    assert parse_bool(options, "other", default=None) is None


def test_numbers_and_choices() -> None:
    assert parse_int({"n": " 12 "}, "n", default=3) == 12
    assert parse_int({}, "n", default=3) == 3
    assert parse_int({"n": "0"}, "n", default=3, minimum=0) == 0
    assert number({"x": "1e-9"}, "x", lambda value: value > 0, "above 0", 1.0) == 1e-9
    assert parse_enum({"c": "sNaPpY"}, "c", ("gzip", "SNAPPY"), "gzip") == "SNAPPY"
    assert parse_enum({}, "c", ("gzip", "SNAPPY"), "gzip") == "gzip"


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (lambda options: parse_bool(options, "o", default=True), "yes"),
        (lambda options: parse_int(options, "o", default=1), "0"),
        (lambda options: parse_int(options, "o", default=1, minimum=0), "-1"),
        (lambda options: parse_int(options, "o", default=1, maximum=9), "10"),
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


def check_old_mode(options: Mapping[str, str]) -> None:
    if "old.mode" in options:
        raise refusal(options, "old.mode", "Leave it out.")


@dataclass(frozen=True)
class Declared(OptionGroup):
    derived: str = "no option"
    switch: bool | None = flag(("s", "old.s"), "a", default=None, displayed="it depends")
    count: int = integer("i", "b", default=3, minimum=2, maximum=9)
    share: float = decimal("x", "c", lambda value: 0 < value < 1, "between 0 and 1", default=0.5)
    codec: str = choice("c", "d", ("gzip", "SNAPPY"), default="gzip")
    word: str = text("t", "e")
    words: tuple[str, ...] = name_list("n", "f", displayed="all")
    regex: str = pattern("r", "g")
    pairs: Mapping[str, str] = custom(
        lambda options: {name: options[name] for name in ("p", "q") if name in options},
        option("p", "h"),
        option("q", "i", default=False),
    )
    mode: None = check_only(check_old_mode, option("old.mode", "an error"))


def test_declared_fields_give_names_defaults_and_values() -> None:
    names = ("s", "old.s", "i", "x", "c", "t", "n", "r", "p", "q", "old.mode")
    assert option_names(Declared) == names
    assert Declared.of({}) == Declared()
    given = {"old.s": "true", "i": "9", "x": "0.1", "c": "snappy", "other": "1"}
    more = {"t": "any", "n": " a,, b ", "r": "a.*", "q": "2"}
    assert Declared.of(given | more) == Declared(
        "no option", True, 9, 0.1, "SNAPPY", "any", ("a", "b"), "a.*", {"q": "2"}
    )
    for name, value in (("s", "yes"), ("i", "10"), ("i", "1"), ("x", "1"), ("c", "rar")):
        with pytest.raises(ConfigError, match=re.escape(f"{name} is {value!r}")):
            Declared.of({name: value})
    with pytest.raises(ConfigError, match="r is not a regular expression"):
        Declared.of({"r": "("})
    with pytest.raises(UnsupportedTableFeature, match=r"old\.mode is '1', which pyhudi"):
        Declared.of({"old.mode": "1"})


def test_list_options_show_defaults_and_meanings() -> None:
    shown = [(each.names[0], each.default, each.meaning) for each in list_options(Declared)]
    assert shown == [
        ("s", "it depends", "a"),
        ("i", "3", "b"),
        ("x", "0.5", "c"),
        ("c", "gzip", "d"),
        ("t", "", "e"),
        ("n", "all", "f"),
        ("r", "", "g"),
        ("p", "", "h"),
        ("q", "false", "i"),
        ("old.mode", "", "an error"),
    ]


def test_class_is_one_of_the_supported_with_or_without_its_package() -> None:
    for name in ("A", " org.A ", "other.A"):
        assert parse_class({"k": name}, "k", ("A", "B")) == "A"
    assert parse_class({"k": "org.A"}, "k", ("A", "B"), package="org.") == "A"
    assert (parse_class({}, "k", ("A",)), parse_class({}, "k", ("A",), "A")) == ("", "A")
    for name, package in (("C", ""), ("other.A", "org.")):
        with pytest.raises(UnsupportedTableFeature, match=f"k is '{name}'") as raised:
            parse_class({"k": name}, "k", ("A", "B"), package=package)
        assert raised.value.hint == "Choose one of A, B."


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
