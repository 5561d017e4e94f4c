"""One table that Apache Hudi bootstrapped, which pyhudi and Hudi write to and read alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.slices.bootstrap import SKELETON_INSTANT
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.rows import canonical, difference

Kind = Literal["cow", "mor"]
Row = dict[str, Any]

CITIES = ("osaka", "quito", "lima")
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("n", pa.int32()),
        ("ts", pa.int32()),
        ("city", pa.string()),
    ]
)
DDL = "id string, name string, n int, ts int, city string"
_SELECTORS = "org.apache.hudi.client.bootstrap.selector."
METADATA_ONLY = {"hoodie.bootstrap.mode.selector": f"{_SELECTORS}MetadataOnlyBootstrapModeSelector"}
MIXED = {
    "hoodie.bootstrap.mode.selector": f"{_SELECTORS}BootstrapRegexModeSelector",
    "hoodie.bootstrap.mode.selector.regex": ".*osaka.*",
    "hoodie.bootstrap.mode.selector.regex.mode": "METADATA_ONLY",
}
# 1.x cannot bootstrap with statistics of columns.
NO_STATISTICS = {
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.index.partition.stats.enable": "false",
}
KEPT = {"hoodie.parquet.small.file.limit": "0", "hoodie.clean.automatic": "false"}
"""Skeletons that no row goes to stay."""


def row(number: int, **new: Any) -> Row:
    """A row as the source has it, but for what is new."""
    return {
        "id": f"k{number:03}",
        "name": f"n{number}",
        "n": number,
        "ts": 100,
        "city": CITIES[number % 3],
        **new,
    }


@dataclass
class Bootstrapped:
    """The table, its options for Hudi, and what its rows are."""

    hudi: HudiOracle
    base: Path
    kind: Kind = "cow"
    partitioned: bool = True
    modes: Mapping[str, str] = field(default_factory=lambda: METADATA_ONLY)
    count: int = 12
    rows: dict[str, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Has Spark write the source, in folders by city, and Hudi bootstrap it."""
        self.rows = {one["id"]: one for one in map(row, range(self.count))}
        values = ", ".join(
            f"('{r['id']}', '{r['name']}', {r['n']}, {r['ts']}, '{r['city']}')"
            for r in self.rows.values()
        )
        by = "PARTITIONED BY (city)" if self.partitioned else ""
        made = (
            f"CREATE TABLE bootstrap_source USING parquet {by} LOCATION '{self.source}' AS "
            f"SELECT /*+ REPARTITION(1) */ * FROM VALUES {values} AS t(id, name, n, ts, city)"
        )
        self.hudi.sql(self.base, [made, "DROP TABLE bootstrap_source"])
        options = {
            **self.options,
            **self.modes,
            "hoodie.bootstrap.base.path": str(self.source),
            "hoodie.bootstrap.parallelism": "1",
        }
        self.hudi.write(self.base, rows=[], schema="", operation="bootstrap", options=options)

    @property
    def source(self) -> Path:
        return self.base.with_name(f"{self.base.name}.source")

    @property
    def options(self) -> dict[str, str]:
        generator = "SimpleKeyGenerator" if self.partitioned else "NonpartitionedKeyGenerator"
        kinds = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
        return {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.table.type": kinds[self.kind],
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "city" if self.partitioned else "",
            "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.embed.timeline.server": "false",
            "hoodie.compact.inline": "false",
            "hoodie.upsert.shuffle.parallelism": "2",
            "hoodie.delete.shuffle.parallelism": "2",
            "hoodie.index.bloom.num_entries": "64",
            **NO_STATISTICS,
            **KEPT,
        }

    @property
    def table(self) -> HudiTable:
        """Opened anew."""
        return pyhudi.open_table(str(self.base), options=KEPT)

    # ------------------------------------------------------------ writes

    def hudi_writes(self, operation: str, rows: Iterable[Row]) -> None:
        given = list(rows)
        self.hudi.write(
            self.base, rows=given, schema=DDL, operation=operation, options=self.options
        )
        self._took(operation, given)

    def pyhudi_writes(self, operation: str, rows: Iterable[Row]) -> str:
        """The commit's instant."""
        given = list(rows)
        data = pa.Table.from_pylist(given, SCHEMA)
        if operation == "delete":
            written = self.table.delete_keys(data.select(["id", "city"]))
        else:
            written = getattr(self.table, operation)(data)
        self._took(operation, given)
        return str(written.instant)

    def _took(self, operation: str, rows: Iterable[Row]) -> None:
        for one in rows:
            if operation == "delete":
                del self.rows[one["id"]]
            else:
                self.rows[one["id"]] = one

    # ------------------------------------------------------------ looking

    def check(self, severities: Collection[str] = ("error", "warning")) -> None:
        """Both read the rows, with Hudi's columns, and the files hold what they should.

        severities: of findings that there must not be.
        """
        table = self.table
        ours = table.scan(meta_fields=True).to_arrow().to_pylist()
        plain = [{name: one[name] for name in SCHEMA.names} for one in ours]
        assert _difference(plain, self.rows.values()) is None
        for metadata in (True, False):
            theirs = self.hudi.read(self.base, meta=True, metadata=metadata)["rows"]
            assert _difference(_unnamed(theirs), _unnamed(ours)) is None
        found = table.check(deep=True)
        assert not [one for one in found.findings if one.severity in severities], str(found)

    @property
    def skeletons(self) -> int:
        """How many slices have one."""
        bases = [task.slice.base for task in self.table.scan().tasks]
        return sum(base is not None and base.instant == SKELETON_INSTANT for base in bases)

    def stored(self, column: str) -> set[Any]:
        """The values in whole base files, whoever wrote them."""
        found = set()
        for path in self.base.rglob("*.parquet"):
            if f"_{SKELETON_INSTANT}." not in path.name and ".hoodie" not in path.parts:
                found |= set(pq.ParquetFile(path).read([column])[column].to_pylist())
        return found


def _unnamed(rows: Iterable[Row]) -> list[Row]:
    """Hudi 1.x names another log file in tables of version 6: the name is not compared."""
    return [{k: v for k, v in one.items() if k != "_hoodie_file_name"} for one in rows]


def _difference(one: Iterable[Row], other: Iterable[Row]) -> str | None:
    return difference(map(canonical, one), map(canonical, other))
