"""Names of other libraries: each error names a method that exists."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pytest

import pyhudi
from pyhudi.errors import HudiError
from pyhudi.foreign_names import NAMES
from tests.helpers.table_builder import SMALL, TableBuilder

ROWS = TableBuilder(
    {"id": (pa.string(), str), "fare": (pa.float64(), 1.0)}, options=SMALL, first="ab"
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> pyhudi.HudiTable:
    return ROWS.make(tmp_path_factory.mktemp("names") / "t")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vacuum", r"table\.clean\(\)"),
        ("optimize", r"table\.cluster\(\)"),
        ("zorder", 'layout="zorder"'),
        ("to_pyarrow_table", r"table\.to_arrow\(\)"),
        ("drop_table", r"pyhudi\.drop_table\(path\)"),
        ("drop", r"drop_column\(name\)"),
        ("deduplicate", r"check\(deep=True\)"),
        ("load_as_version", r"scan\(as_of=instant\)"),
        ("append", r"table\.insert\(rows\)"),
        ("create_tag", r"table\.savepoint"),
    ],
)
def test_attribute_error_of_table_says_what_to_write(
    name: str, words: str, table: pyhudi.HudiTable
) -> None:
    with pytest.raises(AttributeError, match=f"(?s)^HudiTable has no attribute .*Hint: .*{words}"):
        getattr(table, name)
    assert not hasattr(table, name)
    assert getattr(table, name, None) is None


def test_hints_name_methods_that_exist(table: pyhudi.HudiTable) -> None:
    instant = table.history()["instant"][0].as_py()
    objects: dict[str, Any] = {
        "table": table,
        "scan": table.scan(),
        **dict.fromkeys(("diff", "changes"), table.diff(instant, instant)),
        "pyhudi": pyhudi,
    }
    for hint in {hint for names in NAMES.values() for hint in names.values()}:
        calls = re.findall(
            r"\b(table|scan|diff|changes|pyhudi)\.((?:\w+(?:\([^()]*\))?\.)*\w+)", hint
        )
        assert calls or "`pyhudi export`" in hint or "Leave it out" in hint, hint
        for owner, chain in calls:
            value = objects[owner]
            for part in re.sub(r"\([^()]*\)", "", chain).split("."):
                assert hasattr(value, part), hint
                value = getattr(value, part)
                if part in ("scan", "alter"):
                    value = value()
                elif part in ("config", "schema", "inspect"):
                    continue
                else:
                    break


def test_foreign_names_hide_no_name_of_ours(table: pyhudi.HudiTable) -> None:
    instant = table.history()["instant"][0].as_py()
    for rows in (table, table.scan(), table.diff(instant, instant)):
        assert not NAMES[type(rows).__name__].keys() & set(dir(rows))


def test_unknown_attribute_keeps_the_error_of_python(table: pyhudi.HudiTable) -> None:
    """Its `name` and `obj` make the traceback suggest a similar name."""
    with pytest.raises(AttributeError, match=r"no attribute 'upsrt'$") as raised:
        table.upsrt  # type: ignore[attr-defined] # noqa: B018 - the error
    assert (raised.value.name, raised.value.obj) == ("upsrt", table)


def test_error_inside_a_property_is_not_hidden() -> None:
    class Broken(pyhudi.HudiTable):
        @property
        def uri(self) -> str:
            return self.inner  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(AttributeError, match="'inner'"):
        object.__new__(Broken).uri  # noqa: B018 - the error


def test_tables_and_scans_are_copied_as_before(table: pyhudi.HudiTable) -> None:
    assert copy.copy(table).uri == table.uri
    assert pickle.loads(pickle.dumps(table.scan().splits()))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("DeltaTable", r"pyhudi\.open_table"),
        ("read_table", r"to_arrow\(\)"),
        ("write_deltalake", r"pyhudi\.create_table"),
        ("HudiTableBuilder", r"pyhudi\.open_table"),
    ],
)
def test_attribute_error_of_package_says_what_to_write(name: str, words: str) -> None:
    with pytest.raises(AttributeError, match=f"(?s)Hint: .*{words}"):
        getattr(pyhudi, name)
    assert not hasattr(pyhudi, name)


def test_condition_and_length_of_a_table(table: pyhudi.HudiTable) -> None:
    """`if table:` must not count; `len` counts."""
    assert len(table) == 2
    assert table
    with pytest.raises(TypeError):
        list(table)  # type: ignore[call-overload]


@pytest.mark.parametrize("output", ["to_arrow", "to_pandas", "to_polars", "count"])
def test_outputs_answer_arguments_of_other_libraries(output: str, table: pyhudi.HudiTable) -> None:
    """A `TypeError` as Python's, and a `HudiError` with a hint."""
    for rows, words in ((table, "Did you mean 'where'"), (table.scan(), "where")):
        with pytest.raises(TypeError, match="no argument 'filters'") as raised:
            getattr(rows, output)(filters="fare > 10")
        assert isinstance(raised.value, HudiError)
        assert output == "count" or words in raised.value.hint
    if output != "count":
        with pytest.raises(TypeError, match=r'Pass as_of to scan\(\), .* as_of="2024-06-01"'):
            getattr(table, output)(version=3)


def test_open_table_answers_version(table: pyhudi.HudiTable) -> None:
    with pytest.raises(
        TypeError, match=r"(?s)no argument 'version'.*mean 'as_of', with an instant"
    ):
        pyhudi.open_table(table.uri, version=3)  # type: ignore[call-arg]


def test_pandas_gets_types_with_nulls(tmp_path: Path) -> None:
    types = pa.schema(
        [("id", pa.string()), ("i", pa.int32()), ("f", pa.float32()), ("b", pa.bool_())]
    )
    table = pyhudi.create_table(tmp_path / "t", types.empty_table(), key="id", options=SMALL)
    table.insert(pa.table({"id": ["a"], "i": [None], "f": [None], "b": [None]}, types))
    frame = table.to_pandas(dtype_backend="numpy_nullable")
    assert frame.dtypes.map(str).to_dict() == {
        "id": "string",
        "i": "Int32",
        "f": "Float32",
        "b": "boolean",
    }
    with pytest.raises(pyhudi.ConfigError, match="dtype_backend is 'arrow'"):
        table.to_pandas(dtype_backend="arrow")
