"""Tables by name in a real Hive metastore, which Hudi's own sync uses too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import ConfigError
from tests.helpers.hive_metastore import HiveMetastore
from tests.helpers.oracle.client import HudiOracle

pytestmark = [pytest.mark.jvm, pytest.mark.hudi("1.2.0")]
WRITE = "hoodie.datasource.write."
SYNC = "hoodie.datasource.hive_sync."
SCHEMA = "id string, city string, ts bigint"


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    server = HiveMetastore(tmp_path_factory.mktemp("metastore"))
    yield server
    server.close()


@pytest.fixture
def lake(
    metastore: HiveMetastore, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pyhudi.NamedCatalog]:
    monkeypatch.setenv("PYHUDI_CATALOG__PROD__TYPE", "hive")
    monkeypatch.setenv("PYHUDI_CATALOG__PROD__URIS", metastore.uris)
    catalog = pyhudi.load_catalog("prod")
    yield catalog
    catalog.close()


def rows(*cities: str) -> pa.Table:
    return pa.table({"id": list(cities), "city": list(cities), "ts": [1] * len(cities)})


def cities(lake: pyhudi.NamedCatalog, database: str, table: str) -> set[str]:
    return {each.values[0] for each in lake.store.get_partitions(database, table)}


def write_with_hudi(
    hudi: HudiOracle, metastore: HiveMetastore, base: Path, city: str, database: str
) -> None:
    options = {
        "hoodie.table.name": base.name,
        f"{WRITE}recordkey.field": "id",
        f"{WRITE}precombine.field": "ts",
        f"{WRITE}partitionpath.field": "city",
        "hoodie.datasource.meta.sync.enable": "true",
        f"{SYNC}mode": "hms",
        f"{SYNC}metastore.uris": metastore.uris,
        f"{SYNC}database": database,
    }
    row = {"id": city, "city": city, "ts": 1}
    hudi.write(base, rows=[row], schema=SCHEMA, options=options, operation="upsert")


def test_hudi_table_opens_by_name_and_both_sync_it(
    hudi: HudiOracle, metastore: HiveMetastore, lake: pyhudi.NamedCatalog, tmp_path: Path
) -> None:
    base = tmp_path / "turns"
    write_with_hudi(hudi, metastore, base, "osaka", "theirs")
    assert lake.list_tables("theirs") == ["turns"]
    table = pyhudi.open_table("prod.theirs.turns")
    table.upsert(rows("lima"))
    assert cities(lake, "theirs", "turns") == {"osaka", "lima"}
    write_with_hudi(hudi, metastore, base, "paris", "theirs")
    assert cities(lake, "theirs", "turns") == {"osaka", "lima", "paris"}
    assert table.refresh().scan().count() == 3


def test_hudi_goes_on_with_table_created_by_name(
    hudi: HudiOracle, metastore: HiveMetastore, lake: pyhudi.NamedCatalog, tmp_path: Path
) -> None:
    lake.create_database("sales", location=f"file:{tmp_path}/sales.db")
    table = pyhudi.create_table(
        "prod.sales.trips", rows("osaka"), key="id", partition_by="city", order_by="ts"
    )
    base = tmp_path / "sales.db" / "trips"
    assert table.uri == str(base)
    write_with_hudi(hudi, metastore, base, "lima", "sales")
    assert cities(lake, "sales", "trips") == {"osaka", "lima"}
    assert {row["city"] for row in hudi.read(base)["rows"]} == {"osaka", "lima"}


def test_metastore_lists_renames_and_drops(
    metastore: HiveMetastore, lake: pyhudi.NamedCatalog, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="no database 'own'"):
        pyhudi.create_table("prod.own.trips", rows("osaka"), key="id")
    lake.create_database("own")
    table = pyhudi.create_table(
        "prod.own.trips", rows("osaka"), key="id", partition_by="city", type="mor"
    )
    assert Path(table.uri).parent.name == "own.db"
    assert "own" in lake.list_databases()
    lake.rename_table("own.trips", "own.rides")
    assert lake.list_tables("own") == ["rides", "rides_rt"]
    pyhudi.open_table("prod.own.rides").upsert(rows("lima"))
    assert cities(lake, "own", "rides_ro") == {"osaka", "lima"}
    lake.drop_table("own.rides")
    assert lake.list_tables("own") == []
    assert pyhudi.open_table(table.uri).scan().count() == 2
    lake.register_table("own.again", table.uri)
    pyhudi.drop_table("prod.own.again")
    assert not pyhudi.table_exists(table.uri)
