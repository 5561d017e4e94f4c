"""Properties that keep pyhudi from writing to a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import UnsupportedTableFeature
from tests.helpers.table_builder import TableBuilder, numbered

MODE, OLDER = "hoodie.meta.fields.mode", "hoodie.populate.meta.fields"
TABLE = TableBuilder({"id": (pa.string(), numbered()), "v": (pa.int64(), 1)}, first=range(2))


def with_properties(base: Path, properties: dict[str, str], **axes: Any) -> pyhudi.HudiTable:
    TABLE.make(base, **axes)
    file = base / ".hoodie" / "hoodie.properties"
    lines = [line for line in file.read_text().splitlines() if line.split("=")[0] not in properties]
    file.write_text("\n".join((*lines, *(f"{k}={v}" for k, v in properties.items()), "")))
    return pyhudi.open_table(base)


@pytest.mark.parametrize(
    ("mode", "populated", "kind", "version"),
    [
        ("COMMIT_TIME_ONLY", "false", "cow", 9),
        ("commit_time_and_file_name", "false", "cow", 8),
        ("ALL", "false", "mor", 9),
        ("NONE", "true", "mor", 6),
        ("FILE_NAME_ONLY", "true", "cow", 6),
    ],
)
def test_contradicting_meta_fields_mode_raises(
    tmp_path: Path, mode: str, populated: str, kind: str, version: int
) -> None:
    """Hudi 1.3 uses the mode: its incremental reads would miss rows without a commit time."""
    options = {OLDER: "false"} if populated == "false" and kind == "cow" else {}
    properties = {MODE: mode, OLDER: populated}
    table = with_properties(tmp_path / "t", properties, kind=kind, version=version, options=options)
    rows = TABLE.rows([0], v=2)
    for change in (lambda: table.upsert(rows), lambda: table.delete("id = 'k0'"), table.clean):
        with pytest.raises(UnsupportedTableFeature, match=f"{MODE} is {mode}.*{OLDER} is"):
            change()
    assert table.refresh().history().num_rows == 1
    assert table.scan().count() == 2


@pytest.mark.parametrize(
    ("mode", "populated"), [("ALL", "true"), (" none ", "false"), ("", "true")]
)
def test_meta_fields_mode_that_agrees_is_written(tmp_path: Path, mode: str, populated: str) -> None:
    options = {OLDER: populated} if populated == "false" else {}
    table = with_properties(tmp_path / "t", {MODE: mode}, options=options)
    table.upsert(TABLE.rows([0], v=2))
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [1, 2]
