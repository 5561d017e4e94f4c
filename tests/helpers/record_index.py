"""Rows for golden tables with a record index; what the index says, beside where the rows are."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.config.table_config import TableConfig
from pyhudi.metadata.partitioned_record_index import is_partitioned
from pyhudi.metadata.reader import MetadataTable
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from tests.helpers.table_builder import TableBuilder

CITIES = ("lisbon", "osaka", "quito", "oslo")
"""Every four thousand keys make a partition's run."""
TABLE = TableBuilder(
    {
        "id": (pa.string(), "w{:07}".format),
        "name": (pa.string(), "name {}".format),
        "age": (pa.int32(), lambda number: number % 90),
        "amount": (pa.decimal128(10, 2), lambda number: Decimal(number % 100)),
        "ts": (pa.int64(), 1),
        "city": (pa.string(), lambda number: CITIES[number // 4000 % 4]),
    }
)

Place = tuple[str, str, str]
"""Record key, partition path and file id."""


def indexed(base: Path) -> list[Place]:
    """Everything that the record index says, sorted."""
    storage = Storage(str(base))
    config = TableConfig.load(storage, SystemClock())
    metadata = MetadataTable(storage, config, Timeline.load(storage, config))
    paths = metadata.data_partitions() if is_partitioned(storage, config) else [None]
    found = [
        place
        for path in paths
        for group in metadata.file_groups(RECORD_INDEX, path)
        for place in group.open().locations().to_pylist()
    ]
    return sorted((one["key"], one["partition"], one["file_id"]) for one in found)


def stored(base: Path) -> list[Place]:
    """Where the table's rows are, sorted."""
    rows = pyhudi.open_table(base).scan(meta_fields=True).to_arrow()
    return sorted(
        zip(
            rows.column("_hoodie_record_key").to_pylist(),
            rows.column("_hoodie_partition_path").to_pylist(),
            [name.split("_")[0] for name in rows.column("_hoodie_file_name").to_pylist()],
            strict=True,
        )
    )


def check_index(base: Path, said: str = "") -> None:
    """The index has the place of every row, and nothing else."""
    assert indexed(base) == stored(base), said


def opened(base: Path, **options: Any) -> HudiTable:
    return pyhudi.open_table(base, options={"hoodie.parquet.small.file.limit": "0", **options})


def content(base: Path) -> pa.Table:
    scanned = pyhudi.open_table(base).scan(columns=["id", "city", "ts"], meta_fields=True)
    names = ["id", "city", "ts", "_hoodie_partition_path"]
    return scanned.to_arrow().select(names).sort_by("id")
