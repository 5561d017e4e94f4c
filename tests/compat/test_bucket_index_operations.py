"""bulk_insert and overwriting under bucket indexes, by pyhudi and Apache Hudi in turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.errors import CorruptTable
from tests.compat.test_indexes import (
    DDL,
    PER_INDEX,
    RELEASES,
    Row,
    arrow,
    check,
    hudi_options,
    only_once,
    open_with,
    rows,
)
from tests.helpers.oracle.client import HudiOracle


class Turns:
    """A table that both write to; after each write both see the model's rows."""

    def __init__(self, hudi: HudiOracle, base: Path, version: int, kind: Any, index: str) -> None:
        self.hudi, self.base, self.index = hudi, base, index
        self.options = hudi_options(version, kind, index)
        self.model: dict[str, tuple[str, int]] = {}
        pyhudi.create_table(
            base,
            arrow([]),
            key="id",
            partition_by="city",
            order_by="ts",
            type=kind,
            version=version,
            options={"hoodie.table.name": "t", **PER_INDEX[index]},
        )

    def ours(self, verb: str, given: list[Row]) -> None:
        getattr(open_with(self.base, self.index), verb)(arrow(given))
        self.check(f"our {verb}", verb, given)

    def theirs(self, operation: str, given: list[Row], **options: str) -> None:
        options = {**self.options, **options}
        self.hudi.write(self.base, rows=given, schema=DDL, operation=operation, options=options)
        names = {"insert_overwrite": "overwrite_partitions", "insert_overwrite_table": "overwrite"}
        self.check(f"Hudi's {operation}", names.get(operation, operation), given)

    def check(self, said: str, verb: str, given: list[Row]) -> None:
        cities = {row["city"] for row in given}
        if verb == "overwrite":
            self.model = {}
        elif verb == "overwrite_partitions":
            self.model = {k: at for k, at in self.model.items() if at[0] not in cities}
        self.model.update({row["id"]: (row["city"], row["v"]) for row in given})
        found = check(self.hudi, self.base, said)
        only_once(found)
        assert {key: (city, v) for key, city, v in found} == self.model, said


@pytest.mark.parametrize(
    ("kind", "index"), [("cow", "bucket"), ("mor", "bucket"), ("mor", "consistent")]
)
@pytest.mark.parametrize(("version", "hudi"), RELEASES, indirect=["hudi"])
@pytest.mark.timeout(600)
def test_writing_in_turn(
    tmp_path: Path, hudi: HudiOracle, version: int, kind: str, index: str
) -> None:
    turns = Turns(hudi, tmp_path / "t", version, kind, index)
    turns.ours("bulk_insert", rows("abcdef", "oslo", 1) + rows("ghij", "lima", 1))
    turns.theirs("upsert", rows("abk", "oslo", 2) + rows("g", "lima", 2))
    turns.ours("bulk_insert", rows("bcl", "oslo", 3) + rows("m", "rome", 3))
    turns.theirs("upsert", rows("clm", "oslo", 4)[:2] + rows("mn", "rome", 4))
    turns.ours("overwrite_partitions", rows("ab", "oslo", 5) + rows("z", "bern", 5))
    turns.theirs("upsert", rows("bcd", "oslo", 6) + rows("zy", "bern", 6))
    turns.ours("upsert", rows("cq", "oslo", 7))
    turns.ours("overwrite", rows("abc", "oslo", 8) + rows("t", "quito", 8))
    turns.theirs("upsert", rows("ade", "oslo", 9) + rows("gh", "lima", 9) + rows("t", "quito", 9))
    turns.ours("upsert", rows("ae", "oslo", 10) + rows("hi", "lima", 10))
    if index == "bucket":
        after_their_overwrites(turns)
    else:
        change_consistent_buckets(turns)
    assert open_with(turns.base, index).check().ok


def after_their_overwrites(turns: Turns) -> None:
    turns.theirs("insert_overwrite", rows("bx", "oslo", 11) + rows("w", "kyiv", 11))
    turns.ours("bulk_insert", rows("by", "oslo", 12) + rows("wv", "kyiv", 12))
    turns.theirs("bulk_insert", rows("fu", "male", 13))
    turns.ours("upsert", rows("fr", "male", 14))
    turns.theirs("insert_overwrite_table", rows("ab", "oslo", 15))
    turns.ours("bulk_insert", rows("bc", "oslo", 16) + rows("g", "lima", 16))


def change_consistent_buckets(turns: Turns) -> None:
    """Hudi overwrites and leaves hashing metadata without file groups; its next upsert is lost."""
    turns.theirs("insert_overwrite", rows("bx", "oslo", 11) + rows("w", "kyiv", 11))
    for city in ("oslo", "kyiv"):
        with pytest.raises(CorruptTable, match="hashing metadata"):
            open_with(turns.base, turns.index).upsert(arrow(rows("b", city, 12)))
    turns.ours("overwrite_partitions", rows("by", "oslo", 13) + rows("wu", "kyiv", 13))
    turns.theirs("upsert", rows("bcd", "oslo", 14) + rows("wr", "kyiv", 14))
    turns.ours("upsert", rows("be", "oslo", 15) + rows("w", "kyiv", 15))
    turns.ours("bulk_insert", rows("bf", "oslo", 16) + rows("p", "lodz", 16))
    turns.theirs("upsert", rows("fp", "lodz", 17)[1:] + rows("f", "oslo", 17))
