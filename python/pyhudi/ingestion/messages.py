"""Values of messages as rows: JSON texts, or Avro records with or without a registry."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.errors import ConfigError, StorageError
from pyhudi.ingestion.bad_records import BadRecord, without_bad_rows
from pyhudi.ingestion.file_reader import concat, rows_of_lines

_HEADER = 5
"""Bytes before an Avro record of a registry: a zero, and the schema's id."""


class SchemaRegistry:
    """The Avro schemas of a Confluent schema registry, by id."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._url, self._timeout_s = url.rstrip("/"), timeout_s
        if not self._url.startswith(("http://", "https://")):
            raise ConfigError(f"the registry {url!r} is not an http URL")
        self._schemas: dict[int, str] = {}

    def schema(self, schema_id: int) -> str:
        """Return a schema as JSON text. Raises `StorageError` if the registry does not have it."""
        if schema_id not in self._schemas:
            url = f"{self._url}/schemas/ids/{schema_id}"
            request = Request(url, headers={"Accept": "application/json"})  # noqa: S310 - checked
            try:
                with urlopen(request, timeout=self._timeout_s) as response:  # noqa: S310
                    self._schemas[schema_id] = json.load(response)["schema"]
            except (URLError, OSError, ValueError, KeyError) as error:
                msg = f"{url}: {error}"
                raise StorageError(msg, hint="Check registry=, and that it runs.") from error
        return self._schemas[schema_id]


class Messages:
    """Messages of a topic, in the order in which the client returned them."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._values: list[bytes] = []
        self._positions: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: bytes, partition: int, offset: int) -> None:
        """Add the value of a message."""
        self._values.append(value)
        self._positions.append((partition, offset))

    def json_rows(self, columns: pa.Schema | None, bad: list[BadRecord]) -> pa.Table:
        """Return the rows of JSON objects.

        Args:
            columns: types of columns, as far as the table has them.
            bad: gets the messages that are not rows.
        """
        # A line break outside of strings is a space to JSON.
        lines = pc.replace_substring(self._array(), b"\n", b" ")
        return rows_of_lines(lines, columns, self._location, bad)

    def avro_rows(
        self, schema: str | None, registry: SchemaRegistry | None, bad: list[BadRecord]
    ) -> pa.Table:
        """Return the rows of Avro records.

        Args:
            schema: schema of all records; None if they begin with the id of their schema.
            registry: has these schemas.
            bad: gets the messages that are not rows.
        """
        records = self._array()
        numbers = pa.array(range(len(records)), pa.int64())
        if registry is None:
            tables = [self._decode(schema or "", records, numbers, 0, bad)]
        else:
            headers = pc.binary_slice(records, 0, _HEADER).cast(pa.binary())
            tables = []
            for header in headers.unique():
                chosen = pc.indices_nonzero(pc.equal(headers, header)).cast(pa.int64())
                value = header.as_py()
                if len(value) < _HEADER or value[0]:
                    reason = "the message does not begin with the id of a schema"
                    bad += (self._bad(number, reason) for number in chosen.to_pylist())
                    continue
                text = registry.schema(int.from_bytes(value[1:], "big"))
                tables.append(self._decode(text, records.take(chosen), chosen, _HEADER, bad))
        return concat(tables)

    def _decode(
        self,
        schema: str,
        records: pa.Array[Any],
        numbers: pa.Array[Any],
        skip: int,
        bad: list[BadRecord],
    ) -> pa.Table:
        """Return the rows of records of one schema. numbers: those of the messages."""

        def convert(start: int, end: int) -> pa.Table:
            return _native.avro_rows(schema, records.slice(start, end - start), skip=skip)

        def reject(row: int, reason: str) -> None:
            bad.append(self._bad(numbers[row].as_py(), reason))

        _native.arrow_schema(schema)  # a wrong schema is not the fault of the records
        return concat(without_bad_rows(len(records), convert, reject))

    def _array(self) -> pa.Array[Any]:
        return pa.array(self._values, pa.large_binary())

    def _location(self, row: int) -> str:
        partition, offset = self._positions[row]
        return f"{self._topic},{partition}:{offset}"

    def _bad(self, row: int, reason: str) -> BadRecord:
        return BadRecord(reason, self._location(row), self._values[row].hex())
