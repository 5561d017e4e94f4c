"""Partition paths as values of the partition columns, as far as a path can tell.

Building paths is the writer's part. A path does not always lead back to the value: times in some
format, null markers, slashes within values. What is not certain is left out here, so that the value
is read from the files, and a caller who prunes by it keeps such a partition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as at

from pyhudi.config.property_names import PARTITION_FIELDS
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.schema.key_generator import NULL_PARTITION
from pyhudi.schema.predicate_floats import order_key
from pyhudi.schema.predicate_literals import OPERATORS
from pyhudi.schema.predicates import Conjunct

_OLD_NULL_PARTITION = "default"
_LAST_VERSION_WITH_OLD_NULL = 4
_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
_PLAIN_GENERATORS = frozenset({"SIMPLE", "SIMPLE_AVRO", "COMPLEX", "COMPLEX_AVRO"})
_TIMESTAMP_GENERATORS = frozenset({"TIMESTAMP", "TIMESTAMP_AVRO"})
_CUSTOM_GENERATORS = frozenset({"CUSTOM", "CUSTOM_AVRO"})
_TIME_FORMAT = "hoodie.keygen.timebased.output.dateformat"


def path_values(
    config: TableConfig, schema: pa.Schema, path: str, *, incremental: bool = False
) -> dict[str, pa.Scalar]:
    """Values of the partition columns that a read takes from the path and not from the files.

    So does Hudi 1.2.0 for every level but times: an empty text is in the null partition and reads
    as null, a record that a global index left in its old partition reads with the old value. Left
    out, to be read from the files, are columns whose value the path does not tell for certain.

    incremental: as an incremental query gives them, which does not decode URL-encoded values.

    Raises `UnsupportedTableFeature` when a path does not tell a value that the files lack.
    """
    found = _from_path(config, schema, path, incremental=incremental)
    if config.drop_partition_columns:
        _check_all_found(config, schema, path, found)
    return found


def partition_filter(
    config: TableConfig,
    schema: pa.Schema,
    conjuncts: Sequence[Conjunct],
    *,
    incremental: bool = False,
) -> Callable[[str], bool] | None:
    """A test that is false for partitions without any row that meets the conjuncts.

    It looks at the very values that `path_values` gives for a column, so it agrees with the rows
    that are read. None when no conjunct is about a partition column whose value a path can tell.
    """
    told = _fields_in_path(config, schema)
    tests = [
        (name, _test(op, values.to_pylist())) for name, op, values in conjuncts if name in told
    ]
    if not tests:
        return None

    def may_match(path: str) -> bool:
        values = _from_path(config, schema, path, incremental=incremental)
        return all(test(values[name].as_py()) for name, test in tests if name in values)

    return may_match


def text_columns(config: TableConfig, schema: pa.Schema) -> tuple[str, ...]:
    """Columns that a scan gives as text although the files hold another type.

    Hudi 1.2.0 reads the partition columns of a timestamp key generator so: as the stored value
    turned into text, not as the text in the path.
    """
    if config.key_generator not in _TIMESTAMP_GENERATORS:
        return ()
    found = [schema.field(name) for name in config.partition_fields if name in schema.names]
    return tuple(field.name for field in found if not _is_text(field.type))


def _test(op: str, values: Sequence[Any]) -> Callable[[Any], bool]:
    keys = list(map(order_key, values))
    if op == "in":
        among = frozenset(keys)
        return lambda value: value is not None and order_key(value) in among
    compare = OPERATORS[op]
    # A comparison with null is no match.
    return lambda value: value is not None and compare(order_key(value), keys[0])


def _from_path(
    config: TableConfig, schema: pa.Schema, path: str, *, incremental: bool
) -> dict[str, pa.Scalar]:
    told = _fields_in_path(config, schema)
    found = {}
    for name, text in (_texts(config, path) or {}).items() if told else ():
        if name not in told:
            continue
        decoded = _unescape(text) if config.url_encode and not incremental else text
        scalar = _scalar(config, decoded, schema.field(name).type)
        if scalar is not None:
            found[name] = scalar
    return found


def _fields_in_path(config: TableConfig, schema: pa.Schema) -> frozenset[str]:
    """The partition fields of the schema whose values stand in the path as they are.

    Times do not, but where the files lack them, the path's text is all there is.
    """
    fields = [name for name in config.partition_fields if name in schema.names]
    times = _times(config)
    if config.drop_partition_columns:
        typed = fields if times is None else times
        return frozenset(n for n in fields if n not in typed or _is_text(schema.field(n).type))
    # Of dates with slashes Hudi's own writers make other paths beside these two.
    spelled_otherwise = config.slash_separated_dates and (config.hive_style or config.url_encode)
    if times is None or spelled_otherwise:
        return frozenset()
    return frozenset(name for name in fields if name not in times)


def _times(config: TableConfig) -> frozenset[str] | None:
    """The partition fields that stand in the path as times; None when the table does not say.

    Of a custom generator it keeps the names alone up to version 6.
    """
    if config.key_generator in _PLAIN_GENERATORS:
        return frozenset()
    if config.key_generator in _TIMESTAMP_GENERATORS:
        return frozenset(config.partition_fields)
    if config.key_generator not in _CUSTOM_GENERATORS:
        return None
    spec = config.properties.get(PARTITION_FIELDS, "").split(",")
    levels = [part.strip().partition(":")[::2] for part in spec]
    if not all(kind for _, kind in levels):
        return None
    return frozenset(name for name, kind in levels if kind.upper() != "SIMPLE")


def _scalar(config: TableConfig, text: str, kind: pa.DataType) -> pa.Scalar | None:
    """A path's text in the column's type, None where it might be another value or kind of text."""
    if text == NULL_PARTITION:
        return pa.scalar(None, kind)
    if text == "":
        return None
    # Up to table version 4 the folder of nulls. Hudi 1.2.0 reads text from it, and dies of numbers.
    if text == _OLD_NULL_PARTITION and not _is_text(kind):
        return None
    if not config.hive_style and "=" in text and not config.url_encode:
        return None
    if not config.url_encode and _ESCAPED.search(text) and not config.drop_partition_columns:
        return None
    try:
        if at.is_timestamp(kind):
            # Key generators write timestamps as their number, which Hudi cannot read back: where
            # the files have the value, it is theirs.
            return _instant(text, kind) if config.drop_partition_columns else None
        if at.is_string(kind):
            # The usual kind. A cast would import pyarrow.compute.
            return pa.scalar(text, kind)
        return pa.scalar(text).cast(kind) if _is_plain(kind) else None
    except (pa.ArrowInvalid, ValueError):
        return None


def _instant(text: str, kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(int(text), pa.int64()).cast(kind)


def _is_plain(kind: pa.DataType) -> bool:
    numeric = at.is_integer(kind) or at.is_floating(kind) or at.is_decimal(kind)
    return _is_text(kind) or bool(numeric or at.is_boolean(kind) or at.is_date(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(at.is_string(kind) or at.is_large_string(kind))


def _check_all_found(
    config: TableConfig, schema: pa.Schema, path: str, found: Mapping[str, pa.Scalar]
) -> None:
    lost = [name for name in config.partition_fields if name in schema.names and name not in found]
    if lost:
        raise UnsupportedTableFeature(
            f"hoodie.datasource.write.drop.partition.columns=true: the value of {', '.join(lost)} "
            f"cannot be derived from the partition path {path!r} of key generator "
            f"{config.key_generator}",
        )


def _texts(config: TableConfig, path: str) -> dict[str, str] | None:
    """The text of each partition field in a path, None when they cannot be told apart."""
    fields = config.partition_fields
    parts = _parts(config, path)
    if parts is None or len(parts) != len(fields):
        return None
    found = {}
    for name, part in zip(fields, parts, strict=True):
        # The folders of a bootstrap source say so in any case.
        named = config.hive_style or (config.bootstrap_path and part.startswith(f"{name}="))
        prefix = f"{name}=" if named else ""
        if not part.startswith(prefix):
            return None
        found[name] = part.removeprefix(prefix)
    return found


def _parts(config: TableConfig, path: str) -> list[str] | None:
    """One part a field; a time whose format has slashes takes several folders."""
    fields = config.partition_fields
    if len(fields) == 1:
        return [path.replace("/", "-") if config.slash_separated_dates else path]
    parts = path.split("/")
    times = _times(config) or frozenset()
    more = config.properties.get(_TIME_FORMAT, "").count("/")
    if not more or not times:
        return parts
    if len(times) > 1 or len(parts) != len(fields) + more:
        return None
    at_ = next(index for index, name in enumerate(fields) if name in times)
    end = at_ + more + 1
    return [*parts[:at_], "/".join(parts[at_:end]), *parts[end:]]


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
