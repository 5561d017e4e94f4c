"""Values of partition columns that partition paths contain.

The writer builds paths. A path does not always determine the value: times in some format, null
markers, slashes within values. Uncertain values are left out here, so that they are read from the
files, and pruning keeps the partition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as at

from pyhudi.config.constraints import read_generated_columns
from pyhudi.config.property_names import PARTITION_FIELDS
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.input.type_tests import is_number, is_text
from pyhudi.schema.key_generator import NULL_PARTITION
from pyhudi.schema.predicate_comparisons import order_key
from pyhudi.schema.predicate_literals import OPERATORS
from pyhudi.schema.predicates import Conjunct
from pyhudi.table.scan_columns import TIMESTAMP_GENERATORS

_OLD_NULL_PARTITION = "default"
_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
_PLAIN_GENERATORS = frozenset({"SIMPLE", "SIMPLE_AVRO", "COMPLEX", "COMPLEX_AVRO"})
_CUSTOM_GENERATORS = frozenset({"CUSTOM", "CUSTOM_AVRO"})
_TIME_FORMAT = "hoodie.keygen.timebased.output.dateformat"


def path_values(
    config: TableConfig, schema: pa.Schema, path: str, *, incremental: bool = False
) -> dict[str, pa.Scalar]:
    """Return values of the partition columns that a read takes from the path, not from the files.

    Hudi 1.2.0 does so for every level except times: an empty string is in the null partition and
    reads as null, a record that a global index left in its old partition reads with the old value.
    Columns with an uncertain value are left out, and are read from the files.

    incremental: as in an incremental query, which does not decode URL-encoded values.

    Raises `UnsupportedTableFeature` if a path does not determine a value that is not in the files.
    """
    values = _from_path(config, schema, path, incremental=incremental)
    if config.drop_partition_columns:
        _check_all_found(config, schema, path, values)
    return values


def partition_filter(
    config: TableConfig,
    schema: pa.Schema,
    conjuncts: Sequence[Conjunct],
    *,
    incremental: bool = False,
) -> Callable[[str], bool] | None:
    """Return a test that is false for partitions without any row that matches the conjuncts.

    Conjuncts on the source of a generated partition column test the partition, too. The test uses
    the values that `path_values` returns for a column, so it agrees with the rows that are read.
    None if no conjunct is about a partition column whose value a path determines.
    """
    path_fields = _fields_in_path(config, schema)
    if conjuncts and not path_fields.isdisjoint(read_generated_columns(config)):
        from pyhudi.schema.implied_conjuncts import derive_conjuncts  # noqa: PLC0415 - few tables need it

        conjuncts = (*conjuncts, *derive_conjuncts(config, schema, conjuncts))
    tests = [
        (name, _test(op, values.to_pylist()))
        for name, op, values in conjuncts
        if name in path_fields
    ]
    if not tests:
        return None

    def may_match(path: str) -> bool:
        values = _from_path(config, schema, path, incremental=incremental)
        return all(test(values[name].as_py()) for name, test in tests if name in values)

    return may_match


def _test(op: str, values: Sequence[Any]) -> Callable[[Any], bool]:
    keys = list(map(order_key, values))
    if op == "in":
        among = frozenset(keys)
        return lambda value: value is not None and order_key(value) in among
    compare = OPERATORS[op]
    # A comparison with null does not match.
    return lambda value: value is not None and compare(order_key(value), keys[0])


def _from_path(
    config: TableConfig, schema: pa.Schema, path: str, *, incremental: bool
) -> dict[str, pa.Scalar]:
    path_fields = _fields_in_path(config, schema)
    values = {}
    for name, part in (_texts(config, path) or {}).items() if path_fields else ():
        if name not in path_fields:
            continue
        decoded = _unescape(part) if config.url_encode and not incremental else part
        scalar = _scalar(config, decoded, schema.field(name).type)
        if scalar is not None:
            values[name] = scalar
    return values


def _fields_in_path(config: TableConfig, schema: pa.Schema) -> frozenset[str]:
    """Return the partition fields of the schema whose values the path contains unchanged.

    Times are not, but if they are not in the files, the path's string is the only source.
    """
    fields = [name for name in config.partition_fields if name in schema.names]
    times = _times(config)
    if config.drop_partition_columns:
        typed = fields if times is None else times
        return frozenset(n for n in fields if n not in typed or is_text(schema.field(n).type))
    # For dates with slashes Hudi's own writers create more paths than these two.
    spelled_otherwise = config.slash_separated_dates and (config.hive_style or config.url_encode)
    if times is None or spelled_otherwise:
        return frozenset()
    return frozenset(name for name in fields if name not in times)


def _times(config: TableConfig) -> frozenset[str] | None:
    """Return the partition fields that are times in the path; None if the table does not store it.

    For a custom generator it stores only the names up to version 6.
    """
    if config.key_generator in _PLAIN_GENERATORS:
        return frozenset()
    if config.key_generator in TIMESTAMP_GENERATORS:
        return frozenset(config.partition_fields)
    if config.key_generator not in _CUSTOM_GENERATORS:
        return None
    spec = config.properties.get(PARTITION_FIELDS, "").split(",")
    levels = [part.strip().partition(":")[::2] for part in spec]
    if not all(level_type for _, level_type in levels):
        return None
    return frozenset(name for name, level_type in levels if level_type.upper() != "SIMPLE")


def _scalar(config: TableConfig, string: str, data_type: pa.DataType) -> pa.Scalar | None:
    """Convert a path's string to the column's type, None if it may be another value or string."""
    if string == NULL_PARTITION:
        return pa.scalar(None, data_type)
    if string == "":
        return None
    # Up to table version 4 the directory of nulls. Hudi 1.2.0 reads strings from it, fails on
    # numbers.
    if string == _OLD_NULL_PARTITION and not is_text(data_type):
        return None
    if not config.hive_style and "=" in string and not config.url_encode:
        return None
    if not config.url_encode and _ESCAPED.search(string) and not config.drop_partition_columns:
        return None
    try:
        if at.is_timestamp(data_type):
            # Key generators write timestamps as their number, which Hudi cannot read back: if the
            # files have the value, it is taken from them.
            is_lost = config.drop_partition_columns
            return pa.scalar(int(string), pa.int64()).cast(data_type) if is_lost else None
        if at.is_string(data_type):
            # The usual type. A cast would import pyarrow.compute.
            return pa.scalar(string, data_type)
        return pa.scalar(string).cast(data_type) if _is_plain(data_type) else None
    except (pa.ArrowInvalid, ValueError):
        return None


def _is_plain(data_type: pa.DataType) -> bool:
    tests = (is_text, is_number, at.is_boolean, at.is_date)
    return any(test(data_type) for test in tests)


def _check_all_found(
    config: TableConfig, schema: pa.Schema, path: str, values: Mapping[str, pa.Scalar]
) -> None:
    lost = [name for name in config.partition_fields if name in schema.names and name not in values]
    if lost:
        raise UnsupportedTableFeature(
            f"hoodie.datasource.write.drop.partition.columns=true: the value of {', '.join(lost)} "
            f"cannot be derived from the partition path {path!r} of key generator "
            f"{config.key_generator}",
        )


def _texts(config: TableConfig, path: str) -> dict[str, str] | None:
    """Return the string of each partition field in a path, None if they are ambiguous."""
    fields = config.partition_fields
    parts = _parts(config, path)
    if parts is None or len(parts) != len(fields):
        return None
    strings = {}
    for name, part in zip(fields, parts, strict=True):
        # The directories of a bootstrap source contain it in any case.
        named = config.hive_style or (config.bootstrap_path and part.startswith(f"{name}="))
        prefix = f"{name}=" if named else ""
        if not part.startswith(prefix):
            return None
        strings[name] = part.removeprefix(prefix)
    return strings


def _parts(config: TableConfig, path: str) -> list[str] | None:
    """Return one part per field; a time whose format has slashes takes several directories."""
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


def _unescape(string: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), string)
