"""The table of the cluster's tests, and the rows and files that it should have."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyhudi

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("v", pa.int64())])
PARTITIONS = 3
_LEFTOVER = re.compile(r"/\.heartbeat/|/\.temp/|\.tmp$")


@dataclass
class ClusterTable:
    """A table and a model of its rows."""

    base: Path
    type_: Literal["cow", "mor"]
    version: Literal[6, 8, 9] = 9
    model: dict[str, int] = field(default_factory=dict)
    """The value of each key."""

    def create(self) -> None:
        """Create the table with rows that the local engine writes."""
        pyhudi.create_table(
            self.base,
            SCHEMA,
            key="id",
            partition_by="city",
            order_by="v",
            type=self.type_,
            version=self.version,
        )
        self.upsert_locally(0, 300, 1)

    def upsert_locally(self, first: int, stop: int, v: int) -> None:
        """Upsert keys without Spark, as the next writer does."""
        keys = [_key(n) for n in range(first, stop)]
        cities = [f"c{n % PARTITIONS}" for n in range(first, stop)]
        rows = pa.table({"id": keys, "city": cities, "v": [v] * len(keys)}, schema=SCHEMA)
        pyhudi.open_table(self.base).upsert(rows)
        self.expect(first, stop, v)

    def expect(self, first: int, stop: int, v: int) -> None:
        """Add rows to the model."""
        self.model |= {_key(n): v for n in range(first, stop)}

    def check(self) -> None:
        """Compare the rows with the model, and the files with the timeline.

        The rows are read twice: with the metadata table's list of files, and with storage's.
        """
        self.check_rows()
        table = pyhudi.open_table(self.base)
        result = table.check(deep=True)
        assert result.findings == (), result.findings
        assert self.data_files() - self.committed_files() == set()
        assert self.leftovers() == set()

    def check_with_next_write(self) -> None:
        """Compare the table with the model, before and after the next write."""
        self.check()
        self.upsert_locally(450, 600, 9)
        self.check()

    def check_rows(self) -> None:
        """Compare the rows with the model."""
        for listed in ({}, {"hoodie.metadata.enable": "false"}):
            rows = pyhudi.open_table(self.base, options=listed).scan(["id", "v"]).to_arrow()
            found = dict(zip(*rows.to_pydict().values(), strict=True))
            assert len(found) == rows.num_rows, f"keys are there twice; options {listed}"
            assert found == self.model, f"rows differ from the model; options {listed}"

    def data_files(self) -> set[str]:
        """Return the base and log files on storage, without those of the metadata table."""
        return {
            str(file.relative_to(self.base))
            for file in self.base.rglob("*")
            if file.is_file()
            and ".hoodie" not in file.relative_to(self.base).parts
            and not file.name.startswith(".hoodie_partition_metadata")
            and not file.name.endswith(".crc")
        }

    def committed_files(self) -> set[str]:
        """Return the files that the commits of the timeline name."""
        timeline = pyhudi.open_table(self.base).state.timeline
        return {path for one in timeline.commits for path in timeline.commit_metadata(one).paths}

    def leftovers(self) -> set[str]:
        """Return heartbeats, markers and staged files, of the metadata table, too."""
        files = (path for path in self.base.rglob("*") if path.is_file())
        paths = (str(file.relative_to(self.base)) for file in files)
        return {path for path in paths if _LEFTOVER.search(path)}


def _key(number: int) -> str:
    return f"k{number:05d}"


def new_table(
    folder: Path, type_: Literal["cow", "mor"] = "mor", version: Literal[6, 8, 9] = 9
) -> ClusterTable:
    """Create a table with 300 rows."""
    table = ClusterTable(folder / "table", type_, version)
    table.create()
    return table


def rows_of(spark: SparkSession, first: int, stop: int, v: int, parts: int = 2) -> DataFrame:
    """Return the rows of an upsert as a DataFrame."""
    city: Any = sf.concat(sf.lit("c"), sf.col("id") % PARTITIONS)
    return spark.range(first, stop, 1, parts).select(
        sf.format_string("k%05d", sf.col("id")).alias("id"),
        city.alias("city"),
        sf.lit(v).cast("long").alias("v"),
    )
