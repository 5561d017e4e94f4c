"""Rows as the payload classes of Hudi take them: columns, options, and what decides among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

MODEL = "org.apache.hudi.common.model."
FLAG = "_hoodie_is_deleted"
LEFT_OUT = "__debezium_unavailable_value"
Row = dict[str, Any]


@dataclass(frozen=True)
class Payload:
    """One class: its name, its columns besides `id` and `name`, and how a row says when it was."""

    name: str
    columns: dict[str, pa.DataType]
    ordering: str

    @property
    def schema(self) -> pa.Schema:
        """As Arrow."""
        return pa.schema({"id": pa.string(), "name": pa.string(), **self.columns}.items())

    @property
    def ddl(self) -> str:
        """As Spark has it."""
        kinds = {
            pa.string(): "string",
            pa.int64(): "long",
            pa.int32(): "int",
            pa.bool_(): "boolean",
        }
        return ", ".join(f"{field.name} {kinds[field.type]}" for field in self.schema)

    def row(self, key: str, name: str, at: int, *, delete: bool = False) -> Row:
        """A row of a key. at: what decides which of two is newer."""
        row: Row = dict.fromkeys(self.schema.names) | {"id": key, "name": name}
        row[self.ordering] = f"{at // 100}.{at % 100}" if self.ordering == "_event_seq" else at
        if "Op" in row:
            row["Op"] = "D" if delete else "U"
        if FLAG in row:
            row[FLAG] = delete
        if "_change_operation_type" in row:
            row["_change_operation_type"] = "d" if delete else "u"
        return row

    def table(self, rows: list[Row]) -> pa.Table:
        """Rows as Arrow."""
        return pa.Table.from_pylist(rows, schema=self.schema)


_TEXT, _LONG, _INT = pa.string(), pa.int64(), pa.int32()
_EVENT = {
    "_change_operation_type": _TEXT,
    "_upstream_event_processed_ts_ms": _LONG,
    "_event_origin_ts_ms": _LONG,
}
_BINLOG = {"_event_bin_file": _TEXT, "_event_pos": _LONG, "_event_row": _INT, "_event_seq": _TEXT}
_WAL = {"_event_tx_id": _LONG, "_event_lsn": _LONG, "_event_xmin": _LONG}
PAYLOADS = {
    "partial": Payload(MODEL + "PartialUpdateAvroPayload", {"ts": _LONG, FLAG: pa.bool_()}, "ts"),
    "dms": Payload(MODEL + "AWSDmsAvroPayload", {"ts": _LONG, "Op": _TEXT}, "ts"),
    "mysql": Payload(
        MODEL + "debezium.MySqlDebeziumAvroPayload", {**_EVENT, **_BINLOG}, "_event_seq"
    ),
    "postgres": Payload(
        MODEL + "debezium.PostgresDebeziumAvroPayload", {**_EVENT, **_WAL}, "_event_lsn"
    ),
}


def stored(payload: Payload) -> list[Row]:
    """The rows that the table has at first."""
    keys = (
        "late delete",
        "left out",
        "late and left out",
        "twice",
        "twice deleted",
        "late delete of new",
        "tie",
        "stays",
    )
    rows = [payload.row(key, "stored", 1000) for key in keys]
    return [*rows, payload.row("was left out", LEFT_OUT, 1000)]


def changed(payload: Payload) -> list[Row]:
    """What one write changes of them: late rows, rows of one key, values that were left out."""
    row = payload.row
    return [
        row("late delete", "gone", 998, delete=True),
        row("left out", LEFT_OUT, 1100),
        row("late and left out", LEFT_OUT, 900),
        row("was left out", "late", 900),
        row("twice", "newer", 1300),
        row("twice", "older", 1200),
        row("twice deleted", "gone", 1099, delete=True),
        row("twice deleted", "newer", 1102),
        row("late delete of new", "newer", 1302),
        row("late delete of new", "gone", 1299, delete=True),
        row("tie", "equal", 1000),
        row("new", "newer", 1102),
        row("new", "older", 1099),
        row("new and gone", "gone", 1102, delete=True),
        row("new and gone", "older", 1099),
    ]
