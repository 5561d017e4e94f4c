"""A table on HDFS, and Apache Hudi there: each reads and continues what the other wrote."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
import pytest

import pyhudi
from tests.cloud.conftest import HdfsFolder
from tests.cloud.test_hdfs_tables import FILE_LOCK
from tests.cloud.test_object_store_hudi import trip
from tests.compat.test_alternating_writers import DDL, SCHEMA, Row, hudi_options
from tests.helpers.oracle.client import HudiOracle

LOCKS = "org.apache.hudi.client.transaction.lock"


def fares(rows: list[Row]) -> dict[str, float]:
    found = {row["id"]: row["fare"] for row in rows}
    assert len(found) == len(rows)
    return found


def rows_of(uri: str) -> dict[str, float]:
    return fares(pyhudi.open_table(uri).scan().to_arrow().to_pylist())


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.hudi("1.2.0")
def test_both_write_one_table(
    hdfs: HdfsFolder, hudi: HudiOracle, kind: Literal["cow", "mor"]
) -> None:
    """Under the same lock: Hudi's of files, which both take by making the same file."""
    uri = hdfs.uri("trips")
    options = hudi_options(kind, partitioned=True) | {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.cleaner.policy.failed.writes": "LAZY",
        "hoodie.metadata.enable": "true",
        "hoodie.write.lock.provider": f"{LOCKS}.FileSystemBasedLockProvider",
    }
    first = [trip("a", 1, 1.0), trip("b", 1, 1.0), trip("c", 1, 1.0, "lima")]
    hudi.write(uri, rows=first, schema=DDL, operation="insert", options=options)
    expected = {"a": 1.0, "b": 1.0, "c": 1.0}
    assert rows_of(uri) == expected

    table = pyhudi.open_table(uri, options=FILE_LOCK)
    table.upsert(pa.Table.from_pylist([trip("a", 2, 2.0), trip("d", 2, 2.0)], SCHEMA))
    table.delete_keys(pa.table({"id": ["b"], "city": ["oslo"]}))
    expected = {"a": 2.0, "c": 1.0, "d": 2.0}
    assert fares(hudi.read(uri)["rows"]) == rows_of(uri) == expected
    with_metadata = hudi.read(uri, metadata=True)["rows"]
    assert fares(with_metadata) == expected

    batch = [trip("c", 3, 3.0, "lima"), trip("e", 3, 3.0, "lima")]
    hudi.write(uri, rows=batch, schema=DDL, operation="upsert", options=options)
    expected |= {"c": 3.0, "e": 3.0}
    assert fares(hudi.read(uri)["rows"]) == rows_of(uri) == expected
    assert not hdfs.storage("trips").exists(".hoodie/lock")
    assert list(pyhudi.open_table(uri, options=FILE_LOCK).check(deep=True).findings) == []


@pytest.mark.hudi("1.2.0")
def test_hudi_continues_a_table_that_pyhudi_made(hdfs: HdfsFolder, hudi: HudiOracle) -> None:
    uri = hdfs.uri("trips")
    table = pyhudi.create_table(
        uri, pa.Table.from_pylist([trip("a", 1, 1.0), trip("b", 1, 1.0)], SCHEMA), key="id",
        partition_by="city", order_by="ts", type="mor", options={"hoodie.table.name": "trips"},
    )  # fmt: skip
    table.upsert(pa.Table.from_pylist([trip("b", 2, 2.0)], SCHEMA))
    assert fares(hudi.read(uri)["rows"]) == {"a": 1.0, "b": 2.0}
    options = hudi_options("mor", partitioned=True) | {"hoodie.metadata.enable": "true"}
    hudi.write(uri, rows=[trip("a", 3, 3.0)], schema=DDL, operation="upsert", options=options)
    table = pyhudi.open_table(uri)
    assert rows_of(uri) == {"a": 3.0, "b": 2.0}
    table.upsert(pa.Table.from_pylist([trip("a", 4, 4.0), trip("c", 4, 4.0)], SCHEMA))
    assert fares(hudi.read(uri)["rows"]) == {"a": 4.0, "b": 2.0, "c": 4.0}
