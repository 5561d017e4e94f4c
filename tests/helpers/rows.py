"""Rows as text that can be compared with what Apache Hudi answered through the oracle.

The encoding is the oracle's (see the top of `oracle/hudi_oracle.py`); rows have no order.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

Encoder = Callable[[Any], Any]


def canonical(row: Mapping[str, Any]) -> str:
    """One text for one row, whatever the order of its columns."""
    return json.dumps(row, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(texts: Iterable[str]) -> str:
    """SHA-256 over the sorted canonical rows, one a line: the oracle's `sha256`."""
    state = hashlib.sha256()
    for text in sorted(texts):
        state.update(text.encode())
        state.update(b"\n")
    return state.hexdigest()


def encode_table(table: pa.Table, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The rows of an Arrow table with values as the oracle writes them."""
    names = list(columns) if columns is not None else list(table.column_names)
    missing = [name for name in names if name not in table.column_names]
    if missing:
        message = f"columns missing: {missing}; there are {table.column_names}"
        raise AssertionError(message)
    encoded = [_encode_column(table.column(name)) for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*encoded, strict=True)]


def canonical_rows(data: Any, columns: Sequence[str] | None = None) -> list[str]:
    """The rows of any Arrow data, each as `canonical` has it."""
    return [canonical(row) for row in encode_table(pa.table(data), columns)]


def by_id(data: Any) -> list[dict[str, Any]]:
    """The rows of any Arrow data, in the order of their column `id`."""
    rows: list[dict[str, Any]] = pa.table(data).to_pylist()
    return sorted(rows, key=lambda row: str(row["id"]))


def difference(mine: Iterable[str], wanted: Iterable[str]) -> str | None:
    """How two collections of canonical rows differ, None when they are the same."""
    ours, theirs = Counter(mine), Counter(wanted)
    if ours == theirs:
        return None
    extra, lacking = sorted((ours - theirs).elements()), sorted((theirs - ours).elements())
    lines = [f"{sum(ours.values())} rows, Hudi has {sum(theirs.values())}"]
    lines += [f"  only here: {text}" for text in extra[:3]]
    lines += [f"  only Hudi: {text}" for text in lacking[:3]]
    return "\n".join(lines)


def _encode_column(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit != "us":
        kind = pa.timestamp("us", kind.tz)
        column = column.cast(kind, safe=False)
    encode = _encoder(kind)
    return [encode(value) for value in column.to_pylist()]


def _encoder(kind: pa.DataType) -> Encoder:
    for applies, make in _ENCODERS:
        if applies(kind):
            return _unless_null(make(kind))
    return _same


def _unless_null(encode: Encoder) -> Encoder:
    return lambda value: None if value is None else encode(value)


def _same(value: Any) -> Any:
    return value


def _float(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _timestamp(kind: pa.DataType) -> Encoder:
    def encode(value: datetime.datetime) -> str:
        if kind.tz is None:
            return value.isoformat(timespec="microseconds")
        moment = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return moment.isoformat(timespec="microseconds") + "Z"

    return encode


def _list(kind: pa.DataType) -> Encoder:
    encode = _encoder(kind.value_type)
    return lambda values: [encode(value) for value in values]


def _map(kind: pa.DataType) -> Encoder:
    key, item = _encoder(kind.key_type), _encoder(kind.item_type)
    if pa.types.is_string(kind.key_type) or pa.types.is_large_string(kind.key_type):
        return lambda pairs: {k: item(v) for k, v in dict(pairs).items()}
    return lambda pairs: sorted(
        ([key(k), item(v)] for k, v in pairs), key=lambda pair: json.dumps(pair[0])
    )


def _struct(kind: pa.DataType) -> Encoder:
    fields = {field.name: _encoder(field.type) for field in kind}
    return lambda value: {name: encode(value[name]) for name, encode in fields.items()}


def _is_binary(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    )


_ENCODERS: Sequence[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], Encoder]]] = (
    (pa.types.is_dictionary, lambda kind: _encoder(kind.value_type)),
    (pa.types.is_floating, lambda _: _float),
    (pa.types.is_decimal, lambda kind: lambda value: format(value, f".{kind.scale}f")),
    (pa.types.is_date, lambda _: datetime.date.isoformat),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_time, lambda _: str),
    (_is_binary, lambda _: lambda value: bytes(value).hex()),
    (pa.types.is_map, _map),
    (pa.types.is_list, _list),
    (pa.types.is_large_list, _list),
    (pa.types.is_fixed_size_list, _list),
    (pa.types.is_struct, _struct),
)
