"""Applies changes to a table's columns, one at a time, on the column tree. No I/O.

Hudi's rule for schema on read decides which type may become which (`TableChanges`,
`SchemaChangeUtils.isTypeUpdateAllow`, Hudi 1.2.0).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pyhudi.config.meta_columns import IS_DELETED
from pyhudi.errors import SchemaMismatch
from pyhudi.input.decode_encodings import plain_schema
from pyhudi.schema.alter_changes import (
    Add,
    Change,
    ChangeType,
    Comment,
    Drop,
    MakeNullable,
    Move,
    Position,
    Rename,
)
from pyhudi.schema.column_json import read_type
from pyhudi.schema.column_tree import ColumnTree
from pyhudi.schema.column_types import NEW, ColumnType, Plain, Slot, Struct, parts_of, with_parts
from pyhudi.schema.supported_types import avro_schema, check_name, check_reserved
from pyhudi.suggestions import case_hint

META_PREFIX = "_hoodie_"
"""Prefix of Hudi's own names. `_hoodie_is_deleted` is a column of the user."""


@dataclass(frozen=True)
class Rules:
    """The columns that a table does not allow to change."""

    fixed: Collection[str]
    """Paths of columns of keys, partitions and orderings."""
    all_types: bool
    """See `ColumnTree.of`."""
    record: str
    """Full name of the table's Avro record."""
    indexed: Mapping[str, str] = field(default_factory=dict)
    """The named index over each column that has one."""


def apply(tree: ColumnTree, change: Change, rules: Rules) -> ColumnTree:
    """Return the columns after a change.

    Raises `SchemaMismatch` naming the column for a change that is not possible, `ConfigError` for
    an invalid position.
    """
    parent, _, name = change.path.rpartition(".")
    steps = parent.split(".") if parent else []
    if isinstance(change, (Rename, Drop, ChangeType)):
        _check_free(change.path, rules)
    if isinstance(change, (Add, Rename, Drop, Move)):
        root = _change_fields(
            tree, steps, change.path, lambda struct: _fields(struct, change, name, rules)
        )
    else:
        root = _change_slot(
            tree, [*steps, name], change.path, lambda slot: _column(slot, change, rules)
        )
    return replace(tree, root=root).assign_ids()


def _fields(struct: Struct, change: Add | Rename | Drop | Move, name: str, rules: Rules) -> Struct:
    match change:
        case Add():
            return _add_column(struct, change, name, rules)
        case Rename():
            return _rename_column(struct, change, name)
        case Drop():
            return _drop_column(struct, change, name)
    return _move_column(struct, change, name)


def _column(slot: Slot, change: ChangeType | Comment | MakeNullable, rules: Rules) -> Slot:
    match change:
        case ChangeType():
            return _change_type(slot, change, rules)
        case Comment():
            return replace(slot, doc=change.doc)
    return replace(slot, optional=True)


def _check_free(path: str, rules: Rules) -> None:
    """Refuse a change of a column on which something else depends."""
    for fixed in rules.fixed:
        if fixed == path or fixed.startswith(f"{path}."):
            msg = f"column {path!r} cannot change: keys, partitions or the ordering use it"
            raise SchemaMismatch(msg)
    for column, index in rules.indexed.items():
        if column == path or column.startswith(f"{path}."):
            msg = f"column {path!r} cannot change: {index} is an index over it"
            raise SchemaMismatch(msg, hint=f'Drop the index first: drop_index("{index}").')


# --- finding --------------------------------------------------------------------------------------


def _change_fields(
    tree: ColumnTree, steps: list[str], path: str, change: Callable[[Struct], Struct]
) -> Struct:
    """Return the root with changed fields of the struct at `steps`."""

    def change_slot(slot: Slot) -> Slot:
        if not isinstance(slot.column_type, Struct):
            raise SchemaMismatch(f"there is no column {path!r}: {slot.name!r} has no fields")
        return replace(slot, column_type=change(slot.column_type))

    if not steps and path.startswith(META_PREFIX) and path != IS_DELETED:
        raise SchemaMismatch(f"column {path!r} is a meta column of Hudi")
    return change(tree.root) if not steps else _change_slot(tree, steps, path, change_slot)


def _change_slot(
    tree: ColumnTree, steps: list[str], path: str, change: Callable[[Slot], Slot]
) -> Struct:
    """Return the root with a changed slot at `steps`."""
    if steps[0].startswith(META_PREFIX) and steps[0] != IS_DELETED:
        raise SchemaMismatch(f"column {steps[0]!r} is a meta column of Hudi")
    parts = _change_parts(tree.root, steps, path, change)
    return replace(tree.root, fields=parts)


def _change_parts(
    column_type: ColumnType, steps: list[str], path: str, change: Callable[[Slot], Slot]
) -> tuple[Slot, ...]:
    """Return the parts of a type, with a change at `steps`."""
    parts = parts_of(column_type)
    if all(slot.name != steps[0] for slot in parts):
        msg = f"there is no column {path!r}"
        raise SchemaMismatch(msg, hint=_hint(steps[0], parts))

    def apply_change(slot: Slot) -> Slot:
        if slot.name != steps[0]:
            return slot
        if len(steps) == 1:
            return change(slot)
        below = _change_parts(slot.column_type, steps[1:], path, change)
        return replace(slot, column_type=with_parts(slot.column_type, below))

    return tuple(apply_change(slot) for slot in parts)


def _hint(unknown: str, parts: tuple[Slot, ...]) -> str:
    meant = case_hint([unknown], [slot.name for slot in parts])
    if meant:
        return meant
    names = [repr(slot.name) for slot in parts if not slot.name.startswith(META_PREFIX)]
    return f"There are {', '.join(names)}." if names else ""


def _index(struct: Struct, name: str, path: str) -> int:
    for at, slot in enumerate(struct.fields):
        if slot.name == name:
            return at
    msg = f"there is no column {path!r}"
    raise SchemaMismatch(msg, hint=_hint(name, struct.fields))


# --- fields of a struct ---------------------------------------------------------------------------


def _add_column(struct: Struct, change: Add, name: str, rules: Rules) -> Struct:
    change.position.check()
    _check_new_name(struct, name, change.path)
    if name == change.path:
        check_reserved([pa.field(name, change.data_type)])
    column_type = _column_type(name, change.data_type, change.path, rules, record=struct.name)
    slot = Slot(NEW, name, column_type, optional=True, doc=change.doc)
    return _insert_slot(struct, slot, change.position, change.path)


def _check_new_name(struct: Struct, name: str, path: str, except_for: str = "") -> None:
    if not name or (name.startswith(META_PREFIX) and name != IS_DELETED):
        raise SchemaMismatch(f"{name!r} is not a valid column name")
    check_name(name, path[: path.rfind(".") + 1] + name)
    for slot in struct.fields:
        if slot.name.lower() == name.lower() and slot.name != except_for:
            raise SchemaMismatch(f"there is a column {slot.name!r} next to {path!r} already")


def _rename_column(struct: Struct, change: Rename, name: str) -> Struct:
    at = _index(struct, name, change.path)
    if "." in change.name:
        raise SchemaMismatch(f"{change.name!r} is not a valid name: a column stays in its struct")
    _check_new_name(struct, change.name, change.path, except_for=name)
    if name == change.path:
        _check_reserved_name(change)
    fields = list(struct.fields)
    fields[at] = replace(fields[at], name=change.name)
    return replace(struct, fields=tuple(fields))


def _check_reserved_name(change: Rename) -> None:
    """Refuse names of columns that mark rows: older files do not have the marks."""
    if change.name == IS_DELETED:
        msg = f"column {change.path!r} cannot become {IS_DELETED!r}: its rows would be deletes"
        raise SchemaMismatch(msg, hint="Add a bool column of that name.")
    check_reserved([pa.field(change.name, pa.null())])


def _drop_column(struct: Struct, change: Drop, name: str) -> Struct:
    at = _index(struct, name, change.path)
    fields = struct.fields[:at] + struct.fields[at + 1 :]
    if all(slot.name.startswith(META_PREFIX) for slot in fields):
        raise SchemaMismatch(f"column {change.path!r} is the last one")
    return replace(struct, fields=fields)


def _move_column(struct: Struct, change: Move, name: str) -> Struct:
    change.position.check()
    at = _index(struct, name, change.path)
    slot = struct.fields[at]
    rest = replace(struct, fields=struct.fields[:at] + struct.fields[at + 1 :])
    return _insert_slot(rest, slot, change.position, change.path)


def _insert_slot(struct: Struct, slot: Slot, position: Position, path: str) -> Struct:
    fields = list(struct.fields)
    if position.first:
        at = next(
            (n for n, other in enumerate(fields) if not other.name.startswith(META_PREFIX)),
            len(fields),
        )
    elif position.after is not None:
        at = _index(struct, position.after, position.after) + 1
    elif position.before is not None:
        at = _index(struct, position.before, position.before)
    else:
        at = len(fields)
    if at < len(fields) and fields[at].name.startswith(META_PREFIX):
        raise SchemaMismatch(f"column {path!r} cannot be moved among Hudi's meta columns")
    return replace(struct, fields=(*fields[:at], slot, *fields[at:]))


# --- types ----------------------------------------------------------------------------------------


def _column_type(
    name: str, data_type: pa.DataType, path: str, rules: Rules, *, record: str
) -> ColumnType:
    """Convert an Arrow type to a column type."""
    if pa.types.is_null(data_type):
        raise SchemaMismatch(f"column {path!r} has no type")
    avro = avro_schema(plain_schema(pa.schema([pa.field(name, data_type)])), *_split_path(record))
    return read_type(json.loads(avro)["fields"][0], all_types=rules.all_types)


def _split_path(full: str) -> tuple[str, str]:
    space, _, name = full.rpartition(".")
    return name, space


def _change_type(slot: Slot, change: ChangeType, rules: Rules) -> Slot:
    column_type = _column_type(slot.name, change.data_type, change.path, rules, record=rules.record)
    if not isinstance(slot.column_type, Plain) or not isinstance(column_type, Plain):
        raise SchemaMismatch(f"column {change.path!r} is nested: change its fields one by one")
    old, new = slot.column_type.simple, column_type.simple
    if old == new:
        # In some releases, internal schemas have one type `timestamp` for all units.
        old, new = _logical(slot.column_type) or old, _logical(column_type) or new
        if old == new:
            return slot
    if not may_become(old, new):
        msg = f"column {change.path!r} is {old}: it cannot become {new}"
        raise SchemaMismatch(msg, hint="Widen numbers, or change the type to string.")
    return replace(
        slot, column_type=replace(column_type, internal=column_type.simple), default=None
    )


def _logical(column_type: Plain) -> str | None:
    return column_type.avro.get("logicalType") if isinstance(column_type.avro, dict) else None


_MAY_BECOME = {
    "int": ("long", "float", "double", "string", "decimal"),
    "long": ("float", "double", "string", "decimal"),
    "float": ("double", "string", "decimal"),
    "double": ("string", "decimal"),
    "date": ("string",),
    "string": ("date", "decimal"),
    "decimal": ("string",),
}


def may_become(old: str, new: str) -> bool:
    """Return whether schema on read allows a type change, by the names of internal schemas."""
    old_type, new_type = (name.split("(", 1)[0] for name in (old, new))
    if old_type == new_type == "decimal":
        return _is_wider(_digits(new), _digits(old))
    return new_type in _MAY_BECOME.get(old_type, ())


def _digits(decimal: str) -> tuple[int, int]:
    precision, scale = decimal.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision), int(scale)


def _is_wider(new: tuple[int, int], old: tuple[int, int]) -> bool:
    """Return whether no digit is lost, before or after the point."""
    return new[0] - new[1] >= old[0] - old[1] and new[1] >= old[1]
