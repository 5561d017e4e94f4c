"""Random histories of one file group, for tests that compare a reader with the model.

A history is a base file's rows, log blocks on top, and now and then a compaction, whose base file
holds what the model says. Each row is drawn as one number whose digits choose the values, which
keeps drawing quick and lets Hypothesis shrink a failure to the simplest values.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa
from hypothesis import strategies as st

from tests.helpers.model import IS_DELETED, KEY, Block, Delete, Kind, Row, Rules, Seen, merge_slice

COMMIT_TIME = "_hoodie_commit_time"
UNAVAILABLE = "__unavailable"
SCHEMA = pa.schema(
    [
        (COMMIT_TIME, pa.string()),
        (KEY, pa.string()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("s", pa.string()),
        ("d", pa.decimal128(12, 2)),
        ("t", pa.timestamp("us", "UTC")),
        ("seq", pa.string()),
        ("a", pa.string()),
        ("b", pa.int32()),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("op", pa.string()),
        (IS_DELETED, pa.bool_()),
    ]
)
DEFAULTS: dict[str, Any] = {"a": "default", "b": 7}
PAYLOAD = ("a", "b", "raw", "tags", "op", IS_DELETED)


def _time(second: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(second, tz=datetime.timezone.utc)


_POOLS: dict[str, list[Any]] = {
    "i": [1, 2, 3, None, 0, -1],
    "l": [1, 2, 3, None, 0, -1],
    "s": ["a", "b", "c", None, "", "é"],
    "d": [decimal.Decimal(text) for text in ("1.00", "2.00", "2.50", "0.00", "-1.50")] + [None],
    "t": [_time(1), _time(2), _time(3), None, _time(0), _time(-1)],
    "seq": ["1.2", "1.10", "2.1", None, "10.0"],
    "a": ["x", None, "default", UNAVAILABLE, "y"],
    "b": [1, None, 7, 2],
    "raw": [b"1", None, UNAVAILABLE.encode(), b"2"],
    "tags": [["p"], None, [], ["q", "r"]],
    "op": ["u", "u", None, "D"],
    IS_DELETED: [None, False, False, False, True],
}
_KINDS: dict[str, Kind] = {
    "i": "int",
    "l": "long",
    "s": "string",
    "d": "decimal",
    "t": "timestamp",
    "seq": "string",
}
_ORDERINGS = [("l",), ("i",), ("s",), ("d",), ("t",), ("l", "i"), ("s", "d")]

Form = Literal["native", "avro", "parquet"]
PositionsOf = Literal["none", "valid", "other base", "too many", "too few"]


@dataclass(frozen=True)
class Piece:
    """A block of the model, and how it is to be written."""

    block: Block
    form: Form = "native"
    positions: PositionsOf = "none"
    new_file: bool = True


@dataclass(frozen=True)
class Slice:
    """One file slice."""

    base: tuple[Row, ...] | None
    base_instant: str
    pieces: tuple[Piece, ...]
    seen: Seen
    all_positions: bool
    incoming: Block | None = None
    """What a copy-on-write update brings."""

    @property
    def blocks(self) -> list[Block]:
        return [piece.block for piece in self.pieces]


@dataclass(frozen=True)
class Read:
    """How a slice is read."""

    batch_rows: int = 8192
    memory_limit: int | None = None
    columns: tuple[str, ...] = tuple(SCHEMA.names)
    filters: tuple[tuple[str, str, tuple[Any, ...]], ...] = ()
    by_position: bool = True


def _values(number: int) -> Row:
    row = {}
    for name, pool in _POOLS.items():
        number, at = divmod(number, len(pool))
        row[name] = pool[at]
    return row


_ALL = 1
for _pool in _POOLS.values():
    _ALL *= len(_pool)
_numbers = st.integers(0, _ALL - 1)
_keys = st.integers(0, 7).map(lambda number: f"k{number}")


def sum_of_b(older: Row, newer: Row) -> Row | None:
    """The model's side of `merge_b`."""
    total = None if None in {older["b"], newer["b"]} else older["b"] + newer["b"]
    return None if total == 3 else {**newer, "b": total}


@st.composite
def rules(draw: st.DrawFn) -> Rules:
    """All rules that a table can have, and combinations that none has."""
    event_time = draw(st.booleans())
    sequence = draw(st.integers(0, 7)) == 7
    fields = ("seq",) if sequence else draw(st.sampled_from(_ORDERINGS))
    found = Rules(
        columns=tuple(SCHEMA.names),
        event_time=event_time,
        ordering=tuple((name, _KINDS[name]) for name in fields) if event_time else (),
        sequence=sequence and event_time,
        delete_marker=draw(st.sampled_from([None, ("op", "D"), ("b", "2")])),
        deletes_always_win=draw(st.booleans()),
    )
    fills = ["absent", "absent", "nulls", "defaults", "marker", "newer_marker", "merger"]
    match draw(st.sampled_from(fills)):
        case "nulls":
            return replace(found, fill="defaults", newest_meta=draw(st.booleans()))
        case "defaults":
            return replace(found, fill="defaults", defaults=DEFAULTS)
        case "marker" | "newer_marker" as fill:
            return replace(found, fill=fill, marker=UNAVAILABLE)
        case "merger":
            return Rules(found.columns, deletes_always_win=True, merger=sum_of_b)
        case _:
            return replace(found, newest_meta=draw(st.booleans()))


@st.composite
def rows(draw: st.DrawFn, instant: str, names: st.SearchStrategy[str], most: int = 6) -> list[Row]:
    found = []
    for key, number in draw(st.lists(st.tuples(names, _numbers), max_size=most)):
        found.append({COMMIT_TIME: instant, KEY: key, **_values(number)})
    return found


def _ordering_of(kind: Kind, choice: int) -> tuple[str, Any]:
    """A delete's ordering value for a field: of its class, of another, or none."""
    if choice < 2:
        return [("int", 0), ("null", None)][choice]
    if choice == 2:
        return ("string", "x") if kind != "string" else ("long", 5)
    pool = [value for value in _POOLS[{"string": "s"}.get(kind, kind[0])] if value is not None]
    return (kind, pool[choice % len(pool)])


@st.composite
def deletes(draw: st.DrawFn, rules: Rules, names: st.SearchStrategy[str]) -> list[Delete]:
    found = []
    for key, choice, parts in draw(
        st.lists(
            st.tuples(
                names, st.integers(0, 3), st.lists(st.integers(0, 7), min_size=2, max_size=2)
            ),
            max_size=3,
        )
    ):
        if choice < 2 or not rules.ordering or rules.sequence:
            found.append(Delete(key, ("int", 0) if choice % 2 == 0 else ("null", None)))
            continue
        orderings = [
            _ordering_of(kind, part) for (_, kind), part in zip(rules.ordering, parts, strict=False)
        ]
        single = len(orderings) == 1
        found.append(Delete(key, orderings[0] if single else ("array", orderings)))
    return found


def _only(rows: Sequence[Any], key: Any, base_keys: Sequence[str]) -> list[Any]:
    """One record a key, in the order of the base file's rows."""
    by_key = {key(row): row for row in rows}
    return [by_key[name] for name in base_keys if name in by_key]


@st.composite
def data_piece(
    draw: st.DrawFn, rules: Rules, instant: str, base_keys: Sequence[str], *, positions: bool
) -> Piece:
    """A data block, a delete block, or both."""
    names = st.sampled_from(list(base_keys)) if positions else _keys
    where: PositionsOf = "valid" if positions else "none"
    if not positions and base_keys and draw(st.integers(0, 2)) == 0:
        names = st.sampled_from(list(base_keys))
        where = draw(st.sampled_from(["valid", "other base", "too many", "too few"]))
    found = draw(rows(instant, names))
    gone = draw(deletes(rules, names))
    if where != "none":
        found = _only(found, lambda row: row[KEY], base_keys)
        gone = _only(gone, lambda delete: delete.key, base_keys)
    # Rows that lack columns are partial, or from before the columns were added.
    partial = rules.merger is None and draw(st.integers(0, 3)) == 0
    if partial or draw(st.integers(0, 3)) == 0:
        missing = set(draw(st.lists(st.sampled_from(PAYLOAD), min_size=1, max_size=4)))
        found = [{n: row[n] for n in SCHEMA.names if n not in missing} for row in found]
    form: Form = draw(st.sampled_from(["native", "avro", "parquet"]))
    plain = where == "none" and not partial and all(one.ordering == ("int", 0) for one in gone)
    return Piece(
        Block(instant, found, gone, partial=partial and bool(found)),
        "avro" if form == "native" and not plain else form,
        where,
        draw(st.booleans()),
    )


@st.composite
def slices(draw: st.DrawFn, rules: Rules, base: tuple[Row, ...] | None, first: int) -> Slice:
    """A slice on top of these base rows, with instants from `first` on."""
    keys = [row[KEY] for row in base or ()]
    positions = bool(keys) and draw(st.integers(0, 3)) == 0
    pieces: list[Piece] = []
    fixed: set[str] = set()
    alive: list[str] = []
    for number in range(first, first + draw(st.integers(0, 6))):
        instant = f"{number:03}"
        kind = draw(st.sampled_from(["data", "data", "data", "again", "roll back", "compact"]))
        free = [one for one in alive if one not in fixed]
        new_file = draw(st.booleans())
        if kind == "roll back" and free:
            target = draw(st.sampled_from(free))
            alive.remove(target)
            pieces.append(Piece(Block(instant, rolls_back=target), new_file=new_file))
            continue
        if kind == "again" and free:
            instant = draw(st.sampled_from(free))
        piece = draw(data_piece(rules, instant, keys, positions=positions))
        if not piece.block.rows and not piece.block.deletes:
            continue
        if instant not in alive:
            alive.append(instant)
        if kind == "compact" and free:
            listed = tuple(draw(st.lists(st.sampled_from(free), min_size=1, unique=True)))
            fixed.update(listed, [instant])
            form: Form = "avro" if piece.form == "native" else piece.form
            piece = replace(piece, block=replace(piece.block, compacts=listed), form=form)
        pieces.append(piece)
    instants = sorted({piece.block.instant for piece in pieces})
    incoming = None
    if draw(st.integers(0, 3)) == 0:
        gone = [Delete(key) for key in draw(st.lists(_keys, max_size=2))]
        incoming = Block("999", draw(rows("999", _keys)), gone)
    taken = draw(seen(instants))
    return Slice(base, f"{first - 1:03}", tuple(pieces), taken, positions, incoming)


@st.composite
def seen(draw: st.DrawFn, instants: list[str]) -> Seen:
    """What a reader takes: most often everything; of a range not all that a block stands for."""
    if not instants:
        return Seen()
    match draw(st.sampled_from(["all", "all", "some", "valid"])):
        case "some":
            return Seen(max_instant=draw(st.sampled_from(instants)))
        case "valid":
            lost = set(draw(st.lists(st.sampled_from(instants), max_size=2)))
            start = draw(st.sampled_from([None, *instants]))
            return Seen(valid=[one for one in instants if one not in lost], timeline_start=start)
        case _:
            return Seen()


@st.composite
def histories(draw: st.DrawFn) -> tuple[Rules, list[Slice]]:
    """The rules of a table, and the slices of a file group: a compaction lies between two."""
    found = draw(rules())
    base: tuple[Row, ...] | None = None
    if draw(st.integers(0, 3)):
        base = tuple(_only(draw(rows("000", _keys, 8)), lambda row: row[KEY], _names()))
    group = [draw(slices(found, base, 1))]
    while draw(st.integers(0, 2)) == 0 and len(group) < 3:
        last = group[-1]
        base = tuple(merge_slice(last.base or (), last.blocks, found, last.seen))
        group.append(draw(slices(found, base, 20 * len(group))))
    return found, group


def _names() -> list[str]:
    return [f"k{number}" for number in range(8)]


_COMPARISONS = ["=", "<", "<=", ">", ">=", "in"]


@st.composite
def reads(draw: st.DrawFn) -> Read:
    """A way to read a slice."""
    filters = []
    for column in draw(st.lists(st.sampled_from([KEY, "i", "l", "s", "d", "t", "b"]), max_size=2)):
        pool = _names() if column == KEY else [v for v in _POOLS[column] if v is not None]
        comparison = draw(st.sampled_from(_COMPARISONS))
        count = 3 if comparison == "in" else 1
        literals = draw(st.lists(st.sampled_from(pool), min_size=count, max_size=count))
        filters.append((column, comparison, tuple(literals)))
    some = draw(st.lists(st.sampled_from(SCHEMA.names), unique=True, min_size=1))
    columns = SCHEMA.names if draw(st.booleans()) else some
    needed = [column for column, _, _ in filters]
    return Read(
        batch_rows=draw(st.sampled_from([8192, 3, 1])),
        memory_limit=draw(st.sampled_from([None, None, 1, 20_000])),
        columns=tuple(dict.fromkeys([*columns, *needed])),
        filters=tuple(filters),
        by_position=draw(st.booleans()),
    )
