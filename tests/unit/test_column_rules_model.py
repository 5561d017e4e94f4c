"""Random histories of tables with merge rules, compared with a model in Python after each step.

Services must not change a row, whenever they run: log files are merged before their base file by a
log compaction, and after it by a reader.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.table_builder import Kind

pytestmark = pytest.mark.slow

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("total", pa.int64()),
        ("top", pa.float64()),
        ("low", pa.string()),
        ("origin", pa.string()),
        ("note", pa.string()),
        ("log", pa.list_(pa.int64())),
        ("tags", pa.list_(pa.string())),
        ("name", pa.string()),
        ("ts", pa.int64()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
RULES = {
    "total": "sum",
    "top": "max",
    "low": "min",
    "origin": "first",
    "note": "last_non_null",
    "log": "append",
    "tags": "union",
}
KEYS = [f"k{number}" for number in range(12)]
Row = dict[str, Any]


def combine(rule: str, older: Any, newer: Any) -> Any:
    if older is None or newer is None:
        return older if newer is None else newer
    match rule:
        case "union":
            return list(dict.fromkeys([*older, *newer]))
        case "sum" | "append":
            return older + newer
        case "max":
            return max(older, newer)
        case "min":
            return min(older, newer)
        case "first":
            return older
        case _:
            return newer


class Model:
    """The rows by key, as the documentation says them."""

    def __init__(self, *, ordered: bool) -> None:
        self.ordered = ordered
        self.rows: dict[str, Row] = {}

    def upsert(self, rows: list[Row]) -> None:
        for row in rows:
            if row["_hoodie_is_deleted"]:
                self.rows.pop(row["id"], None)
            else:
                self.merge(row)

    def merge(self, newer: Row) -> None:
        older = self.rows.get(newer["id"])
        if older is None:
            self.rows[newer["id"]] = dict(newer)
            return
        wins = not self.ordered or newer["ts"] >= older["ts"]
        winner = newer if wins else older
        self.rows[newer["id"]] = {
            name: combine(RULES[name], older[name], newer[name]) if name in RULES else winner[name]
            for name in SCHEMA.names
        }

    def partial(self, rows: list[Row]) -> None:
        for row in rows:
            stored = self.rows.get(row["id"], {})
            unchanged = {n: None if n in RULES else stored.get(n) for n in SCHEMA.names}
            self.merge({**unchanged, **row})

    def update(self, where: str, name: str) -> None:
        if where in self.rows:
            self.rows[where] = {**self.rows[where], "name": name}


def some(choose: random.Random, value: Any) -> Any:
    return value if choose.random() < 0.7 else None


def new_row(choose: random.Random, key: str) -> Row:
    return {
        "id": key,
        "total": some(choose, choose.randrange(-5, 50)),
        "top": some(choose, choose.choice([-1.5, 0.0, 2.25, float("inf")])),
        "low": some(choose, choose.choice(["", "a", "Z", "ü", "ab"])),
        "origin": some(choose, f"o{choose.randrange(99)}"),
        "note": some(choose, f"n{choose.randrange(99)}"),
        "log": some(choose, [choose.randrange(9) for _ in range(choose.randrange(3))]),
        "tags": some(choose, [choose.choice("xyz") for _ in range(choose.randrange(4))]),
        "name": some(choose, f"name {choose.randrange(99)}"),
        "ts": choose.randrange(20),
        "_hoodie_is_deleted": False,
    }


def step(choose: random.Random, table: pyhudi.HudiTable, model: Model, kind: Kind) -> str:
    """Change table and model alike."""
    keys = choose.sample(KEYS, 4)
    services: dict[str, Callable[[], object]] = {
        "compact": table.compact,
        "log_compact": partial(table.log_compact, min_log_files=2),
        "cluster": table.cluster,
        "clean": partial(table.clean, retain=2),
    }
    action = choose.choice(
        ["upsert"] * 6
        + ["partial"] * 3
        + ["update", "merge", "delete", "delete_keys", "deletes", "cluster", "clean"]
        + (["compact", "log_compact", "log_compact"] if kind == "mor" else [])
    )
    match action:
        case "upsert":
            rows = [new_row(choose, choose.choice(keys)) for _ in range(6)]
            model.upsert(rows)
            table.upsert(pa.Table.from_pylist(rows, SCHEMA))
        case "partial":
            columns = ["id", "ts", *choose.sample(["total", "tags", "low", "name"], 2)]
            rows = [new_row(choose, choose.choice(keys)) for _ in range(4)]
            rows = [{name: row[name] for name in columns} for row in rows]
            model.partial(rows)
            schema = pa.schema([SCHEMA.field(name) for name in columns])
            table.upsert(pa.Table.from_pylist(rows, schema), partial=True)
        case "update":
            model.update(keys[0], "set")
            table.update(f"id = '{keys[0]}'", {"name": "'set'"})
        case "merge":
            for key in keys:
                model.update(key, "merged")
            source = pa.table({"id": keys})
            table.merge(source).when_matched_update({"name": "'merged'"}).execute()
        case "delete":
            model.rows.pop(keys[0], None)
            table.delete(f"id = '{keys[0]}'")
        case "delete_keys":
            for key in keys:
                model.rows.pop(key, None)
            table.delete_keys(keys)
        case "deletes":
            rows = [{**new_row(choose, key), "_hoodie_is_deleted": True} for key in keys]
            model.upsert(rows)
            table.upsert(pa.Table.from_pylist(rows, SCHEMA))
        case _:
            services[action]()
    return action


def values(rows: list[Row]) -> Mapping[str, Row]:
    """By key. Only the rows of a partial upsert have no flag."""
    return {row["id"]: {**row, "_hoodie_is_deleted": False} for row in rows}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_tables_with_rules_agree_with_the_model(
    tmp_path: Path, kind: Kind, version: int, ordered: bool, seed: int
) -> None:
    choose = random.Random(f"{kind} {version} {ordered} {seed}")
    table = pyhudi.create_table(
        tmp_path / "t",
        SCHEMA,
        key="id",
        order_by="ts" if ordered else None,
        type=kind,
        version=version,
        merge_rules=RULES,
        options={"hoodie.metadata.enable": seed % 2 == 0},
    )
    model = Model(ordered=ordered)
    actions = []
    for _ in range(25):
        actions.append(step(choose, table, model, kind))
        rows = pyhudi.open_table(table.uri).to_arrow().to_pylist()
        assert len(rows) == len(model.rows), actions
        found, wanted = values(rows), values(list(model.rows.values()))
        differing = {key: (row, wanted[key]) for key, row in found.items() if row != wanted[key]}
        assert not differing, (actions, differing)
    keys = choose.sample(KEYS, 3)
    looked_up = values(table.get(keys).to_pylist())
    assert looked_up == values([model.rows[key] for key in keys if key in model.rows])
