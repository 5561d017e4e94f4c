"""What a file slice holds, worked out slowly: dicts and loops, one record after the other.

The rules are those of Hudi 1.2.0's `FileGroupRecordBuffer` and `BufferedRecordMergerFactory`, with
the scan of `BaseHoodieLogRecordReader`. pyhudi's own decisions where Hudi fails: a null ordering
value counts as 0, or below everything where the type has no zero, also among several of a delete;
and all whole numbers are of one class. Made for tests to compare with, never for speed; knows
nothing of files or Arrow.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

KEY = "_hoodie_record_key"
IS_DELETED = "_hoodie_is_deleted"
META = "_hoodie_"

Row = dict[str, Any]
Kind = Literal["int", "long", "string", "decimal", "timestamp"]
_ZEROS: dict[str, Any] = {
    "int": 0,
    "long": 0,
    "decimal": decimal.Decimal(0),
    "timestamp": datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc),
}
_WHOLE = frozenset({"int", "long"})


@dataclass(frozen=True)
class Rules:
    """How records of one key become one."""

    columns: tuple[str, ...] = field(repr=False)
    event_time: bool = False
    ordering: tuple[tuple[str, Kind], ...] = ()
    """Ordering fields with their types."""
    sequence: bool = False
    """The ordering field is text, `file.position`."""
    delete_marker: tuple[str, str] | None = None
    fill: Literal["absent", "defaults", "marker", "newer_marker"] = "absent"
    defaults: Mapping[str, Any] = field(default_factory=dict)
    marker: str | None = None
    newest_meta: bool = False
    deletes_always_win: bool = False
    null_ordering_loses: bool = False
    """A base row with a null ordering value loses to anything (copy-on-write)."""
    merger: Callable[[Row, Row], Row | None] | None = None
    """(older, newer) -> merged, or None for a delete: in the place of the rules for live rows."""


@dataclass(frozen=True)
class Delete:
    """A record of a delete block: its key, and the class and value of its ordering value."""

    key: str
    ordering: tuple[str, Any] = ("int", 0)


@dataclass(frozen=True)
class Block:
    """A log block: rows with the columns that they were written with, deletes, or a command."""

    instant: str
    rows: Sequence[Row] = ()
    deletes: Sequence[Delete] = ()
    rolls_back: str | None = None
    compacts: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True)
class Seen:
    """Which blocks a reader takes."""

    max_instant: str | None = None
    valid: Collection[str] | None = None
    timeline_start: str | None = None

    def takes(self, instant: str) -> bool:
        if self.max_instant is not None and instant > self.max_instant:
            return False
        if self.valid is None or instant in self.valid:
            return True
        return self.timeline_start is not None and instant < self.timeline_start


@dataclass(frozen=True)
class _Record:
    """What stands for a key: a row with the columns it has, or none for a delete."""

    row: Row | None
    ordering: tuple[Any, ...]
    commit_time_delete: bool = False
    loses: bool = False


def standing_blocks(blocks: Sequence[Block], seen: Seen) -> list[Block]:
    """The blocks that count, oldest first."""
    by_instant: dict[str, list[Block]] = {}
    for block in blocks:
        if block.rolls_back is not None:
            by_instant.pop(block.rolls_back, None)
        elif seen.takes(block.instant):
            by_instant.setdefault(block.instant, []).append(block)
    replaced_by: dict[str, str] = {}
    newest_first: list[str] = []
    for instant in reversed(list(by_instant)):
        final = replaced_by.get(instant, instant)
        compacts = by_instant[instant][0].compacts
        for listed in compacts:
            replaced_by[listed] = final
        if not compacts and final not in newest_first:
            newest_first.append(final)
    return [block for instant in reversed(newest_first) for block in by_instant[instant]]


def merge_slice(
    base: Sequence[Row],
    blocks: Sequence[Block],
    rules: Rules,
    seen: Seen | None = None,
    incoming: Block | None = None,
) -> list[Row]:
    """The rows of a slice: base rows in order, then those of the log alone.

    `incoming` is the newest of all, whatever its instant.
    """
    chosen = standing_blocks(blocks, seen or Seen())
    if incoming is not None:
        chosen.append(incoming)
    by_fields = _merges_by_fields(rules) or any(block.partial for block in chosen)
    log: dict[str, _Record] = {}
    for block in chosen:
        for stored in block.rows:
            row = stored if block.partial else _complete(stored, rules)
            _take(log, row[KEY], _of_row(row, rules), rules, by_fields)
        for delete in block.deletes:
            _take(log, delete.key, _of_delete(delete, rules), rules, by_fields)
    merged = []
    for row in base:
        record = log.pop(row[KEY], None)
        # A base row is not looked at for marks of deletion.
        no_order = any(row.get(name) is None for name, _ in rules.ordering)
        own = _Record(row, _ordering(row, rules), loses=rules.null_ordering_loses and no_order)
        final = own if record is None else _merge(own, record, rules, by_fields)
        merged.append(final.row)
    merged.extend(record.row for record in log.values())
    return [_complete(row, rules) for row in merged if row is not None]


def _merges_by_fields(rules: Rules) -> bool:
    return rules.fill != "absent" or rules.newest_meta or rules.merger is not None


def _complete(row: Row, rules: Rules) -> Row:
    return {name: row.get(name) for name in rules.columns}


def _take(log: dict[str, _Record], key: str, newer: _Record, rules: Rules, by_fields: bool) -> None:
    older = log.get(key)
    log[key] = newer if older is None else _merge(older, newer, rules, by_fields)


def _of_row(row: Row, rules: Rules) -> _Record:
    ordering = _ordering(row, rules)
    if not _is_deleted(row, rules):
        return _Record(row, ordering)
    return _Record(None, ordering, _is_default(row, rules))


def _is_deleted(row: Row, rules: Rules) -> bool:
    if row.get(IS_DELETED):
        return True
    if rules.delete_marker is None:
        return False
    name, marker = rules.delete_marker
    value = row.get(name)
    return value is not None and str(value) == marker


def _is_default(row: Row, rules: Rules) -> bool:
    """Whether the ordering value is the one that stands for none: Integer 0."""
    if rules.sequence or len(rules.ordering) != 1:
        return False
    ((name, kind),) = rules.ordering
    return row.get(name) is None or (kind == "int" and row[name] == 0)


def _ordering(row: Row, rules: Rules) -> tuple[Any, ...]:
    if rules.sequence:
        text = row.get(rules.ordering[0][0])
        return (0, 0) if text is None else tuple(int(part) for part in text.split("."))
    return tuple(_comparable(row.get(name), kind) for name, kind in rules.ordering)


def _comparable(value: Any, kind: Kind) -> Any:
    if kind == "string":
        return (value is not None, (value or "").encode())
    return _ZEROS[kind] if value is None else value


def _of_delete(delete: Delete, rules: Rules) -> _Record:
    kind, value = delete.ordering
    if rules.sequence or not rules.ordering or (kind, value) == ("int", 0) or kind == "null":
        return _Record(None, (), commit_time_delete=True)
    parts = value if kind == "array" else [delete.ordering]
    if len(parts) != len(rules.ordering):
        return _Record(None, (), commit_time_delete=True)
    kinds = [wanted for _, wanted in rules.ordering]
    fitting = [_fits(part, wanted) for part, wanted in zip(parts, kinds, strict=True)]
    if not any(fitting):
        return _Record(None, (), commit_time_delete=True)
    values = [part if fits else None for (_, part), fits in zip(parts, fitting, strict=True)]
    return _Record(None, tuple(map(_comparable, values, kinds)))


def _fits(part: tuple[str, Any], wanted: Kind) -> bool:
    """Whether a delete's value is one of the field's; Integer 0 is a null where it need not be."""
    kind, _ = part
    return kind == wanted or ({kind, wanted} <= _WHOLE and part != ("int", 0))


def _newer_wins(older: _Record, newer: _Record, rules: Rules) -> bool:
    if not rules.event_time or not rules.ordering:
        return True
    if rules.deletes_always_win and (older.row is None or newer.row is None):
        return True
    if older.commit_time_delete and newer.row is None and not newer.commit_time_delete:
        return False
    if older.loses or older.commit_time_delete or newer.commit_time_delete:
        return True
    return newer.ordering >= older.ordering


def _merge(older: _Record, newer: _Record, rules: Rules, by_fields: bool) -> _Record:
    wins = _newer_wins(older, newer, rules)
    if older.row is None or newer.row is None or not by_fields:
        return newer if wins else older
    winner, first, second = (newer, newer.row, older.row) if wins else (older, older.row, newer.row)
    if rules.merger is not None:
        return replace(winner, row=rules.merger(older.row, newer.row))
    row = {}
    for name in rules.columns:
        if rules.newest_meta and name.startswith(META) and name != IS_DELETED:
            row[name] = newer.row.get(name)
        elif name not in first and name not in second:
            continue
        elif _gives_way(name, first, rules, newer=wins):
            row[name] = second.get(name)
        else:
            row[name] = first[name]
    return replace(winner, row=row)


def _gives_way(name: str, winner: Row, rules: Rules, *, newer: bool) -> bool:
    """Whether the winner's value is to be taken from the loser."""
    if name not in winner:
        return True
    value = winner[name]
    match rules.fill:
        case "absent":
            return False
        case "defaults":
            return bool(value == rules.defaults.get(name))
        case "marker" | "newer_marker":
            if rules.fill == "newer_marker" and not newer:
                return False
            return value in (rules.marker, (rules.marker or "").encode())
