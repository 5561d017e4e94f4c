"""Hudi's Java client in a process of its own: it writes without Spark and without Flink."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import pyhudi
from pyhudi import HudiTable
from tests.helpers.java_lines import JavaLines
from tests.helpers.oracle.client import oracle_home

RELEASES = ("1.2.0", "1.2.1")
"""Releases of which Maven's repository has the client and its parts; it has none of 1.0.2."""

Options = Mapping[str, str]
NO_OPTIONS: Options = {}

_HERE = Path(__file__).parent
_PAYLOAD = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"


class JavaClient:
    """One release of the client, from `__init__` to `close`.

    Hudi's timeline service, of which there is no 1.2.1, comes from the bundle of 1.2.0.
    """

    def __init__(self, release: str, folder: Path) -> None:
        """folder: of its log."""
        key = hashlib.sha256((_HERE / "pom.xml").read_bytes()).hexdigest()[:12]
        jars = oracle_home() / f"java-client-{release}-{key}"
        if not jars.is_dir():
            msg = f"no {jars}: run `make java-client`"
            raise RuntimeError(msg)
        self._process = JavaLines(_HERE / "JavaClient.java", folder, f"{jars}/*")

    def create(self, base: Path, schema: str, properties: Mapping[str, str]) -> HudiTable:
        """Create a table without commits. schema: in Avro. properties: of `hoodie.properties`."""
        options = {"hoodie.table.create.schema": schema, **properties}
        self._process.ask({"base": f"{base}", "do": "create", "options": options, "schema": schema})
        return pyhudi.open_table(base)

    def insert(
        self, table: HudiTable, rows: pa.Table, metadata: Options | None = None
    ) -> str | None:
        """Commit rows without a search for stored keys, and return the instant.

        metadata: the job's options of the metadata table, by default those of its partitions.
        """
        return self._ask(table, "insert", metadata, rows=rows.to_pylist())

    def upsert(
        self,
        table: HudiTable,
        rows: pa.Table,
        metadata: Options | None = None,
        options: Options = NO_OPTIONS,
    ) -> str | None:
        """Commit rows, and return the instant. metadata: as of `insert`. options: further ones."""
        return self._ask(table, "upsert", metadata, options, rows=rows.to_pylist())

    def delete(self, table: HudiTable, rows: pa.Table) -> str | None:
        """Delete rows with the keys of these, and return the instant."""
        return self._ask(table, "delete", rows=rows.to_pylist())

    def compact(self, table: HudiTable) -> str | None:
        """Plan and execute a compaction; return its instant, None without log files."""
        return self._ask(table, "compact")

    def run_compaction(self, table: HudiTable, instant: str) -> str | None:
        """Execute a compaction that another writer has planned."""
        return self._ask(table, "run_compaction", instant=instant)

    def cluster(self, table: HudiTable) -> str | None:
        """Plan and execute a clustering; return its instant."""
        return self._ask(table, "cluster")

    def clean(self, table: HudiTable, metadata: Options | None = None) -> str | None:
        """Remove files of old slices; return the instant, None without such files.

        metadata: as of `insert`.
        """
        return self._ask(table, "clean", metadata)

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def _ask(
        self,
        table: HudiTable,
        do: str,
        metadata: Options | None = None,
        options: Options = NO_OPTIONS,
        **request: Any,
    ) -> str | None:
        table.refresh()
        more = {
            "base": table.uri,
            "do": do,
            "options": {
                **_options(table),
                **(_metadata(table) if metadata is None else metadata),
                **options,
            },
            "schema": table.state.schema.avro,
        }
        instant: str | None = self._process.ask({**request, **more})["instant"]
        return instant


def _options(table: HudiTable) -> dict[str, str]:
    config = table.config
    return {
        "hoodie.write.table.version": str(table.version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.datasource.write.recordkey.field": ",".join(config.record_key_fields),
        "hoodie.datasource.write.partitionpath.field": ",".join(config.partition_fields),
        "hoodie.datasource.write.hive_style_partitioning": str(config.hive_style).lower(),
        "hoodie.datasource.write.keygenerator.type": config.key_generator,
        "hoodie.datasource.write.payload.class": _PAYLOAD,
        "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
        "hoodie.index.type": "SIMPLE",
        # Rows that it adds to a small file replace the log files of its slice.
        "hoodie.parquet.small.file.limit": "0" if config.is_merge_on_read else "104857600",
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.clean.automatic": "false",
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.archive.automatic": "false",
    }


def _metadata(table: HudiTable) -> Options:
    """The client drops partitions of the metadata table that its job does not name, and fails."""
    partitions = table.config.metadata_partitions
    return {
        "hoodie.metadata.enable": str(bool(partitions)).lower(),
        "hoodie.metadata.index.column.stats.enable": str("column_stats" in partitions).lower(),
        "hoodie.metadata.global.record.level.index.enable": str(
            "record_index" in partitions
        ).lower(),
    }
