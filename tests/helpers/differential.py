"""Random histories of one table: steps that pyhudi or Apache Hudi takes, and a model of its rows.

The model is a dictionary. It knows event-time ordering, indexes that look beyond partitions, and
columns that come later; nothing of files.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

Row = dict[str, Any]
Writer = Literal["pyhudi", "hudi"]

CITIES: tuple[str | None, ...] = ("oslo", "ünï \u4e16", "a b+c", "50%", None)
NOTES = ("", "plain", "ünï\u4e16", 'quote\'s "two", three', None)
GLOBAL = frozenset({"GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX"})
_MOVING = frozenset({"GLOBAL_SIMPLE", "GLOBAL_BLOOM"})
"""Those that bring a row to the partition that it names, by default."""
LATE = 1
"""An ordering value that loses to every stored row."""

TYPES: dict[str, tuple[pa.DataType, str]] = {
    "int": (pa.int32(), "int"),
    "long": (pa.int64(), "bigint"),
    "double": (pa.float64(), "double"),
    "string": (pa.string(), "string"),
    "place": (pa.struct([("a", pa.int32()), ("b", pa.string())]), "struct<a:int,b:string>"),
    "larger place": (
        pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.float64())]),
        "struct<a:int,b:string,c:double>",
    ),
}


@dataclass(frozen=True)
class Setting:
    """A table to make and to write to."""

    version: int
    kind: Literal["cow", "mor"]
    index: str
    metadata: bool
    wider: bool = False
    """Some columns are upserted alone too, and a struct grows."""
    alters: bool = False
    """Columns are altered too, which Hudi sees with options of its own."""
    served: bool = False
    """Table services of both are steps too."""

    @property
    def is_global(self) -> bool:
        """Whether a key is in the table once (else: in each partition)."""
        return self.index in GLOBAL

    def __str__(self) -> str:
        table = "metadata" if self.metadata else "plain"
        served = "-served" if self.served else ""
        return f"v{self.version}-{self.kind}-{self.index.lower()}-{table}{served}"


@dataclass(frozen=True)
class Step:
    """One commit. `rows` are what it writes, or the rows that it deletes."""

    writer: Writer
    action: str
    rows: tuple[Row, ...] = ()
    cities: tuple[str, ...] = ()
    below: int | None = None
    """Rows whose `v` is less are meant."""
    columns: tuple[str, ...] = ()
    """Those that the rows have, none for all of them."""


@dataclass
class Model:
    """The rows that a table should have, and random steps that change them."""

    setting: Setting
    numbers: random.Random
    columns: dict[str, str] = field(
        default_factory=lambda: {
            "id": "string",
            # 1.0.2 cannot read a key that was deleted and came back under a long ordering field.
            "ts": "int",
            "city": "string",
            "v": "int",
            "note": "string",
        }
    )
    rows: dict[tuple[str, str | None], Row] = field(default_factory=dict)
    gone: list[Row] = field(default_factory=list)
    clock: int = 100
    made: int = 0

    def __post_init__(self) -> None:
        if self.setting.wider:
            self.columns["place"] = "place"

    @property
    def schema(self) -> pa.Schema:
        """The table's, as Arrow's."""
        return pa.schema([(name, TYPES[kind][0]) for name, kind in self.columns.items()])

    @property
    def ddl(self) -> str:
        """The table's schema, as Spark's."""
        return ", ".join(f"{name} {TYPES[kind][1]}" for name, kind in self.columns.items())

    def arrow(self, rows: tuple[Row, ...]) -> pa.Table:
        """Rows as pyhudi takes them."""
        return pa.Table.from_pylist(list(rows), self.schema)

    def sorted(self) -> list[Row]:
        """What a reader should give, in the order of `in_order`."""
        return in_order(self.arrow(tuple(self.rows.values())).to_pylist())

    # ------------------------------------------------------------ choosing steps

    def first(self) -> Step:
        """The rows of a new table."""
        self.clock += 10
        return Step("pyhudi", "insert", tuple(self._new_rows(12)))

    def step(self, writer: Writer, only: tuple[str, ...] = ()) -> Step:
        """A random step. `apply` tells the model of it once it is done.

        only: actions to choose from, none for all that the writer has.
        """
        self.clock += 10
        actions = self._actions(writer)
        action = self.numbers.choice([one for one in actions if not only or one in only])
        if action in ("insert", "bulk_insert"):
            return Step(writer, action, tuple(self._new_rows(self.numbers.randint(1, 5))))
        if action in ("upsert", "merge"):
            rows = self._batch(late=action == "upsert", moves=action == "upsert")
            return Step(writer, action, tuple(rows))
        if action == "partial":
            return self._partial(writer)
        if action == "delete_keys":
            return Step(writer, action, tuple(self._chosen(3)))
        if action in ("delete", "update"):
            return Step(writer, action, below=self.numbers.choice([15, 30, 60]))
        if action == "overwrite_partitions":
            return Step(writer, action, tuple(self._overwriting()))
        if action == "delete_partitions":
            return Step(writer, action, cities=("oslo",))
        if action == "evolve":
            return self._evolving(writer)
        if action == "alter":
            return self._altering(writer)
        return Step(writer, action)

    def _actions(self, writer: Writer) -> tuple[str, ...]:
        actions = _ACTIONS[writer]
        if writer == "pyhudi":
            actions += _WIDER if self.setting.wider else ()
            actions += ("alter",) if self.setting.alters else ()
        if writer == "hudi" and self.setting.kind == "mor" and not self.setting.served:
            actions += _COMPACTIONS
        left_out = _NOT_IN_BUCKETS if self.setting.index == "BUCKET" else ()
        return tuple(one for one in actions if one not in left_out)

    def _batch(self, *, late: bool, moves: bool = True) -> list[Row]:
        """Updates, one late, one of another partition, keys that come back, new ones.

        moves: a row may go to another partition, as a merge leaves every row where it is.
        """
        batch = []
        for number, row in enumerate(self._chosen(4)):
            new = self._row(row["id"], row["city"])
            if late and number == 0:
                new["ts"] = LATE
            elif number == 1 and moves and self.setting.index in _MOVING:
                new["city"] = self.numbers.choice(CITIES)
            elif number == 1:
                new = self._elsewhere(new)
            batch.append(new)
        if self.gone:
            back = self.gone.pop(self.numbers.randrange(len(self.gone)))
            if self._place(back) not in self.rows:
                batch.append(self._row(back["id"], back["city"]))
        batch += self._new_rows(self.numbers.randint(0, 4))
        self.numbers.shuffle(batch)
        return _each_once(batch, self._place)

    def _partial(self, writer: Writer) -> Step:
        """Updates of some columns, with keys that come back, new ones and a late one among them."""
        others = [name for name in self.columns if name not in _NEEDED]
        some = self.numbers.sample(others, self.numbers.randint(1, len(others) - 1))
        rows = [row for row in self._batch(late=True) if "v" in some or self._has(row)]
        return Step(writer, "partial", tuple(rows), columns=(*_NEEDED, *some))

    def _has(self, row: Row) -> bool:
        """Whether the row's key is there: what `v` is of a new one is asked for, so it is given."""
        return self._place(row) in self.rows

    def _elsewhere(self, row: Row) -> Row:
        """The key of a row in another partition, where each partition has keys of its own."""
        if self.setting.is_global:
            return row
        other = {**row, "city": self.numbers.choice(CITIES)}
        return row if self._place(other) in self.rows else other

    def _overwriting(self) -> list[Row]:
        """Rows of one partition, some with keys that it has; keys of no other one."""
        city = self.numbers.choice(CITIES)
        kept = [row for row in self.rows.values() if row["city"] == city][:2]
        return [self._row(row["id"], city) for row in kept] + [
            {**row, "city": city} for row in self._new_rows(2)
        ]

    def _evolving(self, writer: Writer) -> Step:
        if self.columns["v"] == "int" and self.can_widen and self.numbers.random() < 0.4:
            self.columns["v"] = "long"
        elif self.columns.get("place") == "place" and self.numbers.random() < 0.4:
            self.columns["place"] = "larger place"
        elif len(self.columns) < 8:
            self._add_column()
        return Step(writer, "evolve", tuple(self._batch(late=False)))

    def _altering(self, writer: Writer) -> Step:
        return Step(writer, "alter", columns=(self._add_column(),))

    def _add_column(self) -> str:
        name = f"x{len(self.columns)}"
        self.columns[name] = self.numbers.choice(["int", "double", "string"])
        return name

    @property
    def can_widen(self) -> bool:
        """Whether Hudi lives through a wider column.

        Its global indexes do not (`HoodieMergedReadHandle`, 0.15.0), nor does the merging of
        partition statistics in 1.0.2.
        """
        merges_bounds = self.setting.metadata and self.setting.version == 8
        return not self.setting.is_global and not merges_bounds

    def _chosen(self, count: int) -> list[Row]:
        places = sorted(self.rows, key=repr)
        return [self.rows[one] for one in self.numbers.sample(places, min(count, len(places)))]

    def _new_rows(self, count: int) -> list[Row]:
        rows = []
        for _ in range(count):
            self.made += 1
            odd = self.numbers.choice(["", "", "é", ":", ",", "/ x"])
            rows.append(self._row(f"k{self.made:04d}{odd}", self.numbers.choice(CITIES)))
        return rows

    def _row(self, key: str, city: str | None) -> Row:
        row: Row = {"id": key, "ts": self.clock, "city": city}
        for name, kind in self.columns.items():
            if name not in row:
                row[name] = self._value(name, kind)
        return row

    def _value(self, name: str, kind: str) -> Any:
        if name == "v":
            return self.numbers.randrange(100) + (1 << 40 if kind == "long" else 0)
        if self.numbers.random() < 0.2:
            return None
        if kind == "string":
            return self.numbers.choice(NOTES)
        if kind in _STRUCTS:
            fields = [(one.name, str(one.type)) for one in TYPES[kind][0]]
            return {one: self._value(one, "int" if "int" in of else of) for one, of in fields}
        return self.numbers.randrange(1000) / 4 if kind == "double" else self.numbers.randrange(99)

    # ------------------------------------------------------------ what steps do

    def apply(self, step: Step) -> None:
        """Changes the rows as the step does."""
        if step.action == "delete_keys":
            self._delete(list(step.rows))
        elif step.action == "delete":
            self._delete(self.below(step.below or 0))
        elif step.action == "update":
            for row in self.below(step.below or 0):
                row["note"] = "updated"
        elif step.action == "alter":
            for row in self.rows.values():
                row.update(dict.fromkeys(step.columns))
        elif step.action == "delete_partitions":
            self._empty({*step.cities})
        elif step.action == "overwrite_partitions":
            self._empty({row["city"] for row in step.rows})
            self._put(step.rows)
        else:
            self._put(step.rows, step.columns)

    def below(self, limit: int) -> list[Row]:
        """Rows whose `v` is less."""
        return [row for row in self.rows.values() if row["v"] < limit]

    def _put(self, rows: tuple[Row, ...], columns: tuple[str, ...] = ()) -> None:
        for row in rows:
            old = self.rows.get(self._place(row))
            if old is None or row["ts"] >= old["ts"]:
                given = {name: row[name] for name in columns or self.columns}
                self.rows[self._place(row)] = {**(old or {}), **given}

    def _delete(self, rows: list[Row]) -> None:
        for row in rows:
            del self.rows[self._place(row)]
        self.gone += rows

    def _empty(self, cities: set[str | None]) -> None:
        for place in [one for one, row in self.rows.items() if row["city"] in cities]:
            del self.rows[place]

    def _place(self, row: Row) -> tuple[str, str | None]:
        return (row["id"], None if self.setting.is_global else row["city"])


_NEEDED = ("id", "ts", "city")
_STRUCTS = ("place", "larger place")
_ACTIONS: dict[Writer, tuple[str, ...]] = {
    "pyhudi": (
        *("upsert", "upsert", "upsert", "insert", "bulk_insert", "delete_keys", "delete", "update"),
        *("merge", "overwrite_partitions", "delete_partitions", "evolve"),
    ),
    "hudi": (
        *("upsert", "upsert", "upsert", "insert", "bulk_insert", "delete_keys"),
        *("overwrite_partitions", "delete_partitions", "evolve"),
    ),
}
_WIDER = ("partial", "partial", "partial")
_NOT_IN_BUCKETS = ("bulk_insert", "overwrite_partitions")
"""What pyhudi refuses where buckets are file groups; Hudi makes second groups of a bucket."""
_COMPACTIONS = ("compaction", "compaction")


def in_order(rows: list[Row]) -> list[Row]:
    """Sorted by key and partition; duplicates stay."""
    return sorted(rows, key=lambda row: (str(row["id"]), str(row["city"])))


def _each_once(rows: list[Row], place: Any) -> list[Row]:
    return list({place(row): row for row in rows}.values())
