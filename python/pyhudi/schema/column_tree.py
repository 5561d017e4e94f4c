"""All columns of a table as a tree, with the ids that schema on read knows them by.

Which ids older files have is `internal_schema.py`'s part, changing columns is
`schema/alter_apply.py`'s. Order of ids: `AvroInternalSchemaConverter` (Hudi 1.0.2).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from pyhudi.errors import UnsupportedTableFeature
from pyhudi.schema.column_json import ColumnReader, avro_json, document
from pyhudi.schema.column_types import NEW, Kind, Mapped, Slot, Struct, parts_of, with_parts


@dataclass(frozen=True)
class ColumnTree:
    """All columns of a table, Hudi's own in front where it has them."""

    root: Struct
    max_id: int
    """The greatest id that was ever given, to dropped columns too."""
    added: int = 0
    """So many ids were given when the tree was made."""

    @classmethod
    def of(cls, avro: str, internal: str | None, *, all_types: bool) -> ColumnTree:
        """From an Avro schema and the internal schema that goes with it, by names.

        avro: with meta fields. internal: None gives all columns new ids; so do columns that it does
        not have. all_types: whether internal schemas tell millisecond and local times, and how
        decimals are stored, as from Hudi 1.2 on.

        Raises `UnsupportedTableFeature` for types that have no counterpart.
        """
        known = json.loads(internal) if internal else {}
        root = ColumnReader(all_types).root(json.loads(avro), known)
        if not isinstance(root, Struct):
            msg = "the table's Avro schema is not a record"
            raise UnsupportedTableFeature(msg)
        greatest = max((NEW, *(slot.id for slot in _slots(root)), *_key_ids(root)))
        return cls(root, max(greatest, int(known.get("max_column_id", NEW)))).assign_ids()

    def assign_ids(self) -> ColumnTree:
        """With ids for whatever has none, in Hudi's order."""
        ids = count(self.max_id + 1)
        root = _assign_ids(self.root, ids)
        greatest = next(ids) - 1
        return ColumnTree(root, greatest, greatest - self.max_id)

    def avro(self) -> str:
        """The Avro schema."""
        return json.dumps(avro_json(self.root), separators=(",", ":"), ensure_ascii=False)

    def internal(self, version: int) -> str:
        """The internal schema, under the version's number (0: before the first change)."""
        head = {"max_column_id": self.max_id, "version_id": version}
        columns = {**head, **document(self.root)}
        return json.dumps(columns, separators=(",", ":"), ensure_ascii=False)


def _slots(kind: Kind) -> Iterator[Slot]:
    for slot in parts_of(kind):
        yield slot
        yield from _slots(slot.kind)


def _key_ids(kind: Kind) -> Iterator[int]:
    if isinstance(kind, Mapped):
        yield kind.key_id
    for slot in parts_of(kind):
        yield from _key_ids(slot.kind)


def _assign_ids(kind: Any, ids: Iterator[int]) -> Any:
    """The ids of one level come before those of what is below it."""
    if isinstance(kind, Mapped) and kind.key_id == NEW:
        kind = replace(kind, key_id=next(ids))
    level = [replace(slot, id=next(ids)) if slot.id == NEW else slot for slot in parts_of(kind)]
    return with_parts(
        kind, tuple(replace(slot, kind=_assign_ids(slot.kind, ids)) for slot in level)
    )
