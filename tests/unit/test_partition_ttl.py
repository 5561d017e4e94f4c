"""Expired partitions: their times, which ones stay, and that no new rows are removed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.config.retention_options import TtlOptions
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.write import partition_ttl
from tests.helpers.pairwise import pairwise
from tests.unit.test_archiving_operation import OPTIONS
from tests.unit.test_compaction import rows
from tests.unit.test_savepoints import people

DAY_MS = 86_400_000


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call it to let days pass."""
    now, ticks, ahead = SystemClock.now_ms, SystemClock.ticks_ms, [0.0]
    monkeypatch.setattr(SystemClock, "now_ms", lambda self: now(self) + int(ahead[0] * DAY_MS))
    monkeypatch.setattr(SystemClock, "ticks_ms", lambda self: ticks(self) + int(ahead[0] * DAY_MS))

    def days(count: float) -> None:
        ahead[0] += count

    return days


def in_city(city: str, v: int) -> pa.Table:
    return pa.table({"id": [f"{city}{n}" for n in range(2)], "city": [city] * 2, "v": [v] * 2})


def made(base: Path, version: int, kind: Any, passes: Any) -> HudiTable:
    """Three partitions, each ten days younger than the one before; the oldest was updated last."""
    table = pyhudi.create_table(
        base, people(range(1), 1).schema, key="id", partition_by="city", order_by="v", type=kind,
        version=version,
    )  # fmt: skip
    for city in ("a", "b", "c"):
        table.upsert(in_city(city, 1))
        passes(10)
    table.upsert(in_city("a", 2))
    return table


def cities(table: HudiTable) -> set[str]:
    return {key[0] for key in rows(table)}


@pytest.mark.parametrize(("version", "kind"), pairwise((6, 8, 9), ("cow", "mor")))
def test_expire_uses_last_write_time(version: int, kind: str, tmp_path: Path, passes: Any) -> None:
    """A log file counts as a write, too."""
    table = made(tmp_path / "t", version, kind, passes)
    planned = table.expire_partitions(15, dry_run=True)
    assert (planned.file_groups, planned.instants) == (1, ())
    assert cities(table) == {"a", "b", "c"}
    done = table.expire_partitions(15)
    assert (done.file_groups, len(done.instants)) == (1, 1)
    assert cities(table) == {"a", "c"}
    assert table.expire_partitions(15).instants == ()
    assert not table.check(deep=True).findings
    (row,) = table.history(limit=1).to_pylist()
    assert row["operation"] == "DELETE_PARTITION"
    table.upsert(in_city("b", 3))
    assert cities(table) == {"a", "b", "c"}


def test_expire_uses_creation_time(tmp_path: Path, passes: Any) -> None:
    table = made(tmp_path / "t", 9, "mor", passes)
    table.expire_partitions(15, by_creation=True)
    assert cities(table) == {"c"}


def test_days_are_not_cut_to_32_bits(tmp_path: Path, passes: Any) -> None:
    table = made(tmp_path / "t", 9, "cow", passes)
    for days in (25, 49, 50, 100, 365, 100_000):
        assert table.expire_partitions(days).instants == (), days
    passes(30)
    table.expire_partitions(49)
    assert cities(table) == {"a", "c"}
    passes(400)
    table.expire_partitions(365)
    assert cities(table) == set()


def test_clock_set_forward_expires_nothing(
    tmp_path: Path, passes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of the clock is no time that passed; a process that begins later cannot tell."""
    table = made(tmp_path / "t", 9, "cow", passes)
    now = SystemClock.now_ms
    monkeypatch.setattr(SystemClock, "now_ms", lambda self: now(self) + 3650 * DAY_MS)
    assert table.expire_partitions(365).instants == ()
    assert cities(table) == {"a", "b", "c"}
    by_hours = "hoodie.clean.policy", "KEEP_LATEST_BY_HOURS"
    writer = pyhudi.open_table(
        table.uri, options=dict([by_hours, ("hoodie.clean.hours.retained", 48)])
    )
    assert writer.clean().files_removed == 0


def test_options(tmp_path: Path, passes: Any) -> None:
    made(tmp_path / "t", 9, "cow", passes)
    ttl = "hoodie.partition.ttl.strategy."
    options: dict[str, object] = {f"{ttl}days.retain": 5, f"{ttl}max.delete.partitions": 1}
    table = pyhudi.open_table(tmp_path / "t", options=options)
    done = table.expire_partitions()
    assert cities(table) == {"a", "c"}
    assert done.left == ("partition 'c': limit of 1 per run",)
    options[f"{ttl}partition.selected"] = "b,a"
    assert pyhudi.open_table(tmp_path / "t", options=options).expire_partitions().instants == ()
    inline = {f"{ttl}days.retain": 5, "hoodie.partition.ttl.inline": True}
    table = pyhudi.open_table(tmp_path / "t", options=inline)
    table.upsert(in_city("d", 1))
    assert cities(table) == {"a", "d"}


@pytest.mark.parametrize("version", [6, 9])
def test_expire_counts_archived_log_writes(version: int, tmp_path: Path, passes: Any) -> None:
    table = made(tmp_path / "t", version, "mor", passes)
    now = SystemClock().now_ms() / 1000
    for log in (tmp_path / "t" / "a").glob(".*.log.*"):
        os.utime(log, (now, now))
    passes(5)
    writer = pyhudi.open_table(table.uri, options=OPTIONS)
    for v in range(6):
        writer.upsert(in_city("d", v))
    table = pyhudi.open_table(table.uri, options=OPTIONS)
    assert len(table.archive(min_commits=2, max_commits=3).instants) > 4
    assert table.expire_partitions(16, dry_run=True).file_groups == 1
    table.expire_partitions(16)
    assert cities(table) == {"a", "c", "d"}
    # No archived write is later than the timeline's start, whatever a copied file says.
    for log in (tmp_path / "t" / "a").glob(".*.log.*"):
        os.utime(log, (now + 1000 * DAY_MS, now + 1000 * DAY_MS))
    passes(20)
    table.expire_partitions(16)
    assert cities(table) == set()


def test_expire_keeps_partitions_of_pending_services(tmp_path: Path, passes: Any) -> None:
    table = made(tmp_path / "t", 9, "mor", passes)
    table.upsert(in_city("b", 2))
    table.compact(partitions=["b"], execute=False)
    passes(100)
    done = table.expire_partitions(50)
    assert done.left == ("a service of partition 'b' is pending",)
    assert cities(table) == {"b"}


def test_expire_refuses_bad_arguments(tmp_path: Path, passes: Any) -> None:
    table = made(tmp_path / "t", 9, "cow", passes)
    with pytest.raises(ConfigError, match="number of days after which partitions expire"):
        table.expire_partitions()
    for days in (0, -1):
        with pytest.raises(ConfigError, match="less than 1"):
            table.expire_partitions(days)
    off = {"hoodie.partition.ttl.strategy.days.retain": -1}
    with pytest.raises(ConfigError, match="number of days after which partitions expire"):
        pyhudi.open_table(tmp_path / "t", options=off).expire_partitions()
    assert cities(table) == {"a", "b", "c"}
    whole = pyhudi.create_table(tmp_path / "whole", people(range(2), 1), key="id")
    with pytest.raises(ConfigError, match="has no partitions"):
        whole.expire_partitions(1)
    own = {"hoodie.partition.ttl.strategy.class": "my.Own"}
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.partition\.ttl\.strategy\.class"):
        pyhudi.open_table(tmp_path / "t", options=own)
    (tmp_path / "t" / "b" / ".hoodie_partition_metadata").write_text("partitionDepth=1\n")
    with pytest.raises(UnsupportedTableFeature, match="KEEP_BY_CREATION_TIME"):
        table.expire_partitions(1, by_creation=True)


def test_expire_keeps_partition_written_concurrently(
    tmp_path: Path, passes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path / "t", 9, "cow", passes)
    other, split = pyhudi.open_table(tmp_path / "t"), partition_ttl._split_expired

    def late(*given: Any) -> Any:
        found = split(*given)
        if "b" in found[0]:
            other.upsert(in_city("b", 7))
        return found

    monkeypatch.setattr(partition_ttl, "_split_expired", late)
    assert table.expire_partitions(15).instants == ()
    assert rows(table)["b0"] == 7


def test_days_as_text() -> None:
    days = "hoodie.partition.ttl.strategy.days.retain"
    assert TtlOptions.of({days: "-1"}).days == 0
    assert TtlOptions.of({days: "40"}).days == 40
    with pytest.raises(ConfigError, match="days"):
        TtlOptions.of({days: "-2"})
