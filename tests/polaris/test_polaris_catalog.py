"""Tables by name in a real Apache Polaris, found by its own API and registered by it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.catalog import PolarisCatalog
from pyhudi.cli import main
from pyhudi.errors import ConfigError, StorageError, TableNotFound, UnsupportedTableFeature
from tests.helpers.certificates import Authority
from tests.helpers.polaris.server import PolarisServer
from tests.helpers.s3.server import S3Server
from tests.helpers.snippets import read_snippets

pytestmark = pytest.mark.polaris

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "polaris.md"
_NUMBERS = count()
ODD = "a ü%20?#+&;='\"\\(x)"
"""A table's name with characters that have a meaning in URLs."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "lake")


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[PolarisServer]:
    server = PolarisServer(tmp_path_factory.mktemp("polaris"), authority.issue("polaris"))
    yield server
    server.close()


@pytest.fixture
def warehouse(server: PolarisServer, tmp_path: Path) -> str:
    """A new catalog of the server, in the test's directory."""
    name = f"my lake {next(_NUMBERS)}"
    server.create_catalog(name, f"file://{tmp_path}/lake")
    return name


@pytest.fixture
def lake(
    server: PolarisServer, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> pyhudi.NamedCatalog:
    monkeypatch.setenv("PYHUDI_CATALOG__PROD__TYPE", "polaris")
    monkeypatch.setenv("PYHUDI_CATALOG__PROD__URI", server.uri)
    monkeypatch.setenv("PYHUDI_CATALOG__PROD__WAREHOUSE", warehouse)
    monkeypatch.setenv("PYHUDI_CATALOG__PROD__CREDENTIAL", server.credential)
    catalog = pyhudi.load_catalog("prod")
    catalog.create_database("sales")
    return catalog


def rows(*cities: str) -> pa.Table:
    return pa.table({"id": list(cities), "city": list(cities), "ts": [1] * len(cities)})


def generic_table(server: PolarisServer, warehouse: str, name: str, database: str = "sales") -> Any:
    """The entry by Polaris' own API."""
    path = f"namespaces/{database}/generic-tables/{quote(name, safe='')}"
    answer = server.call("GET", f"polaris/v1/{quote(warehouse)}/{path}")
    return answer["table"] if isinstance(answer, dict) else answer


def register(server: PolarisServer, warehouse: str, **entry: Any) -> None:
    """Make an entry by Polaris' own API, as its Spark client does."""
    path = f"polaris/v1/{quote(warehouse)}/namespaces/sales/generic-tables"
    answer = server.call("POST", path, {key.replace("_", "-"): each for key, each in entry.items()})
    assert answer["table"]["name"] == entry["name"]


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_table_created_by_name_is_a_generic_table(
    server: PolarisServer,
    warehouse: str,
    lake: pyhudi.NamedCatalog,
    tmp_path: Path,
    table_type: Any,
) -> None:
    table = pyhudi.create_table(
        "prod.sales.trips", rows("osaka"), key="id", partition_by="city", type=table_type
    )
    base = tmp_path / "lake" / "sales" / "trips"
    assert generic_table(server, warehouse, "trips") == {
        "name": "trips",
        "format": "hudi",
        "base-location": f"file://{base}",
        "doc": None,
        "properties": {},
    }
    assert table.uri == f"file://{base}"
    table.upsert(rows("lima"))
    assert pyhudi.open_table(base).scan().count() == 2
    assert lake.list_tables("sales") == ["trips"]
    assert pyhudi.table_exists("prod.sales.trips")
    # The secret is in no file of the table, and not displayed with its handle.
    opened = pyhudi.open_table("prod.sales.trips")
    assert "s3cr3t" not in f"{opened!r} {opened.options} {opened.state}"
    files = [path for path in base.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"s3cr3t" in path.read_bytes()]


def test_table_registered_by_another_client_opens_by_name(
    server: PolarisServer, warehouse: str, lake: pyhudi.NamedCatalog, tmp_path: Path
) -> None:
    base = tmp_path / "other place"
    pyhudi.create_table(base, rows("osaka"), key="id")
    location = f"file:{base}"  # as Hadoop writes it
    properties = {"provider": "hudi", "location": location, "owner": "spark"}
    register(
        server,
        warehouse,
        name="theirs",
        format="HUDI",
        base_location=location,
        properties=properties,
    )
    table = pyhudi.open_table("prod.sales.theirs")
    table.upsert(rows("lima"))
    assert pyhudi.open_table(base).scan().count() == 2
    assert generic_table(server, warehouse, "theirs")["properties"] == properties


def test_table_of_a_bucket_uses_storage_options_of_the_catalog(
    server: PolarisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = S3Server(tmp_path)
    try:
        storage.make_bucket("lake")
        server.create_catalog("cloud", "s3://lake/base")
        monkeypatch.setenv("PYHUDI_CATALOG__CLOUD__TYPE", "polaris")
        monkeypatch.setenv("PYHUDI_CATALOG__CLOUD__URI", server.uri)
        monkeypatch.setenv("PYHUDI_CATALOG__CLOUD__WAREHOUSE", "cloud")
        monkeypatch.setenv("PYHUDI_CATALOG__CLOUD__TOKEN", server.token)
        for name, value in storage.options.items():
            monkeypatch.setenv(f"PYHUDI_CATALOG__CLOUD__STORAGE_OPTIONS__{name.upper()}", value)
        pyhudi.load_catalog("cloud").create_database("sales")
        pyhudi.create_table("cloud.sales.trips", rows("osaka"), key="id")
        entry = generic_table(server, "cloud", "trips")
        assert entry["base-location"] == "s3://lake/base/sales/trips"
        pyhudi.open_table("cloud.sales.trips").upsert(rows("lima"))
        by_location = pyhudi.open_table(entry["base-location"], storage_options=storage.options)
        assert by_location.count() == 2
        pyhudi.drop_table("cloud.sales.trips")
        assert generic_table(server, "cloud", "trips") == "NoSuchTableException"
        assert not pyhudi.table_exists(by_location.uri, storage_options=storage.options)
    finally:
        storage.close()


def test_other_formats_are_no_hudi_tables(
    server: PolarisServer, warehouse: str, lake: pyhudi.NamedCatalog, tmp_path: Path
) -> None:
    location = f"file://{tmp_path}/rows"
    pyhudi.create_table(tmp_path / "rows", rows("osaka"), key="id")
    register(server, warehouse, name="rows", format="csv", base_location=location)
    register(server, warehouse, name="nowhere", format="hudi")
    assert lake.list_tables("sales") == []
    with pytest.raises(TableNotFound, match="is not a Hudi table"):
        pyhudi.open_table("prod.sales.rows")
    with pytest.raises(TableNotFound, match="is not a Hudi table"):
        pyhudi.open_table("prod.sales.nowhere")
    with pytest.raises(ConfigError, match="exists in the catalog and is not a Hudi table"):
        lake.register_table("sales.rows", tmp_path / "rows")
    with pytest.raises(ConfigError, match="exists and is not a Hudi table"):
        pyhudi.create_table("prod.sales.rows", rows("osaka"), key="id", mode="overwrite")


def test_name_of_iceberg_table_is_in_use(
    server: PolarisServer, warehouse: str, lake: pyhudi.NamedCatalog, tmp_path: Path
) -> None:
    schema = {"type": "struct", "schema-id": 0, "fields": []}
    path = f"v1/{quote(warehouse)}/namespaces/sales/tables"
    answer = server.call("POST", path, {"name": "ice", "schema": schema})
    assert answer["metadata"]["location"].endswith("/sales/ice")
    assert not pyhudi.table_exists("prod.sales.ice")
    pyhudi.create_table(tmp_path / "own", rows("osaka"), key="id")
    with pytest.raises(StorageError, match=r"already exists[\s\S]*Choose another name"):
        lake.register_table("sales.ice", tmp_path / "own")
    with pytest.raises(StorageError, match="already exists"):
        pyhudi.create_table("prod.sales.ice", rows("osaka"), key="id")
    assert server.call("GET", f"{path}/ice")["metadata"]["location"].endswith("/sales/ice")
    assert not pyhudi.table_exists(tmp_path / "lake" / "sales" / "ice")


def test_register_list_and_drop(
    server: PolarisServer, warehouse: str, lake: pyhudi.NamedCatalog, tmp_path: Path
) -> None:
    table = pyhudi.create_table(tmp_path / "own", rows("osaka"), key="id")
    for name in ("trips", ODD):
        assert lake.register_table(f"sales.{name}", table.uri).count() == 1
        lake.register_table(f"sales.{name}", table.uri)  # again, without an effect
    assert lake.list_tables("sales") == sorted(["trips", ODD])
    assert generic_table(server, warehouse, ODD)["base-location"] == f"file://{tmp_path}/own"
    assert pyhudi.open_table("prod.sales.trips").count() == 1
    assert lake.open_table(f"sales.{ODD}").count() == 1
    other = pyhudi.create_table(tmp_path / "other", rows("osaka"), key="id")
    with pytest.raises(ConfigError, match=r"sales\.trips is at .*/own in the catalog"):
        lake.register_table("sales.trips", other.uri)
    lake.drop_table(f"sales.{ODD}")
    assert generic_table(server, warehouse, ODD) == "NoSuchTableException"
    assert pyhudi.open_table(table.uri).count() == 1
    lake.store.drop_table("sales", ODD)  # already dropped
    pyhudi.drop_table("prod.sales.trips")
    assert generic_table(server, warehouse, "trips") == "NoSuchTableException"
    assert not pyhudi.table_exists(table.uri)
    with pytest.raises(StorageError, match="must not contain '/'"):
        lake.register_table("sales.a/b", tmp_path / "other")


def test_sync_registers_location(server: PolarisServer, warehouse: str, tmp_path: Path) -> None:
    """A handle of a location, and a catalog without a configuration."""
    catalog = PolarisCatalog(server.uri, warehouse, credential=server.credential)
    table = pyhudi.create_table(tmp_path / "own", rows("osaka"), key="id")
    properties = {"hoodie.datasource.hive_sync.table_properties": "owner=me"}
    table = pyhudi.open_table(tmp_path / "own", options=properties)
    first = table.sync(catalog, database="new", name="trips")
    assert (first.tables, first.created) == (("new.trips",), ("new.trips",))
    assert table.sync(catalog, database="new", name="trips").created == ()
    entry = generic_table(server, warehouse, "trips", "new")
    assert (entry["format"], entry["properties"]) == ("hudi", {"owner": "me"})
    assert pyhudi.open_table("new.trips", catalog=catalog).count() == 1


def test_rename_is_refused_and_changes_nothing(
    server: PolarisServer, warehouse: str, lake: pyhudi.NamedCatalog
) -> None:
    pyhudi.create_table("prod.sales.trips", rows("osaka"), key="id")
    with pytest.raises(ConfigError, match=r"cannot rename[\s\S]*Register the table as rides"):
        lake.rename_table("sales.trips", "sales.rides")
    with pytest.raises(TableNotFound):
        lake.rename_table("sales.trip", "sales.rides")
    assert lake.list_tables("sales") == ["trips"]


def test_databases(
    server: PolarisServer, warehouse: str, lake: pyhudi.NamedCatalog, tmp_path: Path
) -> None:
    lake.create_database("odd-ü+&;=")
    lake.create_database("own", location=f"file://{tmp_path}/lake/own")
    namespace = {"namespace": ["sales", "eu"], "properties": {}}
    server.call("POST", f"v1/{quote(warehouse)}/namespaces", namespace)
    assert lake.list_databases() == ["odd-ü+&;=", "own", "sales"]
    assert lake.store.database_location("own") == f"file://{tmp_path}/lake/own/"
    lake.create_table("odd-ü+&;=.trips", rows("osaka"), key="id")
    assert lake.list_tables("odd-ü+&;=") == ["trips"]
    with pytest.raises(StorageError, match="Namespace already exists"):
        lake.create_database("own")
    with pytest.raises(StorageError, match="custom location"):
        lake.create_database("far", location=f"file://{tmp_path}/lake/elsewhere")
    with pytest.raises(ConfigError, match="no database 'sale'"):
        pyhudi.create_table("prod.sale.trips", rows("osaka"), key="id")
    for name in ("..", ".", "", "a\x1fb"):
        with pytest.raises(ConfigError, match="cannot be the name of a database"):
            lake.store.list_tables(name)


def test_read_optimized_view_is_refused(lake: pyhudi.NamedCatalog, tmp_path: Path) -> None:
    table = pyhudi.create_table(tmp_path / "own", rows("osaka"), key="id", type="mor")
    options = {"hoodie.datasource.hive_sync.table.strategy": "RO"}
    with pytest.raises(UnsupportedTableFeature, match="no read-optimized views"):
        lake.register_table("sales.trips", table.uri, options=options)
    assert lake.list_tables("sales") == []


def test_wrong_access_is_reported(server: PolarisServer, warehouse: str, tmp_path: Path) -> None:
    def fails(error: type[Exception], match: str, uri: str = server.uri, **access: Any) -> None:
        with pytest.raises(error, match=match) as raised:
            PolarisCatalog(uri, access.pop("warehouse", warehouse), **access).list_databases()
        assert "s3cr3t" not in str(raised.value)

    right = server.credential
    fails(StorageError, r"not authorized[\s\S]*Check the credential", credential="root:wrong")
    fails(StorageError, r"401[\s\S]*Check the credential or the token", token="wrong")
    fails(ConfigError, "has no catalog 'lak'", credential=right, warehouse="lak")
    fails(StorageError, "realm", credential=right, realm="OTHER")
    outside = server.uri.removesuffix("/catalog")
    fails(ConfigError, r"no catalog[\s\S]*the uri ends in", uri=outside, token=server.token)
    assert PolarisCatalog(server.uri, warehouse, token=server.token).list_databases() == []
    assert (
        PolarisCatalog(server.uri, warehouse, credential=right, realm="POLARIS").list_databases()
        == []
    )


def test_page_runs(
    server: PolarisServer, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.create_catalog("lake", f"file://{tmp_path}/lake")
    address = "https://polaris:8181/api/catalog"
    text = PAGE.read_text(encoding="utf-8")
    (settings,) = re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    settings = settings.replace(
        'warehouse = "lake"', f'warehouse = "lake"\nca_file = "{authority.file}"'
    )
    (tmp_path / "pyhudi.toml").write_text(settings.replace(address, server.tls_uri))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLARIS_CREDENTIAL", server.credential)
    names: dict[str, Any] = {
        "pyhudi": pyhudi,
        "rows": rows("osaka"),
        "credential": server.credential,
    }
    first, second = read_snippets(PAGE)
    first.run(PAGE, names)
    replace(second, code=second.code.replace(address, server.uri)).run(PAGE, names)
    assert names["table"].count() == 1


def test_missing_privilege_is_reported(server: PolarisServer, warehouse: str) -> None:
    principal = {"principal": {"name": f"guest{next(_NUMBERS)}"}}
    created = server.call("POST", "../management/v1/principals", principal)["credentials"]
    guest = PolarisCatalog(
        server.uri, warehouse, credential=f"{created['clientId']}:{created['clientSecret']}"
    )
    with pytest.raises(StorageError, match=r"not authorized[\s\S]*Grant the principal's role"):
        guest.list_databases()


def test_expired_token_is_renewed(server: PolarisServer, warehouse: str) -> None:
    catalog = PolarisCatalog(server.uri, warehouse, credential=server.credential)
    assert catalog.list_databases() == []
    catalog._token = "expired"
    assert catalog.list_databases() == []
    assert catalog._token != "expired"


def test_tls_checks_the_authority(
    server: PolarisServer, warehouse: str, authority: Authority
) -> None:
    def catalog(ca_file: Path | None) -> PolarisCatalog:
        file = None if ca_file is None else str(ca_file)
        access = {"credential": server.credential, "ca_file": file}
        return PolarisCatalog(server.tls_uri, warehouse, **access)  # type: ignore[arg-type]

    assert catalog(authority.file).list_databases() == []
    with pytest.raises(StorageError, match=r"certificate verify failed[\s\S]*Set ca_file"):
        catalog(None).list_databases()


def test_commands(
    lake: pyhudi.NamedCatalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pyhudi.create_table(tmp_path / "own", rows("osaka"), key="id")

    def run(*arguments: str) -> str:
        main(["catalog", *arguments])
        return capsys.readouterr().out

    assert "s3cr3t" not in run("list")
    run("register", "prod.sales.trips", table.uri)
    assert "trips" in run("tables", "prod.sales")
    assert f"file://{tmp_path}/own" in run("show", "prod.sales.trips")
    run("drop", "prod.sales.trips", "--yes")
    assert "trips" not in run("tables", "prod.sales")


def test_server_that_stopped_fails_a_later_sync_only(tmp_path: Path) -> None:
    folder = tmp_path / "polaris"
    folder.mkdir()
    server = PolarisServer(folder)
    try:
        server.create_catalog("lake", f"file://{tmp_path}/lake")
        access = {"uri": server.uri, "warehouse": "lake", "credential": server.credential}
        catalog = pyhudi.load_catalog("own", type="polaris", **access)
        catalog.create_database("sales")
        table = catalog.create_table("sales.trips", rows("osaka"), key="id")
    finally:
        server.close()
    with pytest.warns(pyhudi.errors.AfterCommitWarning, match="Connection refused"):
        table.upsert(rows("lima"))
    assert pyhudi.open_table(table.uri).count() == 2
    with pytest.raises(StorageError, match=r"Connection refused[\s\S]*server is running"):
        catalog.open_table("sales.trips")
