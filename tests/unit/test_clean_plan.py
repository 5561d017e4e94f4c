"""A clean plan is the same whether partitions are listed together or in parts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.services import clean_plan
from tests.helpers.table_builder import TableBuilder, numbered

PARTITIONS = 9
TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered(3)),
        "part": (pa.string(), lambda number: f"p{number % PARTITIONS}"),
        "v": (pa.int64(), 1),
    },
    partition_by="part",
)
OPTIONS = {"hoodie.clean.automatic": "false", "hoodie.clean.commits.retained": "1"}


@pytest.mark.parametrize("version", [6, 9])
def test_clean_plan_is_same_in_parts_and_holds_few_files(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    TABLE.make(tmp_path, version=version, kind="cow")
    table = pyhudi.open_table(tmp_path, options=OPTIONS)
    for v in range(4):
        table.upsert(TABLE.rows(range(40), v=v))
    whole = table.clean(dry_run=True)
    assert whole.files_removed > PARTITIONS
    held: list[int] = []
    view = clean_plan._view  # noqa: SLF001 - how much is looked at at a time

    def counted(of: Any, files: Mapping[str, list[Any]]) -> Any:
        held.append(sum(map(len, files.values())))
        return view(of, files)

    monkeypatch.setattr(clean_plan, "_view", counted)
    monkeypatch.setattr(clean_plan, "_MAX_FILES_IN_VIEW", 6)
    monkeypatch.setattr(clean_plan, "LISTED_AT_ONCE", 2)
    assert table.clean(dry_run=True).files_removed == whole.files_removed
    assert len(held) > 2
    assert max(held) < 6 + 6
    health = table.inspect.health()
    assert (health.old_files, health.base_files) == (27, 9)
    removed = table.clean()
    assert (removed.files_removed, removed.bytes_removed) == (
        whole.files_removed,
        whole.bytes_removed,
    )
    # The next one looks at partitions that commits wrote to since.
    table.upsert(TABLE.rows([0, 1, 2], v=9))
    table.upsert(TABLE.rows([0, 1, 2], v=10))
    assert table.clean().files_removed
    assert table.check(deep=True).ok
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [3] * 37 + [10] * 3
