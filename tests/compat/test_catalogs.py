"""Tables in a real Hive metastore beside those that Hudi's own sync registers there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.catalog import HiveCatalog
from pyhudi.txn.locks.hive_client import HiveClient
from tests.helpers.hive_metastore import HiveMetastore
from tests.helpers.oracle.client import HudiOracle

pytestmark = pytest.mark.jvm
WRITE = "hoodie.datasource.write."
SYNC = "hoodie.datasource.hive_sync."
PLAIN = "id string, city string, ts bigint"
TYPES = (
    f"{PLAIN}, d decimal(10,2), day date, t timestamp, n struct<a:int,B:string>, arr array<int>, "
    "mp map<string,double>, Big boolean, f float, bin binary"
)
VALUES = {
    "d": "1.00",
    "day": "2024-01-01",
    "t": "2024-01-01T00:00:00.000000Z",
    "n": {"a": 1, "B": "x"},
    "arr": [1],
    "mp": {"k": 1.0},
    "Big": True,
    "f": 1.0,
    "bin": "00",
}
# Of the server, of the writer, or of one of the two databases.
APART = ("transient_lastDdlTime", "spark.sql.create.version", "hudi_writer_version")


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    server = HiveMetastore(tmp_path_factory.mktemp("metastore"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def catalog(metastore: HiveMetastore) -> Iterator[HiveCatalog]:
    made = HiveCatalog(metastore.uris)
    yield made
    made.close()


def row(key: str, city: str, **more: object) -> dict[str, object]:
    return {"id": key, "city": city, "ts": 1, **more}


class Theirs:
    """A table that Hudi writes and registers in the database `theirs`."""

    def __init__(self, hudi: HudiOracle, metastore: HiveMetastore, base: Path) -> None:
        self._hudi = hudi
        self._uris = metastore.uris
        self.base = base

    def write(
        self,
        schema: str,
        *rows: Mapping[str, object],
        kind: str = "COPY_ON_WRITE",
        partition_by: str = "city",
        operation: str = "upsert",
        **options: str,
    ) -> None:
        given = {
            "hoodie.table.name": self.base.name,
            f"{WRITE}recordkey.field": "id",
            f"{WRITE}precombine.field": "ts",
            f"{WRITE}partitionpath.field": partition_by,
            f"{WRITE}table.type": kind,
            f"{SYNC}enable": "true",
            "hoodie.datasource.meta.sync.enable": "true",
            f"{SYNC}mode": "hms",
            f"{SYNC}metastore.uris": self._uris,
            f"{SYNC}database": "theirs",
        }
        self._hudi.write(
            self.base, rows=rows, schema=schema, options={**given, **options}, operation=operation
        )


def registered(metastore: HiveMetastore, database: str, name: str) -> dict[str, Any]:
    """All that the metastore has of a table and its partitions, by Thrift and not by a catalog."""
    client = HiveClient(metastore.uris)
    table = _plain(client.call("get_table", database, name))
    partitions = _plain(client.call("get_partitions", database, name, -1))
    client.disconnect()
    table["parameters"] = {
        key: text for key, text in table["parameters"].items() if key not in APART
    }
    for entry in (table, *partitions):
        del entry["dbName"], entry["createTime"]
        path = entry["sd"]["serdeInfo"]["parameters"]
        path["path"] = path["path"].removeprefix("file:")
    for partition in partitions:
        partition["parameters"].pop("transient_lastDdlTime", None)
    return {**table, "partitions": sorted(partitions, key=lambda entry: str(entry["values"]))}


def _plain(found: Any) -> Any:
    if isinstance(found, list):
        return [_plain(each) for each in found]
    if isinstance(found, dict):
        return {key: _plain(each) for key, each in sorted(found.items())}
    return _plain(vars(found)) if hasattr(found, "__dict__") else found


def check_same(metastore: HiveMetastore, base: Path, *suffixes: str, **options: str) -> None:
    """Registers the table as pyhudi does, too, and compares."""
    table = pyhudi.open_table(base, options=options)
    ours = HiveCatalog(metastore.uris)
    table.sync(ours, database="ours")
    ours.close()
    for suffix in suffixes:
        name = f"{base.name}{suffix}"
        assert registered(metastore, "ours", name) == registered(metastore, "theirs", name)


@pytest.mark.hudi("1.2.0")
def test_sync_registers_all_types(
    hudi: HudiOracle, metastore: HiveMetastore, catalog: HiveCatalog, tmp_path: Path
) -> None:
    theirs = Theirs(hudi, metastore, tmp_path / "types")
    theirs.write(TYPES, row("1", "osaka", **VALUES), row("2", "lima", **VALUES))
    check_same(metastore, theirs.base, "")
    theirs.write(TYPES, row("3", "paris", **VALUES))
    gone = {f"{WRITE}partitions.to.delete": "osaka"}
    theirs.write(TYPES, row("1", "osaka", **VALUES), operation="delete_partition", **gone)
    check_same(metastore, theirs.base, "")
    found = catalog.get_partitions("theirs", "types")
    assert {partition.values for partition in found} == {("lima",), ("paris",)}


@pytest.mark.hudi("1.2.0")
def test_merge_on_read_with_a_new_column(
    hudi: HudiOracle, metastore: HiveMetastore, catalog: HiveCatalog, tmp_path: Path
) -> None:
    options = {f"{WRITE}hive_style_partitioning": "true"}
    theirs = Theirs(hudi, metastore, tmp_path / "grown")
    theirs.write(PLAIN, row("1", "osaka"), kind="MERGE_ON_READ", **options)
    names = ("", "_ro", "_rt")
    check_same(metastore, theirs.base, *names)
    wider = f"{PLAIN}, extra int"
    theirs.write(wider, row("2", "lima", extra=3), kind="MERGE_ON_READ", **options)
    check_same(metastore, theirs.base, *names)
    opened = pyhudi.open_table("ours.grown", catalog=catalog)
    assert opened.scan(columns=["extra"]).to_arrow()["extra"].null_count == 1


@pytest.mark.hudi("1.2.0")
def test_options_and_no_partitions(
    hudi: HudiOracle, metastore: HiveMetastore, tmp_path: Path
) -> None:
    options = {
        f"{SYNC}omit_metadata_fields": "true",
        f"{SYNC}table_properties": "p=1\nq=2",
        f"{SYNC}serde_properties": "s=1",
        f"{SYNC}support_timestamp": "true",
    }
    theirs = Theirs(hudi, metastore, tmp_path / "odd")
    theirs.write(TYPES, row("1", "osaka", **VALUES), partition_by="", **options)
    check_same(metastore, theirs.base, "", **options)


@pytest.mark.hudi("1.2.0")
def test_sync_registers_two_partition_levels(
    hudi: HudiOracle, metastore: HiveMetastore, tmp_path: Path
) -> None:
    theirs = Theirs(hudi, metastore, tmp_path / "levels")
    theirs.write(f"{PLAIN}, a int", row("1", "osaka", a=1), partition_by="a,city")
    check_same(metastore, theirs.base, "")


@pytest.mark.hudi("1.2.0")
def test_hudi_goes_on_where_pyhudi_synced(
    hudi: HudiOracle, metastore: HiveMetastore, catalog: HiveCatalog, tmp_path: Path
) -> None:
    theirs = Theirs(hudi, metastore, tmp_path / "turns")
    theirs.write(PLAIN, row("1", "osaka"))
    options = {
        "hoodie.datasource.meta.sync.enable": "true",
        f"{SYNC}metastore.uris": metastore.uris,
        f"{SYNC}database": "theirs",
    }
    table = pyhudi.open_table(theirs.base, options=options)
    table.upsert(pa.table({"id": ["2"], "city": ["lima"], "ts": [1]}))
    assert len(catalog.get_partitions("theirs", "turns")) == 2
    theirs.write(PLAIN, row("3", "paris"))
    assert len(catalog.get_partitions("theirs", "turns")) == 3
    check_same(metastore, theirs.base, "")
