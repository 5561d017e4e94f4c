"""All columns of a table as a tree, with their ids for schema on read.

`internal_schema.py` finds the ids of older files, `schema/alter_apply.py` changes columns. Order of
ids: `AvroInternalSchemaConverter` (Hudi 1.0.2).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from pyhudi.errors import UnsupportedTableFeature
from pyhudi.schema.column_json import ColumnReader, avro_json, document
from pyhudi.schema.column_types import NEW, ColumnType, Mapped, Slot, Struct, parts_of, with_parts


@dataclass(frozen=True)
class ColumnTree:
    """All columns of a table, meta columns in front if it has them."""

    root: Struct
    max_id: int
    """The maximum id that was ever assigned, also to dropped columns."""
    added: int = 0
    """The number of ids that were assigned when the tree was built."""

    @classmethod
    def of(cls, avro: str, internal: str | None, *, all_types: bool) -> ColumnTree:
        """Build it from an Avro schema and its internal schema, by names.

        avro: with meta fields. internal: None gives all columns new ids; columns that it does not
        have get new ids too. all_types: internal schemas have millisecond and local timestamps, and
        how decimals are stored, as from Hudi 1.2 on.

        Raises `UnsupportedTableFeature` for types without a counterpart.
        """
        document = json.loads(internal) if internal else {}
        root = ColumnReader(all_types).root(json.loads(avro), document)
        if not isinstance(root, Struct):
            raise UnsupportedTableFeature("the table's Avro schema is not a record")
        max_id = max((NEW, *(slot.id for slot in _slots(root)), *_key_ids(root)))
        return cls(root, max(max_id, int(document.get("max_column_id", NEW)))).assign_ids()

    def assign_ids(self) -> ColumnTree:
        """Return it with ids for columns without one, in Hudi's order."""
        ids = count(self.max_id + 1)
        root = _assign_ids(self.root, ids)
        max_id = next(ids) - 1
        return ColumnTree(root, max_id, max_id - self.max_id)

    def avro(self) -> str:
        """Return the Avro schema."""
        return json.dumps(avro_json(self.root), separators=(",", ":"), ensure_ascii=False)

    def internal(self, version: int) -> str:
        """Return the internal schema, under the version's number (0: before the first change)."""
        head = {"max_column_id": self.max_id, "version_id": version}
        columns = {**head, **document(self.root)}
        return json.dumps(columns, separators=(",", ":"), ensure_ascii=False)


def _slots(column_type: ColumnType) -> Iterator[Slot]:
    for slot in parts_of(column_type):
        yield slot
        yield from _slots(slot.column_type)


def _key_ids(column_type: ColumnType) -> Iterator[int]:
    if isinstance(column_type, Mapped):
        yield column_type.key_id
    for slot in parts_of(column_type):
        yield from _key_ids(slot.column_type)


def _assign_ids(column_type: Any, ids: Iterator[int]) -> Any:
    """Assign the ids of one level before those of the levels below."""
    if isinstance(column_type, Mapped) and column_type.key_id == NEW:
        column_type = replace(column_type, key_id=next(ids))
    level = [
        replace(slot, id=next(ids)) if slot.id == NEW else slot for slot in parts_of(column_type)
    ]
    return with_parts(
        column_type,
        tuple(replace(slot, column_type=_assign_ids(slot.column_type, ids)) for slot in level),
    )
