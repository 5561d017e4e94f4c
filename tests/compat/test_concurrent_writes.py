"""pyhudi and Apache Hudi write to one table at the same time, under one lock.

`PYHUDI_SOAK_SECONDS` says for how long; what each side said that it wrote is compared at the end.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import CommitConflict, HistoryUnavailable, LockTimeout
from pyhudi.txn.transaction import Transaction
from tests.compat.test_alternating_writers import KEY_GENERATORS
from tests.helpers.hive_metastore import HiveMetastore
from tests.helpers.oracle.client import HudiError, HudiOracle
from tests.helpers.zookeeper import ZooKeeperServer

SECONDS = float(os.environ.get("PYHUDI_SOAK_SECONDS", "25"))
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int32()), ("city", pa.string())])
DDL = "id string, ts int, city string"
OVERTAKEN = (
    "WriteConflictException",
    # Up to 1.0.2 Hudi carries out whatever rollback and compaction is pending, also one that
    # another writer is at work on, and fails where it is the slower one.
    "Could not delete instant",
    "No pending rollback instants found",
    "No Compaction request available",
)
_LEAST = 2
"""Writes of each side."""
LOCKS = "org.apache.hudi.client.transaction.lock"


@dataclass
class Said:
    """What one side has been told of."""

    newest: dict[str, int] = field(default_factory=dict)
    """By key the newest value that was written."""
    writes: int = 0
    conflicts: int = 0
    wrong: list[str] = field(default_factory=list)

    def goes_on(self, until: float) -> bool:
        """Whether there is time, or too little was written: a machine may be busy."""
        return time.monotonic() < until or self.writes < _LEAST

    def tell(self, rows: list[dict[str, object]]) -> None:
        self.writes += 1
        self.newest |= {str(row["id"]): int(str(row["ts"])) for row in rows}


def batch(side: str, number: int) -> list[dict[str, object]]:
    """A new key, one that this side alone writes to; now and then one that all sides write to."""
    at = int(time.time() * 1000) % 1_000_000_000
    rows: list[dict[str, object]] = [
        {"id": key, "ts": at, "city": side} for key in (f"{side}-{number}", side)
    ]
    if number % 3 == 1:
        rows.append({"id": "shared", "ts": at, "city": "all"})
    return rows


@pytest.fixture(params=["file", "zookeeper"])
def lock(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The options of a lock that both sides know."""
    if request.param == "file":
        yield {"hoodie.write.lock.provider": f"{LOCKS}.FileSystemBasedLockProvider"}
        return
    server = ZooKeeperServer(tmp_path)
    yield zookeeper_lock(server)
    server.close()


def zookeeper_lock(server: ZooKeeperServer) -> dict[str, str]:
    return {
        "hoodie.write.lock.provider": f"{LOCKS}.ZookeeperBasedLockProvider",
        "hoodie.write.lock.zookeeper.url": server.hosts,
        "hoodie.write.lock.zookeeper.base_path": "/hudi",
        "hoodie.write.lock.zookeeper.lock_key": "both",
    }


def java_options(kind: str, lock: dict[str, str]) -> dict[str, str]:
    return {
        "hoodie.table.name": "both",
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE" if kind == "cow" else "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.keygenerator.class": f"{KEY_GENERATORS}.SimpleKeyGenerator",
        "hoodie.index.type": "SIMPLE",
        "hoodie.metadata.enable": "true",
        "hoodie.embed.timeline.server": "false",
        "hoodie.write.markers.type": "DIRECT",
        "hoodie.upsert.shuffle.parallelism": "1",
        "hoodie.write.auto.upgrade": "false",
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.cleaner.policy.failed.writes": "LAZY",
        "hoodie.write.num.retries.on.conflict.failures": "3",
        "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
        **lock,
    }


def by_java(hudi: HudiOracle, base: str, options: dict[str, str], until: float) -> Said:
    said, number = Said(), 0
    while said.goes_on(until):
        number += 1
        rows = batch("java", number)
        try:
            hudi.write(base, rows=rows, schema=DDL, options=options)
        except HudiError as error:
            told = str((error.causes, error.message, error.type))
            if not any(reason in told for reason in OVERTAKEN):
                said.wrong.append(f"{error.type}: {error.message[:600]}")
                return said
            said.conflicts += 1
            continue
        said.tell(rows)
    return said


def by_python(base: str, side: str, options: dict[str, str], until: float, said: Said) -> None:
    number = 0
    while said.goes_on(until):
        number += 1
        rows = batch(side, number)
        try:
            table = pyhudi.open_table(base, options=options)
            table.upsert(pa.Table.from_pylist(rows, SCHEMA))
        except (CommitConflict, LockTimeout, HistoryUnavailable):
            said.conflicts += 1
            continue
        except Exception as error:  # noqa: BLE001 - told by the test
            said.wrong.append(f"{error!r}")
            return
        said.tell(rows)
        # A write of Hudi's takes as long as ten of these, and must not be overtaken each time.
        time.sleep(3)


def non_blocking(base: str, lock: dict[str, str], **more: str) -> dict[str, str]:
    return {
        **java_options("mor", lock),
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.bucket.index.hash.field": "id",
        "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
        **more,
    }


@pytest.mark.parametrize(("version", "hudi"), [(9, "1.2.0"), (8, "1.0.2")], indirect=["hudi"])
def test_both_append_to_the_same_buckets(
    version: Literal[8, 9], hudi: HudiOracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without giving way: Hudi writes while writes of pyhudi are under way, then compacts."""
    base = str(tmp_path / "table")
    lock = {"hoodie.write.lock.provider": f"{LOCKS}.FileSystemBasedLockProvider"}
    mine = {
        **lock,
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    }
    table = pyhudi.create_table(
        base, SCHEMA, key="id", partition_by="city", order_by="ts", type="mor", version=version,
        options={"hoodie.table.name": "both", **mine},
    )  # fmt: skip
    expected: dict[str, int] = {}

    def rows(*given: tuple[str, int]) -> list[dict[str, object]]:
        expected.update({key: max(at, expected.get(key, 0)) for key, at in given})
        return [{"id": key, "ts": at, "city": "oslo"} for key, at in given]

    meets: list[int] = []
    begin = Transaction.__enter__
    options = non_blocking(base, lock)

    def entered(self: Transaction) -> Transaction:
        begun = begin(self)
        if not meets:
            # Made again, since Hudi's was requested later and has the partition's statistics.
            return begun
        meets.clear()
        number = len(expected)
        # One that pyhudi's write is older than, and one that it is newer than.
        hudi.write(
            base, rows=rows((f"h{number}", 1), ("a", 10 * number)), schema=DDL, options=options
        )
        return begun

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "__enter__", entered)
        for number in range(3):
            meets.append(number)
            some = rows((f"p{number}", 1), ("a", 10 * number + 5), ("b", number))
            table.upsert(pa.Table.from_pylist(some, SCHEMA))
    compacted = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    for more in ({}, compacted, {}):
        last = rows((f"last{len(expected)}", 1))
        hudi.write(base, rows=last, schema=DDL, options=non_blocking(base, lock, **more))
        last = rows((f"mine{len(expected)}", 1), ("b", 50 + len(expected)))
        table.upsert(pa.Table.from_pylist(last, SCHEMA))
        found = pyhudi.open_table(base).scan().to_arrow().to_pylist()
        assert sorted((row["id"], row["ts"]) for row in found) == sorted(expected.items())
        for metadata in (False, True):
            read = hudi.read(base, metadata=metadata)["rows"]
            assert sorted((row["id"], row["ts"]) for row in read) == sorted(expected.items())
    names = {path.name for path in (Path(base) / "oslo").glob(".0*.log.*")}
    assert {name[1:].split("_")[0] for name in names} == {
        f"0000000{n}-0000-0000-0000-000000000000-0" for n in (0, 1)
    }
    findings = pyhudi.open_table(base).check(deep=True).findings
    assert [one for one in findings if one.severity == "error"] == []


@pytest.mark.timeout(SECONDS * 3 + 600)
@pytest.mark.parametrize(
    ("version", "hudi"), [(9, "1.2.0"), (8, "1.0.2"), (6, "0.15.0")], indirect=["hudi"]
)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_both_write_at_the_same_time(
    version: Literal[6, 8, 9],
    kind: Literal["cow", "mor"],
    hudi: HudiOracle,
    lock: dict[str, str],
    tmp_path: Path,
) -> None:
    both_write(str(tmp_path / "table"), version, kind, hudi, lock)


@pytest.mark.timeout(SECONDS * 3 + 600)
@pytest.mark.parametrize(
    ("version", "kind", "hudi"), [(9, "mor", "1.2.0"), (6, "cow", "0.15.0")], indirect=["hudi"]
)
def test_both_write_under_a_lock_of_the_hive_metastore(
    version: Literal[6, 9], kind: Literal["cow", "mor"], hudi: HudiOracle, tmp_path: Path
) -> None:
    server = HiveMetastore(tmp_path)
    lock = {
        "hoodie.write.lock.provider": "org.apache.hudi.hive.transaction.lock."
        "HiveMetastoreBasedLockProvider",
        "hoodie.write.lock.hivemetastore.uris": server.uris,
        "hoodie.write.lock.hivemetastore.database": "default",
        "hoodie.write.lock.hivemetastore.table": "Both",
        "hoodie.write.lock.heartbeat_interval_ms": "2000",
    }
    try:
        both_write(str(tmp_path / "table"), version, kind, hudi, lock)
    finally:
        server.close()


def both_write(
    base: str,
    version: Literal[6, 8, 9],
    kind: Literal["cow", "mor"],
    hudi: HudiOracle,
    lock: dict[str, str],
) -> None:
    """Hudi and two threads of pyhudi write for a while; what each was told stands at the end."""
    pyhudi.create_table(
        base, SCHEMA, key="id", partition_by="city", order_by="ts", type=kind, version=version,
        options={"hoodie.table.name": "both", "hoodie.index.type": "SIMPLE"},
    )  # fmt: skip
    # Hudi makes its file lock's folder of what it is told, or of the table's.
    mine = {**lock, "hoodie.index.type": "SIMPLE"}
    # The first one takes long, as Spark starts.
    hudi.write(base, rows=batch("first", 1), schema=DDL, options=java_options(kind, lock))
    until = time.monotonic() + SECONDS
    told = {side: Said() for side in ("python1", "python2")}
    threads = [
        threading.Thread(target=by_python, args=(base, side, mine, until, said))
        for side, said in told.items()
    ]
    for thread in threads:
        thread.start()
    java = by_java(hudi, base, java_options(kind, lock), until)
    for thread in threads:
        thread.join()
    sides = [java, *told.values()]
    assert [wrong for said in sides for wrong in said.wrong] == []
    assert min(said.writes for said in sides) > 1, [(s.writes, s.conflicts) for s in sides]

    # A last write of each side, after which nothing may be left pending.
    hudi.write(base, rows=batch("last", 1), schema=DDL, options=java_options(kind, lock))
    table = pyhudi.open_table(base, options=mine)
    table.upsert(pa.Table.from_pylist(batch("last", 2), SCHEMA))
    rows = table.scan().to_arrow().to_pylist()
    found = {row["id"]: row["ts"] for row in rows}
    assert len(found) == len(rows)
    for said in sides:
        for key, value in said.newest.items():
            assert found.get(key, -1) >= value, f"{key} is lost"
    for metadata in (False, True):
        read = hudi.read(base, metadata=metadata)["rows"]
        assert sorted((row["id"], row["ts"]) for row in read) == sorted(found.items())
    findings = pyhudi.open_table(base).check(deep=True).findings
    assert [one for one in findings if one.severity == "error"] == []
