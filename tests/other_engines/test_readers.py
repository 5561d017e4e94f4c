"""Engines read tables of pyhudi as `Inspect.readers` says: PyPI's hudi, and Daft, if installed.

`make test-engines` runs Daft. Run the file in an environment with `hudi` for the other one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.admin.reader_limits import DAFT, RS_5

ROWS = pa.table({"id": ["a", "b"], "city": ["oslo", "rome"], "fare": [1.0, 1.0], "ts": [1, 1]})
LATER = ROWS.set_column(2, "fare", pa.array([2.0, 2.0])).set_column(3, "ts", pa.array([2, 2]))


def plain(table: HudiTable) -> None:
    """Leave the first rows."""


def updated(table: HudiTable) -> None:
    table.upsert(LATER)


def planned(table: HudiTable) -> None:
    table.upsert(LATER)
    if table.type == "mor":
        table.compact(execute=False)
        table.upsert(LATER.set_column(3, "ts", pa.array([3, 3])))


def compacted(table: HudiTable) -> None:
    planned(table)
    if table.type == "mor":
        table.compact()


def clustered(table: HudiTable) -> None:
    table.bulk_insert(ROWS.set_column(0, "id", pa.array(["c", "d"])))
    table.cluster()


HISTORIES = (plain, updated, planned, compacted, clustered)
AXES: dict[str, dict[str, Any]] = {
    "simple": {},
    "custom": {"partition_by": ["city:simple"]},
    "consistent": {
        "index": "bucket",
        "options": {
            "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
            "hoodie.bucket.index.num.buckets": "2",
        },
    },
    "orc": {"options": {"hoodie.table.base.file.format": "ORC"}},
}


def cases() -> Iterator[Any]:
    for version in (6, 8, 9):
        for kind in ("cow", "mor"):
            for history in HISTORIES:
                yield pytest.param("simple", version, kind, history)
            yield from (
                pytest.param(axes, version, kind, updated)
                for axes in AXES
                if axes != "simple" and (axes != "consistent" or kind == "mor")
            )


def read_hudi(path: str) -> pa.Table:
    hudi = pytest.importorskip("hudi", "0.5.0")
    batches = list(hudi.HudiTableBuilder.from_base_uri(path).build().read())
    return pa.Table.from_batches(batches) if batches else ROWS.slice(0, 0)


def read_daft(path: str) -> pa.Table:
    daft = pytest.importorskip("daft")
    pytest.importorskip("sortedcontainers")
    return daft.read_hudi(path).to_arrow()


def rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.select(ROWS.schema.names).to_pylist()))


@pytest.mark.parametrize(("axes", "version", "kind", "history"), list(cases()))
@pytest.mark.parametrize(
    ("engine", "read"), [(RS_5, read_hudi), (DAFT, read_daft)], ids=["hudi", "daft"]
)
def test_engine_reads_as_predicted(
    engine: str,
    read: Callable[[str], pa.Table],
    axes: str,
    version: int,
    kind: Any,
    history: Callable[[HudiTable], None],
    tmp_path: Path,
) -> None:
    pytest.importorskip({"hudi-rs 0.5": "hudi", "Daft 0.7": "daft"}[engine])
    arguments = {"partition_by": "city", **AXES[axes]}
    table = pyhudi.create_table(
        tmp_path / "t", ROWS, key="id", order_by="ts", version=version, type=kind, **arguments
    )
    history(table)
    table = pyhudi.open_table(table.uri)
    answer = table.inspect.readers()[engine].answer
    try:
        found = "yes" if rows(read(table.uri)) == rows(table.to_arrow()) else "wrong"
    except Exception:  # noqa: BLE001 - each engine has its own errors
        found = "no"
    assert found == answer
