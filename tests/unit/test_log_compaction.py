"""Log compaction: no read changes, whatever the log files hold; plans, and what they keep away."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.api.table import HudiTable
from pyhudi.config.actions import LOG_COMPACTION
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from tests.helpers import log_bytes

pytestmark = pytest.mark.slow

VERSIONS = [6, 8, 9]
SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("v", pa.int64()), ("note", pa.string())]
)


def people(numbers: list[int], v: int, note: str = "") -> pa.Table:
    rows = [
        {"id": f"k{number:02}", "city": f"c{number % 2}", "v": v, "note": note}
        for number in numbers
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def made(base: Path, version: int, *, ordered: bool = True, **more: Any) -> HudiTable:
    return pyhudi.create_table(
        base,
        people(list(range(20)), 5),
        key="id",
        partition_by="city",
        order_by="v" if ordered else None,
        type="mor",
        version=version,
        **more,
    )


def content(table: HudiTable) -> list[dict[str, Any]]:
    """Rows with the commit that each is of."""
    rows = pyhudi.open_table(table.uri).scan(meta_fields=True).to_arrow()
    wanted = rows.select(["id", "city", "v", "note", "_hoodie_commit_time"])
    found: list[dict[str, Any]] = wanted.sort_by("id").to_pylist()
    return found


def log_files(table: HudiTable) -> int:
    return sum(
        file.name.startswith(".") and ".log." in file.name
        for folder in ("c0", "c1")
        for file in (Path(table.uri) / folder).iterdir()
    )


def changed(table: HudiTable, choose: random.Random, turn: int) -> None:
    """A commit of updates, late ones among them, of deletes, or of keys that come back."""
    numbers = choose.sample(range(24), 6)
    kind = choose.choice(["upsert", "upsert", "delete", "delete_keys"])
    if kind == "upsert":
        table.upsert(people(numbers, choose.randrange(12), f"turn {turn}"))
    elif kind == "delete":
        table.delete(f"id in ({', '.join(repr(f'k{n:02}') for n in numbers)}) and v < 9")
    else:
        table.delete_keys(people(numbers, 0).select(["id", "city"]))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
def test_log_compaction_changes_no_read(
    tmp_path: Path, version: int, *, ordered: bool, seed: int
) -> None:
    table, choose = made(tmp_path / "t", version, ordered=ordered), random.Random(seed)
    done, before = 0, content(table)
    for turn in range(14):
        changed(table, choose, turn)
        before = content(table)
        if turn % 3 == 2:
            done += table.log_compact(min_log_files=2).files_written
            assert content(table) == before, turn
        if turn == 10:
            table.compact()
            assert content(table) == before
    assert done > 4
    assert not table.check(deep=True).findings
    table.compact()
    assert content(table) == before


def test_compacted_log_block_replaces_listed_blocks(tmp_path: Path) -> None:
    table = made(tmp_path / "t", 9)
    for v in range(6, 12):
        table.upsert(people([0, 2], v))
    table.delete_keys(people([2], 0).select(["id", "city"]))
    commits = table.inspect.commits()["requested"].to_pylist()[1:]
    result = table.log_compact()
    assert (result.file_groups, result.files_read, result.files_written) == (1, 8, 1)
    (instant,) = result.instants
    (path,) = (Path(table.uri) / "c0").glob(f".*{instant}.log.1_*")
    blocks = _native.log_blocks(table.state.storage.native, f"c0/{path.name}")
    assert len(blocks) == 2
    for block in blocks:
        assert dict(block["header"])["COMPACTED_BLOCK_TIMES"] == ",".join(commits)
    # Nothing is left to be merged with it, until enough has come.
    assert table.log_compact().instants == ()
    for v in range(20, 23):
        table.upsert(people([0], v))
    assert table.log_compact().instants == ()
    table.upsert(people([0], 24))
    assert table.log_compact(dry_run=True).files_read == 13
    assert len(table.log_compact().instants) == 1
    assert content(table)[0]["v"] == 24


@pytest.mark.parametrize("version", VERSIONS)
def test_log_compaction_plan_executes_later(tmp_path: Path, version: int) -> None:
    table = made(tmp_path / "t", version)
    for v in range(6, 12):
        table.upsert(people([0, 1, 2], v))
    planned = table.log_compact(execute=False)
    assert len(planned.scheduled) == 1
    table.upsert(people([0, 1], 20))
    before = content(table)
    # A compaction of what is planned would be undone by it.
    assert table.compact().instants == ()
    table.upsert(people([2], 21))
    done = table.log_compact(schedule=False)
    assert done.instants == planned.scheduled
    assert content(table)[1:2] + content(table)[3:] == before[1:2] + before[3:]
    assert content(table)[2]["v"] == 21
    assert table.compact().files_written == 2
    assert not table.check(deep=True).findings


def test_log_compaction_plan_is_cancelled_by_compaction(tmp_path: Path) -> None:
    table = made(tmp_path / "t", 9)
    for v in range(6, 12):
        table.upsert(people([0], v))
    compaction = table.compact(execute=False)
    for v in range(12, 18):
        table.upsert(people([1], v))
    planned = table.log_compact(execute=False)
    table.compact(schedule=False)
    # The compaction was planned before: both hold.
    assert compaction.scheduled < planned.scheduled
    later = pyhudi.open_table(table.uri)
    later.upsert(people([0], 30))
    later.compact()
    before = content(later)
    done = later.log_compact()
    assert done.instants != planned.scheduled
    assert later.state.timeline.pending(LOG_COMPACTION) == ()
    assert later.state.timeline.find(planned.scheduled[0], LOG_COMPACTION) is None
    assert content(later) == before


def test_inline_log_compaction_runs_if_enabled(tmp_path: Path) -> None:
    options = {"hoodie.log.compaction.inline": True, "hoodie.log.compaction.blocks.threshold": 3}
    table = made(tmp_path / "t", 9, options=options)
    for v in range(6, 9):
        table.upsert(people([0, 2], v))
    assert log_files(table) == 4
    assert table.inspect.commits()["operation"].to_pylist()[-1] == "LOG_COMPACT"


def test_log_compaction_refuses_field_merges(tmp_path: Path) -> None:
    table = made(tmp_path / "t", 9)
    with pytest.raises(ConfigError, match="min_log_files"):
        table.log_compact(min_log_files=1)
    for v in range(6, 12):
        table.update(where="id = 'k00'", set={"v": str(v)})
    cow = pyhudi.create_table(tmp_path / "cow", SCHEMA, key="id", type="cow")
    with pytest.raises(UnsupportedTableFeature, match="COPY_ON_WRITE"):
        cow.log_compact()


@pytest.mark.parametrize("version", VERSIONS)
def test_log_compaction_keeps_deletes_of_change_log(tmp_path: Path, version: int) -> None:
    """Flink stores their operation in a column that the table's schema does not have."""
    base = tmp_path / "t"
    options = {"hoodie.metadata.enable": "false", "hoodie.log.compaction.blocks.threshold": "2"}
    data = pa.table({"id": ["a", "b", "c"], "v": [1, 2, 3]})
    pyhudi.create_table(base, data, key="id", type="mor", version=version, options=options)
    table = pyhudi.open_table(base, options={**options, "pyhudi.read.check.file.sizes": "false"})
    for v in range(4):
        table.upsert(pa.table({"id": ["a"], "v": [10 + v]}))
    (block,) = table.inspect.logs().slice(1, 1).to_pylist()
    header = dict(block["header"])
    schema = json.loads(header["SCHEMA"])
    operation = {"name": "_hoodie_operation", "type": ["null", "string"], "default": None}
    schema["fields"].insert(5, operation)
    row = dict.fromkeys((field["name"] for field in schema["fields"]), None)
    row |= {"_hoodie_record_key": "b", "_hoodie_operation": "D", "id": "b", "v": 2}
    texts = log_bytes.headers(header["INSTANT_TIME"], json.dumps(schema))
    (file,) = base.rglob(block["log_file"])
    file.write_bytes(log_bytes.avro_block(texts, [row]))
    rows = table.scan().to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": "a", "v": 13}, {"id": "c", "v": 3}]
    with pytest.raises(UnsupportedTableFeature, match="_hoodie_operation"):
        table.log_compact()
    assert pyhudi.open_table(base, options=table.options).scan().count() == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_incremental_skips_rows_log_compaction_repeated(tmp_path: Path, version: int) -> None:
    """A late row of the range stands there, unless the range has a commit of those that beat it."""
    table = made(tmp_path / "t", version)
    times = [last_time(table)]
    for v in (10, 11):
        table.upsert(people([1, 2], v, f"v {v}"))
        times.append(last_time(table))
    assert table.log_compact(min_log_files=2).instants
    times.append(last_time(table))
    table.upsert(people([1], 7, "late"))
    times.append(last_time(table))

    def notes(start: str, end: str) -> list[str]:
        rows = table.refresh().incremental(start, end).to_arrow()
        return sorted(rows["note"].to_pylist())

    first, *_, merged, late = times
    assert notes(times[2], merged) == []
    assert notes(times[2], late) == ["late"]
    assert notes(merged, late) == ["late"]
    assert notes(first, late) == notes(first, merged) == ["v 11", "v 11"]
    # In it with one of the two, the log compaction beats the late row.
    assert notes(times[1], late) == notes(times[1], times[2]) == ["v 11", "v 11"]


def last_time(table: HudiTable) -> str:
    last = table.refresh().state.timeline.commits[-1]
    return (last.completed if table.version >= 8 else last.requested) or ""
