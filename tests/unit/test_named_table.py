"""Tables by name in a configured catalog, in AWS Glue as moto has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from moto import mock_aws

import pyhudi
from pyhudi.catalog.named_table import find_table
from pyhudi.cli import main
from pyhudi.errors import ConfigError, SchemaMismatch, TableNotFound
from pyhudi.storage.options import is_table_name


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pyhudi.NamedCatalog]:
    """The catalog `prod` with a database `sales` in a directory."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "tests")
    (tmp_path / "pyhudi.toml").write_text('[catalog.prod]\ntype = "glue"\nregion = "us-east-1"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYHUDI_CONFIG", raising=False)
    with mock_aws():
        catalog = pyhudi.load_catalog("prod")
        catalog.create_database("sales", location=f"file:{tmp_path}/sales.db")
        yield catalog


def rows(*cities: str) -> pa.Table:
    return pa.table({"id": list(cities), "city": list(cities)})


def cities(lake: pyhudi.NamedCatalog, table: str) -> set[str]:
    return {each.values[0] for each in lake.store.get_partitions("sales", table)}


def create(name: str = "prod.sales.trips", **arguments: Any) -> pyhudi.HudiTable:
    return pyhudi.create_table(name, rows("lima"), key="id", partition_by="city", **arguments)


def test_named_table_is_created_and_followed_by_commits(
    lake: pyhudi.NamedCatalog, tmp_path: Path
) -> None:
    table = create()
    assert table.uri == f"{tmp_path}/sales.db/trips"
    assert (table.name, table.config.database) == ("trips", "sales")
    table.upsert(rows("osaka"))
    assert cities(lake, "trips") == {"lima", "osaka"}
    opened = pyhudi.open_table("prod.sales.trips")
    assert opened.scan().count() == 2
    opened.upsert(rows("paris"))
    assert cities(lake, "trips") == {"lima", "osaka", "paris"}
    quiet = {"hoodie.datasource.meta.sync.enable": False}
    lake.open_table("sales.trips", options=quiet).upsert(rows("oslo"))
    assert cities(lake, "trips") == {"lima", "osaka", "paris"}
    opened.sync()
    assert "oslo" in cities(lake, "trips")


def test_catalog_lists_databases_and_hudi_tables(lake: pyhudi.NamedCatalog) -> None:
    create(type="mor")
    assert lake.list_databases() == ["sales"]
    assert lake.list_tables("sales") == ["trips", "trips_rt"]
    with pytest.raises(ConfigError, match=r"no database 'sale'\nHint: Did you mean 'sales'"):
        lake.list_tables("sale")


def test_view_of_all_rows_syncs_the_table_itself(lake: pyhudi.NamedCatalog) -> None:
    create(type="mor")
    pyhudi.open_table("prod.sales.trips_rt").upsert(rows("osaka"))
    assert cities(lake, "trips") == {"lima", "osaka"}
    assert {each.name for each in lake.store.list_tables("sales")} == {
        "trips",
        "trips_ro",
        "trips_rt",
    }
    with pytest.raises(ConfigError, match="read-optimized view"):
        pyhudi.open_table("prod.sales.trips_ro")


def test_create_modes_of_a_name(lake: pyhudi.NamedCatalog) -> None:
    create()
    with pytest.raises(ConfigError, match=r"'prod\.sales\.trips' exists at"):
        create()
    assert create(mode="ignore").scan().count() == 1
    pyhudi.create_table("prod.sales.trips", rows("a", "b"), key="id", mode="overwrite")
    entry = lake.store.get_table("sales", "trips")
    assert entry is not None
    assert entry.partition_keys == ()
    assert pyhudi.open_table("prod.sales.trips").scan().count() == 2


def test_failed_creation_leaves_no_entry(
    lake: pyhudi.NamedCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        assert lake.list_tables("sales") == ["trips"]
        raise SchemaMismatch("no")

    monkeypatch.setattr(pyhudi.HudiTable, "insert", fail)
    with pytest.raises(SchemaMismatch):
        create()
    assert lake.list_tables("sales") == []
    assert not pyhudi.table_exists("prod.sales.trips")


def test_registered_table_is_renamed_and_dropped(lake: pyhudi.NamedCatalog, tmp_path: Path) -> None:
    path = tmp_path / "elsewhere"
    pyhudi.create_table(path, rows("lima"), key="id", partition_by="city", type="mor")
    lake.register_table("sales.trips", path).upsert(rows("osaka"))
    lake.rename_table("sales.trips", "sales.rides")
    assert {each.name for each in lake.store.list_tables("sales")} == {
        "rides",
        "rides_ro",
        "rides_rt",
    }
    assert cities(lake, "rides") == {"lima", "osaka"}
    lake.open_table("sales.rides").upsert(rows("paris"))
    assert cities(lake, "rides") == {"lima", "osaka", "paris"}
    with pytest.raises(ConfigError, match="of another database"):
        lake.rename_table("sales.rides", "other.rides")
    lake.drop_table("sales.rides")
    assert lake.list_tables("sales") == []
    assert pyhudi.open_table(path).scan().count() == 3


def test_drop_table_by_name_removes_files_and_names(
    lake: pyhudi.NamedCatalog, tmp_path: Path
) -> None:
    create(type="mor")
    assert pyhudi.table_exists("prod.sales.trips")
    pyhudi.drop_table("prod.sales.trips")
    assert not pyhudi.table_exists("prod.sales.trips")
    assert not pyhudi.table_exists(tmp_path / "sales.db" / "trips")
    assert lake.store.list_tables("sales") == []
    with pytest.raises(TableNotFound):
        lake.drop_table("sales.trips", purge=True)


def test_name_belongs_to_another_table(lake: pyhudi.NamedCatalog, tmp_path: Path) -> None:
    create()
    pyhudi.create_table(tmp_path / "t", rows("lima"), key="id", partition_by="city")
    with pytest.raises(ConfigError, match=r"sales\.trips is at"):
        lake.register_table("sales.trips", tmp_path / "t")


def test_open_table_suggests_a_name(lake: pyhudi.NamedCatalog) -> None:
    create()
    with pytest.raises(TableNotFound, match="Did you mean 'trips'"):
        pyhudi.open_table("prod.sales.trip")
    with pytest.raises(ConfigError, match="decides it"):
        pyhudi.open_table("prod.sales.trips", options={"hoodie.datasource.hive_sync.table": "t"})


def test_names_and_locations_are_told_apart(lake: pyhudi.NamedCatalog, tmp_path: Path) -> None:
    for location in (
        "./prod.sales.trips",
        "s3://a.b.c",
        "trips",
        "sales.trips",
        "/a.b.c",
        "a.b.c.d",
    ):
        assert not is_table_name(location)
    assert is_table_name("prod.sales.trips")
    assert find_table("prod.sales.trips").name == "prod.sales.trips"
    with pytest.raises(ConfigError, match=r"no catalog 'prd' .* prod\nHint: .* \./prd\.sales\.x"):
        pyhudi.create_table("prd.sales.x", rows("lima"), key="id")
    (tmp_path / "prd.sales.x").mkdir()
    pyhudi.create_table("prd.sales.x", rows("lima"), key="id")
    assert pyhudi.open_table("prd.sales.x").scan().count() == 1


def test_cli_takes_names(lake: pyhudi.NamedCatalog, capfd: pytest.CaptureFixture[str]) -> None:
    create()
    assert main(["count", "prod.sales.trips"]) == 0
    assert capfd.readouterr().out.strip() == "1"
    assert main(["sync", "prod.sales.trips", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["tables"] == ["sales.trips"]
    assert main(["count", "prdo.sales.trips"]) == 3
    assert "configured catalogs: prod" in capfd.readouterr().err
