"""Services planned before the metadata table was created and executed afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.metadata_table import metadata_table


def rows(ids: str, value: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": [value] * len(ids)})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("made", ["anew", "later"])
def test_plans_before_metadata_table_do_not_make_it_stale(
    tmp_path: Path, kind: Any, version: int, made: str
) -> None:
    options = {"hoodie.parquet.small.file.limit": "0"}
    without = {} if made == "anew" else {"hoodie.metadata.enable": "false"}
    base = tmp_path / "t"
    table = pyhudi.create_table(
        base, rows("a", 0).schema, key="id", type=kind, version=version, options=options | without
    )
    table.insert(rows("ab", 0))
    table.upsert(rows("a", 1))
    table.insert(rows("x", 1))
    (table.compact if kind == "mor" else table.cluster)(execute=False)
    table.insert(rows("y", 2))
    table.insert(rows("z", 2))
    if made == "anew":
        table.rebuild_metadata()
    else:
        table = pyhudi.open_table(base, options={**options, "hoodie.metadata.enable": "true"})
        table.insert(rows("w", 2))
    (table.compact if kind == "mor" else table.cluster)(schedule=False)
    opened = pyhudi.open_table(base)
    assert opened.check(deep=True).findings == ()
    assert opened.upsert(rows("an", 3)).rows_inserted == 1
    found = opened.scan(["id", "v"]).to_arrow().to_pylist()
    wanted = {"a": 3, "b": 0, "x": 1, "y": 2, "z": 2, "n": 3}
    assert {row["id"]: row["v"] for row in found} == wanted | ({} if made == "anew" else {"w": 2})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("version", "kind"), [(8, "cow"), (9, "mor")])
def test_plans_before_archived_metadata_commits_do_not_make_it_stale(
    tmp_path: Path, kind: Any, version: int
) -> None:
    options = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.metadata.compact.max.delta.commits": "2",
        "hoodie.clean.automatic": "false",
    }
    base = tmp_path / "t"
    pyhudi.create_table(base, rows("ab", 0), key="id", type=kind, version=version)
    table = pyhudi.open_table(base, options=options)
    table.upsert(rows("a", 1))
    planned = (
        table.compact(execute=False)
        if kind == "mor"
        else table.cluster(execute=False, sort_by=["v"])
    )
    table.insert(rows("y", 2))
    table.insert(rows("z", 2))
    table.rebuild_metadata()
    for n in range(40):
        if not metadata_table(table.storage).timeline.commits[0].requested.startswith("000"):
            break
        table.insert(rows(chr(0x100 + n), 3))
    else:
        pytest.fail("its initial commits stay")
    done = (table.compact if kind == "mor" else table.cluster)(schedule=False)
    assert done.instants == planned.scheduled != ()
    opened = pyhudi.open_table(base, options=options)
    assert opened.check(deep=True).findings == ()
    assert opened.upsert(rows("an", 4)).rows_inserted == 1
