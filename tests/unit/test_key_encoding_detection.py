"""The encoding of keys and partition paths, inferred from rows where no property says it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.config.property_names import SLASH_DATES
from pyhudi.errors import UnsupportedTableFeature

FORMS = {6: "", 8: "", 9: "id:"}
"""What the first release of each version puts before the value of a complex key's one field."""
Kind = Literal["cow", "mor"]


def rows(*ids: str, v: int = 1) -> pa.Table:
    n = len(ids)
    return pa.table({"id": ids, "p": ["a"] * n, "q": ["b"] * n, "v": [v] * n})


def made(base: Path, version: int, kind: Kind, *ids: str) -> HudiTable:
    table = pyhudi.create_table(
        base, rows("x").schema, key="id", partition_by=["p", "q"], type=kind, version=version
    )
    table.insert(rows(*ids))
    return table


def stored(table: HudiTable) -> dict[str, int]:
    found = table.refresh().scan(meta_fields=True).to_arrow()
    keys, values = found["_hoodie_record_key"].to_pylist(), found["v"].to_pylist()
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, values, strict=True))


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", FORMS)
@pytest.mark.parametrize("ids", [("id:y", "x"), ("x", "id:y"), ("id:y",), ("id:id:y", "id:y")])
def test_values_that_begin_as_prefixed_keys(
    tmp_path: Path, version: int, kind: Kind, ids: tuple[str, ...]
) -> None:
    table = made(tmp_path / "t", version, kind, *ids)
    table.upsert(rows(*ids, v=2))
    assert stored(table) == {FORMS[version] + key: 2 for key in ids}


def as_the_other_form(base: Path, kind: Kind) -> HudiTable:
    """A table of version 8 with prefixed keys, as Hudi 1.1 and later make them if they must."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyhudi.schema.key_generator._PLAIN_SINGLE_COMPLEX_KEYS", frozenset())
        return made(base, 8, kind, "x", "y").refresh()


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("emptied", ["delete_keys", "delete", "delete_partitions", "overwrite"])
def test_rows_that_are_gone_still_say(tmp_path: Path, kind: Kind, emptied: str) -> None:
    table = as_the_other_form(tmp_path / "t", kind)
    match emptied:
        case "delete_keys":
            table.delete_keys(rows("x", "y").select(["id", "p", "q"]))
        case "delete":
            table.delete("v = 1")
        case "delete_partitions":
            table.delete_partitions(["a/b"])
        case _:
            table.overwrite(rows("z"))
            table.delete("id = 'z'")
    table.upsert(rows("x", "y", v=3))
    assert stored(table) == {"id:x": 3, "id:y": 3}


def reworded(base: Path, change: Callable[[str], str | None]) -> HudiTable:
    """The table with other lines of properties; None leaves one out."""
    file = base / ".hoodie/hoodie.properties"
    lines = [change(line) for line in file.read_text().splitlines()]
    file.write_text("".join(f"{line}\n" for line in lines if line is not None))
    return pyhudi.open_table(base)


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(("generator", "key"), [("COMPLEX", "id:x"), ("SIMPLE", "x")])
def test_rows_tell_where_no_property_names_the_generator(
    tmp_path: Path, kind: Kind, generator: str, key: str
) -> None:
    pyhudi.create_table(
        tmp_path / "t",
        rows("x"),
        key="id",
        partition_by="p",
        type=kind,
        options={"hoodie.table.keygenerator.type": generator},
    )
    table = reworded(tmp_path / "t", lambda line: None if "keygenerator" in line else line)
    assert table.scan(where="id = 'x'").count() == 1
    table.upsert(rows("x", v=2))
    assert stored(table) == {key: 2}


def with_keys_of(base: Path, other: str, days: pa.Table) -> HudiTable:
    """A table whose key is `day`, and whose rows have the keys that another column makes."""
    pyhudi.create_table(base, days, key=other)
    return reworded(base, lambda line: line.replace(f"fields={other}", "fields=day"))


@pytest.mark.parametrize("day", [date(2024, 1, 2), datetime(2024, 1, 2, tzinfo=timezone.utc)])
def test_days_that_are_spelled_otherwise_are_refused(tmp_path: Path, day: date) -> None:
    days = pa.table({"day": [day], "number": [19724]})
    table = with_keys_of(tmp_path / "t", "number", days)
    for write in (table.upsert, table.delete_keys):
        with pytest.raises(UnsupportedTableFeature, match=r"recordkey\.fields is day: .* 19724"):
            write(days.select(["day", "number"]))
    own = pyhudi.create_table(tmp_path / "own", days, key=["day", "number"])
    own.upsert(days)
    assert own.scan().count() == 1


DATED = pa.table({"id": ["x"], "day": ["2024-01-02"]})


def dated(base: Path, stored: str | None = None) -> None:
    options = {} if stored is None else {SLASH_DATES: stored}
    pyhudi.create_table(base, DATED, key="id", partition_by="day", options=options)


@pytest.mark.parametrize(
    ("stored", "given", "named"),
    [
        ("TRUE", "false", f"the option {SLASH_DATES} is false, the table has true"),
        ("false", "true", f"the option {SLASH_DATES} is true, the table has false"),
        (None, "TRUE", f"the option {SLASH_DATES} is true, the table has the partition 2024-01-02"),
    ],
)
def test_slashes_in_dates_are_not_changed_by_an_option(
    tmp_path: Path, stored: str | None, given: str, named: str
) -> None:
    dated(tmp_path / "t", stored)
    table = pyhudi.open_table(tmp_path / "t", options={SLASH_DATES: given})
    with pytest.raises(UnsupportedTableFeature, match=named):
        table.upsert(DATED)


def test_slash_option_decides_key_encoding(tmp_path: Path) -> None:
    """As of tables that a DataFrame of Spark made."""
    dated(tmp_path / "t", "true")
    reworded(tmp_path / "t", lambda line: None if SLASH_DATES in line else line)
    table = pyhudi.open_table(tmp_path / "t", options={SLASH_DATES: "TRUE"})
    table.upsert(DATED)
    found = table.scan(meta_fields=True).to_arrow()
    assert found["_hoodie_partition_path"].to_pylist() == ["2024/01/02"]
