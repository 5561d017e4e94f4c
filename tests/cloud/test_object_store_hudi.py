"""A table in a bucket, and Apache Hudi: it reads and continues what was written there, and back.

The server keeps a bucket as plain files, which Apache Hudi reads as they are; what it then wrote
goes back up file by file. Where both write at the same time, Hudi is in the bucket too.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import pyhudi
from tests.cloud.conftest import Bucket
from tests.compat.test_alternating_writers import (
    DDL,
    SCHEMA,
    Row,
    hudi_options,
    read_by_hudi,
    read_by_pyhudi,
)
from tests.compat.test_concurrent_writes import LOCKS, SECONDS, both_write, zookeeper_lock
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.oracle_pool import OraclePool
from tests.helpers.s3.server import S3Server
from tests.helpers.s3a import hadoop
from tests.helpers.zookeeper import ZooKeeperServer


def trip(key: str, ts: int, fare: float, city: str = "oslo") -> Row:
    return {"id": key, "ts": ts, "city": city, "fare": fare, "note": "n"}


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(
    ("version", "hudi"), [(6, "0.15.0"), (8, "1.0.2"), (9, "1.2.0")], indirect=["hudi"]
)
def test_both_write_one_table(
    s3_bucket: Bucket,
    hudi: HudiOracle,
    tmp_path: Path,
    version: Literal[6, 8, 9],
    kind: Literal["cow", "mor"],
) -> None:
    uri = s3_bucket.uri("trips", "s3a")
    first = [trip("a", 1, 1.0), trip("b", 1, 1.0), trip("c", 1, 1.0, "lima")]
    table = pyhudi.create_table(
        uri, pa.Table.from_pylist(first, SCHEMA), key="id", partition_by="city", order_by="ts",
        type=kind, version=version, options={"hoodie.table.name": "trips"},
        storage_options=s3_bucket.options,
    )  # fmt: skip
    table.upsert(pa.Table.from_pylist([trip("a", 2, 2.0), trip("d", 2, 2.0)], SCHEMA))
    local = tmp_path / "trips"
    shutil.copytree(s3_bucket.folder / "trips", local)
    expected = {"a": 2.0, "b": 1.0, "c": 1.0, "d": 2.0}
    rows = read_by_hudi(hudi, local)
    assert {row["id"]: row["fare"] for row in rows} == expected
    assert rows == read_by_pyhudi(local)

    options = hudi_options(kind, partitioned=True)
    batch = [trip("b", 3, 3.0), trip("e", 3, 3.0, "lima")]
    hudi.write(local, rows=batch, schema=DDL, operation="upsert", options=options)
    back = s3_bucket.upload(local, "back")
    table = pyhudi.open_table(back, storage_options=s3_bucket.options)
    expected |= {"b": 3.0, "e": 3.0}
    assert {row["id"]: row["fare"] for row in table.scan().to_arrow().to_pylist()} == expected
    table.upsert(pa.Table.from_pylist([trip("e", 4, 4.0, "lima")], SCHEMA))
    again = tmp_path / "again"
    shutil.copytree(s3_bucket.folder / "back", again)
    assert {row["id"]: row["fare"] for row in read_by_hudi(hudi, again)} == expected | {"e": 4.0}


@pytest.mark.timeout(SECONDS * 3 + 600)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_both_write_at_the_same_time_under_the_storage_lock(
    kind: Literal["cow", "mor"],
    s3_bucket: Bucket,
    s3_server: S3Server,
    oracle: OraclePool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock = {"hoodie.write.lock.provider": f"{LOCKS}.StorageBasedLockProvider"}
    _both_write(kind, s3_bucket, s3_server, oracle, monkeypatch, lock)
    assert (s3_bucket.folder / "trips/.hoodie/.locks/table_lock.json").exists()


@pytest.mark.timeout(SECONDS * 3 + 600)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_both_write_at_the_same_time_under_zookeeper(
    kind: Literal["cow", "mor"],
    s3_bucket: Bucket,
    s3_server: S3Server,
    oracle: OraclePool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    server = ZooKeeperServer(tmp_path)
    try:
        _both_write(kind, s3_bucket, s3_server, oracle, monkeypatch, zookeeper_lock(server))
    finally:
        server.close()


def _both_write(
    kind: Literal["cow", "mor"],
    bucket: Bucket,
    server: S3Server,
    oracle: OraclePool,
    monkeypatch: pytest.MonkeyPatch,
    lock: dict[str, str],
) -> None:
    for name, value in hadoop.variables(server).items():
        monkeypatch.setenv(name, value)
    hudi = oracle("1.2.0", hadoop.settings("1.2.0", server))
    both_write(bucket.uri("trips", "s3a"), 9, kind, hudi, lock)
