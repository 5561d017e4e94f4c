"""Keys of one field are stored as `id:k1` or `k1`: what the rows say holds, on every table."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable

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
        patch.setattr("pyhudi.schema.record_keys._PLAIN_SINGLE_COMPLEX_KEYS", frozenset())
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
