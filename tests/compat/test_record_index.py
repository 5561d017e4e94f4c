"""pyhudi and Hudi write one table with a record index in turn; its locations stay those of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.config.actions import COMMIT
from pyhudi.storage.storage import Storage
from tests.helpers.metadata_table import metadata_table
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.record_index import check_index

DDL = "id string, ts int, city string, v int, _hoodie_is_deleted boolean"
TYPES = [
    ("id", pa.string()),
    ("ts", pa.int32()),
    ("city", pa.string()),
    ("v", pa.int32()),
    ("_hoodie_is_deleted", pa.bool_()),
]
MOVE = "hoodie.record.index.update.partition.path"
GLOBAL = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.record.index.max.filegroup.count": "2",
}
INDEXES = {
    "moving": {**GLOBAL, MOVE: "true"},
    "fixed": {**GLOBAL, MOVE: "false"},
    "by_partition": {
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
        "hoodie.metadata.record.level.index.enable": "true",
    },
}
RELEASES = [(6, "0.15.0"), (8, "1.0.2"), (9, "1.2.0")]
CASES = [
    (version, hudi, kind, index)
    for version, hudi in RELEASES
    for kind, index in [("cow", "moving"), ("mor", "moving"), ("mor", "fixed")]
]
CASES += [(9, "1.2.0", kind, "by_partition") for kind in ("cow", "mor")]
# Such a name is escaped in the file ids of an index by data partition.
YORK = "new_york-[1]"

Row = dict[str, Any]


def rows(ids: Iterable[str], city: str, v: int, *, deleted: bool = False) -> list[Row]:
    return [
        {"id": one, "ts": v, "city": city, "v": v, "_hoodie_is_deleted": deleted} for one in ids
    ]


def arrow(given: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(given, pa.schema(TYPES))


def hudi_options(version: int, kind: str, index: str) -> dict[str, str]:
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE" if kind == "cow" else "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.metadata.index.partition.stats.enable": "false",
        "hoodie.embed.timeline.server": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.compact.inline.max.delta.commits": "100",
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.delete.shuffle.parallelism": "2",
        "hoodie.index.bloom.num_entries": "64",
        "hoodie.write.auto.upgrade": "false",
        "hoodie.schema.on.read.enable": "false",
        **INDEXES[index],
    }
    if version == 6:
        payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
        options["hoodie.datasource.write.payload.class"] = payload
        options["hoodie.compaction.payload.class"] = payload
    return options


@dataclass
class Both:
    """A table that both write, and what it must hold: value and partition by key."""

    hudi: HudiOracle
    base: Path
    index: str
    options: dict[str, str]
    held: dict[tuple[str, str], int] = field(default_factory=dict)
    lost: list[tuple[str, str]] = field(default_factory=list)
    """Keys that are gone and may come back, with their last partition."""

    @property
    def table(self) -> HudiTable:
        known = {k: v for k, v in INDEXES[self.index].items() if k == MOVE}
        return pyhudi.open_table(self.base, options=known)

    def hudi_upserts(self, given: list[Row], mode: str = "append") -> None:
        self.hudi.write(
            self.base, rows=given, schema=DDL, operation="upsert", options=self.options, mode=mode
        )
        self.put(given)

    def we_upsert(self, given: list[Row]) -> None:
        self.table.upsert(arrow(given))
        self.put(given)

    def put(self, given: list[Row]) -> None:
        for row in given:
            known = [(i, c) for i, c in self.held if i == row["id"]]
            home = (row["id"], row["city"])
            if self.index == "by_partition":
                known = [one for one in known if one == home]
            for one in known:
                if self.held[one] > row["ts"]:
                    break
                del self.held[one]
                if not row["_hoodie_is_deleted"]:
                    self.held[home if self.index == "moving" else one] = row["v"]
                break
            else:
                if not row["_hoodie_is_deleted"]:
                    self.held[home] = row["v"]

    def forget(self, gone: Callable[[tuple[str, str]], bool]) -> None:
        self.held = {key: v for key, v in self.held.items() if not gone(key)}

    def check(self, said: str) -> None:
        """Rows, and that the index has their places and no others, by our reader."""
        ours = self.table.scan(meta_fields=True).to_arrow().to_pylist()
        assert seen(ours) == self.expected(), said
        check_index(self.base, said)

    def check_by_hudi(self, said: str) -> None:
        """The same by Hudi's readers, with a look-up in the index, and its own checks."""
        self.check(said)
        key = min(self.held)[0]
        for text, rows in [
            ("v >= 0", self.expected()),
            (f"id = '{key}'", [one for one in self.expected() if one[0] == key]),
        ]:
            found = self.hudi.read(
                self.base, meta=True, metadata=True, data_skipping=True, filter=text
            )
            assert seen(found["rows"]) == rows, (said, text)
        verdict = self.hudi.validate(self.base)
        assert verdict["ok"], (said, verdict)
        # Keys of an index by data partition may be in several.
        assert verdict["duplicate_keys"] == 0 or self.index == "by_partition", said

    def expected(self) -> list[tuple[str, str, int]]:
        return sorted((key, place, v) for (key, place), v in self.held.items())


def seen(found: list[Row]) -> list[tuple[str, str, int]]:
    return sorted((one["id"], one["_hoodie_partition_path"], one["v"]) for one in found)


@pytest.mark.parametrize(("version", "hudi", "kind", "index"), CASES, indirect=["hudi"])
@pytest.mark.timeout(600)
def test_record_index_follows(
    tmp_path: Path, hudi: HudiOracle, version: int, kind: str, index: str
) -> None:
    both = Both(hudi, tmp_path / "t", index, hudi_options(version, kind, index))
    first = rows("abcd", "oslo", 1) + rows("efgh", "lima", 1) + rows("ij", YORK, 1)
    both.hudi_upserts(first, mode="overwrite")
    replaced(both)
    # Keys that were replaced come back, and are nowhere else.
    both.hudi_upserts(rows("cdef", "lima", 5) + rows("i", YORK, 5) + rows("g", "oslo", 5))
    both.check_by_hudi("Hudi on replaced partitions")
    overwritten(both)
    if index == "moving":
        moved(both)
    deleted_and_late(both)
    lost = dict(both.lost)
    both.hudi_upserts([row for key in lost for row in rows([key], lost[key], 40)])
    both.hudi_upserts([row for key, place in sorted(both.held) for row in rows([key], place, 41)])
    both.check_by_hudi("Hudi on all of ours")
    both.we_upsert([row for key, place in sorted(both.held) for row in rows([key], place, 42)])
    both.check_by_hudi("our upsert on Hudi's")


def replaced(both: Both) -> None:
    fresh = rows("abx", "oslo", 2)
    both.table.overwrite_partitions(arrow(fresh))
    both.forget(lambda key: key[1] == "oslo")
    both.put(fresh)
    both.check("overwritten partition")
    both.table.delete_partitions(["lima"])
    both.forget(lambda key: key[1] == "lima")
    both.check("deleted partition")
    both.we_upsert(rows("ef", "oslo", 4) + rows("hi", YORK, 4))
    both.check("our upsert on a deleted partition")


def overwritten(both: Both) -> None:
    fresh = rows("abek", "oslo", 6) + rows("hi", "lima", 6)
    both.table.overwrite(arrow(fresh))
    both.lost = sorted(both.held.keys() - {(row["id"], row["city"]) for row in fresh})
    both.held = {}
    both.put(fresh)
    both.check("overwritten table")
    both.we_upsert(rows("mn", "a b", 8) + rows("o", "%4_-", 8))
    both.check("new partitions")


def moved(both: Both) -> None:
    both.we_upsert(rows("am", YORK, 20) + rows("b", "quito", 20) + rows("n", "oslo", 1))
    both.check("our moves")
    both.hudi_upserts(rows("a", "oslo", 21) + rows("bm", "lima", 21))
    both.we_upsert(rows("abm", "quito", 22) + rows("z", "quito", 22))
    both.check("our moves of Hudi's moves")


def deleted_and_late(both: Both) -> None:
    some = sorted(both.held)[:4]
    late = [row for key, place in some[:2] for row in rows([key], place, 1, deleted=True)]
    gone = [row for key, place in some[2:] for row in rows([key], place, 30, deleted=True)]
    both.we_upsert(late + gone + rows("y", "oslo", 30))
    both.check("deleted and late")
    keys = arrow([row for key, place in some[:1] for row in rows([key], place, 0)])
    both.table.delete_keys(keys.select(["id", "city"]))
    both.forget(lambda key: key in some[:1])
    both.check("deleted keys")
    both.lost += [some[0], *some[2:]]


MANY = 20_000


@pytest.mark.parametrize(("version", "hudi"), [RELEASES[0], RELEASES[-1]], indirect=["hudi"])
@pytest.mark.timeout(600)
def test_hudi_finds_keys_in_base_files_of_our_blocks(
    tmp_path: Path, hudi: HudiOracle, version: int
) -> None:
    """Many small blocks, some of which our compactions took over packed from the file before."""
    both = Both(hudi, tmp_path / "t", "fixed", hudi_options(version, "mor", "fixed"))
    first = rows((f"k{number:06}" for number in range(0, 2 * MANY, 2)), "oslo", 1)
    both.hudi_upserts(first[:10], mode="overwrite")
    table = pyhudi.open_table(both.base, options={"hoodie.metadata.compact.max.delta.commits": "2"})
    table.upsert(arrow(first))
    both.put(first)
    for turn in range(2, 8):
        changed = first[turn * 2000 : turn * 2000 + 5]
        given = [{**row, "ts": turn, "v": turn} for row in changed]
        given += rows([f"k{turn * 3001 * 2 + 1:06}"], "oslo", turn)
        table.upsert(arrow(given))
        both.put(given)
        gone = [first[turn * 1000]["id"]]
        table.delete_keys(pa.table({"id": gone, "city": ["oslo"]}))
        both.forget(lambda key, gone=gone: key[0] in gone)  # type: ignore[misc]
    metadata = metadata_table(Storage(str(both.base)))
    compactions = metadata.timeline.filter_completed(COMMIT)
    assert len(compactions) > 3
    both.check_by_hudi("Hudi on our blocks")
    known = [row["id"] for row in first[5::997] if (row["id"], "oslo") in both.held]
    both.hudi_upserts(rows([*known, "k000001", "zz"], "oslo", 50))
    both.check_by_hudi("Hudi's upsert by our blocks")
