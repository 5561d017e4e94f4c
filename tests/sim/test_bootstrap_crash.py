"""Crashes of a write to a bootstrapped table: readers, the next writer and the source files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.admin import run_service
from pyhudi.config.clustering_options import ClusteringOptions
from pyhudi.config.compaction_options import CompactionOptions
from pyhudi.services.clustering import ClusteringRequest
from pyhudi.services.table_compaction import CompactionRequest
from pyhudi.storage.storage import Storage
from pyhudi.write import upsert as operations
from tests.helpers.tables import unpack
from tests.sim.crash import SMALL_BLOOM, Handle, leftovers, rows_read
from tests.sim.states import recorded

OPTIONS = {**SMALL_BLOOM, "hoodie.parquet.small.file.limit": "0"}
ALL = ("v6_cow_bootstrap_metadata", "v6_mor_bootstrap_compacted", "v8_mor_bootstrap_metadata",
       "v9_cow_bootstrap_metadata")  # fmt: skip

pytestmark = pytest.mark.slow


def change(base: Path, name: str) -> pa.Table:
    """Every row of partitions with a skeleton, under another name."""
    tasks = pyhudi.open_table(str(base)).scan().tasks
    bases = [task.slice.base for task in tasks if task.slice.base]
    cities = [base.partition.rpartition("=")[2] for base in bases if base.source]
    rows = pyhudi.open_table(str(base)).scan().to_arrow()
    rows = rows.filter(pc.is_in(rows["city"], value_set=pa.array(cities)))
    assert rows.num_rows
    column = pa.array([name] * rows.num_rows)
    time = pa.array([1_000_000] * rows.num_rows, rows.schema.field("ts").type)
    rows = rows.set_column(rows.schema.get_field_index("name"), "name", column)
    return rows.set_column(rows.schema.get_field_index("ts"), "ts", time)


def upsert(storage: Storage, rows: pa.Table) -> None:
    operations.upsert(Handle(storage, OPTIONS), rows)


def delete(storage: Storage, rows: pa.Table) -> None:
    operations.delete_keys(Handle(storage, OPTIONS), rows.select(["id"]))


def cluster(storage: Storage, _rows: pa.Table) -> None:
    options = ClusteringOptions(sort_columns=("name",))
    run_service.cluster(Handle(storage, OPTIONS), ClusteringRequest(), options)


def compact(storage: Storage, _rows: pa.Table) -> None:
    run_service.compact(Handle(storage, OPTIONS), CompactionRequest(), CompactionOptions())


CASES = [
    (table, write)
    for table in ALL
    for write in (upsert, delete, cluster, compact)
    if write is not compact or "_mor_" in table
]


@pytest.mark.parametrize(
    ("name", "write"), CASES, ids=lambda one: one if isinstance(one, str) else one.__name__
)
def test_bootstrapped_upsert_crash_loses_no_rows(
    name: str, write: Callable[[Storage, pa.Table], None], tmp_path: Path
) -> None:
    start = unpack(name, tmp_path)
    data = change(start, "changed")
    before = rows_read(start, "false")
    sources = source_bytes(start)
    whole = recorded(start, tmp_path, lambda storage: write(storage, data))
    after = rows_read(whole.base, "false")
    for n, base in whole.deaths(one_in=2):
        for metadata in ("true", "false"):
            assert rows_read(base, metadata) in (before, after), f"after change {n}"
        # Whoever comes next writes the same, whether the first one got through or not.
        write(Storage(str(base)), data)
        upsert(Storage(str(base)), data)
        ids = set(data["id"].to_pylist())
        kept = [row for row in before if row["id"] not in ids]
        wanted = sorted([*kept, *data.to_pylist()], key=lambda row: str(row["id"]))
        assert rows_read(base, "true") == rows_read(base, "false") == wanted, f"after change {n}"
        assert leftovers(base) == [], f"after change {n}"
        assert not pyhudi.open_table(base).check(deep=True).findings, f"after change {n}"
        assert source_bytes(start) == sources, f"after change {n}"


def source_bytes(base: Path) -> dict[str, bytes]:
    folder = base.with_name(f"{base.name}.source")
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}
