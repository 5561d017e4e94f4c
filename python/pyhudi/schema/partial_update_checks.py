"""Values that an update cannot assign, because the table's merge mode keeps the stored ones.

If records of one key are merged column by column, null, a column's default or a marker means
"unchanged": an upsert means that, an update that assigns the value does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.merge_mode import find_unsupported_property
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.input.type_tests import is_text
from pyhudi.schema.payloads import FieldMerge, field_merge, merge_on_rewrite, with_defaults
from pyhudi.schema.table_schema import TableSchema


@dataclass(frozen=True)
class IgnoredUpdateValues:
    """The values that a table's merge mode ignores."""

    rule: FieldMerge
    reason: str
    """The property of the rule."""

    @classmethod
    def of(cls, config: TableConfig, schema: TableSchema) -> IgnoredUpdateValues | None:
        """Return those of a table; None if each value of the newer row counts.

        A custom merger may do anything with values.
        """
        merge = field_merge(config) if config.is_merge_on_read else merge_on_rewrite(config)
        rule = with_defaults(merge, schema)
        if rule is None or rule.merger is not None or rule.fill == "absent":
            return None
        return cls(rule, find_unsupported_property(config.merge) or config.merge.mode)

    def check(self, old: pa.Table, new: pa.Table, columns: Iterable[str]) -> None:
        """Raise `UnsupportedTableFeature` if a row would keep another value than the assigned one.

        old, new: the same rows before and after, in the table's types.
        """
        for name in columns:
            values, stored = new.column(name), old.column(name)
            kept = pc.and_(self._is_none(name, values), _differs(stored, values))
            if pc.any(kept).as_py():
                value = values.filter(kept)[0].as_py()
                raise UnsupportedTableFeature(
                    f"{self.reason}: {value!r} in column {name!r} of an update keeps the "
                    "stored value",
                    hint="Set another value, or delete the rows and insert them again.",
                )

    def _is_none(self, name: str, values: pa.ChunkedArray[Any]) -> Any:
        """Return for each value whether the stored one replaces it; never null."""
        if self.rule.fill in ("marker", "newer_marker"):
            marked = is_text(values.type) or pa.types.is_binary(values.type)
            marker = pa.scalar(self.rule.marker, pa.string()).cast(values.type) if marked else None
            return _equals(values, marker)
        defaults = self.rule.defaults
        if defaults is None or defaults.schema.get_field_index(name) < 0:
            return pc.is_null(values)
        return _equals(values, defaults.column(name)[0].cast(values.type))


def _equals(values: pa.ChunkedArray[Any], value: pa.Scalar[Any] | None) -> Any:
    if value is None:
        return pa.repeat(pa.scalar(value=False), len(values))
    return pc.fill_null(pc.equal(values, value), fill_value=False)


def _differs(stored: pa.ChunkedArray[Any], values: pa.ChunkedArray[Any]) -> Any:
    """Return for each value that may be ignored, null or comparable, whether it is new."""
    if pa.types.is_nested(values.type):
        return pc.is_valid(stored)
    same = pc.fill_null(pc.equal(stored, values), fill_value=False)
    both_null = pc.and_(pc.is_null(stored), pc.is_null(values))
    return pc.invert(pc.or_(same, both_null))
