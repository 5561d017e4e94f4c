"""Compaction of the metadata table block by block, beside a model of what the index holds."""

from __future__ import annotations

import random
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest

from pyhudi import _native
from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.metadata.record_tasks import record_schema
from pyhudi.storage.storage import Storage

KEYS = 20_000
SCHEMA = record_schema("HoodieMetadataRecord_v9")


class Group:
    """One file group of a record index, and what it must hold."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.storage = Storage(str(folder))
        self.choose = random.Random(seed)
        self.record_builder = _native.MetadataRecorder(SCHEMA, {RECORD_INDEX: 1})
        self.base: str | None = None
        self.logs: list[str] = []
        self.expected: dict[str, str] = {}
        self.files = 0

    def log(self, added: list[str], removed: list[str]) -> None:
        self.files += 1
        file_id = f"{UUID(int=self.files)}-0"
        rows = self.record_builder.locations(
            "p", file_id, self.files, added=pa.array(added), removed=pa.array(removed, pa.string())
        )
        path = f"{self.files}.log"
        _native.write_metadata_log(
            self.storage.native,
            path,
            rows,
            instant=f"{self.files}",
            avro_schema=SCHEMA,
            partition=RECORD_INDEX,
        )
        self.logs.append(path)
        for key in removed:
            self.expected.pop(key, None)
        self.expected |= dict.fromkeys(added, file_id)

    @property
    def slice(self) -> _native.MetadataPartition:
        return _native.MetadataPartition(self.storage.native, [(self.base, self.logs)])

    def compact(self) -> _native.BaseFile:
        self.files += 1
        written = _native.compact_metadata_group(
            self.slice, f"{self.files}.hfile", avro_schema=SCHEMA
        )
        self.base, self.logs = written.path, []
        return written

    def check(self, written: _native.BaseFile) -> None:
        assert written.rows == len(self.expected)
        assert self.ends() == (min(self.expected), max(self.expected))
        found = self.slice.locations()
        keys = found.column("key").to_pylist()
        assert dict(zip(keys, found.column("file_id").to_pylist(), strict=True)) == self.expected
        some = self.choose.sample(sorted(self.expected), 50)
        looked = self.slice.locations([*some, "none", "key-0000001x"])
        assert sorted(looked.column("key").to_pylist()) == sorted(some)
        self.look_up(some)

    def look_up(self, some: list[str]) -> None:
        """Looks up keys in any order, some of them twice and some that the index lacks."""
        keys = [*some, *some[:5], "none", "key-0000001x", "", "key-00000012-and-more"]
        self.choose.shuffle(keys)
        numbers, locations = self.slice.key_locations(pa.array(keys))
        assert len(set(locations)) == len(locations)
        found = [None if number is None else locations[number] for number in numbers.to_pylist()]
        expected = [self.expected.get(each) for each in keys]
        assert found == [None if file_id is None else ("p", file_id) for file_id in expected]

    def ends(self) -> tuple[str, str]:
        """The first key and the last, as the base file says."""
        names = ("minRecordKey", "maxRecordKey")
        infos = [_native.hfile_info(self.storage.native, str(self.base), name) for name in names]
        first, last = [(info or b"").decode() for info in infos]
        return first, last

    def taken_over(self) -> int:
        """Records of the base file that still name the one they came with."""
        assert self.base is not None
        pairs = _native.hfile_pairs(self.storage.native, self.base)
        return sum(self.base.encode() not in value for _, value in pairs)


def key(number: int) -> str:
    return f"key-{number:07}"


@pytest.mark.parametrize("seed", range(3))
def test_blocks_without_changes_are_taken_over(tmp_path: Path, seed: int) -> None:
    group = Group(tmp_path, seed)
    group.log([key(2 * number) for number in range(KEYS)], [])
    group.check(group.compact())
    for turn in range(6):
        known = sorted(group.expected)
        start = group.choose.randrange(len(known) - 300)
        near = known[start : start + 300]
        spread = group.choose.sample(known, 3)
        new = [key(2 * group.choose.randrange(KEYS) + 1) for _ in range(3)]
        ends = [key(10 * KEYS + turn), f"a{turn}"]
        group.log([*near[:100], *spread, *new, *ends], near[100:])
        # What went comes back, and what came goes, before anything is compacted.
        group.log(near[200:210], [*near[:5], *new[:1]])
        group.look_up([*near, *spread, *new, *group.choose.sample(known, 50)])
        group.check(group.compact())
        assert group.taken_over() > KEYS / 2


@pytest.mark.parametrize("seed", range(3))
def test_first_metadata_compaction_takes_over_blocks_of_bulk_load(
    tmp_path: Path, seed: int
) -> None:
    """Otherwise a commit soon after a bulk load decodes all keys of the table."""
    group = Group(tmp_path, seed)
    group.log([], [key(2), "none"])
    group.log([key(2 * number) for number in range(KEYS)], [])
    for turn in range(4):
        known = sorted(group.expected)
        start = group.choose.randrange(len(known) - 300)
        near = known[start : start + 300]
        group.log([*near[:100], key(2 * start + 1), key(10 * KEYS + turn)], [*near[100:], "none"])
        group.log(near[200:210], [*near[:5], known[0]])
    group.check(group.compact())
    assert group.taken_over() > KEYS / 2


@pytest.mark.parametrize("loads", [(KEYS // 2, KEYS), (100, KEYS), (KEYS // 4, 10)])
def test_first_metadata_compaction_merges_several_loads(
    tmp_path: Path, loads: tuple[int, int]
) -> None:
    group = Group(tmp_path, 1)
    first, second = loads
    group.log([key(2 * number) for number in range(first)], [])
    group.log([key(3 * number) for number in range(second)], [key(1), key(2)])
    group.check(group.compact())
    assert not group.taken_over()


def test_metadata_compaction_drops_first_and_last_key(tmp_path: Path) -> None:
    group = Group(tmp_path, 1)
    keys = [key(number) for number in range(KEYS)]
    group.log(keys, [])
    group.compact()
    group.log([], keys[:2000] + keys[-2000:])
    group.check(group.compact())
    # Nothing is left of the last block, and then of all.
    group.log([keys[0]], keys[1:])
    with_one = group.compact()
    assert (with_one.rows, group.ends()) == (1, (keys[0], keys[0]))
    group.log([], [keys[0]])
    assert group.compact().rows == 0
    group.log(keys[:10], [])
    assert group.compact().rows == 10


def test_metadata_compaction_rewrites_file_of_other_schema(tmp_path: Path) -> None:
    group = Group(tmp_path, 1)
    group.log([key(number) for number in range(KEYS)], [])
    group.compact()
    group.log([key(1)], [])
    written = _native.compact_metadata_group(
        group.slice, "other.hfile", avro_schema=record_schema("HoodieMetadataRecord_v6")
    )
    group.base, group.logs = written.path, []
    group.check(written)
    assert not group.taken_over()
