"""Change logs beside rewritten base files: when there is one, and what it tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, _native
from pyhudi.index.duplicate_keys import groups_with_duplicates
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.write import execute
from tests.helpers.pairwise import pairwise
from tests.helpers.table_builder import TableBuilder, numbered

MODES = ("DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY")


TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered()),
        "city": (pa.string(), lambda number: "rome" if number % 2 else "oslo"),
        "v": (pa.int32(), 1),
        "ts": (pa.int32(), 10),
    },
    partition_by="city",
    order_by="ts",
    first=range(8),
)


def captured(base: Path, version: int, kind: Any, mode: str = MODES[0]) -> HudiTable:
    """A table with change data capture and eight rows, four in each of two partitions."""
    TABLE.make(base, version=version, kind=kind)
    with (base / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("\nhoodie.table.cdc.enabled=true\n")
        properties.write(f"hoodie.table.cdc.supplemental.logging.mode={mode}\n")
    return pyhudi.open_table(base)


def last_stats(table: HudiTable) -> tuple[WriteStat, ...]:
    timeline = Timeline.load(table.storage, table.config)
    return timeline.commit_metadata(timeline.commits[-1]).write_stats


def told(table: HudiTable, since: str) -> list[tuple[str, Any, Any]]:
    def image(row: dict[str, Any] | None) -> Any:
        return row and (row["id"], row["v"])

    found = table.refresh().changes(since).to_arrow().to_pylist()
    return sorted(
        ((row["op"], image(row["before"]), image(row["after"])) for row in found), key=str
    )


def now(table: HudiTable) -> str:
    last = Timeline.load(table.storage, table.config).commits[-1]
    by_completion = table.config.version.incremental_by_completion_time
    return (last.completed if by_completion else last.requested) or ""


@pytest.mark.parametrize(("version", "kind", "mode"), pairwise((6, 8, 9), ("cow", "mor"), MODES))
def test_changes_of_every_operation(tmp_path: Path, version: int, kind: str, mode: str) -> None:
    table = captured(tmp_path / "t", version, kind, mode)
    start = now(table)
    table.upsert(TABLE.rows([1, 2, 9], v=2, ts=20))
    table.delete_keys(pa.table({"id": ["k3", "nowhere"]}))
    table.insert(TABLE.rows([11], v=3, ts=1))
    some = TABLE.rows([5], v=4, ts=50).select(["id", "city", "v", "ts"])
    table.upsert(some.drop_columns([]), partial=True)
    wanted = [
        ("d", ("k3", 1), None),
        ("i", None, ("k11", 3)),
        ("i", None, ("k9", 2)),
        ("u", ("k1", 1), ("k1", 2)),
        ("u", ("k2", 1), ("k2", 2)),
        ("u", ("k5", 1), ("k5", 4)),
    ]
    assert told(table, start) == sorted(wanted, key=str)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_change_log_is_absent_if_rewrite_changes_nothing(tmp_path: Path, version: int) -> None:
    table = captured(tmp_path / "t", version, "cow")
    start = now(table)
    files = sorted(path for path in (tmp_path / "t" / "rome").iterdir())
    result = table.upsert(TABLE.rows([1], v=9, ts=5))
    assert (result.committed, result.rows_ignored) == (False, 1)
    assert sorted(path for path in (tmp_path / "t" / "rome").iterdir()) == files
    assert told(table, start) == []
    table.upsert(pa.concat_tables([TABLE.rows([1], v=9, ts=5), TABLE.rows([3], v=9, ts=30)]))
    assert told(table, start) == [("u", ("k3", 1), ("k3", 9))]


def test_change_logs_are_named_and_counted_as_hudi_does(tmp_path: Path) -> None:
    table = captured(tmp_path / "t", 9, "cow")
    table.upsert(TABLE.rows([1], v=2, ts=20))
    (stat,) = last_stats(table)
    ((path, size),) = (stat.cdc_stats or {}).items()
    assert (tmp_path / "t" / path).stat().st_size == size
    token = str(stat.path).rsplit("_", 2)[1]
    instant = str(stat.path).rsplit("_", 1)[1].removesuffix(".parquet")
    assert path == f"rome/.{stat.file_id}_{instant}.log.1_{token}.cdc"


def test_change_log_skips_late_delete(tmp_path: Path) -> None:
    base = tmp_path / "t"
    data = TABLE.rows(range(4), v=1, ts=10).append_column(
        "_hoodie_is_deleted", pa.array([False] * 4)
    )
    TABLE.make(base, first=data)
    with (base / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("\nhoodie.table.cdc.enabled=true\n")
    table = pyhudi.open_table(base)
    start = now(table)
    late = TABLE.rows([1, 3], v=2, ts=5).append_column(
        "_hoodie_is_deleted", pa.array([True, False])
    )
    gone = TABLE.rows([2], v=2, ts=20).append_column("_hoodie_is_deleted", pa.array([True]))
    table.upsert(pa.concat_tables([late, gone]))
    assert told(table, start) == [("d", ("k2", 1), None)]
    assert len(table.refresh().scan().to_arrow()) == 3


COPIES = {"hoodie.bucket.index.num.buckets": "1", "hoodie.clean.automatic": "false"}


def with_copies(base: Path, version: Any, mode: str) -> HudiTable:
    """One bucket with two rows of k1, beside which a log file has changed k2 and brought k9."""
    base_rows = TABLE.rows([1, 1, 2, 3], city="rome")
    table = pyhudi.create_table(
        base, base_rows.schema, key="id", order_by="ts", type="mor", version=version,
        index="bucket",
        options={
            **COPIES, "hoodie.table.cdc.enabled": True,
            "hoodie.table.cdc.supplemental.logging.mode": mode,
        },
    )  # fmt: skip
    table.bulk_insert(base_rows)
    table.upsert(TABLE.rows([2, 9], city="rome", v=22, ts=50))
    return table


@pytest.mark.parametrize(("version", "mode"), pairwise((6, 8, 9), MODES))
def test_deletes_beside_copies_are_told_as_log_files_had_the_rows(
    tmp_path: Path, version: int, mode: str
) -> None:
    table = with_copies(tmp_path / "t", version, mode)
    start = now(table)
    table.delete("id IN ('k1', 'k2', 'k9')")
    assert table.scan(["id"]).to_arrow().to_pylist() == [{"id": "k3"}]
    wanted = [("d", ("k1", 1), None), ("d", ("k2", 22), None), ("d", ("k9", 22), None)]
    assert told(table, start) == wanted


def test_change_log_has_delete_of_key_only_in_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As where executors alone have the keys: any copy in the file group counts.
    unknown = lambda table, groups, keys: groups_with_duplicates(table, groups, dict.fromkeys(keys))  # noqa: E731
    monkeypatch.setattr(execute, "groups_with_duplicates", unknown)
    table = with_copies(tmp_path / "t", 9, MODES[0])
    start = now(table)
    table.delete_keys(["k9"])
    assert sorted(table.scan(["id"]).to_arrow()["id"].to_pylist()) == ["k1", "k1", "k2", "k3"]
    assert told(table, start) == [("d", ("k9", 22), None)]


def test_change_log_has_duplicate_input_key_once(tmp_path: Path) -> None:
    captured(tmp_path / "t", 9, "cow")
    options = {"hoodie.combine.before.delete": "false"}
    table = pyhudi.open_table(tmp_path / "t", options=options)
    start = now(table)
    table.delete_keys(pa.table({"id": ["k1", "k1"]}))
    assert told(table, start) == [("d", ("k1", 1), None)]


def test_hudi_counts_deletes_of_keys_that_a_new_file_does_not_get(tmp_path: Path) -> None:
    # BaseCreateHandle.doWrite counts them (1.2.0), HoodieCreateHandle before.
    options = {"hoodie.table.cdc.enabled": True}
    TABLE.make(tmp_path / "t", version=6, kind="cow", metadata=False, options=options)
    (commit,) = (tmp_path / "t" / ".hoodie").glob("*.commit")
    commit.write_text(commit.read_text().replace('"numDeletes" : 0', '"numDeletes" : 1'))
    assert '"numDeletes" : 1' in commit.read_text()
    found = pyhudi.open_table(tmp_path / "t").changes().to_arrow()
    assert found["op"].to_pylist() == ["i"] * 8


def test_change_log_closes_its_blocks(tmp_path: Path) -> None:
    count = 20_000
    rows = pa.table({"id": [f"{n:05}" for n in range(count)], "v": [1] * count})
    made = pyhudi.create_table(
        tmp_path / "t", rows, key="id", options={"hoodie.table.cdc.enabled": True}
    )
    table = pyhudi.open_table(
        made.uri, options={"hoodie.logfile.data.block.max.size": str(256 * 1024)}
    )
    table.upsert(rows)
    (log,) = (tmp_path / "t").glob(".*.log.*.cdc")
    assert len(_native.log_blocks(table.storage.native, log.name)) > 2
    assert table.changes().to_arrow().num_rows == 2 * count


@pytest.mark.parametrize("mode", MODES)
def test_moments_in_json_are_microseconds_of_data_files(tmp_path: Path, mode: str) -> None:
    # InternalRowToJsonStringConverter has Spark's; Avro's text of a record what is stored.
    at = {unit: pa.array([1_704_067_200], pa.timestamp("s", "UTC")).cast(pa.timestamp(unit, "UTC"))
          for unit in ("ms", "us")}  # fmt: skip
    rows = pa.table({"id": ["a"], **at})
    table = pyhudi.create_table(
        tmp_path / "t", rows, key="id",
        options={
            "hoodie.table.cdc.enabled": True, "hoodie.table.cdc.supplemental.logging.mode": mode
        },
    )  # fmt: skip
    (told_,) = table.changes(images="json").to_arrow().to_pylist()
    assert json.loads(told_["after"]) == {
        "id": "a",
        "ms": 1_704_067_200_000_000,
        "us": 1_704_067_200_000_000,
    }
