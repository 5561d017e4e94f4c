"""Hive's readers: Hudi's input formats with Hive's SerDe, for entries that pyhudi registers.

No Hive runs: what its tasks do with the entry of a partition is done by a small program.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyhudi import HudiTable
from pyhudi.catalog.registration import Registration, describe_table, registrations
from pyhudi.config.catalog_sync_options import SyncOptions
from tests.helpers.java_lines import JavaLines

_SOURCE = Path(__file__).with_name("HiveReader.java")


class HiveReader:
    """The program's process, from `__init__` to `close`."""

    def __init__(self, folder: Path) -> None:
        """folder: of its log."""
        self._process = JavaLines(_SOURCE, folder)

    def read(self, table: HudiTable, *, realtime: bool) -> list[dict[str, Any]]:
        """Rows by the registration for log files, or by the one for base files only."""
        options = SyncOptions.of(table.options)
        entry = describe_table(
            table.state, _registration(table, options, realtime=realtime), options, table.uri, {}
        )
        names = [column.name for column in entry.columns]
        keys = entry.partition_keys
        request: dict[str, Any] = {
            "format": entry.input_format,
            "columns": [[column.name, column.type] for column in entry.columns],
        }
        if keys:
            request["partition_columns"] = "/".join(key.name for key in keys)
            request["partition_types"] = ":".join(key.type for key in keys)
        rows = []
        for path, values in _partitions(table).items():
            answer = self._process.ask({**request, "partition": f"{table.uri}/{path}"})
            rows += [{**dict(zip(names, row, strict=True)), **values} for row in answer["rows"]]
        return rows

    def close(self) -> None:
        """End the process."""
        self._process.close()


def _registration(table: HudiTable, options: SyncOptions, *, realtime: bool) -> Registration:
    return next(one for one in registrations(table.state, options) if one.realtime is realtime)


def _partitions(table: HudiTable) -> Mapping[str, Mapping[str, str]]:
    """By path the values of the partition columns, as text."""
    fields = table.config.partition_fields
    if not fields:
        return {"": {}}
    paths = table.scan(["_hoodie_partition_path"]).to_arrow().column(0).unique().to_pylist()
    return {
        path: dict(zip(fields, (level.split("=")[-1] for level in path.split("/")), strict=True))
        for path in paths
    }
